"""The one closed union that every tool returns."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from affiant_core import envelope as module
from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.envelope import (
    EntityRef,
    ProposedOperation,
    ReadResult,
    ToolEnvelope,
    ToolError,
    WriteProposal,
    envelope_from_json,
    parse_envelope,
    recognise,
)
from affiant_core.errors import NotAnEnvelope, ValueRefused, WireError
from affiant_core.provenance import ProvenanceTag
from affiant_core.values import MAX_DEPTH
from affiant_core.wire import read

AT = datetime(2026, 7, 4, 15, 22, 3, 104_000, tzinfo=UTC)
BASE = {"tool_name": "SearchCustomers", "timestamp": AT}
RIVERA = EntityRef(entity_type="Customer", entity_id="42", display_name="A. Rivera", fields={"email": "a@example.org"})
FOUND = ReadResult(summary="Found 2 customer(s)", markdown="| Name |", entities=[RIVERA], **BASE)
FAILED = ToolError(code="CUSTOMER_NOT_FOUND", message="There is no such customer.", retryable=False, **BASE)
RECORD = Affidavit.create(
    operation_type="WriteCreate",
    entity_type="LeaveRequest",
    fields=[
        AffidavitField.of("start", "2026-03-03", ProvenanceTag.default(at=AT)),
        AffidavitField.of("days", 5, ProvenanceTag.default(at=AT)),
    ],
    warnings=["short notice"],
)
PROPOSED = WriteProposal(
    envelope=RECORD,
    arguments={"snake_case": None},
    operation=ProposedOperation(kind="create", entity_type="LeaveRequest", fields=("start", "days")),
    **BASE,
)
ALL = [FOUND, PROPOSED, FAILED]


def ids(envelope):
    return envelope.kind


# --- the wire shape ------------------------------------------------------------------------------------------------


def test_a_read_on_the_wire():
    """Seed, "Serializing": the ReadResult's shape, its properties in this order, on one line."""
    assert FOUND.to_json_string() == (
        '{"kind":"read","summary":"Found 2 customer(s)","markdown":"| Name |",'
        '"entities":[{"entityType":"Customer","entityId":"42","displayName":"A. Rivera",'
        '"fields":{"email":"a@example.org"}}],'
        '"toolName":"SearchCustomers","timestamp":"2026-07-04T15:22:03.104Z"}'
    )


def test_a_write_on_the_wire():
    """Seed, "WriteProposal": the record, the arguments and the operation, then what the base declares."""
    document = json.loads(PROPOSED.to_json_string())
    assert list(document) == ["kind", "envelope", "arguments", "operation", "toolName", "timestamp"]
    assert document["kind"] == "write"
    assert document["envelope"] == RECORD.to_json()
    assert document["arguments"] == {"snake_case": None}
    assert document["operation"] == {
        "kind": "create",
        "entityType": "LeaveRequest",
        "entityId": None,
        "fields": ["start", "days"],
    }


def test_an_error_on_the_wire():
    """Seed, "Failures": code, message and retryable, then what the base declares."""
    assert FAILED.to_json_string() == (
        '{"kind":"error","code":"CUSTOMER_NOT_FOUND","message":"There is no such customer.","retryable":false,'
        '"toolName":"SearchCustomers","timestamp":"2026-07-04T15:22:03.104Z"}'
    )


def test_nulls_are_written():
    """Seed, "Serializing": every property of an envelope is written, null or not."""
    bare = WriteProposal(envelope={"a": None}, **BASE)
    assert bare.to_json_string() == (
        '{"kind":"write","envelope":{"a":null},"arguments":null,"operation":null,'
        '"toolName":"SearchCustomers","timestamp":"2026-07-04T15:22:03.104Z"}'
    )
    written = json.loads(PROPOSED.to_json_string())["envelope"]
    assert written["entityId"] is None
    assert written["createdAt"] is None
    assert written["fields"][0]["allowedValues"] is None
    assert written["fields"][0]["pattern"] is None
    assert written["fields"][0]["provenance"]["current"]["binding"] is None


def test_non_ascii_is_not_escaped():
    """CASES C16: text crosses as it is, with no escape that JSON does not demand."""
    text = ReadResult(summary="é🚀 <b> & 'q'", markdown="\u2028", **BASE).to_json_string()
    assert '"summary":"é🚀 <b> & \'q\'"' in text
    assert '"markdown":"\u2028"' in text


