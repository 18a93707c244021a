"""A host on LangChain: tools of every kind, a model that follows a script, and every way in which a tool is called."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from support.gate import turn
from support.limit_desk import PROPOSAL, SECRET, AsyncLimitDesk, LimitDesk, MemoryHost, found, proposed  # noqa: F401  # the tests import them from here

from affiant_core.wire import loads
from affiant_langchain_bridge import bind, wrap

NEWER = tuple(map(int, metadata.version("langchain-core").split(".")[:2])) >= (1, 8)
newer = pytest.mark.skipif(not NEWER, reason="the oldest LangChain that is supported has no such thing")

# --- the host ------------------------------------------------------------------------------------------------------


class Host(MemoryHost):
    """The host of these tests, with its framework."""

    def bind(self) -> dict[str, BaseTool]:
        return {tool.name: tool for tool in bind(self.affiant)}

    def wrap(self, *tools: BaseTool, writes: bool | tuple[str, ...] = ()) -> list[BaseTool]:
        """Declare and wrap; ``writes`` names those that write, or says that all do."""
        for tool in tools:
            if writes is True or (writes and tool.name in writes):
                self.affiant.declare_write(tool.name, operation="WriteUpdate", entity_type="Customer")
            else:
                self.affiant.declare_read(tool.name)
        return wrap(tools, self.affiant)

    def wrap_one(self, tool: BaseTool, *, writes: bool = False) -> BaseTool:
        return self.wrap(tool, writes=writes)[0]


def config(context: object = ..., **configurable: Any) -> dict[str, Any]:
    """A call's config with its turn, which is a good one unless another is given."""
    return {"configurable": {"affiant": turn() if context is ... else context, **configurable}}


def call(name: str, arguments: dict[str, Any], call_id: str = "call-1") -> dict[str, Any]:
    """What a model asks for."""
    return {"type": "tool_call", "name": name, "args": arguments, "id": call_id}


def text_of(result: Any) -> str:
    """What the model receives for a call."""
    if isinstance(result, ToolMessage):
        result = result.content
    if isinstance(result, list):
        (block,) = result
        result = block if isinstance(block, str) else block["text"]
    assert isinstance(result, str), result
    return result


def document_of(result: Any) -> Any:
    """The same as JSON, by a parser that refuses NaN."""
    return loads(text_of(result))


# --- a model that follows a script ---------------------------------------------------------------------------------


