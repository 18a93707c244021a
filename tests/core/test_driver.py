"""One implementation, run on an event loop or in a thread without one."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import anyio
import pytest

from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, operation, run_now
from affiant_core.errors import SynchronousCallError

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")
LONG_ENOUGH = 15  # seconds; only ever waited for when a test fails


class Ledger:
    """An owner of an operation that reaches host code of both kinds."""

    def __init__(self, host):
        self.host = host

    @operation
    async def add(self, driver, left, right=0):
        """Add two numbers by way of the host."""
        return await driver.call(self.host, left, right)

    @operation
    async def twice(self, driver, number):
        """Add a number to itself, as a step of another operation."""
        return await self.add.under(driver, number, right=number)

    @operation
    async def suspend(self, driver, step):
        """Await what is not reached through the driver."""
        return await step()


async def add_async(left, right):
    await asyncio.sleep(0)
    return left + right


def add_sync(left, right):
    return left + right


HOSTS = pytest.mark.parametrize("host", [add_sync, add_async])


# --- operations ----------------------------------------------------------------------------------------------------


@HOSTS
def test_an_operation_is_awaited(host):
    """DECISIONS 21: an operation is awaited on an event loop, whether the host's function is async or not."""

    async def main():
        return await Ledger(host).add(1, right=2), await Ledger(host).twice(4)

    assert asyncio.run(main()) == (3, 8)


@HOSTS
def test_an_operation_runs_without_a_loop(host):
    """DECISIONS 21: the same operation runs from synchronous code with no loop."""
    assert Ledger(host).add.sync(1, right=2) == 3
    assert Ledger(host).twice.sync(4) == 8


@HOSTS
def test_an_operation_runs_inside_a_running_loop(host):
    """DECISIONS 21: the same operation runs from synchronous code that is itself on a running loop."""

    async def main():
        return Ledger(host).add.sync(1, right=2), await Ledger(host).add(3, right=4)

    assert asyncio.run(main()) == (3, 7)


@HOSTS
def test_an_operation_runs_from_many_threads_and_loops(host):
    """DECISIONS 21: one object works from several threads and event loops at once."""
    ledger = Ledger(host)

    def work(number):
        if number % 2:
            return ledger.add.sync(number, right=1)

        async def main():
            return sum(await asyncio.gather(ledger.add(number), ledger.add(1)))

        return asyncio.run(main())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(64))) == [number + 1 for number in range(64)]


def test_an_operation_is_described():
    """DESIGN, How it should feel: an operation keeps its name and its documentation."""
    assert Ledger.add.__doc__ == "Add two numbers by way of the host."
    assert Ledger.add.__name__ == "add"


@pytest.mark.parametrize("drive", ["sync", "await"])
def test_an_exception_of_the_host_propagates(drive):
    """CV-1: what a host's function raises reaches the caller as it is, in both forms."""

    async def broken(left, right):
        await asyncio.sleep(0)
        raise LookupError("host")

    ledger = Ledger(broken)
    with pytest.raises(LookupError, match="host"):
        ledger.add.sync(1) if drive == "sync" else asyncio.run(ledger.add(1))


# --- asynchronous host code from synchronous code ------------------------------------------------------------------


def test_the_callers_context_variables_are_seen():
    """CASES C15: async host code called from sync code sees the caller's context variables."""

    async def whose(left, right):
        await asyncio.sleep(0)
        return TENANT.get()

    async def main():
        token = TENANT.set("tenant-b")
        try:
            return Ledger(whose).add.sync(1), await Ledger(whose).add(1)
        finally:
            TENANT.reset(token)

    assert asyncio.run(main()) == ("tenant-b", "tenant-b")
    assert Ledger(whose).add.sync(1) == "nobody"


def test_host_code_shares_one_loop():
    """DECISIONS 21: async host code called from sync code runs on one loop, so that its clients stay usable."""
    seen = []

    async def where(left, right):
        seen.append((asyncio.get_running_loop(), threading.get_ident()))
        return left

    ledger = Ledger(where)
    ledger.add.sync(1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ledger.add.sync, range(8)))

    async def main():
        ledger.add.sync(1)
        return asyncio.get_running_loop()

    own = asyncio.run(main())
    assert len(set(seen)) == 1
    assert seen[0][0] is not own
    assert seen[0][1] != threading.get_ident()


def test_callers_wait_side_by_side():
    """DECISIONS 21: several threads wait on the shared loop at once; none waits for another's turn to end."""
    together = []
    arrived = threading.Barrier(4, timeout=LONG_ENOUGH)

    async def meet(left, right):
        await asyncio.to_thread(arrived.wait)
        together.append(left)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Ledger(meet).add.sync, range(4)))
    assert sorted(together) == [0, 1, 2, 3]


def test_host_code_may_call_back():
    """DECISIONS 21: async host code that calls an operation synchronously still sees its caller's context."""

    async def whose(left, right):
        await asyncio.sleep(0)
        return TENANT.get()

    async def calls_back(left, right):
        await asyncio.sleep(0)
        return Ledger(whose).add.sync(1)

    token = TENANT.set("tenant-c")
    try:
        assert Ledger(calls_back).add.sync(1) == "tenant-c"
    finally:
        TENANT.reset(token)


def in_another_process(program):
    """Run a program of its own, for what would hang this one if it went wrong."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=4 * LONG_ENOUGH,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_host_code_may_call_back_at_any_depth():
    """DECISIONS 21: no depth of calls back and forth between sync and async code ends in a deadlock."""
    program = """
import asyncio
from affiant_core.driver import SYNCHRONOUS, run_now

async def level(depth, hop):
    await asyncio.sleep(0)
    if not depth:
        return 0
    inner = lambda: run_now(SYNCHRONOUS.call(level, depth - 1, hop))
    return 1 + (await asyncio.to_thread(inner) if hop else inner())

print(run_now(SYNCHRONOUS.call(level, 4, False)), run_now(SYNCHRONOUS.call(level, 4, True)))
"""
    assert in_another_process(program) == ["4", "4"]


def test_host_code_that_ends_the_program():
    """DECISIONS 21: what ends a program reaches the caller, and the shared loop serves the calls that come after."""
    program = """
import asyncio
from affiant_core.driver import SYNCHRONOUS, run_now

async def host(stop):
    await asyncio.sleep(0)
    if stop:
        raise stop
    return "served"

for stop in (SystemExit, KeyboardInterrupt):
    try:
        run_now(SYNCHRONOUS.call(host, stop))
    except stop as caught:
        print(type(caught).__name__, run_now(SYNCHRONOUS.call(host, None)))
"""
    assert in_another_process(program) == ["SystemExit", "served", "KeyboardInterrupt", "served"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_a_loop_of_its_own():
    """DECISIONS 21, CASES C05: a worker process forked after the first call can call as well."""
    program = """
import asyncio, os, warnings
from affiant_core.driver import SYNCHRONOUS, run_now

warnings.simplefilter("ignore")  # newer Pythons warn of every fork with threads

async def where():
    return os.getpid()

assert run_now(SYNCHRONOUS.call(where)) == os.getpid()
child = os.fork()
if not child:
    raise SystemExit(0 if run_now(SYNCHRONOUS.call(where)) == os.getpid() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run_now(SYNCHRONOUS.call(where)) == os.getpid())
"""
    assert in_another_process(program) == ["0", "True"]


def test_cancellation_from_host_code():
    """DECISIONS 14: a cancellation raised by async host code propagates as one, and no handler of errors maps it."""

    async def cancelled(left, right):
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    async def calls_back(left, right):
        return Ledger(cancelled).add.sync(1)

    for host in (cancelled, calls_back):
        with pytest.raises(asyncio.CancelledError):
            Ledger(host).add.sync(1)


# --- filters that suspend ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_a_loop", [True, False])
def test_suspending_inside_a_synchronous_call(on_a_loop):
    """DECISIONS 21: an async filter that suspends in a sync call is an error that says so, and is closed properly."""
    closed = []

    async def step():
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    async def main():
        return Ledger(None).suspend.sync(step)

    with pytest.raises(SynchronousCallError, match=r"invocation\.driver\.call\(\)"):
        asyncio.run(main()) if on_a_loop else Ledger(None).suspend.sync(step)
    assert closed == [True]


def test_an_async_filter_that_does_not_suspend():
    """DECISIONS 21: being written with async alone is no obstacle to a sync call."""

    async def step():
        return 5

    assert Ledger(None).suspend.sync(step) == 5
    assert run_now(step()) == 5


# --- calling and offloading ----------------------------------------------------------------------------------------


class Callable:
    async def __call__(self):
        await asyncio.sleep(0)
        return threading.get_ident()

    async def method(self):
        return threading.get_ident()


async def coroutine_function(ignored=None):
    return threading.get_ident()


@pytest.mark.parametrize(
    "function",
    [coroutine_function, Callable(), Callable().method, functools.partial(coroutine_function, 1)],
    ids=["function", "callable", "method", "partial"],
)
def test_async_functions_run_on_the_loop(function):
    """CASES C15: an async function runs on the caller's loop, however it is wrapped, and a sync call works as well."""

    async def main():
        here = threading.get_ident()
        return here, await ASYNCHRONOUS.call(function), await ASYNCHRONOUS.offload(function)

    assert len(set(asyncio.run(main()))) == 1
    assert run_now(SYNCHRONOUS.call(function)) == run_now(SYNCHRONOUS.offload(function)) != threading.get_ident()


def test_call_stays_in_this_thread():
    """CASES C15: a plain function that is called, and not offloaded, runs where its caller is."""

    async def main():
        return threading.get_ident() == await ASYNCHRONOUS.call(threading.get_ident)

    assert asyncio.run(main())
    assert run_now(SYNCHRONOUS.call(threading.get_ident)) == threading.get_ident()
    assert run_now(SYNCHRONOUS.offload(threading.get_ident)) == threading.get_ident()


def plain(go_on):
    return go_on.wait(LONG_ENOUGH), TENANT.get()


async def asked_for(go_on):
    """What a synchronous façade says that it wraps."""


@functools.wraps(asked_for)
def facade(go_on):
    return plain(go_on)


@pytest.mark.parametrize("function", [plain, facade, functools.partial(plain)], ids=["plain", "facade", "partial"])
def test_offload_does_not_hold_up_the_loop(function):
    """CASES C15: while a plain function waits, the loop goes on; the function sees the caller's context variables."""

    async def main():
        TENANT.set("tenant-d")
        go_on = threading.Event()
        waiting = asyncio.create_task(ASYNCHRONOUS.offload(function, go_on))
        await asyncio.sleep(0)
        go_on.set()  # never reached while the function holds up this loop
        return await waiting

    assert asyncio.run(main()) == (True, "tenant-d")


def returns_an_awaitable():
    return coroutine_function()


def test_offload_awaits_what_a_plain_function_returns():
    """CASES C15: a plain function may return an awaitable, which is awaited on the loop."""

    async def main():
        here = threading.get_ident()
        return here == await ASYNCHRONOUS.offload(returns_an_awaitable) == threading.get_ident()

    assert asyncio.run(main())


# --- shielding -----------------------------------------------------------------------------------------------------


class Filing:
    """Work in two steps with a pause between, and a way to know when it has begun."""

    def __init__(self, fault=None):
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.steps = []
        self.fault = fault

    async def work(self):
        self.steps.append("begun")
        self.begun.set()
        await self.go_on.wait()
        await asyncio.sleep(0)
        self.steps.append("done")
        if self.fault:
            raise self.fault
        return "filed"


@pytest.mark.parametrize("driver", [ASYNCHRONOUS, SYNCHRONOUS])
def test_shielded_work_returns_its_answer(driver):
    """DECISIONS 14: shielding changes nothing when nobody cancels, neither the answer nor a fault."""

    async def answer():
        return "filed"

    async def fault():
        raise LookupError("store")

    def drive(work):
        return asyncio.run(driver.shield(work)) if driver is ASYNCHRONOUS else run_now(driver.shield(work))

    assert drive(answer()) == "filed"
    with pytest.raises(LookupError, match="store"):
        drive(fault())


@pytest.mark.parametrize("fault", [None, LookupError("store")])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_cancellation_during_the_work(times, fault):
    """DECISIONS 14, CASES C21: cancelled once or often, the work is carried through; then the cancellation goes on."""

    async def main():
        filing = Filing(fault)
        after = []

        async def turn():
            await ASYNCHRONOUS.shield(filing.work())
            after.append("the turn went on")

        task = asyncio.create_task(turn())
        await filing.begun.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        filing.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        return filing.steps, after

    assert asyncio.run(main()) == (["begun", "done"], [])


def test_a_timeout_during_the_work():
    """DECISIONS 14: a timeout is a cancellation; the work is whole when it fires, and it fires as a timeout."""

    async def main():
        filing = Filing()

        async def let_go():
            await filing.begun.wait()
            for _ in range(5):
                await asyncio.sleep(0)
            filing.go_on.set()

        letting_go = asyncio.create_task(let_go())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await ASYNCHRONOUS.shield(filing.work())
        await letting_go
        return filing.steps

    assert asyncio.run(main()) == ["begun", "done"]


def test_a_cancelled_scope_during_the_work():
    """DECISIONS 14: a cancel scope of anyio waits for the work too, and cancels what comes after it."""

    async def main():
        filing = Filing()
        after = []
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def turn():
                    after.append(await ASYNCHRONOUS.shield(filing.work()))
                    await anyio.sleep(0)
                    after.append("the turn went on")

                group.start_soon(turn)
                await filing.begun.wait()
                scope.cancel()
                filing.go_on.set()
        assert scope.cancelled_caught
        return filing.steps, after

    assert asyncio.run(main()) == (["begun", "done"], ["filed"])


def test_work_that_is_itself_cancelled():
    """DECISIONS 14: cancellation always propagates, also when it comes from within the work."""

    async def work():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await ASYNCHRONOUS.shield(work())

    asyncio.run(main())


def test_shielded_work_sees_the_context():
    """CASES C15: the work sees the caller's context variables."""

    async def work():
        return TENANT.get()

    async def main():
        TENANT.set("tenant-e")
        return await ASYNCHRONOUS.shield(work())

    assert asyncio.run(main()) == "tenant-e"
