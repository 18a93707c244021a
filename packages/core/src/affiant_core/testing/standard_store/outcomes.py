"""What is recorded after a row was decided or has expired."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from affiant_core.docket.model import Lineage
from affiant_core.docket.store import Applied, DocketStore
from affiant_core.errors import ValueRefused
from affiant_core.testing.store_world import (
    DEADLINE,
    HERE,
    LEFT,
    MILLISECOND,
    T0,
    TENANT,
    TTL,
    approval,
    late_amendments,
    make_approved_entry,
    make_entry,
    rejection,
    row_of,
    stored,
)
from affiant_core.values import Money
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus


class OutcomeTests:
    """Executions, late amendments and successors are each recorded once (DK-1, AZ-5)."""

    def test_an_execution_is_reported_once(self, store: DocketStore) -> None:
        """DK-1: the second report changes nothing."""
        store.file(make_entry())
        approved = row_of(store.transition(TENANT, "e-1", approval()))
        applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.FAILED, {"code": "TIMEOUT", "tries": 2})
        detail = {"code": "TIMEOUT", "tries": 2}
        expected = approved.model_copy(update={"execution": ExecutionOutcome.FAILED, "execution_detail": detail})
        assert applied == Applied(applied=True, entry=expected)
        again = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None)
        assert again == Applied(applied=False, entry=expected)

    def test_only_an_approved_row_is_executed(self, store: DocketStore) -> None:
        """DK-1, AZ-5: no execution without an approval."""
        for name, change in LEFT.items():
            store.file(make_entry(name))
            store.transition(TENANT, name, change)
            applied = store.record_execution(TENANT, name, ExecutionOutcome.EXECUTED, None)
            assert applied.applied is (name == "approved"), name
        store.file(make_entry("muddled"))
        muddled = rejection("muddled")
        changes = {**muddled.changes, "execution": ExecutionOutcome.UNEXECUTED}
        assert store.transition(TENANT, "muddled", replace(muddled, changes=changes)).applied
        assert not store.record_execution(TENANT, "muddled", ExecutionOutcome.EXECUTED, None).applied
        store.file(make_entry("pending"))
        assert not store.record_execution(TENANT, "pending", ExecutionOutcome.EXECUTED, None).applied

    def test_an_approved_row_is_executed_at_any_time(self, store: DocketStore) -> None:
        """DK-1: the deadline is the decision's, not the execution's."""
        store.file(make_approved_entry(filed_at=T0 - timedelta(days=400)))
        assert store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None).applied

    def test_an_approval_that_nobody_attests_is_never_executed(self, store: DocketStore) -> None:
        """AZ-5: no executor without an attested row."""
        store.file(make_entry())
        store.transition(TENANT, "e-1", approval(attestation=None))
        applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, None)
        assert (applied.applied, row_of(applied).execution) == (False, ExecutionOutcome.UNEXECUTED)

    def test_an_execution_detail_is_json(self, store: DocketStore) -> None:
        """DECISIONS 20: what has no honest spelling is refused before anything is written."""
        store.file(make_approved_entry())
        with pytest.raises(ValueRefused, match="execution_detail"):
            store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"bytes": b"\0"})
        assert store.get(TENANT, "e-1") == make_approved_entry()
        applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.EXECUTED, {"amount": Money("1.50", "EUR")})
        assert row_of(applied).execution_detail == {"amount": {"amount": "1.50", "currency": "EUR"}}

    def test_nobody_changes_a_stored_detail_by_what_they_hold(self, store: DocketStore) -> None:
        """AZ-5: rows change by a store's writes alone, not by what a caller does to what it gave or was given."""
        store.file(make_approved_entry())
        given: dict[str, Any] = {"tries": [1]}
        applied = store.record_execution(TENANT, "e-1", ExecutionOutcome.FAILED, given)
        for held in (given, row_of(applied).execution_detail, stored(store).execution_detail):
            assert held is not None
            assert held == {"tries": [1]}
            held["tries"].append(2)
        assert stored(store).execution_detail == {"tries": [1]}

    def test_late_amendments_are_kept_once(self, store: DocketStore) -> None:
        """DK-1: the first late decision's amendments stay; nothing else on the row changes, its status included."""
        store.file(make_entry())
        first = late_amendments()
        kept = make_entry().model_copy(update={"preserved_amendments": first})
        assert store.preserve_amendments(TENANT, "e-1", first, DEADLINE) == Applied(applied=True, entry=kept)
        other = late_amendments(reason="other")
        assert store.preserve_amendments(TENANT, "e-1", other, DEADLINE) == Applied(applied=False, entry=kept)
        assert store.get(TENANT, "e-1") == kept

    def test_amendments_are_kept_on_a_row_that_reads_expired(self, store: DocketStore) -> None:
        """DK-1: only a decision that came too late is preserved; a swept row takes it too, a decided row does not."""
        for name, change in LEFT.items():
            store.file(make_entry(name))
            store.transition(TENANT, name, change)
            applied = store.preserve_amendments(TENANT, name, late_amendments(), DEADLINE)
            assert applied.applied is (name == "expired"), name
        store.file(make_entry("pending"))
        early = DEADLINE - MILLISECOND
        assert not store.preserve_amendments(TENANT, "pending", late_amendments(early), early).applied
        assert store.preserve_amendments(TENANT, "pending", late_amendments(), DEADLINE).applied

    def test_a_successor_is_recorded_once(self, store: DocketStore) -> None:
        """DK-1: a second, different successor changes nothing and returns the row."""
        store.file(make_entry(lineage=Lineage(supersedes="e-0")))
        applied = store.record_supersession(TENANT, "e-1", "e-2", DEADLINE)
        assert applied.applied
        assert row_of(applied).lineage == Lineage(supersedes="e-0", superseded_by="e-2")
        again = store.record_supersession(TENANT, "e-1", "e-3", DEADLINE)
        assert again == Applied(applied=False, entry=applied.entry)

    def test_a_supersession_persists_the_expiry(self, store: DocketStore) -> None:
        """DK-1: the row is expired for good from then on, decided at its deadline."""
        store.file(make_entry())
        entry = row_of(store.record_supersession(TENANT, "e-1", "e-2", DEADLINE + TTL))
        assert (entry.status, entry.decided_at) == (ReviewStatus.EXPIRED, DEADLINE)
        assert store.get(TENANT, "e-1") == entry
        store.file(make_entry("swept"))
        store.expire_due(DEADLINE, HERE, limit=5)
        again = store.record_supersession(TENANT, "swept", "e-3", DEADLINE + TTL)
        assert row_of(again).decided_at == DEADLINE

    def test_only_an_expired_row_is_superseded(self, store: DocketStore) -> None:
        """DK-1: resubmission is from ``expired`` alone."""
        for name, change in LEFT.items():
            store.file(make_entry(name))
            stands = row_of(store.transition(TENANT, name, change))
            applied = store.record_supersession(TENANT, name, "e-9", DEADLINE)
            assert applied.applied is (name == "expired"), name
            if not applied.applied:
                assert applied.entry == stands
        store.file(make_entry("pending"))
        early = store.record_supersession(TENANT, "pending", "e-9", DEADLINE - MILLISECOND)
        assert early == Applied(applied=False, entry=make_entry("pending"))
