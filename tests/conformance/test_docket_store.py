"""What every Docket store does, on every store. A new kind joins by its name in ``KINDS``."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.docket import DocketEntry, DocketStore, Listing, Scope
from affiant_core.docket.model import (
    Approval,
    Attestation,
    CoverageBlocked,
    DecisionRecord,
    FieldHint,
    Lineage,
    MemberAttestor,
    MultiPartyAttestor,
    Presentation,
    RelayedAttestor,
    Requirement,
    RequirementNotImplemented,
    deadline,
)
from affiant_core.docket.store import Applied, Transition, TransitionGuard, write_cursor
from affiant_core.errors import CursorInvalid, ValueRefused
from affiant_core.provenance import ExternalRef, ProvenanceTag, RelayRef
from affiant_core.values import Money
from affiant_core.vocabulary import (
    CoverageCategory,
    DecisionKind,
    ExecutionOutcome,
    FieldKind,
    ReviewRequirement,
    ReviewStatus,
)
from tests.support.docket import (
    CONVERSATION,
    DEADLINE,
    KINDS,
    MILLISECOND,
    T0,
    TENANT,
    TTL,
    approval,
    at_once,
    count_applied,
    expiry,
    late_amendments,
    make_affidavit,
    make_approved_entry,
    make_entry,
    open_store,
    rejection,
    withdrawal,
)

HERE = Scope(TENANT)


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    opened = open_store(request.param, tmp_path)
    yield opened
    opened.close()


def ids(entries: tuple[DocketEntry, ...]) -> list[str]:
    return [entry.entry_id for entry in entries]


def listed(
    store: DocketStore, listing: Listing, scope: Scope = HERE, *, limit: int = 100, now: datetime = T0
) -> list[str]:
    """The ids of a whole listing, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = store.page(listing, scope, limit=limit, cursor=cursor, now=now)
        assert len(page.entries) <= limit
        found += ids(page.entries)
        cursor = page.next_cursor
        if cursor is None:
            return found


def rich_affidavit(operation: str = "update") -> Affidavit:
    tag = ProvenanceTag.external(binding=ExternalRef.of("hr", "42", fetched_at=T0), confidence=0.1, at=T0)
    chain = AffidavitField.of("x", 1, tag).provenance.merge(ProvenanceTag.from_tool_result(note="ünï ✓ 😀", at=T0))
    values: dict[str, object] = {
        "text": 'quotes " \\ and \n lines, U+0000 \0, Ω, 😀, and \u2028',
        "empty": "",
        "integer": 9007199254740991,
        "negative": -1,
        "float": 0.1 + 0.2,
        "whole": 3.0,
        "tiny": 5e-324,
        "huge": 1.7976931348623157e308,
        "yes": True,
        "nothing": None,
        "money": Money("10.00", "EUR"),
        "nested": {"b": [1, 2.0, {"c": None}], "a": {}, "": []},
    }
    fields = [AffidavitField.of(name, value, chain, mandatory=value is None) for name, value in values.items()]
    fields.append(AffidavitField.of("before", "new", tag, previous={"was": ["old", 1]}, kind=FieldKind.ENUM))
    return Affidavit.create(
        operation_type=operation,
        entity_type="Leave",
        entity_id="L/1",
        fields=fields,
        conversation_turn=3,
        created_at=T0 + 5 * MILLISECOND,
    )


def rich_entry(entry_id: str = "rich") -> DocketEntry:
    return make_entry(
        entry_id,
        protocol_version="0.9.1",
        affidavit=rich_affidavit(),
        requirement=Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("a", "b"), required=2),
        blocked=CoverageBlocked(category=CoverageCategory.HOSTED_MCP, tool_name="far_away"),
        approvals=(),
        lineage=Lineage(supersedes="e-0"),
        filed_at=T0 - timedelta(days=20000),
        expires_at=deadline(T0, timedelta.max),
        presentation=Presentation(
            hints=(
                FieldHint(
                    name="text", kind=FieldKind.TEXT, allowed_values=("a", {"b": [1]}, None, 2.0), pattern="^.*$"
                ),
                FieldHint(name="empty"),
            ),
            warnings=("first", "second ✓"),
            host_operation="ApproveLeave",
            prior_amendments={"text": None, "nested": {"a": [1]}},
        ),
        requested_by=None,
    )


# --- filing --------------------------------------------------------------------------------------------------------


def test_a_store_is_a_store_and_says_whether_it_waits(store, request):
    """DECISIONS 21: a store whose calls wait for a disk says so."""
    assert isinstance(store, DocketStore)
    assert store.blocking is ("memory" not in request.node.callspec.id)


