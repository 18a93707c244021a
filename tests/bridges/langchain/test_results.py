"""What a body may return, and what the model, the state and every observer get for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.types import Command, Send
from pydantic import BaseModel
from support.langchain import (
    FEW,
    PROPOSAL,
    SECRET,
    WAYS,
    Host,
    agent_of,
    asks,
    call,
    config,
    document_of,
    found,
    go,
    newer,
    proposed,
    question,
    results_in,
    text_of,
)

from affiant_core import ReadResult, ToolError, WriteProposal
from affiant_core.wire import loads

TEXT = found().to_json_string()
ERROR = ToolError(tool_name="look", code="CUSTOMER_NOT_FOUND", message="There is no such customer.")


def message(content, **more):
    return ToolMessage(content, tool_call_id="call-1", name="look", **more)


def returning(make, name="look", **options):
    """A tool that returns what ``make`` makes of the id of its call."""

    def body(customer_id: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Look."""
        return make()

    async def abody(customer_id: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        await asyncio.sleep(0)
        return make()

    return StructuredTool.from_function(body, abody, name=name, **options)


class Watch(BaseCallbackHandler):
    """Keeps everything that an observer of tools, models and chains is told."""

    def __init__(self):
        self.told = []

    def on_tool_start(self, *args, **kwargs):
        self.told.append((args, kwargs))

    on_tool_end = on_tool_error = on_chain_start = on_chain_end = on_chain_error = on_tool_start
    on_chat_model_start = on_llm_end = on_custom_event = on_tool_start


def looked(make, way="invoke with a call", *, writes=False, **options):
    """Call such a tool, and give the result, the host, and all that was observed of it."""
    if way == "ainvoke with arguments":  # LangChain asks for a call where the call's id is injected
        way = "ainvoke with a call"
    host, watch = Host(), Watch()
    wrapped = host.wrap_one(returning(make, **options), writes=writes)
    result = go(way, [wrapped], "look", {"customer_id": "c-1"}, config() | {"callbacks": [watch]})
    return result, host, watch.told


# --- a proposal, in whichever shape --------------------------------------------------------------------------------

ALONE = {
    "object": proposed,
    "text": lambda: PROPOSAL,
    "text, kind last": lambda: _kind_last(PROPOSAL),
    "dictionary": lambda: proposed().to_json(),
    "dictionary with Python values": lambda: {**proposed().to_json(), "timestamp": datetime(2026, 9, 4, tzinfo=UTC)},
    "text block": lambda: [{"type": "text", "text": PROPOSAL}],
    "one string in a list": lambda: [PROPOSAL],
    "object in a list": lambda: [proposed()],
    "object in a tuple": lambda: (proposed(),),
    "dictionary in a list": lambda: [proposed().to_json()],
    "message": lambda: message(PROPOSAL),
    "message with a block": lambda: message([{"type": "text", "text": PROPOSAL}]),
    "message that calls itself an error": lambda: message(PROPOSAL, status="error"),
    "message with an artifact": lambda: message(PROPOSAL, artifact={"seen": 1}),
    "one message in a list": lambda: [message(PROPOSAL)],
    "command": lambda: Command(update={"messages": [message(PROPOSAL)]}),
    "command with more": lambda: Command(update={"messages": [message(PROPOSAL)], "note": SECRET}, goto="elsewhere"),
    "command in a list": lambda: [Command(update={"messages": [message(PROPOSAL)]})],
}


def _kind_last(text):
    document = loads(text)
    from affiant_core.wire import dumps

    return dumps({**{name: value for name, value in document.items() if name != "kind"}, "kind": "write"})


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("shape", ALONE)
def test_a_proposal_alone_is_filed_and_replaced(shape, writes, way):
    """DECISIONS 5 and the seed, "whether or not the registry declares it": filed from each shape, seen raw in none."""
    result, host, told = looked(ALONE[shape], way, writes=writes)
    assert document_of(result)["entryId"] == host.row().entry_id
    assert SECRET not in repr((result, told))
    assert (result.status, result.tool_call_id, result.artifact) == ("success", "call-1", None)


@dataclass
class Answer:
    text: str
    inner: object


class Model(BaseModel):
    text: str = "found"
    inner: Any = None


def _ring():
    ring: list[Any] = [1]
    ring.append(ring)
    ring.append({"deep": [proposed()]})
    return ring


AMONG = {
    "text beside a block": lambda: [{"type": "text", "text": "I propose:"}, {"type": "text", "text": PROPOSAL}],
    "an image beside a block": lambda: [{"type": "text", "text": PROPOSAL}, {"type": "image", "url": "x"}],
    "two proposals": lambda: [proposed(), proposed(limit=11)],
    "two messages": lambda: [message(PROPOSAL), ToolMessage("more", tool_call_id="other")],
    "a message that is not a tool's": lambda: Command(update={"messages": [HumanMessage(PROPOSAL), message("done")]}),
    "a message as a dictionary": lambda: Command(
        update={"messages": [{"role": "tool", "content": PROPOSAL}, message("x")]}
    ),
    "another part of the state": lambda: Command(update={"messages": [message("done")], "draft": PROPOSAL}),
    "an update in pairs": lambda: Command(update=[("messages", [message(PROPOSAL)])]),
    "where a command goes": lambda: Command(
        update={"messages": [message("x")]}, goto=Send("node", {"draft": proposed()})
    ),
    "an artifact of a message": lambda: message("done", artifact={"draft": proposed()}),
    "a dictionary": lambda: {"answer": "done", "draft": proposed().to_json()},
    "a dictionary with an object": lambda: {"draft": proposed()},
    "a pydantic model": lambda: Model(inner=proposed()),
    "a dataclass": lambda: Answer("found", [PROPOSAL]),
    "a set": lambda: {"done", PROPOSAL},
    "an artifact beside a proposal": lambda: message(PROPOSAL, artifact=proposed(limit=11)),
    "an extra of a message": lambda: ToolMessage("ok", tool_call_id="call-1", proposal=proposed()),
    "a namespace": lambda: SimpleNamespace(draft=proposed()),
    "an exception": lambda: ValueError(proposed()),
    "bytes": PROPOSAL.encode,
    "the record alone": lambda: proposed().envelope,
    "a list that holds itself": _ring,
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("shape", AMONG)
def test_a_proposal_among_other_content_is_refused(shape, writes, way):
    """Measured, "content blocks"; DECISIONS 5 names what a tool may return: anything around a proposal refuses it."""
    result, host, told = looked(AMONG[shape], way, writes=writes)
    assert (result.status, document_of(result)["code"]) == ("error", "wireup-invalid")
    assert host.rows() == ()
    assert SECRET not in repr((result, told))


@pytest.mark.parametrize("shape", ALONE)
def test_the_model_may_read_the_filed_proposal_back(shape):
    """DECISIONS 10, model_view="proposal": the host lets the model read the values, and it is the filed envelope."""
    host = Host(model_view="proposal")
    wrapped = host.wrap_one(returning(ALONE[shape]), writes=True)
    told = document_of(wrapped.invoke(call("look", {"customer_id": "c-1"}), config()))
    assert (told["kind"], told["envelope"]["fields"][1]["value"]) == ("write", SECRET)
    assert len(host.rows()) == 1


# --- everything else -----------------------------------------------------------------------------------------------

CROSSES = {
    "text": ("plain", "plain"),
    "empty text": ("", ""),
    "envelope text": (TEXT, TEXT),
    "nothing": (None, "null"),
    "number": (7, "7"),
    "list": ([1, "a"], '[1, "a"]'),
    "tuple": ((1, "é🚀"), '[1, "é🚀"]'),
    "dictionary": ({"a": "é🚀"}, '{"a": "é🚀"}'),
    "dictionary with another kind": ({"kind": "dog", "n": 1}, '{"kind": "dog", "n": 1}'),
    "dictionary of a known kind": ({"kind": "write", "path": "/x"}, '{"kind": "write", "path": "/x"}'),
    "old discriminator": ('{"$type": "write", "envelope": {}}', '{"$type": "write", "envelope": {}}'),
    "wrong case": (PROPOSAL.replace('"write"', '"Write"', 1).replace(SECRET, "x"), None),
    "truncated": ('{"kind": "write", "envelope": {', '{"kind": "write", "envelope": {'),
    "dataclass": (Answer("found", 1), "Answer(text='found', inner=1)"),
    "pydantic model": (Model(), "text='found' inner=None"),
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("name", CROSSES)
def test_everything_else_from_a_read_crosses_untouched(name, way):
    """Seed, "a plain markdown string included, crosses untouched": what the bare tool gives, the bridged one gives."""
    result, expected = CROSSES[name]
    expected = result if expected is None else expected
    seen, host, _ = looked(lambda: result, way)
    assert (seen.content, seen.status) == (expected, "success")
    assert (
        seen.content
        == go(
            "ainvoke with a call" if way.startswith("ainvoke") else way,
            [returning(lambda: result)],
            "look",
            {"customer_id": "c-1"},
            {},
        ).content
    )
    assert host.rows() == ()


@pytest.mark.parametrize("name", CROSSES)
def test_nothing_else_from_a_write_crosses(name):
    """DECISIONS 6: a declared write that hands back nothing, or anything but a proposal or an error, is refused."""
    seen, host, _ = looked(lambda: CROSSES[name][0], writes=True)
    if name == "envelope text":
        assert document_of(seen)["code"] == "wireup-invalid"
    assert (seen.status, document_of(seen)["code"], host.rows()) == ("error", "wireup-invalid", ())


@pytest.mark.parametrize("call_id", [None, "call-1"])
@pytest.mark.parametrize("result", [None, 7, [1], {"a": 1}, (1, 2), Model()])
def test_a_bare_call_gives_the_bodys_own_object(result, call_id):
    """Measured, "Bare invoke({...}) returns the Python object": so does a bridged tool, without an id to answer."""
    tool = Host().wrap_one(StructuredTool.from_function(lambda: result, name="look", description="Look."))
    given = tool.invoke({"type": "tool_call", "name": "look", "args": {}, "id": call_id} if call_id else {}, config())
    assert given is result if call_id is None else isinstance(given, ToolMessage)


@pytest.mark.parametrize("way", WAYS)
def test_an_envelope_object_becomes_its_json(way):
    """DECISIONS 5, "turns envelope objects into JSON before the framework can stringify them": never a Python repr."""
    host = Host()
    tool = host.wrap_one(StructuredTool.from_function(lambda customer_id: found(), name="look", description="Look."))
    assert text_of(go(way, [tool], "look", {"customer_id": "c-1"}, config())) == TEXT


def test_an_envelope_gets_the_name_of_its_tool():
    """Seed, "all three variants carry toolName": one that names none gets the name of the called tool."""
    seen, _, _ = looked(lambda: ReadResult(summary="a", markdown="b"))
    assert document_of(seen)["toolName"] == "look"


READS = {
    "object": found,
    "dictionary": lambda: found().to_json(),
    "block": lambda: [{"type": "text", "text": TEXT}],
    "message": lambda: message(TEXT, artifact={"rows": 3}),
    "message in a list": lambda: [message(TEXT)],
    "command": lambda: Command(update={"messages": [message(TEXT)]}),
}


LISTED = pytest.param("message in a list", marks=newer)


@pytest.mark.parametrize("shape", [LISTED if name == "message in a list" else name for name in READS])
def test_a_read_in_every_shape(shape):
    """Seed, "ReadResult", and DECISIONS 5: its text is the same in each of LangChain's shapes, which is kept."""
    seen, host, _ = looked(READS[shape])
    only = seen[0] if isinstance(seen, list) else seen
    if shape == "command":
        assert isinstance(only, Command)
        only = only.update["messages"][0]
    assert text_of(only) == TEXT
    assert only.status == "success"
    if shape == "message":
        assert only.artifact == {"rows": 3}
    assert host.rows() == ()


def test_the_fabric_sees_a_read_in_every_shape():
    """Seed, "Entities is what feeds a ContextExtractor": whichever shape a read comes in, its entities are found."""
    from support.gate import turn

    from affiant_core import EmitEveryEntity

    for make in READS.values():
        host, context = Host(extractors=[EmitEveryEntity()]), turn()
        host.wrap_one(returning(make)).invoke(call("look", {"customer_id": "c-1"}), config(context))
        assert [entity.entity_id for entity in context.fabric.entities()] == ["c-1"]


ERRORS = {
    "object": lambda: ERROR,
    "text": ERROR.to_json_string,
    "dictionary": ERROR.to_json,
    "block": lambda: [{"type": "text", "text": ERROR.to_json_string()}],
    "error message": lambda: message(ERROR.to_json_string(), status="error"),
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("shape", ERRORS)
def test_a_tool_error_is_an_error_in_every_shape(shape, writes, way):
    """DECISIONS 7, "A ToolError returned by a declared write passes untouched", and the message says "error"."""
    seen, host, _ = looked(ERRORS[shape], way, writes=writes)
    assert (seen.status, text_of(seen)) == ("error", ERROR.to_json_string())
    assert host.rows() == ()


FAILED = {
    "message": lambda: message("no route", status="error"),
    "message in a list": lambda: [message("no route", status="error")],
    "command": lambda: Command(update={"messages": [message("no route", status="error")]}),
}


@pytest.mark.parametrize("shape", [LISTED if name == "message in a list" else name for name in FAILED])
@pytest.mark.parametrize("writes", [True, False])
def test_an_error_message_is_a_failure(shape, writes):
    """Measured, pitfall 11: "A write tool's status="error" result is a failure, not wireup-invalid"; a read's stays."""
    seen, host, _ = looked(FAILED[shape], writes=writes)
    only = seen[0] if isinstance(seen, list) else seen
    only = only.update["messages"][0] if isinstance(only, Command) else only
    assert (only.content, only.status, host.rows()) == ("no route", "error", ())


def test_a_command_of_a_read_still_steers_the_graph():
    """Measured, "Command": what is not a proposal keeps its update and its way through the graph."""
    from langchain.agents import AgentState

    class Noted(AgentState):
        note: str

    host = Host()
    tool = host.wrap_one(returning(lambda: Command(update={"messages": [message("done")], "note": "kept"})))
    agent = agent_of([tool], asks(("look", {"customer_id": "c-1"})), state_schema=Noted)
    state = agent.invoke(question(), config())
    assert state["note"] == "kept"
    assert results_in(state)[0].content == "done"


def test_a_list_that_holds_itself_is_looked_at_once():
    """Measured, "Read lists": one that has no end is no text, and LangChain may say what it is."""
    ring: list[Any] = []
    ring.append(ring)
    host = Host()
    tool = host.wrap_one(StructuredTool.from_function(lambda: ring, name="look", description="Look."))
    assert tool.invoke({}, config()) is ring


# --- values and size -----------------------------------------------------------------------------------------------


class Odd(BaseModel):
    n: int = 1


VALUES = [
    datetime(2026, 7, 4, 15, 22, tzinfo=UTC), datetime(2026, 7, 4), float("nan"), 2**70, -0.0, b"raw", {"a"},
    (1, 2), Odd(), "\ud800", "é🚀", {1: "one"}, object(),
]  # fmt: skip


@pytest.mark.parametrize("form", ["object", "dictionary"])
@pytest.mark.parametrize("way", FEW)
def test_values_are_spelled_as_everywhere(way, form):
    """C16: the text is the core's own, byte for byte; what has no honest spelling is an error that names the path."""
    for value in VALUES:
        raw = {"kind": "read", "summary": "s", "markdown": "m", "entities": [], "toolName": "look"}
        raw |= {"timestamp": "2026-09-04T09:00:00.000Z", "extra": {"value": value}}

        def make(value=value, raw=raw):
            return found(value=value) if form == "object" else raw

        seen, _, _ = looked(make, way)
        try:
            expected = found(value=value).to_json_string()
        except Exception:  # noqa: BLE001  # which of the values have no spelling is the core's to test
            expected = None
        told = document_of(seen)
        if expected is None:
            assert (told["kind"], told["code"], seen.status) == ("error", "VALIDATION_FAILED", "error")
            assert "value" in told["message"]
        elif form == "object":
            assert text_of(seen) == expected
        else:
            assert told["extra"] == document_of(expected)["entities"][0]["fields"]


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("shape", ["object", "text", "block"])
def test_a_huge_result_is_cut_to_valid_json(shape, way):
    """C17: five megabytes and ten thousand entities come under the ceiling, say how much was cut, and stay JSON."""
    entities = tuple(found(f"c-{number}").entities[0] for number in range(10_000))
    huge = ReadResult(tool_name="look", summary="All.", markdown="é🚀" * 850_000, entities=entities)
    text = huge.to_json_string()
    make = {"object": lambda: huge, "text": lambda: text, "block": lambda: [{"type": "text", "text": text}]}[shape]
    seen, _, _ = looked(make, way)
    told = document_of(seen)
    assert len(text_of(seen).encode()) <= 256 * 1024
    assert "of 10000 entities" in told["summary"]
    assert told["kind"] == "read"


def test_a_cut_read_keeps_its_artifact():
    """C17 beside the artifact: what is cut is the text for the model, and nothing was replaced."""
    huge = ReadResult(tool_name="look", summary="All.", markdown="x" * 300_000)

    def body() -> Any:
        """Look."""
        return huge, {"rows": 1}

    tool = StructuredTool.from_function(body, name="look", response_format="content_and_artifact")
    seen = Host().wrap_one(tool).invoke(call("look", {}), config())
    assert seen.artifact == {"rows": 1}
    assert "Cut to fit" in document_of(seen)["summary"]


def test_the_three_variants_have_no_fourth():
    """Seed, "exactly three sealed subtypes": the shapes above are those of the envelope's own classes."""
    assert {type(each()) for each in (found, proposed)} | {ToolError} == {ReadResult, WriteProposal, ToolError}
