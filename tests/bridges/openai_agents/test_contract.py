"""What the bridge takes for granted of the SDK, private reads first. A new version that breaks one breaks it here."""

from __future__ import annotations

import asyncio
import inspect
import weakref

import pytest
from agents import Agent, FunctionTool, Handoff, RunContextWrapper, ToolOriginType, function_tool, handoff
from agents.tool import _get_function_tool_invoke_context, get_function_tool_origin
from agents.tool import set_function_tool_failure_error_function as set_formatter
from agents.tool_context import ToolContext
from support.openai_agents import (
    FakeServer,
    Host,
    LimitDesk,
    acall,
    asks,
    call,
    context_of,
    model,
    outputs_in,
    plain_agent,
    run,
)

from affiant_agents_bridge import AffiantAgent


def test_an_agent_tool_names_its_agent_and_its_origin():
    """Private: FunctionTool._agent_instance; and get_function_tool_origin, which agents does not export."""
    agent = plain_agent([])
    tool = agent.as_tool("ask", "Ask.")
    assert tool._agent_instance is agent
    assert get_function_tool_origin(tool).type is ToolOriginType.AGENT_AS_TOOL
    assert get_function_tool_origin(function_tool(lambda: "", name_override="f")).type is ToolOriginType.FUNCTION


def test_an_mcp_tool_names_its_origin():
    """get_function_tool_origin of what MCPUtil makes."""
    from agents.mcp import MCPUtil

    tools = asyncio.run(MCPUtil.get_function_tools(FakeServer("a"), False, RunContextWrapper(None), plain_agent([])))
    assert [get_function_tool_origin(tool).type for tool in tools] == [ToolOriginType.MCP]


def test_a_handoff_names_its_agent():
    """Private: Handoff._agent_ref, a weak reference; none for a handoff that is built by hand."""
    agent = plain_agent([])
    assert isinstance(handoff(agent)._agent_ref, weakref.ref)
    assert handoff(agent)._agent_ref() is agent
    assert Handoff("to", "Go.", {}, None, "Nobody")._agent_ref is None


def test_a_handoff_shows_whether_it_runs_host_code():
    """Private: on_invoke_handoff is a partial over a function that closes over on_handoff."""
    for given in (None, lambda _: None):
        made = handoff(plain_agent([]), on_handoff=given).on_invoke_handoff.args[0]
        assert inspect.getclosurevars(made).nonlocals["on_handoff"] is given


def test_the_formatter_of_failures_stands_inside():
    """Trap 1: without the setter of agents.tool a wrapper gets a text, with it the exception itself."""

    def look() -> str:
        raise ZeroDivisionError

    for formatter, raises in ((..., False), (None, True)):
        tool = function_tool(look)
        if formatter is None:
            set_formatter(tool, None)
        outcome = asyncio.run(_outcome(tool))
        assert isinstance(outcome, ZeroDivisionError if raises else str)


async def _outcome(tool):
    try:
        return await acall(tool)
    except ZeroDivisionError as error:
        return error


def test_the_tools_are_collected_at_each_turn():
    """Seam 8, "get_all_tools is the runner's choke point": called before every request to the model."""
    seen = []

    class Counting(Agent):
        async def get_all_tools(self, run_context):
            seen.append(1)
            return await super().get_all_tools(run_context)

    tool = function_tool(lambda: "text", name_override="look")
    agent = Counting(name="A", tools=[tool], model=model(asks(("look", {})), asks(("look", {}), first=2)))
    for mode in ("plain", "streamed"):
        seen.clear()
        agent.model = model(asks(("look", {})), asks(("look", {}), first=2))
        run(agent, mode=mode)
        assert len(seen) == len(agent.model.calls) == 3


def test_the_string_that_replaces_a_result_is_all_that_is_seen():
    """Seam 7: a text crosses untouched, to the model and to the items, as the very object."""
    tool = Host(LimitDesk()).bind()["find_customer"]
    agent = plain_agent([tool], asks(("find_customer", {"customer_id": "c-1"})))
    (output,) = outputs_in(run(agent))
    (heard,) = [each for each in agent.model.last_call.input if each.get("type") == "function_call_output"]
    assert type(output) is str
    assert heard["output"] == output


def test_the_annotation_gives_the_invoker_a_tool_context():
    """Trap 3: the SDK reads the first parameter's annotation, also of a callable object with postponed annotations."""
    tool = Host(LimitDesk()).bind()["find_customer"]
    context = context_of(tool)
    assert _get_function_tool_invoke_context(tool, context) is context
    assert isinstance(context, ToolContext)
    assert weakref.ref(context)() is context


@pytest.mark.parametrize("sent", ['{"n": "x"}', "{}"])
def test_what_the_sdk_says_of_arguments_that_do_not_fit(sent):
    """The words by which the seam knows a refusal of @function_tool, raised when no formatter is in the way."""
    from agents import ModelBehaviorError

    def look(n: int) -> str:
        return str(n)

    tool = set_formatter(function_tool(look), None)
    with pytest.raises(ModelBehaviorError, match=r"^Invalid JSON input for tool look"):
        call(tool, sent)


def test_what_the_sdk_makes_of_objects_is_why_envelopes_become_text():
    """Seam 7, "Everything else is str()": a dictionary is written as a Python repr."""
    tool = function_tool(lambda: {"kind": "write"}, name_override="look")
    agent = plain_agent([tool], asks(("look", {})))
    run(agent)
    (heard,) = [each for each in agent.model.last_call.input if each.get("type") == "function_call_output"]
    assert heard["output"] == "{'kind': 'write'}"


def test_the_agent_is_a_dataclass_of_the_sdks_own():
    """clone() is dataclasses.replace, so a field of a subclass is carried over; the runner asks nothing of its type."""
    host = Host()
    agent = AffiantAgent(name="A", affiant=host.affiant)
    assert isinstance(agent, Agent)
    assert agent.clone(name="B").affiant is host.affiant
    assert "affiant" not in repr(agent)


def test_a_function_tools_class_has_no_invoker_of_its_own():
    """on_invoke_tool is an attribute of each tool; a class that defines one could run something else."""
    assert "on_invoke_tool" not in vars(FunctionTool)
    assert "on_invoke_tool" in vars(function_tool(lambda: "", name_override="f"))
