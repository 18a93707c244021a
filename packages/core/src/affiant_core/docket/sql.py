"""The Docket in a SQL database, through SQLAlchemy Core: SQLite files now, written so that PostgreSQL can join.

Every transition is one ``UPDATE`` with the whole guard in its ``WHERE`` clause, never a read followed by a write; the
row is then read in the same transaction. Statements are built once and say nothing that one dialect alone understands,
except for the insert, which each dialect spells in its own class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Self

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Text,
    Update,
    and_,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.expression import case

from affiant_core.docket.migrations import awaits_execution, bring_up_to_date, docket_entries, is_pending
from affiant_core.docket.model import DocketEntry, PreservedAmendments
from affiant_core.docket.rows import columns_of, entry_of, to_milliseconds, written
from affiant_core.docket.sqlite import SqliteFile, Synchronous
from affiant_core.docket.store import (
    Applied,
    Filed,
    Listing,
    Page,
    Scope,
    Sweep,
    Transition,
    TransitionGuard,
    read_cursor,
    require_fileable,
    require_limit,
    require_tenant,
    write_cursor,
)
from affiant_core.errors import DocketUnavailable
from affiant_core.values import has_lone_surrogate, spell
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus

BUSY_TIMEOUT = 30.0
"""How many seconds a call waits for the write lock, unless the caller says otherwise."""


class SqlDocketStore:
    """The store contract on a SQL database. Usable from many threads, event loops and processes at once.

    A row that cannot be read raises ``DocketCorrupt`` wherever it is met: its transition is undone, and so is a sweep
    that would move it; other rows stay readable by id. Every method raises ``DocketUnavailable`` when the database
    cannot be reached or written, and then nothing was changed. No other error of the database leaves the store, and no
    message holds a sworn value.
    """

    blocking = True

    def __init__(self, database: SqliteFile) -> None:
        """The store on a database that is up to date; callers use :meth:`open`."""
        self._database = database
        self._closed = False

    @classmethod
    def open(cls, url: str, *, busy_timeout: float = BUSY_TIMEOUT, synchronous: Synchronous = "FULL") -> Self:
        """Open the Docket in the file that ``url`` names, making the file and its tables when there are none.

        ``synchronous="FULL"`` keeps every acknowledged row through a loss of power; ``"NORMAL"`` is faster and may lose
        the last of them then, and never damages the file. Raises ``DocketUrlInvalid``, ``DocketUnavailable``,
        ``DocketCorrupt`` or ``DocketSchemaTooNew``; a file that is no Docket is never touched.
        """
        if synchronous not in ("FULL", "NORMAL"):
            raise ValueError("synchronous is 'FULL' or 'NORMAL'.")
        if not busy_timeout >= 0:
            raise ValueError("busy_timeout is a number of seconds, and not negative.")
        database = SqliteFile.named_by(url, busy_timeout=busy_timeout, synchronous=synchronous)
        try:
            with database.faults(), database.engine.connect() as connection:
                bring_up_to_date(connection, database.begin_writing)
                database.use_write_ahead_log(connection)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def file(self, entry: DocketEntry) -> Filed:
        """Insert the row; an existing id returns its row unchanged (DK-1)."""
        require_fileable(entry)
        columns = columns_of(entry)
        with self._writing() as connection:
            statement = _FILE[connection.dialect.name]
            if connection.execute(statement, columns).rowcount == 1:
                return Filed(entry, created=True)
            existing = _row(connection, _key(entry.tenant_id, entry.entry_id))
            if existing is None:
                raise DocketUnavailable("the row was neither written nor found; try again.")
            return Filed(existing, created=False)

    def get(self, tenant_id: str, entry_id: str) -> DocketEntry | None:
        """The row as stored, or ``None`` when this tenant has no such row (AZ-2)."""
        with self._reading() as connection:
            return _row(connection, _key(tenant_id, entry_id))

    def transition(self, tenant_id: str, entry_id: str, change: Transition) -> Applied:
        """Move a pending row in one guarded write (DK-1)."""
        columns = written(change.changes)
        statement = _transition(change.guard, frozenset(columns), change.expected_approvals is not None)
        parameters = {f"new_{name}": value for name, value in columns.items()}
        parameters["at_now"] = to_milliseconds(change.now)
        if change.expected_approvals is not None:
            parameters["at_approvals"] = change.expected_approvals
        return self._change(statement, tenant_id, entry_id, parameters)

    def preserve_amendments(
        self, tenant_id: str, entry_id: str, preserved: PreservedAmendments, now: datetime
    ) -> Applied:
        """Keep a late decision's amendments on a row that reads expired and has none yet (DK-1)."""
        columns = written({"preserved_amendments": preserved})
        parameters = {"new_preserved_amendments": columns["preserved_amendments"], "at_now": to_milliseconds(now)}
        return self._change(_PRESERVE, tenant_id, entry_id, parameters)

    def record_execution(
        self, tenant_id: str, entry_id: str, outcome: ExecutionOutcome, detail: Mapping[str, Any] | None
    ) -> Applied:
        """Write ``executed`` or ``failed`` on an approved, attested, unexecuted row; once (DK-1)."""
        spelled = None if detail is None else spell(detail, "execution_detail")
        columns = written({"execution": outcome, "execution_detail": spelled})
        parameters = {f"new_{name}": value for name, value in columns.items()}
        return self._change(_REPORT, tenant_id, entry_id, parameters)

    def record_supersession(self, tenant_id: str, entry_id: str, superseded_by: str, now: datetime) -> Applied:
        """Name the successor of a row that reads expired and has none yet; also persists the expiry (DK-1)."""
        parameters = {"new_superseded_by": superseded_by, "at_now": to_milliseconds(now)}
        return self._change(_SUPERSEDE, tenant_id, entry_id, parameters)

    def page(self, listing: Listing, scope: Scope, *, limit: int, cursor: str | None, now: datetime) -> Page:
        """One page of a listing, in filing order (DK-3, DK-5). Raises ``CursorInvalid``, and ``ValueError`` for no tenant."""
        require_limit(limit)
        require_tenant(scope)
        after = read_cursor(cursor, listing, scope)
        parameters = _scoped(scope) | {"at_now": to_milliseconds(now), "after": after, "at_most": _one_more(limit)}
        with self._reading() as connection:
            rows = connection.execute(_page(listing, scope.conversation_id is not None), parameters).mappings().all()
        entries = tuple(entry_of(row).as_read(now) for row in rows[:limit])
        more = len(rows) > limit
        return Page(entries, write_cursor(listing, scope, rows[limit - 1]["position"]) if more else None)

    def expire_due(self, now: datetime, scope: Scope, *, limit: int) -> Sweep:
        """Move at most ``limit`` due rows to ``expired``, oldest deadline first (DK-3)."""
        require_limit(limit)
        parameters = _scoped(scope) | {"at_now": to_milliseconds(now), "at_most": _one_more(limit)}
        statement = _due(scope.tenant_id is not None, scope.conversation_id is not None)
        with self._writing() as connection:
            rows = connection.execute(statement, parameters).mappings().all()
            moved = tuple(entry_of(row).as_read(now) for row in rows[:limit])
            if moved:
                connection.execute(_EXPIRE, [{"at_position": row["position"]} for row in rows[:limit]])
        return Sweep(moved, more=len(rows) > limit)

    def close(self) -> None:
        """Close the database. A closed store raises ``DocketUnavailable`` when it is used again."""
        self._closed = True
        self._database.close()

    def _change(self, statement: Update, tenant_id: str, entry_id: str, parameters: Mapping[str, Any]) -> Applied:
        key = _key(tenant_id, entry_id)
        with self._writing() as connection:
            applied = connection.execute(statement, {**parameters, **key}).rowcount == 1
            return Applied(applied, _row(connection, key))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._require_open()
        with self._database.faults(), self._database.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock; it is committed at the end, and undone by any exception."""
        self._require_open()
        with (
            self._database.faults(),
            self._database.write_turn(),
            self._database.engine.connect() as connection,
        ):
            self._database.begin_writing(connection)
            yield connection
            connection.commit()

    def _require_open(self) -> None:
        if self._closed:
            raise DocketUnavailable("the Docket was closed; open it again.")


# --- parameters ----------------------------------------------------------------------------------------------------


def _one_more(limit: int) -> int:
    # One row more than asked for tells whether there are more. No database counts further than the bound.
    return min(limit, 2**31) + 1


def _key(tenant_id: str, entry_id: str) -> dict[str, Any]:
    return {"at_tenant": _findable(tenant_id), "at_entry": _findable(entry_id)}


def _scoped(scope: Scope) -> dict[str, Any]:
    return {"at_tenant": _findable(scope.tenant_id), "at_conversation": _findable(scope.conversation_id)}


def _findable(name: str | None) -> str | None:
    # Text that has no UTF-8 form was never filed and cannot be sent to a database; null equals nothing.
    return None if name is None or has_lone_surrogate(name) else name


def _row(connection: Connection, key: Mapping[str, Any]) -> DocketEntry | None:
    row = connection.execute(_GET, key).mappings().one_or_none()
    return None if row is None else entry_of(row)


# --- statements ----------------------------------------------------------------------------------------------------

_columns = docket_entries.c
_now = bindparam("at_now", type_=BigInteger)
_is_due = _columns.expires_at <= _now
_reads_expired = or_(_columns.status == ReviewStatus.EXPIRED.value, and_(is_pending, _is_due))
_by_key = and_(
    _columns.tenant_id == bindparam("at_tenant", type_=Text), _columns.entry_id == bindparam("at_entry", type_=Text)
)
_in_tenant = _columns.tenant_id == bindparam("at_tenant", type_=Text)
_in_conversation = _columns.conversation_id == bindparam("at_conversation", type_=Text)

_LISTED: Mapping[Listing, tuple[ColumnElement[bool], ...]] = {
    Listing.PENDING: (is_pending, _columns.expires_at > _now),
    Listing.APPROVED_UNEXECUTED: (awaits_execution,),
    Listing.ALL: (),
}

_GUARDS: Mapping[TransitionGuard, tuple[ColumnElement[bool], ...]] = {
    TransitionGuard.UNDECIDED: (is_pending, _columns.expires_at > _now, _columns.blocked.is_(None)),
    TransitionGuard.OPEN: (is_pending, _columns.expires_at > _now),
    TransitionGuard.DUE: (is_pending, _is_due),
}


def _new(*names: str) -> dict[str, Any]:
    return {name: bindparam(f"new_{name}", type_=_columns[name].type) for name in names}


def _filing(insert: Any) -> Executable:
    """The insert that leaves an existing row alone, from a dialect's own insert."""
    statement = insert(docket_entries).inline().on_conflict_do_nothing(index_elements=["tenant_id", "entry_id"])
    executable: Executable = statement.execution_options(preserve_rowcount=True)
    return executable


