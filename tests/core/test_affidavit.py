"""The sworn record, its three numbers, and what a reviewer's act does to it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum

import pytest
from pydantic import ValidationError

from affiant_core.affidavit import (
    Affidavit,
    AffidavitField,
    confidence_numbers,
    hollow_or_empty,
    kind_of,
    misshapen,
)
from affiant_core.errors import AmendmentRefused, ValueRefused, WireError
from affiant_core.provenance import FormInput, ProvenanceChain, ProvenanceTag
from affiant_core.values import Money
from affiant_core.vocabulary import FieldKind, ProvenanceSource
from affiant_core.wire import read

AT = datetime(2026, 9, 4, 9, tzinfo=UTC)
DECIDED = datetime(2026, 9, 4, 10, 30, tzinfo=UTC)
WHEN = "2026-09-04T09:00:00.000Z"
ENTRY = "4f3f031b-a7c4-867c-9b1f-be0de416040d"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def tag(source="Conversation", confidence=0.9, note=None):
    return ProvenanceTag(source=source, confidence=confidence, note=note, at=AT)


def field(name, value="x", claim=None, **others):
    return AffidavitField.of(name, value, claim or tag(), **others)


def record(*fields, **others):
    shape = {"operation_type": "WriteUpdate", "entity_type": "Invoice", "entity_id": "invoice-1", "created_at": AT}
    return Affidavit.create(fields=fields, **shape | others)


# --- shape ---------------------------------------------------------------------------------------------------------


def test_the_sworn_record_has_exactly_its_members():
    """RULES, AF: ten members on the record and six on a field, none of presentation, operation as create or update."""
    sworn = record(
        field("amount", 40, mandatory=True, previous=30, allowed_values=[30, 40], pattern="^4"),
        warnings=["large"],
        requires_confirmation=False,
        conversation_turn=3,
    ).sworn()
    assert sworn == {
        "protocolVersion": "0.5.0",
        "operationType": "update",
        "entityType": "Invoice",
        "entityId": "invoice-1",
        "fields": [
            {
                "name": "amount",
                "kind": "number",
                "value": 40,
                "previousValue": 30,
                "provenance": {"current": tag().to_json(), "prior": []},
                "isMandatory": True,
            }
        ],
        "aggregateConfidence": 0.9,
        "populatedConfidence": 0.9,
        "emptyFieldCount": 0,
        "conversationTurn": 3,
        "createdAt": WHEN,
    }


def test_presentation_is_written_and_read_but_never_hashed():
    """SR-1: warnings, requiresConfirmation, allowedValues and pattern cross the wire and move no hash."""
    plain = record(field("a", "x"))
    dressed = record(
        field("a", "x", allowed_values=["x"], pattern="."), warnings=["careful"], requires_confirmation=False
    )
    assert read(Affidavit, dressed.to_json_string()) == dressed
    assert dressed.to_json()["warnings"] == ["careful"]
    assert dressed.to_json()["fields"][0]["allowedValues"] == ["x"]
    assert plain.to_json()["fields"][0]["pattern"] is None
    assert dressed.canonical_hash() == plain.canonical_hash()
    assert dressed.canonical_form() == plain.canonical_form()


@pytest.mark.parametrize(
    "others",
    [
        {"entity_type": "Order"}, {"entity_id": "invoice-2"}, {"operation_type": "create"}, {"conversation_turn": 1},
        {"created_at": DECIDED},
    ],
)  # fmt: skip
def test_every_sworn_member_is_hashed(others):
    """SR-1: the form covers every property of the schema, conversationTurn and createdAt included."""
    assert record(field("a"), **others).canonical_hash() != record(field("a")).canonical_hash()


def test_the_protocol_version_is_hashed():
    """SR-1: protocolVersion is inside the canonical form."""
    sworn = record(field("a"))
    assert sworn.model_copy(update={"protocol_version": "0.1.0"}).canonical_hash() != sworn.canonical_hash()


def test_the_hosts_verb_is_not_hashed():
    """Seed, "operationType": the canonical form writes create or update rather than the verb."""
    verbs = [record(field("a"), operation_type=verb) for verb in ("CreateLeaveRequest", "WriteCreate", "create")]
    assert {verb.canonical_hash() for verb in verbs} == {verbs[0].canonical_hash()}
    assert verbs[0].operation_type == "CreateLeaveRequest"
    assert verbs[0].sworn()["operationType"] == "create"


def test_fields_stand_in_proposed_order():
    """AF-1: fields stand in the order in which they are proposed; a name that is not proposed is absent."""
    sworn = record(field("b", 1), field("a", None, ProvenanceTag.empty(at=AT)))
    assert sworn.field_names == ("b", "a")
    assert sworn.values() == {"b": 1, "a": None}
    assert sworn.field("a").tag.source is ProvenanceSource.EMPTY
    with pytest.raises(KeyError):
        sworn.field("c")


def test_a_field_is_named_once():
    """AF-1: fields equal the proposed list, so no name stands twice, in Python or on the wire."""
    with pytest.raises(ValidationError, match="a field is named twice"):
        record(field("a"), field("a"))
    document = record(field("a"), field("b")).to_json()
    document["fields"][1]["name"] = "a"
    with pytest.raises(WireError, match="a field is named twice"):
        read(Affidavit, document)


def test_create_defaults():
    """Seed, "Affidavit.create": confirmation is required unless said otherwise; turn and creation may stay open."""
    sworn = Affidavit.create(operation_type="WriteCreate", entity_type="LeaveRequest", fields=[])
    assert (sworn.requires_confirmation, sworn.warnings, sworn.entity_id) == (True, (), None)
    assert (sworn.conversation_turn, sworn.created_at, sworn.protocol_version) == (None, None, "0.5.0")


def test_values_are_spelled():
    """DECISIONS 20: a sworn value is JSON, whatever Python value it came from."""
    when = datetime(2026, 7, 4, 15, 22, 3, 104999, tzinfo=UTC)
    sworn = record(
        field("money", Money("10.00", "EUR"), previous=Decimal("9.90")), field("when", when), field("color", Color.RED)
    )
    assert sworn.values() == {
        "money": {"amount": "10.00", "currency": "EUR"},
        "when": "2026-07-04T15:22:03.104Z",
        "color": "red",
    }
    assert sworn.field("money").previous_value == "9.90"
    assert sworn.field("color").allowed_values == ("red", "blue")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, FieldKind.NUMBER), (1.5, FieldKind.NUMBER), (Decimal(1), FieldKind.NUMBER),
        (Money("1", "EUR"), FieldKind.NUMBER),
        (date(2026, 7, 4), FieldKind.DATE), (AT, FieldKind.DATE), (Color.RED, FieldKind.ENUM), (True, FieldKind.TEXT),
        ("1", FieldKind.TEXT), (None, FieldKind.TEXT), ([], FieldKind.TEXT), (time(9), FieldKind.TEXT),
    ],
)  # fmt: skip
def test_kinds_are_read_off_the_value(value, kind):
    """RULES, AF: text, number, date or enum."""
    assert kind_of(value) is kind
    assert AffidavitField.of("a", value, tag()).kind is kind


@pytest.mark.parametrize("kind", ["text", "number", "date", "enum"])
@pytest.mark.parametrize("value", ["lots", 1, None, {"a": 1}])
def test_kind_never_constrains_the_value(kind, value):
    """RULES, AF: kind never constrains the value."""
    assert AffidavitField(name="a", kind=kind, value=value, provenance=tag()).value == value


# --- the three numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("confidences", "aggregate", "populated", "empty"),
    [
        ([], 0.0, None, 0),
        ([0.9], 0.9, 0.9, 0),
        ([0.9, 0.4, 0.7], 0.4, 0.4, 0),
        ([1.0, None], 0.0, 1.0, 1),
        ([None, None], 0.0, None, 2),
        ([0.0, 0.5], 0.0, 0.0, 0),
        ([0.9, None, 0.3, None], 0.0, 0.3, 2),
    ],
)
def test_confidence_numbers(confidences, aggregate, populated, empty):
    """AF-2: minimum with Empty as 0, minimum over the rest or null, count of Empty."""
    fields = [
        field(f"f{index}", None, ProvenanceTag.empty(at=AT) if confidence is None else tag(confidence=confidence))
        for index, confidence in enumerate(confidences)
    ]
    sworn = record(*fields)
    assert (sworn.aggregate_confidence, sworn.populated_confidence, sworn.empty_field_count) == (
        aggregate,
        populated,
        empty,
    )
    assert confidence_numbers(fields)["empty_field_count"] == empty


def test_only_the_current_tag_counts():
    """AF-2: the numbers are over the tags in force, not over what they displaced."""
    chain = ProvenanceChain.of(tag(confidence=0.1)).supersede(tag(confidence=0.8))
    assert record(field("a", 1, chain)).aggregate_confidence == 0.8


def test_other_fields_give_other_numbers():
    """AF-2: replacing the fields computes all three again (REFERENCE 3)."""
    sworn = record(field("a", 1, tag(confidence=0.5))).with_fields([field("b", None, ProvenanceTag.empty(at=AT))])
    assert (sworn.aggregate_confidence, sworn.populated_confidence, sworn.empty_field_count) == (0.0, None, 1)


# --- create or update ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["WriteUpdate", "update", "UPDATE"])
def test_an_update_names_its_entity(operation):
    """AF-3: entityId is non-null on an update; creating the record alone does not check it (seed: filing does)."""
    assert misshapen(record(field("a", previous="old"), operation_type=operation)) is None
    assert "entity_id is missing" in misshapen(record(field("a"), operation_type=operation, entity_id=None))
    assert record(field("a"), operation_type=operation).is_update


@pytest.mark.parametrize("operation", ["WriteCreate", "create", "WriteDelete", "CreateLeaveRequest"])
def test_a_create_names_none_and_has_no_previous_values(operation):
    """AF-3: on a create entityId is null and every previousValue is null."""
    assert misshapen(record(field("a"), operation_type=operation, entity_id=None)) is None
    assert misshapen(record(field("a"), operation_type=operation)).startswith("AF-3: a create names no entity")
    previous = record(field("a", previous=0), operation_type=operation, entity_id=None)
    assert misshapen(previous) == "AF-3: a create has no previous values."
    assert not previous.is_update


def test_previous_value_is_always_written():
    """AF-3: every field has a previousValue, the stored value or null."""
    assert record(field("a")).sworn()["fields"][0]["previousValue"] is None


# --- substance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, False, [], {}, "x", 0.0])
def test_a_value_under_empty_is_hollow(value):
    """GT-3: 0, false, [] and {} are values, so under Empty they are hollow; the reason names the field, no value."""
    reason = hollow_or_empty(record(field("good"), field("bad", value, ProvenanceTag.empty(at=AT))))
    assert reason == "GT-3: field 'bad' holds a value under Empty provenance."


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_nothing_under_empty_is_honest(value):
    """GT-3: null and blank text are no values."""
    assert hollow_or_empty(record(field("good"), field("open", value, ProvenanceTag.empty(at=AT)))) is None


def test_a_record_that_swears_to_nothing():
    """GT-3: without a field of any origin there is no substance; a hollow field is reported in preference."""
    nothing = "GT-3: no proposed field carries provenance other than Empty."
    assert hollow_or_empty(record(field("a", None, ProvenanceTag.empty(at=AT)))) == nothing
    assert hollow_or_empty(record()) == nothing
    assert "holds a value" in hollow_or_empty(record(field("a", 1, ProvenanceTag.empty(at=AT))))


# --- amendments ----------------------------------------------------------------------------------------------------


def amended(sworn, amendments):
    return sworn.amend(amendments, by="ana", entry_id=ENTRY, at=DECIDED)


def test_an_amended_field():
    """AF-4: UserStated at 1, bound to the reviewer's act, noted as pinned, the displaced tag at the front of prior."""
    chain = ProvenanceChain.of(tag(note="older")).supersede(tag(note="displaced"))
    sworn = record(field("limit", 500, chain, previous=100, mandatory=True, kind=FieldKind.TEXT), conversation_turn=7)
    changed = amended(sworn, {"limit": 50}).field("limit")
    assert changed.value == 50
    assert changed.tag.to_json() == {
        "source": "UserStated",
        "confidence": 1.0,
        "note": f"Amended by ana on Docket entry {ENTRY}",
        "at": "2026-09-04T10:30:00.000Z",
        "conversationTurn": 7,
        "binding": {
            "kind": "reviewer-act",
            "ref": {"entryId": ENTRY, "decisionAt": "2026-09-04T10:30:00.000Z"},
        },
    }
    assert [claim.note for claim in changed.provenance.prior] == ["displaced", "older"]
    assert (changed.previous_value, changed.is_mandatory, changed.kind) == (100, True, FieldKind.TEXT)


