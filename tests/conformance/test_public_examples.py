"""The protocol's example documents are read and written again unchanged, and what we emit fits its schemas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from pydantic import BeforeValidator
from referencing import Registry, Resource

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.canonical import canonical_text
from affiant_core.card import (
    DecisionResult,
    DocketExpired,
    DocketExpiring,
    DocketTransition,
    EvidenceCard,
    card_for,
    decision_result,
    present,
)
from affiant_core.docket.model import (
    Attestation,
    Blocked,
    CoverageBlocked,
    DocketEntry,
    Lineage,
    MemberAttestor,
    RelayedAttestor,
    Requirement,
    RequirementNotImplemented,
    StandingOrderAttestor,
)
from affiant_core.envelope import ProposedOperation
from affiant_core.errors import AffiantError, RefusalCode
from affiant_core.presence import grade
from affiant_core.provenance import (
    Binding,
    ComputationConstant,
    ComputationRef,
    ComputationRuleRef,
    ExternalRecordRef,
    ExternalRef,
    FormInput,
    ProvenanceChain,
    ProvenanceTag,
    RelayRef,
)
from affiant_core.telemetry import PROTOCOL_KEYS, REGISTRY_VERSION, TelemetryKey
from affiant_core.values import Money, spell
from affiant_core.vocabulary import ProvenanceSource, ReviewRequirement
from affiant_core.wire import PROTOCOL_VERSION, JsonObject, WireModel, read, word_of
from tests.support.protocol import load, protocol_dir

FOLDER = protocol_dir()


# --- reading and writing the documents -----------------------------------------------------------------------------


class Part(WireModel):
    """A record of one part, for documents that are not a record by themselves."""

    binding: Binding | None = None
    blocked: Blocked | None = None
    amendments: JsonObject | None = None
    source: Annotated[ProvenanceSource, BeforeValidator(word_of(ProvenanceSource))] | None = None


def part(name):
    return lambda document: read(Part, {name: document}).to_json()[name]


def model(kind):
    return lambda document: read(kind, document).to_json()


def affidavit(document):
    return read(Affidavit, document).sworn()


def field(document):
    whole = Affidavit.create(operation_type="create", entity_type="T", fields=[read(AffidavitField, document)])
    return whole.sworn()["fields"][0]


def operation(document):
    shaped = {"kind": document, "entityType": "T", "entityId": None, "fields": []}
    return read(ProposedOperation, shaped).to_json()["kind"]


def notification(document):
    kinds = {"docket-expiring": DocketExpiring, "docket-expired": DocketExpired, "docket-transition": DocketTransition}
    return read(kinds[document["kind"]], document).to_json()


def registry(document):
    keys = {
        entry["key"]: TelemetryKey(**{name: value for name, value in entry.items() if name != "key"})
        for entry in document["keys"]
    }
    return {**document, "keys": entries(keys)}


def entries(keys):
    return [
        {"key": key, "since": entry.since, "description": entry.description, "attributes": list(entry.attributes)}
        for key, entry in keys.items()
    ]


REWRITE = {
    "affidavit": affidavit,
    "affidavit-field": field,
    "amendments": part("amendments"),
    "attestation": model(Attestation),
    "binding": part("binding"),
    "blocked": part("blocked"),
    "decision-result": model(DecisionResult),
    "error-code": RefusalCode,
    "evidence-card-request": model(EvidenceCard),
    "money": lambda document: spell(Money(**document)),
    "notification": notification,
    "operation": operation,
    "provenance-chain": model(ProvenanceChain),
    "provenance-source": part("source"),
    "provenance-tag": model(ProvenanceTag),
    "telemetry-key": registry,
}

NOT_OURS = {
    "entity-ref": "names the entity of a write; our EntityRef is the seed's read-side record of the same name",
    "outside-gate": "marks a write that was made without the gate, which this package never makes nor records",
    "tool-result": "another union under the same discriminator; the seed says not to validate our envelopes against it",
}

OLD_ROWS = {
    name: "a row of 0.1.0: compositeRef, requirement and executionDetail as strings, no approvals, no decision.by"
    for name in (
        "01-pending-reviewer-confirmation.json",
        "02-approved-unexecuted.json",
        "03-amended-on-approval.json",
        "04-standing-order-approved.json",
        "05-blocked-coverage-refused.json",
        "06-executed.json",
        "07-expired-amendments-preserved.json",
        "08-resubmitted.json",
        "90-deferred-status.json",
    )
}


def documents(folder, *, negative):
    """The documents of one example folder: the negatives' names start with 9."""
    paths = sorted((FOLDER / "examples" / folder).glob("*.json"))
    return [path for path in paths if path.name.startswith("9") is negative]


