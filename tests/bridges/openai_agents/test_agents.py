"""Agents: the audit, handoffs, agents as tools, MCP servers, the recheck of each turn, the end of a turn."""

from __future__ import annotations

import asyncio
import copy
import dataclasses

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    Handoff,
    StopAtTools,
    ToolTimeoutError,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents import ToolsToFinalOutputResult as EndOfTurn
from agents.sandbox import SandboxAgent
from support.gate import turn
from support.openai_agents import (
    FIND,
    LIMIT,
    MODES,
    PROPOSAL,
    SECRET,
    AsyncLimitDesk,
    FakeServer,
    Host,
    LimitDesk,
    asks,
    document_of,
    heard_by,
    model,
    outputs_in,
    plain_agent,
    proposed,
    run,
)

from affiant_agents_bridge import AffiantAgent, agent_tool, audit, bind, wrap
from affiant_core import StandingOrder, WireupInvalid, WiringError
from affiant_core.errors import RefusalCode
from affiant_core.vocabulary import CoverageCategory

EVERY = pytest.mark.parametrize("mode", MODES)
DESKS = pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])


def raw(name="raw", body=PROPOSAL):
    return function_tool(lambda: body, name_override=name, description_override="Do it.")


def faults_of(agent, host, **options):
    with pytest.raises(WiringError) as refused:
        audit(agent, host.affiant, **options)
    return {fault.subject: fault.fault for fault in refused.value.faults}


# --- the audit -----------------------------------------------------------------------------------------------------


def test_agents_with_nothing_but_wired_tools_pass():
    """Seam 10.6: plain agents, handoffs to one another in a circle, agents as tools; the audit comes to an end."""
    host = Host(LimitDesk())
    first, second = plain_agent(bind(host.affiant)), plain_agent([])
    second.name = "Second"
    first.handoffs, second.handoffs = [second, handoff(first, tool_name_override="back")], [first]
    first.tools.append(agent_tool(second, host.affiant, name="ask_second"))
    audit(first, host.affiant)
    audit(second, host.affiant)


def test_everything_that_is_wrong_with_a_team_is_told_at_once():
    """Issue, "audit of agents, handoffs, as_tool, MCP servers, duplicates, hosted tools": one error with them all."""
    host, other = Host(LimitDesk()), Host(LimitDesk())
    host.affiant.declare_read("declared")
    inner = plain_agent([raw("hidden")])
    inner.name = "Inner"
    target = plain_agent([WebSearchTool()], mcp_servers=[FakeServer("act")], prompt={"id": "p"})
    target.name = "Target"
    renamed = copy.copy(host.bind()["find_customer"])
    renamed.name = "renamed"
    limited = dataclasses.replace(host.bind()["set_limit"], timeout_seconds=1)
    twice = [host.bind()["find_customer"], raw("find_customer")]
    tools = [raw(), raw("declared"), *twice, renamed, limited, inner.as_tool("ask", "Ask."), {"type": "x"}]
    agent = plain_agent([*tools, *(tool for tool in bind(other.affiant) if tool.name == "set_limit")])
    by_hand = Handoff("to_nobody", "Go.", {}, None, "Nobody")
    agent.handoffs = [target, by_hand, handoff(inner, on_handoff=lambda _: None)]
    told = faults_of(agent, host)
    assert told == {
        "tool 'raw'": "it is not declared, so nobody can tell whether it writes.",
        "tool 'declared'": "it is not wired, so it would run past the gate.",
        "tool 'find_customer'": "it is not wired, so it would run past the gate.",
        "tools 'find_customer' and 'find_customer'": "a model could not tell their names apart.",
        "tools 'set_limit' and 'set_limit'": "a model could not tell their names apart.",
        "tool 'renamed'": told["tool 'renamed'"],
        "tool 'set_limit'": told["tool 'set_limit'"],
        "tool 'ask'": told["tool 'ask'"],
        "tool 'dict'": "it is not a tool of the SDK.",
        "tool 'hidden'": "it is not declared, so nobody can tell whether it writes.",
        "tool 'web_search'": told["tool 'web_search'"],
        "tool 'prompt'": told["tool 'prompt'"],
        "agent 'Target'": "it has MCP servers, and nobody wires their tools.",
        "handoff 'to_nobody'": "nobody can tell where it leads to.",
        "handoff 'transfer_to_inner'": told["handoff 'transfer_to_inner'"],
    }
    with pytest.raises(WiringError) as refused:
        audit(agent, host.affiant)
    every = [(fault.subject, fault.fault) for fault in refused.value.faults]
    assert ("tool 'set_limit'", "it is wired to another Affiant.") in every
    assert any("time limit after it was wired" in fault for _, fault in every)
    assert any(fault == "it was wired as 'find_customer' and renamed." for _, fault in every)
    assert any(fault.code is RefusalCode.COVERAGE_REFUSED for fault in refused.value.faults)


