"""bind(): a tool class that knows no framework becomes function tools of the SDK."""

from __future__ import annotations

import copy
import dataclasses
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Literal

import pytest
from agents import FunctionTool, RunContextWrapper, tool_namespace
from agents.tool import invoke_function_tool
from pydantic import BaseModel, Field
from support.gate import turn
from support.openai_agents import (
    FIND,
    LIMIT,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    acall,
    asks,
    call,
    context_of,
    document_of,
    outputs_in,
    proposed,
    run,
)

from affiant_agents_bridge import bind
from affiant_core import Affiant, InMemoryDocketStore, TurnContext, WireupInvalid, WiringError, read_tool
from affiant_core.bridge import bound_functions


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    lines: list[str] = []


class Everything:
    def __init__(self):
        self.seen = None

    @read_tool
    def take(
        self,
        day: date,
        moment: datetime,
        colour: Colour,
        address: Address,
        kind: Literal["a", "b"] = "a",
        many: Annotated[list[int], Field(max_length=3)] = [1],  # noqa: B006  # pydantic copies it
        anything: dict | None = None,
        *,
        ctx: str = "mine",
        context: str = "mine too",
    ) -> str:
        """Take everything."""
        self.seen = (day, moment, colour, address, kind, many, anything, ctx, context)
        return "taken"


SENT = {
    "day": "2026-09-04",
    "moment": "2026-09-04T09:00:00+00:00",
    "colour": "red",
    "address": {"street": "Main", "lines": ["x"]},
}
GOT = (date(2026, 9, 4), datetime(2026, 9, 4, 9, tzinfo=UTC), Colour.RED, Address(street="Main", lines=["x"]), "a")


@pytest.mark.parametrize("mode", ["plain", "streamed", "sync"])
def test_a_body_gets_what_its_signature_says(mode):
    """DESIGN, "The same tool class, unchanged": dates, enums, nested models and defaults arrive as such."""
    desk = Everything()
    result = run(Host(desk).agent(asks(("take", SENT))), mode=mode)
    assert outputs_in(result) == ["taken"]
    assert desk.seen == (*GOT, [1], None, "mine", "mine too")


def test_a_default_is_one_because_the_schema_is_not_strict():
    """Measured of ensure_strict_json_schema: it makes every parameter required, so a bound tool is not strict."""
    tool = Host(LimitDesk()).bind()["set_limit"]
    assert tool.strict_json_schema is False
    assert tool.params_json_schema["required"] == ["customer_id", "limit"]
    assert tool.params_json_schema["additionalProperties"] is False
    assert tool.params_json_schema["properties"]["force"]["default"] is False


def test_the_model_is_shown_names_descriptions_and_the_shared_schema():
    """DESIGN, "byte-identical": what a model is shown is the shared schema, and the turn is not in it."""
    host = Host(LimitDesk())
    shared = {each.descriptor.name: each for each in bound_functions(host.affiant)}
    for name, tool in host.bind().items():
        assert (tool.name, tool.description) == (name, shared[name].descriptor.description)
        assert tool.params_json_schema == shared[name].schema
    assert "turn" not in host.bind()["set_limit"].params_json_schema["properties"]


@pytest.mark.parametrize("desk", [LimitDesk, AsyncLimitDesk])
def test_a_body_gets_the_turn_it_asks_for(desk):
    """GT-2: the turn reaches the parameter that asks for it, the host's own object, and a model cannot fill it."""
    host, context = Host(built := desk()), turn("ana")
    call(host.bind()["set_limit"], LIMIT, context)
    assert built.calls[0][1]["turn"] is context
    told = document_of(call(host.bind()["set_limit"], {**LIMIT, "turn": {"tenant_id": "other"}}, context))
    assert told["code"] == "VALIDATION_FAILED"
    assert len(built.calls) == 1


MISFITS = {
    "missing": ({"customer_id": "c-1"}, "limit"),
    "wrong type": ({"customer_id": "c-1", "limit": "hunter2"}, "limit"),
    "unknown": ({"customer_id": "c-1", "limit": 1, "zz": 9}, "zz"),
    "null": ({"customer_id": None, "limit": 1}, "customer_id"),
}


@pytest.mark.parametrize(("sent", "place"), MISFITS.values(), ids=MISFITS)
def test_arguments_that_do_not_fit_are_told_by_name(sent, place):
    """DECISIONS 8: VALIDATION_FAILED names the parameter and no value; no body runs and no row is filed."""
    desk = LimitDesk()
    host = Host(desk)
    told = document_of(call(host.bind()["set_limit"], sent))
    assert (told["code"], desk.calls, host.rows()) == ("VALIDATION_FAILED", [], ())
    assert told["message"].endswith(f"Check: {place}.")
    assert "hunter2" not in told["message"]