def parameters(*, negative):
    return [
        pytest.param(folder, path, id=f"{folder}/{path.stem}")
        for folder in REWRITE
        for path in documents(folder, negative=negative)
    ]


def test_no_folder_is_passed_over_in_silence():
    """FIXTURES 5: what is not run is listed with its reason; every folder that is run holds both kinds of documents."""
    folders = {path.name for path in (FOLDER / "examples").iterdir()}
    assert folders == {*REWRITE, *NOT_OURS, "docket-entry"}
    assert [name for name in REWRITE if not documents(name, negative=True) or not documents(name, negative=False)] == []


@pytest.mark.parametrize(("folder", "path"), parameters(negative=False))
def test_an_example_is_read_and_written_again(folder, path):
    """SR-3: a valid document of the protocol is accepted and written again equal as JSON."""
    document = load(path)
    assert canonical_text(REWRITE[folder](document)) == canonical_text(document)


@pytest.mark.parametrize(("folder", "path"), parameters(negative=True))
def test_a_negative_is_refused(folder, path):
    """SR-3: a document that the protocol calls invalid is refused."""
    # The codes are an enum and the registry's entries plain dataclasses, so Python itself refuses those two.
    fault = {"error-code": ValueError, "telemetry-key": TypeError}.get(folder, AffiantError)
    with pytest.raises(fault):
        REWRITE[folder](load(path))


def test_the_published_registry_is_ours():
    """TL-1: keys and attributes are the published registry's, in its order."""
    published = load(FOLDER / "examples" / "telemetry-key" / "01-registry.json")
    assert [(entry["key"], tuple(entry["attributes"])) for entry in published["keys"]] == [
        (key, entry.attributes) for key, entry in PROTOCOL_KEYS.items()
    ]


# --- rows of the older version -------------------------------------------------------------------------------------


def carried_over(document):
    """A row of 0.1.0 as 0.5.0 has it (RULES, "What each tag changed")."""
    row = {name: value for name, value in document.items() if name != "compositeRef"}
    row["requirement"] = {"kind": document["requirement"]}
    row["approvals"] = None
    if document["decision"] is not None:
        row["decision"] = {**document["decision"], "by": document["attestation"]["by"]["id"]}
    if document["executionDetail"] is not None:
        row["executionDetail"] = {"code": "done", "detail": document["executionDetail"]}
    return row


def test_the_old_rows_are_listed():
    """FIXTURES 5: every public row is listed above with the reason why it is not read as it stands."""
    assert {path.name for path in (FOLDER / "examples" / "docket-entry").iterdir()} == set(OLD_ROWS)


@pytest.mark.parametrize("name", OLD_ROWS)
def test_an_old_row_is_refused_for_what_it_is(name):
    """RULES, "Row at 0.5.0"; SR-3: a row of 0.1.0 is no row of ours, and the fault names what is old about it."""
    row = load(FOLDER / "examples" / "docket-entry" / name)
    with pytest.raises(AffiantError, match="missing approvals"):
        read(DocketEntry, row)
    with pytest.raises(AffiantError, match=r"requirement: .*compositeRef: "):
        read(DocketEntry, {**row, "approvals": None})


@pytest.mark.parametrize("name", [name for name in OLD_ROWS if not name.startswith("9")])
def test_an_old_row_carried_over(name):
    """RULES, "Row at 0.5.0": with what changed since carried over, the row is read and written again equal."""
    row = carried_over(load(FOLDER / "examples" / "docket-entry" / name))
    assert canonical_text(read(DocketEntry, row).to_json()) == canonical_text(row)


def test_a_deferred_row_is_refused():
    """DK-1: the status deferred is reserved, and a row that holds it is invalid."""
    with pytest.raises(AffiantError):
        read(DocketEntry, carried_over(load(FOLDER / "examples" / "docket-entry" / "90-deferred-status.json")))


# --- what we emit, against the schemas -----------------------------------------------------------------------------

AT = datetime(2026, 9, 4, 9, tzinfo=UTC)
DURING = AT + timedelta(minutes=5)
ENTRY = "8369aad4-b5ac-86d4-b6b7-504f90659f87"
OTHER = "421b12e8-d13f-85a5-8afa-fdb44b7fd08f"

