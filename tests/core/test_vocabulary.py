"""The words that cross the wire."""

from __future__ import annotations

import pytest

from affiant_core import vocabulary
from affiant_core.vocabulary import (
    Operation,
    ProvenanceSource,
    TransportEvent,
    is_update_shaped,
    operation_shape,
)

SPELLINGS = {
    "ProvenanceSource": ["UserStated", "External", "Computed", "Conversation", "Inferred", "Default", "Empty"],
    "ReviewRequirement": ["StandingOrder", "ReviewerConfirmation", "ReferralRequired", "MultiParty"],
    "ApprovalDecision": ["Approved", "Rejected"],
    "ReviewStatus": ["pending", "approved", "rejected", "expired", "withdrawn", "deferred"],
    "ExecutionOutcome": ["unexecuted", "executed", "failed"],
    "DecisionOutcome": ["approved", "rejected", "expired", "resubmitted", "withdrawn"],
    "CoverageCategory": ["no-execute", "provider-executed", "hosted-mcp"],
    "DecisionKind": ["approve", "reject", "withdraw"],
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_enum_spellings(name):
    """Seed, "Enums elsewhere": PascalCase, lowercase and kebab-case sets; the schema's words for DecisionKind."""
    assert [str(member) for member in getattr(vocabulary, name)] == SPELLINGS[name]


def test_field_kinds():
    """RULES, AF: a field's kind is text, number, date or enum."""
    assert [str(kind) for kind in vocabulary.FieldKind] == ["text", "number", "date", "enum"]


def test_sources_rank_from_most_to_least_deterministic():
    """PV-1: the order of the sources is the tie-break, 0 for UserStated to 6 for Empty."""
    assert [source.rank for source in ProvenanceSource] == [0, 1, 2, 3, 4, 5, 6]
    assert ProvenanceSource.USER_STATED.rank == 0
    assert ProvenanceSource.EMPTY.rank == 6


def test_sources_above_conversation():
    """PV-4: only UserStated, External and Computed stand above Conversation."""
    above = {source for source in ProvenanceSource if source.outranks_conversation}
    assert above == {ProvenanceSource.USER_STATED, ProvenanceSource.EXTERNAL, ProvenanceSource.COMPUTED}


def test_client_event_names():
    """Seed, "TransportEvent": a client subscribes to these eight method names."""
    assert {event.value: event.client_event_name for event in TransportEvent} == {
        "EvidenceCardRequest": "ConfirmAction",
        "EvidenceCardResponse": "EvidenceCardResponse",
        "AgentMessage": "ReceiveToken",
        "ContextUpdate": "ContextUpdated",
        "SystemNotification": "SystemNotification",
        "DocketExpiring": "DocketExpiring",
        "DocketExpired": "DocketExpired",
        "UiGuidance": "GuideUI",
    }


def test_four_client_event_names_are_not_the_members_own():
    """Seed, "TransportEvent": four of the eight are deliberately not the member's own name."""
    assert sum(event.client_event_name != event.value for event in TransportEvent) == 4


@pytest.mark.parametrize("operation", ["WriteUpdate", "update", "WRITEUPDATE", "writeupdate", "Update", "UPDATE"])
def test_update_shaped(operation):
    """Seed, "operationType": only WriteUpdate and the bare update are update-shaped, case-insensitively."""
    assert is_update_shaped(operation)
    assert operation_shape(operation) == "update"


@pytest.mark.parametrize(
    "operation",
    ["WriteCreate", "create", "WriteDelete", "ReadQuery", "CreateLeaveRequest", "UpdateInvoice", " update", "", None],
)
def test_everything_else_is_create_shaped(operation):
    """Seed, "operationType": everything else is create-shaped, a host's own verb and WriteDelete included."""
    assert not is_update_shaped(operation)
    assert operation_shape(operation) == "create"


def test_named_operations():
    """REFERENCE 2.3: four operations have names, and a name equals the constant."""
    assert [str(operation) for operation in Operation] == ["ReadQuery", "WriteCreate", "WriteUpdate", "WriteDelete"]
    assert Operation("ReadQuery") is Operation.READ_QUERY