@pytest.mark.parametrize(
    "entry",
    [
        make_entry(),
        make_approved_entry(),
        rich_entry(),
        make_entry(blocked=RequirementNotImplemented(level=ReviewRequirement.REFERRAL_REQUIRED)),
    ],
    ids=["pending", "approved by a Standing Order", "with everything", "blocked"],
)
def test_a_filed_row_reads_back_equal_member_by_member(store, entry):
    """DK-1: the row keeps the proposal unedited."""
    filed = store.file(entry)
    assert filed.created
    for read in (filed.entry, store.get(TENANT, entry.entry_id)):
        for name in DocketEntry.model_fields:
            assert getattr(read, name) == getattr(entry, name), name
        assert read == entry
        assert read.to_json() == entry.to_json()
        assert read.canonical_hash == entry.canonical_hash


def test_the_types_of_sworn_values_survive(store):
    """SR-1: ``3.0`` and ``3``, ``1`` and ``True`` are equal in Python, and different things to swear to."""
    store.file(rich_entry())
    read = store.get(TENANT, "rich").affidavit.values()
    for name, value in rich_affidavit().values().items():
        assert type(read[name]) is type(value), name
    assert repr(read) == repr(rich_affidavit().values())


def test_the_first_write_wins(store):
    """DK-1: an existing id returns its row unchanged, and says that it was not created."""
    first = make_entry(affidavit=make_affidavit({"reason": "first"}))
    assert store.file(first).created
    again = store.file(make_entry(affidavit=make_affidavit({"reason": "second"}), conversation_id="c-2"))
    assert not again.created
    assert again.entry == store.get(TENANT, "e-1") == first
    assert listed(store, Listing.ALL) == ["e-1"]


def test_filing_again_never_reopens_a_decided_row(store):
    """DK-1: nothing is reopened, and a replay returns the row as it is now."""
    store.file(make_entry())
    store.transition(TENANT, "e-1", rejection())
    again = store.file(make_entry())
    assert (again.created, again.entry.status) == (False, ReviewStatus.REJECTED)
    assert again.entry == store.get(TENANT, "e-1")


@pytest.mark.parametrize(
    "members",
    [
        {"status": ReviewStatus.REJECTED},
        {"status": ReviewStatus.EXPIRED},
        {"status": ReviewStatus.APPROVED},
        {"execution": ExecutionOutcome.UNEXECUTED},
        {"attestation": Attestation(by=MemberAttestor(id="r-1"), at=T0, entry_id="e-1")},
    ],
    ids=["rejected", "expired", "approved by nobody", "executing", "attested and pending"],
)
def test_a_row_is_filed_pending_or_by_a_standing_order(store, members):
    """DK-1: no other row may be filed."""
    with pytest.raises(ValueError, match="filed pending"):
        store.file(make_entry(**members))
    assert store.get(TENANT, "e-1") is None


def test_a_blocked_row_is_never_filed_approved(store):
    """CV-4: an uncovered tool keeps its verdict and gets no attestation."""
    blocked = CoverageBlocked(category=CoverageCategory.NO_EXECUTE, tool_name="t")
    with pytest.raises(ValueError, match="filed pending"):
        store.file(make_approved_entry(blocked=blocked))


# --- tenants -------------------------------------------------------------------------------------------------------


def test_no_call_reaches_another_tenants_row(store):
    """AZ-2: another tenant's row looks exactly like no row, whatever the act."""
    store.file(make_entry())
    store.file(make_approved_entry("e-2"))
    nothing = Applied(applied=False, entry=None)
    late = DEADLINE
    assert store.get("other", "e-1") is None
    assert store.transition("other", "e-1", approval()) == nothing
    assert store.transition("other", "e-1", withdrawal()) == nothing
    assert store.transition("other", "e-1", expiry()) == nothing
    assert store.preserve_amendments("other", "e-1", late_amendments(), late) == nothing
    assert store.record_supersession("other", "e-1", "e-9", late) == nothing
    assert store.record_execution("other", "e-2", ExecutionOutcome.EXECUTED, None) == nothing
    for listing in Listing:
        assert listed(store, listing, Scope("other")) == []
        assert listed(store, listing, Scope("other", CONVERSATION)) == []
    assert store.expire_due(late, Scope("other"), limit=10).entries == ()
    assert store.get(TENANT, "e-1") == make_entry()
    assert store.get(TENANT, "e-2") == make_approved_entry("e-2")


def test_two_tenants_may_use_one_id(store):
    """DK-1: ids are unique within a tenant, and every act changes its own tenant's row only."""
    assert store.file(make_entry()).created
    assert store.file(make_entry(tenant_id="other")).created
    assert store.transition("other", "e-1", rejection()).applied
    assert store.get(TENANT, "e-1") == make_entry()
    store.record_supersession(TENANT, "e-1", "e-9", DEADLINE)
    assert store.get("other", "e-1").lineage == Lineage()


def test_the_host_may_ask_whether_an_id_belongs_elsewhere(store):
    """AZ-2: the framework compares tenants itself, and may say so to the host's telemetry."""
    store.file(make_entry())
    assert store.belongs_elsewhere("other", "e-1")
    assert not store.belongs_elsewhere(TENANT, "e-1")
    assert not store.belongs_elsewhere("other", "e-2")
    assert store.belongs_elsewhere("\ud800", "e-1")