UNRESOLVED = {
    "draft.schema.json": "of 0.5.0; refers to common schemas of that version, which are not in the public set here",
    "requirement.schema.json": "of 0.4.0; likewise",
}
SCHEMAS = {path.name: load(path) for path in sorted((FOLDER / "schemas").glob("*.json")) if path.name not in UNRESOLVED}
REGISTRY = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)  # fmt: skip


def validate(document, name):
    Draft202012Validator(
        SCHEMAS[f"{name}.schema.json"], registry=REGISTRY, format_checker=FormatChecker()
    ).validate(document)  # fmt: skip


RELAY = RelayRef(principal="relay-1", channel_identity="+94770000000", message_id="wamid-1")
TAGS = {
    "said": grade("said", "Zoë 🚀", utterance="🚀 for zoë? No, for Zoë 🚀!", at=AT),
    "inferred": grade("inferred", 40, utterance="forty", at=AT, confidence=0.4),
    "picked": ProvenanceTag.external(binding=ExternalRef.of("directory", "user-77"), at=AT),
    "relayed": ProvenanceTag.external(
        binding=ExternalRef(
            ref=ExternalRecordRef(system="s", record_id="r", fetched_at=AT, content_hash="ab", relay=RELAY)
        ),
        at=AT,
    ),
    "computed": ProvenanceTag.computed(binding=ComputationRef.of("total@v3", ["said"]), at=AT),
    "lawful": ProvenanceTag.computed(
        binding=ComputationRef(
            ref=ComputationRuleRef(
                rule="vat", inputs=(), constant=ComputationConstant(source="law", verified_on="2026-01-01")
            )
        ),
        at=AT,
    ),
    "typed": ProvenanceTag.user_stated(binding=FormInput.of("typed"), at=AT),
    "fallback": ProvenanceTag.default(at=AT),
    "nothing": ProvenanceTag.empty(at=AT),
}
VALUES = {"picked": Money("10.00", "EUR"), "computed": {"snake_case": [1, None]}, "typed": True, "nothing": None}


def record(operation_type="WriteUpdate"):
    fields = [
        AffidavitField.of(
            name, VALUES.get(name, 12.5), tag, mandatory=name == "nothing", pattern="." if name == "said" else None
        )
        for name, tag in TAGS.items()
    ]
    return Affidavit.create(
        operation_type=operation_type,
        entity_type="Invoice",
        entity_id="invoice-1" if operation_type == "WriteUpdate" else None,
        fields=fields,
        warnings=["careful"],
        conversation_turn=3,
        created_at=AT,
    )


def row(**others):
    members = {
        "entry_id": ENTRY,
        "tenant_id": "tenant-a",
        "conversation_id": "conv-1",
        "channel": "chat",
        "tool_name": "update_invoice",
        "affidavit": record(),
        "requirement": Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION),
        "filed_at": AT,
        "expires_at": AT + timedelta(minutes=30),
        "presentation": present(record(), ("late",), {"said": None}),
    }
    return DocketEntry(**members | others)


def amended():
    return record().amend({"said": "x", "picked": None, "nothing": None}, by="ana", entry_id=ENTRY, at=DURING)


def attestation(by):
    return Attestation(by=by, at=DURING, entry_id=ENTRY)


MEMBER = attestation(MemberAttestor(id="ana"))
RELAYED = attestation(RelayedAttestor(member_id="ana", relay=RELAY))


@pytest.mark.parametrize(
    "sworn",
    [
        record(),
        record("CreateInvoice"),
        amended(),
        record().prefill({"said": None}, by="ana", entry_id=ENTRY, at=DURING),
        Affidavit.create(operation_type="create", entity_type="T", fields=[], created_at=AT),
    ],
    ids=["update", "create", "amended", "prefilled", "bare"],
)
def test_affidavits_fit_the_schema(sworn):
    """RULES, AF; NOTICE: the sworn record is the schema's closed record, with every kind of binding and tag."""
    validate(sworn.sworn(), "affidavit")
    for entry in sworn.sworn()["fields"]:
        validate(entry, "affidavit-field")
        validate(entry["provenance"], "provenance-chain")
        validate(entry["provenance"]["current"], "provenance-tag")


@pytest.mark.parametrize(
    "entry",
    [
        row(),
        row(presentation=present(Affidavit.create(operation_type="create", entity_type="T", fields=[]))),
        row(status="approved", execution="unexecuted", attestation=MEMBER, amended_affidavit=amended()),
        row(blocked=CoverageBlocked(category="hosted-mcp", tool_name="relay")),
        row(blocked=RequirementNotImplemented(level="ReferralRequired")),
    ],
    ids=["full", "bare", "amended", "uncovered", "level"],
)  # fmt: skip
def test_cards_fit_the_schema(entry):
    """SR, Card; NOTICE: a card without multiParty is still the schema's."""
    validate(card_for(entry, DURING).to_json(), "evidence-card-request")


