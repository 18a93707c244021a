"""Was the value said in the turn?"""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from hashlib import sha256

import pytest

from affiant_core.errors import ValueRefused
from affiant_core.presence import (
    DEFAULT_CONFIDENCE,
    UNICODE_VERSION,
    Span,
    find,
    grade,
    same_text,
    span_ref,
    value_text,
)
from affiant_core.vocabulary import ProvenanceSource

AT = datetime(2026, 9, 4, 9, tzinfo=UTC)


def said(utterance, text, hint=None):
    """What the finder found, in the utterance's own characters, with its UTF-16 offset and length."""
    span = find(utterance, text, hint)
    if span is None:
        return None
    ref = span_ref(utterance, span)
    return utterance[span.start : span.end], ref.offset, ref.length


# --- value text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Active", "Active"), (" ", " "), (True, "true"), (False, "false"), (6, "6"), (6.0, "6"), (-0.0, "0"),
        (0.1, "0.1"), (1e21, "1000000000000000000000"), (1e-7, "0.0000001"), (2**53 + 1, "9007199254740992"),
    ],
)  # fmt: skip
def test_value_text(value, text):
    """PV-3, value text: a string itself, a number by SR-1, a boolean true or false; white space is a value."""
    assert value_text(value) == text


@pytest.mark.parametrize(
    "value", [None, "", {}, {"a": 1}, [], ["a"], (), float("nan"), float("inf"), float("-inf"), 10**400]
)
def test_nothing_reported(value):
    """PV-3, value text: null, object, array, empty text, NaN and infinity are nothing reported, never an exception."""
    assert value_text(value) is None


# --- the hit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("utterance", "text", "found"),
    [
        ("set it to Active now", "Active", ("Active", 10, 6)),
        ("Active", "Active", ("Active", 0, 6)),
        ("client lunch", "Client Lunch", ("client lunch", 0, 12)),
        ("in 2026 we took 6 hours", "6", ("6", 16, 1)),
        ("only 2026", "6", None),
        ("6.5 hours", "6", ("6", 0, 1)),
        ("inactive", "active", None),
        ("activeness", "active", None),
        ("active-ish", "active", ("active", 0, 6)),
        ("in_active", "active", None),
        ("active_", "active", None),
        ("active\u203f", "active", None),  # UNDERTIE is connector punctuation
        ("active\u2160", "active", ("active", 0, 6)),  # ROMAN NUMERAL ONE is Nl, which is not Nd
        ("active\u00b2", "active", ("active", 0, 6)),  # SUPERSCRIPT TWO is No
        ("active\u0663", "active", None),  # ARABIC-INDIC DIGIT THREE is Nd
        ("caf\u00e9", "caf", None),
        ("cafe\u0301", "cafe", None),  # COMBINING ACUTE ACCENT is Mn
        ("ka\u0903", "ka", None),  # DEVANAGARI SIGN VISARGA is Mc
        ("a\u20dd", "a", None),  # COMBINING ENCLOSING CIRCLE is Me
        ("\u02b0active", "active", None),  # MODIFIER LETTER SMALL H is Lm
        ("\u6771active", "active", None),  # a letter without case is a letter
        ("active\U0001d504", "active", None),  # a letter beyond the BMP, read as a whole code point
        ("active\U0001f680", "active", ("active", 0, 6)),  # an emoji is So
        ("active\U000e0378", "active", ("active", 0, 6)),  # an unassigned code point is a boundary
        ("active\ud800", "active", ("active", 0, 6)),  # half a pair is Cs
        ("ab", "abc", None),
        ("", "a", None),
    ],
)
def test_the_neighbours_decide(utterance, text, found):
    """PV-3, hit 2: the whole code points around a hit are missing, or are no letter, mark, Nd or Pc."""
    assert said(utterance, text) == found


@pytest.mark.parametrize(
    ("utterance", "text"),
    [
        ("\u212a9 kennel", "K9"),  # KELVIN SIGN
        ("k9 kennel", "\u212a9"),
        ("\u0131ssue", "issue"),  # DOTLESS I
        ("\u0130ssue", "issue"),  # I WITH DOT ABOVE
        ("mi\u017fs", "miss"),  # LONG S
        ("STRASSE", "stra\u00dfe"),
        ("\u00c9cole", "\u00e9cole"),
        ("e\u0301cole", "\u00e9cole"),  # no normalisation
        ("\uff21\uff22", "ab"),  # FULLWIDTH letters
        ("[", "{"),  # 0x5B and 0x7B differ by 32 as letters do
        ("@", "`"),
    ],
)
def test_nothing_but_ascii_letters_folds(utterance, text):
    """PV-3, hit 1: code points match if equal, or if both are ASCII letters that differ only in case."""
    assert find(utterance, text) is None
    assert not same_text(utterance, text)


