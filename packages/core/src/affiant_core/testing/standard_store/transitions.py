"""How rows leave ``pending``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from affiant_core.docket.model import (
    Attestation,
    DecisionRecord,
    MemberAttestor,
    MultiPartyAttestor,
    RelayedAttestor,
    Requirement,
)
from affiant_core.docket.store import Applied, DocketStore, Transition, TransitionGuard
from affiant_core.provenance import RelayRef
from affiant_core.testing.store_world import (
    BLOCKED,
    DEADLINE,
    HERE,
    LEFT,
    MILLISECOND,
    T0,
    TENANT,
    TTL,
    approval,
    expiry,
    ids,
    make_approved_entry,
    make_entry,
    one_approval,
    rejection,
    rich_affidavit,
    rich_entry,
    row_of,
    stored,
    withdrawal,
)
from affiant_core.vocabulary import DecisionKind, ReviewRequirement, ReviewStatus


class TransitionTests:
    """A row leaves ``pending`` once, in one guarded write (DK-1)."""

    def test_a_decision_is_written_whole_and_in_one_go(self, store: DocketStore) -> None:
        """DK-1: approving writes status, attestation and decision together; what it does not name stays."""
        entry = rich_entry().model_copy(update={"blocked": None})
        store.file(entry)
        amended = rich_affidavit().amend({"text": "other"}, by="r-1", entry_id="rich", at=T0)
        change = approval("rich", amendments={"text": "other"}, amended_affidavit=amended)
        applied = store.transition(TENANT, "rich", change)
        assert applied == Applied(applied=True, entry=entry.model_copy(update=dict(change.changes)))
        assert store.get(TENANT, "rich") == applied.entry
        assert row_of(applied).accepted == amended
        assert row_of(applied).affidavit == entry.affidavit

    def test_nobody_changes_a_decided_row_by_what_they_hold(self, store: DocketStore) -> None:
        """AZ-5: a decision's amendments are the store's own, whether they were given, applied or refused."""
        store.file(make_entry())
        given = {"reason": "wedding"}
        applied = row_of(store.transition(TENANT, "e-1", approval(amendments=given)))
        refused = row_of(store.transition(TENANT, "e-1", rejection()))
        for held in (given, applied.amendments, refused.amendments):
            assert held is not None
            assert held == {"reason": "wedding"}
            held["reason"] = "forged"
        assert stored(store).amendments == {"reason": "wedding"}

    def test_a_decision_without_a_reason_keeps_its_null(self, store: DocketStore) -> None:
        """DK-1: what nobody said is kept as nothing said."""
        store.file(make_entry())
        store.transition(TENANT, "e-1", approval())
        expected = DecisionRecord(kind=DecisionKind.APPROVE, reason=None, at=T0, by="r-1")
        assert stored(store).decision == expected

    @pytest.mark.parametrize("act", [approval, rejection], ids=["approve", "reject"])
    def test_a_decision_needs_an_instant_before_the_deadline(
        self, store: DocketStore, act: Callable[..., Transition]
    ) -> None:
        """DK-1: the boundary is inclusive; one millisecond before it a decision holds, at it no more."""
        store.file(make_entry())
        for now in (DEADLINE, DEADLINE + MILLISECOND, DEADLINE + TTL):
            assert store.transition(TENANT, "e-1", act(now=now)) == Applied(applied=False, entry=make_entry())
        assert store.transition(TENANT, "e-1", act(now=DEADLINE - MILLISECOND)).applied

    def test_a_withdrawal_needs_an_instant_before_the_deadline(self, store: DocketStore) -> None:
        """DK-1, withdrawal: an expired row is not withdrawn; the boundary belongs to the deadline."""
        store.file(make_entry())
        assert not store.transition(TENANT, "e-1", withdrawal(DEADLINE)).applied
        applied = store.transition(TENANT, "e-1", withdrawal(DEADLINE - MILLISECOND))
        assert (applied.applied, row_of(applied).status) == (True, ReviewStatus.WITHDRAWN)
        assert (row_of(applied).attestation, row_of(applied).execution) == (None, None)

    def test_an_expiry_needs_an_instant_at_or_after_the_deadline(self, store: DocketStore) -> None:
        """DK-1: expired at the deadline and not before, decided at the deadline."""
        store.file(make_entry())
        assert not store.transition(TENANT, "e-1", expiry(now=DEADLINE - MILLISECOND)).applied
        applied = store.transition(TENANT, "e-1", expiry(now=DEADLINE))
        assert (row_of(applied).status, row_of(applied).decided_at) == (ReviewStatus.EXPIRED, DEADLINE)

    def test_a_guard_holds_once_the_store_may_write(self, store: DocketStore) -> None:
        """DK-1: a write that waited past the deadline comes too late; a clock behind the caller moves nothing back."""
        store.file(make_entry())
        for change in (approval(), rejection(), withdrawal()):
            waited = replace(change, clock=lambda: DEADLINE)
            assert not store.transition(TENANT, "e-1", waited).applied
        behind = replace(approval(now=DEADLINE), clock=lambda: T0)
        assert store.transition(TENANT, "e-1", behind) == Applied(applied=False, entry=make_entry())
        assert store.transition(TENANT, "e-1", replace(expiry(now=T0), clock=lambda: DEADLINE)).applied

    def test_a_blocked_row_takes_no_decision(self, store: DocketStore) -> None:
        """AZ-4, CV-4: every decision on a blocked row is refused."""
        store.file(make_entry(blocked=BLOCKED))
        for change in (approval(), rejection()):
            assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=make_entry(blocked=BLOCKED))

    def test_a_blocked_row_may_be_withdrawn(self, store: DocketStore) -> None:
        """DK-1: withdrawal is for any pending row, blocked included; the block stays on it."""
        store.file(make_entry(blocked=BLOCKED))
        applied = store.transition(TENANT, "e-1", withdrawal())
        assert (applied.applied, row_of(applied).blocked) == (True, BLOCKED)

    def test_a_blocked_row_expires(self, store: DocketStore) -> None:
        """DK-1: a block does not keep a row pending for ever."""
        store.file(make_entry(blocked=BLOCKED))
        store.file(make_entry("e-2", blocked=BLOCKED))
        assert store.transition(TENANT, "e-1", expiry()).applied
        assert ids(store.expire_due(DEADLINE, HERE, limit=5).entries) == ["e-2"]

    @pytest.mark.parametrize("left", LEFT)
    def test_a_row_leaves_pending_once(self, store: DocketStore, left: str) -> None:
        """DK-1: leaving ``pending`` is a compare-and-set; there is no other exit and no way back."""
        store.file(make_entry())
        stands = row_of(store.transition(TENANT, "e-1", LEFT[left]))
        assert stands.status.value == left
        for change in (approval(by="r-2"), rejection(by="r-2"), withdrawal(), expiry()):
            assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=stands)
        assert store.expire_due(DEADLINE, HERE, limit=5).entries == ()
        assert store.get(TENANT, "e-1") == stands

    def test_a_standing_orders_row_never_was_pending(self, store: DocketStore) -> None:
        """DK-1: approved as it was filed, so no transition applies to it."""
        store.file(make_approved_entry())
        for change in (approval(), rejection(), withdrawal(), expiry()):
            assert store.transition(TENANT, "e-1", change) == Applied(applied=False, entry=make_approved_entry())

    def test_a_transition_of_no_row_is_not_applied(self, store: DocketStore) -> None:
        """DK-1: a store guards rows; it makes none."""
        assert store.transition(TENANT, "e-1", approval()) == Applied(applied=False, entry=None)

    def test_one_approval_of_several_leaves_the_row_pending(self, store: DocketStore) -> None:
        """AZ-4: approvals are added one by one, each seen by the caller that adds the next."""
        requirement = Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("a", "b"), required=2)
        store.file(make_entry(requirement=requirement, approvals=()))
        first, second = one_approval("a"), one_approval("b")

        one = Transition(TransitionGuard.UNDECIDED, T0, {"approvals": (first,)}, expected_approvals=0)
        applied = store.transition(TENANT, "e-1", one)
        assert (applied.applied, row_of(applied).status, row_of(applied).approvals) == (
            True,
            ReviewStatus.PENDING,
            (first,),
        )
        assert not store.transition(TENANT, "e-1", one).applied, "it has not seen the approval that is there by now"

        by = MultiPartyAttestor(
            approvers=(
                MemberAttestor(id="a"),
                RelayedAttestor(member_id="b", relay=RelayRef(principal="bot", channel_identity="+1", message_id="m")),
            )
        )
        fold = approval(attestation=Attestation(by=by, at=T0, entry_id="e-1"), approvals=(first, second))
        fold = Transition(fold.guard, fold.now, fold.changes, expected_approvals=1)
        applied = store.transition(TENANT, "e-1", fold)
        assert (applied.applied, row_of(applied).approvals) == (True, (first, second))
        assert applied.entry == store.get(TENANT, "e-1")
        assert row_of(applied).attestation == Attestation(by=by, at=T0, entry_id="e-1")
