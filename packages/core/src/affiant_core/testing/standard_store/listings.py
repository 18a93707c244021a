"""Listings, their pages and their cursors."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from affiant_core.docket.store import DocketStore, Listing, Scope
from affiant_core.errors import CursorInvalid
from affiant_core.testing.store_world import (
    CONVERSATION,
    DEADLINE,
    HERE,
    MILLISECOND,
    T0,
    TENANT,
    approval,
    file_many,
    ids,
    listed,
    make_approved_entry,
    make_entry,
    rejection,
    withdrawal,
)
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus


def encoded(text: str) -> str:
    """Some text as a cursor might hold it."""
    return urlsafe_b64encode(text.encode()).decode()


class ListingTests:
    """Listings show rows as they read, page by page (DK-3, DK-5)."""

    def test_a_row_reads_expired_from_its_deadline_on(self, store: DocketStore) -> None:
        """DK-1, DK-5: expiry is a read state, swept or not; a row that reads expired is never offered as pending."""
        store.file(make_entry())
        assert listed(store, Listing.PENDING, now=DEADLINE - MILLISECOND) == ["e-1"]
        assert listed(store, Listing.PENDING, now=DEADLINE) == []
        (row,) = store.page(Listing.ALL, HERE, limit=5, cursor=None, now=DEADLINE).entries
        assert (row.status, row.decided_at) == (ReviewStatus.EXPIRED, DEADLINE)
        assert store.get(TENANT, "e-1") == make_entry(), "reading writes nothing"

    def test_each_listing_holds_its_rows_and_no_others(self, store: DocketStore) -> None:
        """DK-5: pending rows, approved rows that nobody has executed, and all of them; each in filing order."""
        for name in ("z", "y", "x", "w", "v", "u"):
            store.file(make_entry(name))
        store.file(make_approved_entry("t"))
        store.transition(TENANT, "z", rejection())
        store.transition(TENANT, "y", approval())
        store.transition(TENANT, "w", withdrawal())
        store.transition(TENANT, "v", approval())
        store.record_execution(TENANT, "v", ExecutionOutcome.EXECUTED, None)
        assert listed(store, Listing.PENDING) == ["x", "u"]
        assert listed(store, Listing.APPROVED_UNEXECUTED) == ["y", "t"]
        assert listed(store, Listing.ALL) == ["z", "y", "x", "w", "v", "u", "t"]

    @pytest.mark.parametrize("listing", list(Listing))
    def test_a_listing_may_be_of_one_conversation(self, store: DocketStore, listing: Listing) -> None:
        """DK-3: a scope is a tenant, optionally one conversation."""
        make = make_approved_entry if listing is Listing.APPROVED_UNEXECUTED else make_entry
        for number in range(6):
            store.file(make(f"e-{number}", conversation_id=f"c-{number % 2}", tenant_id=("acme", "other")[number // 4]))
        assert listed(store, listing, limit=1) == ["e-0", "e-1", "e-2", "e-3"]
        assert listed(store, listing, Scope(TENANT, "c-1"), limit=1) == ["e-1", "e-3"]
        assert listed(store, listing, Scope("other", "c-1"), limit=1) == ["e-5"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 2**40])
    def test_pages_follow_each_other_without_gap_or_repetition(self, store: DocketStore, limit: int) -> None:
        """DK-3: all lists are paged; the last page has no cursor, even when it is full."""
        names = file_many(store, 6)
        for listing in (Listing.ALL, Listing.PENDING):
            assert listed(store, listing, limit=limit) == names
        assert store.page(Listing.ALL, HERE, limit=6, cursor=None, now=T0).next_cursor is None

    def test_a_cursor_stays_good_while_rows_come_and_go(self, store: DocketStore) -> None:
        """DK-3: rows that are filed meanwhile come at the end, rows that left are not missed by others."""
        file_many(store, 4)
        first = store.page(Listing.PENDING, HERE, limit=2, cursor=None, now=T0)
        assert ids(first.entries) == ["e-00", "e-01"]
        store.file(make_entry("new"))
        store.transition(TENANT, "e-01", rejection())
        store.transition(TENANT, "e-02", rejection())
        second = store.page(Listing.PENDING, HERE, limit=2, cursor=first.next_cursor, now=T0)
        assert (ids(second.entries), second.next_cursor) == (["e-03", "new"], None)
        again = store.page(Listing.PENDING, HERE, limit=2, cursor=first.next_cursor, now=T0)
        assert again == second, "a cursor is good more than once"

    def test_a_cursor_belongs_to_one_listing_and_one_scope(self, store: DocketStore) -> None:
        """DK-3: the cursor of another listing, tenant or conversation is an error, and never another page."""
        file_many(store, 3)
        cursor = store.page(Listing.ALL, HERE, limit=1, cursor=None, now=T0).next_cursor
        assert cursor is not None
        for listing, scope in (
            (Listing.PENDING, HERE),
            (Listing.APPROVED_UNEXECUTED, HERE),
            (Listing.ALL, Scope("other")),
            (Listing.ALL, Scope(TENANT, CONVERSATION)),
        ):
            with pytest.raises(CursorInvalid):
                store.page(listing, scope, limit=1, cursor=cursor, now=T0)

    @pytest.mark.parametrize(
        "cursor",
        [
            "",
            "garbage",
            "Ω",
            "\ud800",
            encoded("null"),
            encoded("{}"),
            encoded('["all","acme",null]'),
            encoded('["all","acme",null,1,2]'),
            encoded('["all","acme",null,true]'),
            encoded('["all","acme",null,1.0]'),
            encoded('["all","acme",null,"1"]'),
            encoded('["all","acme",null,-1]'),
            encoded('["all","acme",null,1e999]'),
            encoded('["all","acme",null,9223372036854775808]'),
            encoded('["all","acme",null,' + "9" * 5000 + "]"),
            encoded("[" * 100000),
            urlsafe_b64encode(b"\xff\xfe").decode(),
        ],
        ids=range(17),
    )
    def test_a_cursor_that_cannot_be_read_is_an_error(self, store: DocketStore, cursor: str) -> None:
        """DK-3: an unreadable cursor is an error, and never the first page."""
        store.file(make_entry())
        with pytest.raises(CursorInvalid):
            store.page(Listing.ALL, HERE, limit=1, cursor=cursor, now=T0)

    def test_a_cursor_whose_rows_have_left_is_an_empty_page(self, store: DocketStore) -> None:
        """DK-3: a cursor says where to go on, whether or not a row is still there."""
        file_many(store, 2)
        cursor = store.page(Listing.PENDING, HERE, limit=1, cursor=None, now=T0).next_cursor
        assert cursor is not None
        store.transition(TENANT, "e-01", rejection())
        page = store.page(Listing.PENDING, HERE, limit=1, cursor=cursor, now=T0)
        assert (page.entries, page.next_cursor) == ((), None)

    @pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1", None], ids=repr)
    def test_a_limit_is_a_whole_number_of_at_least_one(self, store: DocketStore, limit: Any) -> None:
        """DK-3: nothing is ever listed or swept without a limit."""
        with pytest.raises(ValueError, match="limit"):
            store.page(Listing.ALL, HERE, limit=limit, cursor=None, now=T0)
        with pytest.raises(ValueError, match="limit"):
            store.expire_due(T0, HERE, limit=limit)