def test_the_turn_is_the_affidavits_own():
    """AF-4: the new tag's conversationTurn is the Affidavit's, not the displaced tag's."""
    claim = ProvenanceTag(source="Conversation", confidence=0.5, at=AT, conversation_turn=3)
    assert amended(record(field("a", 1, claim)), {"a": 2}).field("a").tag.conversation_turn is None


def test_the_original_is_untouched():
    """DK-1: the row keeps the proposal unedited; an amendment makes another record."""
    sworn = record(field("a", 1), field("b", 2))
    before = sworn.to_json_string()
    changed = amended(sworn, {"a": 5})
    assert sworn.to_json_string() == before
    assert changed.values() == {"a": 5, "b": 2}
    assert changed.field("b") == sworn.field("b")
    assert (changed.created_at, changed.entity_id) == (sworn.created_at, sworn.entity_id)


def test_numbers_are_computed_again():
    """AF-4: all three numbers are computed again over what is left."""
    sworn = record(field("a", 1, tag(confidence=0.4)), field("b", 2, tag(confidence=0.8)))
    changed = amended(sworn, {"a": 5})
    assert (changed.aggregate_confidence, changed.populated_confidence, changed.empty_field_count) == (0.8, 0.8, 0)


def test_a_cleared_mandatory_field_stays_empty():
    """AF-1, DECISIONS 18(6): a cleared mandatory field stays, null under Empty, with no binding."""
    changed = amended(record(field("a", 1, mandatory=True), field("b", 2)), {"a": None})
    cleared = changed.field("a")
    assert (cleared.value, cleared.tag.source, cleared.tag.confidence) == (None, ProvenanceSource.EMPTY, 0.0)
    assert cleared.tag.binding is None
    assert cleared.tag.note == f"Amended by ana on Docket entry {ENTRY}"
    assert len(cleared.provenance.prior) == 1
    assert (changed.aggregate_confidence, changed.populated_confidence, changed.empty_field_count) == (0.0, 0.9, 1)


