"""Graphs of the host's own: tool nodes, nodes written by hand, subgraphs, agents as nodes and as tools."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt
from support.gate import turn
from support.langchain import (
    NEWER,
    SECRET,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    ScriptedModel,
    State,
    agent_of,
    asks,
    call,
    config,
    document_of,
    question,
    results_in,
)

from affiant_core import WireupInvalid

LIMIT = {"customer_id": "c-1", "limit": 500}
BOTH = pytest.mark.parametrize("asynchronous", [False, True])
DESKS = pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
SAVED = pytest.mark.parametrize("saved", [False, True])

# The oldest ToolNode makes text of every error unless it is told otherwise.
LOUD = {} if NEWER else {"handle_tool_errors": False}


def scripted(*script):
    """A model that says one thing after the other, or what a function of the messages says."""
    said = script[0] if callable(script[0]) else list(script)
    return ScriptedModel(script=said, heard=[], offered=[])


def model_node(*script):
    """A node that asks a model."""
    model = scripted(*script)

    def node(state: State) -> dict:
        return {"messages": [model.invoke(state["messages"])]}

    return node


def loop(tools, *script):
    """The usual graph: a model, a ToolNode, and back."""
    builder = StateGraph(State)
    builder.add_node("model", model_node(*script))
    builder.add_node("tools", ToolNode(tools, **LOUD))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


def by_hand(tools, *, asynchronous, hands_config=True):
    """A node that runs the calls of the last message itself, as a host would write it."""
    named = {each.name: each for each in tools}

    def node(state: State, config: RunnableConfig) -> dict:
        calls = state["messages"][-1].tool_calls
        return {"messages": [named[each["name"]].invoke(each, config if hands_config else None) for each in calls]}

    async def anode(state: State, config: RunnableConfig) -> dict:
        calls = state["messages"][-1].tool_calls
        work = (named[each["name"]].ainvoke(each, config if hands_config else None) for each in calls)
        return {"messages": await asyncio.gather(*work)}

    return anode if asynchronous else node


def loop_by_hand(tools, *script, asynchronous, **options):
    """The same graph with a node of the host's own in the place of the ToolNode."""
    builder = StateGraph(State)
    builder.add_node("model", model_node(*script))
    builder.add_node("tools", by_hand(tools, asynchronous=asynchronous, **options))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


def inside(graph):
    """A graph whose only node is another graph."""
    builder = StateGraph(State)
    builder.add_node("inner", graph)
    builder.add_edge(START, "inner")
    return builder


def called_inside(graph, *, asynchronous):
    """A graph whose only node calls another graph, as one does between two kinds of state."""

    def node(state: State) -> dict:
        return {"messages": graph.invoke({"messages": state["messages"]})["messages"]}

    async def anode(state: State) -> dict:
        return {"messages": (await graph.ainvoke({"messages": state["messages"]}))["messages"]}

    return inside(anode if asynchronous else node)


def fanned_out(tools, *script):
    """A graph that sends each call to a ToolNode of its own, as create_agent does."""

    def each_call(state: State):
        return [Send("tools", [one]) for one in state["messages"][-1].tool_calls] or END

    builder = StateGraph(State)
    builder.add_node("model", model_node(*script))
    builder.add_node("tools", ToolNode(tools, **LOUD))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", each_call, ["tools", END])
    builder.add_edge("tools", END)
    return builder


SHAPES = {
    "ToolNode": lambda tools, script, asynchronous: loop(tools, *script),
    "by hand": lambda tools, script, asynchronous: loop_by_hand(tools, *script, asynchronous=asynchronous),
    "subgraph": lambda tools, script, asynchronous: inside(loop(tools, *script).compile()),
    "subgraph of a subgraph": lambda tools, script, asynchronous: inside(
        inside(loop(tools, *script).compile()).compile()
    ),
    "graph called in a node": lambda tools, script, asynchronous: called_inside(
        loop(tools, *script).compile(), asynchronous=asynchronous
    ),
    "agent as a node": lambda tools, script, asynchronous: inside(create_agent(scripted(*script), tools)),
    "one Send per call": lambda tools, script, asynchronous: fanned_out(tools, *script),
}