def test_a_listing_names_a_tenant(store):
    """DK-3: only the sweep may cover every tenant."""
    for listing in Listing:
        with pytest.raises(ValueError, match="one tenant"):
            store.page(listing, Scope(None), limit=1, cursor=None, now=T0)


@pytest.mark.parametrize(
    "odd",
    ["E-1", "e-1 ", " e-1", "e-1\0", "é", "' OR '1'='1", "%", "e_1", "\ud800", "", "e-1" * 10000],
    ids=ascii,
)
def test_an_id_matches_itself_alone(store, odd):
    """AZ-2: ids are compared as they are: no case folding, no trimming, no pattern, no normal form."""
    store.file(make_entry())
    store.file(make_entry("e\u0301"))
    for tenant, entry_id in ((TENANT, odd), (odd, "e-1")):
        assert store.get(tenant, entry_id) is None
        assert store.transition(tenant, entry_id, withdrawal()) == Applied(applied=False, entry=None)
    assert listed(store, Listing.ALL, Scope(odd)) == []
    assert listed(store, Listing.ALL, Scope(TENANT, odd)) == []
    assert store.expire_due(DEADLINE, Scope(odd), limit=10).entries == ()
    assert store.expire_due(DEADLINE, Scope(TENANT, odd), limit=10).entries == ()


def test_odd_ids_can_be_filed(store):
    """DK-1: any text that has a UTF-8 form is an id."""
    for odd in ("e-1\0", "e'1", "Ω 😀", "x" * 5000, "a\nb"):
        assert store.file(make_entry(odd, tenant_id=odd, conversation_id=odd)).created
        assert store.get(odd, odd) == make_entry(odd, tenant_id=odd, conversation_id=odd)
        page = store.page(Listing.PENDING, Scope(odd, odd), limit=1, cursor=None, now=T0)
        assert ids(page.entries) == [odd]


# --- leaving pending -----------------------------------------------------------------------------------------------

BLOCKED = RequirementNotImplemented(level=ReviewRequirement.REFERRAL_REQUIRED)


def test_a_decision_is_written_whole_and_in_one_go(store):
    """DK-1: approving writes status, attestation and decision together; what it does not name stays."""
    entry = rich_entry().model_copy(update={"blocked": None})
    store.file(entry)
    amended = rich_affidavit().amend({"text": "other"}, by="r-1", entry_id="rich", at=T0)
    change = approval("rich", amendments={"text": "other"}, amended_affidavit=amended)
    applied = store.transition(TENANT, "rich", change)
    assert applied == Applied(applied=True, entry=entry.model_copy(update=dict(change.changes)))
    assert store.get(TENANT, "rich") == applied.entry
    assert applied.entry.accepted == amended
    assert applied.entry.affidavit == entry.affidavit


@pytest.mark.parametrize("act", [approval, rejection], ids=["approve", "reject"])
def test_a_decision_needs_an_instant_before_the_deadline(store, act):
    """DK-1: the boundary is inclusive; one millisecond before it a decision holds, at it no more."""
    store.file(make_entry())
    for now in (DEADLINE, DEADLINE + MILLISECOND, DEADLINE + TTL):
        assert store.transition(TENANT, "e-1", act(now=now)) == Applied(applied=False, entry=make_entry())
    assert store.transition(TENANT, "e-1", act(now=DEADLINE - MILLISECOND)).applied


def test_a_withdrawal_needs_an_instant_before_the_deadline(store):
    """DK-1, withdrawal: an expired row is not withdrawn; the boundary belongs to the deadline."""
    store.file(make_entry())
    assert not store.transition(TENANT, "e-1", withdrawal(DEADLINE)).applied
    applied = store.transition(TENANT, "e-1", withdrawal(DEADLINE - MILLISECOND))
    assert (applied.applied, applied.entry.status) == (True, ReviewStatus.WITHDRAWN)
    assert (applied.entry.attestation, applied.entry.execution) == (None, None)


def test_an_expiry_needs_an_instant_at_or_after_the_deadline(store):
    """DK-1: expired at the deadline and not before, decided at the deadline."""
    store.file(make_entry())
    assert not store.transition(TENANT, "e-1", expiry(now=DEADLINE - MILLISECOND)).applied
    applied = store.transition(TENANT, "e-1", expiry(now=DEADLINE))
    assert (applied.entry.status, applied.entry.decided_at) == (ReviewStatus.EXPIRED, DEADLINE)


def test_a_blocked_row_takes_no_decision(store):
    """AZ-4, CV-4: every decision on a blocked row is refused."""
    store.file(make_entry(blocked=BLOCKED))
    for change in (approval(), rejection()):
        assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=make_entry(blocked=BLOCKED))


