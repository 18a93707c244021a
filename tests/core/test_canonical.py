"""The bytes that two implementations must agree on."""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from hashlib import sha256

import pytest

from affiant_core.canonical import canonical_bytes, canonical_hash, canonical_text, number_text
from affiant_core.errors import ValueRefused
from affiant_core.values import MAX_DEPTH, RECORD_DEPTH


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (-0.0, "0"), (0.0, "0"), (1, "1"), (1.0, "1"), (-1.0, "-1"), (40, "40"), (100.0, "100"),
        (12.5, "12.5"), (0.1, "0.1"), (0.1 + 0.2, "0.30000000000000004"), (1e21, "1000000000000000000000"),
        (-1e21, "-1000000000000000000000"), (1e-7, "0.0000001"), (1.5e-10, "0.00000000015"),
        (123456789012345680.0, "123456789012345680"), (1e16, "10000000000000000"),
        (5e-324, "0." + "0" * 323 + "5"), (1.7976931348623157e308, "17976931348623157" + "0" * 292),
        (2**53 - 1, "9007199254740991"), (2**53, "9007199254740992"), (2**53 + 1, "9007199254740992"),
        (-(2**53) - 1, "-9007199254740992"), (10**21, "1000000000000000000000"), (2**70, "1180591620717411300000"),
    ],
)  # fmt: skip
def test_numbers(number, text):
    """SR-1: the double's shortest round-trip digits, always positional, -0 as 0, larger integers as the double."""
    assert number_text(number) == text
    assert canonical_text([number]) == f"[{text}]"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 10**400, -(10**309)])
def test_numbers_without_a_canonical_form(number):
    """SR-1: non-finite numbers are refused, and so is an integer beyond every double; the place is named."""
    with pytest.raises(ValueRefused) as refused:
        canonical_text({"a": [1, number]})
    assert refused.value.path == "document.a[1]"


def test_keys_are_sorted_by_code_point():
    """SR-1: keys are sorted by code point at every level, not by UTF-16 units, not normalised, the empty key first."""
    data = {
        "🚀": 1,
        "\ue000": 2,
        "é": 3,
        "e\u0301": 4,
        "b": {"z": 0, "B": 0, "a/b": 0, "": 0},
        "a": 6,
        "Z": 7,
        "10": 8,
        "9": 9,
    }
    assert canonical_text(data) == (
        '{"10":8,"9":9,"Z":7,"a":6,"b":{"":0,"B":0,"a/b":0,"z":0},"e\u0301":4,"é":3,"\ue000":2,"🚀":1}'
    )


def test_arrays_keep_their_order():
    """SR-1: array order is data."""
    assert canonical_text([3, 1, 2, ["b", "a"], []]) == '[3,1,2,["b","a"],[]]'


def test_strings_are_escaped_only_where_json_demands_it():
    """SR-1: short forms where JSON has them, lowercase u-escapes for other C0 controls, all else literal."""
    text = '" \\ / \b \t \n \f \r \x00 \x1f \x7f \u2028 é 🚀'
    assert canonical_text({text: text}) == (
        r'{"\" \\ / \b \t \n \f \r \u0000 \u001f ' + "\x7f \u2028 é 🚀"
        r'":"\" \\ / \b \t \n \f \r \u0000 \u001f ' + '\x7f \u2028 é 🚀"}'
    )  # fmt: skip


def test_literals_and_emptiness():
    """SR-1: null is written; no white space anywhere."""
    assert (
        canonical_text({"d": {}, "c": [], "b": None, "a": [True, False]}) == '{"a":[true,false],"b":null,"c":[],"d":{}}'
    )


def test_bytes_and_hash():
    """SR-1: UTF-8 without a byte order mark, and lowercase hexadecimal SHA-256 of those bytes."""
    assert canonical_bytes("é") == b'"\xc3\xa9"'
    assert canonical_hash({"b": 1.0, "a": "é"}) == sha256('{"a":"é","b":1}'.encode()).hexdigest()


def test_enum_members_are_their_values():
    """SR-1: a word or number that is an enum member has the same form as the plain one."""
    word = StrEnum("Word", {"RED": "red"})
    number = IntEnum("Number", {"ONE": 1})
    assert canonical_text({word.RED: [word.RED, number.ONE]}) == '{"red":["red",1]}'


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"a": {1: 2}}, "document.a"),
        ({"a": {1: 2, "b": 3}}, "document.a"),
        ({"a": object()}, "document.a"),
        ({"a": b"x"}, "document.a"),
        ({"a": [{1}]}, "document.a[0]"),
        ({"a": "\ud800"}, "document.a"),
        ({"a": {"\udfff": 1}}, "document.a"),
    ],
)
def test_what_is_not_json(data, path):
    """SR-1: what is not JSON has no canonical form; the place is named and the value is not."""
    with pytest.raises(ValueRefused) as refused:
        canonical_text(data)
    assert refused.value.path == path


def test_depth():
    """CASES C16: a record of the deepest allowed value has a canonical form; nesting without end has none."""
    nested = "[" * RECORD_DEPTH + "]" * RECORD_DEPTH
    assert RECORD_DEPTH > MAX_DEPTH
    assert canonical_text(json.loads(nested)) == nested
    with pytest.raises(ValueRefused, match="nested too deeply"):
        canonical_text([json.loads(nested)])
