"""From a proposal to a row: the order of the steps, identity, deadline, replay, races, cards, events, cancellation."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from support.gate import (
    CONVERSATION,
    MILLISECOND,
    READS,
    STATES,
    T0,
    TENANT,
    TERMINAL,
    TOOL,
    TTL,
    Desk,
    FixedPolicy,
    Outbox,
    WatchedStore,
    act,
    always,
    asking,
    changed,
    empty,
    in_threads,
    limit_of,
    member,
    no,
    record,
    relayed,
    sworn,
    turn,
    yes,
)

from affiant_core.affidavit import AffidavitField
from affiant_core.authority import Approve, Reject
from affiant_core.card import EvidenceCard, SystemNotification
from affiant_core.context import ActContext, TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.store import Filed
from affiant_core.entry_id import derive_entry_id
from affiant_core.envelope import ProposedOperation, WriteProposal
from affiant_core.errors import (
    DecisionUnauthorized,
    DocketUnavailable,
    EntryNotFound,
    SubstanceRefused,
    ValueRefused,
    WireupInvalid,
)
from affiant_core.gate import DEFAULT_TTL, ReviewGate
from affiant_core.policy import ReviewerConfirmation, StandingOrder, Verdict
from affiant_core.provenance import ProvenanceTag
from affiant_core.telemetry import PROTOCOL_KEYS
from affiant_core.vocabulary import CoverageCategory, TransportEvent

# --- the order of the steps (GT-1) ---------------------------------------------------------------------------------


def test_substance_comes_before_policy_and_store():
    """GT-1, GT-3: a proposal without substance is refused before any policy is asked and before the
    store is touched.
    """
    policy = FixedPolicy()
    desk = Desk(policy)
    with pytest.raises(SubstanceRefused):
        desk.file(record(empty("limit")))
    assert (policy.requests, desk.store.calls, desk.outbox.attempts) == ([], [], [])
    assert desk.events.keys == ["affidavit.refused.substance"]


def test_the_steps_stand_in_their_order():
    """GT-1: identity is looked up, then the policies are asked, then the row is filed, then it is told and shown."""
    trace = []

    class Watching(Outbox):
        def send(self, event, payload, *, group):
            trace.append("card")

    store = WatchedStore()
    store.before = {"get": lambda: trace.append("get"), "file": lambda: trace.append("file")}
    desk = Desk(FixedPolicy(lambda _: trace.append("policy")), store=store, transport=Watching())
    desk.file()
    assert trace == ["get", "policy", "file", "card"]


@pytest.mark.parametrize("answer", [RuntimeError("down"), "approve", Verdict.confirm(ttl=timedelta(0))])
def test_a_broken_policy_files_nothing(answer):
    """GT-1, CV-1: a policy that breaks its contract is refused at evaluation, and nothing is filed, told or shown."""
    desk = Desk(FixedPolicy(answer))
    with pytest.raises(WireupInvalid):
        desk.file()
    assert desk.store.calls == ["get"]
    assert desk.store.rows() == ()
    assert desk.events.keys == ["policy.invalid"]
    assert desk.outbox.attempts == []


@pytest.mark.parametrize("method", ["get", "file"])
def test_a_store_that_fails_files_nothing(method):
    """GT-1: a fault of the store comes out as it is; no event and no card speak of a row that is not there."""

    def fail():
        raise DocketUnavailable("the disk is full")

    desk = Desk()
    desk.store.before[method] = fail
    with pytest.raises(DocketUnavailable):
        desk.file()
    assert (desk.store.rows(), desk.events.told, desk.outbox.attempts) == ((), [], [])


def test_without_a_policy_a_reviewer_is_asked():
    """GT-1 (7): no policy, or none with an opinion, means ReviewerConfirmation."""
    for desk in (Desk(), Desk(FixedPolicy(), FixedPolicy(id="other"))):
        assert desk.file().entry.requirement.to_json() == {"kind": "ReviewerConfirmation"}


# --- the context (GT-2) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "context",
    [
        None,
        {},
        "acme",
        {"tenant_id": TENANT, "conversation_id": CONVERSATION},
        act("filer"),
        TurnContext,
        SimpleNamespace(tenant_id=TENANT, conversation_id=CONVERSATION, channel="chat", principal=member()),
    ],
)
def test_a_context_of_a_wrong_type_is_refused(context):
    """GT-2, CV-2: filing takes a TurnContext and nothing that looks like one; nothing is read, asked or filed."""
    policy = FixedPolicy()
    desk = Desk(policy)
    with pytest.raises(WireupInvalid, match="CV-2"):
        desk.gate.file.sync(record(), context, tool_name=TOOL)
    assert (desk.store.calls, policy.requests, desk.events.told) == ([], [], [])


@pytest.mark.parametrize("proposal", [None, {}, "{}", WriteProposal(envelope=record())])
def test_only_a_sworn_record_is_filed(proposal):
    """GT-6: the gate files an Affidavit; a proposal around one, or data that looks like one, is the
    caller's mistake.
    """
    desk = Desk()
    with pytest.raises(WireupInvalid, match="Affidavit"):
        desk.gate.file.sync(proposal, turn(), tool_name=TOOL)
    assert desk.store.calls == []


def test_interleaved_conversations_never_mix():
    """GT-2, C14: turns of two tenants and two conversations, interleaved at every await, each file under their own."""
    contexts = [turn(tenant=tenant, conversation=talk) for tenant in ("acme", "bolt") for talk in ("c-1", "c-2")]

    async def ask(request):
        await asyncio.sleep(0)
        mine = request.context
        assert request.affidavit.values()["memo"].startswith(f"{mine.tenant_id}/{mine.conversation_id}/")
        await asyncio.sleep(0)

    desk = Desk(FixedPolicy(ask))

    async def one(context, number):
        memo = f"{context.tenant_id}/{context.conversation_id}/{number}"
        return await desk.gate.file(limit_of(number, memo), context, tool_name=TOOL, arguments={"limit": number})

    async def main():
        return await asyncio.gather(*(one(context, number) for number in range(1, 21) for context in contexts))

    filings = asyncio.run(main())
    assert all(filing.created for filing in filings)
    assert len({filing.entry.entry_id for filing in filings}) == 80
    for tenant in ("acme", "bolt"):
        rows = desk.store.rows(tenant)
        assert len(rows) == 40
        assert all(f"{row.tenant_id}/{row.conversation_id}/" in row.affidavit.values()["memo"] for row in rows)
    assert all(payload.affidavit.values()["memo"].split("/")[1] == group for _, payload, group in desk.outbox.sent)


def test_a_row_is_of_the_turn_that_it_came_from():
    """GT-2: tenant, conversation, channel and the person whose turn it was are the context's, on the row."""
    row = Desk().file(context=turn("rosa", tenant="bolt", conversation="c-9", channel="voice")).entry
    assert (row.tenant_id, row.conversation_id, row.channel, row.requested_by) == ("bolt", "c-9", "voice", "rosa")
    assert Desk().file(context=turn(relayed("rosa"))).entry.requested_by == "rosa"
    assert Desk().file(context=turn(None)).entry.requested_by is None