def test_dictionary_keys_are_never_renamed():
    """REFERENCE 2.4: only properties are camelCase; keys of dictionaries stay as they are."""
    keys = {"snake_case": {"inner_key": 1}, "PascalCase": 2, "kebab-case": 3, "": 4}
    found = ReadResult(
        summary="s",
        markdown="m",
        entities=[EntityRef(entity_type="T", entity_id="1", display_name="d", fields=keys)],
        **BASE,
    )
    proposal = WriteProposal(envelope=keys, arguments=keys, **BASE)
    assert json.loads(found.to_json_string())["entities"][0]["fields"] == keys
    document = json.loads(proposal.to_json_string())
    assert (document["envelope"], document["arguments"]) == (keys, keys)


def test_instants_are_cut_to_the_millisecond():
    """Seed, "IsoInstantJsonConverter": three fractional digits, truncated, in UTC with Z."""
    late = ToolError(code="X", message="m", tool_name="t", timestamp=AT.replace(microsecond=999_999))
    assert late.to_json()["timestamp"] == "2026-07-04T15:22:03.999Z"
    with pytest.raises(ValueRefused, match="timestamp"):
        ToolError(code="X", message="m", tool_name="t", timestamp=datetime(2026, 7, 4))


def test_what_python_may_leave_out():
    """DESIGN: the pipeline fills in the declared name, the clock the timestamp; no entities is a valid read (seed)."""
    nothing = ReadResult(summary="Found nothing", markdown="")
    assert (nothing.tool_name, nothing.entities) == ("", ())
    assert nothing.timestamp.tzinfo is UTC
    assert ToolError(code="X", message="m").retryable is False
    assert nothing.model_copy(update={"tool_name": "find"}).to_json()["entities"] == []


# --- reading back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("envelope", ALL, ids=ids)
def test_the_strongly_typed_object_comes_back(envelope):
    """Seed, "The kind discriminator": the same string is read back into the variant that its kind names."""
    back = parse_envelope(envelope.to_json_string())
    assert type(back) is type(envelope)
    assert back.to_json() == envelope.to_json()
    assert parse_envelope(envelope.to_json_string().encode()) == back


def test_a_proposals_record_comes_back_as_data():
    """Seed, "Why object": the wire boundary is loose; after reading, the record is data that reads as an Affidavit."""
    back = parse_envelope(PROPOSED.to_json_string())
    assert isinstance(back.envelope, dict)
    assert read(Affidavit, back.envelope) == RECORD
    assert back.operation == PROPOSED.operation


@pytest.mark.parametrize("envelope", ALL, ids=ids)
def test_kind_may_stand_anywhere(envelope):
    """REFERENCE 17, DECISIONS 4: order is meaningless, so kind may come last, or all members backwards."""
    document = envelope.to_json()
    last = {key: document[key] for key in document if key != "kind"} | {"kind": document["kind"]}
    assert list(last)[-1] == "kind"
    backwards = dict(reversed(document.items()))
    assert parse_envelope(json.dumps(last)) == parse_envelope(json.dumps(backwards)) == envelope_from_json(document)


@pytest.mark.parametrize("envelope", ALL, ids=ids)
def test_unknown_members_are_ignored_on_the_envelope(envelope):
    """DECISIONS 4: unknown members are ignored on the envelope itself."""
    document = {**envelope.to_json(), "extra": {"a": 1}, "$schema": "x", "tool_name": "other"}
    assert parse_envelope(json.dumps(document)).to_json() == envelope.to_json()


def test_unknown_members_are_refused_below_the_envelope():
    """DECISIONS 4, SR-3: what lies below the envelope is closed."""
    read_result = FOUND.to_json()
    read_result["entities"][0]["extra"] = 1
    proposal = PROPOSED.to_json()
    proposal["operation"]["extra"] = 1
    for document in (read_result, proposal):
        with pytest.raises(NotAnEnvelope, match="extra"):
            envelope_from_json(document)
    record = PROPOSED.to_json()["envelope"]
    record["fields"][0]["extra"] = 1
    with pytest.raises(WireError, match="extra"):
        read(Affidavit, record)


@pytest.mark.parametrize("kind", ["Read", "WRITE", "reads", "", " read", None, 1, ["read"], {"kind": "read"}, True])
def test_an_unknown_kind(kind):
    """DECISIONS 4: an unknown or wrong-case kind is not an envelope."""
    with pytest.raises(NotAnEnvelope, match="'kind' is none of"):
        envelope_from_json({**FOUND.to_json(), "kind": kind})


@pytest.mark.parametrize("text", ["null", "[]", '"read"', "1", "true", '[{"kind":"read"}]'])
def test_not_an_object(text):
    """DECISIONS 4, REFERENCE 2.6: JSON null, and anything but an object, is not an envelope."""
    with pytest.raises(NotAnEnvelope, match="is a JSON object"):
        parse_envelope(text)


