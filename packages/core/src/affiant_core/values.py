"""How a Python value is spelled as JSON, in one table (DECISIONS 20; CASES C16).

===============================  =====================================================
``None``, ``bool``, ``str``      themselves
``int``                          itself, up to 2**53 - 1 in either direction
``float``                        itself; ``-0.0`` becomes ``0.0``
``Decimal``                      its decimal text, never in exponent form
aware ``datetime``               an instant: UTC, three truncated fractional digits, ``Z``
``date``, ``time``               ISO 8601 text
``UUID``                         text
``Enum`` member                  the spelling of its value
``Money``                        an object of two strings
``list``, ``tuple``              an array
mapping with text keys           an object; keys are never renamed
dataclass, pydantic model        an object of its fields
===============================  =====================================================

Everything else is refused with :class:`~affiant_core.errors.ValueRefused`, which names the place: naive datetimes, NaN
and infinity, larger integers (the canonical form would round them), decimals of more than 1000 digits, bytes, sets
(they have no order), text with a lone surrogate, keys that are not text, objects of any other type. Nothing ever
becomes a Python ``repr``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from affiant_core.errors import ValueRefused

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that a double, and so the canonical form, holds exactly (SR-1)."""

MAX_DEPTH = 100
"""How deeply objects and arrays may be nested before a value is refused."""

RECORD_DEPTH = MAX_DEPTH + 10
"""The same for a whole record, which puts a few levels of its own around each value."""

MAX_DECIMAL_DIGITS = 1000
"""The longest text that a ``Decimal`` may need, in digits; a few characters can ask for a billion."""

_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?", re.ASCII
)
_AMOUNT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of money: two strings on the wire, so that no digit is ever lost (SR-2).

    Raises ``ValueRefused`` when ``amount`` is not plain decimal text (a ``Decimal`` is accepted, a ``float`` never) or
    ``currency`` is not three uppercase letters. ``"10.00"`` stays ``"10.00"``.
    """

    amount: str
    currency: str

    def __init__(self, amount: str | Decimal, currency: str) -> None:
        text = spell(amount, "amount") if isinstance(amount, Decimal) else amount
        if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
            raise ValueRefused(
                "amount", "money is plain decimal text such as '10.00'; a float or an exponent is refused."
            )
        if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
            raise ValueRefused("currency", "a currency is three uppercase letters such as 'EUR'.")
        object.__setattr__(self, "amount", text)
        object.__setattr__(self, "currency", currency)


def utc_now() -> datetime:
    """The current instant, to the millisecond, in UTC. The default clock."""
    return to_instant(datetime.now(UTC), "clock")


def to_instant(moment: datetime, path: str = "value") -> datetime:
    """``moment`` in UTC with sub-millisecond digits cut off, as the wire carries it (REFERENCE 2.5).

    Raises ``ValueRefused`` for a naive datetime: whose midnight it names cannot be told.
    """
    if moment.tzinfo is UTC and not moment.microsecond % 1000:
        return moment
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise ValueRefused(path, "a datetime without a time zone is ambiguous; give it one, for example tzinfo=UTC.")
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        raise ValueRefused(path, "the instant lies outside the years 1 to 9999 in UTC.") from None
    return in_utc.replace(microsecond=in_utc.microsecond // 1000 * 1000)


def format_instant(moment: datetime, path: str = "value") -> str:
    """RFC 3339 text in UTC with exactly three fractional digits, truncated, and ``Z`` (seed; REFERENCE 2.5)."""
    text = to_instant(moment, path).isoformat(timespec="milliseconds")
    return f"{text[:-6]}Z"  # instants are in UTC, which Python writes as +00:00


def parse_instant(text: str, path: str = "value") -> datetime:
    """Read RFC 3339 text; no offset means UTC. Raises ``ValueRefused`` for anything else (REFERENCE 2.5)."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueRefused(path, "not an RFC 3339 instant such as 2026-09-04T09:00:00.000Z.")
    day, clock, fraction, offset = match.groups()
    zone = "+00:00" if offset is None or offset in "Zz" else offset
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6].ljust(6, '0')}{zone}")
    except ValueError:
        raise ValueRefused(path, "the date or time does not exist.") from None
    return to_instant(moment, path)


