"""The budgets of the design, measured: ratios taken side by side in one run, never a timed assertion.

``python benchmarks/run.py`` prints a table; ``--json FILE`` writes the figures too; ``--quick`` takes fewer rounds and
smaller tables. A budget that is not met is printed as such, and the exit status stays 0: a shared machine is no judge.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import count
from pathlib import Path

from measure import Figure, micro, side_by_side
from read_calls import read_calls

# --- one row's life ------------------------------------------------------------------------------------------------


def life_of_a_row(rounds: int) -> Iterator[Figure]:
    """File, approve and report ten fields: in memory, and on SQLite beside three bare commits of the same bytes."""
    from affiant_core import (
        Affidavit,
        AffidavitField,
        Approve,
        InMemoryDocketStore,
        Member,
        ProvenanceTag,
        ReviewGate,
        TurnContext,
        open_docket,
    )

    fields = [AffidavitField.of(f"field{n}", f"value {n}", ProvenanceTag.from_tool_result()) for n in range(10)]
    record = Affidavit.create(operation_type="WriteUpdate", entity_type="Thing", entity_id="t-1", fields=fields)
    numbers = count()

    def life(gate: ReviewGate) -> Callable[[], object]:
        def once() -> None:
            turn = TurnContext("acme", Member("ana"), conversation_id=f"c-{next(numbers)}")
            entry_id = gate.file.sync(record, turn, tool_name="change").entry.entry_id
            gate.decide.sync(entry_id, Approve(), turn)
            gate.report.sync(entry_id, "executed", turn)

        return once

    memory = life(ReviewGate(docket=InMemoryDocketStore(), authorize=lambda _: True))
    found = side_by_side(memory, lambda: None, rounds=rounds, calls=100)
    yield Figure(
        "file + approve + report, memory", micro(found.ours), "—", micro(found.ours), "≤ 500 µs", found.ours <= 500e-6
    )

    text = record.to_json_string()
    with tempfile.TemporaryDirectory() as folder, closing(open_docket(f"sqlite:///{folder}/docket.db")) as docket:
        durable = life(ReviewGate(docket=docket, authorize=lambda _: True))
        with closing(sqlite3.connect(f"{folder}/bare.db", isolation_level=None)) as bare:
            bare.execute("PRAGMA journal_mode=WAL")
            bare.execute("PRAGMA synchronous=FULL")
            bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT, note TEXT)")

            def three_commits() -> None:
                bare.execute("BEGIN IMMEDIATE")
                row = bare.execute("INSERT INTO rows (body) VALUES (?)", (text,)).lastrowid
                bare.execute("COMMIT")
                for note in ("approved", "executed"):
                    bare.execute("BEGIN IMMEDIATE")
                    bare.execute("UPDATE rows SET note = ? WHERE id = ?", (note, row))
                    bare.execute("COMMIT")

            found = side_by_side(durable, three_commits, rounds=rounds, calls=50)
    yield Figure(
        "file + approve + report, SQLite", micro(found.ours), f"3 bare commits {micro(found.theirs)}",
        f"{found.ratio:.2f}×", "≤ 2.5×", found.ratio <= 2.5,
    )  # fmt: skip


# --- one page at scale ---------------------------------------------------------------------------------------------


def page_at_scale(rounds: int, many: int) -> Iterator[Figure]:
    """One page of pending rows in a table of a thousand, and in one of ``many``."""
    from affiant_core import (
        Affidavit,
        AffidavitField,
        Listing,
        Member,
        ProvenanceTag,
        ReviewGate,
        TurnContext,
        open_docket,
    )

    record = Affidavit.create(
        operation_type="WriteCreate", entity_type="Thing",
        fields=[AffidavitField.of("name", "x", ProvenanceTag.from_tool_result())],
    )  # fmt: skip

    def filled(path: str, rows: int) -> ReviewGate:
        docket = open_docket(f"sqlite:///{path}")
        gate = ReviewGate(docket=docket, authorize=lambda _: True)
        gate.file.sync(record, TurnContext("acme", Member("ana"), conversation_id="c-1"), tool_name="change")
        with closing(sqlite3.connect(path)) as database, database:
            columns = [row[1] for row in database.execute("PRAGMA table_info(docket_entries)") if row[1] != "position"]
            chosen = ", ".join("'row-' || n" if column == "entry_id" else column for column in columns)
            database.execute(
                f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows - 1}) "
                f"INSERT INTO docket_entries ({', '.join(columns)}) "
                f"SELECT {chosen} FROM numbers, (SELECT * FROM docket_entries LIMIT 1)"
            )
        return gate

    with tempfile.TemporaryDirectory() as folder:
        large, small = filled(f"{folder}/large.db", many), filled(f"{folder}/small.db", 1000)
        found = side_by_side(
            lambda: large.page.sync(Listing.PENDING, tenant_id="acme", limit=50),
            lambda: small.page.sync(Listing.PENDING, tenant_id="acme", limit=50),
            rounds=rounds, calls=20,
        )  # fmt: skip
    yield Figure(
        f"page of 50 pending at {many:,} rows", micro(found.ours), f"at 1,000 rows {micro(found.theirs)}",
        f"{found.ratio:.2f}×", "≤ 1.5×", found.ratio <= 1.5,
    )  # fmt: skip


# --- start-up ------------------------------------------------------------------------------------------------------


def start_up(rounds: int) -> Iterator[Figure]:
    """``import affiant_core`` beside ``import pydantic`` with one model, each in a fresh interpreter."""

    def run(program: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", program], check=True)

    pydantic = "import pydantic\nclass Model(pydantic.BaseModel):\n    name: str\n"
    found = side_by_side(run("import affiant_core"), run(pydantic), rounds=rounds, calls=3)
    yield Figure(
        "import affiant_core", f"{found.ours * 1e3:.0f} ms", f"pydantic + 1 model {found.theirs * 1e3:.0f} ms",
        f"{found.ratio:.2f}×", "≤ 1.5×", found.ratio <= 1.5,
    )  # fmt: skip


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and 100,000 rows instead of 1,000,000")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    options = parser.parse_args()
    rounds = 7 if options.quick else 25
    figures: list[Figure] = []
    steps: list[tuple[str, Callable[[], Iterator[Figure]]]] = [
        ("start-up", lambda: start_up(5 if options.quick else 11)),
        ("read calls", lambda: read_calls(rounds)),
        ("the life of a row", lambda: life_of_a_row(rounds)),
        ("a page at scale", lambda: page_at_scale(rounds, 100_000 if options.quick else 1_000_000)),
    ]
    for name, step in steps:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures.extend(step())
    columns = [[getattr(figure, name) for figure in figures] for name in ("what", "ours", "beside", "result", "budget")]
    widths = [max(map(len, column)) for column in columns]
    for figure in figures:
        cells = [figure.what, figure.ours, figure.beside, figure.result, figure.budget]
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"{padded}  {'met' if figure.met else 'NOT MET'}")
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
