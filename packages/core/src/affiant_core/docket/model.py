"""The Docket row and the pieces that it is made of (DK-1; RULES, "Row at 0.5.0")."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StrictInt

from affiant_core.affidavit import Affidavit
from affiant_core.provenance import RelayRef
from affiant_core.values import JSON
from affiant_core.vocabulary import (
    CoverageCategory,
    DecisionKind,
    ExecutionOutcome,
    FieldKind,
    ReviewRequirement,
    ReviewStatus,
)
from affiant_core.wire import (
    PROTOCOL_VERSION,
    Identifier,
    Instant,
    JsonObject,
    JsonValue,
    ProtocolVersion,
    SparseModel,
    Text,
    WireModel,
    word_of,
)


def row_status(value: object) -> ReviewStatus:
    """A row's status from a member or its exact spelling. ``deferred`` is reserved and no row holds it (DK-1)."""
    status = word_of(ReviewStatus)(value)
    if status is ReviewStatus.DEFERRED:
        raise ValueError("'deferred' is reserved; no row holds it.")
    return status


_STATUS = BeforeValidator(row_status)
_EXECUTION = BeforeValidator(word_of(ExecutionOutcome))


# --- who decided ---------------------------------------------------------------------------------------------------


class MemberAttestor(WireModel):
    """A person decided."""

    kind: Literal["member"] = "member"
    id: Identifier


class RelayedAttestor(WireModel):
    """A person decided, and a service passed the message on (AZ-3)."""

    kind: Literal["member-via-relay"] = "member-via-relay"
    member_id: Identifier
    relay: RelayRef


class StandingOrderAttestor(WireModel):
    """A policy decided with nobody present (AZ-1)."""

    kind: Literal["standing-order"] = "standing-order"
    policy_id: Identifier
    version: Identifier


PersonAttestor = Annotated[MemberAttestor | RelayedAttestor, Field(discriminator="kind")]


class MultiPartyAttestor(WireModel):
    """Several people decided together: those whose approvals folded the row, in record order (AZ-1, AZ-4)."""

    kind: Literal["multi-party"] = "multi-party"
    approvers: tuple[PersonAttestor, ...]


Attestor = Annotated[
    MemberAttestor | RelayedAttestor | StandingOrderAttestor | MultiPartyAttestor, Field(discriminator="kind")
]


class Attestation(WireModel):
    """The proof on a row of who let it through, or turned it down (AZ-1)."""

    by: Attestor
    at: Instant
    entry_id: Identifier


class DecisionRecord(WireModel):
    """What was decided, why, when and by which person. A Standing Order leaves an attestation and no decision."""

    kind: Annotated[DecisionKind, BeforeValidator(word_of(DecisionKind))]
    reason: Text | None
    at: Instant
    by: Identifier


class PreservedAmendments(WireModel):
    """What a decision that came too late would have changed, kept for a resubmission (DK-1)."""

    amendments: JsonObject
    at: Instant
    by: Identifier


# --- what is asked for, and what stands in the way -----------------------------------------------------------------


class Requirement(SparseModel):
    """What the policy asked for. ``approvers`` and ``required`` belong to ``MultiParty`` alone (AZ-4)."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"approvers", "required"})
    kind: Annotated[ReviewRequirement, BeforeValidator(word_of(ReviewRequirement))]
    approvers: tuple[Identifier, ...] | None = None
    required: StrictInt | None = None


class RequirementNotImplemented(WireModel):
    """Blocked: this version does not run the level that the policy asked for, and never runs a weaker one (AZ-4)."""

    code: Literal["requirement-not-implemented"] = "requirement-not-implemented"
    level: Annotated[ReviewRequirement, BeforeValidator(word_of(ReviewRequirement))]


class CoverageBlocked(WireModel):
    """Blocked: the host declared that the gate cannot stand in front of this tool (CV-4)."""

    code: Literal["coverage-refused"] = "coverage-refused"
    category: Annotated[CoverageCategory, BeforeValidator(word_of(CoverageCategory))]
    tool_name: Identifier


Blocked: TypeAlias = Annotated[RequirementNotImplemented | CoverageBlocked, Field(discriminator="code")]


class Approval(WireModel):
    """One approver's decision on a ``MultiParty`` row."""

    approver: Identifier
    decision: Annotated[DecisionKind, BeforeValidator(word_of(DecisionKind))]
    reason: Text | None
    at: Instant
    attestation: Attestation


class Lineage(WireModel):
    """Which row this one replaces, and which one replaced it, on resubmission."""

    supersedes: Identifier | None = None
    superseded_by: Identifier | None = None


# --- presentation and the row --------------------------------------------------------------------------------------


