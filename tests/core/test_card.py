"""What a reviewer is shown, what a caller is told, and what a transport carries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.card import (
    CardApprover,
    CardMultiParty,
    DecisionResult,
    DocketExpired,
    DocketExpiring,
    DocketTransition,
    EvidenceCard,
    SystemNotification,
    card_for,
    decision_result,
    present,
)
from affiant_core.docket.model import (
    Approval,
    Attestation,
    CoverageBlocked,
    DocketEntry,
    FieldHint,
    Lineage,
    MemberAttestor,
    Presentation,
    Requirement,
    RequirementNotImplemented,
)
from affiant_core.errors import WireError
from affiant_core.provenance import ProvenanceTag
from affiant_core.vocabulary import DecisionKind, ReviewRequirement, ReviewStatus
from affiant_core.wire import read

FILED = datetime(2026, 9, 4, 9, tzinfo=UTC)
DEADLINE = FILED + timedelta(minutes=30)
DURING = FILED + timedelta(minutes=1)
ENTRY = "8369aad4-b5ac-86d4-b6b7-504f90659f87"
ATTESTATION = Attestation(by=MemberAttestor(id="ana"), at=DURING, entry_id=ENTRY)


def field(name, value="x", **others):
    return AffidavitField.of(name, value, ProvenanceTag.default(at=FILED), **others)


def affidavit(*fields, operation="update"):
    return Affidavit.create(
        operation_type=operation,
        entity_type="Invoice",
        entity_id="invoice-1",
        created_at=FILED,
        fields=fields or [field("status", "Active", mandatory=True), field("note")],
    )


def row(**others):
    members = {
        "entry_id": ENTRY,
        "tenant_id": "tenant-a",
        "conversation_id": "conv-1",
        "channel": "chat",
        "tool_name": "update_invoice",
        "affidavit": affidavit(),
        "requirement": Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION),
        "filed_at": FILED,
        "expires_at": DEADLINE,
    }
    return DocketEntry(**members | others)


# --- the card ------------------------------------------------------------------------------------------------------


def test_the_card_of_a_pending_row():
    """SR, Card: exactly these members; docketId, requiredBy, protocolVersion and the numbers are the row's own."""
    entry = row()
    assert card_for(entry, DURING).to_json() == {
        "protocolVersion": "0.5.0",
        "docketId": ENTRY,
        "affidavit": entry.affidavit.sworn(),
        "requiredBy": "2026-09-04T09:30:00.000Z",
        "priorAmendments": None,
        "populatedConfidence": 0.3,
        "emptyFieldCount": 0,
        "blocked": None,
        "requiresConfirmation": True,
    }


def test_the_cards_record_is_the_sworn_one():
    """SR-1: presentation is beside the record on a card, never in it."""
    sworn = affidavit(field("a", allowed_values=["x"]), operation="WriteUpdate")
    shown = card_for(row(affidavit=sworn), DURING).to_json()["affidavit"]
    assert shown["operationType"] == "update"
    assert "warnings" not in shown
    assert "allowedValues" not in shown["fields"][0]


OMITTED = ["presentation", "warnings", "hostOperation"]
HINTS = ["kind", "allowedValues", "pattern"]


def test_the_six_omitted_properties():
    """Seed, "Serializing": six properties of the card and its hints are omitted when they have nothing to say."""
    full = card_for(
        row(presentation=Presentation(
            hints=[FieldHint(name="status", kind="enum", allowed_values=["A"], pattern="."), FieldHint(name="note")],
            warnings=["careful"], host_operation="WriteUpdate")),
        DURING,
    )  # fmt: skip
    written = full.to_json()
    assert [written[name] for name in OMITTED[1:]] == [["careful"], "WriteUpdate"]
    assert written["presentation"] == [
        {"name": "status", "kind": "enum", "allowedValues": ["A"], "pattern": "."},
        {"name": "note"},
    ]
    bare = card_for(row(), DURING)
    assert set(written) - set(bare.to_json()) == set(OMITTED)
    assert set(json.loads(full.to_json_string())) - set(json.loads(bare.to_json_string())) == set(OMITTED)


@pytest.mark.parametrize("member", OMITTED)
def test_a_cards_optional_member_is_never_null(member):
    """Seed, "Serializing": the schemas mark these optional, so null in their place is refused."""
    card = card_for(row(), DURING).to_json()
    with pytest.raises(WireError, match=f"{member} must be absent"):
        read(EvidenceCard, {**card, member: None})
    with pytest.raises(WireError, match=f"{HINTS[0]} must be absent"):
        read(EvidenceCard, {**card, "presentation": [{"name": "note", HINTS[0]: None}]})


def test_every_other_member_of_the_card_is_written_null():
    """Seed, "Serializing": everything but the six is written as null."""
    unknown = AffidavitField.of("a", None, ProvenanceTag.empty(at=FILED))
    written = card_for(row(affidavit=affidavit(unknown)), DURING).to_json()
    assert [written[name] for name in ("priorAmendments", "blocked", "populatedConfidence")] == [None, None, None]
    assert written["emptyFieldCount"] == 1


