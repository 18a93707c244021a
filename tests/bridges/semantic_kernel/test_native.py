"""Functions that a host already has: decorated methods, generators, prompts, MCP and OpenAPI plugins, agents."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from itertools import pairwise
from typing import Annotated, Any

import pytest
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.mcp import MCPPluginBase
from semantic_kernel.contents import ChatMessageContent, ImageContent, StreamingTextContent, TextContent
from semantic_kernel.functions import FunctionResult, KernelArguments, kernel_function
from support.gate import turn
from support.semantic_kernel import (
    DIRECT,
    LOOPS,
    PROPOSAL,
    SECRET,
    Host,
    LimitDesk,
    asks,
    chat,
    document_of,
    found,
    go,
    host_arguments,
    kernel_of,
    plugin_of,
    proposed,
    results_in,
    texts_in,
)

from affiant_core import WireupInvalid
from affiant_sk_bridge import TURN_ARGUMENT, check, install, invoke

HIDDEN = {"include_in_function_choices": False, "is_required": False}
FEW = pytest.mark.parametrize("way", ["chat loop", "streaming chat loop", "kernel.invoke"])


def answering(value, *, asynchronous=False):
    """A native function that answers with ``value``."""

    def answer():
        """Answer."""
        return value

    async def answer_later():
        """Answer later."""
        await asyncio.sleep(0)
        return value

    return answer_later if asynchronous else answer


def in_loop(kernel, *calls, **options):
    kernel.get_service("scripted").script[:] = [asks(*calls)]
    return texts_in(asyncio.run(chat(kernel, **options)))


# --- what they return ----------------------------------------------------------------------------------------------

ENVELOPES = {
    "an object": lambda envelope: envelope,
    "text": lambda envelope: envelope.to_json_string(),
    "a dictionary": lambda envelope: envelope.to_json(),
    "a text content": lambda envelope: TextContent(text=envelope.to_json_string()),
    "one text content in a list": lambda envelope: [TextContent(text=envelope.to_json_string())],
    "a message": lambda envelope: ChatMessageContent(role="assistant", content=envelope.to_json_string()),
    "a function result": lambda envelope: FunctionResult(
        function=plugin_of(any=answering(1))["any"].metadata, value=envelope
    ),
}


@FEW
@pytest.mark.parametrize("shape", ENVELOPES)
@pytest.mark.parametrize("writes", [(), ("tool",)])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_proposal_is_filed_in_every_shape(way, shape, writes, asynchronous):
    """Seed, Rule 2: a proposal is filed whether the tool is declared to write or not, whatever SK has wrapped it in."""
    host = Host()
    native = {"tool": answering(ENVELOPES[shape](proposed()), asynchronous=asynchronous)}
    text = go(way, host.kernel(native=native, writes=writes), "P-tool", {})
    assert document_of(text)["entryId"] == host.row().entry_id
    assert SECRET not in text


@FEW
@pytest.mark.parametrize("shape", ENVELOPES)
def test_a_read_is_text_in_every_shape(way, shape):
    """DECISIONS 5: an envelope is JSON before Semantic Kernel can make a Python repr of it."""
    kernel = Host().kernel(native={"tool": answering(ENVELOPES[shape](found()))})
    assert go(way, kernel, "P-tool", {}) == found().to_json_string()


HIDDEN_PROPOSALS = {
    "among others in a list": [proposed(), "and more"],
    "in a dictionary": {"result": proposed().to_json()},
    "beside an image": [TextContent(text=PROPOSAL), ImageContent(uri="https://example.test/a.png")],
    "two texts": [TextContent(text=PROPOSAL), TextContent(text=PROPOSAL)],
    "in a message of two items": ChatMessageContent(
        role="assistant", items=[TextContent(text=PROPOSAL), TextContent(text="x")]
    ),
}


@FEW
@pytest.mark.parametrize("shape", HIDDEN_PROPOSALS)
def test_a_proposal_among_other_content_goes_nowhere(way, shape):
    """CV-2: nobody knows what a proposal inside something else belongs to; it is refused, and not shown."""
    host = Host()
    text = go(way, host.kernel(native={"tool": answering(HIDDEN_PROPOSALS[shape])}), "P-tool", {})
    assert document_of(text)["code"] == "wireup-invalid"
    assert SECRET not in text
    assert host.rows() == ()


PLAIN = {"text": "plain", "a number": 3, "a list": [1, 2], "a map": {"a": 1}, "texts": [TextContent(text="a")] * 2}


@pytest.mark.parametrize("name", PLAIN)
def test_anything_else_crosses_untouched(name):
    """DECISIONS 5: what a read returns beside envelopes stays what it is, for a caller and for a chat loop."""
    kernel = Host().kernel(native={"tool": answering(PLAIN[name])})
    result = asyncio.run(kernel.invoke(plugin_name="P", function_name="tool", affiant_turn=turn()))
    assert result.value == PLAIN[name]
    kernel.get_service("scripted").script[:] = [asks(("P-tool", {}))]
    (answered,) = results_in(asyncio.run(chat(kernel)))
    assert answered.result == PLAIN[name]


def test_one_text_content_is_read_as_its_text_in_a_loop():
    """Seam 4: an MCP server's list of one text would reach a model as a repr; a caller of the kernel gets the list."""
    content = [TextContent(text="from the server")]
    kernel = Host().kernel(native={"tool": answering(content)})
    assert in_loop(kernel, ("P-tool", {}))["call-1"] == "from the server"
    result = asyncio.run(kernel.invoke(plugin_name="P", function_name="tool", affiant_turn=turn()))
    assert result.value == content


