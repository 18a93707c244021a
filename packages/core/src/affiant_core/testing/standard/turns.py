"""Whole turns of an agent: plain, streamed, nested, watched (C20)."""

from __future__ import annotations

import asyncio

import pytest

from affiant_core.testing.harness import Capability, Harness, Mode, Reply, ToolCall
from affiant_core.testing.standard.base import needs, on_a_loop
from affiant_core.testing.world import SECRET, AsyncLimitTools, LimitTools, World, found, told, turn

SCRIPT: list[Reply] = [
    [ToolCall("find_customer", {"customer_id": "c-1"}, "call-1")],
    [ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}, "call-2")],
    "It is filed.",
]
"""A turn that reads, then writes, then says so."""

KINDS = pytest.mark.parametrize("tools", [LimitTools, AsyncLimitTools])


class TurnTests:
    """The model, the history and whoever watches get the same, however a turn is run."""

    @KINDS
    @on_a_loop
    async def test_a_turn(self, harness: Harness, tools: type[LimitTools]) -> None:
        """C20: one row, one result per call, and the model goes on to say what it did."""
        world = World(tools())
        transcript = await harness.wire(world.affiant).play(SCRIPT, turn())
        assert transcript.results["call-1"] == found().to_json_string()
        assert told(transcript.results["call-2"])["entryId"] == world.row().entry_id
        assert (set(transcript.results), transcript.final) == ({"call-1", "call-2"}, "It is filed.")

    @needs(Capability.STREAMING)
    @KINDS
    @on_a_loop
    async def test_a_streamed_turn_is_the_same(self, harness: Harness, tools: type[LimitTools]) -> None:
        """C20: row and texts are equal, plain and streamed, and no result is doubled in the stream."""
        plain, streamed = World(tools()), World(tools())
        one = await harness.wire(plain.affiant).play(SCRIPT, turn())
        other = await harness.wire(streamed.affiant).play(SCRIPT, turn(), mode="streamed")
        assert (one.results, one.final) == (other.results, other.final)
        assert plain.row() == streamed.row()

    @needs(Capability.SYNCHRONOUS_AGENT)
    @KINDS
    def test_a_turn_without_an_event_loop_is_the_same(self, harness: Harness, tools: type[LimitTools]) -> None:
        """C20: row and texts are equal, with and without an event loop."""
        later, now = World(tools()), World(tools())
        one = asyncio.run(harness.wire(later.affiant).play(SCRIPT, turn()))
        other = harness.wire(now.affiant).play_now(SCRIPT, turn())
        assert (one.results, one.final) == (other.results, other.final)
        assert later.row() == now.row()

    @needs(Capability.NESTED_AGENTS)
    @on_a_loop
    async def test_an_agent_that_is_a_tool(self, harness: Harness) -> None:
        """C20: an agent as another's tool: its write is the row that its own turn would file, one result a call."""
        alone, nested = World(LimitTools()), World(LimitTools())
        await harness.wire(alone.affiant).play(SCRIPT, turn())
        transcript = await harness.wire(nested.affiant).play_nested(SCRIPT, turn())
        assert transcript.results["call-1"] == found().to_json_string()
        assert told(transcript.results["call-2"])["entryId"] == nested.row().entry_id
        assert nested.row() == alone.row()

    @needs(Capability.NESTED_AGENTS, Capability.STREAMING)
    @on_a_loop
    async def test_an_agent_that_is_a_tool_streamed(self, harness: Harness) -> None:
        """C20: the same, streamed."""
        plain, streamed = World(LimitTools()), World(LimitTools())
        one = await harness.wire(plain.affiant).play_nested(SCRIPT, turn())
        other = await harness.wire(streamed.affiant).play_nested(SCRIPT, turn(), mode="streamed")
        assert one.results == other.results
        assert plain.row() == streamed.row()

    @needs(Capability.OBSERVERS)
    @on_a_loop
    async def test_who_watches_sees_the_replacement(self, harness: Harness) -> None:
        """C20: events, spans and saved history hold the receipt, and never a sworn value."""
        await self._assert_watched(harness, "plain", nested=False)

    @needs(Capability.OBSERVERS, Capability.STREAMING)
    @on_a_loop
    async def test_who_watches_a_stream_sees_the_replacement(self, harness: Harness) -> None:
        """C20: the same for a streamed turn."""
        await self._assert_watched(harness, "streamed", nested=False)

    @needs(Capability.OBSERVERS, Capability.NESTED_AGENTS)
    @on_a_loop
    async def test_who_watches_a_nested_turn_sees_the_replacement(self, harness: Harness) -> None:
        """C20: the same for an agent that is a tool."""
        await self._assert_watched(harness, "plain", nested=True)

    async def _assert_watched(self, harness: Harness, mode: Mode, *, nested: bool) -> None:
        world = World(LimitTools())
        backend = harness.wire(world.affiant)
        play = backend.play_nested if nested else backend.play
        transcript = await play(SCRIPT, turn(), mode=mode)
        assert transcript.seen, "the harness showed nothing of what observers see"
        assert not any(SECRET in each for each in transcript.seen)
        # The receipt is there, so the observers did look at the call.
        assert any(world.row().entry_id in each for each in transcript.seen)
