"""The closed sets of words that cross the wire, each spelled as the protocol's schemas freeze it (seed; SR-3)."""

from __future__ import annotations

from enum import StrEnum


class ProvenanceSource(StrEnum):
    """Where a value came from, from the most to the least deterministic (PV-1). PascalCase on the wire."""

    USER_STATED = "UserStated"
    EXTERNAL = "External"
    COMPUTED = "Computed"
    CONVERSATION = "Conversation"
    INFERRED = "Inferred"
    DEFAULT = "Default"
    EMPTY = "Empty"

    @property
    def rank(self) -> int:
        """0 for the most deterministic source, 6 for ``Empty``; the tie-break of a merge (PV-1)."""
        return _RANKS[self]

    @property
    def outranks_conversation(self) -> bool:
        """Whether the source claims more than "it was said in the conversation" (PV-4)."""
        return self.rank < _RANKS[ProvenanceSource.CONVERSATION]


_RANKS = {source: rank for rank, source in enumerate(ProvenanceSource)}


class ReviewRequirement(StrEnum):
    """What a verdict asks for before the write may happen (AZ-4). PascalCase."""

    STANDING_ORDER = "StandingOrder"
    REVIEWER_CONFIRMATION = "ReviewerConfirmation"
    REFERRAL_REQUIRED = "ReferralRequired"
    MULTI_PARTY = "MultiParty"


class ApprovalDecision(StrEnum):
    """A reviewer's answer as a transport carries it. PascalCase; the protocol names no members, these are ours."""

    APPROVED = "Approved"
    REJECTED = "Rejected"


class ReviewStatus(StrEnum):
    """The state of a Docket row (DK-1). Lowercase. ``deferred`` is reserved by the protocol and never written."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    DEFERRED = "deferred"


class ExecutionOutcome(StrEnum):
    """What became of an approved write (DK-1). Lowercase."""

    UNEXECUTED = "unexecuted"
    EXECUTED = "executed"
    FAILED = "failed"


class DecisionOutcome(StrEnum):
    """What an act on a row came to (SR, decision result). Lowercase."""

    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    RESUBMITTED = "resubmitted"
    WITHDRAWN = "withdrawn"


class CoverageCategory(StrEnum):
    """Why the gate cannot stand in front of a tool (CV-4). Kebab-case."""

    NO_EXECUTE = "no-execute"
    PROVIDER_EXECUTED = "provider-executed"
    HOSTED_MCP = "hosted-mcp"


class DecisionKind(StrEnum):
    """The kind on a row's decision record, in the schema's lowercase spelling."""

    APPROVE = "approve"
    REJECT = "reject"
    WITHDRAW = "withdraw"


class FieldKind(StrEnum):
    """How a field is shown and edited. It never constrains the value (AF)."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    ENUM = "enum"


class TransportEvent(StrEnum):
    """What a transport delivers. A client subscribes to ``client_event_name``, not to the member's own name (seed)."""

    EVIDENCE_CARD_REQUEST = "EvidenceCardRequest"
    EVIDENCE_CARD_RESPONSE = "EvidenceCardResponse"
    AGENT_MESSAGE = "AgentMessage"
    CONTEXT_UPDATE = "ContextUpdate"
    SYSTEM_NOTIFICATION = "SystemNotification"
    DOCKET_EXPIRING = "DocketExpiring"
    DOCKET_EXPIRED = "DocketExpired"
    UI_GUIDANCE = "UiGuidance"

    @property
    def client_event_name(self) -> str:
        """The name that a client listens for."""
        return _CLIENT_EVENT_NAMES[self]


_CLIENT_EVENT_NAMES = {
    TransportEvent.EVIDENCE_CARD_REQUEST: "ConfirmAction",
    TransportEvent.EVIDENCE_CARD_RESPONSE: "EvidenceCardResponse",
    TransportEvent.AGENT_MESSAGE: "ReceiveToken",
    TransportEvent.CONTEXT_UPDATE: "ContextUpdated",
    TransportEvent.SYSTEM_NOTIFICATION: "SystemNotification",
    TransportEvent.DOCKET_EXPIRING: "DocketExpiring",
    TransportEvent.DOCKET_EXPIRED: "DocketExpired",
    TransportEvent.UI_GUIDANCE: "GuideUI",
}


class Operation(StrEnum):
    """The named operations. A host may use a verb of its own; its shape is then "create" (REFERENCE 2.3)."""

    READ_QUERY = "ReadQuery"
    WRITE_CREATE = "WriteCreate"
    WRITE_UPDATE = "WriteUpdate"
    WRITE_DELETE = "WriteDelete"


def is_update_shaped(operation: str | None) -> bool:
    """Whether ``operation`` is update-shaped: only ``WriteUpdate`` and ``update`` are, in any case (seed)."""
    return operation is not None and operation.lower() in {"writeupdate", "update"}


def operation_shape(operation: str | None) -> str:
    """``"update"`` or ``"create"``: the protocol's two-valued vocabulary (seed, ``ProposedOperation.kind``)."""
    return "update" if is_update_shaped(operation) else "create"