class FieldHint(SparseModel):
    """How a card shows one field. A hint never constrains the value."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"kind", "allowedValues", "pattern"})
    name: Identifier
    kind: Annotated[FieldKind, BeforeValidator(word_of(FieldKind))] | None = None
    allowed_values: tuple[JsonValue, ...] | None = None
    pattern: Text | None = None


class Presentation(WireModel):
    """What a card shows beside the sworn record; stored with the row, never hashed (SR-1)."""

    hints: tuple[FieldHint, ...] = ()
    warnings: tuple[Text, ...] = ()
    """The record's own warnings, which a resubmission carries on."""
    gate_warnings: tuple[Text, ...] = ()
    """What the gate has to say about this filing: why a verdict was not honoured, why the row is blocked."""
    host_operation: Identifier | None = None
    prior_amendments: JsonObject | None = None


class DocketEntry(WireModel):
    """One row of the Docket: the only authority on what was proposed, decided and done (AZ-5, DK-1).

    ``presentation`` and ``requested_by`` (the principal whose turn filed the row) are the store's own: they are kept
    with the row and are not part of the protocol's record.
    """

    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    entry_id: Identifier
    tenant_id: Identifier
    conversation_id: Identifier
    channel: Identifier
    tool_name: Identifier
    affidavit: Affidavit
    amended_affidavit: Affidavit | None = None
    requirement: Requirement
    status: Annotated[ReviewStatus, _STATUS] = ReviewStatus.PENDING
    execution: Annotated[ExecutionOutcome, _EXECUTION] | None = None
    blocked: Blocked | None = None
    approvals: tuple[Approval, ...] | None = None
    attestation: Attestation | None = None
    amendments: JsonObject | None = None
    preserved_amendments: PreservedAmendments | None = None
    decision: DecisionRecord | None = None
    lineage: Lineage = Field(default_factory=Lineage)
    filed_at: Instant
    expires_at: Instant
    decided_at: Instant | None = None
    execution_detail: JsonObject | None = None
    presentation: Presentation = Field(default_factory=Presentation, exclude=True)
    requested_by: str | None = Field(default=None, exclude=True)

    required_on_wire: ClassVar[frozenset[str]] = frozenset(
        {
            "protocolVersion", "amendedAffidavit", "status", "execution", "blocked", "approvals", "attestation",
            "amendments", "preservedAmendments", "decision", "lineage", "decidedAt", "executionDetail",
        }
    )  # fmt: skip

    @property
    def accepted(self) -> Affidavit:
        """The state that counts: the amended record if there is one, else the proposal. What an executor writes."""
        return self.amended_affidavit or self.affidavit

    @property
    def canonical_hash(self) -> str:
        """The hash of the accepted state: the host's idempotency key for the write (SR-1)."""
        return self.accepted.canonical_hash()

    def detached(self) -> DocketEntry:
        """The same row with copies of whatever in it could be changed; the records themselves are frozen."""
        own: dict[str, Any] = {}
        for name in ("affidavit", "amended_affidavit"):
            held = getattr(self, name)
            if held is not None and (copy := held.detached()) is not held:
                own[name] = copy
        for name in ("amendments", "preserved_amendments", "execution_detail"):
            if (held := getattr(self, name)) is not None:
                own[name] = deepcopy(held)
        if self.presentation.hints or self.presentation.prior_amendments is not None:
            own["presentation"] = deepcopy(self.presentation)
        return self.model_copy(update=own) if own else self

    def has_reached_deadline(self, now: datetime) -> bool:
        """Whether ``now`` is at or after the deadline; the boundary belongs to the deadline (DK-1)."""
        return now >= self.expires_at

    def as_read(self, now: datetime) -> DocketEntry:
        """The row as it reads at ``now``: a pending row at or past its deadline reads expired, swept or not (DK-1)."""
        if self.status is ReviewStatus.PENDING and self.has_reached_deadline(now):
            return self.model_copy(update={"status": ReviewStatus.EXPIRED, "decided_at": self.expires_at})
        return self

    def to_json(self) -> dict[str, JSON]:
        """The protocol's record of this row: its 23 members and no more."""
        record = self.model_dump(mode="json", exclude={"affidavit", "amended_affidavit"})
        in_order: dict[str, JSON] = {}
        for key, value in record.items():
            in_order[key] = value
            if key == "toolName":
                in_order["affidavit"] = self.affidavit.sworn()
                in_order["amendedAffidavit"] = (
                    None if self.amended_affidavit is None else self.amended_affidavit.sworn()
                )
        return in_order


def deadline(filed_at: datetime, ttl: timedelta) -> datetime:
    """``filed_at`` plus ``ttl``; the last representable instant when the sum lies beyond the calendar."""
    try:
        return filed_at + ttl
    except OverflowError:
        return datetime.max.replace(microsecond=999_000, tzinfo=filed_at.tzinfo)
