"""Threads, loops, nesting and many conversations at once."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, tool
from support.gate import turn
from support.langchain import (
    MAIN,
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
    proposed,
    question,
    results_in,
    text_of,
)

from affiant_core import EmitEveryEntity, ReadResult, TurnContext, read_tool, write_tool

CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


class Sleeper:
    """Reads that say in which thread and for whom they ran, and that may wait there until the loop lets them go on."""

    def __init__(self, waits=False):
        self.waits = waits
        self.seen, self.let_go = [], []
        self.gate = threading.Event()

    @read_tool
    def slow(self, customer_id: str) -> ReadResult:
        """Wait in the thread."""
        self.seen.append((CALLER.get(), threading.get_ident()))
        if self.waits:
            self.let_go.append(self.gate.wait(20))
        return found(customer_id, caller=CALLER.get())

    @read_tool
    async def patient(self, customer_id: str) -> ReadResult:
        """Wait on the loop."""
        self.seen.append((CALLER.get(), threading.get_ident()))
        while self.waits and not self.gate.is_set():
            await asyncio.sleep(0)
        self.let_go.append(True)
        return found(customer_id, caller=CALLER.get())

    async def beat(self):
        """The loop's other work: it lets the bodies go as soon as two of them are waiting."""
        while len(self.seen) < 2:
            await asyncio.sleep(0)
        self.gate.set()


def as_wrapped(host, sleeper):
    def slow(customer_id: str) -> str:
        """Sleep in the thread."""
        return sleeper.slow(customer_id).to_json_string()

    async def patient(customer_id: str) -> str:
        """Sleep on the loop."""
        return (await sleeper.patient(customer_id)).to_json_string()

    return host.wrap(StructuredTool.from_function(slow), StructuredTool.from_function(coroutine=patient))


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["bound", "wrapped"])
@pytest.mark.parametrize("name", ["slow", "patient"])
async def test_no_body_holds_up_the_loop(name, kind):
    """C15: two bodies of one turn wait for the loop, which is free to let them go; both see the caller's value."""
    sleeper, host = Sleeper(waits=True), Host()
    tools = list(Host(sleeper).bind().values()) if kind == "bound" else as_wrapped(host, sleeper)
    agent = agent_of(tools, asks((name, {"customer_id": "c-1"}), (name, {"customer_id": "c-2"})))
    CALLER.set("ana")
    state, _ = await asyncio.gather(agent.ainvoke(question(), config()), sleeper.beat())
    assert sleeper.let_go == [True, True]
    assert [caller for caller, _ in sleeper.seen] == ["ana", "ana"]
    assert [text_of(each) for each in results_in(state)] == [
        found(customer, caller="ana").to_json_string() for customer in ("c-1", "c-2")
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["slow", "patient"])
def test_every_body_sees_the_callers_context_variables(name, way):
    """C15 and measured, "Context variables set by caller, middleware or seam reach the body in every path"."""
    sleeper = Sleeper()
    token = CALLER.set("ana")
    try:
        result = go(way, list(Host(sleeper).bind().values()), name, {"customer_id": "c-1"}, config())
    finally:
        CALLER.reset(token)
    assert document_of(result)["entities"][0]["fields"] == {"caller": "ana"}


@pytest.mark.anyio
async def test_the_pipeline_stays_on_the_loop_and_only_the_body_leaves_it():
    """Measured, "Then the async pipeline runs on the loop and only the body goes to a thread", bound and wrapped."""
    threads = []

    async def watching(invocation, call_next):
        threads.append(threading.get_ident())
        await call_next()
        threads.append(threading.get_ident())

    sleeper = Sleeper()
    tools = Host(sleeper, filters=[watching]).bind()
    wrapped = as_wrapped(Host(filters=[watching]), sleeper)
    for slow in (tools["slow"], wrapped[0]):
        await slow.ainvoke({"customer_id": "c-1"}, config())
    here = threading.get_ident()
    assert set(threads) == {here}
    assert here not in [thread for _, thread in sleeper.seen]


def test_an_asynchronous_body_under_a_synchronous_call_keeps_one_loop():
    """DECISIONS 21: asynchronous host code of synchronous calls runs on one loop, so that its clients stay usable."""
    loops = []

    class Desk:
        @read_tool
        async def look(self) -> ReadResult:
            """Look."""
            loops.append(asyncio.get_running_loop())
            return found()

    tool = Host(Desk()).bind()["look"]
    for _ in range(2):
        tool.invoke({}, config())
    assert loops[0] is loops[1]


