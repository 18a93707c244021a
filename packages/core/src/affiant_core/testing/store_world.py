"""What the store suite is played with: rows, the acts on them, and threads that act at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.docket.model import (
    Approval,
    Attestation,
    CoverageBlocked,
    DecisionRecord,
    DocketEntry,
    FieldHint,
    Lineage,
    MemberAttestor,
    Presentation,
    PreservedAmendments,
    Requirement,
    RequirementNotImplemented,
    StandingOrderAttestor,
    deadline,
)
from affiant_core.docket.store import Applied, DocketStore, Listing, Scope, Transition, TransitionGuard
from affiant_core.provenance import ExternalRef, FormInput, ProvenanceTag
from affiant_core.values import Money
from affiant_core.vocabulary import (
    CoverageCategory,
    DecisionKind,
    ExecutionOutcome,
    FieldKind,
    ReviewRequirement,
    ReviewStatus,
)

T0: datetime = datetime(2026, 9, 4, 9, tzinfo=UTC)
"""When the rows are filed."""

TTL: timedelta = timedelta(minutes=15)
DEADLINE: datetime = T0 + TTL
MILLISECOND: timedelta = timedelta(milliseconds=1)

TENANT: str = "acme"
CONVERSATION: str = "c-1"
HERE: Scope = Scope(TENANT)

BLOCKED: RequirementNotImplemented = RequirementNotImplemented(level=ReviewRequirement.REFERRAL_REQUIRED)
"""Why a row takes no decision."""

ANY_MESSAGE: str = r"."
"""What a refusal must say: something. In which words is the store's own affair."""


# --- rows ----------------------------------------------------------------------------------------------------------


def make_affidavit(values: dict[str, object] | None = None, *, at: datetime = T0) -> Affidavit:
    """A sworn record, as the gate normalises it before it files."""
    tag = ProvenanceTag.user_stated(binding=FormInput.of("form"), at=at)
    fields = [AffidavitField.of(name, value, tag) for name, value in (values or {"reason": "holiday"}).items()]
    return Affidavit.create(operation_type="create", entity_type="Leave", fields=fields, created_at=at)


def make_entry(entry_id: str = "e-1", **members: Any) -> DocketEntry:
    """A pending row; any member may be given another value."""
    filed_at = members.get("filed_at", T0)
    standard: dict[str, Any] = {
        "entry_id": entry_id,
        "tenant_id": TENANT,
        "conversation_id": CONVERSATION,
        "channel": "chat",
        "tool_name": "request_leave",
        "affidavit": make_affidavit({"reason": f"holiday {entry_id}"}),
        "requirement": Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION),
        "filed_at": filed_at,
        "expires_at": filed_at + TTL,
        "presentation": Presentation(),
        "requested_by": "u-1",
    }
    return DocketEntry(**(standard | members))


def make_approved_entry(entry_id: str = "e-1", **members: Any) -> DocketEntry:
    """A row that a Standing Order approved as it was filed."""
    at = members.get("filed_at", T0)
    by = StandingOrderAttestor(policy_id="small-change", version="1")
    approved = {
        "requirement": Requirement(kind=ReviewRequirement.STANDING_ORDER),
        "status": ReviewStatus.APPROVED,
        "execution": ExecutionOutcome.UNEXECUTED,
        "attestation": Attestation(by=by, at=at, entry_id=entry_id),
        "decided_at": at,
    }
    return make_entry(entry_id, **(approved | members))


def rich_affidavit(operation: str = "update") -> Affidavit:
    """A sworn record with every sort of value that is hard to keep, and with provenance of several sources."""
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
    """A pending row with everything that a pending row can have."""
    hints = (
        FieldHint(name="text", kind=FieldKind.TEXT, allowed_values=("a", {"b": [1]}, None, 2.0), pattern="^.*$"),
        FieldHint(name="empty"),
    )
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
            hints=hints,
            warnings=("first", "second ✓"),
            gate_warnings=("third",),
            host_operation="ApproveLeave",
            prior_amendments={"text": None, "nested": {"a": [1]}},
        ),
        requested_by=None,
    )


def file_many(store: DocketStore, count: int) -> list[str]:
    """File so many rows, and name them."""
    names = [f"e-{number:02d}" for number in range(count)]
    for name in names:
        store.file(make_entry(name))
    return names


# --- acts ----------------------------------------------------------------------------------------------------------