def test_every_ascii_letter_folds():
    """PV-3, hit 1: ASCII letters fold in both directions."""
    upper, lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
    assert said(upper, lower) == (upper, 0, 26)
    assert said(lower, upper) == (lower, 0, 26)
    assert same_text("Client Lunch é", "cLIENT lUNCH é")


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0", "\u3000 "])
def test_blank_text_never_hits(text):
    """PV-3, value text: an empty or whitespace-only string never hits, with or without a hint."""
    assert find(f"a {text} b", text) is None
    assert find(f"a {text} b", text, (1, 1 + len(text))) is None


def test_half_a_pair_never_hits():
    """PV-3, hit 3: neither end of a hit splits a surrogate pair."""
    assert find("go \U0001f680 go", "\ud83d") is None
    assert find("go \U0001f680 go", "\ude80") is None
    assert said("go \U0001f680 go", "\U0001f680") == ("\U0001f680", 3, 2)


def test_offsets_count_utf16_units():
    """PV-3, result: offset and length are in UTF-16 units, so an emoji before or within the value counts two."""
    assert said("🚀🚀 Zoë 東京", "東京") == ("東京", 9, 2)
    assert said("é ship 🚀 now", "ship 🚀") == ("ship 🚀", 2, 7)


# --- the order of the search ---------------------------------------------------------------------------------------


def test_the_first_hit_wins():
    """PV-3, search order: the scan starts at the beginning, and the first occurrence that is a hit wins."""
    assert said("60 or 6 or 6", "6") == ("6", 6, 1)


def test_overlapping_occurrences_are_tried():
    """PV-3, search order: an occurrence that overlaps one that is no hit is tried too."""
    assert said("xa-a-a", "a-a") == ("a-a", 3, 3)


def test_a_hint_that_is_a_hit_goes_first():
    """PV-3, search order: the port's span is tried first."""
    assert said("6 or 6 or 6", "6", (5, 6)) == ("6", 5, 1)
    assert said("6 or 6 or 6", "6", (5.0, 6.0)) == ("6", 5, 1)


def test_a_hint_counts_utf16_units():
    """PV-3, search order: the port's span is in UTF-16 units."""
    assert said("🚀 6 or 6", "6", (8, 9)) == ("6", 8, 1)


@pytest.mark.parametrize(
    "hint",
    [
        (4.5, 6), (5, 6.000001), ("5", "6"), (None, 6), (5, None), (True, 6), (float("nan"), 6), (5, float("inf")),
        (-1, 1), (6, 5), (5, 5), (5, 99), (99, 100), (10**400, 10**400 + 1), (5, 7), (4, 6), (2, 4), (b"5", 6),
    ],
)  # fmt: skip
def test_a_hint_that_is_no_hit_is_discarded(hint):
    """PV-3, search order: fractional, non-numeric, out of range or wrong coordinates leave the scan to decide."""
    assert said("6 or 6 or 6", "6", hint) == ("6", 0, 1)


def test_a_boolean_is_no_coordinate():
    """PV-3, search order: true is not the number 1."""
    assert said("--", "-", (1, 2)) == ("-", 1, 1)
    assert said("--", "-", (True, 2)) == ("-", 0, 1)


@pytest.mark.parametrize("hint", [(1, 2), (0, 1), (1, 3)])
def test_a_hint_that_splits_a_pair_is_discarded(hint):
    """PV-3, hit 3: a hint whose end lies within a surrogate pair is no hit."""
    assert said("🚀 🚀", "🚀", hint) == ("🚀", 0, 2)


def test_a_hint_inside_a_word_is_discarded():
    """PV-3, search order: the port's span counts only if it is itself a hit."""
    assert find("the year 2026", "6", (12, 13)) is None


# --- the grade -----------------------------------------------------------------------------------------------------