def test_a_blocked_row_may_be_withdrawn(store):
    """DK-1: withdrawal is for any pending row, blocked included; the block stays on it."""
    store.file(make_entry(blocked=BLOCKED))
    applied = store.transition(TENANT, "e-1", withdrawal())
    assert (applied.applied, applied.entry.blocked) == (True, BLOCKED)


def test_a_blocked_row_expires(store):
    """DK-1: a block does not keep a row pending for ever."""
    store.file(make_entry(blocked=BLOCKED))
    store.file(make_entry("e-2", blocked=BLOCKED))
    assert store.transition(TENANT, "e-1", expiry()).applied
    assert ids(store.expire_due(DEADLINE, HERE, limit=5).entries) == ["e-2"]


LEFT = {
    "approved": approval(),
    "rejected": rejection(),
    "withdrawn": withdrawal(),
    "expired": expiry(),
}


@pytest.mark.parametrize("left", LEFT)
def test_a_row_leaves_pending_once(store, left):
    """DK-1: leaving ``pending`` is a compare-and-set; there is no other exit and no way back."""
    store.file(make_entry())
    stands = store.transition(TENANT, "e-1", LEFT[left]).entry
    assert stands.status.value == left
    for change in (approval(by="r-2"), rejection(by="r-2"), withdrawal(), expiry()):
        assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=stands)
    assert store.expire_due(DEADLINE, HERE, limit=5).entries == ()
    assert store.get(TENANT, "e-1") == stands


def test_a_standing_orders_row_never_was_pending(store):
    """DK-1: approved as it was filed, so no transition applies to it."""
    store.file(make_approved_entry())
    for change in (approval(), rejection(), withdrawal(), expiry()):
        assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=make_approved_entry())


def test_a_transition_of_no_row_is_not_applied(store):
    """DK-1: a store guards rows; it makes none."""
    assert store.transition(TENANT, "e-1", approval()) == Applied(applied=False, entry=None)


@pytest.mark.parametrize("changes", [{}, {"blocked": None}, {"tenant_id": "other"}, {"status; --": 1}])
def test_a_transition_changes_what_a_transition_may_change(changes):
    """AZ-5: the proposal, its tenant and its block are never edited."""
    with pytest.raises(ValueError, match="and nothing else"):
        Transition(TransitionGuard.OPEN, T0, changes)


def one_approval(by: str, now: datetime = T0) -> Approval:
    attestation = Attestation(by=MemberAttestor(id=by), at=now, entry_id="e-1")
    return Approval(approver=by, decision=DecisionKind.APPROVE, reason=None, at=now, attestation=attestation)


def test_one_approval_of_several_leaves_the_row_pending(store):
    """AZ-4: approvals are added one by one, each seen by the caller that adds the next."""
    requirement = Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("a", "b"), required=2)
    store.file(make_entry(requirement=requirement, approvals=()))
    first, second = one_approval("a"), one_approval("b")

    one = Transition(TransitionGuard.UNDECIDED, T0, {"approvals": (first,)}, expected_approvals=0)
    applied = store.transition(TENANT, "e-1", one)
    assert (applied.applied, applied.entry.status, applied.entry.approvals) == (True, ReviewStatus.PENDING, (first,))
    assert not store.transition(TENANT, "e-1", one).applied, "it has not seen the approval that is there by now"

    by = MultiPartyAttestor(
        approvers=(
            MemberAttestor(id="a"),
            RelayedAttestor(member_id="b", relay=RelayRef(principal="bot", channel_identity="+1", message_id="m")),
        )
    )
    fold = approval(attestation=Attestation(by=by, at=T0, entry_id="e-1"), approvals=(first, second))
    fold = Transition(fold.guard, fold.now, fold.changes, expected_approvals=1)
    applied = store.transition(TENANT, "e-1", fold)
    assert (applied.applied, applied.entry.approvals) == (True, (first, second))
    assert applied.entry == store.get(TENANT, "e-1")
    assert applied.entry.attestation.by == by


# --- after the decision --------------------------------------------------------------------------------------------


def test_an_execution_is_reported_once(store):
    """DK-1: the second report changes nothing."""
    store.file(make_entry())
    approved = store.transition(TENANT, "e-1", approval()).entry
    applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.FAILED, {"code": "TIMEOUT", "tries": 2})
    detail = {"code": "TIMEOUT", "tries": 2}
    expected = approved.model_copy(update={"execution": ExecutionOutcome.FAILED, "execution_detail": detail})
    assert applied == Applied(applied=True, entry=expected)
    again = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None)
    assert again == Applied(applied=False, entry=expected)