def compiled(shape, tools, *script, asynchronous, saved=False):
    return SHAPES[shape](tools, script, asynchronous).compile(checkpointer=InMemorySaver() if saved else None)


def run(graph, *, asynchronous, cfg=None, given=None):
    given, cfg = question() if given is None else given, cfg or config(thread_id="1")
    return asyncio.run(graph.ainvoke(given, cfg)) if asynchronous else graph.invoke(given, cfg)


def stream(graph, *, asynchronous, **options):
    cfg = config(thread_id="1")

    async def collect():
        return [chunk async for chunk in graph.astream(question(), cfg, **options)]

    return asyncio.run(collect()) if asynchronous else list(graph.stream(question(), cfg, **options))


def bound(host):
    return list(host.bind().values())


@DESKS
@SAVED
@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_files_once_and_reads(shape, asynchronous, saved, desk):
    """C20 in graphs of the host's own: one row, one result for each call, in the model's order, the read at once."""
    host = Host(desk())
    script = asks(("find_customer", {"customer_id": "c-1"}), ("set_limit", LIMIT))
    graph = compiled(shape, bound(host), script, asynchronous=asynchronous, saved=saved)
    read, write = results_in(run(graph, asynchronous=asynchronous))
    assert [read.tool_call_id, write.tool_call_id] == ["call-1", "call-2"]
    assert document_of(read)["kind"] == "read"
    assert document_of(write)["entryId"] == host.row().entry_id
    assert Counter(name for name, _ in host.tools.calls) == {"find_customer": 1, "set_limit": 1}


