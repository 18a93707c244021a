"""The harness of this bridge for the conformance kit: ``--affiant-bridge affiant_langchain_bridge``.

Needs the ``langchain`` distribution, whose ``create_agent`` runs the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from affiant_core import Affiant
from affiant_core import testing as kit
from affiant_core.wire import loads
from affiant_langchain_bridge.catalog import bind, wrap
from affiant_langchain_bridge.guard import GuardMiddleware
from affiant_langchain_bridge.seam import TURN_KEY

__all__ = ["HARNESSES", "LangChainHarness"]


class ScriptedModel(BaseChatModel):
    """A chat model that says what the script says, and "done" after its end."""

    script: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        """Take any tools."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        reply = kit.reply_at(self.script, said)
        return ChatResult(generations=[ChatGeneration(message=_message(reply))])


def _message(reply: kit.Reply) -> AIMessage:
    if isinstance(reply, str):
        return AIMessage(reply)
    calls, invalid = [], []
    for call in reply:
        try:
            arguments = loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)
        except ValueError as error:  # what a provider's package makes of text that is no JSON
            invalid.append({"name": call.name, "args": call.arguments, "id": call.id, "error": str(error)})
        else:
            calls.append({"name": call.name, "args": arguments, "id": call.id})
    broken = [{**each, "type": "invalid_tool_call"} for each in invalid]
    return AIMessage("", tool_calls=[{**each, "type": "tool_call"} for each in calls], invalid_tool_calls=broken)


class LangChainBackend(kit.Backend):
    """The bound tools, called by themselves and by agents of ``create_agent``."""

    def __init__(self, affiant: Affiant, tools: Sequence[BaseTool], hosted: Sequence[str]) -> None:
        self._affiant = affiant
        self._tools = {tool.name: tool for tool in tools}
        self._offered: list[Any] = [*tools, *({"type": name} for name in hosted)]

    async def call(self, call: kit.ToolCall, context: object) -> str:
        """Call a tool with ``ainvoke``."""
        return _text(await self._tools[call.name].ainvoke(_given(call), _config(context)))

    def call_now(self, call: kit.ToolCall, context: object) -> str:
        """Call a tool with ``invoke``."""
        return _text(self._tools[call.name].invoke(_given(call), _config(context)))

    async def play(self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain") -> kit.Transcript:
        """Run a turn of an agent with ``ainvoke``, or with ``astream_events``."""
        return await self._run(self._agent(script), context, mode)

    def play_now(self, script: Sequence[kit.Reply], context: object) -> kit.Transcript:
        """Run a turn of an agent with ``invoke``."""
        state = self._agent(script).invoke(_question(), _config(context, thread_id="thread-1"))
        return _transcript(state["messages"], [])

    async def play_nested(
        self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain"
    ) -> kit.Transcript:
        """Run an agent whose one tool runs the agent that has the tools."""
        inner, states = self._agent(script, name="inner"), []

        async def assist(question: str, config: RunnableConfig) -> str:
            """Ask the assistant."""
            states.append(await inner.ainvoke(_question(), config))
            return str(states[-1]["messages"][-1].content)

        if self._affiant.registry.find("assist") is None:
            self._affiant.declare_read("assist")
        outer_tools = wrap([StructuredTool.from_function(coroutine=assist)], self._affiant)
        outer = create_agent(
            ScriptedModel(script=[[kit.ToolCall("assist", {"question": "?"}, "outer-1")]]),
            outer_tools,
            middleware=[GuardMiddleware(self._affiant)],
            checkpointer=InMemorySaver(),
        )
        transcript = await self._run(outer, context, mode)
        return _transcript(states[0]["messages"], [*transcript.seen, *map(repr, states)])

    def _agent(self, script: Sequence[kit.Reply], **options: Any) -> Any:
        return create_agent(
            ScriptedModel(script=list(script)),
            self._offered,
            middleware=[GuardMiddleware(self._affiant)],
            checkpointer=InMemorySaver(),
            **options,
        )

    async def _run(self, agent: Any, context: object, mode: kit.Mode) -> kit.Transcript:
        config = _config(context, thread_id="thread-1")
        seen: list[str] = []
        if mode == "streamed":
            async for event in agent.astream_events(_question(), config, version="v2"):
                seen.append(repr(event))
        else:
            await agent.ainvoke(_question(), config)
        saved = await agent.aget_state(config)
        history = [repr(state) async for state in agent.aget_state_history(config)]
        return _transcript(saved.values["messages"], [*seen, *history])


def _question() -> dict[str, Any]:
    return {"messages": [HumanMessage(kit.QUESTION)]}


def _config(context: object, **configurable: Any) -> RunnableConfig:
    return {"configurable": {**({} if context is None else {TURN_KEY: context}), **configurable}}


def _given(call: kit.ToolCall) -> Any:
    """What a caller of a tool passes: the text itself, or a call as a model's message has it."""
    if isinstance(call.arguments, str):
        return call.arguments
    return {"type": "tool_call", "name": call.name, "args": dict(call.arguments), "id": call.id}


def _text(result: Any) -> str:
    content = result.content if isinstance(result, ToolMessage) else result
    if isinstance(content, list) and len(content) == 1:
        (content,) = content
        content = content["text"] if isinstance(content, Mapping) else content
    assert isinstance(content, str), f"the model would be given {content!r}"
    return content


def _transcript(messages: Sequence[BaseMessage], seen: Sequence[str]) -> kit.Transcript:
    results = [(each.tool_call_id, _text(each)) for each in messages if isinstance(each, ToolMessage)]
    requests = sum(isinstance(each, AIMessage) for each in messages)
    return kit.Transcript(kit.answers(results), str(messages[-1].text), requests, tuple(seen))


class LangChainHarness(kit.Harness):
    """LangChain: tools called by themselves, and agents of ``create_agent`` with the guard."""

    name = "langchain"

    def wire(self, affiant: Affiant) -> LangChainBackend:
        """Bind the Affiant's tools."""
        return self.wire_beside(affiant)

    def wire_beside(
        self, affiant: Affiant, *, native: Sequence[Callable[..., Any]] = (), hosted: Sequence[str] = ()
    ) -> LangChainBackend:
        """Bind the Affiant's tools, wrap the others, and offer what a provider runs beside them."""
        own = [StructuredTool.from_function(each) for each in native]
        tools = [*bind(affiant), *(wrap(own, affiant) if own else [])]
        GuardMiddleware(affiant).check([*tools, *({"type": name} for name in hosted)])
        return LangChainBackend(affiant, tools, hosted)


HARNESSES: tuple[kit.Harness, ...] = (LangChainHarness(),)
"""What ``--affiant-bridge affiant_langchain_bridge`` runs."""