def test_only_an_approved_row_is_executed(store):
    """DK-1, AZ-5: no execution without an approval."""
    for name, change in LEFT.items():
        store.file(make_entry(name))
        store.transition(TENANT, name, change)
        applied = store.record_execution(TENANT, name, ExecutionOutcome.EXECUTED, None)
        assert applied.applied is (name == "approved"), name
    store.file(make_entry("pending"))
    assert not store.record_execution(TENANT, "pending", ExecutionOutcome.EXECUTED, None).applied


def test_an_approved_row_is_executed_at_any_time(store):
    """DK-1: the deadline is the decision's, not the execution's."""
    store.file(make_approved_entry(filed_at=T0 - timedelta(days=400)))
    assert store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None).applied


def test_an_approval_that_nobody_attests_is_never_executed(store):
    """AZ-5: no executor without an attested row."""
    store.file(make_entry())
    store.transition(TENANT, "e-1", approval(attestation=None))
    applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None)
    assert (applied.applied, applied.entry.execution) == (False, ExecutionOutcome.UNEXECUTED)


def test_an_execution_detail_is_json(store):
    """DECISIONS 20: what has no honest spelling is refused before anything is written."""
    store.file(make_approved_entry())
    with pytest.raises(ValueRefused, match="execution_detail"):
        store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"bytes": b"\0"})
    assert store.get(TENANT, "e-1") == make_approved_entry()
    applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"amount": Money("1.50", "EUR")})
    assert applied.entry.execution_detail == {"amount": {"amount": "1.50", "currency": "EUR"}}


def test_late_amendments_are_kept_once(store):
    """DK-1: the first late decision's amendments stay; nothing else on the row changes, its status included."""
    store.file(make_entry())
    first = late_amendments()
    kept = make_entry().model_copy(update={"preserved_amendments": first})
    assert store.preserve_amendments(TENANT, "e-1", first, DEADLINE) == Applied(applied=True, entry=kept)
    other = late_amendments(reason="other")
    assert store.preserve_amendments(TENANT, "e-1", other, DEADLINE) == Applied(applied=False, entry=kept)
    assert store.get(TENANT, "e-1") == kept


def test_amendments_are_kept_on_a_row_that_reads_expired(store):
    """DK-1: only a decision that came too late is preserved; a swept row takes it too, a decided row does not."""
    for name, change in LEFT.items():
        store.file(make_entry(name))
        store.transition(TENANT, name, change)
        assert store.preserve_amendments(TENANT, name, late_amendments(), DEADLINE).applied is (name == "expired"), name
    store.file(make_entry("pending"))
    early = DEADLINE - MILLISECOND
    assert not store.preserve_amendments(TENANT, "pending", late_amendments(early), early).applied
    assert store.preserve_amendments(TENANT, "pending", late_amendments(), DEADLINE).applied


def test_a_successor_is_recorded_once(store):
    """DK-1: a second, different successor changes nothing and returns the row."""
    store.file(make_entry(lineage=Lineage(supersedes="e-0")))
    applied = store.record_supersession(TENANT, "e-1", "e-2", DEADLINE)
    assert applied.applied
    assert applied.entry.lineage == Lineage(supersedes="e-0", superseded_by="e-2")
    again = store.record_supersession(TENANT, "e-1", "e-3", DEADLINE)
    assert again == Applied(applied=False, entry=applied.entry)


def test_a_supersession_persists_the_expiry(store):
    """DK-1: the row is expired for good from then on, decided at its deadline."""
    store.file(make_entry())
    entry = store.record_supersession(TENANT, "e-1", "e-2", DEADLINE + TTL).entry
    assert (entry.status, entry.decided_at) == (ReviewStatus.EXPIRED, DEADLINE)
    assert store.get(TENANT, "e-1") == entry
    store.file(make_entry("swept"))
    store.expire_due(DEADLINE, HERE, limit=5)
    assert store.record_supersession(TENANT, "swept", "e-3", DEADLINE + TTL).entry.decided_at == DEADLINE


def test_only_an_expired_row_is_superseded(store):
    """DK-1: resubmission is from ``expired`` alone."""
    for name, change in LEFT.items():
        store.file(make_entry(name))
        stands = store.transition(TENANT, name, change).entry
        applied = store.record_supersession(TENANT, name, "e-9", DEADLINE)
        assert applied.applied is (name == "expired"), name
        if not applied.applied:
            assert applied.entry == stands
    store.file(make_entry("pending"))
    early = store.record_supersession(TENANT, "pending", "e-9", DEADLINE - MILLISECOND)
    assert early == Applied(applied=False, entry=make_entry("pending"))


# --- listings ------------------------------------------------------------------------------------------------------


def file_many(store: DocketStore, count: int, **members: Any) -> list[str]:
    names = [f"e-{number:02d}" for number in range(count)]
    for name in names:
        store.file(make_entry(name, **members))
    return names


