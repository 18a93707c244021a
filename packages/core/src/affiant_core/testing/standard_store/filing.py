"""How rows come into a store."""

from __future__ import annotations

from typing import Any

import pytest

from affiant_core.docket.model import Attestation, CoverageBlocked, DocketEntry, MemberAttestor
from affiant_core.docket.store import DocketStore, Listing
from affiant_core.testing.store_world import (
    ANY_MESSAGE,
    BLOCKED,
    HERE,
    T0,
    TENANT,
    listed,
    make_affidavit,
    make_approved_entry,
    make_entry,
    rejection,
    rich_affidavit,
    rich_entry,
    stored,
)
from affiant_core.vocabulary import CoverageCategory, ExecutionOutcome, ReviewStatus


class FilingTests:
    """Filing: the first write wins, and what is filed reads back."""

    def test_a_store_is_a_store_and_says_whether_it_waits(self, store: DocketStore) -> None:
        """DECISIONS 21: a store has every method of the contract, and says whether its calls wait for a disk."""
        assert isinstance(store, DocketStore)
        assert type(store.blocking) is bool

    @pytest.mark.parametrize(
        "entry",
        [
            make_entry(),
            make_approved_entry(),
            rich_entry(),
            make_entry(blocked=BLOCKED),
        ],
        ids=["pending", "approved by a Standing Order", "with everything", "blocked"],
    )
    def test_a_filed_row_reads_back_equal_member_by_member(self, store: DocketStore, entry: DocketEntry) -> None:
        """DK-1: the row keeps the proposal unedited."""
        filed = store.file(entry)
        assert filed.created
        for read in (filed.entry, stored(store, entry.entry_id)):
            for name in DocketEntry.model_fields:
                assert getattr(read, name) == getattr(entry, name), name
            assert read == entry
            assert read.to_json() == entry.to_json()
            assert read.canonical_hash == entry.canonical_hash

    def test_the_types_of_sworn_values_survive(self, store: DocketStore) -> None:
        """SR-1: ``3.0`` and ``3``, ``1`` and ``True`` are equal in Python, and different things to swear to."""
        store.file(rich_entry())
        read = stored(store, "rich").affidavit.values()
        for name, value in rich_affidavit().values().items():
            assert type(read[name]) is type(value), name
        assert repr(read) == repr(rich_affidavit().values())

    def test_the_first_write_wins(self, store: DocketStore) -> None:
        """DK-1: an existing id returns its row unchanged, and says that it was not created."""
        first = make_entry(affidavit=make_affidavit({"reason": "first"}))
        assert store.file(first).created
        again = store.file(make_entry(affidavit=make_affidavit({"reason": "second"}), conversation_id="c-2"))
        assert not again.created
        assert again.entry == store.get(TENANT, "e-1") == first
        assert listed(store, Listing.ALL) == ["e-1"]

    def test_filing_again_never_reopens_a_decided_row(self, store: DocketStore) -> None:
        """DK-1: nothing is reopened, and a replay returns the row as it is now."""
        store.file(make_entry())
        store.transition(TENANT, "e-1", rejection())
        again = store.file(make_entry())
        assert (again.created, again.entry.status) == (False, ReviewStatus.REJECTED)
        assert again.entry == store.get(TENANT, "e-1")

    @pytest.mark.parametrize(
        "members",
        [
            {"status": ReviewStatus.REJECTED},
            {"status": ReviewStatus.EXPIRED},
            {"status": ReviewStatus.APPROVED},
            {"execution": ExecutionOutcome.UNEXECUTED},
            {"attestation": Attestation(by=MemberAttestor(id="r-1"), at=T0, entry_id="e-1")},
        ],
        ids=["rejected", "expired", "approved by nobody", "executing", "attested and pending"],
    )
    def test_a_row_is_filed_pending_or_by_a_standing_order(self, store: DocketStore, members: dict[str, Any]) -> None:
        """DK-1: no other row may be filed."""
        entry = make_entry(**members)
        with pytest.raises(ValueError, match=ANY_MESSAGE):
            store.file(entry)
        assert store.get(TENANT, "e-1") is None

    def test_a_blocked_row_is_never_filed_approved(self, store: DocketStore) -> None:
        """CV-4: an uncovered tool keeps its verdict and gets no attestation."""
        blocked = CoverageBlocked(category=CoverageCategory.NO_EXECUTE, tool_name="t")
        entry = make_approved_entry(blocked=blocked)
        with pytest.raises(ValueError, match=ANY_MESSAGE):
            store.file(entry)
        assert store.get(TENANT, "e-1") is None

    def test_a_decision_record_may_be_absent(self, store: DocketStore) -> None:
        """DK-1: a Standing Order leaves an attestation and no decision."""
        store.file(make_approved_entry())
        assert stored(store).decision is None
        assert stored(store).attestation == make_approved_entry().attestation

    def test_nobody_changes_a_stored_row_by_what_they_hold(self, store: DocketStore) -> None:
        """AZ-5: rows change by a store's writes alone, not by what a caller does to what it filed or has read."""
        entry = rich_entry()
        handed_out = [entry, store.file(entry).entry, stored(store, "rich"), store.file(rich_entry()).entry]
        handed_out += store.page(Listing.ALL, HERE, limit=1, cursor=None, now=T0).entries
        for row in handed_out:
            assert row.presentation.prior_amendments is not None
            row.presentation.prior_amendments["text"] = "forged"
        assert stored(store, "rich") == rich_entry()

    def test_closing_is_for_good_and_may_be_repeated(self, store: DocketStore) -> None:
        """The contract: closing releases what is held open, however often it is called."""
        store.file(make_entry())
        store.close()
        store.close()
