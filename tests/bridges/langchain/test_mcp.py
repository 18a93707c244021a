"""Tools of an MCP server, as langchain-mcp-adapters makes them, over a session in memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from support.langchain import (
    PROPOSAL,
    SECRET,
    Host,
    agent_of,
    asks,
    call,
    config,
    document_of,
    found,
    question,
    results_in,
    text_of,
)

from affiant_core import WireupInvalid, WiringError
from affiant_langchain_bridge import wrap

pytest.importorskip("langchain_mcp_adapters", reason="langchain-mcp-adapters is not installed")

from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations

pytestmark = pytest.mark.anyio

READS = ("look_up", "describe", "picture", "broken", "propose", "several")


class Server:
    """An MCP server, and what it was asked to do: whatever stands in ``acts`` has happened."""

    def __init__(self):
        self.acts = []
        self.server = FastMCP("crm")
        for tool in (self.look_up, self.describe, self.picture, self.broken, self.propose, self.several):
            self.server.add_tool(tool, structured_output=False)
        self.server.add_tool(self.numbers, structured_output=True)
        self.server.add_tool(self.remove, annotations=ToolAnnotations(destructiveHint=True), structured_output=False)

    def look_up(self, customer_id: str, depth: int = 1) -> str:
        """Look a customer up."""
        self.acts.append(("look_up", customer_id, depth))
        return found(customer_id).to_json_string()

    def describe(self, customer_id: str) -> str:
        """Describe a customer in words."""
        return f"{customer_id} is a customer."

    def picture(self, customer_id: str) -> CallToolResult:
        """Show a customer."""
        image = ImageContent(type="image", data="aGk=", mimeType="image/png")
        return CallToolResult(content=[TextContent(type="text", text="see"), image])

    def broken(self, customer_id: str) -> str:
        """Fail."""
        raise RuntimeError("no such customer")

    def propose(self, customer_id: str) -> str:
        """Propose, as a server may."""
        return PROPOSAL

    def several(self, customer_id: str) -> CallToolResult:
        """Propose among other words."""
        texts = (PROPOSAL, "and more")
        return CallToolResult(content=[TextContent(type="text", text=text) for text in texts])

    def numbers(self, customer_id: str) -> list[int]:
        """Count, in a structured way."""
        return [1, 2]

    def remove(self, customer_id: str) -> str:
        """Remove a customer, at once."""
        self.acts.append(("remove", customer_id))
        return "removed"

    @asynccontextmanager
    async def tools(self, **options):
        """The server's tools as LangChain's, by name, while the session is open."""
        async with create_connected_server_and_client_session(self.server) as session:
            yield {tool.name: tool for tool in await load_mcp_tools(session, **options)}


@asynccontextmanager
async def wrapped(server, host, *names, **options):
    """Some of the server's tools, declared as reads and wrapped."""
    async with server.tools(**options) as tools:
        yield {tool.name: tool for tool in host.wrap(*(tools[name] for name in names))}


async def answer(tool, arguments=None):
    """What a model gets for one call."""
    return await tool.ainvoke(call(tool.name, {"customer_id": "c-1", **(arguments or {})}), config())


async def test_a_read_of_a_server_is_a_read():
    """Issue, "langchain-mcp-adapters tools": an envelope in a text block reaches the model as its JSON text."""
    server, host = Server(), Host()
    async with wrapped(server, host, "look_up", "describe", "picture") as tools:
        assert document_of(await answer(tools["look_up"], {"depth": 2})) == document_of(found().to_json_string())
        assert text_of(await answer(tools["describe"])) == "c-1 is a customer."
        blocks = (await answer(tools["picture"])).content
        assert [block["type"] for block in blocks] == ["text", "image"]
    assert server.acts == [("look_up", "c-1", 2)]
    assert host.rows() == ()


async def test_what_a_server_says_beside_its_text_is_kept():
    """Measured, "content_and_artifact": the structured content of a read stays in the artifact."""
    host = Host()
    async with wrapped(Server(), host, "numbers") as tools:
        message = await answer(tools["numbers"])
    assert message.artifact == {"structured_content": {"result": [1, 2]}}
    assert [block["text"] for block in message.content] == ["1", "2"]


async def test_an_error_of_a_server_is_an_error():
    """Measured, "isError gives status error": the server's own words are the tool's result, marked as an error."""
    async with wrapped(Server(), Host(), "broken") as tools:
        message = await answer(tools["broken"])
    assert message.status == "error"
    assert "no such customer" in text_of(message)


async def test_an_error_that_the_adapters_raise_is_mapped(caplog):
    """DECISIONS 8: raised instead of told, the same error is a fixed sentence to the model and whole in the log."""
    async with wrapped(Server(), Host(), "broken", handle_tool_errors=False) as tools:
        message = await answer(tools["broken"])
    assert (document_of(message)["code"], message.status) == ("UNKNOWN", "error")
    assert "no such customer" not in text_of(message)
    assert "no such customer" in caplog.text