# --- substance and shape (GT-3, AF-3) ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x", 0, False, [], {}, "\u00a0x"])
def test_a_value_without_an_origin_is_hollow(value):
    """GT-3 (a): a value under Empty is refused, and 0, false, [] and {} are values; the reason names the field only."""
    desk = Desk()
    with pytest.raises(SubstanceRefused) as refused:
        desk.file(record(sworn("limit", 500), sworn("memo", value, "Empty")))
    assert "Empty provenance" in refused.value.reason
    assert "'memo'" in refused.value.reason
    assert desk.store.rows() == ()


@pytest.mark.parametrize("value", [None, "", "  \t"])
def test_nothing_under_empty_is_not_hollow(value):
    """GT-3 (a), AF-1: a proposed field of unknown origin that holds null or blank text is on the record, at 0."""
    row = Desk().file(record(sworn("limit", 500), sworn("memo", value, "Empty"))).entry
    assert row.affidavit.field_names == ("limit", "memo")
    assert (row.affidavit.aggregate_confidence, row.affidavit.empty_field_count) == (0, 1)


@pytest.mark.parametrize("fields", [(), (empty("limit"),), (empty("limit"), empty("memo"))])
def test_a_record_that_swears_to_nothing_is_refused(fields):
    """GT-3 (b): without one field that has an origin there is nothing to review."""
    desk = Desk()
    with pytest.raises(SubstanceRefused, match="no proposed field carries provenance other than Empty"):
        desk.gate.file.sync(record(entity="c-1").with_fields(fields), turn(), tool_name=TOOL)
    assert desk.events.only("affidavit.refused.substance") == {
        "gen_ai.tool.name": TOOL,
        "gen_ai.conversation.id": CONVERSATION,
        "affidavit.field_count": len(fields),
        "reason": "GT-3: no proposed field carries provenance other than Empty.",
    }


def test_hollow_is_told_before_empty():
    """GT-3: where both faults hold, the hollow field is the one that is named."""
    with pytest.raises(SubstanceRefused, match="'limit' holds a value under Empty provenance"):
        Desk().file(record(empty("memo"), sworn("limit", 500, "Empty")))


@pytest.mark.parametrize(
    ("affidavit", "said"),
    [
        (record(entity=None), "entity_id is missing"),
        (record(operation="update", entity=None), "entity_id is missing"),
        (record(operation="WriteCreate"), "a create names no entity"),
        (record(operation="CreateLeaveRequest"), "a create names no entity"),
        (record(operation="WriteDelete"), "a create names no entity"),
        (record(sworn("limit", 1, previous=0), operation="create", entity=None), "no previous values"),
    ],
)
def test_a_misshapen_record_is_refused(affidavit, said):
    """AF-3 and the seed on operationType: the shape decides, so an update names its entity and a create names none."""
    policy = FixedPolicy()
    desk = Desk(policy)
    with pytest.raises(WireupInvalid, match=said):
        desk.file(affidavit)
    assert (desk.store.calls, policy.requests) == ([], [])


@pytest.mark.parametrize("verb", ["WriteUpdate", "update", "UPDATE", "writeupdate"])
def test_the_two_spellings_of_an_update(verb):
    """AF-3 and the seed: only WriteUpdate and update, in any case, are updates; the row holds the shape."""
    filing = Desk().file(record(operation=verb))
    assert filing.entry.affidavit.operation_type == "update"
    assert filing.card.host_operation == (None if verb == "update" else verb)


# --- identity (GT-4) -----------------------------------------------------------------------------------------------


def test_the_protocols_check_value():
    """GT-4, "Check value": the id of the invoice update in the rulebook, with and without arguments."""
    fields = [sworn(name, "x") for name in ("status", "amount", "note")]
    context = turn(tenant="tenant-a", conversation="conv-1")
    desk = Desk()

    def filed(*sworn_fields, **more):
        invoice = record(*sworn_fields, entity="invoice-1").model_copy(update={"entity_type": "Invoice"})
        return desk.file(invoice, context, tool="update_invoice", **more).entry.entry_id

    assert filed(*fields) == "4f3f031b-a7c4-867c-9b1f-be0de416040d"
    assert filed(fields[0], arguments={"status": "Draft"}) == "80358c14-961a-875e-b20a-0a70a89e4592"


def test_the_id_is_derived_from_the_proposal_and_not_from_the_record():
    """GT-4 and the seed: two calls that differ only in a field's value derive one id when no arguments are carried."""
    desk = Desk()
    first = desk.file(limit_of(500))
    expected = derive_entry_id(
        tenant_id=TENANT,
        conversation_id=CONVERSATION,
        tool_name=TOOL,
        operation_kind="update",
        entity_type="Customer",
        entity_id="c-1",
        fields=["limit", "memo"],
        arguments=None,
    )
    assert first.entry.entry_id == expected
    assert desk.file(limit_of(501)).entry.entry_id == expected
    assert desk.file(arguments={}).entry.entry_id == expected


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"limit": 500}},
        {"arguments": {"limit": 501}},
        {"context": turn(conversation="c-2")},
        {"context": turn(tenant="bolt")},
        {"tool": "raise_limit"},
        {"affidavit": record(entity="c-2")},
        {"affidavit": record(sworn("memo", "kept"), sworn("limit", 500))},
        {"operation": ProposedOperation(kind="update", entity_type="Customer", entity_id="c-1", fields=("limit",))},
    ],
)
def test_what_makes_another_row(other):
    """GT-4: arguments, conversation, tenant, tool, entity, the fields' order and the host's own operation are
    identity.
    """
    desk = Desk()
    first = desk.file()
    second = desk.file(**other)
    assert second.created
    assert second.entry.entry_id != first.entry.entry_id


def test_the_hosts_own_id_counts():
    """The seed on ReviewContext.EntryId: a host that supplies its own id gets the row under it, and
    replays under it.
    """
    desk = Desk()
    assert desk.file(entry_id="ticket-7").entry.entry_id == "ticket-7"
    assert not desk.file(entry_id="ticket-7", arguments={"limit": 1}).created
    assert desk.file().created


def test_arguments_serialize_as_given():
    """GT-4: an amount beside a currency in the arguments is not money, and keys are written in no matter
    which order.
    """
    desk = Desk()
    first = desk.file(arguments={"amount": 40, "currency": "LKR"})
    again = desk.file(arguments={"currency": "LKR", "amount": 40})
    assert (first.created, again.created) == (True, False)