def test_a_cleared_optional_field_leaves():
    """AF-1: a cleared optional field leaves the record, for the write no longer proposes it."""
    changed = amended(record(field("a", 1), field("b", 2)), {"a": None})
    assert changed.field_names == ("b",)
    assert amended(record(field("a", 1)), {"a": None}).fields == ()


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_only_null_clears(value):
    """DK-2: null clears, absent leaves alone, and there is no third value."""
    assert amended(record(field("a", 1)), {"a": value}).values() == {"a": value}


@pytest.mark.parametrize("amendments", [None, {}])
def test_no_amendment(amendments):
    """DK-2, DECISIONS 18(5): a missing or empty map is no amendment."""
    sworn = record(field("a"))
    assert amended(sworn, amendments) is sworn
    assert sworn.prefill(amendments, by="ana", entry_id=ENTRY, at=DECIDED) is sworn


def test_an_unproposed_name_is_the_callers_error():
    """DK-2, CASES C09: a name that the record does not propose changes nothing, and the error names it."""
    sworn = record(field("a", 1))
    with pytest.raises(AmendmentRefused, match="'nosuch'"):
        amended(sworn, {"a": 5, "nosuch": "s3cret"})
    with pytest.raises(AmendmentRefused) as refused:
        sworn.prefill({"nosuch": "s3cret"}, by="ana", entry_id=ENTRY, at=DECIDED)
    assert "s3cret" not in str(refused.value)
    assert sworn.values() == {"a": 1}