def test_nothing_at_all_stays_nothing():
    """DECISIONS 5: None stays None for a caller; a model is told no word of Python."""
    kernel = Host().kernel(native={"tool": answering(None)})
    assert asyncio.run(kernel.invoke(plugin_name="P", function_name="tool", affiant_turn=turn())).value is None
    assert in_loop(kernel, ("P-tool", {}))["call-1"] == ""


def test_a_result_that_cannot_be_copied_does_not_break_the_turn():
    """Seam 3, "a lock inside raises out of the loop": the model gets an error in its place, and the siblings theirs."""

    class Holder:
        def __init__(self):
            self.lock = threading.Lock()

    kernel = Host(LimitDesk()).kernel(native={"tool": answering(Holder())})
    texts = in_loop(kernel, ("P-tool", {}), ("LimitDesk-find_customer", {"customer_id": "c-1"}))
    assert document_of(texts["call-1"])["code"] == "VALIDATION_FAILED"
    assert document_of(texts["call-2"])["kind"] == "read"


# --- what they are given -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*LOOPS, *(way for way in DIRECT if way != "fn.invoke_stream")])
def test_a_native_function_gets_what_semantic_kernel_gives_it(way):
    """The bridge leaves a native function's parameters, typed values and host arguments to Semantic Kernel."""
    seen: dict[str, Any] = {}

    def tool(
        text: str,
        number: int = 1,
        tenant: Annotated[str, HIDDEN] = "none",
        kernel: Annotated[Any, HIDDEN] = None,
        arguments: Annotated[Any, HIDDEN] = None,
    ) -> str:
        """Take it."""
        seen.update(text=text, number=number, tenant=tenant, kernel=kernel, turn=arguments[TURN_ARGUMENT])
        return "ok"

    kernel = Host().kernel(native={"tool": tool})
    assert go(way, kernel, "P-tool", {"text": "a", "number": "7"}, host_arguments(tenant="acme")) == "ok"
    tenant = "none" if way == "by hand" else "acme"
    assert (seen["text"], seen["number"], seen["tenant"]) == ("a", 7, tenant)
    assert isinstance(seen["kernel"], Kernel)
    assert getattr(seen["turn"], "turn", None) is not None


def test_a_model_cannot_fill_a_hidden_parameter():
    """Seam 2, 'a model may still send it (tenant became "EVIL")': the call is refused and the body does not run."""
    seen = []

    def tool(text: str, tenant: Annotated[str, HIDDEN] = "none") -> str:
        """Take it."""
        seen.append(tenant)
        return "ok"

    kernel = Host().kernel(native={"tool": tool})
    text = in_loop(kernel, ("P-tool", {"text": "a", "tenant": "EVIL"}), arguments=host_arguments(tenant="acme"))[
        "call-1"
    ]
    error = document_of(text)
    assert (error["code"], error["message"][-15:], seen) == ("VALIDATION_FAILED", " Check: tenant.", [])


