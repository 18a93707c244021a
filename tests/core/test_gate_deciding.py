"""After filing: deciding, several people deciding, withdrawing, reporting, resubmitting, sweeping and listing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest
from support.gate import (
    CONVERSATION,
    MACHINES,
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

from affiant_core.authority import Approve, Reject, four_eyes
from affiant_core.card import DocketExpired, decision_result
from affiant_core.context import Service
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.store import Listing
from affiant_core.errors import (
    AmendmentRefused,
    ApproverAlreadyDecided,
    ApproverNotListed,
    CursorInvalid,
    DecisionExpired,
    DecisionLostRace,
    DecisionNotAmendable,
    DecisionNotPending,
    DecisionUnauthorized,
    DocketUnavailable,
    EntryNotFound,
    ExecutionAlreadyRecorded,
    Refusal,
    RefusalCode,
    ValueRefused,
    WireupInvalid,
)
from affiant_core.policy import Verdict
from affiant_core.vocabulary import CoverageCategory, ExecutionOutcome, TransportEvent

ACTS = {
    "decide": lambda desk, entry_id, context: desk.gate.decide.sync(entry_id, Approve(), context),
    "report": lambda desk, entry_id, context: desk.gate.report.sync(entry_id, "executed", context),
    "resubmit": lambda desk, entry_id, context: desk.gate.resubmit.sync(entry_id, context),
    "withdraw": lambda desk, entry_id, context: desk.gate.withdraw.sync(entry_id, "gone", context),
}
PATHS = {"decide": "decide", "report": "mark-executed", "resubmit": "resubmit", "withdraw": "withdraw"}
ASKED = ("decide", "report", "resubmit")
"""The acts for which the host is asked; a withdrawal is the host's own."""

MULTI = asking("ana", "bo", "cy", required=2)


def refuse_to_read():
    raise DocketUnavailable("the store must not be read")


def refused(error, work, *arguments, **more):
    """What ``work`` was refused with."""
    with pytest.raises(error) as caught:
        work(*arguments, **more)
    return caught.value


# --- who may act: the order of the checks (AZ-2, AZ-3) -------------------------------------------------------------


@pytest.mark.parametrize("act_name", ACTS)
@pytest.mark.parametrize("context", [None, {}, "ana", member("ana"), SimpleNamespace(tenant_id=TENANT, principal=None)])
def test_an_act_needs_a_context(act_name, context):
    """GT-2, CV-2: an act without an ActContext is refused before anything is read."""
    desk = Desk()
    entry_id = desk.row()
    refused(WireupInvalid, ACTS[act_name], desk, entry_id, context)
    assert (desk.store.calls, desk.events.told) == ([], [])


@pytest.mark.parametrize("act_name", ACTS)
def test_an_unresolved_principal_leaves_the_store_unread(act_name):
    """AZ-2 (i), DECISIONS 18.3: without a principal every act is refused before the store is read."""
    desk = Desk(authorize=refuse_to_read)
    entry_id = desk.row()
    desk.store.before["get"] = refuse_to_read
    refused(DecisionUnauthorized, ACTS[act_name], desk, entry_id, act(None))
    assert desk.store.calls == []
    assert desk.events.told == [
        (
            "decision.unauthorized",
            {"entry.id": entry_id, "reason": "identity-unresolved", "path": PATHS[act_name]},
        )
    ]


@pytest.mark.parametrize("decision", [Approve(), Approve({"limit": 1}), Reject()])
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_a_machine_attests_nothing(machine, decision):
    """AZ-3, DECISIONS 18.1: a service lacking the person or the message is refused before the store is read."""
    desk = Desk()
    entry_id = desk.row()
    desk.store.before["get"] = refuse_to_read
    said = refused(DecisionUnauthorized, desk.gate.decide.sync, entry_id, decision, act(machine))
    assert "AZ-3" in said.reason
    assert desk.store.calls == []
    assert desk.events.only("decision.unauthorized") == {
        "entry.id": entry_id,
        "reason": "machine-attestation",
        "principal.kind": "service",
        "path": "decide",
    }


@pytest.mark.parametrize("act_name", ACTS)
def test_another_tenants_row_is_not_found(act_name):
    """AZ-2 (ii): the tenant is compared before the host is asked; the caller learns nothing, the
    operator learns why.
    """
    asked = []
    desk = Desk(authorize=lambda request: asked.append(request) or True)
    entry_id = desk.row()
    before = desk.stored(entry_id)
    there = refused(EntryNotFound, ACTS[act_name], desk, entry_id, act(tenant="bolt"))
    nowhere = refused(EntryNotFound, ACTS[act_name], desk, "no-such-row", act(tenant="bolt"))
    assert str(there) == str(nowhere)
    assert (asked, desk.stored(entry_id)) == ([], before)
    assert desk.events.told == [
        (
            "decision.unauthorized",
            {"entry.id": entry_id, "reason": "tenant-mismatch", "principal.kind": "member", "path": PATHS[act_name]},
        )
    ]


ANSWERS = {
    "False": False,
    "None": None,
    "one": 1,
    "text": "yes",
    "an object": object(),
    "a list": [True],
}


@pytest.mark.parametrize("act_name", ASKED)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_only_true_is_a_yes(act_name, answer):
    """AZ-2 (iii): whatever else the host's port returns is a no; the row stays, and the attempt is told."""
    desk = Desk(authorize=lambda _: answer)
    entry_id = desk.row()
    before = desk.stored(entry_id)
    refused(DecisionUnauthorized, ACTS[act_name], desk, entry_id, act("ana"))
    assert desk.stored(entry_id) == before
    assert desk.events.told == [
        (
            "decision.unauthorized",
            {
                "entry.id": entry_id,
                "gen_ai.conversation.id": CONVERSATION,
                "reason": "not-authorized",
                "principal.kind": "member",
                "path": PATHS[act_name],
            },
        )
    ]


@pytest.mark.parametrize("act_name", ASKED)
@pytest.mark.parametrize("error", [RuntimeError("ldap://10.0.0.5"), DecisionExpired("no"), KeyError("x")])
def test_a_port_that_raises_says_no(act_name, error, caplog):
    """AZ-2 (iii): the port raising is a refusal; what it raised goes to the log and not to the caller."""

    def port(_):
        raise error

    desk = Desk(authorize=port)
    said = refused(DecisionUnauthorized, ACTS[act_name], desk, desk.row(), act("ana"))
    assert "10.0.0.5" not in str(said)
    assert "The authorization port raised" in caplog.text
    assert desk.events.only("decision.unauthorized")["reason"] == "not-authorized"


@pytest.mark.parametrize(("answer", "allowed"), [(True, True), (False, False), (1, False), ("yes", False)])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_asynchronous_port_is_waited_for(answer, allowed, how):
    """AZ-2 (iii), DECISIONS 21: a coroutine is not a yes; what it comes to is the answer, in both ways of calling."""

    async def port(_):
        await asyncio.sleep(0)
        return answer

    desk = Desk(authorize=port)
    entry_id = desk.row()

    def work():
        if how == "sync":
            return desk.gate.decide.sync(entry_id, Approve(), act("ana"))
        return asyncio.run(desk.gate.decide(entry_id, Approve(), act("ana")))

    if allowed:
        assert work().status.value == "approved"
    else:
        refused(DecisionUnauthorized, work)


def test_a_port_that_is_cancelled_is_not_a_no():
    """DECISIONS 14: cancellation inside the host's port goes on as cancellation, and nothing is recorded or told."""

    async def port(_):
        raise asyncio.CancelledError

    desk = Desk(authorize=port)
    entry_id = desk.row()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(desk.gate.decide(entry_id, Approve(), act("ana")))
    assert desk.stored(entry_id).status.value == "pending"
    assert desk.events.told == []


@pytest.mark.parametrize(
    ("act_name", "work"),
    [
        ("approve", lambda desk, entry_id: desk.approve(entry_id)),
        ("reject", lambda desk, entry_id: desk.reject(entry_id)),
        ("report", lambda desk, entry_id: desk.report(entry_id, by="ana")),
        ("resubmit", lambda desk, entry_id: desk.resubmit(entry_id)),
    ],
)
def test_what_the_host_is_asked(act_name, work):
    """AZ-2 (iii): the port is asked once, about this act, the principal passed in and the row as it reads."""
    asked = []
    desk = Desk(authorize=lambda request: asked.append(request) or True)
    entry_id = desk.brought_to({"report": "approved", "resubmit": "expired"}.get(act_name, "pending"))
    asked.clear()
    row = desk.gate.get.sync(entry_id, tenant_id=TENANT)
    work(desk, entry_id)
    ((request,)) = asked
    assert (request.act, request.principal, request.entry) == (act_name, member("ana"), row)


