"""Between a Docket entry and the columns of its row: how each member is written, and how it is read back.

An entry reads back equal to what was filed, member by member. The Affidavit is stored in its sworn form; what a card
shows beside it is in ``presentation`` (SR-1).
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
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


class RowCodec:
    """Writes entries as rows and reads them back, from any thread.

    It remembers the records that it wrote and read last, by their text: filing a row and acting on it read the same
    record several times, and the record is by far the largest part of a row. No caller ever holds an object or array
    that another caller, or the memory, holds.
    """

    def __init__(self, *, remembered: int = 256, longest: int = 32 * 1024) -> None:
        self._remembered = remembered
        self._longest = longest
        self._lock = threading.Lock()
        self._affidavits: OrderedDict[str, Affidavit] = OrderedDict()
        self._writers = {**_WRITERS, **dict.fromkeys(_RECORDS, self._write_affidavit)}
        self._readers = {**_READERS, **dict.fromkeys(_RECORDS, self._read_affidavit)}

    def columns_of(self, entry: DocketEntry) -> dict[str, Any]:
        """The row of ``entry``: a value for every column but its position."""
        columns = self.written({name: getattr(entry, name) for name in _MEMBERS})
        columns["supersedes"] = entry.lineage.supersedes
        columns["superseded_by"] = entry.lineage.superseded_by
        return columns

    def written(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of some of an entry's members, given by attribute name."""
        columns: dict[str, Any] = {}
        for name, value in members.items():
            write = self._writers.get(name)
            columns[name] = value if write is None or value is None else write(value)
            if name == "approvals":
                columns["approvals_count"] = len(value or ())
        return columns

    def entry_of(self, row: Mapping[str, Any]) -> DocketEntry:
        """The entry that ``row`` holds.

        Raises ``DocketCorrupt`` that names the entry's id and the column that cannot be read, and quotes nothing else.
        """
        members: dict[str, Any] = {}
        name = "supersedes"
        try:
            members["lineage"] = Lineage(supersedes=row["supersedes"], superseded_by=row["superseded_by"])
            for name in _MEMBERS:
                stored = row[name]
                read_column = self._readers.get(name)
                members[name] = stored if read_column is None or stored is None else read_column(stored)
            return DocketEntry(**members)
        except ValidationError as invalid:
            # Only a plain column can still be wrong. pydantic's own error quotes the input and is not chained.
            faults = invalid.errors(include_url=False, include_input=False, include_context=False)
            place = faults[0]["loc"]
            raise _unreadable(row, str(place[0]) if place else name) from None
        except WireError as error:
            raise _unreadable(row, name) from error
        except (ValueError, TypeError, LookupError, OverflowError):
            raise _unreadable(row, name) from None

    def _write_affidavit(self, affidavit: Affidavit) -> str:
        text = dumps(affidavit.sworn())
        if _reads_back_as_it_is(affidavit):
            self._remember(text, _with_own_values(affidavit))
        return text

    def _read_affidavit(self, text: Any) -> Affidavit:
        with self._lock:
            affidavit = self._affidavits.get(text)
        if affidavit is None:
            affidavit = read(Affidavit, _load(text))
            self._remember(text, affidavit)
        return _with_own_values(affidavit)

    def _remember(self, text: str, affidavit: Affidavit) -> None:
        if len(text) > self._longest:
            return
        with self._lock:
            self._affidavits[text] = affidavit
            if len(self._affidavits) > self._remembered:
                self._affidavits.popitem(last=False)


def _reads_back_as_it_is(affidavit: Affidavit) -> bool:
    """Whether a record is in its sworn form already, with nothing beside it that is stored elsewhere or nowhere."""
    return (
        type(affidavit) is Affidavit
        and affidavit.operation_type in {"create", "update"}
        and not affidavit.warnings
        and affidavit.requires_confirmation
        and all(field.allowed_values is None and field.pattern is None for field in affidavit.fields)
    )


def _with_own_values(affidavit: Affidavit) -> Affidavit:
    if not any(_is_mutable(field) for field in affidavit.fields):
        return affidavit
    fields = [
        field.model_copy(update={"value": deepcopy(field.value), "previous_value": deepcopy(field.previous_value)})
        if _is_mutable(field)
        else field
        for field in affidavit.fields
    ]
    return affidavit.model_copy(update={"fields": tuple(fields)})


def _is_mutable(field: AffidavitField) -> bool:
    return isinstance(field.value, dict | list) or isinstance(field.previous_value, dict | list)


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


def _write_model(model: WireModel) -> str:
    return model.to_json_string()


def _reader(model: type[ModelT]) -> Callable[[Any], ModelT]:
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


_MEMBERS = tuple(name for name in DocketEntry.model_fields if name != "lineage")
"""Every member of an entry but the lineage: each has the column of its own name. Null is null either way."""

_RECORDS = ("affidavit", "amended_affidavit")

_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "status": str,
    "execution": str,
    "filed_at": to_milliseconds,
    "expires_at": to_milliseconds,
    "decided_at": to_milliseconds,
    "requirement": _write_model,
    "blocked": _write_model,
    "approvals": _write_approvals,
    "attestation": _write_model,
    "amendments": dumps,
    "preserved_amendments": _write_model,
    "decision": _write_model,
    "execution_detail": dumps,
    "presentation": _write_model,
}
"""How a member is written that is not stored as it is. The records themselves: :class:`RowCodec`."""

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "filed_at": from_milliseconds,
    "expires_at": from_milliseconds,
    "decided_at": from_milliseconds,
    "requirement": _reader(Requirement),
    "blocked": _read_blocked,
    "approvals": _read_approvals,
    "attestation": _reader(Attestation),
    "amendments": _load_object,
    "preserved_amendments": _reader(PreservedAmendments),
    "decision": _reader(DecisionRecord),
    "execution_detail": _load_object,
    "presentation": _reader(Presentation),
}
"""How a column is read that does not hold the member as it is. The records themselves: :class:`RowCodec`."""
