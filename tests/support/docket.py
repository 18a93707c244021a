"""The kit's rows and acts, the stores of this distribution, and what other processes do in the tests of the stores."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from affiant_core.docket import DocketStore, open_docket
from affiant_core.testing.store_world import (
    CONVERSATION,
    DEADLINE,
    HERE,
    LEFT,
    MILLISECOND,
    T0,
    TENANT,
    TTL,
    approval,
    at_once,
    count_applied,
    expiry,
    late_amendments,
    listed,
    make_affidavit,
    make_approved_entry,
    make_entry,
    rejection,
    rich_entry,
    withdrawal,
)

__all__ = [
    "CONVERSATION",
    "DEADLINE",
    "HERE",
    "LEFT",
    "MILLISECOND",
    "OPENERS",
    "T0",
    "TENANT",
    "TTL",
    "Clock",
    "approval",
    "at_once",
    "count_applied",
    "expiry",
    "file_until_killed",
    "late_amendments",
    "listed",
    "make_affidavit",
    "make_approved_entry",
    "make_entry",
    "memory",
    "open_and_file",
    "race_to_approve",
    "rejection",
    "rich_entry",
    "sqlite",
    "withdrawal",
]


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = T0

    def move(self, by: timedelta) -> datetime:
        self.now += by
        return self.now


def memory(_: Path) -> DocketStore:
    """A new store in memory."""
    return open_docket("memory://")


def sqlite(folder: Path) -> DocketStore:
    """A new store in a file of ``folder``."""
    return open_docket(f"sqlite:///{folder / 'docket.db'}")


OPENERS = (memory, sqlite)
"""How to open every kind of store."""


# --- in other processes --------------------------------------------------------------------------------------------


def open_and_file(urls: list[str], entry_id: str, start: Any, results: Any) -> None:
    """Open one Docket after the other, each together with the other processes, and file one row in each."""
    try:
        for url in urls:
            start.wait(60)
            store = open_docket(url)
            assert store.file(make_entry(entry_id)).created
            store.close()
        results.put(entry_id)
    except BaseException as error:  # noqa: BLE001  # the test looks at it
        results.put(repr(error))


def race_to_approve(url: str, entry_id: str, threads: int, start: Any, results: Any) -> None:
    """Open the Docket, wait for the other processes, and approve one row from several threads at once."""
    store = open_docket(url)
    start.wait(60)
    try:
        calls = [
            partial(store.transition, TENANT, entry_id, approval(entry_id, by=f"r-{number}"))
            for number in range(threads)
        ]
        results.put(count_applied(at_once(calls)))
    except BaseException as error:  # noqa: BLE001  # the test looks at it
        results.put(repr(error))
    finally:
        store.close()


def file_until_killed(url: str, acknowledged: Path) -> None:
    """File rows for ever, and write down each one that the Docket has acknowledged."""
    store = open_docket(url)
    with acknowledged.open("a", encoding="utf-8") as notes:
        number = 0
        while True:
            store.file(make_entry(f"e-{number}"))
            notes.write(f"e-{number}\n")
            notes.flush()
            number += 1
            time.sleep(0.001)
