"""What a reviewer is shown, what a caller is told of a decision, and what a transport carries (SR, "Card")."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import BeforeValidator, Field, StrictInt, field_serializer, model_validator

from affiant_core.affidavit import Affidavit
from affiant_core.docket.model import Attestation, Blocked, DocketEntry, FieldHint, Presentation, row_status
from affiant_core.values import JSON
from affiant_core.vocabulary import (
    DecisionKind,
    DecisionOutcome,
    ExecutionOutcome,
    ReviewRequirement,
    ReviewStatus,
    TransportEvent,
)
from affiant_core.wire import (
    PROTOCOL_VERSION,
    Count,
    Flag,
    Identifier,
    Instant,
    JsonObject,
    Number,
    ProtocolVersion,
    SparseModel,
    Text,
    WireModel,
    word_of,
)


class CardApprover(WireModel):
    """One approver of a ``MultiParty`` row and what they have decided so far."""

    id: Identifier
    decided: Annotated[DecisionKind, BeforeValidator(word_of(DecisionKind))] | None


class CardMultiParty(WireModel):
    """The approvers that a ``MultiParty`` row waits for, in requirement order, and how many it needs."""

    approvers: tuple[CardApprover, ...]
    required: Annotated[StrictInt, Field(ge=1)]


class EvidenceCard(SparseModel):
    """The envelope shown to a reviewer: the sworn record, its numbers, its deadline, and what stands in the way.

    Repeats are idempotent by ``docket_id``: a card may be delivered more than once.
    """

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"presentation", "warnings", "hostOperation", "multiParty"})
    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion"})

    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    docket_id: Identifier
    affidavit: Affidavit
    required_by: Instant
    prior_amendments: JsonObject | None
    populated_confidence: Annotated[Number, Field(ge=0, le=1)] | None
    empty_field_count: Count
    blocked: Blocked | None
    presentation: tuple[FieldHint, ...] | None = None
    warnings: tuple[Text, ...] | None = None
    host_operation: Identifier | None = None
    multi_party: CardMultiParty | None = None
    requires_confirmation: Flag

    @model_validator(mode="after")
    def _hints_name_sworn_fields(self) -> Self:
        names = self.affidavit.field_names
        if any(hint.name not in names for hint in self.presentation or ()):
            raise ValueError("presentation names a field that the record does not propose.")
        return self

    @field_serializer("affidavit")
    def _write_affidavit(self, affidavit: Affidavit) -> dict[str, Any]:
        return affidavit.sworn()


def card_for(entry: DocketEntry, now: datetime) -> EvidenceCard:
    """The card of a row as it reads at ``now``. Its numbers are the accepted record's own (AF-2).

    ``requires_confirmation`` is true only for a row that reads pending and is not blocked (AZ-4).
    """
    row = entry.as_read(now)
    record = row.accepted
    shown = row.presentation
    # An accepted amendment may have taken an optional field off the record (AF-1).
    hints = tuple(hint for hint in shown.hints if hint.name in record.field_names)
    return EvidenceCard(
        protocol_version=row.protocol_version,
        docket_id=row.entry_id,
        affidavit=record,
        required_by=row.expires_at,
        prior_amendments=shown.prior_amendments,
        populated_confidence=record.populated_confidence,
        empty_field_count=record.empty_field_count,
        blocked=row.blocked,
        presentation=hints or None,
        warnings=(*shown.warnings, *shown.gate_warnings) or None,
        host_operation=shown.host_operation,
        multi_party=_multi_party(row),
        requires_confirmation=row.status is ReviewStatus.PENDING and row.blocked is None,
    )


def _multi_party(row: DocketEntry) -> CardMultiParty | None:
    requirement = row.requirement
    if requirement.kind is not ReviewRequirement.MULTI_PARTY or not requirement.approvers:
        return None
    decided = {approval.approver: approval.decision for approval in row.approvals or ()}
    return CardMultiParty(
        approvers=tuple(CardApprover(id=approver, decided=decided.get(approver)) for approver in requirement.approvers),
        required=requirement.required or len(requirement.approvers),
    )


def present(
    affidavit: Affidavit, gate_warnings: tuple[str, ...] = (), prior_amendments: dict[str, JSON] | None = None
) -> Presentation:
    """What a record says beside its oath: hints for fields that have any, warnings, and the host's own verb."""
    hints = tuple(
        FieldHint(name=field.name, kind=field.kind, allowed_values=field.allowed_values, pattern=field.pattern)
        for field in affidavit.fields
        if field.allowed_values is not None or field.pattern is not None
    )
    verb = affidavit.operation_type
    return Presentation(
        hints=hints,
        warnings=affidavit.warnings,
        gate_warnings=gate_warnings,
        host_operation=None if verb in {"create", "update"} else verb,
        prior_amendments=prior_amendments,
    )


class DecisionResult(WireModel):
    """What an act on a row came to, for the caller: the attestation stands only on an approval (SR)."""

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion"})
    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    docket_id: Identifier
    outcome: Annotated[DecisionOutcome, BeforeValidator(word_of(DecisionOutcome))]
    attestation: Attestation | None
    execution: Annotated[ExecutionOutcome, BeforeValidator(word_of(ExecutionOutcome))] | None


def decision_result(entry: DocketEntry) -> DecisionResult:
    """The result of the act that left ``entry`` as it is. Raises ``ValueError`` for a row that is still pending."""
    if entry.status in (ReviewStatus.PENDING, ReviewStatus.DEFERRED):
        raise ValueError(f"row {entry.entry_id} is {entry.status.value}; nothing has been decided.")
    outcome = DecisionOutcome(entry.status.value)
    if outcome is DecisionOutcome.EXPIRED and entry.lineage.superseded_by is not None:
        outcome = DecisionOutcome.RESUBMITTED
    approved = entry.status is ReviewStatus.APPROVED
    return DecisionResult(
        protocol_version=entry.protocol_version,
        docket_id=entry.entry_id,
        outcome=outcome,
        attestation=entry.attestation if approved else None,
        execution=entry.execution,
    )


class DocketExpiring(WireModel):
    """Notification: a row's deadline is near."""

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion", "kind"})
    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    kind: Literal["docket-expiring"] = "docket-expiring"
    docket_id: Identifier
    expires_at: Instant


class DocketExpired(WireModel):
    """Notification: a row's deadline has passed."""

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion", "kind"})
    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    kind: Literal["docket-expired"] = "docket-expired"
    docket_id: Identifier


class DocketTransition(WireModel):
    """Notification: a row changed state."""

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion", "kind"})
    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    kind: Literal["docket-transition"] = "docket-transition"
    docket_id: Identifier
    from_: Annotated[ReviewStatus, BeforeValidator(row_status)] = Field(alias="from")
    to: Annotated[ReviewStatus, BeforeValidator(row_status)]
    execution: Annotated[ExecutionOutcome, BeforeValidator(word_of(ExecutionOutcome))] | None


class SystemNotification(WireModel):
    """A word from the system to the people in a conversation; ``level`` is ``warning`` or ``error``."""

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"protocolVersion"})
    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    level: Literal["warning", "error"]
    message: Text


class Transport(Protocol):
    """How cards and notifications reach people. The gate tries a card twice and files the row all the same (GT-4)."""

    def send(self, event: TransportEvent, payload: WireModel, *, group: str) -> Awaitable[None] | None:
        """Deliver ``payload`` to everyone who listens to the conversation ``group``. Raise when that fails."""
        ...
