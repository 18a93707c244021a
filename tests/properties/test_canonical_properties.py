"""One value, one spelling."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from affiant_core.canonical import canonical_bytes, canonical_hash, canonical_text, number_text
from affiant_core.wire import dumps, loads
from tests.properties.strategies import affidavits, few, floats, modest, values

large = st.integers(-(10**300), 10**300)


def as_doubles(value):
    """The value with every number as the double that the canonical form spells."""
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0
    return value


def shuffled(value, random):
    """The value with the members of every object in another order."""
    if isinstance(value, dict):
        members = list(value.items())
        random.shuffle(members)
        return {key: shuffled(item, random) for key, item in members}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@modest
@given(values)
def test_the_form_is_idempotent(value):
    """SR-1: the canonical text, read again, has the same canonical bytes."""
    form = canonical_bytes(value)
    assert canonical_bytes(loads(form)) == form


@modest
@given(values)
def test_the_form_keeps_the_value(value):
    """SR-1: the canonical text is JSON of the same value, numbers taken as doubles."""
    assert as_doubles(json.loads(canonical_text(value))) == as_doubles(value)


@modest
@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_is_irrelevant(value, random):
    """SR-1: keys are sorted at every level, so the order they were given in makes no difference."""
    other = shuffled(value, random)
    assert canonical_text(other) == canonical_text(value)
    assert canonical_hash(other) == canonical_hash(value)


@modest
@given(values)
def test_the_wires_own_spelling_is_irrelevant(value):
    """SR-1: a value that has crossed the wire has the form that it had before."""
    assert canonical_text(loads(dumps(value))) == canonical_text(value)


@modest
@given(floats | large)
def test_numbers_are_positional_and_shortest(number):
    """SR-1: no exponent, no trailing zero after a point, no -0, and the same double comes back."""
    text = number_text(number)
    assert re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", text)
    assert text != "-0"
    assert float(text) == float(number)


@modest
@given(st.integers(-(2**53), 2**53))
def test_one_number_has_one_spelling(number):
    """SR-1: an integer and the equal double, and zero of either sign, are spelled alike."""
    assert number_text(number) == number_text(float(number)) == number_text(number - 0.0)
    assert number_text(-0.0) == number_text(0) == number_text(0.0) == "0"


@modest
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.just(0)))
def test_keys_are_in_code_point_order(value):
    """SR-1: keys stand in code-point order."""
    keys = list(json.loads(canonical_text(value)))
    assert [[*map(ord, key)] for key in keys] == sorted([*map(ord, key)] for key in keys)


@few
@given(affidavits)
def test_every_record_has_a_form(record):
    """SR-1: every sworn record has a canonical form, and it is that of its sworn members."""
    assert as_doubles(json.loads(record.canonical_form())) == as_doubles(record.sworn())
    assert re.fullmatch("[0-9a-f]{64}", record.canonical_hash())