def test_what_runs_at_the_provider_may_be_named():
    """CV-4, "declared uncovered by name": the search, and the prompt with whatever tools it brings."""
    named = {"web_search": CoverageCategory.PROVIDER_EXECUTED, "prompt": CoverageCategory.PROVIDER_EXECUTED}
    audit(plain_agent([WebSearchTool()], prompt={"id": "p"}), Host(uncovered=named).affiant)


def test_code_of_a_handoff_has_to_be_acknowledged():
    """Seam 8, "on_handoff is host code fed model arguments, outside any tool seam": named, or refused."""
    host = Host()
    quiet = plain_agent([], handoffs=[handoff(plain_agent([]))])
    audit(quiet, host.affiant)
    loud = plain_agent([], handoffs=[handoff(plain_agent([]), on_handoff=lambda _: None)])
    audit(loud, host.affiant, acknowledged=["transfer_to_plain"])
    assert set(faults_of(loud, host, acknowledged=["another"])) == {"handoff 'transfer_to_plain'"}
    replaced = handoff(plain_agent([]))
    replaced.on_invoke_handoff = lambda *_: None
    assert set(faults_of(plain_agent([], handoffs=[replaced]), host)) == {"handoff 'transfer_to_plain'"}


def test_settings_changed_after_wiring_are_seen():
    """Traps 4 to 6: what would not have been wired is refused when it was put on the wired tool afterwards."""
    host = Host(LimitDesk())
    schema = {"type": "object", "properties": {}}
    changes = {"needs_approval": True, "output_json_schema": schema, "timeout_seconds": 1.0}
    for name, value in changes.items():
        tool = dataclasses.replace(host.bind()["set_limit"], **{name: value})
        assert set(faults_of(plain_agent([tool]), host)) == {"tool 'set_limit'"}


def test_an_agent_that_collects_tools_itself_is_refused():
    """Seam 8, "SandboxAgent injects capability tools at run time", and any class that overrides the collection."""

    class Own(AffiantAgent):
        async def get_all_tools(self, run_context):
            return [*await super().get_all_tools(run_context), raw()]

    host = Host()
    for kind, made in {
        "SandboxAgent": lambda: audit(SandboxAgent(name="Box"), host.affiant),
        "Own": lambda: Own(name="Box", affiant=host.affiant),
    }.items():
        with pytest.raises(WiringError, match=f"its class '{kind}' collects tools itself"):
            made()


def test_names_of_tools_and_handoffs_are_one_namespace():
    """C18: a model sees a handoff as a tool, so the two must be told apart as well."""
    host = Host()
    host.affiant.declare_read("transfer_to_plain")
    (tool,) = wrap([raw("transfer_to_plain")], host.affiant)
    assert set(faults_of(plain_agent([tool], handoffs=[plain_agent([])]), host)) == {
        "tools 'transfer_to_plain' and 'transfer_to_plain'"
    }


# --- an agent that looks after itself ------------------------------------------------------------------------------


def test_an_affiant_agent_is_audited_when_it_is_made():
    """CV-1, "the wiring is checked at start-up": making the agent raises, and clone() makes another checked one."""
    host = Host(LimitDesk())
    with pytest.raises(WiringError, match="not declared"):
        AffiantAgent(name="Clerk", tools=[raw()], affiant=host.affiant)
    clone = host.agent().clone(name="Other")
    assert (type(clone), clone.affiant) == (AffiantAgent, host.affiant)
    with pytest.raises(WiringError, match="provider"):
        clone.clone(tools=[WebSearchTool()])
    with pytest.raises(WiringError, match="another Affiant"):
        AffiantAgent(name="Clerk", handoffs=[host.agent()], affiant=Host().affiant)


