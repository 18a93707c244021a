"""The desk of CASES, a host over a Docket in memory, and what tools return: the same for every framework's tests."""

from __future__ import annotations

from typing import Any

from support.gate import T0, Events, FakeClock, Outbox, yes

from affiant_core import Affiant, InMemoryDocketStore, Listing
from affiant_core.docket.store import Scope
from affiant_core.testing.world import SECRET, AsyncLimitTools, LimitTools, found, proposed

__all__ = ["PROPOSAL", "SECRET", "AsyncLimitDesk", "LimitDesk", "MemoryHost", "found", "proposed"]

PROPOSAL = proposed().to_json_string()


class LimitDesk(LimitTools):
    """The tool class of the kit, under the name that these tests call its plugin by."""


class AsyncLimitDesk(AsyncLimitTools):
    """The same tools with asynchronous bodies."""


# --- the host ------------------------------------------------------------------------------------------------------


class MemoryHost:
    """An Affiant over a Docket in memory, with everything kept that it tells. Options are Affiant's own."""

    def __init__(self, tools: object = (), **options: Any) -> None:
        self.store = options.setdefault("docket", InMemoryDocketStore())
        self.outbox, self.events, self.clock = Outbox(), Events(), FakeClock()
        options.setdefault("clock", self.clock)
        self.tools = tools
        self.affiant = Affiant(
            tools=tools, transport=self.outbox, listeners=[self.events], **{"authorize": yes, **options}
        )
        self.gate = self.affiant.gate

    def rows(self, tenant: str = "acme") -> tuple[Any, ...]:
        return InMemoryDocketStore.page(
            self.store, Listing.ALL, Scope(tenant), limit=10_000, cursor=None, now=T0
        ).entries

    def row(self) -> Any:
        (row,) = self.rows()
        return row