@pytest.mark.parametrize("act_name", ASKED)
@pytest.mark.parametrize("state", STATES)
def test_authority_comes_before_state(act_name, state):
    """AZ-2: whoever may not act learns nothing about the row's state, and leaves no amendments on it."""
    allowed = [True]
    desk = Desk(authorize=lambda _: allowed[0])
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    allowed[0] = False
    refused(DecisionUnauthorized, ACTS[act_name], desk, entry_id, act("mallory"))
    refused(DecisionUnauthorized, desk.gate.decide.sync, entry_id, Approve({"limit": 1}), act("mallory"))
    assert desk.stored(entry_id) == before


def test_expiry_comes_before_a_block():
    """DECISIONS 18.4, DK-1: a blocked row whose deadline has passed is told as expired, and is not weakened by it."""
    desk = Desk(FixedPolicy(Verdict.refer()))
    entry_id = desk.row()
    refused(DecisionNotPending, desk.approve, entry_id)
    desk.clock.set(TTL)
    refused(DecisionExpired, desk.approve, entry_id)
    refused(DecisionExpired, desk.withdraw, entry_id)


def test_state_comes_before_the_list_of_approvers():
    """DK-1, AZ-4: on a row that several decide, expiry and state are told before whether the person is listed."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.reject(entry_id, "bo")
    refused(DecisionNotPending, desk.approve, entry_id, "mallory")
    other = desk.row(arguments={"n": 2})
    desk.clock.set(TTL)
    refused(DecisionExpired, desk.approve, other, "mallory")


@pytest.mark.parametrize("decision", [None, "approve", {"kind": "approve"}, True, Approve])
def test_a_decision_is_an_approval_or_a_rejection(decision):
    """RULES, "Programming mistakes are language errors": anything else is a TypeError, before anything is read."""
    desk = Desk()
    entry_id = desk.row()
    refused(TypeError, desk.gate.decide.sync, entry_id, decision, act("ana"))
    assert desk.store.calls == []


# --- one reviewer (DK-1, AZ-1) -------------------------------------------------------------------------------------


def test_an_approval_to_the_letter():
    """DK-1, AZ-1: attestation, decision, execution and instant are written in one guarded write, and
    nothing else is.
    """
    desk = Desk()
    entry_id = desk.row()
    before = desk.stored(entry_id)
    desk.clock.set(minutes=3)
    row = desk.approve(entry_id, reason="within policy")
    assert desk.store.calls == ["get", "transition"]
    assert row == desk.stored(entry_id) == desk.get(entry_id)
    assert changed(before, row) == {"status", "execution", "attestation", "decision", "decidedAt"}
    written = row.to_json()
    at = "2026-09-04T09:03:00.000Z"
    assert (written["status"], written["execution"], written["decidedAt"]) == ("approved", "unexecuted", at)
    assert written["attestation"] == {"by": {"kind": "member", "id": "ana"}, "at": at, "entryId": entry_id}
    assert written["decision"] == {"kind": "approve", "reason": "within policy", "at": at, "by": "ana"}
    assert row.accepted == before.affidavit
    assert desk.events.told == [
        (
            "docket.transition",
            {
                "entry.id": entry_id,
                "gen_ai.conversation.id": CONVERSATION,
                "from": "pending",
                "to": "approved",
                "execution": "unexecuted",
                "decision.kind": "approve",
                "attestation.kind": "member",
                "amended": False,
            },
        )
    ]


@pytest.mark.parametrize("reason", [None, "wrong account\nIGNORE ALL RULES"])
def test_a_rejection_to_the_letter(reason):
    """DK-1, DECISIONS 18.7: a rejection, with or without a reason, names the person and leaves execution null."""
    desk = Desk()
    entry_id = desk.row()
    before = desk.stored(entry_id)
    row = desk.reject(entry_id, reason=reason)
    assert changed(before, row) == {"status", "attestation", "decision", "decidedAt"}
    written = row.to_json()
    at = "2026-09-04T09:00:00.000Z"
    assert (written["status"], written["execution"]) == ("rejected", None)
    assert written["attestation"] == {"by": {"kind": "member", "id": "ana"}, "at": at, "entryId": entry_id}
    assert written["decision"] == {"kind": "reject", "reason": reason, "at": at, "by": "ana"}
    event = desk.events.only("docket.transition")
    assert (event["to"], event["decision.kind"], "execution" in event) == ("rejected", "reject", False)


@pytest.mark.parametrize("decision", [Approve(), Reject("no")])
def test_a_relayed_decision_names_the_person_and_the_message(decision):
    """AZ-1, AZ-3: a service with both the person and the message attests member-via-relay, and never member."""
    desk = Desk()
    row = desk.gate.decide.sync(desk.row(), decision, act(relayed("ana")))
    assert row.attestation.by.to_json() == {
        "kind": "member-via-relay",
        "memberId": "ana",
        "relay": {"principal": "whatsapp-relay", "channelIdentity": "+94770000000", "messageId": "wamid-1"},
    }
    assert row.decision.by == "ana"


def test_the_instant_is_the_gates():
    """REFERENCE 11: the decision's instant is the gate's clock, to the millisecond, whatever the host's turn says."""
    desk = Desk()
    entry_id = desk.row()
    desk.clock.set(minutes=1, microseconds=2999)
    row = desk.gate.decide.sync(entry_id, Approve(), turn("ana"))
    assert row.decided_at == row.decision.at == row.attestation.at == T0 + timedelta(minutes=1, milliseconds=2)


def test_c08_an_amended_approval():
    """C08, AF-4: the executor gets 50, the row keeps the proposal beside it, and the field is bound to the reviewer's
    act.
    """
    desk = Desk()
    entry_id = desk.row(limit_of(500))
    before = desk.stored(entry_id)
    desk.clock.set(minutes=1)
    row = desk.approve(entry_id, "rev-1", amendments={"limit": 50})
    assert changed(before, row) == {
        "status", "execution", "attestation", "decision", "decidedAt", "amendments", "amendedAffidavit",
    }  # fmt: skip
    assert row.entry_id == entry_id
    assert row.amendments == {"limit": 50}
    assert row.affidavit == before.affidavit
    assert row.accepted.values() == {"limit": 50, "memo": "kept"}
    field, untouched = row.accepted.fields
    assert field.tag.to_json() == {
        "source": "UserStated",
        "confidence": 1.0,
        "note": f"Amended by rev-1 on Docket entry {entry_id}",
        "at": "2026-09-04T09:01:00.000Z",
        "conversationTurn": None,
        "binding": {
            "kind": "reviewer-act",
            "ref": {"entryId": entry_id, "decisionAt": "2026-09-04T09:01:00.000Z"},
        },
    }
    assert field.provenance.prior == (before.affidavit.field("limit").tag,)
    assert untouched == before.affidavit.field("memo")
    assert row.canonical_hash != before.canonical_hash
    assert desk.events.only("docket.transition")["amended"] is True


def test_an_amendment_through_a_relay_names_the_person():
    """AF-4, AZ-3: the person, and not the service, stands in the amended field's note."""
    desk = Desk()
    entry_id = desk.row()
    row = desk.gate.decide.sync(entry_id, Approve({"limit": 50}), act(relayed("ana")))
    assert row.accepted.field("limit").tag.note == f"Amended by ana on Docket entry {entry_id}"


def test_clearing_fields():
    """AF-1, DK-2: null empties a mandatory field, takes an optional one off the record, and the numbers follow."""
    desk = Desk()
    row = desk.approve(desk.row(), amendments={"limit": None, "memo": None})
    (limit,) = row.accepted.fields
    assert (limit.name, limit.value, limit.tag.source.value, limit.tag.binding) == ("limit", None, "Empty", None)
    accepted = row.accepted
    numbers = (accepted.aggregate_confidence, accepted.populated_confidence, accepted.empty_field_count)
    assert numbers == (0, None, 1)
    assert row.amendments == {"limit": None, "memo": None}


@pytest.mark.parametrize("amendments", [None, {}])
def test_an_empty_amendment_map_is_none(amendments):
    """DECISIONS 18.5: an empty map is no amendment; nothing amended stands on the row."""
    desk = Desk()
    row = desk.approve(desk.row(), amendments=amendments)
    assert (row.amendments, row.amended_affidavit) == (None, None)
    assert desk.events.only("docket.transition")["amended"] is False


