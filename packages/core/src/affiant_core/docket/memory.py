"""The Docket in memory: for tests, examples and hosts that keep no record. It is gone with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from affiant_core.docket.model import DocketEntry, Lineage, PreservedAmendments
from affiant_core.docket.store import (
    Applied,
    Filed,
    Listing,
    Page,
    Scope,
    Sweep,
    Transition,
    TransitionGuard,
    read_cursor,
    require_fileable,
    require_limit,
    require_tenant,
    write_cursor,
)
from affiant_core.values import spell
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus


class InMemoryDocketStore:
    """Rows in a dictionary under one lock. Keeps the whole store contract except durability.

    What is filed is copied in and what is read is copied out, so that no caller can change a stored row.
    """

    blocking = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[tuple[str, str], DocketEntry] = {}
        self._positions: list[tuple[str, str]] = []

    def file(self, entry: DocketEntry) -> Filed:
        require_fileable(entry)
        key = (entry.tenant_id, entry.entry_id)
        with self._lock:
            existing = self._rows.get(key)
            if existing is not None:
                return Filed(existing.detached(), created=False)
            self._rows[key] = entry.detached()
            self._positions.append(key)
            return Filed(entry, created=True)

    def get(self, tenant_id: str, entry_id: str) -> DocketEntry | None:
        with self._lock:
            row = self._rows.get((tenant_id, entry_id))
        return None if row is None else row.detached()

    def belongs_elsewhere(self, tenant_id: str, entry_id: str) -> bool:
        with self._lock:
            return any(entry == entry_id and tenant != tenant_id for tenant, entry in self._rows)

    def transition(self, tenant_id: str, entry_id: str, change: Transition) -> Applied:
        return self._change(tenant_id, entry_id, lambda row: holds(change, row), change.changes)

    def preserve_amendments(
        self, tenant_id: str, entry_id: str, preserved: PreservedAmendments, now: datetime
    ) -> Applied:
        return self._change(
            tenant_id,
            entry_id,
            lambda row: row.as_read(now).status is ReviewStatus.EXPIRED and row.preserved_amendments is None,
            {"preserved_amendments": preserved},
        )

    def record_execution(
        self, tenant_id: str, entry_id: str, outcome: ExecutionOutcome, detail: Mapping[str, Any] | None
    ) -> Applied:
        spelled = None if detail is None else spell(detail, "execution_detail")
        return self._change(
            tenant_id,
            entry_id,
            lambda row: (
                row.status is ReviewStatus.APPROVED
                and row.attestation is not None
                and row.execution is ExecutionOutcome.UNEXECUTED
            ),
            {"execution": outcome, "execution_detail": spelled},
        )

    def record_supersession(self, tenant_id: str, entry_id: str, superseded_by: str, now: datetime) -> Applied:
        with self._lock:
            row = self._rows.get((tenant_id, entry_id))
            if row is None:
                return Applied(applied=False, entry=None)
            read = row.as_read(now)
            if read.status is not ReviewStatus.EXPIRED or row.lineage.superseded_by is not None:
                return Applied(applied=False, entry=row.detached())
            lineage = Lineage(supersedes=row.lineage.supersedes, superseded_by=superseded_by)
            changed = read.model_copy(update={"lineage": lineage})
            self._rows[(tenant_id, entry_id)] = changed
            return Applied(applied=True, entry=changed.detached())

    def page(self, listing: Listing, scope: Scope, *, limit: int, cursor: str | None, now: datetime) -> Page:
        require_limit(limit)
        require_tenant(scope)
        start = read_cursor(cursor, listing, scope) + 1
        found: list[DocketEntry] = []
        last = start
        with self._lock:
            for position in range(start, len(self._positions)):
                row = self._rows[self._positions[position]].as_read(now)
                if not (_in_scope(row, scope) and _listed(row, listing)):
                    continue
                if len(found) == limit:
                    return Page(tuple(found), write_cursor(listing, scope, last))
                found.append(row.detached())
                last = position
        return Page(tuple(found), None)

    def expire_due(self, now: datetime, scope: Scope, *, limit: int) -> Sweep:
        require_limit(limit)
        with self._lock:
            due = [
                row
                for key in self._positions
                if _in_scope(row := self._rows[key], scope)
                and row.status is ReviewStatus.PENDING
                and row.has_reached_deadline(now)
            ]
            due.sort(key=lambda row: row.expires_at)
            moved = [row.as_read(now) for row in due[:limit]]
            for row in moved:
                self._rows[(row.tenant_id, row.entry_id)] = row
        return Sweep(tuple(row.detached() for row in moved), more=len(due) > limit)

    def close(self) -> None:
        """Nothing is held open."""

    def _change(
        self, tenant_id: str, entry_id: str, guard: Callable[[DocketEntry], bool], changes: Mapping[str, Any]
    ) -> Applied:
        with self._lock:
            row = self._rows.get((tenant_id, entry_id))
            if row is None or not guard(row):
                return Applied(applied=False, entry=None if row is None else row.detached())
            changed = row.model_copy(update=dict(changes)).detached()
            self._rows[(tenant_id, entry_id)] = changed
            return Applied(applied=True, entry=changed.detached())


def holds(change: Transition, row: DocketEntry) -> bool:
    """Whether a transition's guard holds for ``row`` as stored."""
    if row.status is not ReviewStatus.PENDING:
        return False
    if change.expected_approvals is not None and len(row.approvals or ()) != change.expected_approvals:
        return False
    due = row.has_reached_deadline(change.instant())
    match change.guard:
        case TransitionGuard.UNDECIDED:
            return not due and row.blocked is None
        case TransitionGuard.OPEN:
            return not due
        case TransitionGuard.DUE:
            return due


def _in_scope(row: DocketEntry, scope: Scope) -> bool:
    return scope.tenant_id in (None, row.tenant_id) and scope.conversation_id in (None, row.conversation_id)


def _listed(row: DocketEntry, listing: Listing) -> bool:
    match listing:
        case Listing.PENDING:
            return row.status is ReviewStatus.PENDING
        case Listing.APPROVED_UNEXECUTED:
            return row.status is ReviewStatus.APPROVED and row.execution is ExecutionOutcome.UNEXECUTED
        case Listing.ALL:
            return True
