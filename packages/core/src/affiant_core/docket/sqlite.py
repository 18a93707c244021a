"""Everything that is true of SQLite alone: its file, its settings, its locks and its faults."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakSet

from sqlalchemy import URL, Connection, Dialect, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from affiant_core.errors import DocketCorrupt, DocketError, DocketUnavailable, DocketUrlInvalid

Synchronous = Literal["FULL", "NORMAL"]

_MOST_IDLE = 8
"""How many connections are kept open for the next calls; a burst of threads may open more for a while."""

_EXAMPLES = "'sqlite:///relative/path.db' or 'sqlite:////absolute/path.db'"


class SqliteFile:
    """One SQLite file: write-ahead log, foreign keys on, and every transaction begun in so many words.

    A write takes SQLite's one write lock at its start (``BEGIN IMMEDIATE``), so it never fails half-way on a lock.
    The threads of this process queue for it here, in memory, and only then contend with other processes.

    A file is safe across ``os.fork()``: SQLite forbids a child to use, or even to close, what its parent had open, so
    idle connections are closed before a fork and both sides open their own afterwards. Do not fork while another thread
    is inside a call of the store.
    """

    def __init__(self, path: Path, *, busy_timeout: float, synchronous: Synchronous) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous
        self._turn = threading.RLock()
        self._idle: deque[Any] = deque()  # its methods are atomic
        self._file: tuple[int, int] | None = None
        self._closed = False
        self.engine: Engine = self._make_engine()
        _OPEN_FILES.add(self)

    @classmethod
    def named_by(cls, url: str, *, busy_timeout: float, synchronous: Synchronous) -> Self:
        """The file that ``url`` names.

        Raises ``DocketUrlInvalid`` for a URL that names no file, ``DocketUnavailable`` when the file cannot be used.
        """
        path = _path_in(url)
        _require_usable(path)
        return cls(path, busy_timeout=busy_timeout, synchronous=synchronous)

    @contextmanager
    def faults(self) -> Generator[None]:
        """Turn whatever the database raises into a ``DocketError``; the original is its cause."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            if "Could not decode to UTF-8" in str(error):  # the driver quotes the text
                raise DocketCorrupt(f"a row in {self.path} holds text that is not UTF-8; restore a copy.") from None
            raise self._fault(error) from error

    @contextmanager
    def write_turn(self) -> Generator[None]:
        """Wait until no other thread of this process writes. Raises ``DocketUnavailable`` after the busy timeout."""
        try:
            if not self._turn.acquire(timeout=min(self._busy_timeout, threading.TIMEOUT_MAX)):
                raise DocketUnavailable(self._locked())
            yield
        finally:
            # An interrupt may come right after the lock was taken and before anything could note it.
            if self._turn._is_owned():  # type: ignore[attr-defined]  # as Condition asks
                self._turn.release()

    @property
    def dialect(self) -> Dialect:
        """What statements are compiled for."""
        return self.engine.dialect

    @staticmethod
    def begin_writing(cursor: Any) -> None:
        """Begin a transaction that holds the write lock from its start, on a cursor of the driver's own."""
        cursor.execute("BEGIN IMMEDIATE")

    def settle(self, connection: Connection) -> None:
        """Switch the file to its write-ahead log, for good. Called once, when the file is known to be a Docket.

        The switch needs the file to itself and SQLite does not wait for that, so it is tried until the busy timeout.
        """
        give_up_at = time.monotonic() + self._busy_timeout
        mode: object = None
        while mode is None:
            try:
                mode = connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar()
            except DBAPIError as error:
                if _code(error.orig) != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up_at:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise DocketUnavailable(
                f"the file system of {self.path} cannot keep a write-ahead log; keep the Docket on a local disk."
            )
        self._file = _identity(self.path)

    @contextmanager
    def connection(self) -> Generator[Any]:
        """A connection of the driver's own; whatever was not committed at the end is undone."""
        self._require_in_place()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.engine.raw_connection()
        try:
            yield connection
        except BaseException:
            connection.close()  # closing undoes what was not committed
            raise
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close every connection: the idle ones now, the others when their calls end."""
        self._closed = True
        _OPEN_FILES.discard(self)
        self.close_idle()

    def close_idle(self) -> None:
        """Close the connections that nobody uses just now; more are opened when they are needed."""
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _require_in_place(self) -> None:
        # SQLite would go on reading and writing a file that has no name any more, and every row would be lost.
        if self._closed:
            raise DocketUnavailable("the Docket was closed; open it again.")
        try:
            identity = _identity(self.path)
        except OSError as error:
            raise DocketUnavailable(f"{self.path} is gone ({error.strerror}); restore it and open it again.") from error
        if self._file != identity:
            raise DocketUnavailable(f"{self.path} was replaced by another file; open it again.")

    def _make_engine(self) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self.path)),
            connect_args={"timeout": self._busy_timeout, "isolation_level": None, "check_same_thread": False},
            poolclass=NullPool,
            hide_parameters=True,  # sworn values never reach an error's text or a log
        )
        event.listen(engine, "connect", self._set_up)
        return engine

    def _set_up(self, connection: sqlite3.Connection, _: object) -> None:
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        except BaseException:
            connection.close()  # the pool has not seen it yet and would forget it open
            raise

    def _fault(self, error: Exception) -> DocketError:
        code = _code(error.orig if isinstance(error, DBAPIError) else error)
        match code:
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                return DocketCorrupt(
                    f"{self.path} is damaged or is not a SQLite database; it was left as it is. Restore a copy of it, "
                    "or name another file."
                )
            case sqlite3.SQLITE_ERROR | sqlite3.SQLITE_SCHEMA | sqlite3.SQLITE_MISMATCH:
                return DocketCorrupt(f"the tables in {self.path} are not those of a Docket; restore a copy of it.")
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return DocketUnavailable(self._locked())
            case _:
                fault = _UNAVAILABLE.get(code, "the database refused")
                return DocketUnavailable(f"{self.path}: {fault}. Nothing was changed.")

    def _locked(self) -> str:
        return (
            f"{self.path} stayed locked for {self._busy_timeout:g} seconds; nothing was changed. Look for a process "
            "that holds a transaction open, or give a longer busy_timeout."
        )


_UNAVAILABLE = {
    sqlite3.SQLITE_READONLY: "the file is read-only; make it and its folder writable for this process",
    sqlite3.SQLITE_CANTOPEN: "the file or its write-ahead log cannot be opened; make the file and its folder readable "
    "and writable for this process, and see that it may open more files",
    sqlite3.SQLITE_PERM: "this process may not use the file; make it and its folder readable and writable",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write; look at the disk and its free space",
    sqlite3.SQLITE_TOOBIG: "the row is larger than the database can hold; propose less in one record",
    sqlite3.SQLITE_NOMEM: "the database ran out of memory",
}


def _code(error: BaseException | None) -> int:
    """SQLite's primary result code; 0 for an error that has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _path_in(url: str) -> Path:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise DocketUrlInvalid(f"the docket URL cannot be read; write {_EXAMPLES}.") from None
    if parsed.drivername != "sqlite":
        raise DocketUrlInvalid(f"a SQLite docket URL begins with 'sqlite:///'; write {_EXAMPLES}.")
    if parsed.host or parsed.port or parsed.username or parsed.password:
        raise DocketUrlInvalid(f"a SQLite docket URL has three slashes before the path, or four; write {_EXAMPLES}.")
    if parsed.query:
        raise DocketUrlInvalid("a SQLite docket URL takes no options; give them to SqlDocketStore.open as keywords.")
    if not parsed.database or parsed.database == ":memory:":
        raise DocketUrlInvalid(
            "a SQLite docket is a file; use 'memory://' for a Docket that does not outlive the process."
        )
    if "\0" in parsed.database:
        raise DocketUrlInvalid("the path in the docket URL holds a null character.")
    return Path(os.path.abspath(parsed.database))