@BOTH
@pytest.mark.parametrize("mode", ["updates", "values", "messages"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_streams_the_replacement(shape, mode, asynchronous):
    """C20, "plain and streamed": subgraphs' events included, the receipt is there and the raw proposal nowhere."""
    host = Host(LimitDesk())
    graph = compiled(shape, bound(host), asks(("set_limit", LIMIT)), asynchronous=asynchronous)
    chunks = stream(graph, asynchronous=asynchronous, stream_mode=mode, subgraphs=True)
    assert SECRET not in repr(chunks)
    assert host.row().entry_id in repr(chunks)
    if mode == "messages":
        streamed = [message for _, (message, _) in chunks if isinstance(message, ToolMessage)]
        assert len({message.id for message in streamed}) == 1


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_does_without_a_turn(shape, asynchronous):
    """CV-2 and DECISIONS 12: without a turn every shape fails at the call, before any body, reads included."""
    for asked in (("find_customer", {"customer_id": "c-1"}), ("set_limit", LIMIT)):
        host = Host(LimitDesk())
        graph = compiled(shape, bound(host), asks(asked), asynchronous=asynchronous)
        with pytest.raises(WireupInvalid, match="TurnContext"):
            run(graph, asynchronous=asynchronous, cfg={"configurable": {"thread_id": "1"}})
        assert (host.rows(), host.tools.calls) == ((), [])


@BOTH
def test_a_node_by_hand_that_hands_no_config_on(asynchronous):
    """Measured, "invoke without config inherits the enclosing runnable's": the turn of the run reaches the call."""
    host = Host(LimitDesk())
    builder = loop_by_hand(bound(host), asks(("set_limit", LIMIT)), asynchronous=asynchronous, hands_config=False)
    run(builder.compile(), asynchronous=asynchronous)
    assert host.row().entry_id


@BOTH
@pytest.mark.parametrize("shape", ["ToolNode", "by hand", "subgraph", "agent as a node"])
def test_a_thread_that_goes_on_takes_its_own_turn(shape, asynchronous):
    """DECISIONS 12, "never remembered": the turn of a thread's first run is not there in its second one."""
    host = Host(LimitDesk())
    again = asks(("set_limit", {**LIMIT, "limit": 7}))

    def script(messages):
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("done")
        return again if results_in({"messages": messages}) else asks(("set_limit", LIMIT))

    graph = compiled(shape, bound(host), script, asynchronous=asynchronous, saved=True)
    run(graph, asynchronous=asynchronous)
    with pytest.raises(WireupInvalid, match="TurnContext"):
        run(graph, asynchronous=asynchronous, cfg={"configurable": {"thread_id": "1"}})
    assert len(host.rows()) == 1


@BOTH
def test_two_tenants_in_one_graph(asynchronous):
    """C14: one compiled graph serves every tenant; each row carries the tenant of its own run's turn."""
    host = Host(LimitDesk())
    graph = compiled("subgraph", bound(host), asks(("set_limit", LIMIT)), asynchronous=asynchronous, saved=True)
    for tenant in ("acme", "globex"):
        run(graph, asynchronous=asynchronous, cfg=config(turn(tenant=tenant), thread_id=tenant))
    for tenant in ("acme", "globex"):
        assert [row.tenant_id for row in host.rows(tenant)] == [tenant]


@BOTH
def test_a_pause_between_the_nodes(asynchronous):
    """LangGraph, interrupt() in a node: what ran before is not run again, and the resumed run needs a turn."""
    host = Host(LimitDesk())

    def pause(state: State) -> dict:
        return {"messages": [HumanMessage(interrupt("go on?"))]}

    builder = StateGraph(State)
    builder.add_node("first", ToolNode(bound(host), **LOUD))
    builder.add_node("pause", pause)
    builder.add_node("ask", lambda state: {"messages": [asks(("set_limit", {**LIMIT, "limit": 7}))]})
    builder.add_node("second", ToolNode(bound(host), **LOUD))
    for one, next_one in zip((START, "first", "pause", "ask"), ("first", "pause", "ask", "second"), strict=True):
        builder.add_edge(one, next_one)
    graph = builder.compile(checkpointer=InMemorySaver())
    wanted = {"messages": [AIMessage("", tool_calls=[call("set_limit", LIMIT)])]}
    run(graph, asynchronous=asynchronous, given=wanted)
    assert len(host.rows()) == 1
    with pytest.raises(WireupInvalid, match="TurnContext"):
        run(graph, asynchronous=asynchronous, given=Command(resume="yes"), cfg={"configurable": {"thread_id": "1"}})
    run(graph, asynchronous=asynchronous, given=Command(resume="yes"))
    assert len(host.rows()) == 2
    assert len([name for name, _ in host.tools.calls if name == "set_limit"]) == 2


@BOTH
def test_a_replay_of_an_earlier_checkpoint_files_nothing_new(asynchronous):
    """C21, "replaying the history files nothing new": a run that goes on from an earlier checkpoint finds its row."""
    host = Host(LimitDesk())
    graph = loop(bound(host), asks(("set_limit", LIMIT))).compile(checkpointer=InMemorySaver())
    run(graph, asynchronous=asynchronous)
    (earlier,) = [each for each in graph.get_state_history(config(thread_id="1")) if each.next == ("tools",)]
    forked = {"configurable": {**earlier.config["configurable"], "affiant": turn()}}
    state = asyncio.run(graph.ainvoke(None, forked)) if asynchronous else graph.invoke(None, forked)
    assert document_of(results_in(state)[0])["outcome"] == "replayed"
    assert host.row().entry_id


@DESKS
@SAVED
@BOTH
@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_as_a_tool_of_a_graph(streamed, asynchronous, saved, desk):
    """C20, "agent-as-tool whose tool is set_limit": in a graph with a ToolNode, one row under the run's own turn."""
    host = Host(desk())
    inner = agent_of(bound(host), asks(("set_limit", LIMIT)))

    def clerk(task: str) -> str:
        """Ask the clerk."""
        return inner.invoke(question(task))["messages"][-1].content

    async def aclerk(task: str) -> str:
        """Ask the clerk."""
        return (await inner.ainvoke(question(task)))["messages"][-1].content

    made = StructuredTool.from_function(
        **({"coroutine": aclerk} if asynchronous else {"func": clerk}), name="clerk", description="Ask the clerk."
    )
    tools = [Host(docket=host.store).wrap_one(made)]
    graph = loop(tools, asks(("clerk", {"task": "raise it"}))).compile(checkpointer=InMemorySaver() if saved else None)
    if streamed:
        chunks = stream(graph, asynchronous=asynchronous, stream_mode="updates", subgraphs=True)
        assert SECRET not in repr(chunks)
    else:
        assert len(results_in(run(graph, asynchronous=asynchronous))) == 1
    assert host.row().conversation_id == turn().conversation_id
