"""The harness of this bridge for the conformance kit: ``--affiant-bridge affiant_agents_bridge``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents import (
    FunctionTool,
    RunConfig,
    Runner,
    SQLiteSession,
    Tool,
    ToolCallOutputItem,
    WebSearchTool,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from affiant_agents_bridge.agent import AffiantAgent, agent_tool
from affiant_agents_bridge.catalog import bind, wrap
from affiant_core import Affiant
from affiant_core import testing as kit

__all__ = ["HARNESSES", "AgentsHarness"]

_QUIET = RunConfig(tracing_disabled=True)  # or a host with a key would export what the kit does


class AgentsBackend(kit.Backend):
    """The bound tools, called by themselves and by agents."""

    def __init__(self, affiant: Affiant, tools: Sequence[Tool]) -> None:
        self._affiant = affiant
        self._offered = list(tools)
        self._tools = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}

    async def call(self, call: kit.ToolCall, context: object) -> str:
        """Call a tool as the SDK's runner does."""
        sent = call.text
        made: ToolContext[Any] = ToolContext(context, tool_name=call.name, tool_call_id=call.id, tool_arguments=sent)
        return _text(await self._tools[call.name].on_invoke_tool(made, sent))

    async def play(self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain") -> kit.Transcript:
        """Run a turn of an agent with ``Runner.run``, or with ``Runner.run_streamed``."""
        return await _played(self._agent(script), context, mode)

    def play_now(self, script: Sequence[kit.Reply], context: object) -> kit.Transcript:
        """Run a turn of an agent with ``Runner.run_sync``."""
        agent, found = self._agent(script), []

        def run() -> None:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)  # run_sync keeps the thread's loop for the next run; this one ends here
            try:
                result = Runner.run_sync(agent, kit.QUESTION, context=context, run_config=_QUIET)
                found.append(_transcript(agent, result, []))
            finally:
                loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        (transcript,) = found
        return transcript

    async def play_nested(
        self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain"
    ) -> kit.Transcript:
        """Run an agent whose one tool is the agent that has the tools."""
        inner = self._agent(script)
        results: list[Any] = []

        async def final(result: Any) -> str:
            results.append(result)
            return str(result.final_output)

        tool = agent_tool(inner, self._affiant, name="assist", description="Ask.", custom_output_extractor=final)
        outer = AffiantAgent[Any](
            name="Outer",
            tools=[tool],
            model=_model([[kit.ToolCall("assist", {"input": "?"}, "outer-1")]]),
            affiant=self._affiant,
        )
        transcript = await _played(outer, context, mode)
        return _transcript(inner, results[0], transcript.seen)

    def _agent(self, script: Sequence[kit.Reply]) -> AffiantAgent[Any]:
        return AffiantAgent(name="Clerk", tools=list(self._offered), model=_model(script), affiant=self._affiant)


def _model(script: Sequence[kit.Reply]) -> ScriptedModel:
    """A model that says what the script says, and "done" after its end."""
    steps = [
        [assistant_message(reply)]
        if isinstance(reply, str)
        else [function_call(call.name, call.text, call_id=call.id) for call in reply]
        for reply in script
    ]
    return ScriptedModel([*steps, *([assistant_message("done")] for _ in range(2))])


async def _played(agent: AffiantAgent[Any], context: object, mode: kit.Mode) -> kit.Transcript:
    session = SQLiteSession("session-1")
    options: dict[str, Any] = {"context": context, "session": session, "run_config": _QUIET}
    seen: list[str] = []
    try:
        if mode == "streamed":
            result: Any = Runner.run_streamed(agent, kit.QUESTION, **options)
            async for event in result.stream_events():
                shown = getattr(event, "item", None)
                seen.append(repr(getattr(event, "data", None) if shown is None else _shown(shown)))
        else:
            result = await Runner.run(agent, kit.QUESTION, **options)
        state = result.to_state().to_string(context_serializer=lambda _: {})
        return _transcript(agent, result, [*seen, state, *map(repr, await session.get_items())])
    finally:
        session.close()


def _shown(item: Any) -> tuple[object, object]:
    """What an item of a run says, without the agent and the tools that it belongs to."""
    return item.raw_item, getattr(item, "output", None)


def _transcript(agent: AffiantAgent[Any], result: Any, seen: Sequence[str]) -> kit.Transcript:
    outputs: list[Any] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    results = [(str(item.raw_item["call_id"]), _text(item.output)) for item in outputs]
    model: Any = agent.model
    shown = [repr(_shown(item)) for item in result.new_items]
    return kit.Transcript(kit.answers(results), str(result.final_output), len(model.calls), (*seen, *shown))


def _text(output: object) -> str:
    text = output.get("text") if isinstance(output, Mapping) else getattr(output, "text", output)
    assert isinstance(text, str), f"the model would be given {output!r}"
    return text


class AgentsHarness(kit.Harness):
    """The OpenAI Agents SDK: function tools called as its runner calls them, and agents that look after themselves."""

    name = "openai-agents"
    gaps: Mapping[str, kit.Gap] = {kit.Capability.SYNCHRONOUS: kit.never("the SDK calls tools on an event loop")}

    def wire(self, affiant: Affiant) -> AgentsBackend:
        """Bind the Affiant's tools."""
        return self.wire_beside(affiant)

    def wire_beside(
        self, affiant: Affiant, *, native: Sequence[Callable[..., Any]] = (), hosted: Sequence[str] = ()
    ) -> AgentsBackend:
        """Bind the Affiant's tools, and wrap the others, those that a provider runs among them."""
        own: list[Tool] = [function_tool(each) for each in native]
        if set(hosted) - {"web_search"}:
            raise kit.Unsupported("a provider's tool other than web_search")
        return AgentsBackend(affiant, [*bind(affiant), *wrap([*own, *(WebSearchTool() for _ in hosted)], affiant)])


HARNESSES: tuple[kit.Harness, ...] = (AgentsHarness(),)
"""What ``--affiant-bridge affiant_agents_bridge`` runs."""
