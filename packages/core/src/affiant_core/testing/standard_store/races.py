"""Callers that act at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from affiant_core.docket.store import DocketStore, Listing, Transition, TransitionGuard
from affiant_core.testing.store_world import (
    DEADLINE,
    HERE,
    T0,
    TENANT,
    approval,
    at_once,
    count_applied,
    file_many,
    ids,
    late_amendments,
    listed,
    make_approved_entry,
    make_entry,
    one_approval,
    rejection,
    stored,
    succeeded,
    withdrawal,
)
from affiant_core.vocabulary import ExecutionOutcome


class RaceTests:
    """Of any number of racing callers one is applied (DK-1; DECISIONS 21)."""

    def test_of_sixteen_racing_decisions_exactly_one_is_applied(self, store: DocketStore) -> None:
        """DK-1: at most one of any number of racing callers leaves ``pending``; all others see the winner's row."""
        store.file(make_entry())
        acts: list[Callable[[], Any]] = [
            partial(store.transition, TENANT, "e-1", act(by=f"r-{number}"))
            for number, act in enumerate([approval, rejection] * 7)
        ]
        acts += [partial(store.transition, TENANT, "e-1", withdrawal())] * 2
        results = at_once(acts)
        assert count_applied(results) == 1
        stands = stored(store)
        assert [result.entry for result in results] == [stands] * 16

    def test_of_sixteen_racing_filings_exactly_one_creates(self, store: DocketStore) -> None:
        """DK-1: the first write wins, and everybody gets its row."""
        entries = [make_entry(requested_by=f"u-{number}") for number in range(16)]
        results = succeeded(at_once([partial(store.file, entry) for entry in entries]))
        assert sum(filed.created for filed in results) == 1
        assert listed(store, Listing.ALL) == ["e-1"]
        assert {filed.entry.requested_by for filed in results} == {stored(store).requested_by}

    def test_of_racing_reports_and_successors_exactly_one_is_applied(self, store: DocketStore) -> None:
        """DK-1: an execution, a successor and a late amendment are each recorded once."""
        store.file(make_approved_entry("done"))
        store.file(make_entry("late"))
        outcomes = [ExecutionOutcome.EXECUTED, ExecutionOutcome.FAILED] * 3
        reports = [partial(store.record_execution, TENANT, "done", outcome, None) for outcome in outcomes]
        successors = [partial(store.record_supersession, TENANT, "late", f"e-{n}", DEADLINE) for n in range(5)]
        keeping = [
            partial(store.preserve_amendments, TENANT, "late", late_amendments(by=f"r-{n}"), DEADLINE) for n in range(5)
        ]
        results = at_once([*reports, *successors, *keeping])
        assert [count_applied(results[:6]), count_applied(results[6:11]), count_applied(results[11:])] == [1, 1, 1]

    def test_racing_sweeps_move_each_row_once(self, store: DocketStore) -> None:
        """DK-3: a sweep returns only the rows that this call moved, so that nobody is told twice."""
        names = file_many(store, 24)
        sweeps = succeeded(at_once([partial(store.expire_due, DEADLINE, HERE, limit=4)] * 8))
        moved = [name for sweep in sweeps for name in ids(sweep.entries)]
        assert sorted(moved) == names

    def test_of_two_approvers_racing_for_the_last_place_one_folds(self, store: DocketStore) -> None:
        """AZ-4: an approval that has not seen the other one is not written over it."""
        store.file(make_entry(approvals=()))
        acts = [
            partial(
                store.transition,
                TENANT,
                "e-1",
                Transition(TransitionGuard.UNDECIDED, T0, {"approvals": (one_approval(by),)}, expected_approvals=0),
            )
            for by in "abcdefgh"
        ]
        assert count_applied(at_once(acts)) == 1
        assert len(stored(store).approvals or ()) == 1