# --- parallel calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("make", [agent_of, None])
def test_parallel_calls_of_one_turn(desk, asynchronous, make):
    """Measured, "Parallel calls really run in parallel, message order is kept": each has its own row and result."""
    host = Host(desk())
    tools = list(host.bind().values())
    asked = [("set_limit", {"customer_id": f"c-{n}", "limit": n}) for n in range(8)]
    asked.insert(3, ("find_customer", {"customer_id": "c-9"}))
    if make is None:
        runnable, value = graph_of(tools), {"messages": [asks(*asked)]}
    else:
        runnable, value = agent_of(tools, asks(*asked)), question()
    state = asyncio.run(runnable.ainvoke(value, config())) if asynchronous else runnable.invoke(value, config())
    results = results_in(state)
    assert [each.tool_call_id for each in results] == [f"call-{n}" for n in range(1, 10)]
    assert text_of(results.pop(3)) == found("c-9").to_json_string()
    by_id = {row.entry_id: row.affidavit for row in host.rows()}
    assert [by_id[document_of(each)["entryId"]].entity_id for each in results] == [f"c-{n}" for n in range(8)]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_same_proposal_twice_in_one_turn_is_one_row(asynchronous):
    """GT-4: two parallel calls that propose the same thing file one row; one of them is told that it was there."""
    host = Host(AsyncLimitDesk())
    one = ("set_limit", {"customer_id": "c-1", "limit": 1})
    agent = agent_of(list(host.bind().values()), asks(one, one))
    state = asyncio.run(agent.ainvoke(question(), config())) if asynchronous else agent.invoke(question(), config())
    assert sorted(document_of(each)["outcome"] for each in results_in(state)) == ["filed", "replayed"]
    assert len(host.rows()) == 1


# --- nested calls --------------------------------------------------------------------------------------------------


def nesting(host, *, asynchronous):
    """Tools whose bodies call other bridged tools, and themselves: a row from within, and a countdown."""
    names = ("outer", "set_limit", "count")

    def outer(customer_id: str) -> str:
        """Look, and propose on the way."""
        receipt = tools["set_limit"].invoke({"customer_id": customer_id})
        return found(customer_id, receipt=document_of(receipt)["entryId"]).to_json_string()

    async def aouter(customer_id: str) -> str:
        receipt = await tools["set_limit"].ainvoke({"customer_id": customer_id})
        return found(customer_id, receipt=document_of(receipt)["entryId"]).to_json_string()

    def set_limit(customer_id: str) -> str:
        """Propose."""
        return proposed(customer_id).to_json_string()

    async def aset_limit(customer_id: str) -> str:
        await asyncio.sleep(0)
        return proposed(customer_id).to_json_string()

    def count(n: int) -> str:
        """Count down."""
        return "0" if n == 0 else f"{n} {tools['count'].invoke({'n': n - 1})}"

    async def acount(n: int) -> str:
        return "0" if n == 0 else f"{n} {await tools['count'].ainvoke({'n': n - 1})}"

    pairs = ((outer, aouter), (set_limit, aset_limit), (count, acount))
    made = [
        StructuredTool.from_function(body, abody if asynchronous else None, name=name)
        for name, (body, abody) in zip(names, pairs, strict=True)
    ]
    tools = dict(zip(names, host.wrap(*made, writes=("set_limit",)), strict=True))
    return list(tools.values())


@pytest.mark.parametrize("way", MAIN)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_body_that_calls_another_bridged_tool(asynchronous, way):
    """Measured, "B and R also passed nesting": the inner call has a row, and its turn from the outer one's config."""
    host = Host()
    result = go(way, nesting(host, asynchronous=asynchronous), "outer", {"customer_id": "c-1"}, config())
    told = document_of(result)
    assert told["entities"][0]["fields"] == {"receipt": host.row().entry_id}
    assert SECRET not in repr(result)


@pytest.mark.parametrize("way", MAIN)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_body_that_calls_itself(asynchronous, way):
    """Measured, "recursion": each level is a call of its own, and its frame is not mistaken for another's."""
    result = go(way, nesting(Host(), asynchronous=asynchronous), "count", {"n": 5}, config())
    assert text_of(result) == "5 4 3 2 1 0"


@pytest.mark.parametrize("way", MAIN)
def test_bound_tools_call_one_another(way):
    """Measured, nesting with bind(): an asynchronous body calls a synchronous tool and that an asynchronous one."""

    class Desk:
        @read_tool
        async def first(self, customer_id: str) -> ReadResult:
            """Ask the second, blocking."""
            return found(customer_id, inner=tools["second"].invoke({"customer_id": customer_id}))

        @read_tool
        def second(self, customer_id: str) -> ReadResult:
            """Ask the third, blocking."""
            return found(customer_id, inner=document_of(tools["third"].invoke({"customer_id": customer_id}))["entryId"])

        @write_tool(operation="WriteUpdate", entity_type="Customer")
        async def third(self, customer_id: str, turn: TurnContext):
            """Propose."""
            await asyncio.sleep(0)
            return proposed(customer_id)

    host = Host(Desk())
    tools = host.bind()
    told = document_of(go(way, list(tools.values()), "first", {"customer_id": "c-1"}, config()))
    assert host.row().entry_id in told["entities"][0]["fields"]["inner"]


def test_a_nested_call_may_have_a_turn_of_its_own():
    """DECISIONS 12: a config that is passed explicitly wins over the one that LangChain inherits."""
    host = Host()

    def outer(customer_id: str, cfg: RunnableConfig) -> str:
        """Propose for another tenant."""
        assert cfg["configurable"]["affiant"].tenant_id == "acme"
        return inner.invoke({"customer_id": customer_id}, config(turn(tenant="other")))

    @tool
    def set_limit(customer_id: str) -> str:
        """Propose."""
        return proposed(customer_id).to_json_string()

    wrapped, inner = host.wrap(StructuredTool.from_function(outer), set_limit, writes=("set_limit",))
    wrapped.invoke({"customer_id": "c-1"}, config())
    assert (len(host.rows()), len(host.rows("other"))) == (0, 1)


# --- many conversations --------------------------------------------------------------------------------------------


class Bank:
    """A desk that takes random breaks and proposes what its own turn's fabric holds."""

    @read_tool
    async def find_customer(self, customer_id: str, turn: TurnContext) -> ReadResult:
        """Find a customer of the tenant."""
        await asyncio.sleep(random.random() / 2000)
        return found(customer_id, owner=turn.tenant_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(self, customer_id: str, limit: int, turn: TurnContext):
        """Propose a limit, for the owner that the read of this turn found."""
        await asyncio.sleep(random.random() / 2000)
        (entity,) = turn.fabric.entities()
        return proposed(customer_id, limit, f"{entity.fields['owner']} {turn.conversation_id} {turn.principal.id}")


def check_bank(host, expected):
    """No row of one conversation carries anything of another (C14)."""
    for tenant, conversations in expected.items():
        rows = host.rows(tenant)
        assert len(rows) == len(conversations)
        for row in rows:
            assert row.tenant_id == tenant
            number = int(row.conversation_id.split("-")[-1])
            assert row.affidavit.entity_id == f"{tenant}-{number}"
            assert row.affidavit.values() == {
                "limit": number,
                "memo": f"{tenant} {row.conversation_id} user-{tenant}-{number}",
            }


def bank_turn(tenant, number):
    return turn(f"user-{tenant}-{number}", tenant=tenant, conversation=f"chat-{number}")


def bank_script(tenant, number):
    customer = {"customer_id": f"{tenant}-{number}"}
    return asks(("find_customer", customer)), asks(("set_limit", {**customer, "limit": number}))


@pytest.mark.anyio
async def test_two_tenants_with_two_hundred_turns_each_do_not_mix():
    """C14: two hundred interleaved turns of each of two tenants, with the same conversation and call ids in both."""
    host = Host(Bank(), extractors=[EmitEveryEntity()])
    tools = host.bind()

    async def one(tenant, number):
        customer, cfg = {"customer_id": f"{tenant}-{number}"}, config(bank_turn(tenant, number))
        await tools["find_customer"].ainvoke(call("find_customer", customer), cfg)
        await asyncio.sleep(random.random() / 500)
        receipt = await tools["set_limit"].ainvoke(call("set_limit", {**customer, "limit": number}), cfg)
        return document_of(receipt)["outcome"]

    jobs = [one(tenant, number) for number in range(200) for tenant in ("north", "south")]
    random.shuffle(jobs)
    assert set(await asyncio.gather(*jobs)) == {"filed"}
    check_bank(host, {"north": range(200), "south": range(200)})


@pytest.mark.parametrize("asynchronous", [True, False])
def test_eight_threads_do_not_mix(asynchronous):
    """C14, "then 8 threads": agents of one set of tools in eight threads, with loops of their own and without."""
    host = Host(Bank(), extractors=[EmitEveryEntity()])
    tools = list(host.bind().values())

    def one(job):
        tenant, number = job
        agent = agent_of(tools, *bank_script(tenant, number))
        cfg = config(bank_turn(tenant, number))
        if asynchronous:
            return asyncio.run(agent.ainvoke(question(), cfg))
        return agent.invoke(question(), cfg)

    jobs = [(tenant, number) for number in range(16) for tenant in ("north", "south")]
    with ThreadPoolExecutor(8) as pool:
        for state in pool.map(one, jobs):
            assert document_of(results_in(state)[1])["outcome"] == "filed"
    check_bank(host, {"north": range(16), "south": range(16)})
