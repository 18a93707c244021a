"""Between a Docket entry and the columns of its row: how each member is written, and how it is read back.

An entry reads back equal to what was filed, member by member. The Affidavit is stored in its sworn form; what a card
shows beside it is in ``presentation`` (SR-1).
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from affiant_core.affidavit import Affidavit
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
    records several times, and to read one costs as much as all the rest of a call. No caller ever holds an object or
    array that another caller, or the memory, holds.
    """

    def __init__(self, *, remembered: int = 1024, longest: int = 32 * 1024) -> None:
        self._most = remembered
        self._longest = longest
        self._lock = threading.Lock()
        self._memory: OrderedDict[tuple[str, str], WireModel] = OrderedDict()

    def columns_of(self, entry: DocketEntry) -> dict[str, Any]:
        """The row of ``entry``: a value for every column but its position."""
        columns = self.written({name: getattr(entry, name) for name in _COLUMNS})
        columns["supersedes"] = entry.lineage.supersedes
        columns["superseded_by"] = entry.lineage.superseded_by
        return columns

    def written(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of some of an entry's members, given by attribute name."""
        columns: dict[str, Any] = {}
        for name, value in members.items():
            column = _COLUMNS[name]
            if name == "approvals":
                columns["approvals_count"] = len(value or ())
            if value is None:
                columns[name] = None
                continue
            columns[name] = column.write(value)
            if column.remembered and _reads_back_as_it_is(value):
                self._remember((name, columns[name]), _own(value))
        return columns

    def entry_of(self, row: Mapping[str, Any]) -> DocketEntry:
        """The entry that ``row`` holds.

        Raises ``DocketCorrupt`` that names the entry's id and the column that cannot be read, and quotes nothing else.
        """
        members: dict[str, Any] = {}
        name = "supersedes"
        try:
            members["lineage"] = Lineage(supersedes=row["supersedes"], superseded_by=row["superseded_by"])
            for name, column in _COLUMNS.items():
                stored = row[name]
                if stored is None:
                    members[name] = None
                elif column.remembered:
                    members[name] = self._recall((name, stored), column)
                else:
                    members[name] = column.read(stored)
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

    def _recall(self, key: tuple[str, str], column: _Column) -> WireModel:
        with self._lock:
            record = self._memory.get(key)
        if record is None:
            record = column.read(key[1])
            self._remember(key, record)
        return _own(record)

    def _remember(self, key: tuple[str, str], record: WireModel) -> None:
        if len(key[1]) > self._longest:
            return
        with self._lock:
            self._memory[key] = record
            if len(self._memory) > self._most:
                self._memory.popitem(last=False)


def _unreadable(row: Mapping[str, Any], column: str) -> DocketCorrupt:
    return DocketCorrupt(f"the Docket row {row['entry_id']!r} cannot be read: its column {column!r} is damaged.")


# --- what may be remembered ----------------------------------------------------------------------------------------


def _reads_back_as_it_is(record: WireModel) -> bool:
    """Whether reading what was written gives this very record: all of them do, but for an Affidavit not yet sworn."""
    return not isinstance(record, Affidavit) or (
        record.operation_type in {"create", "update"}
        and not record.warnings
        and record.requires_confirmation
        and all(field.allowed_values is None and field.pattern is None for field in record.fields)
    )


def _own(record: WireModel) -> WireModel:
    """``record``, with copies of whatever in it could be changed. The records themselves are frozen."""
    match record:
        case Affidavit():
            return record.detached()
        case Presentation() if record.hints or record.prior_amendments is not None:
            return record.model_copy(deep=True)
        case _:
            return record


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


def _write_affidavit(affidavit: Affidavit) -> str:
    return dumps(affidavit.sworn())


def _write_approvals(approvals: tuple[Approval, ...]) -> str:
    return dumps([approval.to_json() for approval in approvals])


def _read_approvals(text: Any) -> tuple[Approval, ...]:
    document = _load(text)
    if not isinstance(document, list):
        raise TypeError("not an array")
    return tuple(read(Approval, item) for item in document)


def _read_blocked(text: Any) -> RequirementNotImplemented | CoverageBlocked:
    document = _load_object(text)
    if document.get("code") == "coverage-refused":
        return read(CoverageBlocked, document)
    return read(RequirementNotImplemented, document)


class _Column(NamedTuple):
    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    remembered: bool = False


def _model(model: type[ModelT], write: Callable[[Any], str] = _write_model, *, remembered: bool = True) -> _Column:
    def read_model(text: Any) -> ModelT:
        return read(model, _load(text))

    return _Column(write, read_model, remembered)


_PLAIN = _Column()
_WORD = _Column(str)
_INSTANT = _Column(to_milliseconds, from_milliseconds)
_OBJECT = _Column(dumps, _load_object)

_COLUMNS: Mapping[str, _Column] = {
    "protocol_version": _PLAIN,
    "entry_id": _PLAIN,
    "tenant_id": _PLAIN,
    "conversation_id": _PLAIN,
    "channel": _PLAIN,
    "tool_name": _PLAIN,
    "affidavit": _model(Affidavit, _write_affidavit),
    "amended_affidavit": _model(Affidavit, _write_affidavit),
    "requirement": _model(Requirement),
    "status": _WORD,
    "execution": _WORD,
    "blocked": _Column(_write_model, _read_blocked),
    "approvals": _Column(_write_approvals, _read_approvals),
    "attestation": _model(Attestation),
    "amendments": _OBJECT,
    "preserved_amendments": _model(PreservedAmendments, remembered=False),
    "decision": _model(DecisionRecord),
    "filed_at": _INSTANT,
    "expires_at": _INSTANT,
    "decided_at": _INSTANT,
    "execution_detail": _OBJECT,
    "presentation": _model(Presentation),
    "requested_by": _PLAIN,
}
"""Every member of an entry that has the column of its own name: all but the lineage. Null is null either way."""