@pytest.mark.parametrize(
    "text", ["", "  ", "{", "Found 2 customers", '{"kind":"read"', '{"kind":"read","kind":"write"}']
)
def test_malformed_text(text):
    """DECISIONS 4: malformed JSON is not an envelope."""
    with pytest.raises(NotAnEnvelope):
        parse_envelope(text)


MANDATORY = {
    "read": ["kind", "summary", "markdown", "entities", "toolName", "timestamp"],
    "write": ["kind", "envelope", "toolName", "timestamp"],
    "error": ["kind", "code", "message", "retryable", "toolName", "timestamp"],
}


@pytest.mark.parametrize(
    ("envelope", "member"), [(envelope, member) for envelope in ALL for member in MANDATORY[envelope.kind]]
)
def test_a_missing_member(envelope, member):
    """DECISIONS 4: a missing required member means "not an envelope", where .NET would read a null."""
    document = envelope.to_json()
    del document[member]
    with pytest.raises(NotAnEnvelope, match=member):
        envelope_from_json(document)


def test_what_a_proposal_may_leave_out():
    """Seed, "WriteProposal": arguments and operation are both optional."""
    document = PROPOSED.to_json()
    del document["arguments"], document["operation"]
    back = envelope_from_json(document)
    assert (back.arguments, back.operation) == (None, None)


@pytest.mark.parametrize(
    ("envelope", "member", "value"),
    [
        (FOUND, "summary", None), (FOUND, "markdown", 5), (FOUND, "entities", None), (FOUND, "entities", {}),
        (FOUND, "entities", [None]), (FOUND, "toolName", ""), (FOUND, "toolName", None), (FOUND, "toolName", 7),
        (FOUND, "timestamp", None), (FOUND, "timestamp", 0), (FOUND, "timestamp", "2026-07-04"),
        (PROPOSED, "arguments", []), (PROPOSED, "arguments", "{}"), (PROPOSED, "operation", {}),
        (PROPOSED, "operation", {"kind": "delete", "entityType": "T", "entityId": None, "fields": []}),
        (PROPOSED, "operation", {"kind": "create", "entityType": "T", "fields": []}),
        (PROPOSED, "operation", {"kind": "create", "entityType": "T", "entityId": None, "fields": "ab"}),
        (FAILED, "code", ""), (FAILED, "code", None), (FAILED, "message", None), (FAILED, "retryable", "false"),
        (FAILED, "retryable", 0),
    ],
)  # fmt: skip
def test_a_member_of_the_wrong_type(envelope, member, value):
    """SR-3: nothing is coerced, so a member of the wrong type is not an envelope's."""
    with pytest.raises(NotAnEnvelope):
        envelope_from_json({**envelope.to_json(), member: value})


@pytest.mark.parametrize("member", ["entityType", "entityId", "displayName", "fields"])
def test_every_member_of_an_entity_is_required(member):
    """REFERENCE 2.1: an entity reference's four members are all present."""
    document = FOUND.to_json()
    del document["entities"][0][member]
    with pytest.raises(NotAnEnvelope, match=member):
        envelope_from_json(document)


def test_a_fault_quotes_no_value():
    """CONTRIBUTING: a message never quotes what a model or a person supplied."""
    document = {**FOUND.to_json(), "summary": ["s3cret"], "timestamp": "s3cret"}
    with pytest.raises(NotAnEnvelope) as fault:
        envelope_from_json(document)
    assert "s3cret" not in str(fault.value)
    with pytest.raises(NotAnEnvelope) as fault:
        envelope_from_json({**FOUND.to_json(), "kind": "s3cret"})
    assert "s3cret" not in str(fault.value)


def test_oversize_text():
    """DECISIONS 4: text above the limit is not an envelope; at the limit it is one."""
    text = ReadResult(summary="🚀", markdown="m" * 1000, **BASE).to_json_string()
    size = len(text.encode())
    assert parse_envelope(text, max_bytes=size).markdown == "m" * 1000
    with pytest.raises(NotAnEnvelope, match="larger than the limit"):
        parse_envelope(text, max_bytes=size - 1)


def test_deep_nesting():
    """CASES C16: the deepest allowed value passes through envelope and record; deeper ones are refused, not fatal."""
    value = "deep"
    for _ in range(MAX_DEPTH):
        value = [value]
    record = Affidavit.create(
        operation_type="create", entity_type="T", fields=[AffidavitField.of("a", value, ProvenanceTag.default())]
    )
    back = parse_envelope(WriteProposal(envelope=record, **BASE).to_json_string())
    assert read(Affidavit, back.envelope).field("a").value == value
    with pytest.raises(ValueRefused, match=r"fields\.a\[0\].*nested too deeply"):
        EntityRef(entity_type="T", entity_id="1", display_name="d", fields={"a": value})
    with pytest.raises(NotAnEnvelope, match="nested too deeply"):
        parse_envelope(
            '{"kind":"write","toolName":"t","timestamp":"2026-07-04T15:22:03.104Z","envelope":'
            + '{"a":' * 300 + "1" + "}" * 301
        )  # fmt: skip


