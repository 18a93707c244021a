"""The host's own system: a small HR database of employees, balances and leave requests.

Nothing in here knows of agents. The leave desk reads it in its tools and writes to it in its executor only.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

SEED = 20270301
HEADCOUNT = 300
KINDS = {"annual": 25, "sick": 10}

_FIRST = ["Ada", "Bram", "Chidi", "Dalia", "Emre", "Freya", "Goran", "Hana", "Imani", "Jonas", "Kaito", "Lucía"]
_LAST = ["Abara", "Berg", "Costa", "Dimitrov", "Eriksen", "Farouk", "Garcia", "Hughes", "Ivanova", "Jansen", "Kovács"]
_TEAMS = ["Finance", "Logistics", "Product", "Support"]

_SCHEMA = """
CREATE TABLE employees (id TEXT PRIMARY KEY, name TEXT NOT NULL, team TEXT NOT NULL, manager TEXT NOT NULL);
CREATE TABLE balances (employee_id TEXT NOT NULL REFERENCES employees, kind TEXT NOT NULL, days INTEGER NOT NULL,
                       PRIMARY KEY (employee_id, kind));
CREATE TABLE leave_requests (
    id TEXT PRIMARY KEY, employee_id TEXT NOT NULL REFERENCES employees, kind TEXT NOT NULL, start TEXT NOT NULL,
    "end" TEXT NOT NULL, days INTEGER NOT NULL, reason TEXT, last_change TEXT NOT NULL UNIQUE);
"""


@dataclass(frozen=True)
class Employee:
    """One person on the payroll."""

    id: str
    name: str
    team: str
    manager: str
    annual: int
    sick: int


@dataclass(frozen=True)
class LeaveRequest:
    """One booked leave. ``last_change`` is the key of the write that made it so; no key is written twice."""

    id: str
    employee_id: str
    kind: str
    start: date
    end: date
    days: int
    reason: str | None
    last_change: str


class HumanResources:
    """The database in one file. Each call opens its own connection, since tools may run in any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def create(cls, path: Path) -> HumanResources:
        """Make the database, the same one every time."""
        chance = random.Random(SEED)
        hr = cls(path)
        with hr._open() as database:
            database.executescript(_SCHEMA)
            for number in range(1, HEADCOUNT + 1):
                team = chance.choice(_TEAMS)
                name = f"{chance.choice(_FIRST)} {chance.choice(_LAST)}"
                if number == 17:
                    name, team = "Zoë Nakamura", "Product"
                identifier = f"emp-{number:03d}"
                database.execute(
                    "INSERT INTO employees VALUES (?, ?, ?, ?)", (identifier, name, team, f"manager-{team.lower()}")
                )
                for kind, days in KINDS.items():
                    left = max(0, days - chance.randrange(days // 2))
                    database.execute("INSERT INTO balances VALUES (?, ?, ?)", (identifier, kind, left))
        return hr

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self._path)
        database.row_factory = sqlite3.Row
        try:
            with database:
                yield database
        finally:
            database.close()

    def find(self, name: str) -> list[Employee]:
        """Employees whose name contains ``name``."""
        with self._open() as database:
            rows = database.execute(
                "SELECT e.*, a.days AS annual, s.days AS sick FROM employees e"
                " JOIN balances a ON a.employee_id = e.id AND a.kind = 'annual'"
                " JOIN balances s ON s.employee_id = e.id AND s.kind = 'sick'"
                " WHERE instr(lower(e.name), lower(?)) OR e.id = ? ORDER BY e.id LIMIT 20",
                (name, name),
            ).fetchall()
        return [Employee(**dict(row)) for row in rows]

    def employee(self, employee_id: str) -> Employee | None:
        """The employee with this id."""
        return next((each for each in self.find(employee_id) if each.id == employee_id), None)

    def leave(self, request_id: str) -> LeaveRequest | None:
        """One leave request."""
        return next((each for each in self.all_leave() if each.id == request_id), None)

    def all_leave(self) -> list[LeaveRequest]:
        """Every leave request, in order."""
        with self._open() as database:
            rows = database.execute("SELECT * FROM leave_requests ORDER BY id").fetchall()
        return [
            LeaveRequest(
                **{**dict(row), "start": date.fromisoformat(row["start"]), "end": date.fromisoformat(row["end"])}
            )
            for row in rows
        ]

    def was_written(self, change: str) -> bool:
        """Whether the write with this key has happened already: what makes a second attempt harmless."""
        with self._open() as database:
            found = database.execute("SELECT 1 FROM leave_requests WHERE last_change = ?", (change,)).fetchone()
        return found is not None

    def book(
        self, employee_id: str, kind: str, start: str, end: str, days: int, reason: str | None, change: str
    ) -> str:
        """Book leave and take it off the balance, in one transaction. Returns the new request's id."""
        with self._open() as database:
            (count,) = database.execute("SELECT count(*) FROM leave_requests").fetchone()
            request_id = f"leave-{count + 1}"
            database.execute(
                "INSERT INTO leave_requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (request_id, employee_id, kind, start, end, days, reason, change),
            )
            database.execute(
                "UPDATE balances SET days = days - ? WHERE employee_id = ? AND kind = ?", (days, employee_id, kind)
            )
        return request_id

    def move(self, request_id: str, start: str, end: str, days: int, change: str) -> None:
        """Move booked leave to other dates and settle the balance, in one transaction."""
        with self._open() as database:
            database.execute(
                "UPDATE balances SET days = days + (SELECT days FROM leave_requests WHERE id = ?) - ?"
                " WHERE (employee_id, kind) = (SELECT employee_id, kind FROM leave_requests WHERE id = ?)",
                (request_id, days, request_id),
            )
            database.execute(
                'UPDATE leave_requests SET start = ?, "end" = ?, days = ?, last_change = ? WHERE id = ?',
                (start, end, days, change, request_id),
            )