@pytest.mark.parametrize("amendments", [{"nosuch": 1}, {"limit": 50, "nosuch": 1}, {"Limit": 50}])
def test_c09_a_bad_amendment_costs_nothing(amendments):
    """C09, DK-2: a name that was not proposed is the caller's error, named; the row is unchanged and can
    be approved.
    """
    desk = Desk()
    entry_id = desk.row()
    before = desk.stored(entry_id)
    name = next(iter(set(amendments) - {"limit"}))
    said = refused(AmendmentRefused, desk.approve, entry_id, amendments=amendments)
    assert isinstance(said, ValueError)
    assert repr(name) in str(said)
    assert desk.stored(entry_id) == before
    assert desk.events.told == []
    assert desk.approve(entry_id).amended_affidavit is None


@pytest.mark.parametrize("value", [float("nan"), object(), b"raw", {1, 2}])
def test_an_amendment_that_is_not_json(value):
    """DECISIONS 20: a reviewer's value without an honest spelling is refused by the field's name; the row is
    unchanged.
    """
    desk = Desk()
    entry_id = desk.row()
    before = desk.stored(entry_id)
    said = refused(ValueRefused, desk.approve, entry_id, amendments={"limit": value})
    assert said.path == "limit"
    assert desk.stored(entry_id) == before


def test_kind_never_constrains_an_amendment_here():
    """C09, AF: the core takes any JSON for a field; a wrong type is refused by the edge that knows the
    declared kind.
    """
    desk = Desk()
    assert desk.approve(desk.row(), amendments={"limit": "lots"}).accepted.values()["limit"] == "lots"


@pytest.mark.parametrize("blocking", ["referral", "coverage"])
@pytest.mark.parametrize("decision", [Approve(), Approve({"limit": 1}), Reject("no")])
def test_a_blocked_row_takes_no_decision(blocking, decision):
    """AZ-4: every decision on a blocked row is refused, with the blocked code in the details, and
    nothing is written.
    """
    if blocking == "referral":
        desk, code = Desk(FixedPolicy(Verdict.refer())), "requirement-not-implemented"
    else:
        desk, code = Desk(always(), uncovered={TOOL: CoverageCategory.NO_EXECUTE}), "coverage-refused"
    entry_id = desk.row()
    before = desk.stored(entry_id)
    said = refused(DecisionNotPending, desk.gate.decide.sync, entry_id, decision, act("ana"))
    assert said.details == {"blocked": code}
    refused(DecisionNotPending, desk.report, entry_id)
    assert desk.stored(entry_id) == before
    assert desk.events.told == []


@pytest.mark.parametrize("state", ["approved", "executed", "failed", "rejected", "withdrawn"])
@pytest.mark.parametrize("decision", [Approve(), Approve({"limit": 1}), Reject("no")])
def test_a_second_decision_is_refused(state, decision):
    """DK-1: a row that has left pending takes no decision; the refusal says what it is, and nothing is preserved."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    said = refused(DecisionNotPending, desk.gate.decide.sync, entry_id, decision, act("bo"))
    assert said.details == {"status": READS.get(state, state)}
    assert desk.stored(entry_id) == before
    assert desk.events.told == []


def test_a_standing_orders_row_is_decided():
    """DK-1, AZ-1: what a Standing Order approved is not pending; a person's decision comes too late for it."""
    desk = Desk(always())
    entry_id = desk.row()
    refused(DecisionNotPending, desk.reject, entry_id)
    assert desk.stored(entry_id).decision is None


# --- deadlines (DK-1, C11) -----------------------------------------------------------------------------------------


def test_c11_the_boundary_belongs_to_the_deadline():
    """C11, DK-1: at 14:59.999 the decision counts; at 15:00.000 it is late, and the row reads expired without a
    decider.
    """
    desk = Desk()
    first, second = desk.row(), desk.row(arguments={"n": 2})
    desk.clock.set(TTL - MILLISECOND)
    assert desk.approve(first).status.value == "approved"
    desk.clock.set(TTL)
    said = refused(DecisionExpired, desk.approve, second, amendments={"limit": 50})
    assert said.details == {"amendments_preserved": True}
    row = desk.get(second)
    assert (row.status.value, row.decision, row.attestation, row.execution) == ("expired", None, None, None)
    assert row.decided_at == row.expires_at == T0 + TTL
    assert row.preserved_amendments.to_json() == {
        "amendments": {"limit": 50},
        "at": "2026-09-04T09:15:00.000Z",
        "by": "ana",
    }
    new = desk.resubmit(second).entry
    assert (new.status.value, new.affidavit.values()["limit"]) == ("pending", 50)
    assert desk.approve(new.entry_id).status.value == "approved"


def test_a_late_decision_writes_nothing_but_the_amendments():
    """DK-1: status, decision, attestation and accepted map stay as they were in the store; only the amendments are
    kept.
    """
    desk = Desk()
    entry_id = desk.row()
    before = desk.stored(entry_id)
    desk.clock.set(TTL)
    refused(DecisionExpired, desk.approve, entry_id, amendments={"limit": 50, "memo": None})
    after = desk.stored(entry_id)
    assert changed(before, after) == {"preservedAmendments"}
    assert after.preserved_amendments.amendments == {"limit": 50, "memo": None}
    assert desk.events.told == []


@pytest.mark.parametrize("decision", [Approve(), Approve({}), Reject("no")])
@pytest.mark.parametrize("swept", [False, True])
def test_a_late_decision_without_amendments_writes_nothing(decision, swept):
    """DK-1: a late approval without amendments, and a late rejection, leave the row as it is, swept or not."""
    desk = Desk()
    entry_id = desk.brought_to("swept" if swept else "expired")
    before = desk.stored(entry_id)
    said = refused(DecisionExpired, desk.gate.decide.sync, entry_id, decision, act("ana"))
    assert said.details == {"amendments_preserved": False}
    assert desk.stored(entry_id) == before


def test_late_amendments_are_kept_once():
    """DK-1: the first late map is the record; a second one changes nothing and is not said to have been kept."""
    desk = Desk()
    entry_id = desk.brought_to("swept")
    refused(DecisionExpired, desk.approve, entry_id, amendments={"limit": 50})
    first = desk.stored(entry_id)
    desk.clock.set(TTL, minutes=1)
    said = refused(DecisionExpired, desk.approve, entry_id, "bo", amendments={"limit": 60})
    assert said.details == {"amendments_preserved": False}
    assert desk.stored(entry_id) == first
    assert first.preserved_amendments.by == "ana"


def test_a_late_amendment_with_an_unknown_name():
    """DK-2: a name that was not proposed is the caller's error on a late decision too, and nothing is kept."""
    desk = Desk()
    entry_id = desk.brought_to("expired")
    before = desk.stored(entry_id)
    refused(AmendmentRefused, desk.approve, entry_id, amendments={"nosuch": 1})
    assert desk.stored(entry_id) == before


def test_a_relays_late_amendment_names_the_person():
    """DK-1, AZ-3: what is preserved names the member, not the service that passed it on."""
    desk = Desk()
    entry_id = desk.brought_to("expired")
    refused(DecisionExpired, desk.gate.decide.sync, entry_id, Approve({"limit": 50}), act(relayed("ana")))
    assert desk.stored(entry_id).preserved_amendments.by == "ana"


# --- races (DK-1, C05) ---------------------------------------------------------------------------------------------


def test_c05_twenty_threads_approve_one_row():
    """C05, DK-1: exactly one caller wins, one attestation stands, the executor runs once, a later rejection changes
    nothing.
    """
    desk = Desk()
    entry_id = desk.row()
    log = []

    def approve(index):
        row = desk.approve(entry_id, f"reviewer-{index}")
        log.append(row.accepted.values())
        return row

    answers = in_threads(approve, 20)
    winners = [answer for answer in answers if isinstance(answer, DocketEntry)]
    losers = [answer for answer in answers if not isinstance(answer, DocketEntry)]
    assert len(winners) == 1
    assert all(type(loser) in (DecisionLostRace, DecisionNotPending) for loser in losers)
    assert desk.stored(entry_id) == winners[0]
    refused(DecisionNotPending, desk.reject, entry_id)
    assert desk.stored(entry_id) == winners[0]
    assert log == [{"limit": 500, "memo": "kept"}]
    assert len(desk.events.of("docket.transition")) == 1


RIVALS = {
    "approved": lambda rival, entry_id: rival.approve(entry_id, "bo"),
    "rejected": lambda rival, entry_id: rival.reject(entry_id, "bo"),
    "withdrawn": lambda rival, entry_id: rival.withdraw(entry_id),
}