@pytest.mark.parametrize("bad", [float("nan"), object(), "\ud800", b"raw"])
def test_arguments_that_are_not_json_file_nothing(bad):
    """GT-4, DECISIONS 20: arguments without a canonical form have no identity; the error names the place only."""
    desk = Desk()
    with pytest.raises(ValueRefused, match=r"args\.limit"):
        desk.file(arguments={"limit": bad})
    assert desk.store.calls == []


# --- the deadline (GT-4) -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (FixedPolicy(Verdict.confirm(ttl=timedelta(minutes=1)), default_ttl=timedelta(hours=1)), timedelta(minutes=1)),
        (FixedPolicy(Verdict.confirm(), default_ttl=timedelta(hours=1)), timedelta(hours=1)),
        (FixedPolicy(Verdict.confirm()), TTL),
        (FixedPolicy(None, default_ttl=timedelta(hours=1)), TTL),
        (FixedPolicy(Verdict.confirm(ttl=MILLISECOND)), MILLISECOND),
        (ReviewerConfirmation(id="r", default_ttl=timedelta(hours=2)), timedelta(hours=2)),
        (always(default_ttl=timedelta(hours=3)), timedelta(hours=3)),
        (asking("ana", "bo", required=2), TTL),
    ],
)
def test_where_the_deadline_comes_from(policy, expected):
    """GT-4: the verdict's time to live, else that of the policy which gave it, else the gate's."""
    filing = Desk(policy).file()
    assert filing.entry.filed_at == T0
    assert filing.entry.expires_at == filing.card.required_by == T0 + expected


def test_the_gates_own_default():
    """GT-4, REFERENCE 10: a gate that is told nothing keeps a row open for thirty minutes."""
    gate = ReviewGate(docket=InMemoryDocketStore(), authorize=yes, clock=lambda: T0)
    assert timedelta(minutes=30) == DEFAULT_TTL
    assert gate.file.sync(record(), turn(), tool_name=TOOL).entry.expires_at == T0 + DEFAULT_TTL


def test_the_deadline_is_stamped_after_the_policies():
    """GT-4: a policy that takes its time does not eat into the reviewer's; row, record and deadline share one
    instant.
    """
    desk = Desk(FixedPolicy(lambda _: desk.clock.set(minutes=10)))
    row = desk.file().entry
    later = T0 + timedelta(minutes=10)
    assert (row.filed_at, row.affidavit.created_at, row.expires_at) == (later, later, later + TTL)


BAD_TTLS = {
    "zero": timedelta(0),
    "negative": timedelta(seconds=-1),
    "a fraction of a millisecond": timedelta(microseconds=999),
    "a millisecond and a fraction": timedelta(microseconds=1500),
    "no timedelta": 30,
    "beyond the calendar": timedelta(days=999_999_999),
    "just beyond the calendar": datetime.max.replace(tzinfo=T0.tzinfo, microsecond=999_000) - T0 + MILLISECOND,
}


@pytest.mark.parametrize("ttl", BAD_TTLS.values(), ids=BAD_TTLS.keys())
def test_a_verdicts_bad_time_to_live_is_refused(ttl):
    """GT-4, REFERENCE 13: a verdict's time to live is a whole number of milliseconds, at least one, within the
    calendar.
    """
    desk = Desk(FixedPolicy(Verdict.confirm(ttl=ttl)))
    with pytest.raises(WireupInvalid, match="time to live"):
        desk.file()
    assert desk.events.only("policy.invalid")["option"] == "ttl"
    assert desk.store.rows() == ()


def test_the_longest_time_to_live():
    """GT-4: a deadline in the calendar's last millisecond is one."""
    last = datetime.max.replace(tzinfo=T0.tzinfo, microsecond=999_000)
    assert Desk(FixedPolicy(Verdict.confirm(ttl=last - T0))).file().entry.expires_at == last


# --- replay (GT-4, DECISIONS 9) ------------------------------------------------------------------------------------


def test_a_replay_returns_the_row_that_is_there():
    """GT-4: filing an id again asks no policy, stamps no deadline, writes nothing, and says that nothing
    was created.
    """
    policy = FixedPolicy(Verdict.confirm(ttl=timedelta(minutes=5)))
    desk = Desk(policy)
    first = desk.file()
    desk.forget()
    desk.clock.set(minutes=4)
    policy.answer = Verdict.approve(ttl=timedelta(hours=9))
    again = desk.file()
    assert (again.created, again.differs) == (False, False)
    assert again.entry == first.entry == desk.stored(first.entry.entry_id)
    assert again.card.required_by == T0 + timedelta(minutes=5)
    assert len(policy.requests) == 1
    assert desk.store.calls == ["get"]
    assert desk.events.told == [
        (
            "affidavit.filed",
            {
                "gen_ai.tool.name": TOOL,
                "gen_ai.conversation.id": CONVERSATION,
                "entry.id": first.entry.entry_id,
                "docket.requirement": "ReviewerConfirmation",
                "docket.status": "pending",
                "affidavit.field_count": 2,
                "created": False,
            },
        )
    ]
    assert desk.outbox.cards == [first.card]


def test_a_replay_that_a_broken_policy_cannot_stop():
    """GT-4: since no policy runs on a replay, one that broke in the meantime does not get in the way."""
    policy = FixedPolicy()
    desk = Desk(policy)
    desk.file()
    policy.answer = RuntimeError("down")
    assert not desk.file().created


