"""The kit's store suite on every Docket store of this distribution, and what is said of these stores alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from affiant_core.docket import Listing, Scope
from affiant_core.docket.model import deadline
from affiant_core.docket.store import Transition, TransitionGuard, write_cursor
from affiant_core.errors import CursorInvalid
from affiant_core.testing.store_suite import StoreSuite
from affiant_core.vocabulary import ExecutionOutcome
from tests.support.docket import (
    CONVERSATION,
    DEADLINE,
    HERE,
    LEFT,
    OPENERS,
    T0,
    TENANT,
    approval,
    late_amendments,
    listed,
    make_approved_entry,
    make_entry,
    memory,
    rich_entry,
    sqlite,
)


class TestDocketStores(StoreSuite):
    """Every standard test on every store, and what these stores have in common besides."""

    openers = OPENERS

    def test_a_refusal_says_what_is_wrong(self, store):
        """DK-1, DK-3: the messages that these stores share name the rule that was broken."""
        with pytest.raises(ValueError, match="filed pending"):
            store.file(make_entry(execution=ExecutionOutcome.UNEXECUTED))
        with pytest.raises(ValueError, match="one tenant"):
            store.page(Listing.ALL, Scope(None), limit=1, cursor=None, now=T0)
        cursor = write_cursor(Listing.ALL, Scope(TENANT, CONVERSATION), 0)
        with pytest.raises(CursorInvalid, match="belongs to another"):
            store.page(Listing.ALL, HERE, limit=1, cursor=cursor, now=T0)

    def test_a_cursor_beyond_the_end_is_an_empty_page(self, store):
        """DK-3: a position is where to go on, whether or not a row is there."""
        store.file(make_entry())
        cursor = write_cursor(Listing.ALL, HERE, 2**53 - 1)
        page = store.page(Listing.ALL, HERE, limit=1, cursor=cursor, now=T0)
        assert (page.entries, page.next_cursor) == ((), None)


@pytest.mark.parametrize(("opener", "waits"), [(memory, False), (sqlite, True)])
def test_what_waits_for_a_disk_says_so(opener, waits, tmp_path):
    """DECISIONS 21: asynchronous callers reach a store that waits through a worker thread."""
    store = opener(tmp_path)
    assert store.blocking is waits
    store.close()


@pytest.mark.parametrize("changes", [{}, {"blocked": None}, {"tenant_id": "other"}, {"status; --": 1}])
def test_a_transition_changes_what_a_transition_may_change(changes):
    """AZ-5: the proposal, its tenant and its block are never edited."""
    with pytest.raises(ValueError, match="and nothing else"):
        Transition(TransitionGuard.OPEN, T0, changes)


def test_every_store_returns_the_same(tmp_path):
    """The contract: for the same calls every kind of store returns equal results; only cursors are its own."""
    everything = []
    for opener in OPENERS:
        folder = tmp_path / opener.__name__
        folder.mkdir()
        store = opener(folder)
        results: list[Any] = [store.file(entry) for entry in (rich_entry(), make_entry("a"), make_approved_entry("b"))]
        results += [store.file(make_entry("c", conversation_id="c-2")), store.file(make_entry("a", channel="mail"))]
        results += [store.transition(TENANT, "a", approval("a", amendments={"reason": None, "extra": [1.0]}))]
        names = ("a", "b", "c", "rich", "d")
        results += [store.transition(TENANT, name, change) for name in names for change in LEFT.values()]
        results += [store.record_execution(TENANT, name, ExecutionOutcome.FAILED, {"code": "X"}) for name in "abcd"]
        results += [store.preserve_amendments(TENANT, name, late_amendments(), DEADLINE) for name in "abcd"]
        results += [store.record_supersession(TENANT, name, "z", DEADLINE) for name in "abcd"]
        results += [
            store.page(listing, scope, limit=9, cursor=None, now=now)
            for listing in Listing
            for scope in (HERE, Scope(TENANT, "c-2"))
            for now in (T0, DEADLINE)
        ]
        results += [listed(store, listing, limit=1) for listing in Listing]
        results += [store.expire_due(deadline(T0, timedelta.max), Scope(None), limit=9)]
        results += [store.get(TENANT, name) for name in names]
        everything.append(results)
        store.close()
    for number, (one, other) in enumerate(zip(*everything, strict=True)):
        assert one == other, number