class Smuggler(AgentHooks):
    """Adds a tool when the agent starts."""

    def __init__(self, tool):
        self.tool = tool

    async def on_start(self, context, agent):
        agent.tools.append(self.tool)


@EVERY
@pytest.mark.parametrize("tool", [raw, WebSearchTool])
def test_a_tool_that_comes_late_is_refused_before_the_model_is_asked(tool, mode):
    """Seam 8, "AgentHooks.on_start can add tools": the recheck of the turn raises, and no model and no body has run."""
    desk = LimitDesk()
    agent = Host(desk).agent(asks(("set_limit", LIMIT)), hooks=Smuggler(tool()))
    with pytest.raises(WireupInvalid, match="fault"):
        run(agent, mode=mode)
    assert (desk.calls, agent.model.calls) == ([], ())


def test_a_change_after_the_first_turn_is_refused_at_the_second():
    """Seam 10.7: get_all_tools runs at each turn, so what a body adds to its agent is found at the next."""
    host = Host()
    agent = None

    @function_tool
    def grow() -> str:
        """Add a tool."""
        agent.tools.append(raw())
        return "grown"

    agent = host.agent(asks(("grow", {})), asks(("raw", {})), tools=host.wrap(grow))
    with pytest.raises(WireupInvalid, match="'raw'"):
        run(agent)
    assert len(agent.model.calls) == 1


# --- handoffs ------------------------------------------------------------------------------------------------------


@EVERY
@DESKS
def test_a_handoff_carries_the_turn(desk, mode):
    """Seam 3, "context flows through handoffs": the second agent's proposal is filed under the same turn."""
    host = Host(desk())
    second = host.agent(asks(("set_limit", LIMIT), first=2))
    second.name = "Second"
    first = host.agent(asks(("transfer_to_second", {})), handoffs=[second])
    result = run(first, turn("ana"), mode=mode)
    assert result.last_agent is second
    assert host.row().requested_by == "ana"
    assert document_of(outputs_in(result)[0])["entryId"] == host.row().entry_id


def test_a_write_beside_a_handoff_is_filed():
    """Seam 6, "A write and a handoff in one turn: the write still runs": through the gate."""
    host = Host(LimitDesk())
    first = host.agent(asks(("set_limit", LIMIT), ("transfer_to_second", {})))
    second = host.agent()
    second.name = "Second"
    first.handoffs.append(second)
    run(first)
    assert len(host.rows()) == 1


# --- agents as tools -----------------------------------------------------------------------------------------------


def team(host, *, script=None, **options):
    """An agent as a tool of another: the outer model asks the inner agent, whose own tool proposes."""
    inner = host.agent(*(script or [asks(("set_limit", LIMIT))]))
    inner.name = "Inner"
    tool = agent_tool(inner, host.affiant, name="ask", description="Ask.", **options)
    return host.agent(asks(("ask", {"input": "raise it"})), tools=[tool]), inner


@EVERY
@DESKS
def test_an_agent_as_a_tool(desk, mode):
    """C20: one row, one result per call, the outer agent told what the inner one said, the turn the outer run's."""
    host = Host(desk())
    outer, inner = team(host)
    result = run(outer, turn("ana"), mode=mode)
    assert [text for _, text in heard_by(outer)] == ["done"]
    assert document_of(heard_by(inner)[0][1])["entryId"] == host.row().entry_id
    assert outputs_in(result) == ["done"]
    if mode == "streamed":
        shown = [event for event in result.seen if getattr(event, "name", None) == "tool_output"]
        assert len(shown) == 1


@EVERY
def test_a_nested_stream_shows_the_replacement(mode):
    """C20, "not doubled in the stream": on_stream hears one output for the inner call, and it is the receipt."""
    host = Host(LimitDesk())
    heard = []
    outer, _ = team(host, on_stream=heard.append)
    run(outer, mode=mode)
    told = [each["event"] for each in heard if getattr(each["event"], "name", None) == "tool_output"]
    assert [document_of(event.item.output)["entryId"] for event in told] == [host.row().entry_id]
    assert SECRET not in repr([getattr(each["event"], "item", None) and each["event"].item.raw_item for each in heard])


