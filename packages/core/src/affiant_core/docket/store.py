"""What a Docket store must do. One contract; the gate alone calls it (REFERENCE 12; DECISIONS 21).

A store keeps rows and guards their transitions. It decides nothing. Every call names a tenant; only the sweep may name
none. Methods are plain and safe to call from several threads at once; a store whose calls wait for a disk or a network
says so in ``blocking``, and asynchronous callers then reach it through a worker thread.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from affiant_core.docket.model import DocketEntry, PreservedAmendments
from affiant_core.errors import CursorInvalid
from affiant_core.values import MAX_SAFE_INTEGER
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus
from affiant_core.wire import dumps, loads


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows a call may see: one tenant, or, for the sweep alone, every tenant; optionally one conversation."""

    tenant_id: str | None
    conversation_id: str | None = None


class Listing(StrEnum):
    """The listings that a store offers, each in filing order."""

    PENDING = "pending"
    """Rows that read pending: not decided and before their deadline."""
    APPROVED_UNEXECUTED = "approved-unexecuted"
    """Approved rows whose execution nobody has reported."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Filed:
    """The row under the id, and whether this call created it. The first write wins."""

    entry: DocketEntry
    created: bool


class TransitionGuard(StrEnum):
    """What must hold, in the store's own write, for a pending row to leave ``pending`` (DK-1)."""

    UNDECIDED = "undecided"
    """Pending, not blocked, before its deadline: for a decision."""
    OPEN = "open"
    """Pending, blocked or not, before its deadline: for a withdrawal."""
    DUE = "due"
    """Pending and at or past its deadline: for an expiry."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One guarded change of a row: the members that are written if, and only if, the guard holds at ``now``.

    ``changes`` maps ``DocketEntry`` attribute names to values, each just as an entry holds it. Allowed: ``status``,
    ``execution``, ``attestation``, ``amendments``, ``amended_affidavit``, ``decision``, ``decided_at``, ``approvals``.
    Raises ``ValueError`` for no change at all and for any other name.
    """

    guard: TransitionGuard
    now: datetime
    changes: Mapping[str, Any]
    clock: Callable[[], datetime] | None = None
    """Asked by the store once it may write, which can be long after ``now``; the guard holds at the later one."""
    expected_approvals: int | None = None
    """For a ``MultiParty`` row: how many approvals the caller has seen; another count means the guard does not hold."""

    def instant(self) -> datetime:
        """The instant at which the guard must hold. A store asks once it may write."""
        return self.now if self.clock is None else max(self.now, self.clock())

    def __post_init__(self) -> None:
        if not self.changes or not self.changes.keys() <= _CHANGEABLE:
            raise ValueError(f"a transition changes some of {', '.join(sorted(_CHANGEABLE))}, and nothing else.")


