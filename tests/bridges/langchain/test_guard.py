"""GuardMiddleware: the agent of create_agent refuses whatever the gate does not stand in."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import get_runtime
from langgraph.types import Command
from pydantic import BaseModel
from support.gate import turn
from support.langchain import (
    AsyncLimitDesk,
    Host,
    LimitDesk,
    ScriptedModel,
    agent_of,
    asks,
    call,
    config,
    document_of,
    graph_of,
    newer,
    question,
    results_in,
)

from affiant_core import CoverageCategory, WireupInvalid, WiringError
from affiant_core.errors import RefusalCode
from affiant_langchain_bridge import bind, wrap
from affiant_langchain_bridge.guard import GuardMiddleware

LIMIT = {"customer_id": "c-1", "limit": 500}
BOTH = pytest.mark.parametrize("asynchronous", [False, True])


def run(agent, *, asynchronous, cfg=None, **more):
    """One turn, in either way."""
    if asynchronous:
        return asyncio.run(agent.ainvoke(question(), cfg or config(), **more))
    return agent.invoke(question(), cfg or config(), **more)


def guarded(host, tools, *script, before=(), after=(), **options):
    """A guarded agent and its model, which remembers what it heard."""
    model = ScriptedModel(script=list(script), heard=[], offered=[])
    stack = [*before, GuardMiddleware(host.affiant), *after]
    return create_agent(model, tools, middleware=stack, **options), model


def bound(host):
    return list(host.bind().values())


def raw(name="raw_tool"):
    """A tool that is not bridged, and the calls that its body had."""
    calls = []

    def body(customer_id: str) -> str:
        calls.append(customer_id)
        return "acted"

    return StructuredTool.from_function(body, name=name, description="Act."), calls


def refused(agent, *, asynchronous):
    """What the wiring error of one turn says, by subject."""
    with pytest.raises(WiringError) as error:
        run(agent, asynchronous=asynchronous)
    return {fault.subject: fault for fault in error.value.faults}


class Passing(AgentMiddleware):
    """A middleware that changes nothing, in each of its four hooks."""

    def wrap_model_call(self, request, handler):
        return handler(request)

    async def awrap_model_call(self, request, handler):
        return await handler(request)

    def wrap_tool_call(self, request, handler):
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        return await handler(request)


class OnlyModel(AgentMiddleware):
    """One that stands around the model only."""

    wrap_model_call = Passing.wrap_model_call
    awrap_model_call = Passing.awrap_model_call


class OnlyTool(AgentMiddleware):
    """One that stands around tools only."""

    wrap_tool_call = Passing.wrap_tool_call
    awrap_tool_call = Passing.awrap_tool_call


class Swap(Passing):
    """Puts another tool in the place of the one that was called."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def wrap_tool_call(self, request, handler):
        return handler(request.override(tool=self.other))

    async def awrap_tool_call(self, request, handler):
        return await handler(request.override(tool=self.other))


class Offer(Passing):
    """Offers the model one more thing, and runs it if it is a tool."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def wrap_model_call(self, request, handler):
        return handler(request.override(tools=[*request.tools, self.other]))

    async def awrap_model_call(self, request, handler):
        return await handler(request.override(tools=[*request.tools, self.other]))

    def _found(self, request):
        return request.override(tool=self.other) if request.tool_call["name"] == self.other.name else request

    def wrap_tool_call(self, request, handler):
        return handler(self._found(request))

    async def awrap_tool_call(self, request, handler):
        return await handler(self._found(request))


# --- what passes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
@pytest.mark.parametrize("before", [(), (Passing,), (ToolRetryMiddleware, TodoListMiddleware)])
@BOTH
def test_bridged_tools_pass_and_are_filed_once(before, desk, asynchronous):
    """Measured, "Never gate in both places: the proposal was filed twice": with a guard there is one row."""
    host = Host(desk())
    stack = [each() for each in before]
    for each in stack:
        if getattr(each, "tools", ()):
            each.tools = host.wrap(*each.tools)
    agent, model = guarded(host, bound(host), asks(("set_limit", LIMIT)), before=stack)
    (message,) = results_in(run(agent, asynchronous=asynchronous))
    assert document_of(message)["entryId"] == host.row().entry_id
    assert len(model.heard) == 2


@BOTH
def test_a_stream_is_the_same_behind_a_guard(asynchronous):
    """C20, "plain and streamed; sync and async": one tool message in the stream of a guarded agent, and one row."""
    host = Host(LimitDesk())
    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)))

    async def collect():
        return [chunk async for chunk in agent.astream(question(), config(), stream_mode="updates")]

    chunks = asyncio.run(collect()) if asynchronous else list(agent.stream(question(), config(), stream_mode="updates"))
    updates = [update for chunk in chunks for update in chunk.values() if update]
    (message,) = [each for update in updates for each in results_in(update)]
    assert document_of(message)["entryId"] == host.row().entry_id


@BOTH
def test_a_middlewares_own_tool_passes_when_it_is_wrapped(asynchronous):
    """C19, "undeclared tool on the agent": a middleware's tool is one; wrapped, it works, its Command included."""
    host, todo = Host(LimitDesk()), TodoListMiddleware()
    todo.tools = host.wrap(*todo.tools)
    todos = [{"content": "raise it", "status": "pending"}]
    agent, _ = guarded(host, bound(host), asks(("write_todos", {"todos": todos})), before=[todo])
    state = run(agent, asynchronous=asynchronous)
    assert state["todos"] == todos
    assert len(results_in(state)) == 1


