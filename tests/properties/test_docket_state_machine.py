"""Random acts on every kind of store and on a model of the rules: all of them must agree, whatever the order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from affiant_core.docket import DocketStore, InMemoryDocketStore, Listing, Scope
from affiant_core.docket.model import RequirementNotImplemented
from affiant_core.docket.sql import SqlDocketStore
from affiant_core.docket.store import Transition, TransitionGuard
from affiant_core.vocabulary import ExecutionOutcome, ReviewRequirement
from tests.support.docket import (
    MILLISECOND,
    Clock,
    approval,
    expiry,
    late_amendments,
    make_affidavit,
    make_approved_entry,
    make_entry,
    rejection,
    withdrawal,
)

TENANTS = ("acme", "other")
CONVERSATIONS = ("c-1", "c-2")
NAMES = ("e-1", "e-2", "e-3", "e-4")
BLOCKED = RequirementNotImplemented(level=ReviewRequirement.REFERRAL_REQUIRED)
AFFIDAVIT = make_affidavit({"amount": 1.0, "lines": [{"a": None}]})

tenants = st.sampled_from(TENANTS)
names = st.sampled_from(NAMES)
conversations = st.sampled_from(CONVERSATIONS)
kinds = st.sampled_from(["pending", "blocked", "standing"])
listings = st.sampled_from(list(Listing))
limits = st.integers(1, 4)


@dataclass
class Row:
    """What the rules say about one row, and no more."""

    name: str
    tenant: str
    conversation: str
    deadline: datetime
    status: str
    execution: str | None
    blocked: bool
    preserved: bool = False
    superseded: bool = False

    def due(self, now: datetime) -> bool:
        return self.status == "pending" and now >= self.deadline

    def reads(self, now: datetime) -> str:
        return "expired" if self.due(now) else self.status


class Stores(RuleBasedStateMachine):
    """The store in memory, a store in a file, and the model; one clock."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        file = SqlDocketStore.open(f"sqlite:///{Path(self.folder.name) / 'docket.db'}", synchronous="NORMAL")
        self.stores: tuple[DocketStore, ...] = (InMemoryDocketStore(), file)
        self.model: list[Row] = []
        self.clock = Clock()

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    def both(self, act: Callable[[DocketStore], Any]) -> Any:
        """The one result of an act on every store."""
        first, second = (act(store) for store in self.stores)
        assert first == second
        return first

    def row(self, tenant: str, name: str) -> Row | None:
        return next((row for row in self.model if (row.tenant, row.name) == (tenant, name)), None)

    def scoped(self, scope: Scope) -> list[Row]:
        return [
            row
            for row in self.model
            if scope.tenant_id in (None, row.tenant) and scope.conversation_id in (None, row.conversation)
        ]

    # --- acts

    @initialize()
    def begin(self) -> None:
        self.file("acme", "e-1", "c-1", 1, "pending")
        self.file("acme", "e-2", "c-2", 2, "blocked")

    @rule(tenant=tenants, name=names, conversation=conversations, minutes=st.integers(0, 3), kind=kinds)
    def file(self, tenant: str, name: str, conversation: str, minutes: int, kind: str) -> None:
        deadline = self.clock.now + timedelta(minutes=minutes)
        make = make_approved_entry if kind == "standing" else make_entry
        entry = make(
            name,
            tenant_id=tenant,
            conversation_id=conversation,
            filed_at=self.clock.now,
            expires_at=deadline,
            affidavit=AFFIDAVIT,
            blocked=BLOCKED if kind == "blocked" else None,
        )
        created = self.both(lambda store: store.file(entry)).created
        assert created is (self.row(tenant, name) is None)
        if created:
            status, execution = ("approved", "unexecuted") if kind == "standing" else ("pending", None)
            self.model.append(Row(name, tenant, conversation, deadline, status, execution, kind == "blocked"))

    @rule(tenant=tenants, name=names, kind=st.sampled_from(["approved", "rejected", "withdrawn", "expired"]))
    def leave_pending(self, tenant: str, name: str, kind: str) -> None:
        now, row = self.clock.now, self.row(tenant, name)
        change = {
            "approved": lambda: approval(name, now, amendments={"amount": None}),
            "rejected": lambda: rejection(name, now),
            "withdrawn": lambda: withdrawal(now),
            "expired": lambda: expiry(row.deadline if row else now, now),
        }[kind]()
        applied = self.both(lambda store: store.transition(tenant, name, change)).applied
        free = row is not None and row.status == "pending"
        assert applied is (
            free and row.due(now) is (kind == "expired") and not (row.blocked and kind in {"approved", "rejected"})
        )
        if applied:
            row.status, row.execution = kind, "unexecuted" if kind == "approved" else None

    @rule(tenant=tenants, name=names, seen=st.sampled_from([None, 0, 1]))
    def leave_pending_having_seen(self, tenant: str, name: str, seen: int | None) -> None:
        now, row = self.clock.now, self.row(tenant, name)
        changes = rejection(name, now).changes
        change = Transition(TransitionGuard.UNDECIDED, now, changes, expected_approvals=seen)
        applied = self.both(lambda store: store.transition(tenant, name, change)).applied
        assert applied is (row is not None and row.reads(now) == "pending" and not row.blocked and seen in {None, 0})
        if applied:
            row.status = "rejected"

    @rule(tenant=tenants, name=names, outcome=st.sampled_from([ExecutionOutcome.EXECUTED, ExecutionOutcome.FAILED]))
    def report(self, tenant: str, name: str, outcome: ExecutionOutcome) -> None:
        row = self.row(tenant, name)
        applied = self.both(lambda store: store.record_execution(tenant, name, outcome, {"code": "X"})).applied
        assert applied is (row is not None and (row.status, row.execution) == ("approved", "unexecuted"))
        if applied:
            row.execution = outcome.value

    @rule(tenant=tenants, name=names, by=st.sampled_from(["r-1", "r-2"]))
    def preserve(self, tenant: str, name: str, by: str) -> None:
        now, row = self.clock.now, self.row(tenant, name)
        preserved = late_amendments(now, by)
        applied = self.both(lambda store: store.preserve_amendments(tenant, name, preserved, now)).applied
        assert applied is (row is not None and row.reads(now) == "expired" and not row.preserved)
        if applied:
            row.preserved = True

    @rule(tenant=tenants, name=names, successor=st.sampled_from(["s-1", "s-2"]))
    def supersede(self, tenant: str, name: str, successor: str) -> None:
        now, row = self.clock.now, self.row(tenant, name)
        applied = self.both(lambda store: store.record_supersession(tenant, name, successor, now)).applied
        assert applied is (row is not None and row.reads(now) == "expired" and not row.superseded)
        if applied:
            row.superseded, row.status = True, "expired"

    @rule(tenant=st.none() | tenants, conversation=st.none() | conversations, limit=limits)
    def sweep(self, tenant: str | None, conversation: str | None, limit: int) -> None:
        now, scope = self.clock.now, Scope(tenant, conversation)
        due = sorted((row for row in self.scoped(scope) if row.due(now)), key=lambda row: row.deadline)
        swept = self.both(lambda store: store.expire_due(now, scope, limit=limit))
        assert [(entry.tenant_id, entry.entry_id) for entry in swept.entries] == [
            (row.tenant, row.name) for row in due[:limit]
        ]
        assert swept.more is (len(due) > limit)
        for row in due[:limit]:
            row.status = "expired"

    @rule(listing=listings, tenant=tenants, conversation=st.none() | conversations, limit=limits)
    def read_all_pages(self, listing: Listing, tenant: str, conversation: str | None, limit: int) -> None:
        now, scope = self.clock.now, Scope(tenant, conversation)
        wanted = [
            row.name
            for row in self.scoped(scope)
            if listing is Listing.ALL
            or (listing is Listing.PENDING and row.reads(now) == "pending")
            or (listing is Listing.APPROVED_UNEXECUTED and row.execution == "unexecuted")
        ]
        entries = self.both(lambda store: _all_pages(store, listing, scope, limit, now))
        assert [entry.entry_id for entry in entries] == wanted

    @rule(by=st.sampled_from([MILLISECOND, timedelta(seconds=30), timedelta(minutes=1)]))
    def wait(self, by: timedelta) -> None:
        self.clock.move(by)

    @rule(index=st.integers(0, 20), before=st.booleans())
    def wait_for_a_deadline(self, index: int, before: bool) -> None:
        """To the very deadline of some row, or to the last millisecond before it."""
        coming = sorted(row.deadline for row in self.model if row.deadline > self.clock.now)
        with suppress(IndexError):
            self.clock.now = max(self.clock.now, coming[index % 3] - before * MILLISECOND)

    # --- always

    @invariant()
    def every_row_is_what_the_rules_say(self) -> None:
        now = self.clock.now
        for tenant in TENANTS:
            for name in NAMES:
                entry = self.both(lambda store, key=(tenant, name): store.get(*key))
                row = self.row(tenant, name)
                assert (entry is None) is (row is None)
                if row is None:
                    continue
                assert entry.status.value == row.status
                assert entry.as_read(now).status.value == row.reads(now)
                assert (None if entry.execution is None else entry.execution.value) == row.execution
                assert (entry.preserved_amendments is not None) is row.preserved
                assert (entry.lineage.superseded_by is not None) is row.superseded
                assert (entry.decided_at is None) is (row.status == "pending")
                assert entry.affidavit == AFFIDAVIT


def _all_pages(store: DocketStore, listing: Listing, scope: Scope, limit: int, now: datetime) -> list[Any]:
    entries: list[Any] = []
    cursor = None
    while True:
        page = store.page(listing, scope, limit=limit, cursor=cursor, now=now)
        entries += page.entries
        cursor = page.next_cursor
        if cursor is None:
            return entries
        assert len(page.entries) == limit


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,  # a machine that is busy is no fault
    suppress_health_check=[HealthCheck.too_slow],
)