@cache
def _transition(guard: TransitionGuard, columns: frozenset[str], counts_approvals: bool) -> Update:
    statement = update(docket_entries).where(_by_key, *_GUARDS[guard]).values(_new(*sorted(columns)))
    if counts_approvals:
        statement = statement.where(_columns.approvals_count == bindparam("at_approvals", type_=BigInteger))
    return statement


@cache
def _page(listing: Listing, one_conversation: bool) -> Executable:
    statement = select(docket_entries).where(_in_tenant, *_LISTED[listing])
    if one_conversation:
        statement = statement.where(_in_conversation)
    after = _columns.position > bindparam("after", type_=BigInteger)
    return statement.where(after).order_by(_columns.position).limit(bindparam("at_most", type_=BigInteger))


@cache
def _due(one_tenant: bool, one_conversation: bool) -> Executable:
    """The due rows, oldest deadline first, locked where the database locks rows; SQLite has its one lock already."""
    statement = select(docket_entries).where(is_pending, _is_due)
    if one_tenant:
        statement = statement.where(_in_tenant)
    if one_conversation:
        statement = statement.where(_in_conversation)
    ordered = statement.order_by(_columns.expires_at, _columns.position)
    return ordered.limit(bindparam("at_most", type_=BigInteger)).with_for_update(skip_locked=True)


_FILE: Mapping[str, Executable] = {"sqlite": _filing(sqlite.insert)}
_GET = select(docket_entries).where(_by_key)
_PRESERVE = (
    update(docket_entries)
    .where(_by_key, _reads_expired, _columns.preserved_amendments.is_(None))
    .values(_new("preserved_amendments"))
)
_REPORT = (
    update(docket_entries)
    .where(_by_key, awaits_execution, _columns.attestation.is_not(None))
    .values(_new("execution", "execution_detail"))
)
_SUPERSEDE = (
    update(docket_entries)
    .where(_by_key, _reads_expired, _columns.superseded_by.is_(None))
    .values(
        _new("superseded_by")
        | {
            "status": ReviewStatus.EXPIRED.value,
            "decided_at": case((is_pending, _columns.expires_at), else_=_columns.decided_at),
        }
    )
)
_EXPIRE = (
    update(docket_entries)
    .where(_columns.position == bindparam("at_position", type_=BigInteger), is_pending)
    .values(status=ReviewStatus.EXPIRED.value, decided_at=_columns.expires_at)
)