@newer
@BOTH
def test_a_bridged_tool_that_a_middleware_adds_passes(asynchronous):
    """LangChain, tools added at run time: what counts is that the tool is bridged, not where it comes from."""
    host = Host(LimitDesk())
    late, calls = raw("late")
    agent, _ = guarded(host, bound(host), asks(("late", {"customer_id": "c-1"})), before=[Offer(host.wrap_one(late))])
    assert [message.content for message in results_in(run(agent, asynchronous=asynchronous))] == ["acted"]
    assert calls == ["c-1"]


class Summary(BaseModel):
    """What the agent is to hand over in the end."""

    text: str


@BOTH
def test_the_output_tool_of_a_response_format_passes(asynchronous):
    """Measured, "Not seen: ToolStrategy output tools": they are the shape of an answer and run no body."""
    host = Host(LimitDesk())
    script = [asks(("set_limit", LIMIT)), asks(("Summary", {"text": "proposed"}))]
    agent, _ = guarded(host, bound(host), *script, response_format=ToolStrategy(Summary))
    state = run(agent, asynchronous=asynchronous)
    assert state["structured_response"] == Summary(text="proposed")
    assert host.row().entry_id in str(results_in(state)[0].content)


@pytest.mark.parametrize("category", list(CoverageCategory))
@BOTH
def test_a_hosted_tool_that_the_host_named_passes(category, asynchronous):
    """CV-4: a tool that no gate can stand in front of passes only by name and for its own reason."""
    host = Host(LimitDesk(), uncovered={"web_search": category})
    if category is CoverageCategory.NO_EXECUTE:
        host.affiant.declare_read("web_search")
    agent, model = guarded(host, [*bound(host), {"type": "web_search"}], AIMessage("found"))
    if category is CoverageCategory.PROVIDER_EXECUTED:
        run(agent, asynchronous=asynchronous)
        assert len(model.heard) == 1
    else:
        assert set(refused(agent, asynchronous=asynchronous)) == {"tool 'web_search'"}
        assert model.heard == []


@BOTH
def test_a_guard_and_a_person_before_the_call(asynchronous):
    """Measured, "They compose: HITL pauses a turn, filing does not": with a guard behind the middleware too."""
    host = Host(LimitDesk())
    ask = HumanInTheLoopMiddleware(interrupt_on={"set_limit": True})
    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), before=[ask], checkpointer=InMemorySaver())
    cfg = config(thread_id="1")
    run(agent, asynchronous=asynchronous, cfg=cfg)
    assert host.rows() == ()
    answer = Command(resume={"decisions": [{"type": "approve"}]})
    state = asyncio.run(agent.ainvoke(answer, cfg)) if asynchronous else agent.invoke(answer, cfg)
    assert document_of(results_in(state)[0])["entryId"] == host.row().entry_id


# --- what is refused before the model is called --------------------------------------------------------------------