@pytest.mark.parametrize("state", STATES)
def test_a_replay_in_every_state(state):
    """GT-4, DK-1: the row is returned as it reads, unchanged, and its card goes out again only while it is pending."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    filing = desk.file()
    reads = READS.get(state, state)
    assert (filing.created, filing.entry.entry_id, filing.entry.status.value) == (False, entry_id, reads)
    assert filing.card.requires_confirmation is (state == "pending")
    assert len(desk.outbox.attempts) == (state == "pending")
    assert desk.stored(entry_id) == before
    assert desk.events.only("affidavit.filed")["docket.status"] == reads


def test_a_replay_of_a_standing_order():
    """GT-4, AZ-1: an automatic approval replays as approved, and neither the attestation nor the card comes a second
    time.
    """
    desk = Desk(always())
    first = desk.file()
    desk.forget()
    again = desk.file()
    assert again.entry == first.entry
    assert (desk.events.keys, desk.outbox.attempts) == (["affidavit.filed"], [])


def test_a_replay_of_a_blocked_row():
    """GT-4, AZ-4: a blocked row replays as it is, still pending and still asking for no confirmation."""
    desk = Desk(FixedPolicy(Verdict.refer()))
    desk.file()
    again = desk.file()
    assert (again.created, again.entry.status.value, again.card.requires_confirmation) == (False, "pending", False)


DIFFERENT = {
    "a value": limit_of(501),
    "a value's type": limit_of("500"),
    "a value that went missing": limit_of(500, None),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT.keys())
@pytest.mark.parametrize("state", ["pending", "rejected", "expired"])
def test_a_replay_that_hides_another_proposal_says_so(state, other, caplog):
    """DECISIONS 9: a replay whose proposal would write something else is logged, told and marked, and changes
    nothing.
    """
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    with caplog.at_level(logging.WARNING, "affiant_core"):
        filing = desk.file(other)
    assert (filing.created, filing.differs) == (False, True)
    assert desk.stored(entry_id) == before
    assert filing.card.affidavit.values() == {"limit": 500, "memo": "kept"}
    assert desk.events.only("affiant.review.replay_differs") == {
        "gen_ai.tool.name": TOOL,
        "gen_ai.conversation.id": CONVERSATION,
        "entry.id": entry_id,
    }
    (said,) = caplog.records
    assert said.levelno == logging.WARNING
    assert entry_id in said.getMessage()
    assert "501" not in said.getMessage()


def test_a_replay_with_another_operation_differs():
    """DECISIONS 9: under a host's own id, another entity, type or shape of write is another proposal."""
    desk = Desk()
    desk.file(entry_id="ticket-7")
    fields = (sworn("limit", 500, mandatory=True), sworn("memo", "kept"))
    others = [
        record(entity="c-2"),
        record(operation="create", entity=None),
        record().model_copy(update={"entity_type": "Account"}),
        record(*reversed(fields)),
        record(*fields[:1]),
    ]
    assert [desk.file(other, entry_id="ticket-7").differs for other in others] == [True] * len(others)


def test_an_equal_replay_says_nothing(caplog):
    """DECISIONS 9: instants, confidence, notes and spelling of a number make no other proposal; nothing
    is warned of.
    """
    desk = Desk()
    desk.file()
    desk.clock.set(minutes=1)
    later = T0 + timedelta(minutes=1)
    same = record(
        sworn("limit", 500.0, "Inferred", 0.4, at=later, mandatory=True),
        sworn("memo", "kept", "Default", 0.2, at=later),
        operation="update",
        created_at=later,
        warnings=["second try"],
    )
    with caplog.at_level(logging.WARNING, "affiant_core"):
        assert not desk.file(same).differs
    assert not caplog.records
    assert desk.events.of("affiant.review.replay_differs") == []


def test_another_tenants_row_is_no_replay():
    """AZ-2, GT-4: ids are unique within a tenant, so one host's id in two tenants is two rows."""
    desk = Desk()
    assert desk.file(entry_id="ticket-7").created
    assert desk.file(context=turn(tenant="bolt"), entry_id="ticket-7").created


# --- races ---------------------------------------------------------------------------------------------------------


def test_sixteen_threads_file_one_row():
    """GT-4, DECISIONS 21: of any number of callers that file one proposal at once, one creates the row and all get
    it.
    """
    desk = Desk()
    filings = in_threads(lambda _: desk.file(), 16)
    assert [filing.created for filing in filings].count(True) == 1
    assert len({filing.entry.entry_id for filing in filings}) == 1
    assert len(desk.store.rows()) == 1
    told = [event["created"] for event in desk.events.of("affidavit.filed")]
    assert (len(told), told.count(True)) == (16, 1)


@pytest.mark.parametrize("policies", [(), (always(),)])
def test_a_filing_that_comes_second_is_a_replay(policies):
    """GT-4, DK-1: another caller's row that appears after the look-up wins; only its writer tells of a transition."""
    desk = Desk(*policies)
    rival = Desk(*policies, store=desk.store, authorize=no)

    def first():
        del desk.store.before["file"]
        rival.file(limit_of(501))

    desk.store.before["file"] = first
    filing = desk.file()
    assert (filing.created, filing.differs) == (False, True)
    assert filing.entry.affidavit.values()["limit"] == 501
    assert desk.events.keys == ["affidavit.filed", "affiant.review.replay_differs"]
    assert rival.events.keys[0] == "affidavit.filed"


# --- cards and transport -------------------------------------------------------------------------------------------


def test_the_card_of_a_new_row():
    """SR, "Card": id, deadline, version and numbers are the row's, and a pending row asks for confirmation."""
    filing = Desk().file(record(sworn("limit", 500, confidence=0.7, mandatory=True), empty("memo")))
    card, row = filing.card.to_json(), filing.entry
    assert card == {
        "hostOperation": "WriteUpdate",
        "protocolVersion": "0.5.0",
        "docketId": row.entry_id,
        "affidavit": row.affidavit.sworn(),
        "requiredBy": "2026-09-04T09:15:00.000Z",
        "priorAmendments": None,
        "populatedConfidence": 0.7,
        "emptyFieldCount": 1,
        "blocked": None,
        "requiresConfirmation": True,
    }


@pytest.mark.parametrize("state", STATES)
def test_the_card_in_every_state(state):
    """AZ-4, AF-2: only a row that reads pending asks for confirmation; the numbers are those of the state that
    counts.
    """
    desk = Desk()
    row = desk.get(desk.brought_to(state))
    card = desk.gate.card(row)
    assert card.requires_confirmation is (state == "pending")
    assert (card.docket_id, card.required_by) == (row.entry_id, row.expires_at)
    assert (card.populated_confidence, card.empty_field_count) == (0.9, 0)


def test_the_card_shows_the_accepted_state():
    """AF-2, AF-4: after an amendment the card's record and numbers are the amended record's, and a hint goes with its
    field.
    """
    desk = Desk()
    fields = (
        sworn("limit", 500, confidence=0.5, mandatory=True, pattern="[0-9]+"),
        sworn("memo", "kept", confidence=0.6, pattern=".*"),
    )
    row = desk.approve(desk.row(record(*fields)), amendments={"limit": 50, "memo": None})
    card = desk.gate.card(row)
    assert card.affidavit.values() == {"limit": 50}
    assert (card.populated_confidence, card.affidavit.aggregate_confidence) == (1.0, 1.0)
    assert [hint.name for hint in card.presentation] == ["limit"]


def test_a_fired_standing_orders_card_asks_nobody():
    """AZ-4, REFERENCE 10: an automatic approval still sends a card, and the card asks for no confirmation."""
    desk = Desk(always())
    filing = desk.file()
    assert desk.outbox.cards == [filing.card]
    assert not filing.card.requires_confirmation


def test_a_card_goes_to_its_conversation():
    """GT-4: the card is an EvidenceCardRequest for everybody who listens to the conversation."""
    desk = Desk()
    filing = desk.file()
    assert desk.outbox.sent == [(TransportEvent.EVIDENCE_CARD_REQUEST, filing.card, CONVERSATION)]