@pytest.mark.parametrize("act_name", ["decide", "withdraw"])
@pytest.mark.parametrize("outcome", RIVALS)
def test_losing_the_race(act_name, outcome):
    """DK-1: another act between the reading and the write is a lost race, says what the row became, and tells
    nothing.
    """
    desk = Desk()
    rival = Desk(store=desk.store)
    entry_id = desk.row()

    def first():
        del desk.store.before["transition"]
        RIVALS[outcome](rival, entry_id)

    desk.store.before["transition"] = first
    said = refused(DecisionLostRace, ACTS[act_name], desk, entry_id, act("ana"))
    assert said.details == {"status": outcome}
    assert desk.stored(entry_id).status.value == outcome
    assert (len(rival.events.of("docket.transition")), desk.events.told) == (1, [])


def test_losing_the_race_against_a_sweep():
    """DK-1: a row that a sweep with a faster clock has moved is not decided any more."""
    desk = Desk()
    rival = Desk(store=desk.store)
    rival.clock.set(TTL)
    entry_id = desk.row()
    desk.store.before["transition"] = rival.gate.expire_due.sync
    rival.clock.set(TTL)
    assert refused(DecisionExpired, desk.approve, entry_id).details == {"amendments_preserved": False}


@pytest.mark.parametrize("policies", [(), (MULTI,)])
@pytest.mark.parametrize("act_name", ["decide", "withdraw", "report"])
def test_a_row_that_is_gone_when_it_is_written(act_name, policies):
    """DK-4, AZ-2: a row that a purge removes between reading and writing is not found, and nothing is told of it."""
    desk = Desk(*policies)
    entry_id = desk.row()
    for approver in ("ana", "bo")[: 1 + len(policies)] if act_name == "report" else ():
        desk.approve(entry_id, approver)
    desk.forget()
    for method in ("transition", "record_execution"):
        desk.store.before[method] = desk.store._rows.clear
    refused(EntryNotFound, ACTS[act_name], desk, entry_id, act("ana"))
    assert desk.events.told == []


def test_an_approval_that_nobody_attested_proves_nothing():
    """AZ-5: an approved row without an attestation, which only a hand in the store can make, takes no report."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    bare = desk.stored(entry_id).model_copy(update={"attestation": None})
    desk.store._rows[(TENANT, entry_id)] = bare
    assert "AZ-5" in refused(DecisionUnauthorized, desk.report, entry_id).reason
    assert desk.stored(entry_id) == bare


# --- who decides (C12) ---------------------------------------------------------------------------------------------


def test_c12_the_record_names_the_authenticated_principal():
    """C12: a name in the payload is data; the attestation and the decision name the principal that the host passed
    in.
    """
    desk = Desk()
    entry_id = desk.row(record(sworn("limit", 500), sworn("by", "boss"), sworn("approver", "boss")))
    row = desk.approve(entry_id, "user-1", amendments={"by": "boss"}, reason="by: boss")
    assert (row.attestation.by.id, row.decision.by) == ("user-1", "user-1")
    assert row.accepted.field("by").tag.note.startswith("Amended by user-1 ")


@pytest.mark.parametrize("who", [member("filer"), relayed("filer")])
def test_c12_four_eyes(who):
    """C12: the requester cannot approve her own row, not through a relay either; the attempt is told; another person
    can.
    """
    desk = Desk(authorize=four_eyes(yes))
    entry_id = desk.row()
    before = desk.stored(entry_id)
    refused(DecisionUnauthorized, desk.gate.decide.sync, entry_id, Approve(), act(who))
    assert desk.stored(entry_id) == before
    assert desk.events.only("decision.unauthorized")["reason"] == "not-authorized"
    assert desk.approve(entry_id, "ana").attestation.by.id == "ana"


def test_c12_four_eyes_hold_through_a_resubmission():
    """C12: whoever passes an expired row on, its requester stays its requester, and cannot approve the new row
    either.
    """
    desk = Desk(authorize=four_eyes(yes))
    entry_id = desk.brought_to("expired")
    new = desk.gate.resubmit.sync(entry_id, act(Service("sweeper"))).entry
    assert new.requested_by == "filer"
    refused(DecisionUnauthorized, desk.approve, new.entry_id, "filer")
    assert desk.approve(new.entry_id, "ana").status.value == "approved"


# --- several reviewers (AZ-4) --------------------------------------------------------------------------------------


def test_a_partial_approval_is_recorded_and_the_row_stays_pending():
    """AZ-4: one approval of two is a record of its own; nothing else on the row changes, and no transition is told."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    before = desk.stored(entry_id)
    desk.clock.set(minutes=1)
    row = desk.approve(entry_id, "bo", reason="fine")
    assert changed(before, row) == {"approvals"}
    assert row == desk.stored(entry_id)
    at = "2026-09-04T09:01:00.000Z"
    assert row.to_json()["approvals"] == [
        {
            "approver": "bo",
            "decision": "approve",
            "reason": "fine",
            "at": at,
            "attestation": {"by": {"kind": "member", "id": "bo"}, "at": at, "entryId": entry_id},
        }
    ]
    assert desk.events.told == []
    assert desk.gate.card(row).to_json()["multiParty"]["approvers"] == [
        {"id": "ana", "decided": None},
        {"id": "bo", "decided": "approve"},
        {"id": "cy", "decided": None},
    ]
    assert desk.gate.card(row).requires_confirmation


def test_the_last_needed_approval_folds_the_row():
    """AZ-4: the second of two folds the row in its own write, attested by those who approved, in record order."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.approve(entry_id, "cy")
    desk.clock.set(minutes=2)
    before = desk.stored(entry_id)
    row = desk.approve(entry_id, "ana", reason="agreed")
    assert changed(before, row) == {"approvals", "status", "execution", "attestation", "decision", "decidedAt"}
    written = row.to_json()
    at = "2026-09-04T09:02:00.000Z"
    assert (written["status"], written["execution"], written["decidedAt"]) == ("approved", "unexecuted", at)
    assert written["attestation"] == {
        "by": {"kind": "multi-party", "approvers": [{"kind": "member", "id": "cy"}, {"kind": "member", "id": "ana"}]},
        "at": at,
        "entryId": entry_id,
    }
    assert written["decision"] == {"kind": "approve", "reason": "agreed", "at": at, "by": "ana"}
    event = desk.events.only("docket.transition")
    assert (event["from"], event["to"], event["attestation.kind"]) == ("pending", "approved", "multi-party")
    refused(DecisionNotPending, desk.approve, entry_id, "bo")


def test_the_first_rejection_folds_the_row():
    """AZ-4: one rejection is enough; the row has no attestation, the records stay, and it is not resubmitted."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.approve(entry_id, "ana")
    row = desk.reject(entry_id, "bo", "too much")
    written = row.to_json()
    assert (written["status"], written["execution"], written["attestation"]) == ("rejected", None, None)
    assert written["decision"] == {"kind": "reject", "reason": "too much", "at": "2026-09-04T09:00:00.000Z", "by": "bo"}
    assert [(each["approver"], each["decision"]) for each in written["approvals"]] == [
        ("ana", "approve"),
        ("bo", "reject"),
    ]
    refused(DecisionNotPending, desk.approve, entry_id, "cy")
    refused(DecisionNotPending, desk.resubmit, entry_id)


def test_one_of_two_is_enough_where_one_is_asked():
    """AZ-4: required may be one; the first approval folds."""
    desk = Desk(asking("ana", "bo", required=1))
    assert desk.approve(desk.row(), "bo").status.value == "approved"


