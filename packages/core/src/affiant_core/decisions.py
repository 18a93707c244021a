"""What a decision or a report would write on a row: pure. The gate alone hands it to the store (DK-1, AZ-4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from affiant_core.authority import Approve, Decision, Reject
from affiant_core.context import Principal, person_behind
from affiant_core.docket.model import (
    Approval,
    Attestation,
    DecisionRecord,
    DocketEntry,
    MemberAttestor,
    MultiPartyAttestor,
    RelayedAttestor,
)
from affiant_core.errors import (
    AmendmentRefused,
    ApproverAlreadyDecided,
    ApproverNotListed,
    DecisionNotAmendable,
    DecisionNotPending,
)
from affiant_core.values import JSON, spell
from affiant_core.vocabulary import DecisionKind, ExecutionOutcome, ReviewStatus

DecidingPerson: TypeAlias = MemberAttestor | RelayedAttestor


def amendments_of(decision: Decision) -> dict[str, JSON] | None:
    """The amendments as JSON data; an empty map is none (DECISIONS 18.5)."""
    if isinstance(decision, Reject) or not decision.amendments:
        return None
    if not all(isinstance(name, str) for name in decision.amendments):
        raise AmendmentRefused("an amendment is named by its field, which is text.")
    return {name: spell(value, name) for name, value in decision.amendments.items()}


def require_open(row: DocketEntry) -> None:
    """Raise ``DecisionNotPending`` unless the row is pending and not blocked; the details say what it is (DK-1)."""
    if row.status is not ReviewStatus.PENDING:
        raise DecisionNotPending(f"DK-1: the row is {row.status.value}, not pending.", status=row.status.value)
    if row.blocked is not None:
        raise DecisionNotPending(
            f"DK-1: the row is blocked ({row.blocked.code}); no decision can be taken on it.", blocked=row.blocked.code
        )


def _record(decision: Decision, principal: Principal, now: datetime) -> DecisionRecord:
    kind = DecisionKind.APPROVE if isinstance(decision, Approve) else DecisionKind.REJECT
    return DecisionRecord(kind=kind, reason=decision.reason, at=now, by=person_behind(principal))


def decided_by_one(
    row: DocketEntry,
    decision: Decision,
    amendments: dict[str, JSON] | None,
    person: DecidingPerson,
    principal: Principal,
    now: datetime,
) -> dict[str, Any]:
    """What one reviewer's decision writes on a row."""
    changes: dict[str, Any] = {
        "attestation": Attestation(by=person, at=now, entry_id=row.entry_id),
        "decision": _record(decision, principal, now),
        "decided_at": now,
    }
    if isinstance(decision, Reject):
        return {**changes, "status": ReviewStatus.REJECTED}
    changes |= {"status": ReviewStatus.APPROVED, "execution": ExecutionOutcome.UNEXECUTED}
    if amendments:
        by = person_behind(principal)
        amended = row.affidavit.amend(amendments, by=by, entry_id=row.entry_id, at=now)
        changes |= {"amendments": amendments, "amended_affidavit": amended}
    return changes


def approval_of(
    row: DocketEntry, decision: Decision, person: DecidingPerson, principal: Principal, now: datetime
) -> Approval:
    """One approver's decision, after the checks that only a ``MultiParty`` row has (AZ-4)."""
    approver = person_behind(principal)
    if approver not in (row.requirement.approvers or ()):
        raise ApproverNotListed("AZ-4: the row does not ask this person.")
    if any(approval.approver == approver for approval in row.approvals or ()):
        raise ApproverAlreadyDecided("AZ-4: this person has decided already.")
    if isinstance(decision, Approve) and decision.amendments:
        raise DecisionNotAmendable("AZ-4: a row that several people decide takes no amendments.")
    record = _record(decision, principal, now)
    return Approval(
        approver=approver,
        decision=record.kind,
        reason=record.reason,
        at=now,
        attestation=Attestation(by=person, at=now, entry_id=row.entry_id),
    )


def folded_by(row: DocketEntry, approvals: tuple[Approval, ...], now: datetime) -> dict[str, Any]:
    """What the row becomes with these approvals: still pending (nothing), approved, or rejected (AZ-4)."""
    last = approvals[-1]
    record = DecisionRecord(kind=last.decision, reason=last.reason, at=now, by=last.approver)
    if last.decision is DecisionKind.REJECT:
        return {"status": ReviewStatus.REJECTED, "decision": record, "decided_at": now}
    in_favour = [approval for approval in approvals if approval.decision is DecisionKind.APPROVE]
    if len(in_favour) < (row.requirement.required or len(row.requirement.approvers or ())):
        return {}
    people = MultiPartyAttestor(
        approvers=tuple(
            approval.attestation.by
            for approval in in_favour
            if isinstance(approval.attestation.by, MemberAttestor | RelayedAttestor)
        )
    )
    return {
        "status": ReviewStatus.APPROVED,
        "execution": ExecutionOutcome.UNEXECUTED,
        "attestation": Attestation(by=people, at=now, entry_id=row.entry_id),
        "decision": record,
        "decided_at": now,
    }


def execution_detail_of(detail: Mapping[str, object] | None) -> dict[str, JSON] | None:
    """An execution detail as JSON data. Raises ``TypeError`` unless it is an object with a ``code`` (DK-1)."""
    if detail is None:
        return None
    if not isinstance(detail, Mapping) or not isinstance(detail.get("code"), str) or not detail["code"]:
        raise TypeError("an execution detail is an object with a 'code', such as {'code': 'row-updated'}.")
    return {str(name): spell(value, f"detail.{name}") for name, value in detail.items()}