@BOTH
def test_all_that_is_not_gated_is_told_at_once(asynchronous):
    """C19, "refuses and lists all offenders at once": before the model is called, and no body runs."""
    host, stranger = Host(LimitDesk()), Host()
    mine, calls = raw()
    other, _ = raw("of_another_host")

    def plain(customer_id: str) -> str:
        """Act."""
        return customer_id

    hosted = [
        {"type": "web_search"},
        {"type": "mcp", "server_label": "crm", "server_url": "https://example.test"},
        {"type": "mcp_toolset", "name": "erp"},
        {"type": "function", "function": {"name": "described", "parameters": {"type": "object", "properties": {}}}},
        {"name": "shown", "input_schema": {"type": "object", "properties": {}}},
    ]
    tools = [*bound(host), mine, plain, stranger.wrap_one(other), *hosted]
    agent, model = guarded(host, tools, asks(("raw_tool", {"customer_id": "c-1"})), before=[TodoListMiddleware()])
    told = refused(agent, asynchronous=asynchronous)
    ungated = {"raw_tool", "plain", "of_another_host", "write_todos"}
    categories = {
        "web_search": "provider-executed",
        "crm": "hosted-mcp",
        "erp": "hosted-mcp",
        "described": "no-execute",
        "shown": "no-execute",
    }
    assert set(told) == {f"tool {name!r}" for name in ungated | set(categories)}
    for name in ungated:
        assert told[f"tool {name!r}"].code is RefusalCode.WIREUP_INVALID
    for name, category in categories.items():
        assert told[f"tool {name!r}"].code is RefusalCode.COVERAGE_REFUSED
        assert category in told[f"tool {name!r}"].fault
    assert (calls, model.heard, host.rows()) == ([], [], ())
    assert {each["coverage.category"] for each in host.events.of("coverage.refused")} == set(categories.values())


@pytest.mark.parametrize("extra", ["a tool", "a dictionary"])
@BOTH
def test_what_a_middleware_adds_is_seen(extra, asynchronous):
    """C19: the guard stands behind every middleware, so it sees what each of them offers the model."""
    host = Host(LimitDesk())
    added = raw()[0] if extra == "a tool" else {"type": "web_search"}
    agent, model = guarded(host, bound(host), AIMessage("hello"), before=[Offer(added)])
    assert len(refused(agent, asynchronous=asynchronous)) == 1
    assert model.heard == []


@BOTH
def test_tools_in_the_settings_of_a_call_are_seen(asynchronous):
    """C19, "provider-hosted tool": one that goes to the provider past the list of tools is a way around the gate."""
    host = Host(LimitDesk())

    class Settings(OnlyModel):
        def wrap_model_call(self, request, handler):
            return handler(request.override(model_settings={"tools": [{"type": "web_search"}]}))

        async def awrap_model_call(self, request, handler):
            return await handler(request.override(model_settings={"tools": [{"type": "web_search"}]}))

    agent, model = guarded(host, bound(host), AIMessage("hello"), before=[Settings()])
    assert set(refused(agent, asynchronous=asynchronous)) == {"tool 'web_search'"}
    assert model.heard == []


@BOTH
def test_tools_of_a_model_that_was_given_them_before_are_seen(asynchronous):
    """C19, the same for a model to which a provider's tool was bound before the agent was made."""
    host = Host(LimitDesk())
    model = ScriptedModel(script=[AIMessage("hello")], heard=[], offered=[])
    given = model.bind(tools=[{"type": "web_search"}])
    agent = create_agent(given, bound(host), middleware=[GuardMiddleware(host.affiant)])
    assert set(refused(agent, asynchronous=asynchronous)) == {"tool 'web_search'"}
    assert model.heard == []


@BOTH
def test_a_hosted_tool_with_the_name_of_a_bridged_one(asynchronous):
    """C18, "two tools with one name": accepted by name or not, a model could not tell the two apart."""
    host = Host(LimitDesk(), uncovered={"find-customer": CoverageCategory.PROVIDER_EXECUTED})
    agent, _ = guarded(host, [*bound(host), {"type": "find-customer"}], AIMessage("hello"))
    told = refused(agent, asynchronous=asynchronous)
    assert set(told) == {"tools 'find_customer' and 'find-customer'"}


# --- what is refused before a body ---------------------------------------------------------------------------------


@BOTH
def test_a_tool_in_the_place_of_another_is_refused(asynchronous):
    """Measured, "override(tool=evil)": the body of the other tool does not run, and the model is told nothing."""
    host = Host(LimitDesk())
    evil, calls = raw("set_limit")
    agent, model = guarded(host, bound(host), asks(("set_limit", LIMIT)), before=[Swap(evil)])
    assert set(refused(agent, asynchronous=asynchronous)) == {"tool 'set_limit'"}
    assert (calls, len(model.heard), host.rows(), host.tools.calls) == ([], 1, (), [])