@EVERY
def test_a_host_fault_inside_an_agent_comes_out(mode):
    """DECISIONS 12: as_tool would turn it into text for the outer model; agent_tool lets it out of the run."""
    host = Host(LimitDesk())
    outer, _ = team(host)
    with pytest.raises(WireupInvalid, match="CV-2"):
        run(outer, {"not": "a turn"}, mode=mode)
    assert host.rows() == ()


def test_a_failure_inside_an_agent_is_an_error_for_the_outer_model(caplog):
    """C02 for nested runs: what fails inside is a ToolError, its text in the host's log alone."""

    class Broken(Exception):
        pass

    host = Host(LimitDesk())
    outer, inner = team(host)
    inner.model.__init__([Broken("model at 10.0.0.5 refused")])
    result = run(outer)
    told = document_of(outputs_in(result)[0])
    assert (told["kind"], told["code"], told["retryable"]) == ("error", "UNKNOWN", False)
    assert "10.0.0.5" not in told["message"]
    assert "10.0.0.5" in caplog.text
    assert result.final_output == "done"


def test_arguments_that_an_agent_tool_cannot_read_are_an_error():
    """C01 for agents as tools: the inner agent does not run, and the outer model is told."""
    host = Host(LimitDesk())
    outer, inner = team(host)
    outer.model = model(asks(("ask", '{"input": "x')))
    told = document_of(outputs_in(run(outer))[0])
    assert told["kind"] == "error"
    assert inner.model.calls == ()


def test_a_cancellation_inside_an_agent_comes_out():
    """C02, third, through two agents: the outer model is told nothing."""

    class Leaving(LimitDesk):
        async def leave(self) -> str:
            """Leave."""
            raise asyncio.CancelledError

    host = Host(Leaving())
    outer, _ = team(host, script=[asks(("leave", {}))])
    with pytest.raises(asyncio.CancelledError):
        run(outer)
    assert len(outer.model.calls) == 1


def test_a_time_limit_that_is_to_be_raised_comes_out_of_an_agent():
    """timeout_behavior="raise_exception" of an inner tool: the host hears of it through the agent that is a tool."""

    @function_tool(timeout=0.05, timeout_behavior="raise_exception")
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(5)
        return "late"

    host = Host()
    inner = host.agent(asks(("wait", {})), tools=host.wrap(wait))
    outer = host.agent(asks(("ask", {"input": "x"})), tools=[agent_tool(inner, host.affiant, "ask", "Ask.")])
    with pytest.raises(ToolTimeoutError):
        run(outer)
    assert len(outer.model.calls) == 1


def test_agent_tool_audits_the_agent():
    """Seam 8, "audit the inner agent": its raw tools are refused when it is made a tool, and found later, too."""
    host = Host()
    with pytest.raises(WiringError, match="'raw'"):
        agent_tool(plain_agent([raw()]), host.affiant)
    with pytest.raises(TypeError):
        agent_tool(plain_agent([]), host.affiant, failure_error_function=None)
    tool = agent_tool(plain_agent([]), host.affiant)
    assert isinstance(tool, FunctionTool)
    inner = plain_agent([])
    tool = agent_tool(inner, host.affiant, name="ask")
    inner.tools.append(raw())
    assert set(faults_of(plain_agent([tool]), host)) == {"tool 'raw'"}
    assert set(faults_of(plain_agent([agent_tool(plain_agent([]), Host().affiant, name="ask")]), host)) == {
        "tool 'ask'"
    }


@pytest.mark.anyio
async def test_an_approval_inside_an_agent_runs_its_body_once():
    """Seam 5, "a wrapper around the agent-tool runs twice, first with result None": the body inside runs once."""
    from agents import Runner
    from support.openai_agents import QUIET

    ran = []
    host = Host()
    host.affiant.declare_read("ask_first")
    approved = function_tool(lambda: ran.append(1) or "text", name_override="ask_first", needs_approval=True)
    inner = host.agent(asks(("ask_first", {})), tools=wrap([approved], host.affiant))
    outer = host.agent(asks(("ask", {"input": "x"})), tools=[agent_tool(inner, host.affiant, name="ask")])
    stopped = await Runner.run(outer, "go", context=turn(), run_config=QUIET)
    state = stopped.to_state()
    state.approve(stopped.interruptions[0])
    done = await Runner.run(outer, state, run_config=QUIET)
    assert (ran, done.final_output) == ([1], "done")
    assert [text for _, text in heard_by(outer)] == ["done"]