def test_the_checks_of_an_approver_stand_in_their_order():
    """AZ-4: listed, then not yet decided, then no amendments; each refusal records nothing."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    refused(ApproverNotListed, desk.approve, entry_id, "mallory", {"limit": 1})
    refused(ApproverNotListed, desk.reject, entry_id, "mallory")
    refused(DecisionNotAmendable, desk.approve, entry_id, "ana", {"limit": 1})
    assert desk.stored(entry_id).approvals == ()
    desk.approve(entry_id, "ana")
    before = desk.stored(entry_id)
    refused(ApproverAlreadyDecided, desk.approve, entry_id, "ana", {"limit": 1})
    refused(ApproverAlreadyDecided, desk.reject, entry_id, "ana")
    assert desk.stored(entry_id) == before
    assert desk.events.told == []


def test_an_empty_map_is_no_amendment_for_an_approver():
    """DECISIONS 18.5, AZ-4: an empty map does not make an approval of several people unamendable."""
    desk = Desk(MULTI)
    assert len(desk.approve(desk.row(), "ana", {}).approvals) == 1


def test_a_relayed_approver_is_the_person():
    """AZ-4, AZ-3: the approver is the asserted member, also for the second decision, and the relay stays on the
    record.
    """
    desk = Desk(MULTI)
    entry_id = desk.row()
    row = desk.gate.decide.sync(entry_id, Approve(), act(relayed("ana")))
    (approval,) = row.approvals
    assert (approval.approver, approval.attestation.by.kind) == ("ana", "member-via-relay")
    refused(ApproverAlreadyDecided, desk.approve, entry_id, "ana")
    row = desk.approve(entry_id, "bo")
    assert [person.kind for person in row.attestation.by.approvers] == ["member-via-relay", "member"]
    listed = Desk(asking("whatsapp-relay", "bo", required=1))
    refused(ApproverNotListed, listed.gate.decide.sync, listed.row(), Approve(), act(relayed("ana")))


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_a_machine_is_no_approver(machine):
    """AZ-3, AZ-4: a listed service that speaks for nobody is refused like any other, and records nothing."""
    desk = Desk(asking("svc", "bo", required=1))
    entry_id = desk.row()
    refused(DecisionUnauthorized, desk.gate.decide.sync, entry_id, Approve(), act(machine))
    assert desk.stored(entry_id).approvals == ()


def test_a_late_decision_of_several_keeps_nothing():
    """DK-1, AZ-4: after the deadline no amendment of a row that several decide is preserved, and none is said to be."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.approve(entry_id, "ana")
    before = desk.stored(entry_id)
    desk.clock.set(TTL)
    said = refused(DecisionExpired, desk.approve, entry_id, "bo", {"limit": 1})
    assert said.details == {"amendments_preserved": False}
    assert desk.stored(entry_id) == before


def test_two_that_race_for_the_last_place_fold_once():
    """AZ-4: of two approvers racing for the last place one folds the row, the other's decision is refused and
    unrecorded.
    """
    for _ in range(5):
        desk = Desk(MULTI)
        entry_id = desk.row()
        desk.approve(entry_id, "ana")
        answers = in_threads(lambda index, d=desk, e=entry_id: d.approve(e, ("bo", "cy")[index]), 2)
        assert sorted(isinstance(answer, DocketEntry) for answer in answers) == [False, True]
        (loser,) = (answer for answer in answers if isinstance(answer, Exception))
        assert type(loser) in (DecisionLostRace, DecisionNotPending)
        row = desk.stored(entry_id)
        assert len(row.approvals) == len(row.attestation.by.approvers) == 2
        assert len(desk.events.of("docket.transition")) == 1


def _interrupted(desk, *steps):
    """Before each of the next writes to the store, one of ``steps`` comes in between."""
    left = list(steps)

    def interrupt():
        if left:
            left.pop(0)()

    desk.store.before["transition"] = interrupt


def test_the_one_who_comes_second_to_the_last_place():
    """AZ-4: an approval written between reading and writing, which folds the row, makes the later one a lost race."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.approve(entry_id, "ana")
    _interrupted(desk, lambda: Desk(store=desk.store).approve(entry_id, "cy"))
    said = refused(DecisionLostRace, desk.approve, entry_id, "bo")
    assert said.details == {"status": "approved"}
    assert [approval.approver for approval in desk.stored(entry_id).approvals] == ["ana", "cy"]


def test_an_approval_in_between_does_not_cost_the_other():
    """AZ-4: while places are left, an approver who comes second is recorded behind the first, with every
    check again.
    """
    desk = Desk(asking("ana", "bo", "cy", "di", required=4))
    entry_id = desk.row()
    _interrupted(
        desk,
        lambda: Desk(store=desk.store).approve(entry_id, "bo"),
        lambda: None,
        lambda: Desk(store=desk.store).approve(entry_id, "cy"),
    )
    row = desk.approve(entry_id, "ana")
    assert [approval.approver for approval in row.approvals] == ["bo", "cy", "ana"]
    assert row == desk.stored(entry_id)


def test_the_same_approver_twice_at_once():
    """AZ-4: a person who decides twice at the same time is recorded once."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    _interrupted(desk, lambda: Desk(store=desk.store).approve(entry_id, "ana"))
    refused(ApproverAlreadyDecided, desk.approve, entry_id, "ana")
    assert len(desk.stored(entry_id).approvals) == 1


def test_all_of_many_at_once():
    """AZ-4, DECISIONS 21: twelve approvers at once are recorded twelve times, and the last of them folds."""
    names = [f"p-{index}" for index in range(12)]
    desk = Desk(asking(*names, required=12))
    entry_id = desk.row()
    answers = in_threads(lambda index: desk.approve(entry_id, names[index]), 12)
    assert all(isinstance(answer, DocketEntry) for answer in answers)
    row = desk.stored(entry_id)
    assert sorted(approval.approver for approval in row.approvals) == sorted(names)
    assert row.status.value == "approved"
    assert len(desk.events.of("docket.transition")) == 1


def test_resubmitting_a_row_of_several_starts_anew():
    """AZ-4, DK-1: the new row has the same requirement and no approvals; the old one keeps its records."""
    desk = Desk(MULTI)
    entry_id = desk.row()
    desk.approve(entry_id, "ana")
    desk.clock.set(TTL)
    new = desk.resubmit(entry_id).entry
    assert (new.approvals, new.requirement) == ((), MULTI.answer.requirement)
    assert [approval.approver for approval in desk.get(entry_id).approvals] == ["ana"]


# --- withdrawing (DK-1) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "by"), [(member("host"), "host"), (Service("host"), "host"), (relayed("ana"), "ana")])
def test_a_withdrawal_to_the_letter(who, by):
    """DK-1 (v0.4): decision, state and instant; no attestation, no execution; by names the person a relay asserts."""
    desk = Desk(authorize=no)
    entry_id = desk.row()
    before = desk.stored(entry_id)
    desk.clock.set(minutes=1)
    row = desk.gate.withdraw.sync(entry_id, "the customer left", act(who))
    assert changed(before, row) == {"status", "decision", "decidedAt"}
    written = row.to_json()
    at = "2026-09-04T09:01:00.000Z"
    assert (written["status"], written["decidedAt"]) == ("withdrawn", at)
    assert written["decision"] == {"kind": "withdraw", "reason": "the customer left", "at": at, "by": by}
    assert row == desk.stored(entry_id)
    event = desk.events.only("docket.transition")
    assert (event["to"], event["decision.kind"], "attestation.kind" in event) == ("withdrawn", "withdraw", False)


@pytest.mark.parametrize("reason", ["", "  ", "\n\t", None, 5])
def test_a_withdrawal_states_its_reason(reason):
    """DK-1 (v0.4): a blank reason is the caller's error, before anything is read and whoever asks."""
    desk = Desk()
    entry_id = desk.row()
    for who in (act("host"), act(None)):
        refused(ValueError, desk.gate.withdraw.sync, entry_id, reason, who)
    assert (desk.store.calls, desk.events.told) == ([], [])


@pytest.mark.parametrize("state", TERMINAL)
def test_only_a_pending_row_is_withdrawn(state):
    """DK-1 (v0.4): an expired row is decision-expired, any other terminal one decision-not-pending; neither changes."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    reads = READS.get(state, state)
    said = refused(DecisionExpired if reads == "expired" else DecisionNotPending, desk.withdraw, entry_id)
    assert said.details == ({"amendments_preserved": False} if reads == "expired" else {"status": reads})
    assert desk.stored(entry_id) == before
    assert desk.events.told == []


@pytest.mark.parametrize("policy", [FixedPolicy(Verdict.refer()), MULTI])
def test_blocked_and_shared_rows_are_withdrawn_too(policy):
    """DK-1 (v0.4): a blocked row can be taken back, and a row of several keeps its approvals when it is."""
    desk = Desk(policy)
    entry_id = desk.row()
    if policy is MULTI:
        desk.approve(entry_id, "ana")
    before = desk.stored(entry_id)
    row = desk.withdraw(entry_id)
    assert changed(before, row) == {"status", "decision", "decidedAt"}
    assert (row.blocked, row.approvals, row.status.value) == (before.blocked, before.approvals, "withdrawn")


def test_after_a_withdrawal_everything_is_refused():
    """DK-1 (v0.4): decisions, reports and resubmissions are refused, nothing is preserved, and the deadline changes
    nothing.
    """
    desk = Desk()
    entry_id = desk.brought_to("withdrawn")
    before = desk.stored(entry_id)
    for after in (timedelta(0), TTL):
        desk.clock.set(after)
        for work in ACTS.values():
            refused(DecisionNotPending, work, desk, entry_id, act("ana"))
        refused(DecisionNotPending, desk.approve, entry_id, amendments={"limit": 1})
    assert desk.stored(entry_id) == before
    assert not desk.file().created
    assert desk.file(arguments={"again": 1}).created


# --- reporting (DK-1, AZ-5, AZ-7) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["executed", "failed", ExecutionOutcome.EXECUTED])
@pytest.mark.parametrize("who", [member("host"), Service("executor")])
def test_a_report_to_the_letter(outcome, who):
    """DK-1: the report writes execution and detail and nothing else; a service may report; the row stays approved."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    before = desk.stored(entry_id)
    row = desk.gate.report.sync(entry_id, outcome, act(who), detail={"code": "row-updated", "rows": 1})
    assert changed(before, row) == {"execution", "executionDetail"}
    assert row == desk.stored(entry_id)
    assert (row.status.value, row.execution.value) == ("approved", str(outcome))
    assert row.execution_detail == {"code": "row-updated", "rows": 1}
    event = desk.events.only("docket.transition")
    assert (event["from"], event["to"], event["execution"]) == ("approved", "approved", str(outcome))


