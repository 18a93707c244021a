"""Many calls at once: batches, tenants, threads, synchronous bodies, cancellation (DECISIONS 14 and 21)."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

import pytest

from affiant_core.authority import Approve, Reject
from affiant_core.context import TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.store import Filed
from affiant_core.envelope import ReadResult, WriteProposal
from affiant_core.registry import read_tool, write_tool
from affiant_core.testing.harness import Backend, Capability, Harness, Reply, ToolCall
from affiant_core.testing.standard.base import needs, on_a_loop
from affiant_core.testing.world import (
    SECRET,
    T0,
    AsyncLimitTools,
    LimitTools,
    SelfArguing,
    World,
    acting,
    found,
    proposed,
    told,
    turn,
)
from affiant_core.vocabulary import ReviewStatus

AnswerT = TypeVar("AnswerT")

whose: ContextVar[str] = ContextVar("whose", default="nobody's")
"""Something that the caller sets and a tool's body reads."""


def in_threads(work: Callable[[int], AnswerT], count: int) -> list[AnswerT]:
    """``work(index)`` in so many threads at once; what one of them raised is raised here."""
    barrier = threading.Barrier(count)
    answers: dict[int, AnswerT] = {}
    errors: list[BaseException] = []

    def run(index: int) -> None:
        barrier.wait()
        try:
            answers[index] = work(index)
        except BaseException as error:  # noqa: BLE001  # it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    return [answers[index] for index in range(count)]


class SlowStore(InMemoryDocketStore):
    """A store that waits in the middle of filing until it is let go, so that a test can cancel there."""

    def __init__(self) -> None:
        super().__init__()
        self.blocking = True  # it waits, so it is called in a thread
        self.entered: threading.Event = threading.Event()
        self.released: threading.Event = threading.Event()

    def file(self, entry: DocketEntry) -> Filed:
        """Wait, then file."""
        self.entered.set()
        assert self.released.wait(30), "nobody let the store go"
        return super().file(entry)


class SleepyTools:
    """A synchronous read that takes its time and says what the caller set."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @read_tool
    def sleep(self) -> ReadResult:
        """Sleep."""
        time.sleep(self.seconds)
        return ReadResult(timestamp=T0, summary=whose.get(), markdown="")

    @read_tool
    async def sleep_later(self) -> ReadResult:
        """Sleep on the event loop."""
        await asyncio.sleep(self.seconds)
        return ReadResult(timestamp=T0, summary=whose.get(), markdown="")


class TenantTools:
    """Tools that say whose turn they ran in, after a random wait."""

    @read_tool
    async def whoami(self, marker: str, turn: TurnContext) -> ReadResult:
        """Say whose turn this is."""
        await asyncio.sleep(random.random() / 200)
        return ReadResult(timestamp=T0, summary=f"{turn.tenant_id} {turn.conversation_id} {marker}", markdown="")

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def claim(self, marker: str, turn: TurnContext) -> WriteProposal:
        """Propose something for this turn's tenant."""
        await asyncio.sleep(random.random() / 200)
        return proposed(f"{turn.tenant_id}-{marker}", arguments={"marker": marker})


class ParallelTests:
    """Calls that run at once keep apart, and end whole or not at all."""

    @pytest.mark.parametrize("tools", [LimitTools, AsyncLimitTools, SelfArguing])
    @on_a_loop
    async def test_a_mixed_batch(self, harness: Harness, tools: type[LimitTools]) -> None:
        """C03: the read answers in this turn, two rows, two ids, three results; only what is approved is written."""
        if tools is not SelfArguing and not harness.has(Capability.ARGUMENTS_AT_THE_GATE):
            tools = SelfArguing  # the other two are one row there, as C04 says
        world = World(tools())
        batch = [
            ToolCall("find_customer", {"customer_id": "c-1"}, "call-1"),
            ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}, "call-2"),
            ToolCall("set_limit", {"customer_id": "c-2", "limit": 20}, "call-3"),
        ]
        script: list[Reply] = [batch, "Both are filed."]
        transcript = await harness.wire(world.affiant).play(script, turn())
        assert set(transcript.results) == {"call-1", "call-2", "call-3"}
        assert transcript.results["call-1"] == found().to_json_string()
        first, second = (told(transcript.results[each])["entryId"] for each in ("call-2", "call-3"))
        assert {row.entry_id for row in world.rows()} == {first, second}
        assert first != second
        gate = world.affiant.gate
        await gate.decide(second, Approve(), acting())
        await gate.decide(first, Reject("no"), acting())
        world.execute()
        assert world.log == [(second, 20)]

    @on_a_loop
    async def test_parallel_calls_get_their_own_answers(self, harness: Harness) -> None:
        """DECISIONS 21: forty calls at once on one loop, and each is answered with its own customer."""
        backend = harness.wire(World(AsyncLimitTools()).affiant)
        names = [f"c-{at}" for at in range(40)]
        calls = [ToolCall("find_customer", {"customer_id": name}, f"call-{name}") for name in names]
        texts = await asyncio.gather(*(backend.call(call, turn()) for call in calls))
        assert texts == [found(name).to_json_string() for name in names]

    @on_a_loop
    async def test_tenants_that_take_turns_never_mix(self, harness: Harness) -> None:
        """C14: 200 interleaved turns of each of two tenants; no answer and no row carries anything of the other."""
        world = World(TenantTools())
        await _take_turns(harness.wire(world.affiant), range(200))
        _assert_apart(world, 200)

    def test_tenants_in_eight_threads_never_mix(self, harness: Harness) -> None:
        """C14: the same in eight threads, each with an event loop of its own, on one wired host."""
        world = World(TenantTools())
        backend = harness.wire(world.affiant)
        in_threads(lambda index: asyncio.run(_take_turns(backend, range(index * 10, index * 10 + 10))), 8)
        _assert_apart(world, 80)

    def test_sixteen_threads_file_one_row(self, harness: Harness) -> None:
        """DECISIONS 21: of sixteen identical calls at once one files; the others replay its row."""
        world = World(LimitTools())
        backend = harness.wire(world.affiant)
        call = ToolCall("set_limit", {"customer_id": "c-1", "limit": 10})
        texts = in_threads(lambda _: asyncio.run(backend.call(call, turn())), 16)
        outcomes = [told(text)["outcome"] for text in texts]
        assert sorted(outcomes) == ["filed"] + ["replayed"] * 15
        assert len(world.rows()) == 1

    @needs(Capability.SYNCHRONOUS)
    @pytest.mark.parametrize("tools", [LimitTools, AsyncLimitTools])
    def test_a_call_without_an_event_loop(self, harness: Harness, tools: type[LimitTools]) -> None:
        """DECISIONS 21: synchronous code gets the same answers and files the same row."""
        read = ToolCall("find_customer", {"customer_id": "c-1"})
        write = ToolCall("set_limit", {"customer_id": "c-1", "limit": 10})
        one, other = World(tools()), World(tools())
        now, later = harness.wire(one.affiant), harness.wire(other.affiant)
        for call in (read, write):
            assert now.call_now(call, turn()) == asyncio.run(later.call(call, turn()))
        assert one.row() == other.row()

    @needs(Capability.SYNCHRONOUS)
    @on_a_loop
    async def test_a_synchronous_call_inside_a_running_loop(self, harness: Harness) -> None:
        """DECISIONS 21: synchronous code works also where an event loop is running around it."""
        world = World(LimitTools())
        backend = harness.wire(world.affiant)
        text = backend.call_now(ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}), turn())
        assert told(text)["entryId"] == world.row().entry_id

    @needs(Capability.SYNCHRONOUS)
    def test_sixteen_threads_without_event_loops(self, harness: Harness) -> None:
        """DECISIONS 21: sixteen threads of synchronous code, and each gets its own answer."""
        backend = harness.wire(World(LimitTools()).affiant)
        texts = in_threads(
            lambda index: backend.call_now(ToolCall("find_customer", {"customer_id": f"c-{index}"}), turn()), 16
        )
        assert texts == [found(f"c-{index}").to_json_string() for index in range(16)]

    @pytest.mark.parametrize("name", ["sleep", "sleep_later"])
    @on_a_loop
    async def test_a_synchronous_body_does_not_hold_up_the_loop(self, harness: Harness, name: str) -> None:
        """C15: two calls that sleep, and the loop goes on; both see the caller's context variable."""
        backend = harness.wire(World(SleepyTools(0.3)).affiant)
        beats = [time.monotonic()]

        async def heartbeat() -> None:
            while True:
                await asyncio.sleep(0.01)
                beats.append(time.monotonic())

        whose.set("the caller's")
        beating = asyncio.create_task(heartbeat())
        script: list[Reply] = [[ToolCall(name, id="call-1"), ToolCall(name, id="call-2")], "Done."]
        transcript = await backend.play(script, turn())
        beating.cancel()
        assert [told(text)["summary"] for text in transcript.results.values()] == ["the caller's"] * 2
        # Counted, not timed: a loop that was held up for 0.3 s at a time beats a handful of times.
        assert len(beats) > 10

    @on_a_loop
    async def test_a_call_that_is_cancelled_while_filing_leaves_a_whole_row(self, harness: Harness) -> None:
        """C21: cancellation propagates and does not cut the filing; the row is complete, and can be decided later."""
        store = SlowStore()
        world = World(LimitTools(), docket=store)
        backend = harness.wire(world.affiant)
        call = ToolCall("set_limit", {"customer_id": "c-1", "limit": 10})
        running = asyncio.create_task(backend.call(call, turn()))
        assert await asyncio.to_thread(store.entered.wait, 30)
        running.cancel()
        await asyncio.sleep(0.02)
        store.released.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        await _whole(world)
        assert told(await backend.call(call, turn()))["outcome"] == "replayed"
        assert len(world.rows()) == 1

    @on_a_loop
    async def test_a_turn_that_is_cancelled_while_filing_leaves_a_whole_row(self, harness: Harness) -> None:
        """C21: the same for a whole turn; replaying the history files nothing new."""
        store = SlowStore()
        world = World(LimitTools(), docket=store)
        backend = harness.wire(world.affiant)
        script: list[Reply] = [[ToolCall("set_limit", {"customer_id": "c-1", "limit": 10})], "Filed."]
        running = asyncio.create_task(_play(backend, script))
        assert await asyncio.to_thread(store.entered.wait, 30)
        running.cancel()
        await asyncio.sleep(0.02)
        store.released.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        await _whole(world)
        transcript = await backend.play(script, turn())
        assert told(transcript.results["call-1"])["outcome"] == "replayed"
        assert len(world.rows()) == 1

    @on_a_loop
    async def test_a_call_that_is_cancelled_in_its_body_files_nothing(self, harness: Harness) -> None:
        """C21: before the filing begins there is no row, and none comes later."""
        entered, released = asyncio.Event(), asyncio.Event()

        class Waiting:
            @write_tool(operation="WriteUpdate", entity_type="Customer")
            async def change(self) -> WriteProposal:
                """Come to an end only when the test says so."""
                entered.set()
                await released.wait()
                return proposed()

        world = World(Waiting())
        running = asyncio.create_task(harness.wire(world.affiant).call(ToolCall("change"), turn()))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        released.set()
        await asyncio.sleep(0.05)  # a body that was left running would have filed by now
        assert world.rows() == ()


async def _play(backend: Backend, script: Sequence[Reply]) -> object:
    return await backend.play(script, turn())


async def _whole(world: World) -> None:
    """Wait for the filing that went on, and assert that its row is complete and can be decided."""
    for _ in range(500):
        if world.rows():
            break
        await asyncio.sleep(0.01)
    row = world.row()
    assert row.status is ReviewStatus.PENDING
    assert row.affidavit.values() == {"limit": 10, "memo": SECRET}
    decided = await world.affiant.gate.decide(row.entry_id, Approve(), acting())
    assert decided.status is ReviewStatus.APPROVED


async def _take_turns(backend: Backend, numbers: range) -> None:
    async def one(tenant: str, number: int) -> None:
        context = turn(tenant, f"conversation-{tenant}-{number}")
        read = await backend.call(ToolCall("whoami", {"marker": str(number)}), context)
        assert told(read)["summary"] == f"{tenant} conversation-{tenant}-{number} {number}"
        receipt = told(await backend.call(ToolCall("claim", {"marker": str(number)}), context))
        assert receipt["outcome"] == "filed"

    await asyncio.gather(*(one(tenant, number) for number in numbers for tenant in ("acme", "globex")))


def _assert_apart(world: World, count: int) -> None:
    for tenant in ("acme", "globex"):
        rows = world.rows(tenant)
        assert len(rows) == count
        for row in rows:
            assert row.affidavit.entity_id is not None
            assert row.affidavit.entity_id.startswith(f"{tenant}-")
            assert row.conversation_id.startswith(f"conversation-{tenant}-")