def has_lone_surrogate(text: str) -> bool:
    """Whether ``text`` holds half of a surrogate pair and so has no UTF-8 form."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def spell(value: object, path: str = "value", *, max_depth: int = MAX_DEPTH) -> JSON:
    """``value`` as JSON data, by the table above. Raises ``ValueRefused`` naming ``path`` and what lies below it.

    A value of the host's that raises while it is read, such as a lazy collection, is refused too; its exception is the
    cause.
    """
    try:
        return _spell(value, path, max_depth)
    except ValueRefused:
        raise
    except Exception as error:
        raise ValueRefused(path, f"reading it raised a {type(error).__name__}.") from error


def _spell(value: Any, path: str, depth: int) -> JSON:
    kind = type(value)
    if value is None or kind is bool:
        return value  # type: ignore[no-any-return]  # narrowed by the line above
    if isinstance(value, Enum):
        return _spell(value.value, path, depth)
    if isinstance(value, str):
        return _text(str.__str__(value), path)
    if isinstance(value, int):
        return _integer(int(value), path)
    if isinstance(value, float):
        return _float(float(value), path)
    if depth == 0:
        raise ValueRefused(path, "nested too deeply.")
    if isinstance(value, Mapping):
        return {_key(key, path): _spell(item, f"{path}.{key}", depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(item, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]
    return _object(value, path, depth)


def _object(value: Any, path: str, depth: int) -> JSON:
    match value:
        case datetime():
            return format_instant(value, path)
        case date() | time():
            return value.isoformat()
        case timedelta():
            raise ValueRefused(path, "a timedelta has no agreed spelling; give a number and name its unit.")
        case Decimal():
            return _decimal(value, path)
        case UUID():
            return str(value)
        case BaseModel():
            return _spell(_members(value, path), path, depth)
        case bytes() | bytearray() | memoryview():
            raise ValueRefused(path, "bytes are not text; decode them, or encode them as base64 text.")
        case set() | frozenset():
            raise ValueRefused(path, "a set has no order; give a sorted list.")
        case _ if is_dataclass(value) and not isinstance(value, type):
            pairs = {field.name: getattr(value, field.name) for field in fields(value)}
            return _spell(pairs, path, depth)
        case _:
            raise ValueRefused(path, f"the type {type(value).__name__} has no honest JSON spelling; convert it first.")


def _decimal(number: Decimal, path: str) -> str:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueRefused(path, "NaN and infinity are not JSON.")
    if max(number.adjusted(), 0) + max(-exponent, 0) > MAX_DECIMAL_DIGITS:
        raise ValueRefused(path, f"a decimal of more than {MAX_DECIMAL_DIGITS} digits.")
    return format(number, "f")


def _members(model: BaseModel, path: str) -> dict[str, Any]:
    try:
        return model.model_dump(by_alias=True, warnings=False)
    except ValueError:
        raise ValueRefused(path, f"a {type(model).__name__} whose members cannot be read.") from None


def _text(text: str, path: str) -> str:
    if has_lone_surrogate(text):
        raise ValueRefused(path, "the text holds a lone surrogate and has no UTF-8 form.")
    return text


def _integer(number: int, path: str) -> int:
    if abs(number) > MAX_SAFE_INTEGER:
        raise ValueRefused(path, "an integer beyond 2**53 - 1 would be rounded; give it as text.")
    return number


def _float(number: float, path: str) -> float:
    if not isfinite(number):
        raise ValueRefused(path, "NaN and infinity are not JSON.")
    return number + 0.0  # -0.0 + 0.0 is 0.0


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise ValueRefused(path, f"an object's keys are text, not {type(key).__name__}.")
    plain = str.__str__(key) if not isinstance(key, Enum) else str(key.value)
    return _text(plain, path)