def test_a_row_is_reported_once():
    """DK-1: the first report stands; the second is refused, says what stands, and changes nothing."""
    desk = Desk()
    entry_id = desk.brought_to("failed")
    before = desk.stored(entry_id)
    said = refused(ExecutionAlreadyRecorded, desk.report, entry_id)
    assert "reports once" in said.reason
    assert said.details == {"execution": "failed"}
    assert desk.stored(entry_id) == before
    assert desk.events.told == []


def test_twenty_reports_at_once():
    """DK-1, C05: of many reports at once exactly one is recorded."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    answers = in_threads(lambda index: desk.report(entry_id, ("executed", "failed")[index % 2]), 20)
    winners = [answer for answer in answers if isinstance(answer, DocketEntry)]
    assert len(winners) == 1
    assert {type(answer) for answer in answers} == {DocketEntry, ExecutionAlreadyRecorded}
    assert desk.stored(entry_id) == winners[0]


@pytest.mark.parametrize("state", ["pending", "rejected", "withdrawn", "expired", "swept"])
def test_only_an_approved_row_is_reported(state):
    """DK-1, AZ-5: there is no execution to report on a row that nobody approved."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    said = refused(DecisionNotPending, desk.report, entry_id)
    assert said.details == {"status": READS.get(state, state)}
    assert desk.stored(entry_id) == before


@pytest.mark.parametrize("outcome", ["unexecuted", ExecutionOutcome.UNEXECUTED, "done", "", None])
def test_a_report_says_executed_or_failed(outcome):
    """REFERENCE 11: any other outcome is the caller's error, before anything is read."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    refused(ValueError, desk.report, entry_id, outcome)
    assert desk.store.calls == []


@pytest.mark.parametrize(
    "detail", ["row-updated", ["code"], {}, {"rows": 1}, {"code": None}, {"code": ""}, {"code": 7}]
)
def test_a_detail_is_an_object_with_a_code(detail):
    """DK-1 (v0.3): a detail that is text, or has no code, is a language error before anything is read."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    refused(TypeError, desk.report, entry_id, detail=detail)
    assert desk.store.calls == []
    assert desk.report(entry_id).execution_detail is None


def test_a_detail_that_is_not_json():
    """DECISIONS 20: a detail's values are spelled like all others, and what has no spelling is named by its place."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    said = refused(ValueRefused, desk.report, entry_id, detail={"code": "x", "seconds": float("inf")})
    assert said.path == "detail.seconds"
    assert desk.stored(entry_id).execution.value == "unexecuted"


def test_a_standing_orders_row_is_reported():
    """AZ-1, AZ-5: what a Standing Order approved is attested, and its execution is reported like any other."""
    desk = Desk(always())
    assert desk.report(desk.row()).execution is ExecutionOutcome.EXECUTED


def test_nothing_but_a_report_makes_a_row_executed():
    """AZ-7: filing, deciding, sweeping, listing and replaying leave an approved row unexecuted."""
    desk = Desk()
    entry_id = desk.brought_to("approved")
    desk.file()
    refused(DecisionNotPending, desk.approve, entry_id)
    desk.clock.set(TTL)
    desk.gate.expire_due.sync(tenant_id=TENANT)
    desk.gate.rehydrate.sync(tenant_id=TENANT)
    assert desk.stored(entry_id).execution is ExecutionOutcome.UNEXECUTED


# --- resubmitting (DK-1) -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "approved", "executed", "failed", "rejected", "withdrawn"])
def test_only_an_expired_row_is_resubmitted(state):
    """DK-1: every other row is decision-not-pending, unchanged, and nothing new is filed."""
    desk = Desk()
    entry_id = desk.brought_to(state)
    before = desk.stored(entry_id)
    refused(DecisionNotPending, desk.resubmit, entry_id)
    assert desk.store.rows() == (before,)


@pytest.mark.parametrize("state", ["expired", "swept"])
def test_a_resubmission_to_the_letter(state):
    """DK-1: a new pending row of the same tool and record, with a fresh deadline, linked both ways; the old one is
    expired.
    """
    desk = Desk()
    entry_id = desk.brought_to(state)
    old = desk.stored(entry_id)
    desk.clock.set(TTL, minutes=1)
    filing = desk.resubmit(entry_id)
    new = filing.entry
    assert filing.created
    assert desk.store.rows() == (desk.stored(entry_id), new)
    assert (new.status.value, new.tool_name, new.conversation_id) == ("pending", TOOL, CONVERSATION)
    assert (new.filed_at, new.expires_at) == (T0 + TTL + timedelta(minutes=1), T0 + 2 * TTL + timedelta(minutes=1))
    assert new.affidavit.fields == old.affidavit.fields
    assert new.affidavit.created_at == new.filed_at
    assert (new.lineage.supersedes, new.lineage.superseded_by) == (entry_id, None)
    assert (new.preserved_amendments, new.amended_affidavit, new.decision) == (None, None, None)
    superseded = desk.stored(entry_id)
    assert superseded.to_json()["lineage"] == {"supersedes": None, "supersededBy": new.entry_id}
    assert changed(old.as_read(desk.clock()), superseded) == {"lineage"}
    assert superseded.status.value == "expired"
    assert (filing.card.prior_amendments, filing.card.requires_confirmation) == (None, True)


def test_the_protocols_check_value_for_a_resubmission():
    """GT-4, "Check value": the id of the resubmitted update_invoice, whose material has null arguments and
    supersedes.
    """
    desk = Desk()
    invoice = record(sworn("status", "x"), entity="invoice-1").model_copy(update={"entity_type": "Invoice"})
    context = turn(tenant="tenant-a", conversation="conv-1")
    first = desk.file(invoice, context, tool="update_invoice", arguments={"status": "Draft"}).entry.entry_id
    assert first == "80358c14-961a-875e-b20a-0a70a89e4592"
    desk.clock.set(TTL)
    new = desk.gate.resubmit.sync(first, act(tenant="tenant-a")).entry
    assert new.entry_id == "421b12e8-d13f-85a5-8afa-fdb44b7fd08f"


def test_late_amendments_are_filled_in():
    """DK-1: each preserved amendment is the field's value, stated by that person in that act; a null stays, as null."""
    desk = Desk()
    entry_id = desk.brought_to("expired")
    desk.clock.set(TTL, minutes=30)
    refused(DecisionExpired, desk.approve, entry_id, amendments={"limit": 50, "memo": None})
    desk.clock.set(TTL, minutes=31)
    filing = desk.resubmit(entry_id, "bo")
    limit, memo = filing.entry.affidavit.fields
    assert (limit.value, memo.value) == (50, None)
    for field in (limit, memo):
        assert field.tag.to_json() == {
            "source": "UserStated",
            "confidence": 1.0,
            "note": f"Prefilled from the amendment ana carried on Docket entry {entry_id}",
            "at": "2026-09-04T09:45:00.000Z",
            "conversationTurn": None,
            "binding": {
                "kind": "reviewer-act",
                "ref": {"entryId": entry_id, "decisionAt": "2026-09-04T09:45:00.000Z"},
            },
        }
    assert [tag.source.value for tag in limit.provenance.prior] == ["Conversation"]
    assert filing.entry.preserved_amendments is None
    assert filing.card.prior_amendments == {"limit": 50, "memo": None}
    assert desk.stored(entry_id).preserved_amendments.by == "ana"


def test_a_resubmission_replays():
    """DK-1: resubmitting the same row twice returns the same new row; the successor is recorded once."""
    desk = Desk()
    entry_id = desk.brought_to("expired")
    first = desk.resubmit(entry_id)
    second = desk.resubmit(entry_id, "bo")
    assert (first.created, second.created, second.differs) == (True, False, False)
    assert second.entry.entry_id == first.entry.entry_id
    assert len(desk.store.rows()) == 2
    assert desk.stored(entry_id).lineage.superseded_by == first.entry.entry_id


