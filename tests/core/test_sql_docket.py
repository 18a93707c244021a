"""The Docket in a SQLite file: what it survives, what it refuses, and what it says then."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import Pool

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.docket import Listing, Scope, open_docket
from affiant_core.docket.migrations import STEPS, docket_entries, metadata
from affiant_core.docket.sql import SqlDocketStore
from affiant_core.docket.sqlite import SqliteFile
from affiant_core.docket.statements import GET, Compiled, due, page
from affiant_core.errors import DocketCorrupt, DocketError, DocketSchemaTooNew, DocketUnavailable, DocketUrlInvalid
from affiant_core.provenance import ProvenanceTag
from affiant_core.vocabulary import ExecutionOutcome
from affiant_core.wire import read
from tests.support.docket import (
    DEADLINE,
    T0,
    TENANT,
    approval,
    at_once,
    count_applied,
    file_until_killed,
    late_amendments,
    make_affidavit,
    make_approved_entry,
    make_entry,
    open_and_file,
    race_to_approve,
)

ROOT = Path(__file__).resolve().parents[2]
SECRET = "s3cret-sworn-value"
HERE = Scope(TENANT)


def secret_entry(entry_id: str = "e-1"):
    return make_entry(entry_id, affidavit=make_affidavit({"reason": SECRET}), requested_by=SECRET)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "docket.db"


@pytest.fixture
def url(path):
    return f"sqlite:///{path}"


@pytest.fixture
def store(url):
    opened = SqlDocketStore.open(url, busy_timeout=5)
    yield opened
    opened.close()


def raw(path: Path) -> closing[sqlite3.Connection]:
    """The file behind the store's back."""
    return closing(sqlite3.connect(path, isolation_level=None, timeout=5))


def make_docket(url: str, *entries) -> None:
    store = open_docket(url)
    for entry in entries:
        store.file(entry)
    store.close()


def told(error: BaseException) -> str:
    """Everything that a host's log would show of an error, its causes included."""
    return "".join(traceback.format_exception(error))


def run_python(script: str, *arguments: object, unprivileged: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own; ``unprivileged`` takes away root's right to pass over file modes."""
    source = dedent(script)
    if unprivileged:
        # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; they are gone after the exec.
        source = (
            "import ctypes, os, sys\n"
            "[ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) for capability in (1, 2)]\n"
            f"os.execv(sys.executable, [sys.executable, '-c', {source!r}, *sys.argv[1:]])\n"
        )
    return subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
    )


# --- durability ----------------------------------------------------------------------------------------------------


def test_rows_outlive_the_store(url):
    """The point of it: what was filed, decided and reported is there when the file is opened again."""
    first = open_docket(url)
    first.file(make_entry())
    first.transition(TENANT, "e-1", approval())
    stands = first.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"code": "OK"}).entry
    cursor = [first.file(make_entry(f"e-{number}")) for number in (2, 3)] and first.page(
        Listing.ALL, HERE, limit=2, cursor=None, now=T0
    ).next_cursor
    first.close()
    with closing(open_docket(url)) as second:
        assert second.get(TENANT, "e-1") == stands
        rest = second.page(Listing.ALL, HERE, limit=2, cursor=cursor, now=T0)
        assert [entry.entry_id for entry in rest.entries] == ["e-3"], "a cursor outlives the store that wrote it"


def test_two_stores_on_one_file_see_each_others_rows_at_once(url, store):
    """DECISIONS 21: one docket, many callers; what is written is what the others read next."""
    with closing(open_docket(url)) as other:
        for number in range(3):
            name = f"e-{number}"
            store.file(make_entry(name))
            assert other.transition(TENANT, name, approval(name)).applied
            assert store.get(TENANT, name) == other.get(TENANT, name)
            assert store.record_execution(TENANT, name, ExecutionOutcome.EXECUTED, None).applied
            assert not other.record_execution(TENANT, name, ExecutionOutcome.FAILED, None).applied


def test_what_is_read_cannot_be_changed_by_another_reader(store):
    """AZ-5: the row is the only authority; no caller holds an object that the next one gets."""
    entry = make_entry(affidavit=make_affidavit({"nested": {"a": [1]}, "plain": 1}))
    entry.presentation.__dict__["prior_amendments"] = {"a": [1]}
    filed = store.file(entry).entry
    filed.affidavit.field("nested").value["a"] = "forged"
    for _ in range(3):
        read = store.get(TENANT, "e-1")
        assert read.affidavit.field("nested").value == {"a": [1]}
        assert read.presentation.prior_amendments == {"a": [1]}
        read.affidavit.field("nested").value["a"] = "forged"
        read.presentation.prior_amendments["a"] = "forged"