# --- MCP servers ---------------------------------------------------------------------------------------------------


@EVERY
def test_tools_of_an_mcp_server_are_wired_at_each_turn(mode):
    """Seam 8, MCP: declared a read, its text reaches the model; the envelope in it is seen, and the turn checked."""
    server = FakeServer("crm_find")
    host = Host()
    host.affiant.declare_read("crm_find")
    script = asks(("crm_find", FIND)), asks(("crm_find", FIND), first=2)
    agent = host.agent(*script, tools=[], mcp_servers=[server])
    result = run(agent, mode=mode)
    assert len(heard_by(agent)) == 2
    assert (len(server.acted), result.final_output) == (2, "done")
    with pytest.raises(WireupInvalid, match="CV-2"):
        run(host.agent(asks(("crm_find", FIND)), tools=[], mcp_servers=[server]), None, mode=mode)
    assert len(server.acted) == 2


@EVERY
def test_an_mcp_tool_that_is_not_declared_a_read_is_refused_before_the_model_is_asked(mode):
    """DECISIONS 16, "declaring one write is refused", and C19 "MCP tool undeclared": both at once, nothing acted."""
    server = FakeServer("crm_write", "crm_unknown")
    host = Host()
    host.affiant.declare_write("crm_write", operation="WriteUpdate", entity_type="Customer")
    agent = host.agent(asks(("crm_write", FIND)), tools=[], mcp_servers=[server])
    with pytest.raises(WireupInvalid) as refused:
        run(agent, mode=mode)
    assert "its own server" in str(refused.value)
    assert "'crm_unknown'" in str(refused.value)
    assert (server.acted, agent.model.calls) == ([], ())


def test_a_proposal_from_an_mcp_read_is_filed():
    """Seam 7, "A single MCP text is the dict": a proposal in it is found, and the model gets a receipt."""
    host = Host()
    host.affiant.declare_read("crm_find")
    agent = host.agent(asks(("crm_find", FIND)), tools=[], mcp_servers=[FakeServer("crm_find", answer=PROPOSAL)])
    result = run(agent)
    assert document_of(outputs_in(result)[0])["entryId"] == host.row().entry_id
    assert SECRET not in repr([each.input for each in agent.model.calls])


def test_a_failure_of_an_mcp_server_tells_the_model_nothing(caplog):
    """C02 for MCP: the server's exception is mapped, with none of its text."""

    class Broken(FakeServer):
        async def call_tool(self, *_, **__):
            raise ConnectionError("crm at 10.0.0.5 refused")

    host = Host()
    host.affiant.declare_read("crm_find")
    agent = host.agent(asks(("crm_find", FIND)), tools=[], mcp_servers=[Broken("crm_find")])
    told = document_of(outputs_in(run(agent))[0])
    assert told["kind"] == "error"
    assert "10.0.0.5" not in told["message"]
    assert "10.0.0.5" in caplog.text


def test_mcp_tools_can_be_wrapped_by_hand_and_a_write_is_refused():
    """DECISIONS 16: tools of MCPUtil that a host puts on a plain agent are known by their origin."""
    from agents import RunContextWrapper
    from agents.mcp import MCPUtil

    server = FakeServer("crm_act")
    tools = asyncio.run(MCPUtil.get_function_tools(server, False, RunContextWrapper(None), plain_agent([])))
    host = Host()
    host.affiant.declare_write("crm_act", operation="WriteUpdate", entity_type="Customer")
    with pytest.raises(WiringError, match="its own server"):
        wrap(tools, host.affiant)


# --- the end of a turn ---------------------------------------------------------------------------------------------


@EVERY
@DESKS
def test_a_turn_ends_after_filing_if_the_host_wants_that(desk, mode):
    """DECISIONS 11, terminate_on_review=True: the receipt is the final output, and the model is not asked again."""
    host = Host(desk(), terminate_on_review=True)
    agent = host.agent(asks(("find_customer", FIND), ("set_limit", LIMIT)))
    result = run(agent, mode=mode)
    assert document_of(result.final_output)["entryId"] == host.row().entry_id
    assert len(agent.model.calls) == 1