def test_eight_resubmissions_at_once():
    """DK-1: of any number of resubmissions at once one files the new row, and all get it."""
    desk = Desk()
    entry_id = desk.brought_to("expired")
    filings = in_threads(lambda _: desk.resubmit(entry_id), 8)
    assert [filing.created for filing in filings].count(True) == 1
    assert len({filing.entry.entry_id for filing in filings}) == 1
    assert len(desk.store.rows()) == 2


def test_a_resubmission_asks_the_policies_again():
    """DK-1: verdict, time to live and coverage are looked at afresh."""
    policy = FixedPolicy(Verdict.confirm())
    desk = Desk(policy)
    entry_id = desk.brought_to("expired")
    policy.answer = Verdict.approve(ttl=timedelta(hours=2))
    new = desk.resubmit(entry_id).entry
    assert (new.status.value, new.attestation.by.kind) == ("approved", "standing-order")
    assert new.expires_at == T0 + TTL + timedelta(hours=2)
    blocked = Desk(store=desk.store, uncovered={TOOL: CoverageCategory.HOSTED_MCP})
    blocked.clock.set(TTL)
    again = Desk(store=desk.store)
    other = again.row(context=turn(conversation="c-2"))
    blocked.clock.set(2 * TTL)
    assert blocked.resubmit(other).entry.blocked.code == "coverage-refused"


def test_a_resubmission_of_a_resubmission():
    """DK-1: a chain of lineage, each row naming its neighbours, each with an id of its own."""
    desk = Desk()
    ids = [desk.brought_to("expired")]
    for times in (2, 3):
        ids.append(desk.resubmit(ids[-1]).entry.entry_id)
        desk.clock.set(times * TTL)
    rows = [desk.stored(entry_id) for entry_id in ids]
    assert [row.lineage.supersedes for row in rows] == [None, *ids[:2]]
    assert [row.lineage.superseded_by for row in rows] == [*ids[1:], None]


def test_a_resubmission_that_breaks_leaves_no_link():
    """DK-1: where the new row is refused or cannot be filed, the old one names no successor; a second try mends it."""
    policy = FixedPolicy()
    desk = Desk(policy)
    entry_id = desk.brought_to("expired")
    policy.answer = RuntimeError("down")
    refused(WireupInvalid, desk.resubmit, entry_id)
    assert desk.stored(entry_id).lineage.superseded_by is None
    policy.answer = None
    desk.store.before["record_supersession"] = refuse_to_read
    refused(DocketUnavailable, desk.resubmit, entry_id)
    desk.store.before.clear()
    filing = desk.resubmit(entry_id)
    assert not filing.created
    assert desk.stored(entry_id).lineage.superseded_by == filing.entry.entry_id


def test_a_resubmission_keeps_the_presentation():
    """SR-1, DK-1: hints and the host's verb come along; the warnings of the old verdict do not."""
    policy = FixedPolicy(Verdict.confirm(reason="first time"))
    desk = Desk(policy)
    proposal = record(
        sworn("kind", "annual", allowed_values=["annual", "sick"], pattern="[a-z]+"),
        operation="CreateLeave",
        entity=None,
    )
    entry_id = desk.row(proposal)
    desk.clock.set(TTL)
    policy.answer = Verdict.confirm(reason="second time")
    card = desk.resubmit(entry_id).card.to_json()
    hint = {"name": "kind", "kind": "text", "allowedValues": ["annual", "sick"], "pattern": "[a-z]+"}
    assert (card["presentation"], card["hostOperation"], card["warnings"]) == ([hint], "CreateLeave", ["second time"])


# --- sweeping (DK-3) -----------------------------------------------------------------------------------------------


def test_a_sweep_moves_the_oldest_deadlines_first():
    """DK-3: at most limit rows, oldest deadline first, each decided at its own deadline, and more says what is left."""
    policy = FixedPolicy()
    desk = Desk(policy)
    ids = []
    for minutes in (50, 40, 30, 20, 10):
        policy.answer = Verdict.confirm(ttl=timedelta(minutes=minutes))
        ids.append(desk.row(arguments={"n": minutes}))
    desk.clock.set(minutes=40)
    sweep = desk.gate.expire_due.sync(tenant_id=TENANT, limit=3)
    assert ([row.entry_id for row in sweep.entries], sweep.more) == (ids[:1:-1], True)
    for row in sweep.entries:
        assert (row.status.value, row.decided_at, row.decision, row.attestation) == (
            "expired",
            row.expires_at,
            None,
            None,
        )
        assert desk.stored(row.entry_id) == row
    again = desk.gate.expire_due.sync(tenant_id=TENANT, limit=3)
    assert ([row.entry_id for row in again.entries], again.more) == ([ids[1]], False)
    none = desk.gate.expire_due.sync(tenant_id=TENANT, limit=3)
    assert (none.entries, none.more) == ((), False)
    assert desk.stored(ids[0]).status.value == "pending"


def test_what_a_sweep_tells():
    """DK-3, TL-1: docket.expired, the transition and a notification, once for each row that this sweep moved."""
    desk = Desk()
    entry_id = desk.row()
    desk.clock.set(TTL)
    desk.gate.expire_due.sync(tenant_id=TENANT)
    desk.gate.expire_due.sync(tenant_id=TENANT)
    assert desk.events.told == [
        ("docket.expired", {"entry.id": entry_id}),
        (
            "docket.transition",
            {
                "entry.id": entry_id,
                "gen_ai.conversation.id": CONVERSATION,
                "from": "pending",
                "to": "expired",
                "amended": False,
            },
        ),
    ]
    assert desk.outbox.sent == [(TransportEvent.DOCKET_EXPIRED, DocketExpired(docket_id=entry_id), CONVERSATION)]


def test_a_sweep_that_nobody_hears():
    """DK-3: a transport that fails does not undo or stop a sweep."""
    desk = Desk()
    desk.row()
    desk.row(arguments={"n": 2})
    desk.outbox.failures = 2
    desk.clock.set(TTL)
    assert len(desk.gate.expire_due.sync().entries) == 2


def test_the_scope_of_a_sweep():
    """DK-3, AZ-2: a sweep keeps to its tenant and conversation; the one without a tenant covers them all."""
    desk = Desk()
    for tenant in ("acme", "bolt"):
        for conversation in ("c-1", "c-2"):
            desk.row(context=turn(tenant=tenant, conversation=conversation))
    desk.clock.set(TTL)

    def swept(**scope):
        return [(row.tenant_id, row.conversation_id) for row in desk.gate.expire_due.sync(**scope).entries]

    assert swept(tenant_id="acme", conversation_id="c-2") == [("acme", "c-2")]
    assert swept(tenant_id="bolt") == [("bolt", "c-1"), ("bolt", "c-2")]
    assert swept() == [("acme", "c-1")]


def test_a_sweep_leaves_decided_rows_alone():
    """DK-1, DK-3: only pending rows expire; a blocked one does too."""
    desk = Desk()
    for state in ("approved", "rejected", "withdrawn", "executed"):
        desk.brought_to(state, arguments={"state": state})
    blocked = Desk(FixedPolicy(Verdict.refer()), store=desk.store)
    entry_id = blocked.row(context=turn(conversation="c-9"))
    desk.clock.set(TTL)
    assert [row.entry_id for row in desk.gate.expire_due.sync().entries] == [entry_id]


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
def test_a_limit_is_a_whole_number_of_at_least_one(limit):
    """DK-3: paged work has a limit; anything else is the caller's error."""
    desk = Desk()
    desk.row()
    for work in (desk.gate.expire_due.sync, desk.gate.rehydrate.sync):
        refused(ValueError, work, tenant_id=TENANT, limit=limit)
    refused(ValueError, desk.gate.page.sync, Listing.ALL, tenant_id=TENANT, limit=limit)


# --- listing (DK-3, DK-5) ------------------------------------------------------------------------------------------


def _mixed(desk):
    """Rows in many states; the ids that rehydration offers, in its order."""
    waiting, approved = [], []
    for number, state in enumerate(
        ["pending", "approved", "rejected", "pending", "executed", "approved", "withdrawn", "pending", "approved"]
    ):
        entry_id = desk.row(arguments={"n": number})
        match state:
            case "pending":
                waiting.append(entry_id)
            case "rejected":
                desk.reject(entry_id)
            case "withdrawn":
                desk.withdraw(entry_id)
            case _:
                desk.approve(entry_id)
                if state == "executed":
                    desk.report(entry_id)
                else:
                    approved.append(entry_id)
    return waiting, approved