_CHANGEABLE = frozenset(
    {
        "status", "execution", "attestation", "amendments", "amended_affidavit", "decision", "decided_at", "approvals",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Applied:
    """Whether a guarded write happened, and the row as it is stored now (``None`` when the tenant has no such row)."""

    applied: bool
    entry: DocketEntry | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a listing, and the cursor of the next page, or ``None`` at the end."""

    entries: tuple[DocketEntry, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rows that one sweep moved to ``expired``, oldest deadline first, and whether more are due."""

    entries: tuple[DocketEntry, ...]
    more: bool


@runtime_checkable
class DocketStore(Protocol):
    """The store contract. Raises ``DocketError`` subclasses for its own faults and never loses a filed row."""

    blocking: bool

    def file(self, entry: DocketEntry) -> Filed:
        """Insert a pending row, or one that a Standing Order approved; an existing id returns its row unchanged.

        Raises ``ValueError`` for a row in any other state.
        """
        ...

    def get(self, tenant_id: str, entry_id: str) -> DocketEntry | None:
        """The row as stored (the deadline is not applied), or ``None`` when this tenant has no such row."""
        ...

    def belongs_elsewhere(self, tenant_id: str, entry_id: str) -> bool:
        """Whether some other tenant has a row with this id: for the host's telemetry, never for the caller (AZ-2)."""
        ...

    def transition(self, tenant_id: str, entry_id: str, change: Transition) -> Applied:
        """Move a pending row in one guarded write. At most one of any number of racing callers is applied."""
        ...

    def preserve_amendments(
        self, tenant_id: str, entry_id: str, preserved: PreservedAmendments, now: datetime
    ) -> Applied:
        """Keep a late decision's amendments on a row that reads expired and has none yet. Nothing else changes."""
        ...

    def record_execution(
        self, tenant_id: str, entry_id: str, outcome: ExecutionOutcome, detail: Mapping[str, Any] | None
    ) -> Applied:
        """Write ``executed`` or ``failed`` on an approved, attested row that reads ``unexecuted``; once.

        Raises ``ValueRefused`` for a detail that is not JSON.
        """
        ...

    def record_supersession(self, tenant_id: str, entry_id: str, superseded_by: str, now: datetime) -> Applied:
        """Name the successor of a row that reads expired and has none yet; also persists the expiry."""
        ...

    def page(self, listing: Listing, scope: Scope, *, limit: int, cursor: str | None, now: datetime) -> Page:
        """One page of a listing, each row as it reads at ``now``.

        Raises ``CursorInvalid`` for a cursor that is not of this listing and scope, ``ValueError`` for a scope without
        a tenant and for a limit below 1.
        """
        ...

    def expire_due(self, now: datetime, scope: Scope, *, limit: int) -> Sweep:
        """Move at most ``limit`` due rows to ``expired``, oldest first, each decided at its deadline (DK-3)."""
        ...

    def close(self) -> None:
        """Release what the store holds open. A closed store is not used again."""
        ...


def write_cursor(listing: str, scope: Scope, position: int) -> str:
    """An opaque cursor: the listing and scope that it belongs to and the position after which to go on."""
    text = dumps([listing, scope.tenant_id, scope.conversation_id, position])
    return urlsafe_b64encode(text.encode("utf-8")).decode("ascii")


def read_cursor(cursor: str | None, listing: str, scope: Scope) -> int:
    """The position in ``cursor``; -1 for none, the start. Raises ``CursorInvalid`` for a cursor of another listing."""
    if cursor is None:
        return -1
    try:
        content = loads(urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, AttributeError):
        raise CursorInvalid("the page cursor cannot be read; start again without one.") from None
    match content:
        case [str(name), tenant, conversation, int(position)] if (
            (name, tenant, conversation) == (listing, scope.tenant_id, scope.conversation_id)
            and not isinstance(position, bool)
            and 0 <= position <= MAX_SAFE_INTEGER
        ):
            return position
        case _:
            raise CursorInvalid("the page cursor belongs to another listing or scope; start again without one.")


def require_limit(limit: object) -> int:
    """``limit`` if it is a whole number of at least 1. Raises ``ValueError`` otherwise."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError("limit must be a whole number of at least 1.")
    return limit


def require_tenant(scope: Scope) -> None:
    """Raise ``ValueError`` for a scope without a tenant: only the sweep may look at every tenant (AZ-2)."""
    if scope.tenant_id is None:
        raise ValueError("a listing is of one tenant; only a sweep may cover them all.")


def require_fileable(entry: DocketEntry) -> None:
    """Raise ``ValueError`` unless the row is pending, or approved by the Standing Order that attests it (DK-1)."""
    if entry.status is ReviewStatus.PENDING and entry.execution is None and entry.attestation is None:
        return
    by_standing_order = entry.attestation is not None and entry.attestation.by.kind == "standing-order"
    if entry.status is ReviewStatus.APPROVED and entry.blocked is None and by_standing_order:
        return
    raise ValueError("a row is filed pending, or approved by the Standing Order that attests it.")