def test_a_row_reads_expired_from_its_deadline_on(store):
    """DK-1, DK-5: expiry is a read state, swept or not, and a row that reads expired is never offered as pending."""
    store.file(make_entry())
    assert listed(store, Listing.PENDING, now=DEADLINE - MILLISECOND) == ["e-1"]
    assert listed(store, Listing.PENDING, now=DEADLINE) == []
    (row,) = store.page(Listing.ALL, HERE, limit=5, cursor=None, now=DEADLINE).entries
    assert (row.status, row.decided_at) == (ReviewStatus.EXPIRED, DEADLINE)
    assert store.get(TENANT, "e-1") == make_entry(), "reading writes nothing"


def test_each_listing_holds_its_rows_and_no_others(store):
    """DK-5: pending rows, approved rows that nobody has executed, and all of them; each in filing order."""
    for name in ("z", "y", "x", "w", "v", "u"):
        store.file(make_entry(name))
    store.file(make_approved_entry("t"))
    store.transition(TENANT, "z", rejection())
    store.transition(TENANT, "y", approval())
    store.transition(TENANT, "w", withdrawal())
    store.transition(TENANT, "v", approval())
    store.record_execution(TENANT, "v", ExecutionOutcome.EXECUTED, None)
    assert listed(store, Listing.PENDING) == ["x", "u"]
    assert listed(store, Listing.APPROVED_UNEXECUTED) == ["y", "t"]
    assert listed(store, Listing.ALL) == ["z", "y", "x", "w", "v", "u", "t"]


@pytest.mark.parametrize("listing", list(Listing))
def test_a_listing_may_be_of_one_conversation(store, listing):
    """DK-3: a scope is a tenant, optionally one conversation."""
    make = make_approved_entry if listing is Listing.APPROVED_UNEXECUTED else make_entry
    for number in range(6):
        store.file(make(f"e-{number}", conversation_id=f"c-{number % 2}", tenant_id=("acme", "other")[number // 4]))
    assert listed(store, listing, limit=1) == ["e-0", "e-1", "e-2", "e-3"]
    assert listed(store, listing, Scope(TENANT, "c-1"), limit=1) == ["e-1", "e-3"]
    assert listed(store, listing, Scope("other", "c-1"), limit=1) == ["e-5"]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 2**40])
def test_pages_follow_each_other_without_gap_or_repetition(store, limit):
    """DK-3: all lists are paged; the last page has no cursor, even when it is full."""
    names = file_many(store, 6)
    for listing in (Listing.ALL, Listing.PENDING):
        assert listed(store, listing, limit=limit) == names
    assert store.page(Listing.ALL, HERE, limit=6, cursor=None, now=T0).next_cursor is None


def test_a_cursor_stays_good_while_rows_come_and_go(store):
    """DK-3: rows that are filed meanwhile come at the end, rows that left are not missed by others."""
    file_many(store, 4)
    first = store.page(Listing.PENDING, HERE, limit=2, cursor=None, now=T0)
    assert ids(first.entries) == ["e-00", "e-01"]
    store.file(make_entry("new"))
    store.transition(TENANT, "e-01", rejection())
    store.transition(TENANT, "e-02", rejection())
    second = store.page(Listing.PENDING, HERE, limit=2, cursor=first.next_cursor, now=T0)
    assert (ids(second.entries), second.next_cursor) == (["e-03", "new"], None)
    again = store.page(Listing.PENDING, HERE, limit=2, cursor=first.next_cursor, now=T0)
    assert again == second, "a cursor is good more than once"


def test_a_cursor_belongs_to_one_listing_and_one_scope(store):
    """DK-3: the cursor of another listing, tenant or conversation is an error, and never another page."""
    file_many(store, 3)
    cursor = store.page(Listing.ALL, HERE, limit=1, cursor=None, now=T0).next_cursor
    assert cursor is not None
    for listing, scope in (
        (Listing.PENDING, HERE),
        (Listing.APPROVED_UNEXECUTED, HERE),
        (Listing.ALL, Scope("other")),
        (Listing.ALL, Scope(TENANT, CONVERSATION)),
    ):
        with pytest.raises(CursorInvalid, match="belongs to another"):
            store.page(listing, scope, limit=1, cursor=cursor, now=T0)


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "garbage",
        "Ω",
        "\ud800",
        encoded("null"),
        encoded("{}"),
        encoded('["all","acme",null]'),
        encoded('["all","acme",null,1,2]'),
        encoded('["all","acme",null,true]'),
        encoded('["all","acme",null,1.0]'),
        encoded('["all","acme",null,"1"]'),
        encoded('["all","acme",null,-1]'),
        encoded('["all","acme",null,1e999]'),
        encoded('["all","acme",null,9223372036854775808]'),
        encoded('["all","acme",null,' + "9" * 5000 + "]"),
        encoded("[" * 100000),
        urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
    ids=range(17),
)
def test_a_cursor_that_cannot_be_read_is_an_error(store, cursor):
    """DK-3: an unreadable cursor is an error, and never the first page."""
    store.file(make_entry())
    with pytest.raises(CursorInvalid):
        store.page(Listing.ALL, HERE, limit=1, cursor=cursor, now=T0)