def test_the_second_attempt_gets_unchanged_arguments():
    """DECISIONS 15: what a body did to its arguments is not seen by its second attempt, nor by the history."""
    seen = []

    def tool(lines: list[Any]) -> str:
        """Change, and time out once."""
        seen.append([dict(line) for line in lines])
        lines[0]["a"] = 99
        if len(seen) == 1:
            raise TimeoutError
        return "done"

    kernel = Host().kernel(native={"tool": tool})
    assert in_loop(kernel, ("P-tool", {"lines": [{"a": 1}]}))["call-1"] == "done"
    given = [{"a": 1}]
    asyncio.run(kernel.invoke(plugin_name="P", function_name="tool", arguments=host_arguments(lines=given)))
    assert seen == [[{"a": 1}]] * 3
    assert given == [{"a": 1}]


def test_a_hosts_own_objects_are_not_the_models_arguments():
    """An object that a host passes to a function by hand is no argument of the model, and the function gets it."""
    marker = object()

    def tool(thing: Any) -> str:
        """Take it."""
        return "yes" if thing is marker else "no"

    kernel = Host().kernel(native={"tool": tool})
    result = asyncio.run(kernel.invoke(plugin_name="P", function_name="tool", affiant_turn=turn(), thing=marker))
    assert result.value == "yes"


# --- synchronous bodies --------------------------------------------------------------------------------------------

CALLER = contextvars.ContextVar("caller", default="nobody")


async def _gaps(work):
    """Run ``work`` with a heartbeat every 10 ms; the longest gap in it, and the outcome."""
    beats = [asyncio.get_running_loop().time()]

    async def beat():
        while True:
            await asyncio.sleep(0.01)
            beats.append(asyncio.get_running_loop().time())

    heart = asyncio.create_task(beat())
    try:
        outcome = await work
    finally:
        heart.cancel()
    beats.append(asyncio.get_running_loop().time())
    return max(after - before for before, after in pairwise(beats)), outcome


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize("kind", ["native", "native generator", "bound"])
def test_synchronous_bodies_leave_the_loop_free(offload, kind):
    """C15: two calls of one turn, the caller's context variables, no gap; the switch brings SK's own way back."""
    import time

    def work() -> str:
        """Work for a while."""
        time.sleep(0.3)
        return f"{CALLER.get()} {threading.current_thread() is threading.main_thread()}"

    def generate() -> Generator[str, None, None]:
        """Work in between."""
        yield work()

    class Desk:
        def slow(self) -> str:
            """Work for a while."""
            return work()

    native = {"native": {"slow": work}, "native generator": {"slow": generate}, "bound": None}[kind]
    host = Host(Desk() if kind == "bound" else ())
    kernel = host.kernel(native=native, offload_sync_bodies=offload)
    name = "Desk-slow" if kind == "bound" else "P-slow"
    kernel.get_service("scripted").script[:] = [asks((name, {}), (name, {}))]

    async def run():
        CALLER.set("ana")
        return await _gaps(chat(kernel))

    gap, history = asyncio.run(run())
    is_free = offload or kind == "bound"  # a bound function's body is the bridge's own affair
    assert all(f"ana {not is_free}" in text for text in texts_in(history).values())
    assert (gap < 0.15) is is_free


def test_a_function_that_serves_two_kernels_is_left_as_it_is():
    """The bridge changes nothing of the host's function: another kernel runs its synchronous body on the loop."""

    def where() -> str:
        """Say where."""
        return str(threading.current_thread() is threading.main_thread())

    plugin = plugin_of(where=where)
    host, other = Host(), kernel_of()
    host.declare("where")
    kernel = kernel_of()
    for each in (kernel, other):
        each.add_plugin(plugin)
    install(kernel, host.affiant)
    assert in_loop(kernel, ("P-where", {}))["call-1"] == "False"
    assert in_loop(other, ("P-where", {}))["call-1"] == "True"
    assert plugin["where"].method is not None


# --- streams -------------------------------------------------------------------------------------------------------