def test_a_card_that_fails_once_is_sent_again():
    """REFERENCE 10: a transport that fails is tried once more, and nobody is alarmed when that works."""
    desk = Desk()
    desk.outbox.failures = 1
    filing = desk.file()
    assert desk.outbox.attempts == [TransportEvent.EVIDENCE_CARD_REQUEST] * 2
    assert desk.outbox.cards == [filing.card]
    assert desk.events.keys == ["affidavit.filed"]


@pytest.mark.parametrize("failures", [2, 3])
@pytest.mark.parametrize("replayed", [False, True])
def test_a_card_that_cannot_be_delivered(failures, replayed):
    """REFERENCE 10: after two failures people are warned, if that works, operators are told, and the row
    stays filed.
    """
    desk = Desk()
    if replayed:
        desk.row()
    desk.outbox.failures = failures
    filing = desk.file()
    assert filing.created is not replayed
    assert desk.stored(filing.entry.entry_id) == filing.entry
    assert desk.events.only("affiant.review.broadcast_failed") == {
        "docket.entry_id": filing.entry.entry_id,
        "exception.type": "ConnectionError",
    }
    assert desk.outbox.attempts == [TransportEvent.EVIDENCE_CARD_REQUEST] * 2 + [TransportEvent.SYSTEM_NOTIFICATION]
    if failures == 2:
        ((event, notice, group),) = desk.outbox.sent
        assert (event, group) == (TransportEvent.SYSTEM_NOTIFICATION, CONVERSATION)
        assert isinstance(notice, SystemNotification)
        assert notice.level == "warning"
        assert "10.0.0.5" not in notice.message


def test_without_a_transport():
    """SR-5: a transport is not part of the protocol; a gate without one files all the same."""
    gate = ReviewGate(docket=InMemoryDocketStore(), authorize=yes)
    assert gate.file.sync(record(), turn(), tool_name=TOOL).created


# --- what is filed -------------------------------------------------------------------------------------------------


def test_a_pending_row_to_the_letter():
    """DK-1, "Row at 0.5.0": what a filing writes, member by member."""
    row = Desk().file().entry
    written = row.to_json()
    assert written.pop("affidavit") == row.affidavit.sworn()
    assert written == {
        "protocolVersion": "0.5.0",
        "entryId": row.entry_id,
        "tenantId": TENANT,
        "conversationId": CONVERSATION,
        "channel": "chat",
        "toolName": TOOL,
        "amendedAffidavit": None,
        "requirement": {"kind": "ReviewerConfirmation"},
        "status": "pending",
        "execution": None,
        "blocked": None,
        "approvals": None,
        "attestation": None,
        "amendments": None,
        "preservedAmendments": None,
        "decision": None,
        "lineage": {"supersedes": None, "supersededBy": None},
        "filedAt": "2026-09-04T09:00:00.000Z",
        "expiresAt": "2026-09-04T09:15:00.000Z",
        "decidedAt": None,
        "executionDetail": None,
    }


def test_a_standing_order_files_its_approval_in_one_write():
    """AZ-1, DK-1: approved, unexecuted and attested to the policy at once; there is no decision, for nobody decided."""
    desk = Desk(always())
    row = desk.file().entry
    assert desk.store.calls == ["get", "file"]
    assert desk.stored(row.entry_id) == row
    assert changed(Desk().file().entry, row) == {"requirement", "status", "execution", "attestation", "decidedAt"}
    assert (row.status.value, row.execution.value, row.decision) == ("approved", "unexecuted", None)
    assert row.attestation.to_json() == {
        "by": {"kind": "standing-order", "policyId": "auto", "version": "2.1.0"},
        "at": "2026-09-04T09:00:00.000Z",
        "entryId": row.entry_id,
    }
    assert row.decided_at == row.filed_at == T0


def test_a_standing_order_keeps_what_the_person_said_in_the_binding():
    """AZ-3: an automatic approval of a relayed capture attests the standing order, never the relay or the person."""
    row = Desk(always()).file(context=turn(relayed())).entry
    assert row.attestation.by.kind == "standing-order"


def test_a_level_that_is_not_run_is_filed_blocked():
    """AZ-4: a referral is filed pending with its requirement and a marker, and is never weakened into a
    confirmation.
    """
    desk = Desk(FixedPolicy(Verdict.refer(reason="to the credit office")))
    filing = desk.file()
    row = filing.entry.to_json()
    assert row["status"] == "pending"
    assert row["requirement"] == {"kind": "ReferralRequired"}
    assert row["blocked"] == {"code": "requirement-not-implemented", "level": "ReferralRequired"}
    assert (row["attestation"], row["execution"], row["expiresAt"]) == (None, None, "2026-09-04T09:15:00.000Z")
    card = filing.card.to_json()
    assert (card["blocked"], card["requiresConfirmation"]) == (row["blocked"], False)
    assert any("not implemented in this version" in warning for warning in card["warnings"])
    assert desk.outbox.cards == [filing.card]
    assert desk.events.keys == ["affidavit.filed"]


@pytest.mark.parametrize("policy", [always(), FixedPolicy(Verdict.confirm()), FixedPolicy(Verdict.refer())])
@pytest.mark.parametrize("category", list(CoverageCategory))
def test_an_uncovered_tools_proposal_is_filed_blocked(policy, category):
    """CV-4: the verdict is kept, even a Standing Order's, and approves nothing; coverage is told before the level."""
    desk = Desk(policy, uncovered={TOOL: category})
    filing = desk.file()
    row = filing.entry.to_json()
    assert row["requirement"]["kind"] in {"StandingOrder", "ReviewerConfirmation", "ReferralRequired"}
    assert row["blocked"] == {"code": "coverage-refused", "category": category.value, "toolName": TOOL}
    assert (row["status"], row["attestation"], row["execution"]) == ("pending", None, None)
    assert not filing.card.requires_confirmation
    assert any("declared uncovered" in warning for warning in filing.card.warnings)
    assert desk.events.keys == ["affidavit.filed", "coverage.refused"]
    assert desk.events.only("coverage.refused") == {
        "gen_ai.tool.name": TOOL,
        "coverage.category": category.value,
        "phase": "file",
    }
    assert desk.file(tool="other").entry.blocked is None or policy.id == "fixed"


def test_a_row_that_several_people_decide():
    """AZ-4: the requirement is kept whole, approvals start empty, and the row is not blocked."""
    filing = Desk(asking("ana", "bo", "cy", required=2)).file()
    row = filing.entry.to_json()
    assert row["requirement"] == {"kind": "MultiParty", "approvers": ["ana", "bo", "cy"], "required": 2}
    assert (row["approvals"], row["blocked"], row["status"]) == ([], None, "pending")
    assert filing.card.to_json()["multiParty"] == {
        "approvers": [{"id": name, "decided": None} for name in ("ana", "bo", "cy")],
        "required": 2,
    }
    assert filing.card.requires_confirmation


