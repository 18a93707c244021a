"""Strict reading, one way of writing, and faults that quote no value."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest
from pydantic import ValidationError

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.card import CardMultiParty, EvidenceCard
from affiant_core.docket.model import FieldHint, Requirement
from affiant_core.errors import WireError
from affiant_core.provenance import (
    ComputationRuleRef,
    ExternalRecordRef,
    ProvenanceChain,
    ProvenanceTag,
    ReviewerActRef,
    UtteranceSpanRef,
)
from affiant_core.values import MAX_DEPTH
from affiant_core.wire import (
    PROTOCOL_VERSION,
    Identifier,
    Number,
    SparseModel,
    WireModel,
    describe_faults,
    dumps,
    loads,
    quote,
    read,
)

AT = "2026-09-04T09:00:00.000Z"
TAG = {
    "source": "Conversation",
    "confidence": 0.9,
    "note": None,
    "at": AT,
    "conversationTurn": None,
    "binding": None,
}
CHAIN = {"current": TAG, "prior": []}
FIELD = {
    "name": "status",
    "kind": "text",
    "value": "Active",
    "previousValue": None,
    "provenance": CHAIN,
    "isMandatory": False,
}
RECORD = {
    "protocolVersion": "0.5.0",
    "operationType": "update",
    "entityType": "Invoice",
    "entityId": "invoice-1",
    "fields": [FIELD],
    "aggregateConfidence": 0.9,
    "populatedConfidence": 0.9,
    "emptyFieldCount": 0,
    "conversationTurn": None,
    "createdAt": AT,
}


# --- text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("null", None), (" [1, -2.5e3, true] \n", [1, -2500.0, True]), ('{"a":{"a":1}}', {"a": {"a": 1}}),
        ('"\\ud83d\\ude80"', "🚀"), ('"\\u00e9🚀"', "é🚀"), ('"\\\\ud800"', "\\ud800"), ('{"":""}', {"": ""}),
        ("1" + "0" * 308, 10**308), ("9007199254740993", 9007199254740993),
    ],
)  # fmt: skip
def test_loads(text, data):
    """SR-3: JSON text is read as it stands, from text and from UTF-8 bytes alike."""
    assert loads(text) == data
    assert loads(text.encode()) == data


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "nul", "{", '{"a":1,}', "[1,]", "{'a':1}", '{"a":1} x', '"a\nb"', "01", "+1", ".5", "1.", "0x1",
        "// c\n1", '\ufeff{"a":1}', "True",
    ],
)  # fmt: skip
def test_malformed_text(text):
    """DECISIONS 4 and 8, CASES C01: malformed JSON is a WireError that quotes nothing of the text."""
    with pytest.raises(WireError, match=r"malformed JSON at line \d+, column \d+\.$"):
        loads(text)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"x":[{"b":{},"b":{}}]}', '{"a":1,"\\u0061":1}'])
def test_repeated_keys(text):
    """DECISIONS 8: an object that repeats a key is refused at any depth, however the key is spelled."""
    with pytest.raises(WireError, match="repeats a key"):
        loads(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a":-Infinity}'])
def test_not_a_number(text):
    """DECISIONS 8: NaN and infinity are not JSON."""
    with pytest.raises(WireError, match="NaN and infinity"):
        loads(text)


@pytest.mark.parametrize("text", ["1e400", "[-1e999]", "1" + "0" * 309, "-1" + "0" * 400, "9" * 5000])
def test_numbers_beyond_a_double(text):
    """SR-1: a number that no double holds is refused, whether it is written with an exponent or in full."""
    with pytest.raises(WireError, match="too large for a double"):
        loads(text)


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '"\\uDEAD"', '{"\\ud83d":1}', '[["a\\udfff"]]', '"\\ude80\\ud83d"', '"\ud800"']
)
def test_lone_surrogates(text):
    """DECISIONS 20: text with half a surrogate pair has no UTF-8 form and is refused, in values and in keys."""
    with pytest.raises(WireError, match="lone surrogate"):
        loads(text)


@pytest.mark.parametrize(
    "data",
    [b"\xff", b'"\xe9"', b'"\xed\xa0\x80"', '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32-le")],
    ids=["ff", "latin-1", "surrogate", "utf-16", "utf-32"],
)
def test_bytes_that_are_not_utf8(data):
    """SR-1: JSON in bytes is UTF-8 and nothing else."""
    with pytest.raises(WireError):
        loads(data)


def test_a_byte_order_mark_is_refused():
    """SR-1: UTF-8 without a byte order mark."""
    with pytest.raises(WireError):
        loads(b"\xef\xbb\xbf{}")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_too_deep(opening):
    """DECISIONS 4: text nested without end is a WireError and not a crash."""
    with pytest.raises(WireError):
        loads(opening * 100_000)


def test_size_is_counted_in_bytes():
    """DECISIONS 4: the limit counts bytes of UTF-8, at the boundary exactly, for text and for bytes."""
    text = '"🚀é"'  # 8 bytes, 4 characters
    assert loads(text, max_bytes=8) == "🚀é"
    assert loads(text.encode(), max_bytes=8) == "🚀é"
    for oversize in (text, text.encode(), '"1234567"'):
        with pytest.raises(WireError, match="larger than the limit of 7 bytes"):
            loads(oversize, max_bytes=7)
    with pytest.raises(WireError, match="larger than the limit of 17 bytes"):
        loads('"🚀🚀🚀🚀"', max_bytes=17)


def test_dumps_is_one_line_and_unescaped():
    """Seed, "Serializing": no indentation, nulls written, non-ASCII and markup unescaped."""
    assert dumps({"é": [1, None, True, "<🚀>"], "a": {}}) == '{"é":[1,null,true,"<🚀>"],"a":{}}'


@pytest.mark.parametrize("data", [float("nan"), [float("inf")], object(), {"a": {1, 2}}, b"x", {(1, 2): 3}])
def test_dumps_refuses_what_is_not_json(data):
    """SR-3: nothing but JSON is written."""
    with pytest.raises(WireError, match=r"^the data is not JSON \(\w+\)\.$"):
        dumps(data)
    circular = []
    circular.append(circular)
    with pytest.raises(WireError):
        dumps(circular)


def test_quote_escapes_only_what_json_demands():
    """SR-1: quote, backslash and C0 controls are escaped, short forms where JSON has them, else lowercase u-escapes."""
    controls = "".join(map(chr, range(0x20)))
    assert quote(f'"\\/\x7f\u2028é🚀{controls}') == (
        r'"\"\\/' + "\x7f\u2028é🚀"
        r"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"
        r'\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"'
    )  # fmt: skip


# --- models --------------------------------------------------------------------------------------------------------


def changed(document, *path_and_value):
    """A deep copy of ``document`` in which the member at a path has another value."""
    *path, last, value = path_and_value
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path:
        place = place[step]
    place[last] = value
    return copy


def without(document, *path):
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return copy


def test_a_record_is_read_from_text_bytes_and_data():
    """SR-3: the same record comes out of text, of bytes and of parsed data."""
    text = json.dumps(RECORD)
    assert read(Affidavit, text) == read(Affidavit, text.encode()) == read(Affidavit, RECORD)


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (Affidavit, changed(RECORD, "extra", 1)),
        (Affidavit, changed(RECORD, "fields", 0, "extra", 1)),
        (Affidavit, changed(RECORD, "fields", 0, "provenance", "extra", 1)),
        (Affidavit, changed(RECORD, "fields", 0, "provenance", "current", "extra", 1)),
        (Affidavit, changed(RECORD, "fields", 0, "provenance", "current", "binding",
                            {"kind": "form-input", "ref": {"field": "a"}, "extra": 1})),
        (Affidavit, changed(RECORD, "fields", 0, "provenance", "current", "binding",
                            {"kind": "form-input", "ref": {"field": "a", "extra": 1}})),
        (ProvenanceTag, {**TAG, "conversation_turn": None}),
    ],
    ids=["affidavit", "field", "chain", "tag", "binding", "ref", "snake_case"],
)  # fmt: skip
def test_unknown_members_are_refused(model, document):
    """SR-3, DECISIONS 4: Affidavit, field, chain, tag and binding refuse members that they do not know."""
    with pytest.raises(WireError, match="Extra inputs are not permitted"):
        read(model, document)


def test_names_on_the_wire_are_camel_case_only():
    """SR-3: a member under its Python name is an unknown member."""
    renamed = {**without(FIELD, "previousValue"), "previous_value": None}
    with pytest.raises(WireError, match="missing previousValue"):
        read(AffidavitField, renamed)
    with pytest.raises(WireError, match="entryId"):
        read(ReviewerActRef, {"entry_id": "1", "decisionAt": AT})
    assert AffidavitField(name="a", provenance=ProvenanceTag.default(), previous_value=1).previous_value == 1


@pytest.mark.parametrize("member", RECORD)
def test_every_member_of_the_record_is_required(member):
    """RULES, AF: the record has exactly these members, so a missing one is refused although Python has a default."""
    with pytest.raises(WireError, match=member):
        read(Affidavit, without(RECORD, member))


@pytest.mark.parametrize("member", FIELD)
def test_every_member_of_a_field_is_required(member):
    """RULES, AF: a field has exactly these members."""
    with pytest.raises(WireError, match=member):
        read(AffidavitField, without(FIELD, member))


@pytest.mark.parametrize("member", TAG)
def test_every_member_of_a_tag_is_required(member):
    """PV-1: a tag's members are all always present, null when there is nothing to say."""
    with pytest.raises(WireError, match=member):
        read(ProvenanceTag, without(TAG, member))


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (Affidavit, changed(RECORD, "entityType", 5)),
        (Affidavit, changed(RECORD, "entityType", "")),
        (Affidavit, changed(RECORD, "entityId", "")),
        (Affidavit, changed(RECORD, "emptyFieldCount", "0")),
        (Affidavit, changed(RECORD, "emptyFieldCount", True)),
        (Affidavit, changed(RECORD, "emptyFieldCount", -1)),
        (Affidavit, changed(RECORD, "conversationTurn", "1")),
        (Affidavit, changed(RECORD, "aggregateConfidence", "0.9")),
        (Affidavit, changed(RECORD, "aggregateConfidence", 1.1)),
        (Affidavit, changed(RECORD, "aggregateConfidence", 10**400)),
        (Affidavit, changed(RECORD, "populatedConfidence", True)),
        (Affidavit, changed(RECORD, "createdAt", 1788512400)),
        (Affidavit, changed(RECORD, "createdAt", "yesterday")),
        (Affidavit, changed(RECORD, "fields", {"0": FIELD})),
        (Affidavit, changed(RECORD, "fields", 0, "isMandatory", 1)),
        (Affidavit, changed(RECORD, "fields", 0, "isMandatory", "true")),
        (Affidavit, changed(RECORD, "fields", 0, "kind", "Text")),
        (Affidavit, changed(RECORD, "fields", 0, "value", 2**53)),
        (ProvenanceTag, changed(TAG, "source", "conversation")),
        (ProvenanceTag, changed(TAG, "confidence", -0.1)),
        (ProvenanceTag, changed(TAG, "confidence", 1.4)),
        (ProvenanceTag, changed(TAG, "note", 5)),
        (UtteranceSpanRef, {"offset": 1.5, "length": 1, "hash": "0"}),
        (UtteranceSpanRef, {"offset": "1", "length": 1, "hash": "0"}),
        (CardMultiParty, {"approvers": [], "required": "2"}),
        (CardMultiParty, {"approvers": [], "required": True}),
        (Affidavit, []),
        (Affidavit, None),
        (Affidavit, "null"),
        (Affidavit, "[]"),
    ],
)  # fmt: skip
def test_nothing_is_coerced(model, document):
    """SR-3: what is read has the right type and range already; nothing is converted and nothing clamped."""
    with pytest.raises(WireError):
        read(model, document)