async def test_a_server_that_is_gone_is_a_failure_of_the_tool(caplog):
    """DECISIONS 8 and C02: a session that broke tells the model a fixed sentence and no name of the transport."""
    async with Server().tools() as tools:
        (look_up,) = Host().wrap(tools["look_up"])
    message = await answer(look_up)
    assert document_of(message)["kind"] == "error"
    assert "Closed" not in text_of(message)
    assert "ClosedResourceError" in caplog.text


async def test_a_proposal_of_a_server_is_filed():
    """Seed, Rule 2: a proposal goes to the gate whatever the tool is declared as; the second copy of it is dropped."""
    host = Host()
    async with wrapped(Server(), host, "propose") as tools:
        message = await answer(tools["propose"])
    assert document_of(message)["entryId"] == host.row().entry_id
    assert SECRET not in repr(message)


async def test_a_proposal_among_other_content_of_a_server_is_refused():
    """CV-2: nobody knows what the other blocks belong to, so nothing is filed and no value reaches the model."""
    host = Host()
    async with wrapped(Server(), host, "several") as tools:
        message = await answer(tools["several"])
    assert document_of(message)["code"] == "wireup-invalid"
    assert SECRET not in repr(message)
    assert host.rows() == ()


async def test_a_tool_of_a_server_cannot_be_declared_to_write():
    """DECISIONS 16 and C19, "MCP tool declared write": refused at wiring, the undeclared ones in the same error."""
    server, host = Server(), Host()
    host.affiant.declare_write("remove", operation="WriteDelete", entity_type="Customer")
    host.affiant.declare_read("look_up")
    async with server.tools() as tools:
        with pytest.raises(WiringError) as refused:
            wrap([tools["remove"], tools["look_up"], tools["describe"], tools["broken"]], host.affiant)
    told = {fault.subject: fault.fault for fault in refused.value.faults}
    assert set(told) == {"tool 'remove'", "tool 'describe'", "tool 'broken'"}
    assert "its own server" in told["tool 'remove'"]
    assert "not declared" in told["tool 'describe'"]
    assert server.acts == []


async def test_a_declaration_goes_by_the_name_that_the_model_sees():
    """C18: with a prefix for the server, the declared name is the prefixed one, and a write is refused under it too."""
    host = Host()
    async with Server().tools(server_name="crm", tool_name_prefix=True) as tools:
        host.affiant.declare_write("crm_remove", operation="WriteDelete", entity_type="Customer")
        with pytest.raises(WiringError, match="its own server"):
            wrap([tools["crm_remove"]], host.affiant)
        (look_up,) = host.wrap(tools["crm_look_up"])
        assert document_of(await answer(look_up))["kind"] == "read"


async def test_no_server_is_called_without_a_turn():
    """CV-2 and DECISIONS 12: the refusal comes before the body, and the body is a call of the server."""
    server = Server()
    async with wrapped(server, Host(), "look_up") as tools:
        with pytest.raises(WireupInvalid):
            await tools["look_up"].ainvoke(call("look_up", {"customer_id": "c-1"}))
    assert server.acts == []


async def test_an_agent_with_tools_of_a_server():
    """C20: in an agent each call has one result; LangGraph's runtime still reaches the adapters, and no forged one."""
    server, host, seen = Server(), Host(), []

    async def interceptor(request, handler):
        seen.append(request.runtime)
        return await handler(request)

    async with wrapped(server, host, "look_up", "propose", tool_interceptors=[interceptor]) as tools:
        forged = {"customer_id": "c-1", "runtime": "FORGED"}
        agent = agent_of(list(tools.values()), asks(("look_up", forged), ("propose", forged)))
        state = await agent.ainvoke(question(), config())
        again = await answer(tools["propose"])
    read, write = results_in(state)
    assert document_of(read)["kind"] == "read"
    assert document_of(write)["entryId"] == host.row().entry_id
    assert all(runtime is not None and runtime != "FORGED" for runtime in seen[:2])
    assert document_of(again)["entryId"] == host.row().entry_id  # a forged argument is no part of the identity
    assert [name for name, *_ in server.acts] == ["look_up"]


async def test_an_interceptor_that_answers_itself():
    """langchain-mcp-adapters, interceptors: a proposal that one builds instead of calling the server is filed."""
    server, host = Server(), Host()

    async def propose(request, handler):
        return ToolMessage(PROPOSAL, tool_call_id="call-1")

    async with wrapped(server, host, "remove", tool_interceptors=[propose]) as tools:
        message = await answer(tools["remove"])
    assert document_of(message)["entryId"] == host.row().entry_id
    assert server.acts == []


async def test_a_synchronous_call_is_told():
    """Measured, "coroutine only (sync raises)": the tools of a server are asynchronous, and the host is told so."""
    async with wrapped(Server(), Host(), "look_up") as tools:
        assert isinstance(tools["look_up"], BaseTool)
        with pytest.raises(NotImplementedError, match="ainvoke"):
            await asyncio.to_thread(tools["look_up"].invoke, call("look_up", {"customer_id": "c-1"}), config())