def _require_usable(path: Path) -> None:
    """Raise ``DocketUnavailable`` for what SQLite would report too late, or in words that help nobody."""
    folder = path.parent
    try:
        if not folder.is_dir():
            raise DocketUnavailable(f"the folder {folder} does not exist; create it, or name another path.")
        exists = path.exists()
        if exists and not path.is_file():
            raise DocketUnavailable(f"{path} is not a file; name a file for the Docket.")
    except OSError as error:
        raise DocketUnavailable(
            f"{path} cannot be reached ({error.strerror}); check the path and its permissions."
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DocketUnavailable(
            f"the folder {folder} is not writable; SQLite keeps its log there, so make it writable."
        )
    if exists and not os.access(path, os.R_OK | os.W_OK):
        raise DocketUnavailable(f"{path} is read-only or not readable; make it readable and writable for this process.")


# --- fork ----------------------------------------------------------------------------------------------------------

_OPEN_FILES: WeakSet[SqliteFile] = WeakSet()


def _before_fork() -> None:
    for file in list(_OPEN_FILES):
        file.close_idle()


def _after_fork_in_child() -> None:
    for file in list(_OPEN_FILES):
        file._turn = threading.RLock()  # pyright: ignore[reportPrivateUsage]  # another thread may have held the copy


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
