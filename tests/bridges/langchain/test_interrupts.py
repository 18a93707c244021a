"""LangGraph's own control flow: interrupts, resumption, re-execution, and HumanInTheLoopMiddleware beside the gate."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command, interrupt
from pydantic import BaseModel, ValidationError
from support.langchain import (
    MAIN,
    SECRET,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    agent_of,
    asks,
    config,
    document_of,
    go,
    graph_of,
    newer,
    proposed,
    question,
    results_in,
)

from affiant_core import read_tool, write_tool

LIMIT = {"customer_id": "c-1", "limit": 10}


class Asking:
    """Tools that ask a person in the middle, by LangGraph's interrupt; ``ran`` lists every start of a body."""

    def __init__(self):
        self.ran = []

    def _ask(self, name):
        self.ran.append(name)
        return interrupt({"question": "how much?"})

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def asks_first(self, customer_id: str):
        """Ask, then propose."""
        return proposed(customer_id, self._ask("asks_first"))

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def asks_async(self, customer_id: str):
        """Ask on the loop, then propose."""
        return proposed(customer_id, self._ask("asks_async"))

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def proposes(self, customer_id: str):
        """Propose at once."""
        self.ran.append("proposes")
        return proposed(customer_id, 1)

    @read_tool
    def typed(self) -> str:
        """Ask for a number."""
        self.ran.append("typed")
        answer = interrupt("a number?", response_schema=Number)
        return f"got {answer.n}"


class Number(BaseModel):
    n: int


def run(runnable, value, cfg, *, asynchronous):
    return asyncio.run(runnable.ainvoke(value, cfg)) if asynchronous else runnable.invoke(value, cfg)


def interrupted(state):
    return state["__interrupt__"][0].value


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("name", ["asks_first", "asks_async"])
@pytest.mark.parametrize("kind", ["agent", "graph"])
def test_an_interrupt_in_a_body_pauses_and_resumes(kind, name, asynchronous):
    """Measured, "GraphInterrupt is an Exception: a naive error filter turned an interrupt into a ToolError"."""
    desk = Asking()
    host = Host(desk)
    tools, saver = list(host.bind().values()), InMemorySaver()
    wanted = asks((name, {"customer_id": "c-1"}))
    if kind == "agent":
        runnable, value = agent_of(tools, wanted, checkpointer=saver), question()
    else:
        runnable, value = graph_of(tools, checkpointer=saver), {"messages": [wanted]}
    cfg = config(thread_id="1")
    state = run(runnable, value, cfg, asynchronous=asynchronous)
    assert interrupted(state) == {"question": "how much?"}
    assert results_in(state) == []
    assert host.rows() == ()
    state = run(runnable, Command(resume=70), cfg, asynchronous=asynchronous)
    assert document_of(results_in(state)[0])["entryId"] == host.row().entry_id
    assert host.row().affidavit.values()["limit"] == 70
    assert desk.ran == [name, name]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_resume_without_a_turn_is_refused(asynchronous):
    """DECISIONS 12: a resumed turn needs its context like any other; the checkpoint holds none to fall back on."""
    from affiant_core import WireupInvalid

    host = Host(Asking())
    saver = InMemorySaver()
    agent = agent_of(list(host.bind().values()), asks(("asks_first", {"customer_id": "c-1"})), checkpointer=saver)
    run(agent, question(), config(thread_id="1"), asynchronous=asynchronous)
    with pytest.raises(WireupInvalid):
        run(agent, Command(resume=1), {"configurable": {"thread_id": "1"}}, asynchronous=asynchronous)
    assert host.rows() == ()


@newer
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_answer_that_does_not_fit_can_be_given_again(asynchronous):
    """Measured, is_invalid_resume: "mapping the latter recorded the bad answer as final": it is asked again."""
    desk = Asking()
    agent = agent_of(list(Host(desk).bind().values()), asks(("typed", {})), checkpointer=InMemorySaver())
    cfg = config(thread_id="1")
    assert interrupted(run(agent, question(), cfg, asynchronous=asynchronous)) == "a number?"
    with pytest.raises(ValidationError):
        run(agent, Command(resume={"n": "lots"}), cfg, asynchronous=asynchronous)
    state = run(agent, Command(resume={"n": 5}), cfg, asynchronous=asynchronous)
    assert results_in(state)[0].content == "got 5"


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("kind", ["agent", "graph"])
def test_a_sibling_that_runs_again_files_nothing_new(kind, asynchronous):
    """Measured, "Plain ToolNode re-runs finished siblings on resume. Filing must be idempotent"."""
    desk = Asking()
    host = Host(desk)
    tools, saver = list(host.bind().values()), InMemorySaver()
    wanted = asks(("proposes", {"customer_id": "c-1"}), ("asks_first", {"customer_id": "c-2"}))
    if kind == "agent":
        runnable, value = agent_of(tools, wanted, checkpointer=saver), question()
    else:
        runnable, value = graph_of(tools, checkpointer=saver), {"messages": [wanted]}
    cfg = config(thread_id="1")
    run(runnable, value, cfg, asynchronous=asynchronous)
    first = host.rows()
    state = run(runnable, Command(resume=70), cfg, asynchronous=asynchronous)
    if kind == "agent" or not asynchronous:  # an asynchronous ToolNode does not wait for the sibling of an interrupt
        assert len(first) == 1
        assert desk.ran.count("proposes") == (1 if kind == "agent" else 2)
    assert [document_of(each)["outcome"] for each in results_in(state)] == [
        "replayed" if kind == "graph" and first else "filed",
        "filed",
    ]
    assert len(host.rows()) == 2
    assert all(row in host.rows() for row in first)


