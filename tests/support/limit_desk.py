"""The desk of CASES, a host over a Docket in memory, and what tools return: the same for every framework's tests."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from support.gate import T0, Events, FakeClock, Outbox, record, sworn, yes

from affiant_core import (
    Affiant,
    EntityRef,
    InMemoryDocketStore,
    Listing,
    ReadResult,
    TurnContext,
    WriteProposal,
    read_tool,
    write_tool,
)
from affiant_core.docket.store import Scope

SECRET = "hunter2-of-the-vault"
"""A sworn value that no model and no observer may ever see."""


# --- what tools return ---------------------------------------------------------------------------------------------


def found(customer_id: str = "c-1", **fields: Any) -> ReadResult:
    entity = EntityRef(entity_type="Customer", entity_id=customer_id, display_name="Zoë 🚀", fields=fields)
    return ReadResult(
        tool_name="find_customer", timestamp=T0, summary="Found it.", markdown=f"| {customer_id} |", entities=(entity,)
    )


def proposed(customer_id: str = "c-1", limit: object = 10, memo: str = SECRET, **more: Any) -> WriteProposal:
    fields = (sworn("limit", limit, mandatory=True), sworn("memo", memo))
    return WriteProposal(tool_name="set_limit", timestamp=T0, envelope=record(*fields, entity=customer_id), **more)


PROPOSAL = proposed().to_json_string()


class LimitDesk:
    """The tool class of CASES: a read that finds one entity and a write that only proposes."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @read_tool
    def find_customer(self, customer_id: str) -> ReadResult:
        """Find one customer."""
        self.calls.append(("find_customer", {"customer_id": customer_id}))
        return found(customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(
        self,
        customer_id: str,
        limit: int,
        force: bool = False,
        effective: datetime | None = None,
        memo: str = "",
        *,
        turn: TurnContext,
    ) -> WriteProposal:
        """Propose a new limit for a customer."""
        seen = {"customer_id": customer_id, "limit": limit, "force": force, "effective": effective, "turn": turn}
        self.calls.append(("set_limit", seen))
        return proposed(customer_id, limit, memo or SECRET)


class AsyncLimitDesk:
    """The same tools with asynchronous bodies."""

    def __init__(self) -> None:
        self._desk = LimitDesk()
        self.calls = self._desk.calls

    @read_tool
    async def find_customer(self, customer_id: str) -> ReadResult:
        """Find one customer."""
        await asyncio.sleep(0)
        return self._desk.find_customer(customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(
        self,
        customer_id: str,
        limit: int,
        force: bool = False,
        effective: datetime | None = None,
        memo: str = "",
        *,
        turn: TurnContext,
    ) -> WriteProposal:
        """Propose a new limit for a customer."""
        await asyncio.sleep(0)
        return self._desk.set_limit(customer_id, limit, force, effective, memo, turn=turn)


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