def test_the_numbers_are_the_accepted_states():
    """AF-2: the card shows the record's numbers, of the amended record once there is one."""
    entry = row()
    amended = entry.affidavit.amend({"status": "Draft", "note": "n"}, by="ana", entry_id=ENTRY, at=DURING)
    card = card_for(entry.model_copy(update={"amended_affidavit": amended}), DURING)
    assert card.affidavit == amended
    assert (entry.affidavit.populated_confidence, card.populated_confidence) == (0.3, 1.0)


def test_hints_name_only_fields_of_the_shown_record():
    """AF-1: an amendment may take an optional field off the record, and its hint leaves the card with it."""
    sworn = affidavit(field("status", mandatory=True, pattern="."), field("note", pattern="."))
    entry = row(affidavit=sworn, presentation=present(sworn))
    assert [hint.name for hint in card_for(entry, DURING).presentation] == ["status", "note"]
    amended = sworn.amend({"note": None}, by="ana", entry_id=ENTRY, at=DURING)
    card = card_for(entry.model_copy(update={"amended_affidavit": amended}), DURING)
    assert [hint.name for hint in card.presentation] == ["status"]
    with pytest.raises(ValidationError, match="does not propose"):
        EvidenceCard.model_validate({**card.model_dump(), "presentation": (FieldHint(name="nosuch"),)})


BLOCKED = [
    (CoverageBlocked(category="no-execute", tool_name="relay"),
     {"code": "coverage-refused", "category": "no-execute", "toolName": "relay"}),
    (RequirementNotImplemented(level="ReferralRequired"),
     {"code": "requirement-not-implemented", "level": "ReferralRequired"}),
]  # fmt: skip


@pytest.mark.parametrize(("marker", "document"), BLOCKED, ids=["coverage", "level"])
def test_a_blocked_card_asks_for_nothing(marker, document):
    """AZ-4: a blocked card says so, and has requiresConfirmation false."""
    written = card_for(row(blocked=marker), DURING).to_json()
    assert (written["blocked"], written["requiresConfirmation"]) == (document, False)


@pytest.mark.parametrize(
    ("others", "now", "asks"),
    [
        ({}, DEADLINE - timedelta(milliseconds=1), True),
        ({}, DEADLINE, False),
        ({"status": ReviewStatus.APPROVED, "execution": "unexecuted", "decided_at": DURING}, DURING, False),
        ({"status": ReviewStatus.REJECTED, "decided_at": DURING}, DURING, False),
        ({"status": ReviewStatus.WITHDRAWN, "decided_at": DURING}, DURING, False),
    ],
)
def test_confirmation_is_asked_of_a_pending_row_only(others, now, asks):
    """AZ-4, DK-1: true only for a pending, unblocked, unexpired row; the boundary belongs to the deadline."""
    assert card_for(row(**others), now).requires_confirmation is asks


def test_prior_amendments():
    """DK-1, resubmit: the card shows the amendments that were carried, nulls included."""
    carried = row(presentation=Presentation(prior_amendments={"note": None, "snake_case": 1}))
    assert card_for(carried, DURING).to_json()["priorAmendments"] == {"note": None, "snake_case": 1}


def test_multi_party():
    """AZ-4: approvers in requirement order with what each has decided, and how many are needed; absent otherwise."""
    asked = row(
        requirement=Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("zoe", "ana", "bo"), required=2),
        approvals=(
            Approval(approver="ana", decision=DecisionKind.APPROVE, reason=None, at=DURING, attestation=ATTESTATION),
        ),
    )
    assert card_for(asked, DURING).to_json()["multiParty"] == {
        "approvers": [
            {"id": "zoe", "decided": None},
            {"id": "ana", "decided": "approve"},
            {"id": "bo", "decided": None},
        ],
        "required": 2,
    }
    assert "multiParty" not in card_for(row(), DURING).to_json()
    with pytest.raises(ValidationError):
        CardMultiParty(approvers=(CardApprover(id="a", decided=None),), required=0)


def test_a_card_reads_back():
    """SR-3: what is written is read back equal, strictly."""
    sworn = affidavit(field("status", pattern="."))
    card = card_for(row(affidavit=sworn, presentation=present(sworn, ("careful",), {"status": 1})), DURING)
    back = read(EvidenceCard, card.to_json_string())
    assert back.to_json() == card.to_json()
    with pytest.raises(WireError, match="Extra inputs"):
        read(EvidenceCard, {**card.to_json(), "extra": 1})


@pytest.mark.parametrize(
    "member",
    ["protocolVersion", "docketId", "affidavit", "requiredBy", "priorAmendments", "populatedConfidence",
     "emptyFieldCount", "blocked", "requiresConfirmation"],
)  # fmt: skip
def test_a_cards_members_are_required(member):
    """SR, Card; SR-4: a card without one of its nine members is refused, protocolVersion included."""
    card = card_for(row(), DURING).to_json()
    del card[member]
    with pytest.raises(WireError, match=member):
        read(EvidenceCard, card)