@BOTH
def test_a_bridged_tool_in_the_place_of_another_is_refused_too(asynchronous):
    """The same of a tool whose name does not match the call: no read is answered by a write."""
    host = Host(LimitDesk())
    tools = host.bind()
    agent, _ = guarded(
        host, bound(host), asks(("find_customer", {"customer_id": "c-1"})), before=[Swap(tools["set_limit"])]
    )
    told = refused(agent, asynchronous=asynchronous)
    assert "'find_customer'" in told["tool 'set_limit'"].fault
    assert (host.rows(), host.tools.calls) == ((), [])


@BOTH
def test_a_name_that_no_tool_has_is_answered(asynchronous):
    """DECISIONS 13, "A fault of the model's call (unknown tool) is a ToolError": the turn goes on, no guessing."""
    host = Host(LimitDesk())
    agent, model = guarded(host, bound(host), asks(("set-limit", LIMIT), ("find_customer", {"customer_id": "c-1"})))
    unknown, read = results_in(run(agent, asynchronous=asynchronous))
    assert (unknown.tool_call_id, unknown.status) == ("call-1", "error")
    told = document_of(unknown)
    assert (told["kind"], told["code"], told["retryable"]) == ("error", "VALIDATION_FAILED", False)
    assert "set-limit" not in told["message"]
    assert document_of(read)["kind"] == "read"
    assert (host.rows(), len(model.heard)) == ((), 2)


TRUNCATED = '{"customer_id": "c-1", "limit": 50'


def broken(name="set_limit", call_id="call-9"):
    """What a provider's package makes of a call whose arguments are cut off."""
    error = "Unterminated object at char 33"
    return {"type": "invalid_tool_call", "name": name, "args": TRUNCATED, "id": call_id, "error": error}


@pytest.mark.parametrize("with_others", [False, True])
@pytest.mark.parametrize("name", ["set_limit", "no_such_tool"])
@BOTH
def test_arguments_that_are_no_json_are_answered(name, with_others, asynchronous):
    """C01, "no row, exactly one tool result for the call, the turn goes on": also beside calls that can run."""
    host = Host(LimitDesk())
    ask = HumanInTheLoopMiddleware(interrupt_on={"set_limit": True})  # it looks at every message of the model, too
    calls = [call("find_customer", {"customer_id": "c-1"})] if with_others else []
    script = AIMessage("", tool_calls=calls, invalid_tool_calls=[broken(name)])
    agent, model = guarded(host, bound(host), script, before=[ask], checkpointer=InMemorySaver())
    state = run(agent, asynchronous=asynchronous, cfg=config(thread_id="1"))
    told = {message.tool_call_id: document_of(message) for message in results_in(state)}
    assert set(told) == ({"call-1", "call-9"} if with_others else {"call-9"})
    assert (told["call-9"]["code"], told["call-9"]["retryable"]) == ("VALIDATION_FAILED", False)
    assert "c-1" not in str(told["call-9"])
    assert "char" not in str(told["call-9"])
    assert state["messages"][-1].content == "done"
    assert (host.rows(), len(model.heard)) == ((), 2)
    assert "set_limit" not in [each for each, _ in host.tools.calls]


@BOTH
def test_a_model_that_mends_its_arguments_is_filed(asynchronous):
    """C01, "the turn goes on": the second attempt of the model is a call like any other."""
    host = Host(LimitDesk())
    script = [AIMessage("", invalid_tool_calls=[broken()]), asks(("set_limit", LIMIT))]
    agent, _ = guarded(host, bound(host), *script)
    first, second = results_in(run(agent, asynchronous=asynchronous))
    assert (first.status, document_of(second)["entryId"]) == ("error", host.row().entry_id)


@BOTH
def test_a_broken_call_without_an_id_cannot_be_answered(asynchronous):
    """C01: a result belongs to a call by its id; without one LangChain's own behaviour stays, and nothing is filed."""
    host = Host(LimitDesk())
    agent, model = guarded(host, bound(host), AIMessage("", invalid_tool_calls=[broken(call_id=None)]))
    state = run(agent, asynchronous=asynchronous)
    assert (results_in(state), host.rows(), len(model.heard)) == ([], (), 1)