async def _stream(kernel, name, **arguments):
    parts = kernel.invoke_stream(plugin_name="P", function_name=name, arguments=host_arguments(**arguments))
    return [part async for part in parts]


def generators(*parts):
    async def later() -> AsyncGenerator[Any, None]:
        """Stream."""
        for part in parts:
            await asyncio.sleep(0)
            yield part

    def now() -> Generator[Any, None, None]:
        """Stream."""
        yield from parts

    return {"later": later, "now": now}


@pytest.mark.parametrize("name", ["later", "now"])
def test_a_read_streams_as_it_did(name):
    """Seam 3: a stream is drained inside the pipeline and comes out part by part, when there is nothing to gate."""
    kernel = Host().kernel(native=generators("a", "b"))
    assert asyncio.run(_stream(kernel, name)) == ["a", "b"]
    objects = [{"a": 1}, {"b": 2}]
    assert asyncio.run(_stream(Host().kernel(native=generators(*objects)), name)) == objects


@pytest.mark.parametrize("name", ["later", "now"])
@pytest.mark.parametrize("wrap", [str, lambda text: StreamingTextContent(choice_index=0, text=text)])
def test_a_proposal_does_not_slip_out_in_parts(name, wrap):
    """CV-2: a proposal that is streamed in parts is one proposal, filed once; the parts are never seen."""
    host, seen = Host(), []
    kernel = host.kernel(native=generators(wrap(PROPOSAL[:40]), wrap(PROPOSAL[40:])))

    async def inside(context, next):
        await next(context)
        seen.extend([str(part) async for part in context.result.value])

    from semantic_kernel.filters import FilterTypes

    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, inside)
    (only,) = asyncio.run(_stream(kernel, name))
    assert document_of(only.value)["entryId"] == host.row().entry_id
    assert len(seen) == 1
    assert SECRET not in seen[0] + str(only)


def test_a_filter_may_put_its_own_stream_around():
    """A host's filter that wraps the stream, as Semantic Kernel's samples do, is served, and its stream is gated."""
    from semantic_kernel.filters import FilterTypes

    host = Host()
    kernel = host.kernel(native=generators("a", "b"))

    async def shouting(context, next):
        await next(context)
        inner = context.result.value

        async def loud():
            async for part in inner:
                yield part.upper()

        context.result = FunctionResult(function=context.function.metadata, value=loud())

    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, shouting)
    assert asyncio.run(_stream(kernel, "later")) == ["A", "B"]


def test_a_stream_that_fails_is_mapped():
    """C02 on a stream: a body's error is met inside the pipeline and no word of it comes out."""

    async def broken() -> AsyncGenerator[str, None]:
        """Break."""
        yield "a"
        raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    (only,) = asyncio.run(_stream(Host().kernel(native={"broken": broken}), "broken"))
    assert document_of(only.value)["code"] == "UNKNOWN"
    assert "postgres" not in str(only)


# --- prompts -------------------------------------------------------------------------------------------------------


def test_prompt_functions_pass():
    """DECISIONS 16: prompts need no declaration and no turn, in a loop, by hand and with names that SK makes up."""
    host = Host(LimitDesk())
    kernel = kernel_of()
    kernel.add_function(plugin_name="Prompts", function_name="greet", prompt="Say hello to {{$who}}.")
    install(kernel, host.affiant)
    assert str(asyncio.run(kernel.invoke_prompt("hello"))) == "done"
    result = asyncio.run(kernel.invoke(plugin_name="Prompts", function_name="greet", arguments=host_arguments(who="x")))
    assert str(result) == "done"
    assert "arguments" not in result.metadata
    kernel.get_service("scripted").script[:] = [asks(("Prompts-greet", {"who": "Ana"}))]
    history = asyncio.run(chat(kernel, arguments=host_arguments(token="s3cr3t")))
    (answered,) = results_in(history)
    assert (answered.metadata, str(answered.result[0])) == ({}, "done")
    assert "s3cr3t" not in history.serialize()


