"""Somebody ends a turn: at any moment, and never half a filing (DECISIONS 14; C21)."""

from __future__ import annotations

import asyncio
import threading

import pytest
from agents import Runner, function_tool
from support.gate import act, turn
from support.openai_agents import (
    LIMIT,
    QUIET,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    acall,
    arun,
    asks,
    document_of,
    outputs_in,
    proposed,
    run,
)

from affiant_core import Approve, InMemoryDocketStore, WireupInvalid, write_tool

WAYS = pytest.mark.parametrize("way", ["bare", "plain", "streamed"])


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

    def _native(self):
        @function_tool(name_override="native")
        def body(customer_id: str) -> str:
            """Wait in a thread of the SDK's, and propose."""
            return self.slow(customer_id).to_json_string()

        return body


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


async def until(event):
    while not event.is_set():
        await asyncio.sleep(0.001)


async def settled(condition):
    """Wait for what the SDK lets go on behind a cancelled run."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came about")


def work_of(way, host, name, arguments, tools=None):
    if way == "bare":
        return acall(next(tool for tool in (tools or host.bind().values()) if tool.name == name), arguments)
    return arun(host.agent(asks((name, arguments)), tools=tools), mode=way)


async def cancelled(work, inside, gate):
    """Cancel ``work`` when it is inside, let it go on a little later, and see that the cancellation comes out."""
    task = asyncio.ensure_future(work)
    await until(inside)
    task.cancel()
    await asyncio.sleep(0.01)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.anyio
@WAYS
@pytest.mark.parametrize("name", ["patient", "slow", "native"])
async def test_cancelled_in_the_body(name, way):
    """DECISIONS 14 and C21: a turn that is cancelled while the body runs files nothing, even if the body goes on."""
    desk = Held()
    host = Host(desk)
    tools = [*host.bind().values(), *host.wrap(desk._native(), writes=True)]
    await cancelled(work_of(way, host, name, {"customer_id": "c-1"}, tools), desk.inside, desk.gate)
    if name != "patient":
        await until(desk.done)
    await asyncio.sleep(0.05)
    assert host.rows() == ()


@pytest.mark.anyio
@WAYS
@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
@pytest.mark.parametrize("point", ["before writing", "after writing"])
async def test_cancelled_while_filing(point, desk, way):
    """C21: a filing that has begun is carried through; the row is whole, can be decided, and is found by a replay."""
    store = SlowStore(point)
    host = Host(desk(), docket=store)
    await cancelled(work_of(way, host, "set_limit", LIMIT), store.inside, store.gate)
    await settled(host.rows)
    store.point = None
    row = host.row()
    assert (row.status, row.affidavit.values()["limit"]) == ("pending", 10)
    repeat = await acall(host.bind()["set_limit"], LIMIT)
    assert (document_of(repeat)["outcome"], document_of(repeat)["entryId"]) == ("replayed", row.entry_id)
    await host.gate.decide(row.entry_id, Approve(), act())
    assert host.row().status == "approved"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["immediate", "after_turn"])
async def test_a_stream_that_is_cancelled_leaves_no_half_row(mode):
    """Seam 6, run_streamed().cancel(): in a body it files nothing "immediate", and lets the call end "after_turn"."""
    desk = Held()
    host = Host(desk)
    streamed = Runner.run_streamed(
        host.agent(asks(("patient", {"customer_id": "c-1"}))), "go", context=turn(), run_config=QUIET
    )

    async def drain():
        async for _ in streamed.stream_events():
            pass

    reading = asyncio.ensure_future(drain())
    await until(desk.inside)
    streamed.cancel(mode)
    await asyncio.sleep(0.02)
    desk.gate.set()
    await asyncio.wait_for(reading, 20)
    await asyncio.sleep(0.05)
    assert len(host.rows()) == (mode == "after_turn")


@pytest.mark.anyio
async def test_a_stream_that_is_cancelled_while_filing_leaves_a_whole_row():
    """C21 with cancel("immediate"): the filing is shielded, so the row is there, pending and complete."""
    store = SlowStore("before writing")
    host = Host(LimitDesk(), docket=store)
    streamed = Runner.run_streamed(host.agent(asks(("set_limit", LIMIT))), "go", context=turn(), run_config=QUIET)

    async def drain():
        async for _ in streamed.stream_events():
            pass

    reading = asyncio.ensure_future(drain())
    await until(store.inside)
    streamed.cancel("immediate")
    await asyncio.sleep(0.02)
    store.gate.set()
    await asyncio.wait_for(reading, 20)
    await settled(host.rows)
    assert host.row().status == "pending"


@pytest.mark.anyio
async def test_a_host_fault_cancels_its_siblings_and_no_filing():
    """DECISIONS 12: the fault is loud and ends the turn; what a sibling has begun to file is there whole."""
    store = SlowStore("before writing")

    class Mixed(LimitDesk):
        async def broken(self) -> str:
            """Find the host wired wrongly, once the sibling is filing."""
            await until(store.inside)
            threading.Timer(0.05, store.gate.set).start()
            raise WireupInvalid("the host has no such service.")

    host = Host(Mixed(), docket=store)
    with pytest.raises(WireupInvalid, match="no such service"):
        await arun(host.agent(asks(("set_limit", LIMIT), ("broken", {}))))
    await settled(host.rows)
    assert host.row().status == "pending"


def test_a_failing_sibling_cancels_nothing():
    """DECISIONS 13: a body that fails is a ToolError, so its siblings answer and the turn goes on."""

    class Mixed(LimitDesk):
        async def broken(self) -> str:
            """Fail at once."""
            raise RuntimeError("hunter2")

    host = Host(Mixed())
    result = run(host.agent(asks(("set_limit", LIMIT), ("broken", {}))))
    filed, failed = outputs_in(result)
    assert (document_of(filed)["outcome"], document_of(failed)["code"]) == ("filed", "UNKNOWN")
    assert result.final_output == "done"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_end_of_the_process_propagates(error):
    """DECISIONS 14: neither the pipeline nor the seam keeps a KeyboardInterrupt or a SystemExit."""

    class Ending:
        async def leave(self) -> str:
            """End the process."""
            raise error

    tool = Host(Ending()).bind()["leave"]
    with pytest.raises(error):
        asyncio.run(acall(tool))