# --- last ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Passing, OnlyModel, OnlyTool])
@pytest.mark.parametrize("many", [1, 2])
@BOTH
def test_a_guard_that_is_not_last_refuses(kind, many, asynchronous):
    """Measured, "Guard not last": it could not see what stands behind it, so it refuses before the tool's body."""
    host = Host(LimitDesk())
    behind = [kind(), type("Another", (kind,), {})()][:many]
    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), after=behind)
    with pytest.raises(WireupInvalid, match="last"):
        run(agent, asynchronous=asynchronous)
    assert (host.rows(), host.tools.calls) == ((), [])


@BOTH
def test_a_middleware_that_wraps_nothing_may_stand_behind_it(asynchronous):
    """The same: one that only looks at the state stands in no call, so its place does not matter."""
    host = Host(LimitDesk())

    class Looking(AgentMiddleware):
        def after_model(self, state, runtime):
            return None

    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), after=[Looking()])
    run(agent, asynchronous=asynchronous)
    assert host.row().entry_id


@BOTH
def test_functions_as_middleware(asynchronous):
    """LangChain, decorators that make a middleware of a function: before the guard they work, behind it they do not."""
    host = Host(LimitDesk())
    if asynchronous:

        @wrap_tool_call
        async def passing(request, handler):
            return await handler(request)

        @wrap_model_call
        async def thinking(request, handler):
            return await handler(request)
    else:

        @wrap_tool_call
        def passing(request, handler):
            return handler(request)

        @wrap_model_call
        def thinking(request, handler):
            return handler(request)

    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), before=[passing, thinking])
    run(agent, asynchronous=asynchronous)
    assert host.row().entry_id
    for behind in (passing, thinking):
        agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), after=[behind])
        with pytest.raises(WireupInvalid, match="last"):
            run(agent, asynchronous=asynchronous)


# --- a sub-agent ---------------------------------------------------------------------------------------------------


def clerk_of(inner, *, asynchronous):
    """An agent as a tool."""

    @tool("clerk")
    def clerk(task: str) -> str:
        """Ask the clerk."""
        return inner.invoke(question(task))["messages"][-1].content

    async def aclerk(task: str) -> str:
        """Ask the clerk."""
        return (await inner.ainvoke(question(task)))["messages"][-1].content

    return StructuredTool.from_function(coroutine=aclerk, name="clerk") if asynchronous else clerk


@BOTH
def test_the_own_tool_of_a_sub_agent_is_refused_by_its_guard(asynchronous):
    """C19, "a sub-agent's own tool": the refusal in the inner agent reaches the host through the outer one."""
    host = Host()
    acting, calls = raw()
    inner, heard = guarded(host, [acting], asks(("raw_tool", {"customer_id": "c-1"})))
    clerk = host.wrap_one(clerk_of(inner, asynchronous=asynchronous))
    outer, _ = guarded(host, [clerk], asks(("clerk", {"task": "act"})))
    assert set(refused(outer, asynchronous=asynchronous)) == {"tool 'raw_tool'"}
    assert (calls, heard.heard) == ([], [])


@BOTH
def test_a_sub_agent_without_a_guard_is_not_seen_into(asynchronous):
    """Page, "Limits": an agent that is a tool is a body like any other, so it needs a guard of its own."""
    host = Host()
    acting, calls = raw()
    inner = agent_of([acting], asks(("raw_tool", {"customer_id": "c-1"})))
    clerk = host.wrap_one(clerk_of(inner, asynchronous=asynchronous))
    outer, _ = guarded(host, [clerk], asks(("clerk", {"task": "act"})))
    run(outer, asynchronous=asynchronous)
    assert calls == ["c-1"]


@BOTH
def test_a_guard_in_each_agent_files_once(asynchronous):
    """C20, "agent-as-tool whose tool is set_limit": one row with a guard inside and one outside."""
    host = Host(LimitDesk())
    inner, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)))
    other = Host(docket=host.store)
    clerk = other.wrap_one(clerk_of(inner, asynchronous=asynchronous))
    outer, _ = guarded(other, [clerk], asks(("clerk", {"task": "raise it"})))
    assert len(results_in(run(outer, asynchronous=asynchronous))) == 1
    assert len(host.rows()) == 1


# --- the turn in a runtime's context -------------------------------------------------------------------------------


