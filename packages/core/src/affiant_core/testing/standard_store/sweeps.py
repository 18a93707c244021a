"""Sweeps, which persist what rows read anyway."""

from __future__ import annotations

from datetime import timedelta

from affiant_core.docket.store import DocketStore, Listing, Scope
from affiant_core.testing.store_world import (
    DEADLINE,
    HERE,
    MILLISECOND,
    T0,
    TENANT,
    TTL,
    ids,
    listed,
    make_affidavit,
    make_entry,
    rich_entry,
)
from affiant_core.vocabulary import ReviewStatus


class SweepTests:
    """A sweep moves due rows of its scope and no others (DK-3)."""

    def test_a_sweep_moves_at_most_its_limit_and_says_whether_more_are_due(self, store: DocketStore) -> None:
        """DK-3: oldest deadline first, filing order among equals, each row decided at its own deadline."""
        deadlines = {"late": 3, "first": 1, "second": 1, "middle": 2, "not yet": 9}
        for name, minutes in deadlines.items():
            store.file(make_entry(name, expires_at=T0 + timedelta(minutes=minutes)))
        now = T0 + timedelta(minutes=3)
        one = store.expire_due(now, HERE, limit=3)
        assert (ids(one.entries), one.more) == (["first", "second", "middle"], True)
        for entry in one.entries:
            assert entry == store.get(TENANT, entry.entry_id)
            assert (entry.status, entry.decided_at) == (ReviewStatus.EXPIRED, entry.expires_at)
        two = store.expire_due(now, HERE, limit=1)
        assert (ids(two.entries), two.more) == (["late"], False)
        assert store.expire_due(now, HERE, limit=1) == store.expire_due(now, HERE, limit=2**40)
        assert listed(store, Listing.PENDING) == ["not yet"]

    def test_a_sweep_begins_at_the_deadline(self, store: DocketStore) -> None:
        """DK-1: the boundary is inclusive for the sweep too."""
        store.file(make_entry())
        assert store.expire_due(DEADLINE - MILLISECOND, HERE, limit=1).entries == ()
        assert ids(store.expire_due(DEADLINE, HERE, limit=1).entries) == ["e-1"]

    def test_a_sweep_keeps_to_its_scope(self, store: DocketStore) -> None:
        """DK-3: one conversation, one tenant, or, for the sweep alone, every tenant."""
        rows = (("a", "acme", "c-1"), ("b", "acme", "c-2"), ("c", "other", "c-1"), ("d", "third", "c-1"))
        for name, tenant, conversation in rows:
            store.file(make_entry(name, tenant_id=tenant, conversation_id=conversation))
        assert ids(store.expire_due(DEADLINE, Scope(TENANT, "c-2"), limit=9).entries) == ["b"]
        assert ids(store.expire_due(DEADLINE, Scope("other"), limit=9).entries) == ["c"]
        assert ids(store.expire_due(DEADLINE, Scope(None), limit=9).entries) == ["a", "d"]

    def test_a_sweep_of_every_tenant_may_be_of_one_conversation(self, store: DocketStore) -> None:
        """DK-3: both halves of a scope are optional for a sweep."""
        for name, conversation in (("a", "c-1"), ("b", "c-2")):
            store.file(make_entry(name, conversation_id=conversation))
        assert ids(store.expire_due(DEADLINE, Scope(None, "c-2"), limit=9).entries) == ["b"]

    def test_a_sweep_keeps_everything_else_on_the_row(self, store: DocketStore) -> None:
        """AZ-5: a sweep writes the status and the instant, nothing more, and hands out no row that it keeps."""
        entry = rich_entry().model_copy(update={"expires_at": DEADLINE})
        store.file(entry)
        (moved,) = store.expire_due(DEADLINE + TTL, HERE, limit=1).entries
        expected = entry.model_copy(update={"status": ReviewStatus.EXPIRED, "decided_at": DEADLINE}, deep=True)
        assert moved == expected
        assert moved.presentation.prior_amendments is not None
        moved.presentation.prior_amendments["text"] = "forged"
        assert store.get(TENANT, "rich") == expected

    def test_a_large_sweep_is_one_call(self, store: DocketStore) -> None:
        """DK-3: a limit is the caller's choice, and no bound of a database on parameters shows through."""
        affidavit = make_affidavit()
        for number in range(120):
            store.file(make_entry(f"e-{number}", affidavit=affidavit))
        assert len(store.expire_due(DEADLINE, HERE, limit=1_000_000).entries) == 120