def test_an_amendment_is_spelled():
    """DECISIONS 20: an amended value follows the value table, and a refusal names the field."""
    sworn = record(field("a", 1))
    assert amended(sworn, {"a": Decimal("10.10")}).values() == {"a": "10.10"}
    with pytest.raises(ValueRefused, match=r"^a: NaN"):
        amended(sworn, {"a": float("nan")})


def test_a_hollow_field_may_be_amended():
    """AF-4: an amendment gives an empty field its value and its origin."""
    sworn = record(field("a", None, ProvenanceTag.empty(at=AT), mandatory=True), field("b"))
    changed = amended(sworn, {"a": "now"})
    assert (changed.empty_field_count, changed.aggregate_confidence) == (0, 0.9)
    assert hollow_or_empty(changed) is None


def test_the_amendment_moves_the_hash():
    """SR-1: the form follows the accepted state, so a grant for the proposal cannot validate the amendment."""
    sworn = record(field("a", 1))
    assert amended(sworn, {"a": 1}).canonical_hash() != sworn.canonical_hash()


def test_previous_value_never_moves():
    """AF-4, REFERENCE 4: previousValue is what was stored, through amendment, clearing and prefill alike."""
    sworn = record(field("a", 1, previous=9, mandatory=True))
    for changed in (
        amended(sworn, {"a": 2}),
        amended(sworn, {"a": None}),
        amended(amended(sworn, {"a": 2}), {"a": 3}),
        sworn.prefill({"a": None}, by="ana", entry_id=ENTRY, at=DECIDED),
    ):
        assert changed.field("a").previous_value == 9


