"""Every way to call a tool meets the pipeline and the gate, and all of them come to the same thing."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, tool
from support.gate import turn
from support.langchain import (
    ASYNC_WAYS,
    SECRET,
    SYNC_WAYS,
    WAYS,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    config,
    document_of,
    found,
    go,
    proposed,
    text_of,
)

LIMIT = {"customer_id": "c-1", "limit": 10}
ROW = "d370997b-7148-844c-8de5-7640a52e7"
"""The start of the id of LIMIT's row, whoever calls it, and in whichever way."""


def plain_tools(host):
    """The same two tools as a host of LangChain would have written them."""

    @tool
    def find_customer(customer_id: str) -> str:
        """Find one customer."""
        return found(customer_id).to_json_string()

    @tool
    def set_limit(customer_id: str, limit: int, force: bool = False) -> str:
        """Propose a new limit for a customer."""
        return proposed(customer_id, limit).to_json_string()

    return host.wrap(find_customer, set_limit, writes=("set_limit",))


def plain_async_tools(host):
    @tool
    async def find_customer(customer_id: str) -> str:
        """Find one customer."""
        await asyncio.sleep(0)
        return found(customer_id).to_json_string()

    async def set_limit(customer_id: str, limit: int, force: bool = False) -> str:
        """Propose a new limit for a customer."""
        await asyncio.sleep(0)
        return proposed(customer_id, limit).to_json_string()

    return host.wrap(find_customer, StructuredTool.from_function(coroutine=set_limit), writes=("set_limit",))


KITS = {
    "bound, sync bodies": lambda: (host := Host(LimitDesk()), list(host.bind().values())),
    "bound, async bodies": lambda: (host := Host(AsyncLimitDesk()), list(host.bind().values())),
    "wrapped, sync bodies": lambda: (host := Host(), plain_tools(host)),
    "wrapped, async bodies": lambda: (host := Host(), plain_async_tools(host)),
}
EVERY = [
    (kit, way)
    for kit in KITS
    for way in WAYS
    # LangChain has no synchronous call for an asynchronous @tool; see the test of exactly that below.
    if kit != "wrapped, async bodies" or (way in ASYNC_WAYS and way != "invoke inside a running loop")
]


@pytest.mark.parametrize(("kit", "way"), EVERY)
def test_a_read_crosses_untouched_on_every_way(kit, way):
    """Seed, "Every other return crosses untouched": a read's text is byte for byte what its body gave."""
    host, tools = KITS[kit]()
    result = go(way, tools, "find_customer", {"customer_id": "c-1"}, config())
    assert text_of(result) == found().to_json_string()
    assert host.rows() == ()


@pytest.mark.parametrize(("kit", "way"), EVERY)
def test_a_proposal_is_filed_once_on_every_way(kit, way):
    """GT-1 and C04, "langchain: two rows": each way files one row under one id, and the model gets the receipt."""
    host, tools = KITS[kit]()
    result = go(way, tools, "set_limit", LIMIT, config())
    row = host.row()
    assert row.entry_id.startswith(ROW)
    assert row.status == "pending"
    assert document_of(result)["entryId"] == row.entry_id
    assert SECRET not in repr(result)
    if isinstance(result, ToolMessage):
        assert (result.tool_call_id, result.name, result.status) == ("call-1", "set_limit", "success")


@pytest.mark.parametrize(("kit", "way"), EVERY)
def test_a_failure_is_an_error_message_on_every_way(kit, way):
    """Seed, "Any tool that fails returns ToolError": the message's status is "error" and its text an envelope."""
    host, tools = KITS[kit]()
    result = go(way, tools, "set_limit", {"customer_id": "c-1", "limit": "lots"}, config())
    told = document_of(result)
    assert (told["kind"], told["code"], told["toolName"]) == ("error", "VALIDATION_FAILED", "set_limit")
    assert "limit" in told["message"]
    assert "lots" not in text_of(result)
    assert host.rows() == ()
    if isinstance(result, ToolMessage):
        assert result.status == "error"


@pytest.mark.parametrize("way", SYNC_WAYS)
def test_an_asynchronous_tool_of_langchain_has_no_synchronous_call(way):
    """Measured, "MCP: coroutine only (sync raises)": the wrapper raises as the tool itself does; nothing is filed."""
    host = Host()
    with pytest.raises(NotImplementedError, match="set_limit"):
        go(way, plain_async_tools(host), "set_limit", LIMIT, config())
    assert host.rows() == ()


@pytest.mark.anyio
async def test_the_repeat_on_another_way_is_a_replay():
    """GT-4: the same proposal names the same row, so a call that is repeated in another way files nothing new."""
    host, tools = KITS["bound, async bodies"]()
    for way in WAYS:
        outcome = await asyncio.to_thread(go, way, tools, "set_limit", LIMIT, config())
        assert document_of(outcome)["entryId"] == host.row().entry_id


@pytest.mark.parametrize("way", WAYS)
def test_another_value_conversation_or_tenant_is_another_row(way):
    """C04: another value, conversation or tenant gives another id, on each way in."""
    host, tools = KITS["bound, sync bodies"]()
    for arguments, context in (
        (LIMIT, turn()),
        ({**LIMIT, "limit": 11}, turn()),
        (LIMIT, turn(conversation="c-2")),
        (LIMIT, turn(tenant="other")),
    ):
        go(way, tools, "set_limit", arguments, config(context))
    rows = [*host.rows(), *host.rows("other")]
    assert len({row.entry_id for row in rows}) == len(rows) == 4