def test_multi_party_is_all_that_a_card_has_beyond_the_schema():
    """RULES, "What each tag changed": v0.3 added multiParty to the card and nothing else."""
    asked = row(requirement=Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("a", "b"), required=1))
    card = card_for(asked, DURING).to_json()
    with pytest.raises(ValidationError, match="multiParty"):
        validate(card, "evidence-card-request")
    del card["multiParty"]
    validate(card, "evidence-card-request")


@pytest.mark.parametrize(
    "entry",
    [
        row(status="approved", execution="unexecuted", attestation=MEMBER),
        row(status="approved", execution="failed", attestation=RELAYED),
        row(status="approved", execution="executed",
            attestation=attestation(StandingOrderAttestor(policy_id="auto", version="1"))),
        row(status="rejected", attestation=MEMBER),
        row(status="expired"),
        row(status="expired", lineage=Lineage(superseded_by=OTHER)),
    ],
    ids=["approved", "failed", "executed", "rejected", "expired", "resubmitted"],
)  # fmt: skip
def test_decision_results_fit_the_schema(entry):
    """SR, Decision result; NOTICE: every outcome that 0.1.0 knew."""
    validate(decision_result(entry).to_json(), "decision-result")


def test_the_withdrawn_outcome_is_newer_than_the_schema():
    """RULES, "What each tag changed": v0.4 added withdrawn, which is all that the schema objects to."""
    result = decision_result(row(status="withdrawn")).to_json()
    with pytest.raises(ValidationError, match="'withdrawn' is not one of"):
        validate(result, "decision-result")
    validate({**result, "outcome": "rejected"}, "decision-result")


@pytest.mark.parametrize(
    "sent",
    [
        DocketExpiring(docket_id=ENTRY, expires_at=AT),
        DocketExpired(docket_id=ENTRY),
        DocketTransition(docket_id=ENTRY, from_="pending", to="approved", execution="unexecuted"),
        DocketTransition(docket_id=ENTRY, from_="pending", to="expired", execution=None),
    ],
    ids=lambda sent: sent.kind,
)
def test_notifications_fit_the_schema(sent):
    """SR, Notification; NOTICE: the three kinds are still the schema's."""
    validate(sent.to_json(), "notification")


def test_a_rows_members():
    """RULES, "Row at 0.5.0": the 0.1.0 row without compositeRef and with approvals."""
    schema = set(SCHEMAS["docket-entry.schema.json"]["required"])
    assert set(row().to_json()) == schema - {"compositeRef"} | {"approvals"}


def test_the_smaller_records_fit_their_schemas():
    """RULES, PV-2, AZ-1, AZ-4, SR-2: the parts of the records are the schemas' own."""
    for tag in TAGS.values():
        validate(tag.source.value, "provenance-source")
        if tag.binding is not None:
            validate(tag.binding.to_json(), "binding")
    validate(MEMBER.to_json(), "attestation")
    validate(CoverageBlocked(category="no-execute", tool_name="t").to_json(), "blocked")
    validate(spell(Money("-0.50", "EUR")), "money")
    validate(ProposedOperation.from_affidavit(record()).kind, "operation")
    validate({"said": None, "snake_case": [1]}, "amendments")
    known = SCHEMAS["error-code.schema.json"]["enum"]
    assert [code.value for code in RefusalCode][: len(known)] == known


def test_our_registry_fits_the_schema():
    """TL-1: our registry of the nine keys is a document of the published shape."""
    document = {
        "protocolVersion": PROTOCOL_VERSION,
        "registryVersion": REGISTRY_VERSION,
        "keys": entries(PROTOCOL_KEYS),
    }
    validate(document, "telemetry-key")


def test_the_validator_would_notice():
    """NOTICE: the schemas are in force here: formats, references and closed records included."""
    card = card_for(row(), DURING).to_json()
    for faulty in (
        {**card, "extra": 1},
        {**card, "docketId": "not-a-uuid"},
        {**card, "affidavit": {**card["affidavit"], "warnings": []}},
        {**card, "populatedConfidence": 1.5},
    ):
        with pytest.raises(ValidationError):
            validate(faulty, "evidence-card-request")
