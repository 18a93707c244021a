"""A reviewer's act changes what it names, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from affiant_core.affidavit import confidence_numbers
from affiant_core.errors import AmendmentRefused
from affiant_core.vocabulary import ProvenanceSource
from tests.properties.strategies import affidavits, few, names, values

AT = datetime(2026, 9, 4, 10, 30, tzinfo=UTC)


@st.composite
def acts(draw):
    """A record, and a map that names some of its fields, some of them cleared."""
    record = draw(affidavits.filter(lambda made: made.fields))
    named = draw(st.lists(st.sampled_from(record.field_names), unique=True, min_size=1))
    return record, {name: draw(st.none() | values) for name in named}


def change(record, amendments, way):
    return getattr(record, way)(amendments, by="ana", entry_id="e-1", at=AT)


WAYS = pytest.mark.parametrize("way", ["amend", "prefill"])


@WAYS
@few
@given(affidavits, st.sampled_from([None, {}]))
def test_no_amendment_is_the_identity(way, record, amendments):
    """DK-2: a missing or empty map changes nothing."""
    assert change(record, amendments, way) is record


@WAYS
@few
@given(acts())
def test_only_what_is_named_changes(way, act):
    """DK-2: absent leaves alone; order, previousValue, kind and isMandatory never move, nor does the original."""
    record, amendments = act
    before = record.to_json_string()
    changed = change(record, amendments, way)
    assert record.to_json_string() == before
    kept = [name for name in record.field_names if name in changed.field_names]
    assert list(changed.field_names) == kept
    for field in changed.fields:
        original = record.field(field.name)
        if field.name not in amendments:
            assert field == original
            continue
        assert field.value == amendments[field.name]
        assert (field.previous_value, field.kind, field.is_mandatory) == (
            original.previous_value,
            original.kind,
            original.is_mandatory,
        )
    rest = {"fields", "aggregate_confidence", "populated_confidence", "empty_field_count"}
    assert changed.model_dump(exclude=rest) == record.model_dump(exclude=rest)


@WAYS
@few
@given(acts())
def test_the_numbers_are_computed_again(way, act):
    """AF-2, AF-4: the three numbers are those of the fields that are left."""
    changed = change(*act, way)
    numbers = confidence_numbers(changed.fields)
    assert {name: getattr(changed, name) for name in numbers} == numbers
    assert changed.empty_field_count == sum(field.tag.is_empty for field in changed.fields)


@WAYS
@few
@given(acts())
def test_the_displaced_claim_is_first_in_prior(way, act):
    """AF-4: the displaced tag goes to the front of prior, and nothing behind it moves."""
    record, amendments = act
    for field in change(record, amendments, way).fields:
        if field.name in amendments:
            displaced = record.field(field.name).provenance
            assert field.provenance.prior == (displaced.current, *displaced.prior)


@few
@given(acts())
def test_clearing(act):
    """AF-1: just the cleared optional fields leave; a cleared mandatory one stays, Empty; a set one is UserStated."""
    record, amendments = act
    changed = change(record, amendments, "amend")
    left = {
        name for name, value in amendments.items() if value is None and not record.field(name).is_mandatory
    }  # fmt: skip
    assert set(record.field_names) - set(changed.field_names) == left
    for name in amendments.keys() - left:
        cleared = amendments[name] is None
        source = ProvenanceSource.EMPTY if cleared else ProvenanceSource.USER_STATED
        assert changed.field(name).tag.source is source
        assert (changed.field(name).tag.binding is None) is cleared


@few
@given(acts())
def test_prefill_keeps_every_field(act):
    """DK-1, resubmit: a preserved null stays present, stated by the person."""
    record, amendments = act
    carried = change(record, amendments, "prefill")
    assert carried.field_names == record.field_names
    for name, value in amendments.items():
        assert carried.field(name).value == value
        assert carried.field(name).tag.source is ProvenanceSource.USER_STATED


@WAYS
@few
@given(acts(), names)
def test_an_unknown_name_changes_nothing(way, act, unknown):
    """DK-2: an unproposed name is the caller's error, whatever else the map names."""
    record, amendments = act
    assume(unknown not in record.field_names)
    before = record.to_json_string()
    with pytest.raises(AmendmentRefused):
        change(record, {**amendments, unknown: 1}, way)
    assert record.to_json_string() == before