@pytest.mark.parametrize(
    ("model", "member", "document"),
    [
        (UtteranceSpanRef, "messageId", {"offset": 0, "length": 1, "hash": "0"}),
        (ExternalRecordRef, "fetchedAt", {"system": "erp", "recordId": "1"}),
        (ExternalRecordRef, "contentHash", {"system": "erp", "recordId": "1"}),
        (ExternalRecordRef, "relay", {"system": "erp", "recordId": "1"}),
        (ComputationRuleRef, "constant", {"rule": "r", "inputs": ["a"]}),
        (FieldHint, "kind", {"name": "a"}),
        (FieldHint, "allowedValues", {"name": "a"}),
        (FieldHint, "pattern", {"name": "a"}),
        (Requirement, "approvers", {"kind": "ReviewerConfirmation"}),
    ],
)
def test_sparse_members_are_absent_not_null(model, member, document):
    """PV-2; seed, "Serializing": an optional member with nothing to say is left out; null in its place is refused."""
    record = read(model, document)
    assert record.to_json() == document
    assert json.loads(record.to_json_string()) == document
    with pytest.raises(WireError, match=f"{member} must be absent rather than null"):
        read(model, {**document, member: None})


def test_every_other_null_is_written():
    """Seed, "Serializing": nulls are written rather than skipped."""
    tag = ProvenanceTag.default()
    assert tag.to_json()["binding"] is None
    assert '"binding":null' in tag.to_json_string()
    assert '"note":null' in tag.to_json_string()


