"""What belongs to one tenant stays with it."""

from __future__ import annotations

import pytest

from affiant_core.docket.model import Lineage
from affiant_core.docket.store import Applied, DocketStore, Listing, Scope
from affiant_core.testing.store_world import (
    ANY_MESSAGE,
    CONVERSATION,
    DEADLINE,
    T0,
    TENANT,
    approval,
    expiry,
    ids,
    late_amendments,
    listed,
    make_approved_entry,
    make_entry,
    rejection,
    stored,
    withdrawal,
)
from affiant_core.vocabulary import ExecutionOutcome


class TenantTests:
    """No call sees or changes a row of another tenant (AZ-2)."""

    def test_no_call_reaches_another_tenants_row(self, store: DocketStore) -> None:
        """AZ-2: another tenant's row looks exactly like no row, whatever the act."""
        store.file(make_entry())
        store.file(make_approved_entry("e-2"))
        nothing = Applied(applied=False, entry=None)
        late = DEADLINE
        assert store.get("other", "e-1") is None
        assert store.transition("other", "e-1", approval()) == nothing
        assert store.transition("other", "e-1", withdrawal()) == nothing
        assert store.transition("other", "e-1", expiry()) == nothing
        assert store.preserve_amendments("other", "e-1", late_amendments(), late) == nothing
        assert store.record_supersession("other", "e-1", "e-9", late) == nothing
        assert store.record_execution("other", "e-2", ExecutionOutcome.EXECUTED, None) == nothing
        for listing in Listing:
            assert listed(store, listing, Scope("other")) == []
            assert listed(store, listing, Scope("other", CONVERSATION)) == []
        assert store.expire_due(late, Scope("other"), limit=10).entries == ()
        assert store.get(TENANT, "e-1") == make_entry()
        assert store.get(TENANT, "e-2") == make_approved_entry("e-2")

    def test_two_tenants_may_use_one_id(self, store: DocketStore) -> None:
        """DK-1: ids are unique within a tenant, and every act changes its own tenant's row only."""
        assert store.file(make_entry()).created
        assert store.file(make_entry(tenant_id="other")).created
        assert store.transition("other", "e-1", rejection()).applied
        assert store.get(TENANT, "e-1") == make_entry()
        store.record_supersession(TENANT, "e-1", "e-9", DEADLINE)
        assert stored(store, tenant_id="other").lineage == Lineage()

    def test_the_host_may_ask_whether_an_id_belongs_elsewhere(self, store: DocketStore) -> None:
        """AZ-2: the framework compares tenants itself, and may say so to the host's telemetry."""
        store.file(make_entry())
        assert store.belongs_elsewhere("other", "e-1")
        assert not store.belongs_elsewhere(TENANT, "e-1")
        assert not store.belongs_elsewhere("other", "e-2")
        assert store.belongs_elsewhere("\ud800", "e-1")

    def test_a_listing_names_a_tenant(self, store: DocketStore) -> None:
        """DK-3: only the sweep may cover every tenant."""
        for listing in Listing:
            with pytest.raises(ValueError, match=ANY_MESSAGE):
                store.page(listing, Scope(None), limit=1, cursor=None, now=T0)

    @pytest.mark.parametrize(
        "odd",
        ["E-1", "e-1 ", " e-1", "e-1\0", "é", "' OR '1'='1", "%", "e_1", "\ud800", "", "e-1" * 10000],
        ids=lambda odd: ascii(odd[:20]),
    )
    def test_an_id_matches_itself_alone(self, store: DocketStore, odd: str) -> None:
        """AZ-2: ids are compared as they are: no case folding, no trimming, no pattern, no normal form."""
        store.file(make_entry())
        store.file(make_entry("e\u0301"))
        for tenant, entry_id in ((TENANT, odd), (odd, "e-1")):
            assert store.get(tenant, entry_id) is None
            assert store.transition(tenant, entry_id, withdrawal()) == Applied(applied=False, entry=None)
        assert listed(store, Listing.ALL, Scope(odd)) == []
        assert listed(store, Listing.ALL, Scope(TENANT, odd)) == []
        assert store.expire_due(DEADLINE, Scope(odd), limit=10).entries == ()
        assert store.expire_due(DEADLINE, Scope(TENANT, odd), limit=10).entries == ()

    def test_odd_ids_can_be_filed(self, store: DocketStore) -> None:
        """DK-1: any text that has a UTF-8 form is an id."""
        for odd in ("e-1\0", "e'1", "Ω 😀", "x" * 5000, "a\nb"):
            assert store.file(make_entry(odd, tenant_id=odd, conversation_id=odd)).created
            assert store.get(odd, odd) == make_entry(odd, tenant_id=odd, conversation_id=odd)
            page = store.page(Listing.PENDING, Scope(odd, odd), limit=1, cursor=None, now=T0)
            assert ids(page.entries) == [odd]