@newer
@BOTH
def test_the_turn_can_come_from_the_runtimes_context(asynchronous):
    """Seam, "Hosts using context=": turn_of reads LangGraph's runtime, in an agent and in one that is its tool."""
    host = Host(LimitDesk())

    def turn_of(_):
        return get_runtime().context

    inner, _ = guarded(host, bind(host.affiant, turn_of=turn_of), asks(("set_limit", LIMIT)))
    other = Host(docket=host.store)
    other.affiant.declare_read("clerk")
    outer, _ = guarded(
        other,
        wrap([clerk_of(inner, asynchronous=asynchronous)], other.affiant, turn_of=turn_of),
        asks(("clerk", {"task": "raise it"})),
    )
    run(outer, asynchronous=asynchronous, cfg={}, context=turn())
    assert host.row().conversation_id == turn().conversation_id
    with pytest.raises(WireupInvalid, match="TurnContext"):
        run(outer, asynchronous=asynchronous, cfg={})


# --- elsewhere -----------------------------------------------------------------------------------------------------


@newer
@BOTH
def test_a_guard_around_the_tool_node_of_a_graph(asynchronous):
    """LangGraph, ToolNode(wrap_tool_call=...): in a graph of the host's own the same guard refuses before the body."""
    host = Host(LimitDesk())
    acting, calls = raw()
    guard = GuardMiddleware(host.affiant)
    graph = graph_of(
        [*bound(host), acting],
        wrap_tool_call=guard.wrap_tool_call,
        awrap_tool_call=guard.awrap_tool_call,
        handle_tool_errors=False,
    )

    def wanted(name, arguments):
        return {"messages": [AIMessage("", tool_calls=[call(name, arguments)])]}

    def go(given):
        return asyncio.run(graph.ainvoke(given, config())) if asynchronous else graph.invoke(given, config())

    (message,) = results_in(go(wanted("set_limit", LIMIT)))
    assert document_of(message)["entryId"] == host.row().entry_id
    with pytest.raises(WiringError, match="raw_tool"):
        go(wanted("raw_tool", {"customer_id": "c-1"}))
    assert calls == []


@BOTH
def test_a_middleware_that_makes_text_of_every_failure_runs_no_body(asynchronous):
    """Page, "Errors": such a middleware in front makes the host's mistake quiet; the body still does not run."""
    host = Host(LimitDesk())
    evil, calls = raw("set_limit")
    retry = ToolRetryMiddleware(max_retries=0)
    agent, _ = guarded(host, bound(host), asks(("set_limit", LIMIT)), before=[retry, Swap(evil)])
    (message,) = results_in(run(agent, asynchronous=asynchronous))
    assert message.status == "error"
    assert (calls, host.rows()) == ([], ())


def test_a_guard_takes_an_affiant():
    """CV-1: anything else is told when the guard is made, not in the first turn."""
    with pytest.raises(TypeError, match="Affiant"):
        GuardMiddleware(object())


def test_the_bridge_needs_no_langchain_and_the_guard_says_that_it_does():
    """Issue, "the optional [langchain] extra": the import of the bridge does without it, the guard's names it."""
    program = """
import sys
class NotThere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"langchain", "langgraph"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotThere())
from importlib import metadata
known = metadata.version
def version(name):
    if name == "langchain":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
import affiant_langchain_bridge
assert not {"langchain", "langgraph"} & set(sys.modules)
from affiant_core import WireupInvalid
try:
    import affiant_langchain_bridge.guard
except WireupInvalid as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "affiant-langchain-bridge[langchain] needs langchain, which is not installed" in done.stdout


def test_a_version_of_langchain_that_was_not_tested_is_refused(monkeypatch):
    """Bad input, "a framework version outside the range": the guard checks it before it imports LangChain."""
    monkeypatch.setattr("affiant_core.bridge.wiring.metadata.version", lambda _: "2.0.0")
    monkeypatch.delitem(sys.modules, "affiant_langchain_bridge.guard")
    with pytest.raises(WireupInvalid, match=r"langchain >=1\.0,<2; 2\.0\.0 is installed"):
        import affiant_langchain_bridge.guard  # noqa: F401


@BOTH
def test_an_output_tool_with_a_bound_tools_name_is_refused(asynchronous):
    """C18: a model that calls the one would be answered by the other, and a proposal would be taken for the answer."""

    class SetLimit(BaseModel):
        """Say what the limit is."""

        customer_id: str

    SetLimit.__name__ = "set_limit"
    host = Host(LimitDesk())
    agent, model = guarded(host, bound(host), response_format=ToolStrategy(SetLimit))
    with pytest.raises(WiringError, match="could not tell their names apart"):
        run(agent, asynchronous=asynchronous)
    assert model.heard == []
