"""From a proposal to the row that is filed for it: pure, so that the gate reads as its order of steps (GT-3, GT-4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from affiant_core.affidavit import Affidavit
from affiant_core.canonical import canonical_hash
from affiant_core.card import present
from affiant_core.context import ActContext, person_behind
from affiant_core.docket.model import (
    Attestation,
    Blocked,
    CoverageBlocked,
    DocketEntry,
    Lineage,
    RequirementNotImplemented,
    StandingOrderAttestor,
    deadline,
)
from affiant_core.entry_id import derive_entry_id
from affiant_core.envelope import ProposedOperation
from affiant_core.policy import Ruling
from affiant_core.values import JSON
from affiant_core.vocabulary import CoverageCategory, ExecutionOutcome, ReviewRequirement, ReviewStatus, operation_shape

NOT_RUN_HERE = frozenset({ReviewRequirement.REFERRAL_REQUIRED})
"""Requirement levels that this version files blocked, never weakened (AZ-4)."""

UNVERSIONED = "unversioned"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is put before the gate: the record, and what its identity is derived from."""

    tool_name: str
    affidavit: Affidavit
    conversation_id: str
    arguments: Mapping[str, JSON] | None = None
    operation: ProposedOperation | None = None
    entry_id: str | None = None
    supersedes: str | None = None
    prior_amendments: dict[str, JSON] | None = None
    requested_by: str | None = None
    """Whose turn proposed it first, on a resubmission: passing it on makes nobody else its author (C12)."""

    def identity(self, tenant_id: str) -> str:
        """The host's own id for the row, or else the derived one (GT-4)."""
        if self.entry_id is not None:
            return self.entry_id
        operation = self.operation or ProposedOperation.from_affidavit(self.affidavit)
        return derive_entry_id(
            tenant_id=tenant_id,
            conversation_id=self.conversation_id,
            tool_name=self.tool_name,
            operation_kind=operation.kind,
            entity_type=operation.entity_type,
            entity_id=operation.entity_id,
            fields=operation.fields,
            arguments=self.arguments,
            supersedes=self.supersedes,
        )


def sworn_state(affidavit: Affidavit, now: datetime) -> Affidavit:
    """The record as a row holds it: shape for verb, no presentation, numbers computed again, a creation instant."""
    fields = [
        field.model_copy(update={"allowed_values": None, "pattern": None})
        if field.allowed_values is not None or field.pattern is not None
        else field
        for field in affidavit.fields
    ]
    state = affidavit.model_copy(
        update={
            "operation_type": operation_shape(affidavit.operation_type),
            "warnings": (),
            "requires_confirmation": True,
            "created_at": affidavit.created_at or now,
        }
    )
    return state.with_fields(fields)


def write_hash(affidavit: Affidavit) -> str:
    """The canonical hash of what a record would change: its operation, its entity, each field's old and new value.

    Two calls never share their instants, and seldom their spans, so a replay is compared without them (DECISIONS 9).
    """
    return canonical_hash(
        {
            "operationType": operation_shape(affidavit.operation_type),
            "entityType": affidavit.entity_type,
            "entityId": affidavit.entity_id,
            "fields": [[field.name, field.previous_value, field.value] for field in affidavit.fields],
        }
    )


def blocked_marker(tool_name: str, category: CoverageCategory | None, ruling: Ruling) -> Blocked | None:
    """What keeps a row from being decided, if anything: an uncovered tool first, then a level that is not run."""
    if category is not None:
        return CoverageBlocked(category=category, tool_name=tool_name)
    if ruling.requirement.kind in NOT_RUN_HERE:
        return RequirementNotImplemented(level=ruling.requirement.kind)
    return None


def build_row(
    proposal: Proposal,
    context: ActContext,
    ruling: Ruling,
    *,
    entry_id: str,
    now: datetime,
    category: CoverageCategory | None,
) -> DocketEntry:
    """The row to file: pending, or approved on the spot by the Standing Order that fired (DK-1, AZ-1)."""
    blocked = blocked_marker(proposal.tool_name, category, ruling)
    warnings = (*ruling.warnings, *_blocked_warnings(blocked))
    row = DocketEntry(
        entry_id=entry_id,
        tenant_id=context.tenant_id,
        conversation_id=proposal.conversation_id,
        channel=context.channel,
        tool_name=proposal.tool_name,
        affidavit=sworn_state(proposal.affidavit, now),
        requirement=ruling.requirement,
        blocked=blocked,
        approvals=() if ruling.requirement.kind is ReviewRequirement.MULTI_PARTY else None,
        lineage=Lineage(supersedes=proposal.supersedes),
        filed_at=now,
        expires_at=deadline(now, ruling.ttl),
        presentation=present(proposal.affidavit, warnings, proposal.prior_amendments),
        requested_by=proposal.requested_by or (person_behind(context.principal) if context.principal else None),
    )
    if blocked is not None or ruling.requirement.kind is not ReviewRequirement.STANDING_ORDER:
        return row
    attestor = StandingOrderAttestor(
        policy_id=ruling.policy_id or UNVERSIONED, version=ruling.policy_version or UNVERSIONED
    )
    return row.model_copy(
        update={
            "status": ReviewStatus.APPROVED,
            "execution": ExecutionOutcome.UNEXECUTED,
            "attestation": Attestation(by=attestor, at=now, entry_id=entry_id),
            "decided_at": now,
        }
    )


def _blocked_warnings(blocked: Blocked | None) -> tuple[str, ...]:
    match blocked:
        case CoverageBlocked(category=category, tool_name=tool_name):
            return (
                f"CV-4: {tool_name!r} is declared uncovered ({category.value}); the proposal is on record "
                "and no decision can be taken on it.",
            )
        case RequirementNotImplemented(level=level):
            return (f"AZ-4: {level.value} is not implemented in this version; no decision can be taken on this row.",)
        case _:
            return ()