@EVERY
def test_a_turn_goes_on_when_nobody_was_asked(mode):
    """DECISIONS 11, by call and not by tool: a read, a failure, and what a Standing Order approves end no turn."""
    host = Host(LimitDesk(), terminate_on_review=True)
    assert run(host.agent(asks(("find_customer", FIND))), mode=mode).final_output == "done"
    assert run(host.agent(asks(("set_limit", "{"))), mode=mode).final_output == "done"
    order = StandingOrder(id="auto", version="1", when=lambda _: True)
    approved = Host(LimitDesk(), policies=[order], terminate_on_review=True)
    result = run(approved.agent(asks(("set_limit", LIMIT))), mode=mode)
    assert approved.row().status == "approved"
    assert result.final_output == "done"


def end(_, results):
    return EndOfTurn(True, f"own: {len(results)}")


async def go_on(_, results):
    return EndOfTurn(False)


OWN = {
    "first": ("stop_on_first_tool", "find_customer", True),
    "named": (StopAtTools(stop_at_tool_names=["find_customer"]), "find_customer", True),
    "not named": (StopAtTools(stop_at_tool_names=["set_limit"]), "find_customer", False),
    "function": (end, "find_customer", True),
    "asynchronous function": (go_on, "find_customer", False),
    "again": ("run_llm_again", "find_customer", False),
}


@pytest.mark.parametrize(("behaviour", "name", "ends"), OWN.values(), ids=OWN)
def test_the_agents_own_behaviour_is_never_cleared(behaviour, name, ends):
    """DECISIONS 11, "a bridge ORs it with the framework's own and never clears one"; clone() wraps it once."""
    host = Host(LimitDesk(), terminate_on_review=True)
    agent = host.agent(asks((name, FIND)), tool_use_behavior=behaviour).clone()
    result = run(agent)
    assert (result.final_output != "done") == ends
    assert len(agent.model.calls) == (1 if ends else 2)
    if behaviour is end:
        assert result.final_output == "own: 1"
    filed = run(host.agent(asks(("set_limit", LIMIT)), tool_use_behavior=behaviour))
    assert behaviour is end or document_of(filed.final_output)["status"] == "pending"


def test_a_plain_agent_cannot_end_its_turn():
    """DECISIONS 11: the SDK ends a turn by the agent, so an agent that would go on silently is refused by the audit."""
    host = Host(LimitDesk(), terminate_on_review=True)
    assert "cannot end its turn" in faults_of(plain_agent(bind(host.affiant)), host)["agent 'Plain'"]


def test_an_extractor_of_the_host_keeps_its_data():
    """Issue, "custom_data_extractor is kept": with its own data beside what the bridge leaves for the agent."""
    host = Host(terminate_on_review=True)

    async def extract(context):
        return {"mine": 1}

    original = raw("set_limit")
    original.custom_data_extractor = extract
    agent = host.agent(asks(("set_limit", {})), tools=host.wrap(original, writes=True))
    result = run(agent)
    (item,) = [each for each in result.new_items if getattr(each, "custom_data", None)]
    assert item.custom_data == {"mine": 1, "affiant": "end"}
    assert "affiant" not in repr(agent.model.calls[0].input)


def test_agents_of_other_kinds_are_only_audited():
    """The audit takes any agent of the SDK's; an agent without an Affiant is checked by it alone."""
    host = Host(LimitDesk())
    agent = Agent(name="Plain", tools=bind(host.affiant), model=model(asks(("set_limit", LIMIT))))
    audit(agent, host.affiant)
    assert document_of(outputs_in(run(agent))[0])["outcome"] == "filed"


@pytest.mark.parametrize("as_text", [False, True])
def test_an_agents_answer_is_no_way_past_the_gate(as_text):
    """CV-2: what an extractor takes out of a nested run goes to the outer model, and a proposal must not."""
    host = Host(LimitDesk())
    inner = host.agent()

    async def extract(_):
        return PROPOSAL if as_text else proposed()

    tool = agent_tool(inner, host.affiant, name="ask", description="Ask.", custom_output_extractor=extract)
    result = run(host.agent(asks(("ask", {"input": "x"})), tools=[tool]))
    (output,) = outputs_in(result)
    assert document_of(output)["code"] == "wireup-invalid"
    assert SECRET not in repr(result.new_items)
    assert host.rows() == ()