def test_a_cursor_beyond_the_end_is_an_empty_page(store):
    """DK-3: a position is where to go on, whether or not a row is there."""
    store.file(make_entry())
    cursor = write_cursor(Listing.ALL, HERE, 2**53 - 1)
    page = store.page(Listing.ALL, HERE, limit=1, cursor=cursor, now=T0)
    assert (page.entries, page.next_cursor) == ((), None)


@pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1", None], ids=repr)
def test_a_limit_is_a_whole_number_of_at_least_one(store, limit):
    """DK-3: nothing is ever listed or swept without a limit."""
    with pytest.raises(ValueError, match="limit"):
        store.page(Listing.ALL, HERE, limit=limit, cursor=None, now=T0)
    with pytest.raises(ValueError, match="limit"):
        store.expire_due(T0, HERE, limit=limit)


# --- sweeps --------------------------------------------------------------------------------------------------------


def test_a_sweep_moves_at_most_its_limit_and_says_whether_more_are_due(store):
    """DK-3: oldest deadline first, filing order among equals, each row decided at its own deadline."""
    deadlines = {"late": 3, "first": 1, "second": 1, "middle": 2, "not yet": 9}
    for name, minutes in deadlines.items():
        store.file(make_entry(name, expires_at=T0 + timedelta(minutes=minutes)))
    now = T0 + timedelta(minutes=3)
    one = store.expire_due(now, HERE, limit=3)
    assert (ids(one.entries), one.more) == (["first", "second", "middle"], True)
    for entry in one.entries:
        assert entry == store.get(TENANT, entry.entry_id)
        assert (entry.status, entry.decided_at) == (ReviewStatus.EXPIRED, entry.expires_at)
    two = store.expire_due(now, HERE, limit=1)
    assert (ids(two.entries), two.more) == (["late"], False)
    assert store.expire_due(now, HERE, limit=1) == store.expire_due(now, HERE, limit=2**40)
    assert listed(store, Listing.PENDING) == ["not yet"]


def test_a_sweep_begins_at_the_deadline(store):
    """DK-1: the boundary is inclusive for the sweep too."""
    store.file(make_entry())
    assert store.expire_due(DEADLINE - MILLISECOND, HERE, limit=1).entries == ()
    assert ids(store.expire_due(DEADLINE, HERE, limit=1).entries) == ["e-1"]


def test_a_sweep_keeps_to_its_scope(store):
    """DK-3: one conversation, one tenant, or, for the sweep alone, every tenant."""
    rows = (("a", "acme", "c-1"), ("b", "acme", "c-2"), ("c", "other", "c-1"), ("d", "third", "c-1"))
    for name, tenant, conversation in rows:
        store.file(make_entry(name, tenant_id=tenant, conversation_id=conversation))
    assert ids(store.expire_due(DEADLINE, Scope(TENANT, "c-2"), limit=9).entries) == ["b"]
    assert ids(store.expire_due(DEADLINE, Scope("other"), limit=9).entries) == ["c"]
    assert ids(store.expire_due(DEADLINE, Scope(None), limit=9).entries) == ["a", "d"]


def test_a_sweep_of_every_tenant_may_be_of_one_conversation(store):
    """DK-3: both halves of a scope are optional for a sweep."""
    for name, conversation in (("a", "c-1"), ("b", "c-2")):
        store.file(make_entry(name, conversation_id=conversation))
    assert ids(store.expire_due(DEADLINE, Scope(None, "c-2"), limit=9).entries) == ["b"]


def test_a_sweep_keeps_everything_else_on_the_row(store):
    """AZ-5: a sweep writes the status and the instant, nothing more."""
    entry = rich_entry().model_copy(update={"expires_at": DEADLINE})
    store.file(entry)
    (moved,) = store.expire_due(DEADLINE + TTL, HERE, limit=1).entries
    assert moved == entry.model_copy(update={"status": ReviewStatus.EXPIRED, "decided_at": DEADLINE})
    assert store.get(TENANT, "rich") == moved


def test_a_large_sweep_is_one_call(store):
    """DK-3: a limit is the caller's choice, and no bound of a database on parameters shows through."""
    for number in range(120):
        store.file(make_entry(f"e-{number}", affidavit=AFFIDAVIT))
    assert len(store.expire_due(DEADLINE, HERE, limit=1_000_000).entries) == 120


AFFIDAVIT = make_affidavit()


# --- races ---------------------------------------------------------------------------------------------------------


def test_of_sixteen_racing_decisions_exactly_one_is_applied(store):
    """DK-1: at most one of any number of racing callers leaves ``pending``; all others see the winner's row."""
    store.file(make_entry())
    acts = [
        partial(store.transition, TENANT, "e-1", act(by=f"r-{number}"))
        for number, act in enumerate([approval, rejection] * 7)
    ]
    acts += [lambda: store.transition(TENANT, "e-1", withdrawal())] * 2
    results = at_once(acts)
    assert count_applied(results) == 1
    stands = store.get(TENANT, "e-1")
    assert [result.entry for result in results] == [stands] * 16


