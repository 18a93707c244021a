"""The canonical form and its hash: the bytes that two implementations must agree on (SR-1).

UTF-8 without a byte order mark or white space; object keys in code-point order at every level; arrays in their order;
numbers as the double's shortest digits, never in exponent form; strings escaped only where JSON demands it.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from math import isfinite

from affiant_core.errors import ValueRefused
from affiant_core.values import JSON, MAX_SAFE_INTEGER, RECORD_DEPTH, has_lone_surrogate
from affiant_core.wire import quote


def canonical_text(data: JSON) -> str:
    """``data`` in canonical form, as text. Raises ``ValueRefused`` for what is not JSON, naming the place."""
    parts: list[str] = []
    _write(data, parts, "document", RECORD_DEPTH)
    return "".join(parts)


def canonical_bytes(data: JSON) -> bytes:
    """``data`` in canonical form, as UTF-8."""
    return canonical_text(data).encode("utf-8")


def canonical_hash(data: JSON) -> str:
    """The SHA-256 of the canonical form: 64 lowercase hexadecimal digits."""
    return sha256(canonical_bytes(data)).hexdigest()


def number_text(number: float, path: str = "number") -> str:
    """A number's canonical spelling: shortest round-trip digits of the double, always positional, ``-0`` as ``0``.

    An integer beyond 2**53 takes the value of the nearest double. Raises ``ValueRefused`` for NaN and infinity.
    """
    if isinstance(number, int) and abs(number) <= MAX_SAFE_INTEGER:
        return str(int(number))
    try:
        double = float(number)
    except OverflowError:
        raise ValueRefused(path, "the number is too large for a double.") from None
    if not isfinite(double):
        raise ValueRefused(path, "NaN and infinity have no canonical form.")
    text = format(Decimal(repr(double)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _write(item: JSON, parts: list[str], path: str, depth: int) -> None:
    if item is None:
        parts.append("null")
    elif item is True:
        parts.append("true")
    elif item is False:
        parts.append("false")
    elif isinstance(item, str):
        parts.append(_string(item, path))
    elif isinstance(item, int | float):
        parts.append(number_text(item, path))
    elif depth == 0:
        raise ValueRefused(path, "nested too deeply.")
    elif isinstance(item, dict):
        _write_object(item, parts, path, depth)
    elif isinstance(item, list | tuple):
        separator = "["
        for index, child in enumerate(item):
            parts.append(separator)
            _write(child, parts, f"{path}[{index}]", depth - 1)
            separator = ","
        parts.append("]" if item else "[]")
    else:
        raise ValueRefused(path, f"a {type(item).__name__} is not JSON.")


def _write_object(item: dict[str, JSON], parts: list[str], path: str, depth: int) -> None:
    try:
        keys = sorted(item)  # Python compares str by code point, which is the order SR-1 asks for
    except TypeError:
        raise ValueRefused(path, "an object's keys are text.") from None
    separator = "{"
    for key in keys:
        if not isinstance(key, str):
            raise ValueRefused(path, "an object's keys are text.")
        parts.append(separator)
        parts.append(_string(key, path))
        parts.append(":")
        _write(item[key], parts, f"{path}.{key}", depth - 1)
        separator = ","
    parts.append("}" if item else "{}")


def _string(text: str, path: str) -> str:
    if has_lone_surrogate(text):
        raise ValueRefused(path, "the text holds a lone surrogate and has no UTF-8 form.")
    return quote(text)
