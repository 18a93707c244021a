"""The Docket in a SQL database, through SQLAlchemy Core: SQLite files now, written so that PostgreSQL can join.

Every transition is one guarded ``UPDATE``, never a read followed by a write; the row is then read in the same
transaction. The tables are in ``migrations``, the statements in ``statements``, the columns' contents in ``rows``, and
whatever is true of SQLite alone in ``sqlite``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self

from sqlalchemy import ClauseElement

from affiant_core.docket import statements
from affiant_core.docket.migrations import bring_up_to_date
from affiant_core.docket.model import DocketEntry, PreservedAmendments
from affiant_core.docket.rows import RowCodec, to_milliseconds
from affiant_core.docket.sqlite import SqliteFile, Synchronous
from affiant_core.docket.statements import COLUMN_NAMES, Compiled, parameters_for
from affiant_core.docket.store import (
    Applied,
    Filed,
    Listing,
    Page,
    Scope,
    Sweep,
    Transition,
    read_cursor,
    require_fileable,
    require_limit,
    require_tenant,
    write_cursor,
)
from affiant_core.errors import DocketUnavailable
from affiant_core.values import has_lone_surrogate, spell
from affiant_core.vocabulary import ExecutionOutcome

BUSY_TIMEOUT = 30.0
"""How many seconds a call waits for the write lock, unless the caller says otherwise."""


class SqlDocketStore:
    """The store contract on a SQL database. Usable from many threads, event loops and processes at once.

    Every method raises ``DocketUnavailable`` when the database cannot be reached or written, and then nothing was
    changed. A row that cannot be read raises ``DocketCorrupt`` wherever it is met: its transition is undone, and so is
    a sweep that would move it; other rows stay readable by id. No error of the database itself leaves the store, and no
    message holds a sworn value.
    """

    blocking = True

    def __init__(self, database: SqliteFile) -> None:
        """The store on a database that is up to date; callers use :meth:`open`."""
        self._database = database
        self._codec = RowCodec()
        self._compiled: dict[ClauseElement, Compiled] = {}

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
                database.settle(connection)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def file(self, entry: DocketEntry) -> Filed:
        """Insert the row; an existing id returns its row unchanged (DK-1)."""
        require_fileable(entry)
        parameters = parameters_for(self._codec.columns_of(entry))
        with self._writing() as cursor:
            if self._run(cursor, statements.filing(self._database.dialect.name), parameters).rowcount == 1:
                return Filed(entry, created=True)
            existing = self._row(cursor, _key(entry.tenant_id, entry.entry_id))
            if existing is None:
                raise DocketUnavailable("the row was neither written nor found; try again.")
            return Filed(existing, created=False)

    def get(self, tenant_id: str, entry_id: str) -> DocketEntry | None:
        """The row as stored, or ``None`` when this tenant has no such row (AZ-2)."""
        with self._reading() as cursor:
            return self._row(cursor, _key(tenant_id, entry_id))

    def belongs_elsewhere(self, tenant_id: str, entry_id: str) -> bool:
        """Whether some other tenant has a row with this id (AZ-2)."""
        with self._reading() as cursor:
            return bool(self._run(cursor, statements.BELONGS_ELSEWHERE, _key(tenant_id, entry_id)).fetchall())

    def transition(self, tenant_id: str, entry_id: str, change: Transition) -> Applied:
        """Move a pending row in one guarded write (DK-1)."""
        columns = self._codec.written(change.changes)
        statement = statements.transition(change.guard, frozenset(columns), change.expected_approvals is not None)

        def guard() -> dict[str, Any]:  # once the write lock is held, for which a caller may have waited long
            return {"at_now": to_milliseconds(change.instant()), "at_approvals": change.expected_approvals}

        return self._change(statement, tenant_id, entry_id, columns, guard)

    def preserve_amendments(
        self, tenant_id: str, entry_id: str, preserved: PreservedAmendments, now: datetime
    ) -> Applied:
        """Keep a late decision's amendments on a row that reads expired and has none yet (DK-1)."""
        columns = self._codec.written({"preserved_amendments": preserved})
        return self._change(statements.PRESERVE, tenant_id, entry_id, columns, lambda: {"at_now": to_milliseconds(now)})

    def record_execution(
        self, tenant_id: str, entry_id: str, outcome: ExecutionOutcome, detail: Mapping[str, Any] | None
    ) -> Applied:
        """Write ``executed`` or ``failed`` on an approved, attested, unexecuted row; once (DK-1)."""
        spelled = None if detail is None else spell(detail, "execution_detail")
        columns = self._codec.written({"execution": outcome, "execution_detail": spelled})
        return self._change(statements.REPORT, tenant_id, entry_id, columns, dict)

    def record_supersession(self, tenant_id: str, entry_id: str, superseded_by: str, now: datetime) -> Applied:
        """Name the successor of a row that reads expired and has none yet; also persists the expiry (DK-1)."""
        columns = {"superseded_by": superseded_by}
        return self._change(
            statements.SUPERSEDE, tenant_id, entry_id, columns, lambda: {"at_now": to_milliseconds(now)}
        )

    def page(self, listing: Listing, scope: Scope, *, limit: int, cursor: str | None, now: datetime) -> Page:
        """One page of a listing, in filing order, each row as it reads at ``now`` (DK-3, DK-5)."""
        require_limit(limit)
        require_tenant(scope)
        after = read_cursor(cursor, listing, scope)
        statement = statements.page(listing, scope.conversation_id is not None)
        parameters = _within(scope, now, limit) | {"after": after}
        with self._reading() as connection:
            rows = _named(self._run(connection, statement, parameters).fetchall())
        entries = tuple(self._codec.entry_of(row).as_read(now) for row in rows[:limit])
        more = len(rows) > limit
        return Page(entries, write_cursor(listing, scope, rows[limit - 1]["position"]) if more else None)

    def expire_due(self, now: datetime, scope: Scope, *, limit: int) -> Sweep:
        """Move at most ``limit`` due rows to ``expired``, oldest deadline first (DK-3)."""
        require_limit(limit)
        statement = statements.due(scope.tenant_id is not None, scope.conversation_id is not None)
        with self._writing() as cursor:
            rows = _named(self._run(cursor, statement, _within(scope, now, limit)).fetchall())
            moved = tuple(self._codec.entry_of(row).as_read(now) for row in rows[:limit])
            for row in rows[:limit]:
                self._run(cursor, statements.EXPIRE, {"at_position": row["position"]})
        return Sweep(moved, more=len(rows) > limit)

    def close(self) -> None:
        """Close the database. A closed store raises ``DocketUnavailable`` when it is used again."""
        self._database.close()

    def _change(
        self,
        statement: ClauseElement,
        tenant_id: str,
        entry_id: str,
        columns: Mapping[str, Any],
        guard: Callable[[], Mapping[str, Any]],
    ) -> Applied:
        key = _key(tenant_id, entry_id)
        with self._writing() as cursor:
            applied = self._run(cursor, statement, {**parameters_for(columns), **guard(), **key}).rowcount == 1
            return Applied(applied, self._row(cursor, key))

    def _row(self, cursor: Any, key: Mapping[str, Any]) -> DocketEntry | None:
        rows = _named(self._run(cursor, statements.GET, key).fetchall())
        return self._codec.entry_of(rows[0]) if rows else None

    def _run(self, cursor: Any, statement: ClauseElement, parameters: Mapping[str, Any]) -> Any:
        """Execute ``statement`` and give ``cursor`` back."""
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = Compiled(statement, self._database.dialect)
        cursor.execute(compiled.text, compiled.arguments(parameters))
        return cursor

    @contextmanager
    def _reading(self) -> Generator[Any]:
        """A cursor of the driver's own, for one statement."""
        with self._database.faults(), self._database.connection() as connection:
            yield connection.cursor()

    @contextmanager
    def _writing(self) -> Generator[Any]:
        """A cursor in a transaction that holds the write lock; committed at the end, undone by any exception."""
        with self._database.faults(), self._database.write_turn(), self._database.connection() as connection:
            cursor = connection.cursor()
            self._database.begin_writing(cursor)
            yield cursor
            connection.commit()


def _key(tenant_id: str, entry_id: str) -> dict[str, Any]:
    return {"at_tenant": _findable(tenant_id), "at_entry": _findable(entry_id)}


def _within(scope: Scope, now: datetime, limit: int) -> dict[str, Any]:
    return {
        "at_tenant": _findable(scope.tenant_id),
        "at_conversation": _findable(scope.conversation_id),
        "at_now": to_milliseconds(now),
        # One row more than asked for tells whether there are more. No database counts further than the bound.
        "at_most": min(limit, 2**31) + 1,
    }


def _findable(name: str | None) -> str | None:
    # Text that has no UTF-8 form was never filed and cannot be sent to a database; neither was the empty text.
    return "" if name is not None and has_lone_surrogate(name) else name


def _named(rows: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows]
