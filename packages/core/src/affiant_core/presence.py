"""Was the value said in the turn? The finder that grades ``Conversation`` against ``Inferred`` (PV-3).

The unmodified utterance decides; a model's own claim is only a hint. Offsets on the wire count UTF-16 units.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from affiant_core.canonical import number_text
from affiant_core.errors import ValueRefused
from affiant_core.provenance import ProvenanceTag, UtteranceSpan, UtteranceSpanRef, clamp
from affiant_core.values import spell
from affiant_core.vocabulary import ProvenanceSource

DEFAULT_CONFIDENCE = 0.6
"""What an inferred value is worth when nobody says how sure they are (REFERENCE 4, mint defaults)."""

UNICODE_VERSION = unicodedata.unidata_version
"""The version of the Unicode database that decides word boundaries on this Python."""

_WORD_CATEGORIES = frozenset({"Nd", "Pc"})


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the utterance, in code points: ``start`` inclusive, ``end`` exclusive."""

    start: int
    end: int


def value_text(value: object) -> str | None:
    """The text that a reported value would have in a turn, or ``None`` when there is nothing to look for.

    Text is itself, a number its canonical spelling, a boolean ``true`` or ``false``. Null, arrays, objects, empty text,
    NaN and infinity are nothing reported.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value or None
    if isinstance(value, int | float):
        try:
            return number_text(value)
        except ValueRefused:  # NaN, infinity, or an integer that no double holds
            return None
    return None


def find(utterance: str, text: str, hint: tuple[object, object] | None = None) -> Span | None:
    """The first place where ``text`` stands in ``utterance`` as a whole word, or ``None``.

    ASCII letters match in either case and nothing else folds. The neighbours of a hit may not be letters, marks,
    decimal digits or connector punctuation. ``hint`` is a port's claimed ``[start, end)`` in UTF-16
    units: it is tried first, and counts only if it is itself a hit.
    """
    if not text.strip():
        return None
    wanted = _fold(text)
    folded = _fold(utterance)
    hinted = None if hint is None else _from_utf16(utterance, hint)
    if hinted is not None and folded[hinted.start : hinted.end] == wanted and _stands_alone(utterance, hinted):
        return hinted
    return next((span for span in _occurrences(folded, wanted) if _stands_alone(utterance, span)), None)


def same_text(left: str, right: str) -> bool:
    """Whether two value texts are equal as the finder compares them."""
    return _fold(left) == _fold(right)


def grade(
    field: str,
    value: object,
    *,
    utterance: str | None,
    at: datetime,
    confidence: float = DEFAULT_CONFIDENCE,
    hint: tuple[object, object] | None = None,
    conversation_turn: int | None = None,
) -> ProvenanceTag:
    """The tag of a value that a model supplied: ``Conversation`` with its span if it was said, else ``Inferred``.

    This is the only way from a model's word to a tag, and it can claim no other source (PV-3). Null and empty text are
    nothing reported, and get the ``Empty`` tag that makes no claim. With no utterance at all (``None``, not the same as
    an empty one) nothing can be verified and the value is ``Inferred``.

    Raises ``ValueRefused`` for a value with no JSON spelling.
    """
    if value is None or value == "":
        return ProvenanceTag.empty(at=at)
    text = value_text(value if isinstance(value, str | int | float) else spell(value, field))
    span = None if utterance is None or text is None else find(utterance, text, hint)
    if span is None or utterance is None:
        return ProvenanceTag(
            source=ProvenanceSource.INFERRED,
            confidence=clamp(confidence),
            note=f"Inferred from the turn: {field}",
            at=at,
            conversation_turn=conversation_turn,
        )
    return ProvenanceTag(
        source=ProvenanceSource.CONVERSATION,
        confidence=clamp(confidence),
        note=f"Literally present in the turn: {field}",
        at=at,
        conversation_turn=conversation_turn,
        binding=UtteranceSpan(ref=span_ref(utterance, span)),
    )


def span_ref(utterance: str, span: Span) -> UtteranceSpanRef:
    """``span`` as the wire states it: UTF-16 offset and length, SHA-256 of the utterance's own characters."""
    said = utterance[span.start : span.end]
    return UtteranceSpanRef(
        offset=_utf16_length(utterance[: span.start]),
        length=_utf16_length(said),
        hash=sha256(said.encode("utf-8", "surrogatepass")).hexdigest(),
    )


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _fold(text: str) -> str:
    return text.translate(_ASCII_LOWER)


def _occurrences(folded: str, wanted: str) -> Iterator[Span]:
    start = folded.find(wanted)
    while start != -1:
        yield Span(start, start + len(wanted))
        start = folded.find(wanted, start + 1)


def _stands_alone(utterance: str, span: Span) -> bool:
    before = utterance[span.start - 1] if span.start > 0 else None
    after = utterance[span.end] if span.end < len(utterance) else None
    return _is_boundary(before) and _is_boundary(after)


def _is_boundary(character: str | None) -> bool:
    if character is None:
        return True
    category = unicodedata.category(character)
    return category[0] not in "LM" and category not in _WORD_CATEGORIES


def _from_utf16(utterance: str, hint: tuple[object, object]) -> Span | None:
    start, end = (_whole_number(coordinate) for coordinate in hint)
    if start is None or end is None or not 0 <= start < end:
        return None
    positions = {0: 0}
    units = 0
    for index, character in enumerate(utterance, 1):
        units += 2 if ord(character) > 0xFFFF else 1
        positions[units] = index
    if start not in positions or end not in positions:
        return None
    return Span(positions[start], positions[end])


def _whole_number(coordinate: object) -> int | None:
    if isinstance(coordinate, bool) or not isinstance(coordinate, int | float):
        return None
    if isinstance(coordinate, int):
        return coordinate
    return int(coordinate) if coordinate.is_integer() else None


def _utf16_length(text: str) -> int:
    return sum(2 if ord(character) > 0xFFFF else 1 for character in text)