def test_a_hit_is_conversation_with_its_span():
    """PV-3, result: Conversation, bound to the span and the SHA-256 of the utterance's own words, noted as pinned."""
    tag = grade("memo", "Client Lunch", utterance="paid for client lunch", at=AT, confidence=0.8)
    assert tag.to_json() == {
        "source": "Conversation",
        "confidence": 0.8,
        "note": "Literally present in the turn: memo",
        "at": "2026-09-04T09:00:00.000Z",
        "conversationTurn": None,
        "binding": {
            "kind": "utterance-span",
            "ref": {"offset": 9, "length": 12, "hash": sha256(b"client lunch").hexdigest()},
        },
    }


def test_a_miss_is_inferred_without_a_binding():
    """PV-3, result: no hit is Inferred, binding null, noted as pinned."""
    tag = grade("status", "Active", utterance="make it so", at=AT, confidence=1.7)
    assert (tag.source, tag.confidence, tag.binding) == (ProvenanceSource.INFERRED, 1.0, None)
    assert tag.note == "Inferred from the turn: status"
    assert tag.at == AT


@pytest.mark.parametrize("utterance", ["", "   ", "\n"])
def test_a_blank_utterance_is_an_utterance(utterance):
    """PV-3, absent utterance: in empty or blank words nothing hits."""
    assert grade("a", "b", utterance=utterance, at=AT).source is ProvenanceSource.INFERRED


def test_no_utterance_verifies_nothing():
    """PV-3, PV-5: with no utterance at all nothing is verified, and no value is promoted for it."""
    assert grade("a", "b", utterance=None, at=AT).source is ProvenanceSource.INFERRED


@pytest.mark.parametrize(
    ("value", "utterance"),
    [
        (6.0, "took 6 hours"),
        (True, "it is TRUE"),
        (date(2026, 7, 4), "on 2026-07-04"),
        (Decimal("10.10"), "pay 10.10 please"),
        (Enum("Kind", {"A": "annual"}).A, "an annual leave"),
    ],
)
def test_python_values_are_looked_for_as_they_are_spelled(value, utterance):
    """PV-3, DECISIONS 20: a value is looked for in its JSON spelling."""
    assert grade("a", value, utterance=utterance, at=AT).source is ProvenanceSource.CONVERSATION


@pytest.mark.parametrize("value", [None, ""])
def test_what_is_not_there_makes_no_claim(value):
    """PV-3, AF-1: null and empty text are nothing reported, and a proposed field of unknown origin is Empty at 0."""
    tag = grade("a", value, utterance="b null None", at=AT)
    assert (tag.source, tag.confidence, tag.binding) == (ProvenanceSource.EMPTY, 0.0, None)


@pytest.mark.parametrize("value", [[], {}, ["b"], float("nan"), 10**400, " "])
def test_what_is_nothing_reported_never_hits(value):
    """PV-3, value text: nothing reported is never Conversation and never an exception."""
    assert grade("a", value, utterance="b null None [] {} nan", at=AT).source is ProvenanceSource.INFERRED


def test_the_hint_reaches_the_finder():
    """PV-3, search order: the port's span decides between two hits, so it moves the binding's offset."""
    assert grade("a", "6", utterance="6 or 6", at=AT, hint=(5, 6)).binding.ref.offset == 5
    assert grade("a", "6", utterance="6 or 6", at=AT).binding.ref.offset == 0


def test_the_inference_path_can_name_no_other_source():
    """PV-3: the path from a model's word to a tag takes no source, so it mints Conversation or Inferred only."""
    with pytest.raises(TypeError):
        grade("a", "b", utterance="b", at=AT, source=ProvenanceSource.USER_STATED)


def test_defaults():
    """REFERENCE 4, mint defaults: an inference is worth 0.6 when nobody says how sure they are."""
    assert DEFAULT_CONFIDENCE == 0.6
    assert grade("a", "b", utterance="b", at=AT, conversation_turn=3).conversation_turn == 3
    assert grade("a", "b", utterance="b", at=AT).confidence == 0.6


def test_a_value_with_no_spelling_is_refused_by_its_field():
    """DECISIONS 20: a value that has no JSON spelling is refused with the field's name."""
    with pytest.raises(ValueRefused, match=r"^when: "):
        grade("when", datetime(2026, 7, 4), utterance="now", at=AT)


def test_the_unicode_version_is_reported():
    """PV-3: categories come from the runtime's database, whose version is reported."""
    assert unicodedata.unidata_version == UNICODE_VERSION


def test_a_span_is_in_code_points():
    """PV-3: Python counts code points; only the wire counts UTF-16 units."""
    assert find("🚀 6", "6") == Span(2, 3)
    assert span_ref("🚀 6", Span(2, 3)).offset == 3
