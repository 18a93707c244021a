"""Many calls at once: in one turn, in many turns of several tenants, in many threads (C14; DECISIONS 21)."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents import RunConfig
from agents.run_config import ToolExecutionConfig
from support.gate import turn
from support.openai_agents import (
    FIND,
    LIMIT,
    MODES,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    acall,
    arun,
    asks,
    document_of,
    found,
    heard_by,
    outputs_in,
    proposed,
    run,
)

from affiant_core import EmitEveryEntity, TurnContext, read_tool, write_tool

EVERY = pytest.mark.parametrize("mode", MODES)
DESKS = pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])


@EVERY
@DESKS
def test_parallel_calls_of_one_turn(desk, mode):
    """C03 at scale: forty calls of one message, forty answers in their order, a row for each proposal."""
    host = Host(desk())
    calls = [
        ("set_limit", {"customer_id": f"c-{n}", "limit": n}) if n % 2 else ("find_customer", FIND) for n in range(40)
    ]
    agent = host.agent(asks(*calls))
    run(agent, mode=mode)
    heard = heard_by(agent)
    assert [call_id for call_id, _ in heard] == [f"call-{n}" for n in range(1, 41)]
    assert all(text == found().to_json_string() for _, text in heard[::2])
    assert {document_of(text)["entryId"] for _, text in heard[1::2]} == {row.entry_id for row in host.rows()}
    assert len(host.rows()) == 20


@EVERY
def test_the_same_proposal_twice_in_one_turn_is_one_row(mode):
    """GT-4 and seam 6, "Identical calls with distinct ids both run": one row, filed once and found once."""
    host = Host(LimitDesk())
    result = run(host.agent(asks(("set_limit", LIMIT), ("set_limit", LIMIT))), mode=mode)
    first, second = map(document_of, outputs_in(result))
    assert first["entryId"] == second["entryId"] == host.row().entry_id
    assert {first["outcome"], second["outcome"]} == {"filed", "replayed"}


@EVERY
def test_a_call_id_twice_is_one_call(mode):
    """Seam 6, "Same call_id, same arguments: executed once, the replay dropped": one body, one row, one answer."""
    desk = LimitDesk()
    host = Host(desk)
    agent = host.agent([*asks(("set_limit", LIMIT)), *asks(("set_limit", LIMIT))])
    run(agent, mode=mode)
    assert (len(desk.calls), len(host.rows()), len(heard_by(agent))) == (1, 1, 1)


@EVERY
def test_calls_one_after_another(mode):
    """Seam 6, max_function_tool_concurrency=1: the same rows and answers when the SDK runs one call at a time."""
    config = RunConfig(tracing_disabled=True, tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))
    host = Host(LimitDesk())
    agent = host.agent(asks(("set_limit", LIMIT), ("set_limit", {"customer_id": "c-2", "limit": 20})))
    run(agent, mode=mode, run_config=config)
    assert len(host.rows()) == len(heard_by(agent)) == 2


class Bank:
    """Tools whose every word names the tenant and the conversation that it is for."""

    @read_tool
    async def find_customer(self, customer_id: str):
        """Find one customer."""
        await asyncio.sleep(random.random() / 500)
        return found(customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(self, customer_id: str, limit: int, turn: TurnContext):
        """Propose, in the name of whoever asks, what this turn has read."""
        await asyncio.sleep(random.random() / 500)
        (seen,) = (entity.entity_id for entity in turn.fabric.entities())
        assert seen == customer_id
        return proposed(customer_id, limit, f"{turn.tenant_id} {turn.conversation_id} {turn.principal.id}")


def bank_turn(tenant, number):
    return turn(f"user-{tenant}-{number}", tenant=tenant, conversation=f"chat-{number}")


def bank_agent(host, tools, tenant, number):
    customer = {"customer_id": f"{tenant}-{number}"}
    script = asks(("find_customer", customer)), asks(("set_limit", {**customer, "limit": number}), first=2)
    return host.agent(*script, tools=tools)


def check_bank(host, count):
    for tenant in ("north", "south"):
        rows = host.rows(tenant)
        assert len(rows) == count
        for row in rows:
            number = int(row.conversation_id.removeprefix("chat-"))
            assert row.affidavit.entity_id == f"{tenant}-{number}"
            memo = f"{tenant} {row.conversation_id} user-{tenant}-{number}"
            assert row.affidavit.values() == {"limit": number, "memo": memo}


@pytest.mark.anyio
async def test_two_tenants_with_two_hundred_turns_each_do_not_mix():
    """C14: two hundred interleaved turns of each of two tenants, with the same conversation and call ids in both."""
    host = Host(Bank(), extractors=[EmitEveryEntity()])
    tools = host.bind()

    async def one(tenant, number):
        customer, context = {"customer_id": f"{tenant}-{number}"}, bank_turn(tenant, number)
        await acall(tools["find_customer"], customer, context)
        return document_of(await acall(tools["set_limit"], {**customer, "limit": number}, context))["outcome"]

    jobs = [one(tenant, number) for number in range(200) for tenant in ("north", "south")]
    random.shuffle(jobs)
    assert set(await asyncio.gather(*jobs)) == {"filed"}
    check_bank(host, 200)


@pytest.mark.anyio
async def test_interleaved_runs_of_one_agents_tools_do_not_mix():
    """C14: whole runs of two tenants at once on one loop, over the same wired tools."""
    host = Host(Bank(), extractors=[EmitEveryEntity()])
    tools = list(host.bind().values())
    jobs = [
        arun(bank_agent(host, tools, tenant, number), bank_turn(tenant, number), mode=("plain", "streamed")[number % 2])
        for number in range(20)
        for tenant in ("north", "south")
    ]
    random.shuffle(jobs)
    await asyncio.gather(*jobs)
    check_bank(host, 20)


def test_sixteen_threads_do_not_mix():
    """C14, "then 8 threads", and twice as many: each with a loop of its own, over the same wired tools."""
    host = Host(Bank(), extractors=[EmitEveryEntity()])
    tools = list(host.bind().values())

    def one(job):
        tenant, number = job
        return run(bank_agent(host, tools, tenant, number), bank_turn(tenant, number), mode=MODES[number % 3])

    jobs = [(tenant, number) for number in range(24) for tenant in ("north", "south")]
    with ThreadPoolExecutor(16) as pool:
        for result in pool.map(one, jobs):
            assert document_of(outputs_in(result)[1])["outcome"] == "filed"
    check_bank(host, 24)


@pytest.mark.anyio
async def test_a_body_that_calls_another_wired_tool():
    """DECISIONS 12: no contextvar holds a turn, so a call inside a body brings its own, and both are gated."""
    host = Host(LimitDesk())
    inner = host.bind()["set_limit"]

    class Outer:
        @read_tool
        async def both(self, turn: TurnContext) -> str:
            """Call another tool, and propose something."""
            told = document_of(await acall(inner, LIMIT, turn))
            return told["outcome"]

    assert await acall(Host(Outer()).bind()["both"]) == "filed"
    assert len(host.rows()) == 1