def approval(entry_id: str = "e-1", now: datetime = T0, by: str = "r-1", **more: Any) -> Transition:
    """A person approves."""
    changes = {
        "status": ReviewStatus.APPROVED,
        "execution": ExecutionOutcome.UNEXECUTED,
        "attestation": Attestation(by=MemberAttestor(id=by), at=now, entry_id=entry_id),
        "decision": DecisionRecord(kind=DecisionKind.APPROVE, reason=None, at=now, by=by),
        "decided_at": now,
    }
    return Transition(TransitionGuard.UNDECIDED, now, changes | more)


def one_approval(by: str, now: datetime = T0) -> Approval:
    """One approval of the several that a row needs."""
    attestation = Attestation(by=MemberAttestor(id=by), at=now, entry_id="e-1")
    return Approval(approver=by, decision=DecisionKind.APPROVE, reason=None, at=now, attestation=attestation)


def rejection(entry_id: str = "e-1", now: datetime = T0, by: str = "r-1") -> Transition:
    """A person rejects."""
    changes = {
        "status": ReviewStatus.REJECTED,
        "attestation": Attestation(by=MemberAttestor(id=by), at=now, entry_id=entry_id),
        "decision": DecisionRecord(kind=DecisionKind.REJECT, reason="no", at=now, by=by),
        "decided_at": now,
    }
    return Transition(TransitionGuard.UNDECIDED, now, changes)


def withdrawal(now: datetime = T0, by: str = "u-1") -> Transition:
    """The host withdraws."""
    decision = DecisionRecord(kind=DecisionKind.WITHDRAW, reason="changed my mind", at=now, by=by)
    changes = {"status": ReviewStatus.WITHDRAWN, "decision": decision, "decided_at": now}
    return Transition(TransitionGuard.OPEN, now, changes)


def expiry(deadline: datetime = DEADLINE, now: datetime = DEADLINE) -> Transition:
    """The gate persists what the row reads anyway."""
    return Transition(TransitionGuard.DUE, now, {"status": ReviewStatus.EXPIRED, "decided_at": deadline})


LEFT: Mapping[str, Transition] = {
    "approved": approval(),
    "rejected": rejection(),
    "withdrawn": withdrawal(),
    "expired": expiry(),
}
"""Every way out of ``pending``, by the status that it leads to."""


def late_amendments(now: datetime = DEADLINE, by: str = "r-1", reason: str = "wedding") -> PreservedAmendments:
    """What a decision that came too late would have changed."""
    return PreservedAmendments(amendments={"reason": reason}, at=now, by=by)


# --- reading -------------------------------------------------------------------------------------------------------


def ids(entries: Iterable[DocketEntry]) -> list[str]:
    """The ids of some rows, in their order."""
    return [entry.entry_id for entry in entries]


def stored(store: DocketStore, entry_id: str = "e-1", tenant_id: str = TENANT) -> DocketEntry:
    """The row as it is stored. There must be one."""
    row = store.get(tenant_id, entry_id)
    assert row is not None, f"the tenant {tenant_id!r} has no row {entry_id!r}"
    return row


def row_of(applied: Applied) -> DocketEntry:
    """The row that an act came back with. There must be one."""
    assert applied.entry is not None, "the act came back with no row"
    return applied.entry


def listed(
    store: DocketStore, listing: Listing, scope: Scope = HERE, *, limit: int = 100, now: datetime = T0
) -> list[str]:
    """The ids of a whole listing, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = store.page(listing, scope, limit=limit, cursor=cursor, now=now)
        assert len(page.entries) <= limit, "a page is longer than its limit"
        found += ids(page.entries)
        if page.next_cursor is None:
            return found
        assert page.next_cursor != cursor, "a cursor leads to itself"
        cursor = page.next_cursor


# --- at the same time ----------------------------------------------------------------------------------------------


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """What ``calls`` return, or raise, when threads make them all at the same moment, in their order."""
    waiting = list(calls)
    start = threading.Barrier(len(waiting))
    results: list[Any] = [TimeoutError("the call has not come back")] * len(waiting)

    def run(index: int) -> None:
        start.wait(30)
        try:
            results[index] = waiting[index]()
        except BaseException as error:  # noqa: BLE001  # whoever reads the results raises it
            results[index] = error

    # As daemons they do not keep a run alive whose store has locked itself up.
    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(waiting))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def succeeded(results: Iterable[Any]) -> list[Any]:
    """The results of calls made at once. Raises what the first failed one raised."""
    found = list(results)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return found


def count_applied(results: Iterable[Any]) -> int:
    """How many of the results are applied writes. Raises what the first failed call raised."""
    applied = 0
    for result in succeeded(results):
        assert isinstance(result, Applied), f"a guarded write came back with {result!r}"
        applied += result.applied
    return applied