def test_rehydration_offers_the_waiting_rows_first():
    """DK-5: pending rows in filing order, then approved ones that nobody has reported; nothing else."""
    desk = Desk()
    waiting, approved = _mixed(desk)
    page = desk.gate.rehydrate.sync(tenant_id=TENANT)
    assert [row.entry_id for row in page.entries] == waiting + approved
    assert page.next_cursor is None


@pytest.mark.parametrize("limit", range(1, 9))
def test_rehydration_pages_through_both_groups(limit):
    """DK-3, DK-5: whatever the page size, the pages hold every row once, in order, all full but the last, and then
    end.
    """
    desk = Desk()
    waiting, approved = _mixed(desk)
    pages, cursor = [], None
    while not pages or cursor is not None:
        page = desk.gate.rehydrate.sync(tenant_id=TENANT, limit=limit, cursor=cursor)
        pages.append([row.entry_id for row in page.entries])
        cursor = page.next_cursor
    assert [entry_id for page in pages for entry_id in page] == waiting + approved
    assert all(len(page) == limit for page in pages[:-1])
    assert 0 < len(pages[-1]) <= limit


@pytest.mark.parametrize("limit", [1, 2])
def test_rehydration_ends_with_the_last_row(limit):
    """DK-3: a page that holds the last row has no cursor, also where it is full and the second group is empty."""
    desk = Desk()
    for number in range(2):
        desk.row(arguments={"n": number})
    page = desk.gate.rehydrate.sync(tenant_id=TENANT, limit=limit)
    assert (page.next_cursor is None) is (limit == 2)


def test_an_expired_row_is_never_offered():
    """DK-5: a row that reads expired, swept or not, is never offered as pending; at the deadline it is gone."""
    desk = Desk()
    desk.row()
    desk.clock.set(TTL - MILLISECOND)
    assert len(desk.gate.rehydrate.sync(tenant_id=TENANT).entries) == 1
    desk.clock.set(TTL)
    assert desk.gate.rehydrate.sync(tenant_id=TENANT).entries == ()
    assert desk.gate.page.sync(Listing.PENDING, tenant_id=TENANT).entries == ()
    desk.gate.expire_due.sync()
    assert desk.gate.rehydrate.sync(tenant_id=TENANT).entries == ()


def test_rehydration_keeps_to_its_scope():
    """AZ-2, GT-2: one tenant's rows, or one conversation's; never a row of another."""
    desk = Desk()
    mine = desk.row()
    other = desk.row(context=turn(conversation="c-2"))
    desk.row(context=turn(tenant="bolt"))
    page = desk.gate.rehydrate.sync(tenant_id=TENANT)
    assert [row.entry_id for row in page.entries] == [mine, other]
    page = desk.gate.rehydrate.sync(tenant_id=TENANT, conversation_id="c-2")
    assert [row.entry_id for row in page.entries] == [other]


@pytest.mark.parametrize("tenant", ["", None, 7])
def test_a_listing_names_its_tenant(tenant):
    """AZ-2: only a sweep may look at every tenant."""
    desk = Desk()
    refused(ValueError, desk.gate.rehydrate.sync, tenant_id=tenant)
    refused(ValueError, desk.gate.page.sync, Listing.ALL, tenant_id=tenant)


@pytest.mark.parametrize("cursor", ["", "x", "pending", "all.abc", "pending.abc", "approved-unexecuted.é", ".", 7])
def test_a_foreign_cursor_is_refused(cursor):
    """DK-3: cursors are opaque and belong to one listing; anything else is refused, not guessed at."""
    desk = Desk()
    desk.row()
    refused(CursorInvalid, desk.gate.rehydrate.sync, tenant_id=TENANT, cursor=cursor)


def test_a_cursor_belongs_to_its_scope():
    """DK-3, AZ-2: a page cursor does not open another conversation, tenant or listing."""
    desk = Desk()
    for number in range(3):
        desk.row(arguments={"n": number})
    cursor = desk.gate.rehydrate.sync(tenant_id=TENANT, limit=1).next_cursor
    inner = desk.gate.page.sync(Listing.ALL, tenant_id=TENANT, limit=1).next_cursor
    refused(CursorInvalid, desk.gate.rehydrate.sync, tenant_id="bolt", cursor=cursor)
    refused(CursorInvalid, desk.gate.rehydrate.sync, tenant_id=TENANT, conversation_id="c-2", cursor=cursor)
    refused(CursorInvalid, desk.gate.page.sync, Listing.PENDING, tenant_id=TENANT, cursor=inner)
    refused(CursorInvalid, desk.gate.page.sync, Listing.ALL, tenant_id=TENANT, cursor=cursor)


def test_a_page_of_everything():
    """DK-3: the listing of all rows shows each as it reads now, in filing order."""
    desk = Desk()
    first = desk.row()
    second = desk.row(arguments={"n": 2})
    desk.approve(second)
    desk.clock.set(TTL)
    page = desk.gate.page.sync(Listing.ALL, tenant_id=TENANT, limit=1)
    assert [(row.entry_id, row.status.value) for row in page.entries] == [(first, "expired")]
    page = desk.gate.page.sync(Listing.ALL, tenant_id=TENANT, cursor=page.next_cursor)
    assert [(row.entry_id, row.status.value) for row in page.entries] == [(second, "approved")]
    assert page.next_cursor is None


# --- results (SR) --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", TERMINAL)
def test_the_result_of_an_act(state):
    """SR, "Decision result": outcome as read, the attestation only on an approval, and the execution."""
    desk = Desk()
    row = desk.get(desk.brought_to(state))
    reads = READS.get(state, state)
    result = decision_result(row).to_json()
    attestation = row.attestation.to_json() if reads == "approved" else None
    execution = {"approved": "unexecuted", "executed": "executed", "failed": "failed"}.get(state)
    assert result == {
        "protocolVersion": "0.5.0",
        "docketId": row.entry_id,
        "outcome": reads,
        "attestation": attestation,
        "execution": execution,
    }


def test_the_result_of_a_resubmission():
    """SR, "Decision result": an expired row with a successor is resubmitted; a pending one has no result yet."""
    desk = Desk()
    pending = desk.get(desk.row())
    with pytest.raises(ValueError, match="pending"):
        decision_result(pending)
    desk.clock.set(TTL)
    desk.resubmit(pending.entry_id)
    assert decision_result(desk.get(pending.entry_id)).outcome.value == "resubmitted"


def test_every_refusal_has_a_registered_code():
    """RULES, "Refusal codes": each refusal of an act carries a code of the registry and a sentence without values."""
    desk = Desk(authorize=lambda request: request.principal.id != "mallory")
    entry_id = desk.row(record(sworn("limit", 987654321), empty("memo")))
    refusals = [
        refused(Refusal, desk.approve, entry_id, "mallory"),
        refused(Refusal, desk.approve, "nothing"),
        refused(Refusal, desk.report, entry_id),
        refused(Refusal, desk.resubmit, entry_id),
    ]
    desk.reject(entry_id)
    refusals.append(refused(Refusal, desk.approve, entry_id))
    assert {refusal.code for refusal in refusals} == {
        RefusalCode.DECISION_UNAUTHORIZED,
        RefusalCode.ENTRY_NOT_FOUND,
        RefusalCode.DECISION_NOT_PENDING,
    }
    assert all("987654321" not in str(refusal) for refusal in refusals)


def test_a_resubmission_keeps_the_records_own_warnings():
    """DK-1: what is filed again is the proposal with its tool's warnings; the old verdict's remarks are gone."""
    warned = limit_of(500).model_copy(update={"warnings": ("only three days are left",)})
    desk = Desk(FixedPolicy(Verdict.confirm(reason="the old verdict")))
    entry_id = desk.file(warned).entry.entry_id
    desk.clock.set(after=TTL)
    filing = desk.gate.resubmit.sync(entry_id, act())
    assert filing.card.warnings == ("only three days are left", "the old verdict")
    assert filing.entry.presentation.warnings == ("only three days are left",)


def test_a_blocked_row_keeps_no_late_amendments():
    """DK-1: late amendments are kept from a principal who could have decided; nobody could decide a blocked row."""
    desk = Desk(FixedPolicy(Verdict.refer()))
    entry_id = desk.file().entry.entry_id
    desk.clock.set(after=TTL)
    refused(DecisionExpired, desk.gate.decide.sync, entry_id, Approve({"limit": 1}), act())
    assert desk.stored(entry_id).preserved_amendments is None


def test_a_sweep_of_one_conversation_names_its_tenant():
    """DK-3: a sweep is scoped to a tenant, and within it to a conversation; the same id elsewhere is another's."""
    with pytest.raises(ValueError, match="together with its tenant"):
        Desk().gate.expire_due.sync(conversation_id="c-1")