class ScriptedModel(BaseChatModel):
    """Says what the script says, whatever it is told, and remembers what it was told.

    ``script`` is a list of answers, or a function of the messages. After its end the model says "done".
    """

    script: Any = ()
    heard: list[list[AnyMessage]] = []  # noqa: RUF012  # pydantic copies a field's default
    offered: list[Any] = []  # noqa: RUF012  # as above

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        self.offered[:] = tools
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.heard.append(list(messages))
        if callable(self.script):
            answer = self.script(messages)
        else:
            said = sum(isinstance(message, AIMessage) for message in messages)
            answer = self.script[said] if said < len(self.script) else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def asks(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """A model's message that asks for these calls, with the ids ``call-1``, ``call-2`` and so on."""
    numbered = (call(name, arguments, f"call-{at}") for at, (name, arguments) in enumerate(calls, 1))
    return AIMessage("", tool_calls=list(numbered))


def agent_of(tools: Any, *script: AIMessage, **options: Any) -> Any:
    return create_agent(ScriptedModel(script=list(script)), tools, **options)


def question(text: str = "Set the limit to 500") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def results_in(state: Any) -> list[ToolMessage]:
    """The tool messages of a state, in order."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


# --- graphs of the host's own --------------------------------------------------------------------------------------


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(tools: Any, *, checkpointer: Any = None, **options: Any) -> Any:
    """A graph of one ToolNode."""
    if not NEWER:
        options.setdefault("handle_tool_errors", False)  # the oldest catches everything by default
    builder = StateGraph(State)
    builder.add_node("tools", ToolNode(tools, **options))
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=checkpointer)


# --- every way to call a tool --------------------------------------------------------------------------------------

Way = Callable[[list[BaseTool], str, dict[str, Any], dict[str, Any]], Any]
_ids = itertools.count(1)


def _one(tools: list[BaseTool], name: str) -> BaseTool:
    return next(tool for tool in tools if tool.name == name)


def _run_options(cfg: dict[str, Any] | None) -> dict[str, Any]:
    return {"config": cfg, "tool_call_id": "call-1", "callbacks": (cfg or {}).get("callbacks")}


def _wanted(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [HumanMessage("go"), AIMessage("", tool_calls=[call(name, arguments)])]}


def _only_message(state: Any) -> ToolMessage:
    (message,) = results_in(state)
    return message


def _streamed(chunks: list[Any]) -> ToolMessage:
    """The one tool message in a stream of updates."""
    updates = [update for chunk in chunks for update in chunk.values() if update]
    (message,) = [each for update in updates for each in update["messages"] if isinstance(each, ToolMessage)]
    return message


SYNC_WAYS: dict[str, Way] = {
    "invoke with arguments": lambda tools, name, args, cfg: _one(tools, name).invoke(args, cfg),
    "invoke with a call": lambda tools, name, args, cfg: _one(tools, name).invoke(call(name, args), cfg),
    "run": lambda tools, name, args, cfg: _one(tools, name).run(dict(args), **_run_options(cfg)),
    "batch": lambda tools, name, args, cfg: _one(tools, name).batch([call(name, args)], cfg)[0],
    "stream": lambda tools, name, args, cfg: next(iter(_one(tools, name).stream(call(name, args), cfg))),
    "with_retry": lambda tools, name, args, cfg: _one(tools, name).with_retry().invoke(call(name, args), cfg),
    "sequence": lambda tools, name, args, cfg: (_one(tools, name) | (lambda out: out)).invoke(call(name, args), cfg),
    "ToolNode": lambda tools, name, args, cfg: _only_message(graph_of(tools).invoke(_wanted(name, args), cfg)),
    "agent": lambda tools, name, args, cfg: _only_message(agent_of(tools, asks((name, args))).invoke(question(), cfg)),
    "agent, streamed": lambda tools, name, args, cfg: _streamed(
        list(agent_of(tools, asks((name, args))).stream(question(), cfg, stream_mode="updates"))
    ),
}


async def _collect(stream: Any) -> list[Any]:
    return [chunk async for chunk in stream]


async def _ainvoke_arguments(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return await _one(tools, name).ainvoke(args, cfg)


async def _ainvoke_call(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return await _one(tools, name).ainvoke(call(name, args), cfg)


async def _arun(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return await _one(tools, name).arun(dict(args), **_run_options(cfg))


async def _abatch(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return (await _one(tools, name).abatch([call(name, args)], cfg))[0]


async def _astream(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return (await _collect(_one(tools, name).astream(call(name, args), cfg)))[0]


async def _anode(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return _only_message(await graph_of(tools).ainvoke(_wanted(name, args), cfg))


async def _aagent(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return _only_message(await agent_of(tools, asks((name, args))).ainvoke(question(), cfg))


async def _aagent_streamed(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    agent = agent_of(tools, asks((name, args)))
    return _streamed(await _collect(agent.astream(question(), cfg, stream_mode="updates")))


async def _inside_a_loop(tools: list[BaseTool], name: str, args: dict[str, Any], cfg: dict[str, Any]) -> Any:
    return _one(tools, name).invoke(call(name, args), cfg)


ASYNC_WAYS: dict[str, Way] = {
    "ainvoke with arguments": _ainvoke_arguments,
    "ainvoke with a call": _ainvoke_call,
    "arun": _arun,
    "abatch": _abatch,
    "astream": _astream,
    "ToolNode, async": _anode,
    "agent, async": _aagent,
    "agent, async, streamed": _aagent_streamed,
    "invoke inside a running loop": _inside_a_loop,
}

WAYS = {**SYNC_WAYS, **ASYNC_WAYS}

MAIN = (
    "invoke with arguments",
    "invoke with a call",
    "ainvoke with a call",
    "invoke inside a running loop",
    "ToolNode",
    "agent, async, streamed",
)
"""The ways that differ in more than their wrapping."""

FEW = ("invoke with a call", "ainvoke with arguments", "ToolNode, async")
"""One way of each kind, where a test is not about the ways."""


def go(way: str, tools: list[BaseTool], name: str, arguments: dict[str, Any], cfg: dict[str, Any] | None) -> Any:
    """Call a tool in one of the ways, on an event loop if that way needs one, and give what comes back."""
    outcome = WAYS[way](tools, name, arguments, cfg)
    return asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome
