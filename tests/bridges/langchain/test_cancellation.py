"""Somebody ends a turn: at any moment, and never half a filing (DECISIONS 14; C21)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import pytest
from langchain_core.tools import StructuredTool
from langgraph import errors
from support.gate import act, turn
from support.langchain import (
    FEW,
    MAIN,
    SECRET,
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
    proposed,
    question,
)

from affiant_core import Approve, InMemoryDocketStore, ReadResult, read_tool, write_tool

LIMIT = {"customer_id": "c-1", "limit": 10}


class Held:
    """A desk whose body waits, on the loop or in its thread, until it is let go."""

    def __init__(self):
        self.inside, self.gate, self.done = threading.Event(), threading.Event(), threading.Event()

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def patient(self, customer_id: str):
        """Wait on the loop, and propose."""
        self.inside.set()
        while not self.gate.is_set():
            await asyncio.sleep(0.001)
        return proposed(customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def slow(self, customer_id: str):
        """Wait in the thread, and propose."""
        self.inside.set()
        self.gate.wait(20)
        self.done.set()
        return proposed(customer_id)


class SlowStore(InMemoryDocketStore):
    """A store that waits in a worker thread before it writes, and after it has written."""

    blocking = True

    def __init__(self, point):
        super().__init__()
        self.point = point
        self.inside, self.gate = threading.Event(), threading.Event()

    def _wait(self, point):
        if self.point == point:
            self.inside.set()
            assert self.gate.wait(20)

    def file(self, entry):
        self._wait("before writing")
        filed = super().file(entry)
        self._wait("after writing")
        return filed

    def get(self, tenant_id, entry_id):
        self._wait("while looking")
        return super().get(tenant_id, entry_id)


async def until(event):
    while not event.is_set():
        await asyncio.sleep(0.001)


async def cancelled(work, inside, gate):
    """Cancel ``work`` when it is inside, let it go on a little later, and see that the cancellation comes out."""
    task = asyncio.ensure_future(work)
    await until(inside)
    task.cancel()
    await asyncio.sleep(0.01)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task


def work_of(way, tools, name, arguments):
    tool = next(tool for tool in tools if tool.name == name)
    if way == "bare":
        return tool.ainvoke(call(name, arguments), config())
    return agent_of(tools, asks((name, arguments))).ainvoke(question(), config())


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["bare", "agent"])
@pytest.mark.parametrize("name", ["patient", "slow"])
async def test_cancelled_in_the_body(name, way):
    """DECISIONS 14 and C21: a turn that is cancelled while the body runs files nothing, even if the body goes on."""
    desk = Held()
    host = Host(desk)
    await cancelled(work_of(way, list(host.bind().values()), name, {"customer_id": "c-1"}), desk.inside, desk.gate)
    if name == "slow":  # measured: "the body still finishes in its thread"
        await until(desk.done)
        await asyncio.sleep(0.01)
    assert host.rows() == ()


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["bare", "agent"])
@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
@pytest.mark.parametrize("point", ["before writing", "after writing"])
async def test_cancelled_while_filing(point, desk, way):
    """C21, "either no row or a complete pending row; cancellation propagates; the row can be decided later"."""
    store = SlowStore(point)
    host = Host(desk(), docket=store)
    tools = list(host.bind().values())
    await cancelled(work_of(way, tools, "set_limit", LIMIT), store.inside, store.gate)
    store.point = None
    row = host.row()
    assert (row.status, row.affidavit.values()) == ("pending", {"limit": 10, "memo": SECRET})
    replayed = await tools[1].ainvoke(LIMIT, config())
    assert document_of(replayed)["outcome"] == "replayed"
    decided = await host.gate.decide(row.entry_id, Approve(), act())
    assert decided.status == "approved"


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["bare", "agent"])
async def test_cancelled_before_anything_is_written(way):
    """C21, "either no row or a complete pending row": while the gate only looks, a cancellation leaves no row."""
    store = SlowStore("while looking")
    host = Host(LimitDesk(), docket=store)
    await cancelled(work_of(way, list(host.bind().values()), "set_limit", LIMIT), store.inside, store.gate)
    store.point = None
    assert host.rows() == ()


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["bare", "agent"])
async def test_cancelled_before_it_starts(way):
    """DECISIONS 14: a call that is cancelled before it was begun runs no body and files nothing."""
    desk = LimitDesk()
    host = Host(desk)
    task = asyncio.ensure_future(work_of(way, list(host.bind().values()), "set_limit", LIMIT))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (desk.calls, host.rows()) == ([], ())


@pytest.mark.anyio
async def test_cancelled_right_after_filing():
    """C21, "right after": the row stands complete, and the history that is replayed files nothing new."""
    filed = asyncio.Event()

    async def telling(invocation, call_next):
        await call_next()
        filed.set()
        await asyncio.sleep(20)

    host = Host(AsyncLimitDesk(), filters=[telling])
    tools = list(host.bind().values())
    task = asyncio.ensure_future(work_of("agent", tools, "set_limit", LIMIT))
    await filed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert host.row().status == "pending"
    again = list(Host(AsyncLimitDesk(), docket=host.store).bind().values())
    await agent_of(again, asks(("set_limit", LIMIT))).ainvoke(question(), config())
    assert len(host.rows()) == 1


@pytest.mark.anyio
async def test_a_turn_that_runs_out_of_time_leaves_no_half_row():
    """C21 as hosts meet it: a deadline around the agent cancels the turn inside the filing."""
    store = SlowStore("before writing")
    host = Host(LimitDesk(), docket=store)

    async def run_out():
        await until(store.inside)
        deadline.reschedule(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)
        store.gate.set()

    deadline = asyncio.timeout(None)
    clock = asyncio.ensure_future(run_out())

    async def in_time():
        async with deadline:
            await work_of("agent", list(host.bind().values()), "set_limit", LIMIT)

    with pytest.raises(TimeoutError):
        await in_time()
    await clock
    assert host.row().status == "pending"


class Quits:
    """Bodies that end with a cancellation of their own."""

    def __init__(self, error):
        self.error = error

    @read_tool
    def quits(self) -> ReadResult:
        """Quit."""
        raise self.error

    @read_tool
    async def aquits(self) -> ReadResult:
        """Quit on the loop."""
        raise self.error


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("name", ["quits", "aquits"])
@pytest.mark.parametrize("error", [asyncio.CancelledError, concurrent.futures.CancelledError])
def test_a_cancellation_from_the_body_propagates(error, name, way):
    """C02, "asyncio.CancelledError: cancellation propagates, no envelope", from either kind of body on every way."""
    # Newer versions of LangGraph make an error of their own of a cancellation that nobody asked for.
    theirs = getattr(errors, "NodeCancelledError", asyncio.CancelledError)
    with pytest.raises((asyncio.CancelledError, concurrent.futures.CancelledError, theirs)):
        go(way, list(Host(Quits(error())).bind().values()), name, {}, config())


@pytest.mark.parametrize("way", ["invoke with a call", "ToolNode", "agent"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_end_of_the_process_propagates(error, way):
    """DECISIONS 14: what ends the whole process is nobody's tool failure."""

    def body() -> str:
        """End."""
        raise error

    with pytest.raises(error):
        go(way, [Host().wrap_one(StructuredTool.from_function(body))], "body", {}, config())


@pytest.mark.parametrize("way", MAIN)
def test_the_seam_is_closed_behind_every_call(way):
    """Measured, the context variable "only links a run() to its own _run()": behind a call none is left."""
    from affiant_langchain_bridge import seam

    host = Host([LimitDesk(), Quits(ValueError("x"))])
    tools = list(host.bind().values())
    for name, arguments in (("set_limit", LIMIT), ("quits", {}), ("set_limit", {"limit": "x"})):
        go(way, tools, name, arguments, config(turn()))
        assert seam._CALL.get() is None
    assert found() == found()