def test_a_prompt_may_be_declared_and_is_gated_then():
    """Seam 6: a prompt that the registry knows goes through the pipeline like any function."""
    host = Host()
    kernel = kernel_of(PROPOSAL)
    kernel.add_function(plugin_name="Prompts", function_name="propose", prompt="Propose.")
    host.affiant.declare_write("propose", operation="WriteUpdate", entity_type="Customer", plugin="Prompts")
    install(kernel, host.affiant)
    result = asyncio.run(kernel.invoke(plugin_name="Prompts", function_name="propose", affiant_turn=turn()))
    assert document_of(result.value)["entryId"] == host.row().entry_id


@pytest.mark.parametrize("template_format", ["semantic-kernel", "handlebars", "jinja2"])
def test_functions_in_templates_are_gated(template_format, monkeypatch):
    """Seam 1: templates of all three kinds call through the function filter; what they render is the receipt."""
    # SK's handlebars templates replace asyncio.run for good, by one that leaves its loops open.
    monkeypatch.setattr(asyncio, "run", asyncio.run)
    host = Host(LimitDesk())
    kernel = host.kernel()
    prompt = {
        "semantic-kernel": "{{LimitDesk.set_limit customer_id=$c limit='10'}}",
        "handlebars": "{{LimitDesk-set_limit customer_id=c limit=10}}",
        "jinja2": "{{LimitDesk_set_limit(customer_id=c, limit=10)}}",
    }[template_format]
    arguments = host_arguments(c="c-1")
    asyncio.run(kernel.invoke_prompt(prompt, template_format=template_format, arguments=arguments))
    (heard,) = kernel.get_service("scripted").heard
    rendered = str(heard[-1].content)
    assert host.row().entry_id in rendered
    assert SECRET not in rendered


# --- plugins that act elsewhere ------------------------------------------------------------------------------------


class _Tool:
    def __init__(self, name):
        self.name, self.description = name, f"The server's {name}."
        self.inputSchema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}


class _Session:
    """A server's session, as far as the connector looks."""

    def __init__(self, **answers):
        self.answers, self.calls, self._request_id = answers, [], 1

    async def list_tools(self):
        from types import SimpleNamespace

        return SimpleNamespace(tools=[_Tool(name) for name in self.answers])

    async def call_tool(self, name, arguments):
        from mcp import types

        self.calls.append((name, arguments))
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return types.CallToolResult(content=[types.TextContent(type="text", text=text) for text in answer])


class _Server(MCPPluginBase):
    def get_mcp_client(self):
        raise AssertionError("there is a session already")


def mcp(**answers):
    server = _Server("Server", session=_Session(**answers))
    asyncio.run(server.load_tools())
    return server


@pytest.mark.parametrize("way", ["chat loop", "streaming chat loop", "agent", "kernel.invoke", "clone"])
def test_an_mcp_tool_that_is_declared_to_read(way):
    """C19, seam 4: its list of one text is read as its text; a proposal in it is filed as any is."""
    host = Host()
    server = mcp(look=[found().to_json_string()], propose=[PROPOSAL], fail=RuntimeError("at 10.0.0.5"), many=["a", "b"])
    kernel = kernel_of()
    kernel.add_plugin(server)
    host.declare("look", "propose", "fail", "many", plugin="Server")
    install(kernel, host.affiant)
    assert go(way, kernel, "Server-look", {"text": "x"}) == found().to_json_string()
    assert document_of(go(way, kernel, "Server-propose", {"text": "x"}))["entryId"] == host.row().entry_id
    error = go(way, kernel, "Server-fail", {"text": "x"})
    assert (document_of(error)["code"], "10.0.0.5" in error) == ("UNKNOWN", False)
    assert server.session.calls[0] == ("look", {"text": "x"})


def test_an_mcp_tool_is_refused_as_a_write_and_undeclared():
    """C19, DECISIONS 16: an MCP tool acts on its own server; all offenders are named in one error."""
    host = Host()
    kernel = kernel_of()
    kernel.add_plugin(mcp(write=["ok"], other=["ok"]))
    host.declare("write", writes=("write",), plugin="Server")
    with pytest.raises(WireupInvalid) as caught:
        install(kernel, host.affiant)
    subjects = {fault.subject for fault in caught.value.faults}
    assert subjects == {"tool 'Server-write'", "tool 'Server-other'"}
    assert "acts on its own server" in str(caught.value)