def test_records_are_frozen():
    """DK-4: what was sworn is not edited in place."""
    with pytest.raises(ValidationError, match="frozen"):
        read(ProvenanceTag, TAG).confidence = 1.0


@pytest.mark.parametrize("version", ["0.1.0", "0.5.0", "0.9.12", "0.6.0-beta.1"])
def test_the_same_major_version_is_read(version):
    """SR-4: another minor version of the same major is read."""
    assert read(Affidavit, changed(RECORD, "protocolVersion", version)).protocol_version == version


@pytest.mark.parametrize("version", ["1.0.0", "10.0.0", "0", "0.5", "v0.5.0", "0.05.0", "0.5.0 ", ""])
def test_another_major_version_is_refused(version):
    """SR-4: a record of another major version, or of none, is refused."""
    with pytest.raises(WireError, match="protocolVersion"):
        read(Affidavit, changed(RECORD, "protocolVersion", version))


def test_we_write_0_5_0():
    """DECISIONS 2: protocolVersion is 0.5.0."""
    assert PROTOCOL_VERSION == "0.5.0"


# --- faults --------------------------------------------------------------------------------------------------------

SECRET = "s3cret"


@pytest.mark.parametrize(
    "document",
    [
        changed(RECORD, "operationType", [SECRET]),
        changed(RECORD, "createdAt", SECRET),
        changed(RECORD, "aggregateConfidence", SECRET),
        changed(RECORD, "emptyFieldCount", SECRET),
        changed(RECORD, "protocolVersion", SECRET),
        changed(RECORD, "fields", SECRET),
        changed(RECORD, "fields", 0, SECRET),
        changed(RECORD, "fields", 0, "kind", SECRET),
        changed(RECORD, "fields", 0, "isMandatory", SECRET),
        changed(RECORD, "fields", 0, "value", f"{SECRET}\ud800"),
        changed(RECORD, "fields", 0, "provenance", "current", "source", SECRET),
        changed(RECORD, "fields", 0, "provenance", "current", "binding", {"kind": SECRET, "ref": {}}),
        changed(RECORD, "fields", 0, "provenance", "current", "binding", {"kind": "form-input", "ref": SECRET}),
        changed(RECORD, "fields", 0, "provenance", "current", "binding", {"ref": SECRET}),
    ],
)
def test_faults_quote_no_value(document):
    """AF-5 (as later implementations cite it), CONTRIBUTING: a fault names the place and never a value."""
    with pytest.raises(WireError) as fault:
        read(Affidavit, document)
    assert SECRET not in str(fault.value)
    assert fault.value.__cause__ is None
    assert fault.value.__suppress_context__