def test_when_the_record_was_made():
    """REFERENCE 10: createdAt is stamped at filing only where the record does not say it itself."""
    own = T0 - timedelta(hours=1)
    assert Desk().file().entry.affidavit.created_at == T0
    assert Desk().file(record(created_at=own)).entry.affidavit.created_at == own


def test_presentation_stands_beside_the_row():
    """SR-1: hints, warnings and the host's verb are stored with the row and shown, and are in neither record nor
    hash.
    """
    plain = record(sworn("kind", "annual"), operation="create", entity=None)
    dressed = record(
        sworn("kind", "annual", allowed_values=["annual", "sick"], pattern="[a-z]+"),
        operation="CreateLeave",
        entity=None,
        warnings=["overlaps a holiday"],
        requires_confirmation=False,
    )
    policy = FixedPolicy(Verdict.confirm(reason="a person looks at leave"))
    filing = Desk(policy).file(dressed)
    row = filing.entry
    assert row.canonical_hash == Desk().file(plain).entry.canonical_hash
    assert (row.affidavit.warnings, row.affidavit.fields[0].pattern, row.affidavit.operation_type) == (
        (),
        None,
        "create",
    )
    card = filing.card.to_json()
    hint = {"name": "kind", "kind": "text", "allowedValues": ["annual", "sick"], "pattern": "[a-z]+"}
    assert card["presentation"] == [hint]
    assert card["warnings"] == ["overlaps a holiday", "a person looks at leave"]
    assert card["hostOperation"] == "CreateLeave"
    assert card["requiresConfirmation"] is True


def test_the_numbers_are_the_gates_own():
    """AF-2: the three numbers are computed at filing; a record that claims better ones does not keep them."""
    boasting = record(sworn("limit", 500, confidence=0.4), empty("memo")).model_copy(
        update={"aggregate_confidence": 1.0, "populated_confidence": 1.0, "empty_field_count": 0}
    )
    filing = Desk().file(boasting)
    sworn_row = filing.entry.affidavit
    assert (sworn_row.aggregate_confidence, sworn_row.populated_confidence, sworn_row.empty_field_count) == (0, 0.4, 1)
    assert (filing.card.populated_confidence, filing.card.empty_field_count) == (0.4, 1)


# --- telemetry (TL-1) ----------------------------------------------------------------------------------------------


def test_what_a_filing_tells():
    """TL-1: affidavit.filed with all of its attributes."""
    desk = Desk()
    row = desk.file().entry
    assert desk.events.told == [
        (
            "affidavit.filed",
            {
                "gen_ai.tool.name": TOOL,
                "gen_ai.conversation.id": CONVERSATION,
                "entry.id": row.entry_id,
                "docket.requirement": "ReviewerConfirmation",
                "docket.status": "pending",
                "affidavit.field_count": 2,
                "created": True,
            },
        )
    ]


def test_what_a_standing_order_tells():
    """TL-1: filed, then the transition, then the firing, with the host's score only where one was asked for."""
    desk = Desk(always())
    row = desk.file().entry
    assert desk.events.keys == ["affidavit.filed", "docket.transition", "standing-order.fired"]
    assert desk.events.only("docket.transition") == {
        "entry.id": row.entry_id,
        "gen_ai.conversation.id": CONVERSATION,
        "from": "pending",
        "to": "approved",
        "execution": "unexecuted",
        "attestation.kind": "standing-order",
        "amended": False,
    }
    fired = {"policy.id": "auto", "policy.version": "2.1.0", "entry.id": row.entry_id}
    assert desk.events.only("standing-order.fired") == fired
    scored = Desk(always(threshold=2), risk_scorer=lambda _: 1.5)
    scored.file()
    assert scored.events.only("standing-order.fired")["risk.score"] == 1.5


def test_no_sworn_value_is_ever_told():
    """TL-1: attributes carry names and codes; across a row's whole life no proposed, previous or amended value
    appears.
    """
    secrets = (
        "s3cret-memo",
        "s3cret-before",
        "s3cret-amended",
        "s3cret-late",
        "987654321",
        "s3cret-reason",
        "s3cret-arg",
    )
    fields = (
        sworn("limit", 987654321, mandatory=True, previous="s3cret-before"),
        sworn("memo", "s3cret-memo", "External"),
    )
    proposal = record(*fields)
    policies = [
        StandingOrder(id="p", when=lambda r: r.tool_name == "auto", declared_inputs=["External"], threshold=1),
        FixedPolicy(lambda r: Verdict.refer(reason="s3cret-reason") if r.tool_name == "refer" else None, id="q"),
        FixedPolicy(lambda r: "s3cret-memo" if r.tool_name == "broken" else None, id="r"),
    ]
    desk = Desk(*policies, risk_scorer=lambda _: 3, uncovered={"hosted": CoverageCategory.HOSTED_MCP})
    for tool in ("auto", "refer", "hosted"):
        desk.file(proposal, tool=tool, arguments={"memo": "s3cret-arg"})
    with pytest.raises(WireupInvalid):
        desk.file(proposal, tool="broken")
    with pytest.raises(SubstanceRefused):
        desk.file(record(sworn("limit", 987654321, "Empty")))
    approved, rejected, late = (desk.file(proposal, tool=name).entry.entry_id for name in ("a", "b", "c"))
    desk.file(record(*fields[:1], sworn("memo", "s3cret-arg")), tool="a")
    desk.outbox.failures = 2
    desk.file(proposal, tool="a")
    desk.approve(approved, amendments={"memo": "s3cret-amended"}, reason="s3cret-reason")
    desk.report(approved, "failed", detail={"code": "s3cret-reason"})
    desk.reject(rejected, reason="s3cret-reason")
    desk.clock.set(TTL)
    with pytest.raises(Exception, match="deadline"):
        desk.approve(late, amendments={"memo": "s3cret-late"})
    desk.resubmit(late)
    desk.gate.expire_due.sync()
    told = repr(desk.events.told)
    assert [secret for secret in secrets if secret in told] == []
    assert set(desk.events.keys) - set(PROTOCOL_KEYS) == {
        "affiant.review.replay_differs",
        "affiant.review.broadcast_failed",
    }


def test_a_refusals_reason_quotes_no_value():
    """AF-5: a refusal that a model may see names rules, fields and kinds, never a proposed value."""
    for proposal in (record(sworn("limit", 987654321, "Empty")), record(sworn("limit", 987654321), entity=None)):
        with pytest.raises((SubstanceRefused, WireupInvalid)) as refused:
            Desk().file(proposal)
        assert "987654321" not in str(refused.value)


# --- one gate, every way to call it (DECISIONS 21) -----------------------------------------------------------------


def _async(function):
    async def later(*args, **kwargs):
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    return later


