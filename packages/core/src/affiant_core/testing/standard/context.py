"""No call without a context that the host passed for it (CV-2; DECISIONS 12)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from affiant_core.context import ActContext, Member
from affiant_core.testing.harness import Capability, Harness, ToolCall
from affiant_core.testing.standard.base import needs, on_a_loop, refused_by_the_host
from affiant_core.testing.world import LimitTools, World, turn

MALFORMED: dict[str, Any] = {
    "nothing": None,
    "a dictionary": {"tenant_id": "acme", "conversation_id": "c-1", "principal": "filer"},
    "text": "acme",
    "a context without a turn": ActContext("acme", Member("filer")),
    "a member": Member("filer"),
}
"""What is not a ``TurnContext``."""

CALLS = {
    "read": ToolCall("find_customer", {"customer_id": "c-1"}),
    "write": ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}),
}


class ContextTests:
    """A missing or malformed context is the host's mistake: loud, before any body, and repaired by nobody."""

    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
    @pytest.mark.parametrize("context", MALFORMED.values(), ids=MALFORMED)
    @needs(Capability.CONTEXT_IS_LOUD)
    @on_a_loop
    async def test_a_call_without_a_context_raises_to_the_host(
        self, harness: Harness, call: ToolCall, context: object
    ) -> None:
        """CV-2 and DECISIONS 12: the seam raises before any body, reads included; nothing is filed."""
        tools = LimitTools()
        world = World(tools)
        refusal = await refused_by_the_host(harness.wire(world.affiant).call(call, context))
        assert "CV-2" in str(refusal)
        assert (tools.calls, world.rows()) == ([], ())

    @needs(Capability.CONTEXT_IS_LOUD)
    @on_a_loop
    async def test_a_context_is_not_remembered(self, harness: Harness) -> None:
        """DECISIONS 12: a call without a context is refused also right after one that had it."""
        tools = LimitTools()
        world = World(tools)
        backend = harness.wire(world.affiant)
        await backend.call(CALLS["read"], turn())
        await refused_by_the_host(backend.call(CALLS["write"], None))
        assert (len(tools.calls), world.rows()) == (1, ())

    @needs(Capability.CONTEXT_IS_LOUD)
    @on_a_loop
    async def test_a_turn_without_a_context_raises_to_the_host(self, harness: Harness) -> None:
        """DECISIONS 12: the same inside an agent's turn: every sibling call has the same fault, so the turn fails."""
        tools = LimitTools()
        world = World(tools)
        second = ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}, "call-2")
        script = [[CALLS["read"], second]]
        await refused_by_the_host(harness.wire(world.affiant).play(script, None))
        await asyncio.sleep(0.05)  # a sibling that was left running would be done by now
        assert (tools.calls, world.rows()) == ([], ())

    @on_a_loop
    async def test_a_row_carries_what_the_context_says(self, harness: Harness) -> None:
        """GT-2: tenant, conversation, channel and requester of a row are the turn's, and nothing else's."""
        world = World(LimitTools())
        await harness.wire(world.affiant).call(CALLS["write"], turn("globex", "c-9", "zoe"))
        row = world.row("globex")
        assert (row.tenant_id, row.conversation_id, row.channel, row.requested_by) == ("globex", "c-9", "chat", "zoe")