# --- presentation --------------------------------------------------------------------------------------------------


def test_present_takes_hints_warnings_and_verb():
    """FIXTURES 3: non-null allowedValues and pattern become hints; the host's own verb stands beside the shape."""
    sworn = affidavit(
        field("status", allowed_values=["A", "B"]),
        field("amount", 40, pattern="^4"),
        field("note"),
        operation="ReviseInvoice",
    ).model_copy(update={"warnings": ("first",)})
    shown = present(sworn, ("second",), {"note": None})
    assert [hint.to_json() for hint in shown.hints] == [
        {"name": "status", "kind": "text", "allowedValues": ["A", "B"]},
        {"name": "amount", "kind": "number", "pattern": "^4"},
    ]
    assert (shown.warnings, shown.gate_warnings, shown.host_operation, shown.prior_amendments) == (
        ("first",),
        ("second",),
        "ReviseInvoice",
        {"note": None},
    )


@pytest.mark.parametrize(("verb", "shown"), [("create", None), ("update", None), ("WriteUpdate", "WriteUpdate")])
def test_the_shape_alone_is_no_host_operation(verb, shown):
    """SR, Card: hostOperation is the verb that is not already the shape."""
    assert present(affidavit(operation=verb)).host_operation == shown


# --- the decision result -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "outcome", "attested"),
    [
        ({"status": "approved", "execution": "unexecuted", "attestation": ATTESTATION}, "approved", True),
        ({"status": "approved", "execution": "failed", "attestation": ATTESTATION}, "approved", True),
        ({"status": "rejected", "attestation": ATTESTATION}, "rejected", False),
        ({"status": "expired"}, "expired", False),
        ({"status": "expired", "lineage": Lineage(superseded_by="1")}, "resubmitted", False),
        ({"status": "withdrawn"}, "withdrawn", False),
    ],
)
def test_the_result_of_a_decision(others, outcome, attested):
    """SR, Decision result: outcome from the row, the attestation on an approval only, execution as it stands."""
    entry = row(decided_at=DURING, **others)
    assert decision_result(entry).to_json() == {
        "protocolVersion": "0.5.0",
        "docketId": ENTRY,
        "outcome": outcome,
        "attestation": ATTESTATION.to_json() if attested else None,
        "execution": others.get("execution"),
    }


def test_a_pending_row_has_no_result():
    """DK-1: nothing has been decided on a pending row."""
    with pytest.raises(ValueError, match="nothing has been decided"):
        decision_result(row())


@pytest.mark.parametrize("member", ["protocolVersion", "docketId", "outcome", "attestation", "execution"])
def test_a_results_members_are_required(member):
    """SR, Decision result: five members, all present."""
    result = decision_result(row(status="withdrawn", decided_at=DURING)).to_json()
    assert read(DecisionResult, result).to_json() == result
    del result[member]
    with pytest.raises(WireError, match=member):
        read(DecisionResult, result)


# --- notifications -------------------------------------------------------------------------------------------------

NOTIFICATIONS = [
    (DocketExpiring(docket_id=ENTRY, expires_at=DEADLINE),
     {"protocolVersion": "0.5.0", "kind": "docket-expiring", "docketId": ENTRY,
      "expiresAt": "2026-09-04T09:30:00.000Z"}),
    (DocketExpired(docket_id=ENTRY), {"protocolVersion": "0.5.0", "kind": "docket-expired", "docketId": ENTRY}),
    (DocketTransition(docket_id=ENTRY, from_="pending", to="approved", execution="unexecuted"),
     {"protocolVersion": "0.5.0", "kind": "docket-transition", "docketId": ENTRY, "from": "pending", "to": "approved",
      "execution": "unexecuted"}),
    (DocketTransition(docket_id=ENTRY, from_="pending", to="expired", execution=None),
     {"protocolVersion": "0.5.0", "kind": "docket-transition", "docketId": ENTRY, "from": "pending", "to": "expired",
      "execution": None}),
    (SystemNotification(level="warning", message="é"),
     {"protocolVersion": "0.5.0", "level": "warning", "message": "é"}),
]  # fmt: skip


@pytest.mark.parametrize(("notification", "document"), NOTIFICATIONS, ids=[type(n).__name__ for n, _ in NOTIFICATIONS])
def test_notifications(notification, document):
    """SR, Notification: three kinds with exactly their members, all of them required, execution written null."""
    assert notification.to_json() == document
    assert read(type(notification), json.dumps(document)) == notification
    for member in document:
        with pytest.raises(WireError):
            read(type(notification), {name: value for name, value in document.items() if name != member})
    with pytest.raises(WireError, match="Extra inputs"):
        read(type(notification), {**document, "extra": 1})


@pytest.mark.parametrize("status", ["Pending", "pend", "", None])
def test_a_transition_names_states(status):
    """SR-3: states cross in lowercase, exactly."""
    with pytest.raises(ValidationError):
        DocketTransition(docket_id=ENTRY, from_=status, to="approved", execution=None)