class _AsyncOutbox(Outbox):
    async def send(self, event, payload, *, group):
        await asyncio.sleep(0)
        super().send(event, payload, group=group)


def _desk(ports, blocking):
    wrap = _async if ports == "async" else (lambda function: function)
    order = StandingOrder(id="auto", when=wrap(lambda r: r.tool_name == "auto"), threshold=2)
    return Desk(
        order,
        FixedPolicy(wrap(lambda _: Verdict.confirm(reason="asked"))),
        authorize=wrap(lambda r: r.principal.id != "mallory"),
        risk_scorer=wrap(lambda _: 1),
        store=WatchedStore(blocking=blocking),
        transport=_AsyncOutbox() if ports == "async" else Outbox(),
    )


def _through(how, desk):
    """A row's life, called in one of the ways; what came of it."""
    gate, host = desk.gate, act("host")

    def synchronously():
        auto = gate.file.sync(record(), turn(), tool_name="auto").entry
        asked = gate.file.sync(record(), turn(), tool_name="asked").entry
        with pytest.raises(DecisionUnauthorized):
            gate.decide.sync(asked.entry_id, Approve(), act("mallory"))
        gate.decide.sync(asked.entry_id, Approve(), act("ana"))
        return auto, gate.report.sync(asked.entry_id, "executed", host)

    async def asynchronously():
        auto = (await gate.file(record(), turn(), tool_name="auto")).entry
        asked = (await gate.file(record(), turn(), tool_name="asked")).entry
        with pytest.raises(DecisionUnauthorized):
            await gate.decide(asked.entry_id, Approve(), act("mallory"))
        await gate.decide(asked.entry_id, Approve(), act("ana"))
        return auto, await gate.report(asked.entry_id, "executed", host)

    async def inside_a_loop():
        return synchronously()

    async def in_a_worker_thread():
        return await asyncio.to_thread(synchronously)

    match how:
        case "sync":
            return synchronously()
        case "async":
            return asyncio.run(asynchronously())
        case "sync inside a running loop":
            return asyncio.run(inside_a_loop())
        case "sync in a worker thread":
            return asyncio.run(in_a_worker_thread())


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("ports", ["plain", "async"])
@pytest.mark.parametrize("how", ["sync", "async", "sync inside a running loop", "sync in a worker thread"])
def test_every_way_to_call_it(how, ports, blocking):
    """DECISIONS 21: with plain or asynchronous ports, sync, async, sync inside a loop or in a thread, one outcome."""
    desk = _desk(ports, blocking)
    auto, asked = _through(how, desk)
    assert (auto.status.value, auto.attestation.by.kind) == ("approved", "standing-order")
    assert (asked.status.value, asked.execution.value, asked.attestation.by.id) == ("approved", "executed", "ana")
    assert len(desk.outbox.cards) == 2
    assert desk.events.keys == [
        "affidavit.filed", "docket.transition", "standing-order.fired", "affidavit.filed",
        "decision.unauthorized", "docket.transition", "docket.transition",
    ]  # fmt: skip


@pytest.mark.parametrize("blocking", [False, True])
def test_a_store_that_waits_stays_off_the_loop(blocking):
    """DECISIONS 21: a store that says it waits is called from a worker thread, any other one right on the loop."""
    desk = Desk(store=WatchedStore(blocking=blocking))

    async def main():
        await desk.gate.file(record(), turn(), tool_name=TOOL)
        return threading.get_ident()

    loop_thread = asyncio.run(main())
    for method in ("get", "file"):
        assert (desk.store.threads[method] == {loop_thread}) is not blocking


def test_one_gate_in_two_loops_and_eight_threads():
    """DECISIONS 21, C14: the same gate works from several threads and event loops at once, and every row is whole."""
    desk = Desk(FixedPolicy(_async(lambda _: None)))

    def work(index):
        context = turn(conversation=f"c-{index}")
        if index % 2:
            return desk.gate.file.sync(limit_of(index), context, tool_name=TOOL).entry
        return asyncio.run(desk.gate.file(limit_of(index), context, tool_name=TOOL)).entry

    rows = in_threads(work, 8)
    assert [(row.conversation_id, row.affidavit.values()["limit"]) for row in rows] == [(f"c-{n}", n) for n in range(8)]
    assert len(desk.store.rows()) == 8


# --- cancellation (DECISIONS 14, C21) ------------------------------------------------------------------------------


class _Stop:
    """A place where the work waits until it is let go; ``reached`` says that it got there."""

    def __init__(self):
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, *_args, **_kwargs):
        self.reached.set()
        await self.go.wait()

    async def is_reached_by(self, task):
        """Wait until ``task`` has got there; where it never does, it is over, and that is the failure."""
        waiting = asyncio.ensure_future(self.reached.wait())
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert self.reached.is_set(), task


class _StoppingOutbox(Outbox):
    def __init__(self, stop):
        super().__init__()
        self.stop = stop

    async def send(self, event, payload, *, group):
        await self.stop()
        super().send(event, payload, group=group)


def _stopping_desk(point, stop, blocking):
    if point == "policy":
        return Desk(FixedPolicy(stop), store=WatchedStore(blocking=blocking))
    return Desk(transport=_StoppingOutbox(stop), store=WatchedStore(blocking=blocking))


def _is_whole(desk):
    """The one row is a complete pending row; it replays, and can be decided."""
    (row,) = desk.store.rows()
    assert row == desk.stored(row.entry_id)
    assert (row.status.value, row.affidavit.values()) == ("pending", {"limit": 500, "memo": "kept"})
    assert [event["created"] for event in desk.events.of("affidavit.filed")] == [True]
    again = ReviewGate(docket=desk.store, authorize=yes, clock=desk.clock)
    assert not again.file.sync(record(), turn(), tool_name=TOOL).created
    assert again.decide.sync(row.entry_id, Approve(), act("ana")).status.value == "approved"


def test_cancelled_before_it_starts():
    """C21: a filing that was cancelled before it ran leaves no row, and the cancellation goes on."""
    desk = Desk()

    async def main():
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert desk.store.rows() == ()


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("point", ["transport"])
def test_cancelled_while_filing(point, blocking, times):
    """DECISIONS 14, C21: cancelled in the middle, even repeatedly, the row is whole and the cancellation propagates."""

    async def main():
        stop = _Stop()
        desk = _stopping_desk(point, stop, blocking)
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        await stop.is_reached_by(task)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        stop.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return desk

    desk = asyncio.run(main())
    _is_whole(desk)
    assert len(desk.outbox.cards) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_cancelled_while_a_policy_thinks(times):
    """C21: nothing is written yet, so the cancellation is not held up by a policy and leaves no row."""

    async def main():
        stop = _Stop()
        desk = _stopping_desk("policy", stop, blocking=False)
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        await stop.is_reached_by(task)
        for _ in range(times):
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        return desk

    assert asyncio.run(main()).store.rows() == ()