@pytest.mark.parametrize("way", MAIN)
@pytest.mark.parametrize("error", [GraphInterrupt(()), ParentCommand(Command(goto="x")), GraphBubbleUp()])
def test_what_bubbles_up_is_never_mapped(error, way):
    """DECISIONS 14, "Framework control flow is never mapped": whatever derives from GraphBubbleUp leaves as it came."""

    def body() -> str:
        """Bubble."""
        raise error

    tools = [Host().wrap_one(StructuredTool.from_function(body, handle_tool_error=True))]
    if way.startswith(("agent", "ToolNode")) and isinstance(error, GraphInterrupt):
        # The root graph swallows it: the run ends without a tool message, and no error was made of it.
        with pytest.raises(ValueError, match="not enough values"):
            go(way, tools, "body", {}, config())
        return
    with pytest.raises(type(error)):
        go(way, tools, "body", {}, config())


def test_an_invalid_resume_is_no_argument_fault():
    """Measured, is_invalid_resume errors are re-raised: a marked ValidationError is told from one of the arguments."""
    from pydantic import field_validator

    class Marked(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def _ask(cls, value: int) -> int:
            try:
                Number(n="x")  # type: ignore[arg-type]  # on purpose
            except ValidationError as error:
                error._langgraph_invalid_resume = True  # type: ignore[attr-defined]  # as LangGraph does
                raise RuntimeError from error
            return value

    from affiant_langchain_bridge.seam import _is_control_flow

    with pytest.raises(RuntimeError) as raised:
        Marked(n=1)
    assert _is_control_flow(raised.value.__cause__)  # type: ignore[arg-type]  # it has one
    assert not _is_control_flow(raised.value)


# --- HumanInTheLoopMiddleware --------------------------------------------------------------------------------------


def reviewed(host, tools, mode="batched", **arguments):
    options = {} if mode == "batched" else {"interrupt_mode": mode}
    middleware = HumanInTheLoopMiddleware(interrupt_on={"set_limit": True}, **options)
    return agent_of(
        tools, asks(("set_limit", {**LIMIT, **arguments})), middleware=[middleware], checkpointer=InMemorySaver()
    )


def answer(agent, cfg, decision, *, asynchronous, mode):
    state = run(agent, question(), cfg, asynchronous=asynchronous)
    (pause,) = state["__interrupt__"]
    resume: Any = {"decisions": [decision]} if mode == "batched" else {pause.id: decision}
    return run(agent, Command(resume=resume), cfg, asynchronous=asynchronous)


BOTH = [
    pytest.param(
        mode,
        desk,
        asynchronous,
        id=f"{mode}-{desk.__name__}-{'async' if asynchronous else 'sync'}",
        marks=[newer] if mode == "per_call" else [],
    )
    for mode in ("batched", "per_call")
    for desk, asynchronous in ((LimitDesk, False), (AsyncLimitDesk, True))
]


@pytest.mark.parametrize(("mode", "desk", "asynchronous"), BOTH)
def test_an_approved_call_is_filed(mode, desk, asynchronous):
    """Measured, "They compose: HITL pauses a turn, filing does not": the pause lets the call run, the gate files it."""
    host = Host(desk())
    agent = reviewed(host, list(host.bind().values()), mode)
    state = answer(agent, config(thread_id="1"), {"type": "approve"}, asynchronous=asynchronous, mode=mode)
    assert document_of(results_in(state)[0])["outcome"] == "filed"
    assert host.row().status == "pending"
    assert SECRET not in repr(state)


@newer
@pytest.mark.parametrize(("mode", "desk", "asynchronous"), BOTH)
def test_an_edited_call_is_filed_as_it_was_edited(mode, desk, asynchronous):
    """Measured, "edit runs the edited args and prepends prose to the result": the gate saw the result without it."""
    host = Host(desk())
    agent = reviewed(host, list(host.bind().values()), mode)
    edit = {"type": "edit", "edited_action": {"name": "set_limit", "args": {**LIMIT, "limit": 77}}}
    state = answer(agent, config(thread_id="1"), edit, asynchronous=asynchronous, mode=mode)
    assert host.row().affidavit.values()["limit"] == 77
    assert host.row().entry_id in str(results_in(state)[0].content)
    assert state["messages"][1].tool_calls[0]["args"] == LIMIT
    # The same proposal from the model itself has the same identity: the edited arguments were carried.
    again = host.bind()["set_limit"].invoke({**LIMIT, "limit": 77}, config())
    assert document_of(again)["outcome"] == "replayed"


@pytest.mark.parametrize(("mode", "desk", "asynchronous"), BOTH)
def test_a_rejected_call_files_nothing(mode, desk, asynchronous):
    """Measured, HITL "Decides before the body": a rejected call runs no body, and leaves nothing on the Docket."""
    tools = desk()
    host = Host(tools)
    agent = reviewed(host, list(host.bind().values()), mode)
    reject = {"type": "reject", "message": "not now"}
    state = answer(agent, config(thread_id="1"), reject, asynchronous=asynchronous, mode=mode)
    assert "not now" in results_in(state)[0].content
    assert (tools.calls, host.rows()) == ([], ())
    assert isinstance(state["messages"][-1], AIMessage)


def test_an_edit_that_does_not_fit_is_answered():
    """DECISIONS 8 behind HITL: an edit with a value of the wrong type is a validation failure like the model's."""
    host = Host(LimitDesk())
    agent = reviewed(host, list(host.bind().values()))
    edit = {"type": "edit", "edited_action": {"name": "set_limit", "args": {**LIMIT, "limit": "hunter2"}}}
    state = answer(agent, config(thread_id="1"), edit, asynchronous=False, mode="batched")
    assert "VALIDATION_FAILED" in str(results_in(state)[0].content)  # behind the middleware's own words
    assert host.rows() == ()