# --- telling an envelope from prose --------------------------------------------------------------------------------


@pytest.mark.parametrize("envelope", ALL, ids=ids)
def test_an_envelope_is_recognised(envelope):
    """Seed, "The kind discriminator": a filter after the tool recovers the typed object from the tool's text."""
    assert type(recognise(f" \n{envelope.to_json_string()}\n")) is type(envelope)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "null", "Found 2 customers", "[1]", "{not json", '{"name":"Ana"}', "{}", '{"name":"Ana","name":"B"}'],
)
def test_anything_else_passes_in_silence(text, caplog):
    """DECISIONS 5: anything else crosses untouched, and is no fault to log."""
    with caplog.at_level(logging.DEBUG):
        assert recognise(text) is None
    assert caplog.records == []


def test_the_old_discriminator_is_not_an_envelope_and_is_logged(caplog):
    """DECISIONS 4; seed, "The kind discriminator": a payload spelled $type is no envelope, and the log says why."""
    document = FOUND.to_json()
    document["$type"] = document.pop("kind")
    with pytest.raises(NotAnEnvelope, match=r"'\$type'; it is 'kind' now"):
        envelope_from_json(document)
    with caplog.at_level(logging.WARNING, logger=module.__name__):
        assert recognise(json.dumps(document)) is None
    (message,) = caplog.messages
    assert "spelled '$type'; it is 'kind' now" in message


@pytest.mark.parametrize("change", [{"kind": "Read"}, {"toolName": None}, {"summary": 5}])
def test_what_resembles_an_envelope_is_logged(change, caplog):
    """DECISIONS 4: a misspelled envelope does not pass for prose in silence, and the log quotes no value."""
    document = {**FOUND.to_json(), "markdown": "s3cret", **change}
    with caplog.at_level(logging.WARNING, logger=module.__name__):
        assert recognise(json.dumps(document)) is None
    (message,) = caplog.messages
    assert "resembles a tool envelope" in message
    assert "s3cret" not in message


# --- the closed union ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [ToolEnvelope, ReadResult, WriteProposal, ToolError])
def test_the_union_is_closed(variant):
    """Seed, "The three variants": exactly three sealed subtypes."""
    with pytest.raises(TypeError, match="exactly three variants"):
        type("Fourth", (variant,), {})


def test_the_base_is_abstract():
    """Seed, "The three variants": the base is abstract."""
    with pytest.raises(TypeError, match="abstract"):
        ToolEnvelope(tool_name="t")
    assert all(isinstance(envelope, ToolEnvelope) for envelope in ALL)
    ours = {variant for variant in ToolEnvelope.__subclasses__() if variant.__module__ == module.__name__}
    assert ours == {ReadResult, WriteProposal, ToolError}


def test_kind_is_fixed():
    """Seed, "The kind discriminator": the variant decides the kind, not the caller."""
    with pytest.raises(ValidationError):
        ReadResult(kind="write", summary="s", markdown="m")
    with pytest.raises(ValidationError, match="frozen"):
        FOUND.kind = "write"


# --- the operation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "entity_id", "kind"),
    [
        ("WriteCreate", None, "create"),
        ("CreateLeaveRequest", None, "create"),
        ("WriteUpdate", "7", "update"),
        ("UPDATE", "7", "update"),
        ("WriteDelete", "7", "create"),
    ],
)
def test_the_operation_of_a_record(verb, entity_id, kind):
    """REFERENCE 2.2: the shape from the verb, entity type and id copied, field names in record order."""
    record = Affidavit.create(
        operation_type=verb,
        entity_type="LeaveRequest",
        entity_id=entity_id,
        fields=[AffidavitField.of(name, 1, ProvenanceTag.default()) for name in ("b", "a", "c")],
    )
    assert ProposedOperation.from_affidavit(record).to_json() == {
        "kind": kind,
        "entityType": "LeaveRequest",
        "entityId": entity_id,
        "fields": ["b", "a", "c"],
    }


def test_the_operations_kind_is_two_valued():
    """Seed, "ProposedOperation": kind is create or update, never a verb."""
    with pytest.raises(ValidationError):
        ProposedOperation(kind="WriteUpdate", entity_type="T", fields=())