def test_cancelled_while_the_store_works():
    """DECISIONS 14, C21: cancelled while a worker thread is in the store, the write is not abandoned half way."""
    method = "file"
    desk = Desk(store=WatchedStore(blocking=True))
    reached, go = threading.Event(), threading.Event()

    def stop():
        reached.set()
        go.wait(30)

    desk.store.before[method] = stop

    async def main():
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        await asyncio.to_thread(reached.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    desk.store.before.clear()
    _is_whole(desk)


def test_cancelled_at_every_step_of_the_loop():
    """C21: wherever on the loop's way through a filing the cancellation falls, there is no row or a whole one."""

    async def main(steps):
        desk = Desk(FixedPolicy(_async(lambda _: None)), transport=_AsyncOutbox())
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        for _ in range(steps):
            await asyncio.sleep(0)
        finished = not task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert not finished
        else:
            assert finished
        return desk, finished

    outcomes = set()
    for steps in range(30):
        desk, finished = asyncio.run(main(steps))
        outcomes.add((len(desk.store.rows()), finished))
        if desk.store.rows():
            _is_whole(desk)
    assert outcomes == {(0, False), (1, False), (1, True)}


def test_a_refusal_after_the_cancellation():
    """DECISIONS 14: a filing that is refused after its caller was cancelled leaves no row, and the caller is
    cancelled.
    """

    async def main():
        stop = _Stop()

        async def refuse(_):
            await stop()
            raise RuntimeError("down")

        desk = Desk(FixedPolicy(refuse))
        task = asyncio.ensure_future(desk.gate.file(record(), turn(), tool_name=TOOL))
        await stop.is_reached_by(task)
        task.cancel()
        stop.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return desk

    assert asyncio.run(main()).store.rows() == ()


def test_a_timeout_around_a_filing():
    """DECISIONS 14: a caller's own time limit fires after the filing is whole, as a TimeoutError and nothing else."""

    async def main():
        stop = _Stop()
        desk = _stopping_desk("transport", stop, blocking=False)

        async def let_go():
            await asyncio.wait_for(stop.reached.wait(), 30)
            await asyncio.sleep(0.02)
            stop.go.set()

        helper = asyncio.ensure_future(let_go())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(desk.gate.file(record(), turn(), tool_name=TOOL), 0.001)
        await helper
        return desk

    _is_whole(asyncio.run(main()))


def test_a_cancelled_resubmission_is_whole():
    """DECISIONS 14, DK-1: a resubmission is carried through too: the new row and the link to it, both or neither."""

    async def main():
        desk = Desk()
        expired = desk.brought_to("expired")
        stop = _Stop()
        gate = ReviewGate(
            docket=desk.store, authorize=yes, clock=desk.clock, transport=_StoppingOutbox(stop), default_ttl=TTL
        )
        task = asyncio.ensure_future(gate.resubmit(expired, act("ana")))
        await stop.is_reached_by(task)
        task.cancel()
        await asyncio.sleep(0)
        stop.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return desk, expired

    desk, expired = asyncio.run(main())
    old, new = desk.store.rows()
    assert (old.entry_id, old.lineage.superseded_by, new.lineage.supersedes) == (expired, new.entry_id, expired)


def test_another_conversations_filing_is_not_held_up():
    """DECISIONS 14, 21: the protection of one filing does not make the loop wait; another one goes
    through meanwhile.
    """

    async def main():
        stop = _Stop()

        async def slowly(request):
            if request.context.conversation_id == "slow":
                await stop()

        desk = Desk(FixedPolicy(slowly))
        slow = asyncio.ensure_future(desk.gate.file(record(), turn(conversation="slow"), tool_name=TOOL))
        await stop.is_reached_by(slow)
        quick = await desk.gate.file(record(), turn(), tool_name=TOOL)
        slow.cancel()
        await asyncio.sleep(0)
        second = await desk.gate.file(record(), turn(conversation="c-2"), tool_name=TOOL)
        stop.go.set()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return quick, second

    quick, second = asyncio.run(main())
    assert quick.created
    assert second.created


# --- the store's own answer ----------------------------------------------------------------------------------------


def test_the_stores_answer_is_believed():
    """AZ-5: the row that the store returns is the one that is handed out, whatever the gate meant to write."""

    class Stubborn(InMemoryDocketStore):
        def file(self, entry):
            return Filed(super().file(entry).entry, created=False)

    filing = Desk(store=Stubborn()).file()
    assert not filing.created


def test_acts_find_only_their_own_tenants_rows():
    """AZ-2: a row of another tenant looks like one that is not there, to a reader as well."""
    desk = Desk()
    entry_id = desk.row()
    assert desk.get(entry_id).entry_id == entry_id
    with pytest.raises(EntryNotFound):
        desk.get(entry_id, tenant="bolt")
    with pytest.raises(EntryNotFound):
        desk.get("nothing")


def test_filing_and_deciding_share_no_memory():
    """GT-2, RT-2: a second gate over the same store sees the row, replays it and decides it; nothing lives in the
    gate.
    """
    desk = Desk()
    entry_id = desk.row()
    other = Desk(store=desk.store)
    assert not other.file().created
    assert other.approve(entry_id).status.value == "approved"
    assert desk.get(entry_id).status.value == "approved"


def test_a_field_may_come_with_its_whole_chain():
    """PV-1: what was displaced before filing stays on the row, newest first."""
    older = ProvenanceTag.default(at=T0)
    newer = ProvenanceTag.from_tool_result(at=T0)
    chain = AffidavitField.of("limit", 500, older).provenance.merge(newer)
    row = Desk().file(record(AffidavitField.of("limit", 500, chain))).entry
    assert (row.affidavit.fields[0].tag, row.affidavit.fields[0].provenance.prior) == (newer, (older,))


def test_what_an_unfiled_context_cannot_do():
    """GT-2: an ActContext decides and reports, and cannot file: filing belongs to a turn."""
    desk = Desk()
    entry_id = desk.row()
    assert isinstance(act(), ActContext)
    assert desk.gate.decide.sync(entry_id, Reject(), act("ana")).status.value == "rejected"
    assert desk.gate.decide.sync(desk.row(arguments={"n": 1}), Reject(), turn("ana")).status.value == "rejected"
    assert isinstance(desk.file(arguments={"n": 2}).card, EvidenceCard)


@pytest.mark.parametrize("state", TERMINAL)
def test_a_terminal_row_is_never_reopened_by_filing(state):
    """DK-1: nothing is reopened; filing the same proposal again leaves every terminal row as it is, however often."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    for _ in range(3):
        desk.file(limit_of(1))
    assert desk.stored(entry_id) == before
    assert len(desk.store.rows()) == 1
