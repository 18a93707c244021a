"""What is refused, when, and how loudly: calls without a turn, wrong wiring, ways past the seam, a store down."""

from __future__ import annotations

import asyncio
import copy
import logging

import pytest
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from support.gate import turn
from support.langchain import (
    FEW,
    MAIN,
    PROPOSAL,
    SECRET,
    WAYS,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    agent_of,
    asks,
    call,
    config,
    document_of,
    found,
    go,
    graph_of,
    question,
    results_in,
    text_of,
)

from affiant_core import (
    ActContext,
    Affiant,
    CoverageCategory,
    DocketError,
    InMemoryDocketStore,
    Member,
    TurnContext,
    WireupInvalid,
    WiringError,
)
from affiant_core.errors import RefusalCode
from affiant_core.filters.review import FILING_FAILED
from affiant_langchain_bridge import TURN_KEY, bind, turn_from_config, wrap

LIMIT = {"customer_id": "c-1", "limit": 10}


class Lookalike:
    """Everything that a TurnContext has, and not one."""

    tenant_id = "acme"
    principal = Member("filer")
    channel = "chat"
    conversation_id = "c-1"


MISSING = {
    "no config": None,
    "an empty config": {},
    "an empty configurable": {"configurable": {}},
    "a null": config(None),
    "text": config("acme"),
    "a dictionary": config({"tenant_id": "acme", "conversation_id": "c-1"}),
    "a lookalike": config(Lookalike()),
    "the class": config(TurnContext),
    "an act without a conversation": config(ActContext("acme", Member("filer"))),
    "another key": {"configurable": {"Affiant": turn()}},
    "one level too high": {"affiant": turn(), "configurable": {"thread_id": "1"}},
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("name", ["find_customer", "set_limit"])
@pytest.mark.parametrize("context", [name for name in MISSING if name != "one level too high"])
def test_a_call_without_a_turn_is_refused_before_its_body(context, name, way):
    """DECISIONS 12, "Missing or malformed": a wireup-invalid refusal is raised, for reads too, and nothing ran."""
    desk = LimitDesk()
    host = Host(desk)
    arguments = LIMIT if name == "set_limit" else {"customer_id": "c-1"}
    with pytest.raises(WireupInvalid, match="TurnContext"):
        go(way, list(host.bind().values()), name, arguments, MISSING[context])
    assert desk.calls == []
    assert host.rows() == ()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
def test_no_way_in_does_without_a_turn(desk, way):
    """DECISIONS 12 on every way in, with synchronous and asynchronous bodies: the host's mistake is loud."""
    tools = desk()
    host = Host(tools)
    with pytest.raises(WireupInvalid, match="TurnContext"):
        go(way, list(host.bind().values()), "find_customer", {"customer_id": "c-1"}, {"configurable": {}})
    assert tools.calls == []


def test_langchain_moves_unknown_keys_of_a_config():
    """Measured on ensure_config: a key that LangChain does not know is moved to "configurable", and found there."""
    host = Host(LimitDesk())
    result = host.bind()["find_customer"].invoke({"customer_id": "c-1"}, {"affiant": turn()})
    assert document_of(result)["kind"] == "read"
    assert turn_from_config({"configurable": {TURN_KEY: 1}}) == 1
    assert turn_from_config(None) is None


@pytest.mark.parametrize("way", FEW)
def test_a_turn_is_never_remembered(way):
    """DECISIONS 12, "never repaired and never remembered": the second call without one is refused like the first."""
    desk = LimitDesk()
    tools = list(Host(desk).bind().values())
    go(way, tools, "set_limit", LIMIT, config())
    with pytest.raises(WireupInvalid):
        go(way, tools, "set_limit", LIMIT, None)
    assert len(desk.calls) == 1


def test_a_turn_is_not_remembered_within_one_thread_or_task():
    """DECISIONS 12, "No contextvar holds a turn": not after a call in the same context either."""
    tool = Host(LimitDesk()).bind()["find_customer"]

    async def twice():
        await tool.ainvoke({"customer_id": "c-1"}, config())
        await tool.ainvoke({"customer_id": "c-1"})

    with pytest.raises(WireupInvalid):
        asyncio.run(twice())
    with pytest.raises(WireupInvalid):
        tool.run({"customer_id": "c-1"})


def test_a_host_function_that_fails_is_no_turn(caplog):
    """DECISIONS 12, "malformed": what turn_of raises is told as a refusal with its cause, not as text for a model."""
    desk = LimitDesk()
    tools = bind(Host(desk).affiant, turn_of=lambda config: config["configurable"]["hunter2"])
    with pytest.raises(WireupInvalid, match="KeyError") as refused:
        go("agent", tools, "find_customer", {"customer_id": "c-1"}, config())
    assert isinstance(refused.value.__cause__, KeyError)
    assert "hunter2" not in str(refused.value)
    assert desk.calls == []


def test_a_graph_that_turns_everything_into_text_runs_no_body():
    """DECISIONS 12 at its limit: ToolNode(handle_tool_errors=True) hides the refusal, and still nothing ran."""
    desk = LimitDesk()
    host = Host(desk)
    message = asks(("set_limit", LIMIT))
    state = graph_of(list(host.bind().values()), handle_tool_errors=True).invoke({"messages": [message]}, {})
    assert "WireupInvalid" in results_in(state)[0].content
    assert desk.calls == []
    assert host.rows() == ()


# --- wiring --------------------------------------------------------------------------------------------------------


def read(name="look"):
    return StructuredTool.from_function(lambda customer_id: "text", name=name, description="Look.")


def declared(*names):
    affiant = Host().affiant
    for name in names:
        affiant.declare_read(name)
    return affiant


def faults_of(tools, affiant):
    with pytest.raises(WiringError) as refused:
        wrap(tools, affiant)
    return {fault.subject: fault.fault for fault in refused.value.faults}


def test_everything_that_is_wrong_is_told_at_once():
    """C19 and DECISIONS 16, "all offenders in one error": undeclared, provider's, plain, twice named, bridged."""

    def plain(customer_id: str) -> str:
        return customer_id

    affiant = declared("bridged", "twice", "near_miss", "near-miss", "x" * 65)
    (bridged,) = wrap([read("bridged")], declared("bridged"))
    provider = {"type": "web_search", "name": "web_search"}
    mcp = {"type": "mcp", "server_label": "crm"}
    tools = [read("unknown"), read("other"), provider, mcp, plain, LimitDesk, read("twice"), read("twice")]
    told = faults_of([*tools, read("near_miss"), read("near-miss"), bridged, read("x" * 65)], affiant)
    assert set(told) == {
        "tool 'unknown'",
        "tool 'other'",
        "tool 'web_search'",
        "tool 'crm'",
        "tool 'plain'",
        "tool 'LimitDesk'",
        "tools 'twice' and 'twice'",
        "tools 'near_miss' and 'near-miss'",
        "tool 'bridged'",
        f"tool '{'x' * 65}'",
    }
    assert "not declared" in told["tool 'unknown'"]
    assert "provider" in told["tool 'web_search'"]
    assert "bridged already" in told["tool 'bridged'"]


@pytest.mark.parametrize("plugins", [(None, None), ("p", "q")])
@pytest.mark.parametrize("names", [("a__b", "a_b"), ("Find", "find"), ("a-b", "a_b")])
def test_names_that_a_model_cannot_tell_apart(names, plugins):
    """C18, "names equal after the provider's normalisation": refused at wiring, naming both, once, in any plugins."""
    affiant = Host().affiant
    for name, plugin in zip(names, plugins, strict=True):
        affiant.declare_read(name, plugin=plugin)
    with pytest.raises(WiringError) as refused:
        wrap([read(name) for name in names], affiant)
    (fault,) = refused.value.faults
    assert fault.subject == f"tools {names[0]!r} and {names[1]!r}"


@pytest.mark.parametrize("name", ["find_customer", "find-customer"])
def test_a_name_that_bind_offers_is_taken(name):
    """C18, "two tools with one name": a tool with the name of a function of Affiant(tools=...) is refused."""
    affiant = Host(LimitDesk()).affiant
    if name != "find_customer":
        affiant.declare_read(name)
    assert list(faults_of([read(name)], affiant)) == [f"tools {name!r} and 'find_customer'"]


def test_bound_tools_are_bridged_already():
    """Measured, "Never gate in both places: the proposal was filed twice": wrapping what bind() made is refused."""
    told = faults_of(list(Host(LimitDesk()).bind().values()), declared("find_customer", "set_limit"))
    assert set(told) == {"tool 'find_customer'", "tool 'set_limit'"}


@pytest.mark.parametrize("name", ["invoke", "ainvoke", "run", "arun", "batch", "abatch", "stream", "astream"])
def test_a_tool_with_a_way_in_of_its_own_is_refused(name):
    """C19, "Paths around the gate"; measured as untested, "tools overriding invoke themselves": refused at wiring."""

    class Short(BaseTool):
        name: str = "look"
        description: str = "Look."

        def _run(self, customer_id: str) -> str:
            return PROPOSAL

    setattr(Short, name, lambda self, *args, **kwargs: PROPOSAL)
    told = faults_of([Short()], declared("look"))
    assert f"'{name}'" in told["tool 'look'"]


def test_an_accepted_dictionary_is_not_lost_in_wrapping():
    """CV-4: what the host named as uncovered goes to the agent beside the wrapped tools; wrap() says so, and loudly."""
    affiant = Host(uncovered={"web_search": CoverageCategory.PROVIDER_EXECUTED}).affiant
    affiant.declare_read("look")
    told = faults_of([read(), {"type": "web_search"}], affiant)
    assert list(told) == ["tool 'web_search'"]
    assert "dictionary" in told["tool 'web_search'"]


def test_a_refused_dictionary_carries_its_code():
    """CV-4, "coverage-refused", with the category, for a provider's tool that the host has not named."""
    with pytest.raises(WiringError) as refused:
        wrap([{"type": "mcp", "server_label": "crm"}], declared("look"))
    (fault,) = refused.value.faults
    assert fault.code is RefusalCode.COVERAGE_REFUSED
    assert "hosted-mcp" in fault.fault


def test_an_mcp_tool_cannot_be_declared_to_write():
    """DECISIONS 16 and C19: an MCP tool has acted on its server when its result appears; as a read it is taken."""

    async def call_tool(**arguments):
        return [{"type": "text", "text": "done"}], None

    call_tool.__module__ = "langchain_mcp_adapters.tools"  # as the adapters' own function says
    schema = {"type": "object", "properties": {}}
    options = {"args_schema": schema, "coroutine": call_tool, "response_format": "content_and_artifact"}
    remote = StructuredTool(name="crm_update", description="Update.", **options)
    affiant = Host().affiant
    affiant.declare_write("crm_update", operation="WriteUpdate", entity_type="Customer")
    assert "its own server" in faults_of([remote], affiant)["tool 'crm_update'"]
    assert len(wrap([remote], declared("crm_update"))) == 1


def test_a_write_that_nobody_may_decide_is_refused_at_wiring():
    """CV-1: a declared write without an authorization port is a fault of the wiring, told with the others."""
    affiant = Affiant(docket=InMemoryDocketStore())
    affiant.declare_write("look", operation="WriteUpdate", entity_type="Customer")
    told = faults_of([read("look"), read("unknown")], affiant)
    assert set(told) == {"tool 'look'", "tool 'unknown'"}


def test_nothing_to_bind_is_a_fault():
    """CV-1: bind() of an Affiant without tools says so, instead of giving an agent no tools."""
    with pytest.raises(WiringError, match="none to bind"):
        bind(Host().affiant)


@pytest.mark.parametrize("name", ["set-limit", "Set_limit", "set_limit ", "setLimit", "nosuch"])
def test_a_near_miss_is_unknown_at_run_time(name):
    """C18, "a near-miss name at run time is unknown, never guessed": no body runs and nothing is filed."""
    desk = LimitDesk()
    host = Host(desk)
    state = agent_of(list(host.bind().values()), asks((name, LIMIT))).invoke(question(), config())
    (message,) = results_in(state)
    assert message.status == "error"
    assert desk.calls == []
    assert host.rows() == ()


@pytest.mark.parametrize("way", FEW)
def test_a_tool_that_lost_its_declaration_is_refused_before_its_body(way):
    """DECISIONS 16, "at run time an undeclared call is refused before its body": a renamed tool is one."""
    desk = LimitDesk()
    tool = copy.copy(Host(desk).bind()["find_customer"])
    tool.name = "renamed"
    with pytest.raises(WireupInvalid, match="not declared"):
        go(way, [tool], "renamed", {"customer_id": "c-1"}, config())
    assert desk.calls == []


# --- past the seam -------------------------------------------------------------------------------------------------


def test_the_inner_methods_refuse():
    """Measured, "tool._run(...) raises under B": whoever enters a bridged tool past its seam is refused."""
    desk = LimitDesk()
    host = Host(desk)
    tool = host.bind()["set_limit"]
    with pytest.raises(WireupInvalid, match="past its seam"):
        tool._run(**LIMIT)
    with pytest.raises(WireupInvalid, match="past its seam"):
        asyncio.run(tool._arun(**LIMIT))
    assert desk.calls == []


def test_the_inner_method_of_another_tool_refuses_inside_a_call():
    """Measured, "frame.inv.tool is self": the frame of one call opens no other tool, not even a copy of its own."""
    host = Host(LimitDesk())
    tools = host.bind()
    seen = []

    def nosy(customer_id: str) -> str:
        """Reach into the other tools."""
        for other in (tools["set_limit"], copy.copy(wrapped)):
            with pytest.raises(WireupInvalid, match="past its seam"):
                other._run(**LIMIT)
            seen.append(other.name)
        return "done"

    other = Host()
    wrapped = other.wrap_one(StructuredTool.from_function(nosy))
    wrapped.invoke({"customer_id": "c-1"}, config())
    assert seen == ["set_limit", "nosy"]
    assert host.rows() == ()


def test_a_body_that_goes_on_after_its_call_is_past_the_seam():
    """Measured, the frame is "consumed once": code that outlives a call cannot enter the tool through it."""
    kept = []

    class Later(BaseTool):
        name: str = "look"
        description: str = "Look."

        def _run(self, customer_id: str) -> str:
            import contextvars

            kept.append(contextvars.copy_context())
            return "text"

    tool = Host().wrap_one(Later())
    tool.invoke({"customer_id": "c-1"}, config())
    with pytest.raises(WireupInvalid, match="past its seam"):
        kept[0].run(tool._run, "c-1")


def test_the_function_behind_a_wrapped_tool_is_not_gated():
    """Measured, "tool.func(...) always bypasses": a documented limit, so that nobody takes it for a promise."""

    @tool
    def set_limit(customer_id: str) -> str:
        """Propose."""
        return PROPOSAL

    host = Host()
    wrapped = host.wrap_one(set_limit, writes=True)
    assert wrapped.func("c-1") == PROPOSAL
    assert host.rows() == ()


def test_single_input_tools_have_no_synchronous_call_without_a_function():
    """Measured of ``Tool``, "async-only tools": it raises as the bare tool does, before anything is admitted."""

    async def body(text: str) -> str:
        return text

    wrapped = Host().wrap_one(Tool("echo", None, "Echo.", coroutine=body))
    with pytest.raises(NotImplementedError):
        wrapped.invoke("x", config())
    assert asyncio.run(wrapped.ainvoke("x", config())) == "x"


# --- a store that is down ------------------------------------------------------------------------------------------


class Down(InMemoryDocketStore):
    def file(self, entry):
        raise DocketError("disk full at /srv/hunter2")


@pytest.mark.parametrize("way", MAIN)
def test_a_filing_that_fails_is_told_and_the_turn_goes_on(way, caplog):
    """DECISIONS 13, "After the body, a filing that fails is a REVIEW_FILING_FAILED ToolError, not retryable"."""
    caplog.set_level(logging.ERROR)
    desk = LimitDesk()
    result = go(way, list(Host(desk, docket=Down()).bind().values()), "set_limit", LIMIT, config())
    told = document_of(result)
    assert (told["code"], told["retryable"]) == (FILING_FAILED, False)
    assert "hunter2" not in text_of(result)
    assert SECRET not in repr(result)
    assert "hunter2" in caplog.text
    assert len(desk.calls) == 1


def test_the_model_answers_after_a_filing_that_failed():
    """DECISIONS 13: "raising there would cancel or orphan sibling calls": the sibling answers and the model speaks."""
    host = Host(LimitDesk(), docket=Down())
    calls = asks(("set_limit", LIMIT), ("find_customer", {"customer_id": "c-1"}))
    state = agent_of(list(host.bind().values()), calls).invoke(question(), config())
    failed, answered = results_in(state)
    assert (failed.status, answered.status) == ("error", "success")
    assert text_of(answered) == found().to_json_string()
    assert state["messages"][-1].content == "done"


def test_a_host_filter_that_suspends_in_a_synchronous_call_is_told():
    """DECISIONS 21: a host's own asynchronous filter under a synchronous call is the host's fault, and raised."""
    from affiant_core.errors import SynchronousCallError

    async def slow(invocation, call_next):
        await asyncio.sleep(0)
        await call_next()

    tool = Host(LimitDesk(), filters=[slow]).bind()["find_customer"]
    with pytest.raises(SynchronousCallError):
        tool.invoke({"customer_id": "c-1"}, config())
    assert document_of(asyncio.run(tool.ainvoke(call("find_customer", {"customer_id": "c-1"}), config())))


def test_a_host_filter_that_fails_is_no_argument_fault():
    """Measured, "An exception at run with the body not entered is an argument error": and only then is it one."""
    from pydantic import BaseModel, ValidationError

    class Strict(BaseModel):
        n: int

    async def failing(invocation, call_next):
        await call_next()
        Strict(n="x")  # type: ignore[arg-type]  # on purpose

    host = Host(LimitDesk(), filters=[failing])
    with pytest.raises(ValidationError):
        host.bind()["set_limit"].invoke(LIMIT, config())
    assert len(host.rows()) == 1


def test_a_filter_that_lets_a_proposal_in_is_held_back():
    """CV-2 at the last line: a host's filter that puts a proposal in place of a result shows it to nobody."""
    from support.langchain import proposed

    async def forging(invocation, call_next):
        await call_next()
        invocation.result = proposed()

    host = Host(LimitDesk(), filters=[forging])
    result = host.bind()["find_customer"].invoke(call("find_customer", {"customer_id": "c-1"}), config())
    assert (result.status, document_of(result)["code"]) == ("error", "wireup-invalid")
    assert SECRET not in repr(result)