def test_prefill():
    """DK-1, resubmit: UserStated at 1, bound to the old entry and the act's instant, noted as pinned."""
    sworn = record(field("a", 1), field("b", 2), field("c", 3, tag(confidence=0.2)), conversation_turn=2)
    carried = sworn.prefill({"a": 5, "b": None}, by="ana", entry_id=ENTRY, at=DECIDED)
    note = f"Prefilled from the amendment ana carried on Docket entry {ENTRY}"
    for name, value in (("a", 5), ("b", None)):
        claim = carried.field(name).tag
        assert carried.field(name).value == value
        assert (claim.source, claim.confidence, claim.note) == (ProvenanceSource.USER_STATED, 1.0, note)
        assert (claim.at, claim.binding.ref.entry_id, claim.binding.ref.decision_at) == (DECIDED, ENTRY, DECIDED)
        assert claim.conversation_turn == 2
    assert carried.field("c") == sworn.field("c")
    assert carried.aggregate_confidence == 0.2


def test_prefill_keeps_a_cleared_optional_field():
    """DK-1, resubmit: a preserved null stays present, value null, UserStated, even on an optional field."""
    carried = record(field("a", 1)).prefill({"a": None}, by="ana", entry_id=ENTRY, at=DECIDED)
    assert carried.values() == {"a": None}
    assert carried.field("a").tag.source is ProvenanceSource.USER_STATED


def test_a_tag_or_a_chain_may_be_given():
    """PV-1: a field's provenance is a chain; a single tag is a chain of one."""
    claim = ProvenanceTag.user_stated(binding=FormInput.of("a"), at=AT)
    by_tag = AffidavitField.of("a", 1, claim)
    assert by_tag == AffidavitField.of("a", 1, ProvenanceChain.of(claim))
    assert by_tag == AffidavitField(name="a", kind="number", value=1, provenance=claim)
    assert by_tag.tag == claim
