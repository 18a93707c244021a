"""Between a Docket entry and the columns of its row: how each member is written, and how it is read back.

An entry reads back equal to what was filed, member by member. The Affidavit is stored in its sworn form; what a card
shows beside it is in ``presentation`` (SR-1).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ValidationError

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.docket.model import (
    Approval,
    Attestation,
    CoverageBlocked,
    DecisionRecord,
    DocketEntry,
    Lineage,
    Presentation,
    PreservedAmendments,
    Requirement,
    RequirementNotImplemented,
)
from affiant_core.errors import DocketCorrupt, WireError
from affiant_core.values import JSON, to_instant
from affiant_core.wire import WireModel, dumps, loads, read

ModelT = TypeVar("ModelT", bound=WireModel)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(moment: datetime) -> int:
    """An instant as whole milliseconds since 1970-01-01 UTC. Raises ``ValueRefused`` for a naive datetime."""
    return (to_instant(moment) - _EPOCH) // _MILLISECOND


def from_milliseconds(count: int) -> datetime:
    """The instant that :func:`to_milliseconds` counted."""
    return _EPOCH + count * _MILLISECOND


def columns_of(entry: DocketEntry) -> dict[str, Any]:
    """The row of ``entry``: a value for every column but its position."""
    columns = written({name: getattr(entry, name) for name in _CODECS})
    columns["approvals_count"] = len(entry.approvals or ())
    columns["supersedes"] = entry.lineage.supersedes
    columns["superseded_by"] = entry.lineage.superseded_by
    return columns


def written(members: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of some of an entry's members, given by attribute name."""
    columns: dict[str, Any] = {}
    for name, value in members.items():
        columns[name] = None if value is None else _CODECS[name][0](value)
        if name == "approvals":
            columns["approvals_count"] = len(value or ())
    return columns


def entry_of(row: Mapping[str, Any]) -> DocketEntry:
    """The entry that ``row`` holds.

    Raises ``DocketCorrupt`` that names the entry's id and the column that cannot be read, and quotes nothing from it.
    """
    members: dict[str, Any] = {}
    name = "supersedes"
    try:
        lineage = Lineage(supersedes=row["supersedes"], superseded_by=row["superseded_by"])
        for name, (_, read_column) in _CODECS.items():
            stored = row[name]
            members[name] = None if stored is None else read_column(stored)
        return DocketEntry(**members, lineage=lineage)
    except ValidationError as invalid:
        # The only errors left are those of plain columns. pydantic quotes the input, so its error is not chained.
        place = invalid.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]
        raise _unreadable(row, str(place[0]) if place else name) from None
    except WireError as error:
        raise _unreadable(row, name) from error
    except (ValueError, TypeError, LookupError, OverflowError):
        raise _unreadable(row, name) from None


def _unreadable(row: Mapping[str, Any], column: str) -> DocketCorrupt:
    return DocketCorrupt(f"the Docket row {row['entry_id']!r} cannot be read: its column {column!r} is damaged.")


# --- one column ----------------------------------------------------------------------------------------------------


def _load(text: Any) -> JSON:
    # What was filed must be readable, whatever its size: the limit on text from outside does not apply here.
    if not isinstance(text, str):
        raise TypeError("not text")
    return loads(text, max_bytes=sys.maxsize)


def _load_object(text: Any) -> dict[str, JSON]:
    document = _load(text)
    if not isinstance(document, dict):
        raise TypeError("not an object")
    return document


def _same(value: Any) -> Any:
    return value


def _write_model(model: WireModel) -> str:
    return model.to_json_string()


def _model(model: type[ModelT]) -> Callable[[Any], ModelT]:
    return lambda text: read(model, _load(text))


def _read_blocked(text: Any) -> RequirementNotImplemented | CoverageBlocked:
    document = _load_object(text)
    if document.get("code") == "coverage-refused":
        return read(CoverageBlocked, document)
    return read(RequirementNotImplemented, document)


def _write_approvals(approvals: tuple[Approval, ...]) -> str:
    return dumps([approval.to_json() for approval in approvals])


def _read_approvals(text: Any) -> tuple[Approval, ...]:
    document = _load(text)
    if not isinstance(document, list):
        raise TypeError("not an array")
    return tuple(read(Approval, item) for item in document)


@lru_cache(maxsize=64)
def _read_requirement(text: Any) -> Requirement:
    return read(Requirement, _load(text))


def _write_affidavit(affidavit: Affidavit) -> str:
    return dumps(affidavit.sworn())


def _read_affidavit(text: Any) -> Affidavit:
    # One act reads the same row several times, and the record is by far its largest part.
    if not isinstance(text, str) or len(text) > _REMEMBERED_LENGTH:
        return read(Affidavit, _load(text))
    affidavit = _remembered(text)
    if not any(_is_mutable(field) for field in affidavit.fields):
        return affidavit
    return affidavit.model_copy(update={"fields": tuple(map(_with_own_values, affidavit.fields))})


_REMEMBERED_LENGTH = 32 * 1024


@lru_cache(maxsize=256)
def _remembered(text: str) -> Affidavit:
    return read(Affidavit, _load(text))


def _is_mutable(field: AffidavitField) -> bool:
    return isinstance(field.value, dict | list) or isinstance(field.previous_value, dict | list)


def _with_own_values(field: AffidavitField) -> AffidavitField:
    # No caller ever holds an object or array that another caller, or the memory, holds too.
    if not _is_mutable(field):
        return field
    return field.model_copy(
        update={"value": deepcopy(field.value), "previous_value": deepcopy(field.previous_value)}
    )


_Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
_PLAIN: _Codec = (_same, _same)
_WORD: _Codec = (str, _same)
_INSTANT: _Codec = (to_milliseconds, from_milliseconds)
_OBJECT: _Codec = (dumps, _load_object)
_AFFIDAVIT: _Codec = (_write_affidavit, _read_affidavit)

_CODECS: Mapping[str, _Codec] = {
    "tenant_id": _PLAIN,
    "entry_id": _PLAIN,
    "conversation_id": _PLAIN,
    "status": _WORD,
    "execution": _WORD,
    "filed_at": _INSTANT,
    "expires_at": _INSTANT,
    "decided_at": _INSTANT,
    "requested_by": _PLAIN,
    "channel": _PLAIN,
    "tool_name": _PLAIN,
    "protocol_version": _PLAIN,
    "affidavit": _AFFIDAVIT,
    "amended_affidavit": _AFFIDAVIT,
    "requirement": (_write_model, _read_requirement),
    "blocked": (_write_model, _read_blocked),
    "approvals": (_write_approvals, _read_approvals),
    "attestation": (_write_model, _model(Attestation)),
    "amendments": _OBJECT,
    "preserved_amendments": (_write_model, _model(PreservedAmendments)),
    "decision": (_write_model, _model(DecisionRecord)),
    "execution_detail": _OBJECT,
    "presentation": (_write_model, _model(Presentation)),
}
"""Every member that has a column of its own name: how it is written, and how it is read. Null is null either way."""