def test_an_mcp_servers_late_tools_are_found_by_a_repeated_check():
    """Seam 4, "the kernel snapshot ignores later tool-list changes": whoever adds the plugin again checks again."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    kernel.add_plugin(mcp(late=["ok"]))
    with pytest.raises(WireupInvalid, match="Server-late"):
        check(kernel, host.affiant)
    host.declare("late", plugin="Server")
    check(kernel, host.affiant)
    assert in_loop(kernel, ("Server-late", {"text": "x"}))["call-1"] == "ok"


SPEC = {
    "openapi": "3.0.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example.test"}],
    "paths": {
        "/orders/{id}": {
            "get": {
                "operationId": "getOrder",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            },
            "delete": {
                "operationId": "deleteOrder",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            },
        }
    },
}


def openapi_kernel(answer):
    import httpx
    from semantic_kernel.connectors.openapi_plugin import OpenAPIFunctionExecutionParameters

    asked = []

    def respond(request):
        asked.append((request.method, str(request.url)))
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(200, text=answer)

    client = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    settings = OpenAPIFunctionExecutionParameters(http_client=client, allow_private_network_access=True)
    kernel = kernel_of()
    kernel.add_plugin_from_openapi("Shop", openapi_parsed_spec=SPEC, execution_settings=settings)
    return kernel, asked


@pytest.mark.filterwarnings("ignore:Spec is deprecated:DeprecationWarning")  # of what reads the description
def test_an_openapi_operation_that_is_declared_to_write_is_refused():
    """C19, DECISIONS 16: an operation acts on its own server; undeclared ones are named beside it."""
    kernel, asked = openapi_kernel("{}")
    host = Host()
    host.declare("deleteOrder", writes=("deleteOrder",), plugin="Shop")
    with pytest.raises(WireupInvalid) as caught:
        install(kernel, host.affiant)
    assert {fault.subject for fault in caught.value.faults} == {"tool 'Shop-deleteOrder'", "tool 'Shop-getOrder'"}
    assert asked == []


@pytest.mark.filterwarnings("ignore:Spec is deprecated:DeprecationWarning")  # of what reads the description
@pytest.mark.parametrize("way", ["chat loop", "streaming chat loop", "kernel.invoke"])
def test_an_openapi_read_works(way):
    """An operation that is declared to read is called with the model's arguments, and its text is the result."""
    kernel, asked = openapi_kernel('{"id": "7"}')
    host = Host()
    host.declare("getOrder", "deleteOrder", plugin="Shop")
    install(kernel, host.affiant)
    text = go(way, kernel, "Shop-getOrder", {"id": "7"})
    assert (text, asked) == ('{"id": "7"}', [("GET", "https://shop.example.test/orders/7")])


