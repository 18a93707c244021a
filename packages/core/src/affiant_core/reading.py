"""Reading the Docket: rows and listings as they read now, for hosts, desks and the gate itself (DK-3, DK-5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from affiant_core.card import EvidenceCard, card_for
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.store import DocketStore, Listing, Page, Scope
from affiant_core.driver import Driver, T, operation
from affiant_core.errors import CursorInvalid, EntryNotFound
from affiant_core.values import to_instant

Clock: TypeAlias = Callable[[], datetime]


class DocketReader:
    """What can be asked of a Docket without changing it. A row at or past its deadline reads expired."""

    def __init__(self, docket: DocketStore, clock: Clock) -> None:
        self._docket = docket
        self._clock = clock

    def now(self) -> datetime:
        """The gate's clock, to the millisecond."""
        return to_instant(self._clock(), "clock")

    def card(self, entry: DocketEntry) -> EvidenceCard:
        """The card of a row as it reads now."""
        return card_for(entry, self.now())

    @operation
    async def get(self, driver: Driver, entry_id: str, *, tenant_id: str) -> DocketEntry:
        """The row as it reads now, its deadline applied. Raises ``EntryNotFound``."""
        row = await self._store(driver, self._docket.get, tenant_id, require_id(entry_id))
        if row is None:
            raise EntryNotFound("AZ-2: this tenant has no such row.")
        return row.as_read(self.now())

    @operation
    async def page(
        self,
        driver: Driver,
        listing: Listing,
        *,
        tenant_id: str,
        conversation_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """One page of one tenant's listing, in filing order. Raises ``CursorInvalid`` for a foreign cursor (DK-3)."""
        if listing not in tuple(Listing):
            raise ValueError(f"there is no listing {listing!r}; there are {', '.join(Listing)}.")
        scope = Scope(_tenant(tenant_id), conversation_id)
        chosen = Listing(listing)
        return await self._store(driver, self._docket.page, chosen, scope, limit=limit, cursor=cursor, now=self.now())

    @operation
    async def rehydrate(
        self,
        driver: Driver,
        *,
        tenant_id: str,
        conversation_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """What still waits for somebody: pending rows first, then approved ones not yet executed (DK-5).

        Raises ``CursorInvalid`` for a cursor that this listing did not give.
        """
        listing, inner = _rehydration_cursor(cursor)
        scope = Scope(_tenant(tenant_id), conversation_id)
        now = self.now()
        entries: tuple[DocketEntry, ...] = ()
        if listing is Listing.PENDING:
            first = await self._store(driver, self._docket.page, listing, scope, limit=limit, cursor=inner, now=now)
            if first.next_cursor is not None:
                return Page(first.entries, f"{Listing.PENDING}.{first.next_cursor}")
            entries, inner = first.entries, None
            if len(entries) == limit:
                rest = await self._store(
                    driver, self._docket.page, Listing.APPROVED_UNEXECUTED, scope, limit=1, cursor=None, now=now
                )
                return Page(entries, f"{Listing.APPROVED_UNEXECUTED}." if rest.entries else None)
        second = await self._store(
            driver,
            self._docket.page,
            Listing.APPROVED_UNEXECUTED,
            scope,
            limit=limit - len(entries),
            cursor=inner,
            now=now,
        )
        following = second.next_cursor
        return Page(
            (*entries, *second.entries), None if following is None else f"{Listing.APPROVED_UNEXECUTED}.{following}"
        )

    async def _store(self, driver: Driver, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self._docket.blocking:
            return await driver.store(partial(function, *args, **kwargs))
        return function(*args, **kwargs)


def _rehydration_cursor(cursor: str | None) -> tuple[Listing, str | None]:
    if cursor is None:
        return Listing.PENDING, None
    name, dot, inner = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not dot or name not in (Listing.PENDING, Listing.APPROVED_UNEXECUTED):
        raise CursorInvalid("the page cursor belongs to another listing; start again without one.")
    return Listing(name), inner or None


def require_id(entry_id: str) -> str:
    """``entry_id`` if it is text. Raises ``TypeError`` for anything else, such as the row itself."""
    if not isinstance(entry_id, str):
        raise TypeError(f"a row is named by its id, which is text, not by a {type(entry_id).__name__}.")
    return entry_id


def _tenant(tenant_id: str) -> str:
    if not isinstance(tenant_id, str) or not tenant_id:
        raise ValueError("a listing names its tenant.")
    return tenant_id