@pytest.mark.parametrize(
    "unsworn",
    [
        {"operation_type": "WriteCreate"},
        {"warnings": ("check this",)},
        {"requires_confirmation": False},
        {"fields": (AffidavitField.of("reason", "x", ProvenanceTag.empty(at=T0), allowed_values=["x"]),)},
        {"fields": (AffidavitField.of("reason", "x", ProvenanceTag.empty(at=T0), pattern=".*"),)},
    ],
    ids=lambda unsworn: next(iter(unsworn)),
)
def test_a_record_reads_back_in_its_sworn_form_everywhere(unsworn, url, store):
    """SR-1: presentation is no part of the record; the store that filed it reads what every other store reads."""
    entry = make_entry(affidavit=make_affidavit().model_copy(update=unsworn))
    store.file(entry)
    with closing(open_docket(url)) as other:
        assert store.get(TENANT, "e-1") == other.get(TENANT, "e-1")
    assert store.get(TENANT, "e-1").affidavit == read(Affidavit, entry.affidavit.sworn())


def test_wal_and_full_synchronous_are_on_in_every_connection(url, path):
    """The file keeps every acknowledged row through a loss of power, unless the host says otherwise."""
    seen = []

    def look(connection, *_):
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        seen.append([connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas])

    event.listen(Pool, "checkout", look)
    try:
        for keywords, expected in (
            ({}, ["wal", 2, 1, 30_000]),
            ({"synchronous": "NORMAL", "busy_timeout": 2.5}, ["wal", 1, 1, 2_500]),
        ):
            store = SqlDocketStore.open(url, **keywords)
            seen.clear()
            at_once([lambda store=store: store.get(TENANT, "e-1")] * 3)
            store.file(make_entry())
            store.close()
            assert seen
            assert seen == [expected] * len(seen)
    finally:
        event.remove(Pool, "checkout", look)
    with raw(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_unknown_setting_is_refused(url):
    """A typing mistake must not weaken durability without a word."""
    with pytest.raises(ValueError, match="synchronous"):
        SqlDocketStore.open(url, synchronous="OFF")
    for timeout in (-1, float("nan")):
        with pytest.raises(ValueError, match="busy_timeout"):
            SqlDocketStore.open(url, busy_timeout=timeout)
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_a_killed_process_loses_nothing_that_was_acknowledged(url, path, tmp_path):
    """AZ-5: a row that ``file`` returned is on the Docket, whatever happens to the process next."""
    notes = tmp_path / "acknowledged.txt"
    process = multiprocessing.get_context("spawn").Process(target=file_until_killed, args=(url, notes))
    process.start()
    give_up_at = time.monotonic() + 60
    while not (notes.exists() and notes.read_text().count("\n") >= 20):
        assert process.is_alive()
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    acknowledged = [name for name in notes.read_text().split("\n") if name]
    with closing(open_docket(url)) as store:
        for name in acknowledged:
            assert store.get(TENANT, name) == make_entry(name)
        listed = [entry.entry_id for entry in store.page(Listing.ALL, HERE, limit=10_000, cursor=None, now=T0).entries]
        assert listed[: len(acknowledged)] == acknowledged
        assert len(listed) <= len(acknowledged) + 1
        assert store.file(make_entry("next")).created
    with raw(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_nothing_is_left_behind(path, store):
    """One file when the store is closed: no log, no lock."""
    store.file(make_entry())
    at_once([lambda: store.get(TENANT, "e-1")] * 12)
    store.close()
    assert os.listdir(path.parent) == ["docket.db"]


def test_a_call_that_outlives_the_store_leaves_nothing_open(path, store):
    """A connection that is in use when the store is closed is closed when its call ends."""
    store.file(make_entry())
    with store._database.connection() as connection:
        store.close()
        assert connection.cursor().execute("SELECT count(*) FROM docket_entries").fetchall() == [(1,)]
    assert os.listdir(path.parent) == ["docket.db"]


def test_a_burst_of_callers_leaves_few_connections_open(store):
    """What many threads needed at once is not held for ever."""
    with ExitStack() as calls:
        for _ in range(30):
            calls.enter_context(store._database.connection())
    assert 0 < len(store._database._idle) <= 8


# --- many at once --------------------------------------------------------------------------------------------------


def test_processes_that_open_a_new_file_at_once_all_get_it(tmp_path):
    """The schema is made once, under the write lock; nobody meets half of it."""
    context = multiprocessing.get_context("spawn")
    names = ["e-1", "e-2", "e-3"]
    urls = [f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(12)]
    start, results = context.Barrier(len(names)), context.Queue()
    processes = [context.Process(target=open_and_file, args=(urls, name, start, results)) for name in names]
    for process in processes:
        process.start()
    assert sorted(results.get(timeout=90) for _ in processes) == names
    for process in processes:
        process.join(30)
    results.close()
    for url in urls:
        with closing(open_docket(url)) as store:
            assert len(store.page(Listing.ALL, HERE, limit=9, cursor=None, now=T0).entries) == len(names)


def test_stores_that_open_a_new_file_at_once_all_get_it(tmp_path):
    """The same from the threads of one process."""
    for number in range(8):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        stores = at_once([lambda url=url: open_docket(url)] * 6)
        assert [type(store) for store in stores] == [SqlDocketStore] * 6
        assert sum(store.file(make_entry()).created for store in stores) == 1
        for store in stores:
            store.close()


class Switch:
    """A connection that answers the switch to the write-ahead log as it is told to."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def exec_driver_sql(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = answer
            raise DBAPIError("PRAGMA", (), error)
        return SimpleNamespace(scalar=lambda: answer)


def test_the_switch_to_the_log_is_tried_until_the_file_is_free(path):
    """SQLite does not always wait for it, and then one of two processes that open a new file would fail."""
    path.touch()
    file = SqliteFile(path, busy_timeout=5, synchronous="FULL")
    switch = Switch(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY, "wal")
    file.settle(switch)
    assert switch.answers == []
    with pytest.raises(DocketUnavailable, match="failed to read or write"), file.faults():
        file.settle(Switch(sqlite3.SQLITE_IOERR, "wal"))
    with pytest.raises(DocketUnavailable, match="cannot keep a write-ahead log"):
        file.settle(Switch("delete"))
    file.close()


def test_of_racing_processes_exactly_one_approves(url):
    """DK-1: the guard is in the database, not in the process."""
    make_docket(url, make_entry())
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(4), context.Queue()
    processes = [context.Process(target=race_to_approve, args=(url, "e-1", 4, start, results)) for _ in range(4)]
    for process in processes:
        process.start()
    applied = [results.get(timeout=90) for _ in processes]
    for process in processes:
        process.join(30)
    results.close()
    assert sorted(applied) == [0, 0, 0, 1]


def test_many_threads_file_and_approve_their_own_rows(store):
    """DECISIONS 21: no call fails because others write too."""

    def run(number):
        name = f"e-{number}"
        assert store.file(make_entry(name)).created
        assert store.transition(TENANT, name, approval(name)).applied
        return store.record_execution(TENANT, name, ExecutionOutcome.EXECUTED, None)

    assert count_applied(at_once([lambda n=n: run(n) for n in range(24)])) == 24


def test_a_store_is_safe_across_a_fork(url):
    """A forked server: parent and child both go on, and neither's rows are lost when the other closes the file."""
    result = run_python(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from affiant_core.docket import open_docket
        from tests.support.docket import make_entry, TENANT
        store = open_docket(sys.argv[1])
        store.file(make_entry("parent-1"))
        store.get(TENANT, "parent-1")
        to_child, to_parent = os.pipe(), os.pipe()
        if (child := os.fork()) == 0:
            store.file(make_entry("child-1"))
            os.write(to_parent[1], b"x")
            os.read(to_child[0], 1)
            store.file(make_entry("child-2"))
            os._exit(0)
        os.read(to_parent[0], 1)
        store.file(make_entry("parent-2"))
        store.close()                       # the last connection of a process that thinks it is alone
        os.write(to_child[1], b"x")
        assert os.waitpid(child, 0)[1] == 0
        """,
        url,
    )
    assert result.returncode == 0, result.stderr
    with closing(open_docket(url)) as store:
        entries = store.page(Listing.ALL, HERE, limit=9, cursor=None, now=T0).entries
        assert [entry.entry_id for entry in entries] == ["parent-1", "child-1", "parent-2", "child-2"]


def test_a_fork_never_inherits_the_write_turn(url):
    """A thread that writes at the moment of a fork does not leave its child waiting for ever."""
    result = run_python(
        """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from affiant_core.docket.sql import SqlDocketStore
        from tests.support.docket import make_entry
        store = SqlDocketStore.open(sys.argv[1], busy_timeout=3)
        inside, leave = threading.Event(), threading.Event()
        def write():
            with store._database.write_turn():
                inside.set()
                leave.wait(60)
        thread = threading.Thread(target=write)
        thread.start()
        inside.wait(60)
        if (child := os.fork()) == 0:
            os._exit(0 if store.file(make_entry()).created else 1)
        status = os.waitpid(child, 0)[1]
        leave.set()
        thread.join()
        assert status == 0, status
        """,
        url,
    )
    assert result.returncode == 0, result.stderr


# --- what cannot serve ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://", "memory://"),
        ("sqlite:///", "memory://"),
        ("sqlite:///:memory:", "memory://"),
        ("sqlite:///file::memory:?uri=true", "no options"),
        ("sqlite:///docket.db?mode=ro", "no options"),
        ("sqlite://docket.db", "three slashes"),
        ("sqlite://user:hunter2@host/docket.db", "three slashes"),
        ("sqlite:docket.db", "sqlite:///"),
        ("sqlite+aiosqlite:///docket.db", "sqlite:///"),
        ("postgresql://host/db", "sqlite:///"),
        ("sqlite:///a\0b", "null character"),
        ("docket.db", "sqlite:///"),
        ("", "sqlite:///"),
    ],
)
def test_a_url_that_names_no_file_says_what_to_write(url, says, tmp_path, monkeypatch):
    """A mistake at wiring names what is wrong and what to write instead, and repeats no password."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocketUrlInvalid) as caught:
        SqlDocketStore.open(url)
    assert says in str(caught.value)
    assert "hunter2" not in told(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_relative_path_is_where_the_process_was(tmp_path, monkeypatch):
    """A later change of the working folder does not move the Docket."""
    monkeypatch.chdir(tmp_path)
    with closing(open_docket("sqlite:///docket.db")) as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        at_once([lambda n=n: store.file(make_entry(f"e-{n}")) for n in range(3)])
        assert os.listdir(".") == []


@pytest.mark.parametrize("place", ["missing/docket.db", "folder", "file/docket.db", "x" * 300])
def test_a_place_that_can_hold_no_file_is_unavailable(place, tmp_path):
    """Missing folder, folder instead of a file, file instead of a folder, a name too long; nothing is made."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DocketUnavailable) as caught:
        open_docket(f"sqlite:///{tmp_path / place}")
    assert str(tmp_path) in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


OPEN_AND_TELL = """
    import sys
    from affiant_core.docket import open_docket
    from affiant_core.errors import DocketError
    from tests.support.docket import TENANT
    for url in sys.argv[1:]:
        try:
            store = open_docket(url)
            store.get(TENANT, "e-1")
            print("opened")
        except DocketError as error:
            print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes capabilities away as Linux does")
def test_a_file_without_permission_is_unavailable(tmp_path):
    """Found when the Docket is opened, not at the first approval; the message says what to change."""
    cases = {
        "read-only file": (0o444, 0o755, "is read-only or not readable; make it readable and writable"),
        "unreadable file": (0o000, 0o755, "is read-only or not readable; make it readable and writable"),
        "read-only folder": (0o644, 0o555, "is not writable; SQLite keeps its log there, so make it writable"),
        "closed folder": (0o644, 0o000, "check the path and its permissions"),
        "new file": (None, 0o555, "is not writable; SQLite keeps its log there, so make it writable"),
    }
    urls = []
    for name, (file_mode, folder_mode, _) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        urls.append(f"sqlite:///{folder / 'docket.db'}")
        if file_mode is not None:
            make_docket(urls[-1], make_entry())
            (folder / "docket.db").chmod(file_mode)
        folder.chmod(folder_mode)
    try:
        result = run_python(OPEN_AND_TELL, *urls, unprivileged=True)
    finally:
        for name in cases:
            (tmp_path / name).chmod(0o755)
    told = result.stdout.splitlines()
    assert len(told) == len(cases), result.stderr
    for (name, (_, _, says)), line in zip(cases.items(), told, strict=True):
        assert line.startswith("DocketUnavailable "), (name, line)
        assert says in line, (name, line)


@pytest.mark.parametrize(
    "content",
    [b"hello", b"{}\n" * 5000, b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 4096, os.urandom(8192)],
    ids=["a word", "text", "a false header", "zeros", "noise"],
)
def test_a_file_that_is_no_database_is_corrupt_and_stays_as_it_is(content, path, url):
    """Never touched: not a byte, and nothing is put beside it."""
    path.write_bytes(content)
    with pytest.raises(DocketCorrupt, match="is damaged or is not a SQLite database"):
        open_docket(url)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["docket.db"]


def test_an_empty_file_becomes_a_docket(path, url):
    """An empty file is an empty database."""
    path.write_bytes(b"")
    make_docket(url, make_entry())
    with closing(open_docket(url)) as store:
        assert store.get(TENANT, "e-1") == make_entry()


def test_a_truncated_file_is_corrupt(path, url):
    """Half a file never reads as a Docket with fewer rows."""
    make_docket(url, *(make_entry(f"e-{number}") for number in range(200)))
    whole = path.read_bytes()
    for size in (50, 2000, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:size])
        with pytest.raises(DocketCorrupt) as caught, closing(open_docket(url)) as store:
            store.page(Listing.ALL, HERE, limit=1000, cursor=None, now=T0)
        assert str(path) in str(caught.value)


def test_a_damaged_page_is_corrupt(path, url):
    """Damage inside a file that opens shows when it is met, and as what it is."""
    make_docket(url, *(make_entry(f"e-{number}") for number in range(200)))
    content = bytearray(path.read_bytes())
    content[8192:] = b"\x5a" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(DocketCorrupt), closing(open_docket(url)) as store:
        store.page(Listing.ALL, HERE, limit=1000, cursor=None, now=T0)


@pytest.mark.parametrize(
    "made", ["CREATE TABLE accounts (id INTEGER)", "CREATE VIEW v AS SELECT 1", "CREATE TABLE docket_entries (id)"]
)
def test_a_database_of_somebody_else_is_refused_and_stays_as_it_is(made, path, url):
    """No table is ever put into a foreign database, and its journal mode is not changed."""
    with raw(path) as connection:
        connection.execute(made)
    content = path.read_bytes()
    with pytest.raises(DocketCorrupt, match="other tables and no Docket"):
        open_docket(url)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["docket.db"]


def test_a_docket_with_other_tables_beside_it_is_a_docket(path, url):
    """A host may keep tables of its own in the same file, once it is a Docket."""
    make_docket(url, make_entry())
    with raw(path) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
    with closing(open_docket(url)) as store:
        assert store.get(TENANT, "e-1") == make_entry()


def test_a_newer_schema_is_refused_with_both_numbers(path, url):
    """An old program never writes into a newer Docket, and says how new it is."""
    make_docket(url, make_entry())
    newer = len(STEPS) + 6
    with raw(path) as connection:
        connection.execute("INSERT INTO affiant_schema VALUES (?, 0)", (newer,))
    content = path.read_bytes()
    with pytest.raises(DocketSchemaTooNew, match=rf"step {newer} .* up to {len(STEPS)};"):
        open_docket(url)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    ["DROP TABLE docket_entries", "DELETE FROM affiant_schema", "UPDATE affiant_schema SET step = -1"],
)
def test_half_a_schema_is_corrupt(damage, path, url):
    """A Docket that lost a part of itself is not repaired by guessing."""
    make_docket(url, make_entry())
    with raw(path) as connection:
        connection.execute(damage)
    with pytest.raises(DocketCorrupt, match="only part of a Docket"):
        open_docket(url)


def test_a_table_that_changed_under_the_store_is_corrupt(path, store):
    """A missing column or table is reported as what it is."""
    store.file(make_entry())
    with raw(path) as connection:
        connection.execute("ALTER TABLE docket_entries RENAME COLUMN decision TO verdict")
    with pytest.raises(DocketCorrupt, match="not those of a Docket"):
        store.get(TENANT, "e-1")


def test_a_lock_that_is_held_too_long_is_unavailable_and_nothing_is_changed(path, url):
    """The wait has an end; the message says how long it was, and the next call works."""
    make_docket(url, secret_entry())
    with closing(SqlDocketStore.open(url, busy_timeout=0.2)) as store:
        with raw(path) as holder:
            holder.execute("BEGIN IMMEDIATE")
            for act in (
                lambda: store.file(secret_entry("e-2")),
                lambda: store.transition(TENANT, "e-1", approval()),
                lambda: store.expire_due(DEADLINE, HERE, limit=1),
            ):
                with pytest.raises(DocketUnavailable, match=r"locked for 0\.2 seconds") as caught:
                    act()
                assert SECRET not in told(caught.value)
                assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
            assert store.get(TENANT, "e-1") == secret_entry(), "reading needs no write lock"
        assert store.get(TENANT, "e-2") is None
        assert store.transition(TENANT, "e-1", approval()).applied


def test_a_file_that_is_locked_whole_cannot_be_opened(path, url):
    """The same when the Docket is opened; a short busy timeout of zero seconds is a choice too."""
    make_docket(url)
    with raw(path) as holder:
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("BEGIN EXCLUSIVE")
        for timeout in (0, 0.2):
            with pytest.raises(DocketUnavailable, match="locked"):
                SqlDocketStore.open(url, busy_timeout=timeout)


def test_threads_of_one_process_wait_for_each_other_as_long(url):
    """The queue inside the process has the same end as the lock between processes."""
    with closing(SqlDocketStore.open(url, busy_timeout=0.2)) as store:
        with ThreadPoolExecutor(1) as another, store._database.write_turn():
            refused = another.submit(store.file, make_entry()).exception()
            assert isinstance(refused, DocketUnavailable)
            assert "locked" in str(refused)
        assert store.file(make_entry()).created


def test_a_full_disk_is_unavailable_and_nothing_is_changed(url):
    """What was there stays readable, and filing works again when there is room."""

    def shrink(connection, _):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")

    make_docket(url, secret_entry())
    event.listen(Pool, "connect", shrink)
    try:
        with closing(open_docket(url)) as store:
            large = make_entry("e-2", affidavit=make_affidavit({"reason": SECRET * 10_000}))
            with pytest.raises(DocketUnavailable, match=r"full; free some space\. Nothing was changed") as caught:
                store.file(large)
            assert SECRET not in told(caught.value)
            assert store.get(TENANT, "e-1") == secret_entry()
            assert store.get(TENANT, "e-2") is None
    finally:
        event.remove(Pool, "connect", shrink)
    make_docket(url, large)


def test_a_failing_disk_is_unavailable(url):
    """A write that the system refuses half-way: an error of the disk, and a Docket that opens again."""
    result = run_python(
        """
        import resource, sys
        from affiant_core.docket import open_docket
        from affiant_core.errors import DocketUnavailable
        from tests.support.docket import make_affidavit, make_entry
        store = open_docket(sys.argv[1])
        assert store.file(make_entry("e-1")).created
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            store.file(make_entry("e-2", affidavit=make_affidavit({"reason": "x" * 1_000_000})))
        except DocketUnavailable as error:
            print(error)
        """,
        url,
    )
    assert "the disk" in result.stdout, result.stderr
    with closing(open_docket(url)) as store:
        assert store.get(TENANT, "e-1") == make_entry()
        assert store.get(TENANT, "e-2") is None


def test_a_file_that_is_removed_or_replaced_is_unavailable(path, url, tmp_path):
    """SQLite would write on into a file without a name; a row that is acknowledged then would be lost."""
    with closing(open_docket(url)) as store:
        store.file(make_entry())
        path.rename(tmp_path / "moved.db")
        for act in (lambda: store.file(make_entry("e-2")), lambda: store.get(TENANT, "e-1")):
            with pytest.raises(DocketUnavailable, match="is gone"):
                act()
        make_docket(f"sqlite:///{tmp_path / 'other.db'}")
        (tmp_path / "other.db").rename(path)
        with pytest.raises(DocketUnavailable, match="was replaced"):
            store.file(make_entry("e-2"))


def test_a_closed_store_says_so(url):
    """A closed store is not used again; it does not open the file behind the host's back."""
    store = open_docket(url)
    store.close()
    for act in (lambda: store.get(TENANT, "e-1"), lambda: store.file(make_entry())):
        with pytest.raises(DocketUnavailable, match="closed"):
            act()


def test_a_store_that_cannot_be_opened_leaves_no_connection_open(path, url):
    """A failed opening can be repeated as often as one likes."""
    with raw(path) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
    descriptors = Path("/proc/self/fd")
    for _ in range(2):
        before = len(list(descriptors.iterdir())) if descriptors.exists() else 0
        for _ in range(5):
            with pytest.raises(DocketCorrupt):
                open_docket(url)
        after = len(list(descriptors.iterdir())) if descriptors.exists() else 0
    assert after <= before


# --- damaged rows --------------------------------------------------------------------------------------------------

TAMPERED = {
    "affidavit": ["{", '{"reason": "' + SECRET + '"}', "null", b"\x80\x81"],
    "amended_affidavit": ["[]", SECRET],
    "requirement": ['{"kind":"' + SECRET + '"}', "5"],
    "blocked": ["[]", '{"code":"' + SECRET + '"}'],
    "approvals": ["{}", '["' + SECRET + '"]'],
    "attestation": ['{"by":null}'],
    "amendments": ["[]", "NaN"],
    "preserved_amendments": ["{}"],
    "decision": ['"' + SECRET + '"'],
    "execution_detail": ['{"a":1,"a":2}'],
    "presentation": ['{"hints":[],"warnings":[],"extra":"' + SECRET + '"}'],
    "status": [SECRET, ""],
    "execution": ["done"],
    "channel": ["", b"\x00\x01"],
    "filed_at": [SECRET, 2**62],
    "expires_at": [2**62],
    "supersedes": [""],
    "protocol_version": [""],
}


@pytest.mark.parametrize(
    ("column", "content"), [(column, content) for column, contents in TAMPERED.items() for content in contents]
)
def test_a_row_that_cannot_be_read_names_its_id_and_column_alone(column, content, path, store):
    """A damaged row is told from a missing one, quotes nothing that it holds, and takes no other row with it."""
    store.file(make_entry("e-0"))
    store.file(secret_entry())
    store.file(make_entry("e-2"))
    with raw(path) as connection:
        connection.execute(f"UPDATE docket_entries SET {column} = ? WHERE entry_id = 'e-1'", (content,))
    with pytest.raises(DocketCorrupt) as caught:
        store.get(TENANT, "e-1")
    assert str(caught.value) == f"the Docket row 'e-1' cannot be read: its column {column!r} is damaged."
    assert SECRET not in told(caught.value)
    with pytest.raises(DocketCorrupt, match="'e-1'"):
        store.page(Listing.ALL, HERE, limit=9, cursor=None, now=T0)
    with pytest.raises(DocketCorrupt, match="'e-1'"):
        store.file(make_entry())
    assert store.get(TENANT, "e-0") == make_entry("e-0")
    assert store.transition(TENANT, "e-2", approval("e-2")).applied


def test_a_row_with_text_that_is_not_utf8_is_corrupt(path, store):
    """The driver quotes such a text in its own error; ours does not, and does not carry it along."""
    store.file(make_entry())
    with raw(path) as connection:
        connection.execute("UPDATE docket_entries SET channel = CAST(X'733363726574ff' AS TEXT)")
    with pytest.raises(DocketCorrupt, match="not UTF-8") as caught:
        store.get(TENANT, "e-1")
    assert "s3cret" not in told(caught.value)


def test_a_damaged_row_is_never_decided(path, store):
    """AZ-5: nobody approves what nobody can read; the transition is undone, and so is a sweep."""
    store.file(make_entry())
    with raw(path) as connection:
        connection.execute("UPDATE docket_entries SET affidavit = '{'")
        for act in (
            lambda: store.transition(TENANT, "e-1", approval()),
            lambda: store.preserve_amendments(TENANT, "e-1", late_amendments(), DEADLINE),
            lambda: store.record_supersession(TENANT, "e-1", "e-2", DEADLINE),
            lambda: store.expire_due(DEADLINE, HERE, limit=1),
        ):
            with pytest.raises(DocketCorrupt, match="'affidavit'"):
                act()
            row = connection.execute(
                "SELECT status, attestation, preserved_amendments, superseded_by FROM docket_entries"
            )
            assert row.fetchone() == ("pending", None, None, None)


def test_a_row_larger_than_the_wires_limit_reads_back(store):
    """What was filed must be readable; the limit on text from outside is not one on the Docket."""
    entry = make_entry(affidavit=make_affidavit({"reason": "x" * (17 * 1024 * 1024)}))
    store.file(entry)
    store.file(make_entry("e-2"))
    assert store.get(TENANT, "e-1") == entry


# --- the schema ----------------------------------------------------------------------------------------------------


def test_the_first_step_is_frozen(path, url):
    """A released step is never edited: a later change of a table is a step of its own, and this text stays."""
    make_docket(url)
    with raw(path) as connection:
        statements = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    made = {name: " ".join(sql.split()) for name, sql in statements if not name.startswith("sqlite_")}
    assert made == {
        "affiant_schema": (
            "CREATE TABLE affiant_schema ( step INTEGER NOT NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (step) )"
        ),
        "docket_entries": (
            "CREATE TABLE docket_entries ( position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
            "tenant_id TEXT NOT NULL, entry_id TEXT NOT NULL, conversation_id TEXT NOT NULL, "
            "status TEXT NOT NULL, execution TEXT, filed_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, "
            "decided_at BIGINT, "
            "approvals_count INTEGER NOT NULL, supersedes TEXT, superseded_by TEXT, requested_by TEXT, "
            "channel TEXT NOT NULL, tool_name TEXT NOT NULL, protocol_version TEXT NOT NULL, affidavit TEXT NOT NULL, "
            "amended_affidavit TEXT, requirement TEXT NOT NULL, blocked TEXT, approvals TEXT, attestation TEXT, "
            "amendments TEXT, preserved_amendments TEXT, decision TEXT, execution_detail TEXT, "
            "presentation TEXT NOT NULL, CONSTRAINT uq_docket_entries_entry_tenant UNIQUE (entry_id, tenant_id) )"
        ),
        "ix_docket_entries_tenant": "CREATE INDEX ix_docket_entries_tenant ON docket_entries (tenant_id, position)",
        "ix_docket_entries_conversation": (
            "CREATE INDEX ix_docket_entries_conversation ON docket_entries (tenant_id, conversation_id, position)"
        ),
        "ix_docket_entries_pending_tenant": (
            "CREATE INDEX ix_docket_entries_pending_tenant ON docket_entries "
            "(tenant_id, status, position, expires_at) WHERE status = 'pending'"
        ),
        "ix_docket_entries_pending_conversation": (
            "CREATE INDEX ix_docket_entries_pending_conversation ON docket_entries "
            "(tenant_id, conversation_id, status, position, expires_at) WHERE status = 'pending'"
        ),
        "ix_docket_entries_due": (
            "CREATE INDEX ix_docket_entries_due ON docket_entries (expires_at, position) WHERE status = 'pending'"
        ),
        "ix_docket_entries_due_tenant": (
            "CREATE INDEX ix_docket_entries_due_tenant ON docket_entries "
            "(tenant_id, status, expires_at, position, conversation_id) WHERE status = 'pending'"
        ),
        "ix_docket_entries_unexecuted_tenant": (
            "CREATE INDEX ix_docket_entries_unexecuted_tenant ON docket_entries (tenant_id, execution, position) "
            "WHERE status = 'approved' AND execution = 'unexecuted'"
        ),
        "ix_docket_entries_unexecuted_conversation": (
            "CREATE INDEX ix_docket_entries_unexecuted_conversation ON docket_entries "
            "(tenant_id, conversation_id, execution, position) WHERE status = 'approved' AND execution = 'unexecuted'"
        ),
    }


def test_the_published_metadata_is_what_is_in_the_file(path, url):
    """``metadata`` names every table; each applied step is recorded with its instant."""
    before = int(time.time() * 1000)
    make_docket(url)
    with raw(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        ((step, applied_at),) = connection.execute("SELECT step, applied_at FROM affiant_schema").fetchall()
    assert tables - {"sqlite_sequence"} == set(metadata.tables)
    assert step == len(STEPS)
    assert before <= applied_at <= time.time() * 1000


def test_a_position_is_never_used_twice(path, store):
    """A cursor outlives a purge: a row that is filed after one comes after every row that ever was."""
    store.file(make_entry())
    with raw(path) as connection:
        connection.execute("DELETE FROM docket_entries")
        store.file(make_entry("e-2"))
        assert connection.execute("SELECT position FROM docket_entries").fetchall() == [(2,)]


PLANS = {
    "get": (GET, "sqlite_autoindex_docket_entries_1"),
    "pending": (page(Listing.PENDING, False), "ix_docket_entries_pending_tenant"),
    "pending of one": (page(Listing.PENDING, True), "ix_docket_entries_pending_conversation"),
    "unexecuted": (page(Listing.APPROVED_UNEXECUTED, False), "ix_docket_entries_unexecuted_tenant"),
    "unexecuted of one": (page(Listing.APPROVED_UNEXECUTED, True), "ix_docket_entries_unexecuted_conversation"),
    "all": (page(Listing.ALL, False), "ix_docket_entries_tenant"),
    "all of one": (page(Listing.ALL, True), "ix_docket_entries_conversation"),
    "due": (due(False, False), "ix_docket_entries_due"),
    "due of a tenant": (due(True, False), "ix_docket_entries_due_tenant"),
    "due of one": (due(True, True), "ix_docket_entries_due_tenant"),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_listing_has_an_index_that_gives_its_order(name, path, store):
    """DK-3: no listing loads or sorts more than it returns, however many rows there are."""
    statement, index = PLANS[name]
    compiled = Compiled(statement, store._database.dialect)
    texts = dict.fromkeys(["at_tenant", "at_entry", "at_conversation"], "x")
    numbers = dict.fromkeys(["at_now", "after", "at_most"], 1)
    parameters = compiled.arguments(texts | numbers)
    with raw(path) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {compiled.text}", parameters)]
    assert len(plan) == 1, plan
    assert f"USING INDEX {index} " in plan[0], plan


def test_every_column_is_either_a_members_or_the_stores_own():
    """Nothing is stored that is not read, and nothing is filed that is not stored."""
    own = {"position", "approvals_count", "supersedes", "superseded_by"}
    members = set(type(make_entry()).model_fields) - {"lineage"}
    assert {column.name for column in docket_entries.columns} == members | own


def test_every_error_of_the_store_is_a_docket_error():
    """A host catches one base class."""
    for error in (DocketCorrupt, DocketUnavailable, DocketUrlInvalid, DocketSchemaTooNew):
        assert issubclass(error, DocketError)


def test_importing_the_core_imports_no_sqlalchemy():
    """A host that keeps no record pays for none."""
    script = "import sys, affiant_core.docket as d; d.open_docket('memory://'); sys.exit('sqlalchemy' in sys.modules)"
    assert run_python(script).returncode == 0


def test_an_approved_row_is_reported_in_another_process(url):
    """AZ-5: an outbox elsewhere reports once, on the row that is in the file."""
    make_docket(url, make_approved_entry())
    result = run_python(
        """
        import sys
        from affiant_core.docket import open_docket
        from affiant_core.vocabulary import ExecutionOutcome
        from tests.support.docket import TENANT
        store = open_docket(sys.argv[1])
        print(store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"code": "OK"}).applied)
        """,
        url,
    )
    assert result.stdout == "True\n", result.stderr
    with closing(open_docket(url)) as store:
        assert not store.record_execution(TENANT, "e-1", ExecutionOutcome.FAILED, None).applied
        assert store.get(TENANT, "e-1").execution_detail == {"code": "OK"}