# --- agents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_as_a_tool(streamed):
    """C20: a turn whose tool is an agent whose tool writes: one row, one answer for each call, in both modes."""
    host = Host(LimitDesk())
    inner_kernel = host.kernel(asks(("LimitDesk-set_limit", {"customer_id": "c-1", "limit": 10})), "I proposed it.")
    inner = ChatCompletionAgent(kernel=inner_kernel, name="Inner", description="Sets limits.")

    async def ask(task: str, arguments: Annotated[Any, HIDDEN] = None) -> str:
        """Ask the inner agent."""
        given = KernelArguments(affiant_turn=arguments[TURN_ARGUMENT])
        return str(await inner.get_response(task, arguments=given))

    kernel = kernel_of(asks(("Team-ask", {"task": "set it"})))
    kernel.add_plugin(plugin_of("Team", ask=ask))
    outer = Host(docket=host.store)
    outer.declare("ask", plugin="Team")
    install(kernel, outer.affiant)
    texts = texts_in(asyncio.run(chat(kernel, streamed=streamed)))
    assert texts == {"call-1": "I proposed it."}
    assert host.row().tool_name == "set_limit"
    (answered,) = results_in(inner_kernel.get_service("scripted").heard[-1])
    assert document_of(answered.result)["entryId"] == host.row().entry_id


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # SK looks at every attribute
def test_an_agent_on_the_hosts_own_kernel_as_a_plugin():
    """Seam 4: an agent added as a plugin is a native function, found by the audit and declared like any."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    kernel.add_plugin(ChatCompletionAgent(kernel=kernel, name="Helper", description="Helps."), plugin_name="Helper")
    names = list(kernel.plugins["Helper"].functions)
    with pytest.raises(WireupInvalid, match="Helper-"):
        check(kernel, host.affiant)
    host.declare(*names, plugin="Helper")
    check(kernel, host.affiant)


def test_an_agents_own_plugins_meet_the_gate():
    """Seam 4: an agent adds its plugins to the kernel that it was given; undeclared, they are refused at run time."""
    host, ran = Host(LimitDesk()), []
    kernel = host.kernel()

    class Late:
        @kernel_function
        def run(self) -> str:
            """Run."""
            ran.append(1)
            return "ran"

    agent = ChatCompletionAgent(kernel=kernel, name="Agent", plugins=[Late()])
    kernel.get_service("scripted").script[:] = [asks(("Late-run", {}))]
    with pytest.raises(WireupInvalid, match="not declared"):
        asyncio.run(agent.get_response("go", arguments=host_arguments()))
    assert ran == []
    with pytest.raises(WireupInvalid, match="Late-run"):
        check(kernel, host.affiant)


def test_the_steps_of_a_handoff_pass():
    """Seam 4: HandoffOrchestration adds functions to a clone that no audit sees; its own steps need no declaration."""
    from functools import partial

    from semantic_kernel.functions import KernelPlugin

    moved = []

    class Actor:  # the orchestration's own module needs a package that Semantic Kernel does not ask for
        __module__ = "semantic_kernel.agents.orchestration.handoffs"

        async def _handoff_to_agent(self, agent_name):
            moved.append(agent_name)

    clone = Host(LimitDesk()).kernel().clone()
    step = kernel_function(name="transfer_to_b")(partial(Actor()._handoff_to_agent, "b"))
    step.__kernel_function_parameters__ = []
    clone.add_plugin(KernelPlugin.from_object("Handoff", {"transfer_to_b": step}))
    in_loop(clone, ("Handoff-transfer_to_b", {}))
    assert moved == ["b"]
    clone.add_plugin(plugin_of("Handoff", mine=answering("x")))
    with pytest.raises(WireupInvalid, match="not declared"):
        in_loop(clone, ("Handoff-mine", {}))


def test_the_kernel_as_an_mcp_server_is_gated():
    """Seam 1: as_mcp_server invokes through the function filter, whose refusal without a turn is all that comes out."""
    from mcp.shared.memory import create_connected_server_and_client_session

    desk = LimitDesk()
    host = Host(desk)
    server = host.kernel().as_mcp_server()

    async def call():
        async with create_connected_server_and_client_session(server) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"find_customer", "set_limit"}
            return await client.call_tool("set_limit", {"customer_id": "c-1", "limit": 1})

    answer = asyncio.run(call())
    assert answer.isError
    assert "TurnContext" in str(answer.content)
    assert (desk.calls, host.rows()) == ([], ())


def test_by_hand_a_prompt_and_a_native_function():
    """The manual invoker calls what a chat loop could call, of every kind."""
    host = Host()
    kernel = kernel_of()
    kernel.add_plugin(plugin_of(look=answering("plain"), many=answering([1, 2])))
    kernel.add_function(plugin_name="Prompts", function_name="greet", prompt="Say hello.")
    host.declare("look", "many")
    install(kernel, host.affiant)
    assert asyncio.run(invoke(kernel, "P-look", turn=turn())) == "plain"
    assert asyncio.run(invoke(kernel, "P-many", turn=turn())) == "[1, 2]"
    assert "done" in asyncio.run(invoke(kernel, "Prompts-greet", turn=turn()))


def test_timedeltas_are_nothing_special():
    """A host's object among the arguments of a loop goes to the function that asks for it, and into no identity."""

    def tool(text: str, wait: Annotated[Any, HIDDEN] = None) -> str:
        """Take it."""
        return f"{text} {wait}"

    kernel = Host().kernel(native={"tool": tool})
    host = host_arguments(wait=timedelta(seconds=1))
    assert in_loop(kernel, ("P-tool", {"text": "a"}), arguments=host)["call-1"] == "a 0:00:01"
