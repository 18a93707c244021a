"""A host on the OpenAI Agents SDK: tools of every kind, a model that follows a script, and every way to run a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner, ToolCallOutputItem
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool
from support.gate import turn
from support.limit_desk import PROPOSAL, SECRET, AsyncLimitDesk, LimitDesk, MemoryHost, found, proposed  # noqa: F401  # the tests import them from here

from affiant_agents_bridge import AffiantAgent, bind, wrap
from affiant_core.wire import loads

LIMIT = {"customer_id": "c-1", "limit": 10}
FIND = {"customer_id": "c-1"}


# --- the host ------------------------------------------------------------------------------------------------------


class Host(MemoryHost):
    """The host of these tests, with its framework."""

    def bind(self) -> dict[str, FunctionTool]:
        return {tool.name: tool for tool in bind(self.affiant)}

    def wrap(self, *tools: FunctionTool, writes: bool | tuple[str, ...] = ()) -> list[Any]:
        """Declare and wrap; ``writes`` names those that write, or says that all do."""
        for tool in tools:
            if writes is True or (writes and tool.name in writes):
                self.affiant.declare_write(tool.name, operation="WriteUpdate", entity_type="Customer")
            else:
                self.affiant.declare_read(tool.name)
        return wrap(tools, self.affiant)

    def wrap_one(self, tool: FunctionTool, *, writes: bool = False) -> FunctionTool:
        return self.wrap(tool, writes=writes)[0]

    def agent(self, *script: Any, tools: Any = None, **options: Any) -> AffiantAgent[Any]:
        """An agent with the bound tools, or others, whose model says what the script says and then "done"."""
        offered = list(self.bind().values()) if tools is None else list(tools)
        return AffiantAgent(name="Clerk", tools=offered, model=model(*script), affiant=self.affiant, **options)


# --- a model that follows a script ---------------------------------------------------------------------------------


def asks(*calls: tuple[str, dict[str, Any] | str], first: int = 1) -> list[Any]:
    """A model's message that asks for these calls, with the ids ``call-1``, ``call-2`` and so on."""
    return [function_call(name, sent, call_id=f"call-{at}") for at, (name, sent) in enumerate(calls, first)]


def model(*script: Any) -> ScriptedModel:
    return ScriptedModel([*script, *([assistant_message("done")] for _ in range(3))])


def plain_agent(tools: Any, *script: Any, **options: Any) -> Agent[Any]:
    return Agent(name="Plain", tools=list(tools), model=model(*script), **options)


# --- every way to run a turn ---------------------------------------------------------------------------------------

QUIET = RunConfig(tracing_disabled=True)
"""Nothing is traced, so nothing is exported. Tests of spans have a configuration and a processor of their own."""


def run(agent: Any, context: object = ..., *, mode: str = "plain", text: Any = "Set the limit to 500", **options: Any):
    """Run a turn in one of the ``MODES``, with a good context unless another is given."""
    options = {"context": turn() if context is ... else context, "run_config": QUIET, **options}
    if mode == "sync":
        return _in_a_thread(lambda: Runner.run_sync(agent, text, **options))
    return asyncio.run(arun(agent, mode=mode, text=text, **options))


async def arun(agent: Any, context: object = ..., *, mode: str = "plain", text: Any = "go", **options: Any) -> Any:
    options = {"context": turn() if context is ... else context, "run_config": QUIET, **options}
    if mode == "plain":
        return await Runner.run(agent, text, **options)
    streamed = Runner.run_streamed(agent, text, **options)
    streamed.seen = [event async for event in streamed.stream_events()]
    return streamed


MODES = ("plain", "streamed", "sync")


def _in_a_thread(work: Callable[[], Any]) -> Any:
    """Where no loop runs and none is left over: the SDK keeps one of its own per thread."""
    answer: list[Any] = []

    def carry() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            answer.append((True, work()))
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            answer.append((False, error))
        finally:
            loop.close()

    thread = threading.Thread(target=carry)
    thread.start()
    thread.join()
    is_good, outcome = answer[0]
    if not is_good:
        raise outcome
    return outcome


def outputs_in(result: Any) -> list[Any]:
    """The outputs of the tool calls of a run, in order."""
    return [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]


def heard_by(agent: Any) -> list[tuple[str, str]]:
    """The call id and the text of each tool result that the model was given last."""
    last = agent.model.last_call.input
    return [(each["call_id"], text_of(each["output"])) for each in last if each.get("type") == "function_call_output"]


def text_of(output: Any) -> str:
    """What the model receives for a call."""
    if isinstance(output, list):
        (part,) = output
        output = part["text"]
    assert isinstance(output, str), output
    return output


def document_of(output: Any) -> Any:
    """The same as JSON, by a parser that refuses NaN."""
    return loads(text_of(output))


def context_of(tool: FunctionTool | str, sent: str = "{}", context: object = ..., call_id: str = "call-1") -> Any:
    name = tool if isinstance(tool, str) else tool.name
    given: Any = turn() if context is ... else context
    return ToolContext(given, tool_name=name, tool_call_id=call_id, tool_arguments=sent)


async def acall(tool: FunctionTool, sent: Any = None, context: object = ...) -> Any:
    """Call one tool as the runner does, outside any run; ``sent`` is the model's text, or its arguments."""
    from affiant_core.wire import dumps

    text = sent if isinstance(sent, str) else dumps(sent or {})
    return await tool.on_invoke_tool(context_of(tool, text, context), text)


def call(tool: FunctionTool, sent: Any = None, context: object = ...) -> Any:
    return asyncio.run(acall(tool, sent, context))


# --- an MCP server -------------------------------------------------------------------------------------------------


class FakeServer(MCPServer):
    """An MCP server in this process. ``answer`` is what it always says; ``acted`` are the calls it has carried out."""

    def __init__(self, *names: str, answer: str = "done", **options: Any) -> None:
        super().__init__(**options)
        self.names, self.answer = list(names), answer
        self.acted: list[tuple[str, Any]] = []

    @property
    def name(self) -> str:
        return "crm"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any) -> list[MCPTool]:
        schema = {"type": "object", "properties": {"customer_id": {"type": "string"}}}
        described = [{"name": name, "description": "Act.", "inputSchema": schema} for name in self.names]
        return [MCPTool.model_validate(each) for each in described]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.acted.append((tool_name, arguments))
        return CallToolResult(content=[TextContent(type="text", text=self.answer)])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, *_: Any) -> Any: ...