@pytest.mark.parametrize("sent", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(sent):
    """Measured, '"" parsed as {}': so it is here, for bound tools too."""

    class Ping:
        @read_tool
        def ping(self) -> str:
            """Answer."""
            return "pong"

    assert call(Host(Ping()).bind()["ping"], sent) == "pong"


def test_what_a_body_does_to_its_arguments_reaches_no_second_attempt_and_no_row():
    """DECISIONS 9 and 15: identity and retry are of what the model sent, also when a body changes what it was given."""
    seen = []

    class Changing:
        @read_tool
        def look(self, lines: list[dict]) -> str:
            """Change, and time out once."""
            seen.append(copy.deepcopy(lines))
            lines[0]["deep"]["n"] = 99
            lines.append({})
            if len(seen) == 1:
                raise TimeoutError
            return "done"

    assert call(Host(Changing()).bind()["look"], {"lines": [{"deep": {"n": 1}}]}) == "done"
    assert seen == [[{"deep": {"n": 1}}], [{"deep": {"n": 1}}]]


COPIES = {
    "copy": copy.copy,
    "replace": dataclasses.replace,
    "namespace": lambda tool: tool_namespace(name="crm", description="The CRM.", tools=[tool])[0],
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_of_a_bound_tool_are_wired(copied):
    """Seam 1, "Copies, replace and tool_namespace() of a wired tool stay wired": a proposal becomes a receipt."""
    host = Host(LimitDesk())
    tool = copied(host.bind()["set_limit"])
    assert document_of(call(tool, LIMIT))["outcome"] == "filed"
    assert len(host.rows()) == 1


@pytest.mark.anyio
async def test_the_helper_of_realtime_sessions_is_gated():
    """Seam 1: RealtimeSession calls invoke_function_tool, which reaches the same seam."""
    host = Host(LimitDesk())
    tool = host.bind()["set_limit"]
    text = '{"customer_id": "c-1", "limit": 10}'
    told = await invoke_function_tool(function_tool=tool, context=context_of(tool, text), arguments=text)
    assert document_of(told)["outcome"] == "filed"


@pytest.mark.anyio
async def test_the_input_counts_and_not_what_the_context_says():
    """Seam 2, "Use the input parameter, not ctx.tool_arguments": a hook can rewrite the one and not the other."""
    desk = LimitDesk()
    host = Host(desk)
    tool = host.bind()["set_limit"]
    await tool.on_invoke_tool(context_of(tool, '{"customer_id": "c-9", "limit": 9}'), '{"customer_id":"c-1","limit":1}')
    assert desk.calls[0][1]["customer_id"] == "c-1"
    assert host.row().affidavit.entity_id == "c-1"


def test_turn_of_reads_the_turn_from_elsewhere():
    """DECISIONS 12, "through a turn_of callable": the host's own context object may carry it."""

    @dataclasses.dataclass
    class Mine:
        turn: TurnContext

    desk = LimitDesk()
    tools = {tool.name: tool for tool in bind(Host(desk).affiant, turn_of=lambda ctx: ctx.context.turn)}
    assert document_of(call(tools["find_customer"], FIND, Mine(turn())))["kind"] == "read"
    for wrong, told in ((turn(), "a Turn"), ("x", "AttributeError")):
        with pytest.raises(WireupInvalid, match=told):
            call(tools["find_customer"], FIND, wrong)
    assert len(desk.calls) == 1


@pytest.mark.anyio
async def test_a_context_that_is_no_tool_context_is_refused():
    """DECISIONS 12: a call by hand without a context of the SDK's has no turn."""
    desk = LimitDesk()
    tool = Host(desk).bind()["find_customer"]
    for context in (None, "x", RunContextWrapper(None)):
        with pytest.raises(WireupInvalid):
            await tool.on_invoke_tool(context, '{"customer_id": "c-1"}')
    assert desk.calls == []


def test_every_fault_of_the_wiring_is_told_at_once():
    """CV-1: parameters that cannot be described, and a write that nobody could approve, in one error."""

    class Faulty(LimitDesk):
        @read_tool
        def star(self, *names: str) -> str:
            """Take any."""

        @read_tool
        def bare(self, name) -> str:
            """Say nothing."""

    with pytest.raises(WiringError) as refused:
        bind(Affiant(tools=Faulty(), docket=InMemoryDocketStore()))
    subjects = {fault.subject for fault in refused.value.faults}
    assert subjects == {"tool 'Faulty.star'", "tool 'Faulty.bare'", "tool 'Faulty.set_limit'"}


def test_only_an_affiant_is_bound():
    """DESIGN, "A mistake at wiring names what to write instead": a tool object by itself is told so."""
    with pytest.raises(TypeError, match=r"Affiant\(tools=\.\.\.\)"):
        bind(LimitDesk())
    with pytest.raises(WiringError, match="none to bind"):
        bind(Host().affiant)


def test_bound_tools_are_function_tools():
    """Issue, "on_invoke_tool per tool": what bind() gives is a plain FunctionTool, without a formatter for failures."""
    for tool in Host(LimitDesk()).bind().values():
        assert type(tool) is FunctionTool
        assert tool.timeout_seconds is None
        assert tool.custom_data_extractor is None


@pytest.mark.anyio
async def test_a_text_that_is_an_envelope_is_one():
    """DECISIONS 5: a body that returns an envelope's JSON text proposes as well as one that returns the object."""

    class Texts:
        @read_tool
        def look(self) -> str:
            """Return a proposal as text, from a declared read."""
            return proposed().to_json_string()

    host = Host(Texts())
    assert document_of(await acall(host.bind()["look"]))["outcome"] == "filed"
    assert len(host.rows()) == 1