def test_faults_name_every_place():
    """CONTRIBUTING: messages say what is wrong and with what, for all faults at once."""
    document = changed(changed(RECORD, "entityType", 5), "fields", 0, "provenance", "current", "source", "Guessed")
    with pytest.raises(WireError) as fault:
        read(Affidavit, document)
    assert str(fault.value).startswith("not a valid Affidavit: entityType: ")
    assert "; fields.0.provenance.current.source: not one of UserStated, External" in str(fault.value)


def test_describe_faults_replaces_the_messages_that_repeat_a_value():
    """CONTRIBUTING: pydantic's messages for a wrong word repeat it, so they are replaced."""
    with pytest.raises(ValidationError) as error:
        ProvenanceChain.model_validate({"current": {**TAG, "binding": {"kind": SECRET, "ref": {}}}, "prior": []})
    assert SECRET in str(error.value)
    assert describe_faults(error.value) == "current.binding: not one of the allowed words"


def test_a_fault_of_the_record_as_a_whole_is_named_so():
    """CONTRIBUTING: a fault always names a place."""
    with pytest.raises(WireError, match=r"^not a valid ProvenanceTag: record: missing "):
        read(ProvenanceTag, {})


def test_a_model_of_ones_own_follows_the_same_conventions():
    """DESIGN: the model base gives camelCase outside, closed records and sparse members to whoever derives from it."""

    class Sparse(SparseModel):
        omitted_when_null: ClassVar[frozenset[str]] = frozenset({"lastSeen"})
        first_name: Identifier
        last_seen: Number | None = None

    class Outer(WireModel):
        inner_part: Sparse

    assert Outer(inner_part=Sparse(first_name="a")).to_json_string() == '{"innerPart":{"firstName":"a"}}'
    assert read(Outer, '{"innerPart":{"firstName":"a","lastSeen":2}}').inner_part.last_seen == 2.0


def test_the_card_is_read_back():
    """SR-4: a card of another major version is refused like a record."""
    card = {
        "protocolVersion": "0.5.0", "docketId": "1", "affidavit": RECORD, "requiredBy": AT, "priorAmendments": None,
        "populatedConfidence": 0.9, "emptyFieldCount": 0, "blocked": None, "requiresConfirmation": True,
    }  # fmt: skip
    assert read(EvidenceCard, card).to_json() == card
    for faulty in ({**card, "protocolVersion": "1.0.0"}, without(card, "protocolVersion"), {**card, "extra": 1}):
        with pytest.raises(WireError):
            read(EvidenceCard, faulty)


def test_a_value_may_be_as_deep_in_a_record_as_alone():
    """SR-1, CASES C16: the levels that a record adds around a value are not counted against it."""
    value = "deep"
    for _ in range(MAX_DEPTH):
        value = [value]
    record = read(Affidavit, changed(RECORD, "fields", 0, "value", value))
    assert read(Affidavit, record.to_json_string()) == record
    assert len(record.canonical_hash()) == 64