def test_of_sixteen_racing_filings_exactly_one_creates(store):
    """DK-1: the first write wins, and everybody gets its row."""
    entries = [make_entry(requested_by=f"u-{number}") for number in range(16)]
    results = at_once([lambda entry=entry: store.file(entry) for entry in entries])
    assert sum(filed.created for filed in results) == 1
    assert {filed.entry.requested_by for filed in results} == {store.get(TENANT, "e-1").requested_by}


def test_of_racing_reports_and_successors_exactly_one_is_applied(store):
    """DK-1: an execution, a successor and a late amendment are each recorded once."""
    store.file(make_approved_entry("done"))
    store.file(make_entry("late"))
    outcomes = [ExecutionOutcome.EXECUTED, ExecutionOutcome.FAILED] * 3
    reports = [lambda outcome=outcome: store.record_execution(TENANT, "done", outcome, None) for outcome in outcomes]
    successors = [lambda n=n: store.record_supersession(TENANT, "late", f"e-{n}", DEADLINE) for n in range(5)]
    keeping = [
        partial(store.preserve_amendments, TENANT, "late", late_amendments(by=f"r-{n}"), DEADLINE) for n in range(5)
    ]
    results = at_once(reports + successors + keeping)
    assert [count_applied(results[:6]), count_applied(results[6:11]), count_applied(results[11:])] == [1, 1, 1]


def test_racing_sweeps_move_each_row_once(store):
    """DK-3: a sweep returns only the rows that this call moved, so that nobody is told twice."""
    names = file_many(store, 24)
    sweeps = at_once([lambda: store.expire_due(DEADLINE, HERE, limit=4)] * 8)
    moved = [name for sweep in sweeps for name in ids(sweep.entries)]
    assert sorted(moved) == names


def test_of_two_approvers_racing_for_the_last_place_one_folds(store):
    """AZ-4: an approval that has not seen the other one is not written over it."""
    store.file(make_entry(approvals=()))
    acts = [
        lambda by=by: store.transition(
            TENANT,
            "e-1",
            Transition(TransitionGuard.UNDECIDED, T0, {"approvals": (one_approval(by),)}, expected_approvals=0),
        )
        for by in "abcdefgh"
    ]
    assert count_applied(at_once(acts)) == 1
    assert len(store.get(TENANT, "e-1").approvals) == 1


# --- one contract --------------------------------------------------------------------------------------------------


def test_every_store_returns_the_same(tmp_path):
    """The contract: for the same calls every kind of store returns equal results; only cursors are its own."""
    everything = []
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        store = open_store(kind, tmp_path / kind)
        results: list[Any] = [store.file(entry) for entry in (rich_entry(), make_entry("a"), make_approved_entry("b"))]
        results += [store.file(make_entry("c", conversation_id="c-2")), store.file(make_entry("a", channel="mail"))]
        results += [store.transition(TENANT, "a", approval("a", amendments={"reason": None, "extra": [1.0]}))]
        names = ("a", "b", "c", "rich", "d")
        results += [store.transition(TENANT, name, change) for name in names for change in LEFT.values()]
        results += [store.record_execution(TENANT, name, ExecutionOutcome.FAILED, {"code": "X"}) for name in "abcd"]
        results += [store.preserve_amendments(TENANT, name, late_amendments(), DEADLINE) for name in "abcd"]
        results += [store.record_supersession(TENANT, name, "z", DEADLINE) for name in "abcd"]
        results += [
            store.page(listing, scope, limit=9, cursor=None, now=now)
            for listing in Listing
            for scope in (HERE, Scope(TENANT, "c-2"))
            for now in (T0, DEADLINE)
        ]
        results += [store.expire_due(deadline(T0, timedelta.max), Scope(None), limit=9)]
        results += [store.get(TENANT, name) for name in names]
        everything.append(results)
        store.close()
    for number, (one, other) in enumerate(zip(*everything, strict=True)):
        assert one == other, number


def test_a_decision_record_may_be_absent(store):
    """DK-1: a Standing Order leaves an attestation and no decision; a decision without a reason keeps its null."""
    store.file(make_approved_entry())
    assert store.get(TENANT, "e-1").decision is None
    store.file(make_entry("e-2"))
    store.transition(TENANT, "e-2", approval("e-2"))
    assert store.get(TENANT, "e-2").decision == DecisionRecord(kind=DecisionKind.APPROVE, reason=None, at=T0, by="r-1")


def test_closing_is_for_good_and_may_be_repeated(store):
    """The contract: closing releases what is held open, however often it is called."""
    store.file(make_entry())
    store.close()
    store.close()
