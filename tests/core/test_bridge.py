"""What bridges share: arguments in, signatures, results out, versions."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, Optional

import pytest
from pydantic import BaseModel, Field, ValidationError
from support.gate import Events, limit_of, turn
from support.pipeline import Host, entity, invocation_for, model_json, proposal, read_result, run, telemetry

from affiant_core.affiant import MINIMUM_RESULT_CEILING, Affiant
from affiant_core.bridge import (
    ArgumentsRefused,
    argument_fault,
    argument_model,
    bindable,
    carried_arguments,
    invalid_arguments,
    model_text,
    parse_arguments,
    require_version,
    turn_parameter,
)
from affiant_core.context import ActContext, TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.envelope import ReadResult, ToolError, WriteProposal
from affiant_core.errors import WireError, WireupInvalid, WiringError
from affiant_core.registry import FieldDeclaration, ToolDescriptor, ToolRegistry, read_tool, write_tool
from affiant_core.wire import loads

if TYPE_CHECKING:
    from somewhere import Absent

# --- arguments in --------------------------------------------------------------------------------------------------


def test_arguments_are_parsed_as_they_were_sent():
    """DECISIONS 9, "parsed strictly, before coercion": numbers, text and nesting are what the model wrote."""
    text = '{"limit": 50, "rate": 0.5, "memo": "é🚀", "tags": ["a", null], "deep": {"on": true}}'
    assert parse_arguments(text) == {
        "limit": 50,
        "rate": 0.5,
        "memo": "é🚀",
        "tags": ["a", None],
        "deep": {"on": True},
    }


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "{}", " { } "])
def test_no_arguments_are_an_empty_map(text):
    """DECISIONS 9, "An empty map is none": empty text and an empty object say the same."""
    assert parse_arguments(text) == {}


REFUSED_TEXTS = {
    "C01, truncated": '{"customer_id": "s3cret", "limit": 50',
    "truncated in a string": '{"customer_id": "s3cr',
    "two documents": '{"a": "s3cret"} {"b": 2}',
    "a repeated key": '{"limit": "s3cret", "limit": 2}',
    "a repeated key below": '{"deep": {"x": "s3cret", "x": 2}}',
    "NaN": '{"limit": NaN, "memo": "s3cret"}',
    "infinity": '{"limit": -Infinity, "memo": "s3cret"}',
    "1e400": '{"limit": 1e400, "memo": "s3cret"}',
    "an integer of 400 digits": f'{{"limit": {"9" * 400}}}',
    "an array": '["s3cret"]',
    "text": '"s3cret"',
    "a number": "50",
    "null": "null",
    "true": "true",
    "prose": "set s3cret to 50",
    "single quotes": "{'limit': 's3cret'}",
    "a trailing comma": '{"memo": "s3cret",}',
    "a comment": '{"memo": "s3cret"} // really',
    "a lone surrogate": '{"memo": "s3cret\\ud800"}',
    "a byte order mark": '\ufeff{"memo": "s3cret"}',
    "nested too deeply": '{"a":' * 100_000,
}


@pytest.mark.parametrize("text", REFUSED_TEXTS.values(), ids=REFUSED_TEXTS)
def test_arguments_are_refused_without_quoting_them(text):
    """DECISIONS 8, C01: malformed text, a repeated key, NaN, infinity, anything but an object is refused."""
    with pytest.raises(ArgumentsRefused) as refused:
        parse_arguments(text)
    assert isinstance(refused.value, WireError)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert "Expecting" not in str(refused.value)


def test_carried_arguments_are_a_copy_without_what_is_left_out():
    """DECISIONS 9, "without injected or host values": what the framework put beside the arguments is not carried."""
    given = {"customer_id": "c-1", "tags": ["a"], "config": object(), "affiant_turn": turn()}
    carried = carried_arguments(given, without=["config", "affiant_turn", "absent"])
    assert carried == {"customer_id": "c-1", "tags": ["a"]}
    carried["tags"].append("b")
    assert given["tags"] == ["a"]
    assert carried_arguments({}) == {}


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"limit": float("nan")}, "limit"),
        ({"limit": float("inf")}, "limit"),
        ({"limit": 2**53}, "limit"),
        ({"rows": [1, {"raw": b"s3cret"}]}, "rows[1].raw"),
        ({"when": datetime(2026, 7, 4)}, "when"),
        ({"who": object()}, "who"),
        ({"memo": "s3cret\ud800"}, "memo"),
        ({"deep": {1: "s3cret"}}, "deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_are_not_json_are_refused_by_their_place(arguments, place):
    """DECISIONS 8 and 20: NaN, infinity and everything else without a spelling is refused, naming where it stands."""
    with pytest.raises(ArgumentsRefused) as refused:
        carried_arguments(arguments)
    assert str(refused.value).startswith(f"{place}: ")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["\ud800", 1])
def test_a_name_that_is_no_json_key_is_refused(name):
    """DECISIONS 8: a parameter's name that JSON cannot hold would have no place in the row's identity."""
    with pytest.raises(ArgumentsRefused):
        carried_arguments({name: 1})


def test_bad_arguments_have_one_answer():
    """DECISIONS 8, C01: VALIDATION_FAILED, not retryable, with the names of the parameters at most."""
    error = invalid_arguments("set_limit", ["limit", "customer_id", "limit"])
    assert (error.code, error.retryable, error.tool_name) == ("VALIDATION_FAILED", False, "set_limit")
    assert error.message == "The arguments do not fit the tool's parameters. Check: customer_id, limit."
    assert invalid_arguments("set_limit").message == "The arguments do not fit the tool's parameters."


def test_a_validation_error_is_read_for_its_parameters_only():
    """DECISIONS 8: the parameters that are at fault are named, the values that pydantic repeats are not."""

    class Arguments(BaseModel):
        limit: int
        deep: dict[str, int] = {}

    with pytest.raises(ValidationError) as caught:
        Arguments(limit="s3cret", deep={"x": "s3cret"})
    assert argument_fault(caught.value) == ["limit", "deep"]
    assert argument_fault(RuntimeError("s3cret")) == []


def test_an_error_of_the_first_pydantic_is_read_alike():
    """DECISIONS 8: a framework's older schemas raise another ValidationError, whose parameters are named as well."""

    class OlderError(ValueError):
        def errors(self):
            return [{"loc": ("limit",), "msg": "s3cret"}, {"loc": (), "msg": "s3cret"}]

    assert argument_fault(OlderError()) == ["limit"]


# --- a tool's signature --------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Span:
    start: date
    end: date


def described(function, **options):
    return argument_model(ToolDescriptor("a_tool", "Desk", function=function, **options))


def schema(function):
    return described(function).model_json_schema()


class Tools:
    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(
        self,
        customer_id: str,
        limit: int,
        force: bool = False,
        effective: datetime | None = None,
        memo: str = "",
        *,
        turn: TurnContext,
    ):
        """Propose a limit."""


def test_a_signature_becomes_a_closed_model():
    """DECISIONS 9 and 12: names, defaults and types are the tool's; the turn is not among them."""
    model = described(Tools().set_limit, description="Propose a limit.")
    assert list(model.model_fields) == ["customer_id", "limit", "force", "effective", "memo"]
    document = model.model_json_schema()
    assert document["required"] == ["customer_id", "limit"]
    assert document["additionalProperties"] is False
    assert document["description"] == "Propose a limit."
    given = model(customer_id="c-1", limit=50, effective="2026-07-04T15:22:03Z")
    assert (given.force, given.memo, given.effective) == (False, "", datetime(2026, 7, 4, 15, 22, 3, tzinfo=UTC))
    assert turn_parameter(Tools().set_limit) == "turn"


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"customer_id": "c-1"}, "limit"),
        ({"customer_id": "c-1", "limit": "lots"}, "limit"),
        ({"customer_id": "c-1", "limit": 1, "nosuch": 1}, "nosuch"),
        ({"customer_id": "c-1", "limit": 1, "turn": {"tenant_id": "umbrella"}}, "turn"),
        ({"customer_id": None, "limit": 1}, "customer_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused_by_parameter(arguments, place):
    """DECISIONS 8, "do not fit the declared parameters"; 12: a forged turn is an unknown name."""
    with pytest.raises(ValidationError) as caught:
        described(Tools().set_limit)(**arguments)
    assert argument_fault(caught.value) == [place]


def test_a_signature_may_use_every_plain_type():
    """C16: enums, dates, optionals, literals, decimals, nested models and constraints are described and read."""

    def tool(
        colour: Colour,
        day: date,
        span: Span,
        level: Literal["low", "high"],
        price: Decimal,
        many: list[int],
        table: dict[str, float],
        old: Optional[str] = None,  # noqa: UP045  # the older spelling is as good
        colours: Sequence[Colour] = (Colour.RED,),
        short: Annotated[str, Field(max_length=3, description="At most three letters.")] = "abc",
        anything: Any = 7,
    ): ...

    document = schema(tool)
    assert document["required"] == ["colour", "day", "span", "level", "price", "many", "table"]
    assert document["properties"]["short"]["description"] == "At most three letters."
    assert document["properties"]["short"]["maxLength"] == 3
    model = described(tool)
    given = model(
        colour="blue",
        day="2026-07-04",
        span={"start": "2026-07-04", "end": "2026-07-05"},
        level="low",
        price="10.10",
        many=[1],
        table={"a": 0.5},
    )
    assert (given.colour, given.day, given.span.end) == (Colour.BLUE, date(2026, 7, 4), date(2026, 7, 5))
    assert (given.price, given.old, given.colours, given.anything) == (Decimal("10.10"), None, (Colour.RED,), 7)
    with pytest.raises(ValidationError):
        model(**{**given.model_dump(), "short": "abcd"})


def test_a_default_is_not_shared_between_calls():
    """C14: a mutable default of one call is not the next call's."""

    def tool(tags: list[str] = []): ...  # noqa: B006  # the mistake that must not matter

    model = described(tool)
    model().tags.append("x")
    assert model().tags == []


def test_a_tool_without_parameters_takes_none():
    """DECISIONS 8: an argument for a tool that has no parameters does not fit it."""

    def tool(): ...

    assert described(tool)() is not None
    with pytest.raises(ValidationError):
        described(tool)(x=1)


def star_args(*names: str): ...


def star_kwargs(**names: str): ...


def positional_only(name: str, /): ...


def unreadable(name: Absent): ...


def misspelt(name: datetime.nosuch): ...


def broken(name: "not an annotation ("): ...  # noqa: F722  # unreadable on purpose


def meaningless(name: object()): ...


def private(_name: str): ...


UNBINDABLE = {
    "star args": (star_args, "'names' cannot be passed by name", "Name each parameter"),
    "star kwargs": (star_kwargs, "'names' cannot be passed by name", "Name each parameter"),
    "positional only": (positional_only, "'name' cannot be passed by name", "Name each parameter"),
    "under TYPE_CHECKING": (unreadable, "annotations cannot be read", "not under TYPE_CHECKING"),
    "a name that is not there": (misspelt, "annotations cannot be read", "Import every annotated type"),
    "no annotation": (broken, "annotations cannot be read", "Import every annotated type"),
    "an annotation that is no type": (meaningless, "", "Annotate them with plain types"),
    "a private name": (private, "cannot be described", ""),
}


@pytest.mark.parametrize(("function", "fault", "remedy"), UNBINDABLE.values(), ids=UNBINDABLE)
def test_a_signature_that_no_model_could_fill_is_refused_with_a_remedy(function, fault, remedy):
    """CV-1: *args, **kwargs and annotations that cannot be read are faults of the wiring, each with what to do."""
    with pytest.raises(WiringError) as caught:
        described(function)
    (found,) = caught.value.faults
    assert fault in found.fault
    assert remedy in found.remedy
    assert found.remedy in str(caught.value)


def test_a_tool_without_a_function_is_refused():
    """CV-1: a tool that was declared, or walked as a class, cannot be bound, and the message says what to pass."""
    with pytest.raises(WiringError, match="Pass the tool object, not its class"):
        argument_model(ToolDescriptor("set_limit", "Desk"))


def test_two_tools_of_one_declaration_keep_their_own_parameters():
    """C14: what one host's tool takes is never what another host's tool of the same name takes."""

    def first(limit: int): ...

    def second(memo: str): ...

    assert list(described(first).model_fields) == ["limit"]
    assert list(described(second).model_fields) == ["memo"]


def test_a_declaration_may_hold_what_cannot_be_hashed():
    """CV-1: a strategy or an allowed value of any type is no reason for a tool not to be bound."""

    def tool(limit: int): ...

    fields = (FieldDeclaration("limit", allowed_values=([1], {"a": 2})),)
    assert list(described(tool, strategy={"by": "hand"}, fields=fields).model_fields) == ["limit"]


# --- the turn in a signature ---------------------------------------------------------------------------------------


class HostTurn(TurnContext):
    """A host's own context."""


def turn_plain(limit: int, context: TurnContext): ...


def turn_optional(limit: int, context: TurnContext | None = None): ...


def turn_old_optional(limit: int, context: Optional[TurnContext] = None): ...  # noqa: UP045  # as above


def turn_annotated(limit: int, context: Annotated[TurnContext, "the host's"]): ...


def turn_subclass(limit: int, context: HostTurn): ...


def turn_base(limit: int, context: ActContext): ...


TURNS = [turn_plain, turn_optional, turn_old_optional, turn_annotated, turn_subclass, turn_base]


@pytest.mark.parametrize("function", TURNS, ids=lambda function: function.__name__)
def test_the_model_neither_sees_nor_fills_the_turn(function):
    """DECISIONS 12, "the model can neither see nor forge": in every spelling the turn's parameter is the host's."""
    assert turn_parameter(function) == "context"
    model = described(function)
    assert list(model.model_fields) == ["limit"]
    with pytest.raises(ValidationError):
        model(limit=1, context={"tenant_id": "umbrella", "principal": None, "conversation_id": "x"})


def test_a_tool_need_not_ask_for_the_turn():
    """DECISIONS 12: a parameter that is only named like a turn is the model's."""

    def tool(turn: str): ...

    assert turn_parameter(tool) is None
    assert list(described(tool).model_fields) == ["turn"]


Handle = NewType("Handle", TurnContext)


def turn_under_another_name(limit: int, contexts: Handle): ...


def turn_among_others(limit: int, context: TurnContext | str): ...


def two_turns(limit: int, context: TurnContext, other: TurnContext): ...


def turns_in_a_list(limit: int, contexts: list[TurnContext]): ...


def turn_in_a_map(limit: int, contexts: dict[str, TurnContext | None]): ...


@pytest.mark.parametrize(
    "function",
    [two_turns, turns_in_a_list, turn_in_a_map, turn_under_another_name, turn_among_others],
    ids=lambda function: function.__name__,
)
def test_a_context_that_the_model_could_forge_is_refused(function):
    """DECISIONS 12: a second context, or one inside another value, would be filled in by the model."""
    with pytest.raises(WiringError, match="context") as caught:
        described(function)
    assert "one parameter" in caught.value.faults[0].remedy


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type aliases are a syntax error before Python 3.12")
def test_an_alias_may_contain_itself_and_may_not_hide_a_turn():
    """DECISIONS 12: an alias of Python 3.12 is looked into, once."""
    source = """
from affiant_core import TurnContext
type Tree = dict[str, Tree] | None
type Hidden = TurnContext
def grow(tree: Tree): ...
def forge(context: Hidden): ...
"""
    namespace = {"__name__": "aliases"}
    exec(compile(source, "aliases", "exec", dont_inherit=True), namespace)
    assert list(described(namespace["grow"]).model_fields) == ["tree"]
    with pytest.raises(WiringError, match="context"):
        described(namespace["forge"])


# --- what can be bound ---------------------------------------------------------------------------------------------


def affiant(*tools, **options):
    return Affiant(docket=InMemoryDocketStore(), tools=list(tools), **options)


def test_bindable_gives_the_tools_that_have_a_function():
    """CV-1: after the whole wiring was checked, the tools that can be called are handed over, and no others."""
    host = affiant(Tools(), authorize=lambda _: True)
    host.declare_read("search")
    assert [tool.name for tool in bindable(host)] == ["set_limit"]


def test_bindable_tells_every_fault_at_once():
    """CV-1, C18: faults of names, of the authorization port and of signatures come in one error."""

    class Broken:
        def stars(self, *args): ...

        def absent(self, name: Absent): ...

        @read_tool(name="a b")
        def spaced(self): ...

        @write_tool(operation="WriteCreate", entity_type="X")
        def write(self): ...

    with pytest.raises(WiringError) as caught:
        bindable(affiant(Broken()))
    told = str(caught.value)
    assert len(caught.value.faults) == 4
    for part in ("'Broken.stars'", "absent", "'Broken.a b'", "authorize="):
        assert part in told


def test_nothing_to_bind_is_a_fault():
    """CV-1: a host without tools is told so, and what to pass."""
    with pytest.raises(WiringError, match=r"tools=.*wrap"):
        bindable(affiant())


# --- results out ---------------------------------------------------------------------------------------------------

CEILING = 64 * 1024


def shown(result, ceiling=CEILING, events=None, **options):
    invocation = invocation_for("sync", **options)
    invocation.result = result
    return model_text(invocation, ceiling=ceiling, telemetry=telemetry(events or Events()))


def size_of(text):
    return len(text.encode("utf-8"))


@pytest.mark.parametrize("text", ["prose", "", "{not json", '{"kind":"sedan"}', '["a"]', "é🚀" * 100_000])
def test_text_that_is_no_envelope_is_untouched(text):
    """DECISIONS 5, seed "a plain markdown string included, crosses untouched": whatever its size."""
    assert shown(text) is text


def test_an_envelopes_own_text_is_untouched():
    """DECISIONS 5: JSON text that a tool wrote, with its own order and white space, is what the model gets."""
    text = json.dumps(read_result(entity()).to_json(), indent=2)
    assert shown(text) is text


def test_an_envelope_object_becomes_its_json():
    """DECISIONS 5: the bridge turns envelope objects into JSON before the framework can stringify them."""
    found = read_result(entity(limit=Decimal("10.10")))
    assert shown(found) == found.to_json_string()
    assert '"limit":"10.10"' in shown(found)


def test_an_object_that_says_nothing_is_left_to_the_framework():
    """DECISIONS 5: what is neither an envelope nor text has no text of ours."""
    assert shown({"rows": [1]}) is None
    assert shown(7) is None
    assert shown(None) == ""


def test_a_missing_tool_name_is_filled_in():
    """Seed, "toolName on every variant": an envelope that names no tool gets the name it is declared under."""
    assert model_json(shown(read_result(tool_name="")))["toolName"] == "find_customer"
    assert model_json(shown(read_result(tool_name="own")))["toolName"] == "own"
    assert model_json(shown(ToolError(code="X", message="m")))["toolName"] == "find_customer"


def test_what_the_model_gets_is_what_the_pipeline_let_through():
    """CV-2: the text of a call is made of what the gate left, and never of the raw proposal."""
    invocation = run("sync", Host().pipeline, proposal(987654), tool_name="set_limit")
    assert "987654" not in model_text(invocation, ceiling=CEILING, telemetry=telemetry(Events()))


# --- C17 -----------------------------------------------------------------------------------------------------------

MARKDOWNS = {
    "ascii": "| Name | Email |" * 20_000,
    "two bytes": "é" * 150_000,
    "three bytes": "東" * 100_000,
    "four bytes": "🚀" * 75_000,
    "of every width": "aé東🚀" * 30_000,
    "quotation marks": '"' * 300_000,
    "backslashes": "\\" * 300_000,
    "line feeds": "\n" * 300_000,
    "control characters": "\x01" * 300_000,
    "control characters first": "\x01" * 3000 + "a" * 300_000,
    "control characters last": "a" * 3000 + "\x01" * 300_000,
    "none": "",
}

CEILINGS = [MINIMUM_RESULT_CEILING, 2049, 3000, 4096, 10_000, CEILING]


@pytest.fixture(scope="module")
def many_entities():
    return tuple(entity(f"c-{number}", limit=number, memo="é\n") for number in range(10_000))


def checked(text, found, ceiling):
    """The cut result, after everything that must hold of every one."""
    assert size_of(text) <= ceiling
    document = loads(text)
    cut = ReadResult.model_validate(document, by_alias=True, by_name=False)
    assert (cut.tool_name, cut.timestamp) == (found.tool_name, found.timestamp)
    assert found.markdown.startswith(cut.markdown)
    assert found.entities[: len(cut.entities)] == cut.entities
    summary, _, note = cut.summary.rpartition(" [Cut to fit ")
    assert found.summary.startswith(summary)
    assert f"{ceiling} bytes" in note
    assert f"{len(cut.entities)} of {len(found.entities)} entities" in note
    assert f"{size_of(cut.markdown)} of {size_of(found.markdown)} bytes of markdown" in note
    return cut


@pytest.mark.parametrize(
    "markdown", ["| Name | Email |" * 350_000, "aé東🚀" * 500_000], ids=["ascii", "of every width"]
)
def test_c17_five_megabytes_and_ten_thousand_entities(markdown, many_entities):
    """C17: valid JSON under the ceiling, which says that it was cut and by how much."""
    found = read_result(*many_entities, markdown=markdown)
    assert size_of(markdown) >= 5_000_000
    cut = checked(shown(found), found, CEILING)
    assert len(cut.entities) > 100
    assert size_of(cut.markdown) > CEILING // 3
    assert "of 10000 entities" in cut.summary


@pytest.mark.parametrize("markdown", MARKDOWNS.values(), ids=MARKDOWNS)
def test_c17_every_text_under_every_ceiling(markdown, many_entities):
    """C17: also what JSON escapes is under every ceiling from the least on, and never cut inside a character."""
    found = read_result(*many_entities[:1000], markdown=markdown)
    for ceiling in CEILINGS:
        cut = checked(shown(found, ceiling), found, ceiling)
        assert cut.entities
        assert not markdown or cut.markdown


@pytest.mark.parametrize("character", ["s", '"', "\x01", "é", "🚀"], ids=ascii)
def test_c17_a_huge_summary_is_cut_too_and_counted(character):
    """C17: no member of a result can make it larger than the ceiling, and the note counts what is missing of each."""
    found = read_result(entity(), summary=character * 1_000_000)
    for ceiling in CEILINGS:
        cut = checked(shown(found, ceiling), found, ceiling)
        kept = cut.summary.rpartition(" [Cut")[0]
        assert f"{size_of(kept)} of {size_of(found.summary)} bytes of summary" in cut.summary


def test_c17_a_huge_tool_name_is_cut_too():
    """C17: the ceiling holds whatever a tool writes into its result."""
    for result in (
        read_result(markdown="m" * 5000, tool_name="\x01" * 100_000),
        ToolError(tool_name="\x01" * 100_000, code="X", message="m"),
    ):
        text = shown(result, 2048)
        assert size_of(text) <= 2048
        assert loads(text)["toolName"]


def test_c17_one_huge_entity_is_left_out():
    """C17: an entity is shown whole or not at all."""
    found = read_result(entity("c-1", memo="x" * 1_000_000), entity("c-2"))
    assert checked(shown(found), found, CEILING).entities == ()


def test_c17_a_result_that_fits_is_whole():
    """C17: the ceiling is in bytes of UTF-8, inclusive; a result of exactly that size is not touched."""
    found = read_result(entity(), markdown="é🚀" * 1000)
    size = size_of(found.to_json_string())
    assert shown(found, size) == found.to_json_string()
    assert "[Cut to fit" in shown(found, size - 1)


def test_c17_text_of_an_envelope_is_cut_as_well():
    """C17: an envelope that a tool wrote as text is as large as one that it returned as an object."""
    found = read_result(entity(), markdown="m" * 200_000)
    checked(shown(found.to_json_string()), found, CEILING)
    spaced = json.dumps(read_result(entity(), markdown="m" * (CEILING - 1000)).to_json(), indent=500)
    assert size_of(spaced) > CEILING
    assert loads(shown(spaced)) == loads(spaced)


def test_c17_the_cut_is_told_to_operators():
    """C17, TL-1: one event with the tool and both sizes, and no part of the result."""
    events = Events()
    text = shown(read_result(markdown="s3cret" * 100_000), events=events)
    assert events.told == [
        (
            "affiant.result.cut",
            {
                "gen_ai.tool.name": "find_customer",
                "result.bytes": size_of(read_result(markdown="s3cret" * 100_000).to_json_string()),
                "result.kept": size_of(text),
            },
        )
    ]
    shown(read_result(), events=events)
    assert len(events.told) == 1


def test_c17_an_error_that_is_too_large_is_replaced():
    """C17: an error cannot be cut and keep its meaning; the model is told that it was too large, and how large."""
    text = shown(ToolError(tool_name="t", code="X", message="s3cret" * 100_000))
    error = loads(text)
    assert (error["kind"], error["code"], error["retryable"], error["toolName"]) == (
        "error", "RESULT_TOO_LARGE", False, "t",
    )  # fmt: skip
    assert str(CEILING) in error["message"]
    assert "s3cret" not in text


def test_c17_a_filed_proposal_that_is_too_large_is_said_to_be_filed():
    """C17, DECISIONS 10: with model_view="proposal" an oversized record is not mistaken for a failed filing."""
    host = Host(model_view="proposal")
    invocation = host.write("sync", proposal(envelope=limit_of("x" * 100_000)))
    assert isinstance(invocation.envelope(), WriteProposal)
    error = loads(model_text(invocation, ceiling=CEILING, telemetry=telemetry(Events())))
    assert error["code"] == "RESULT_TOO_LARGE"
    assert "is filed" in error["message"]
    assert len(host.rows()) == 1


# --- the framework's version ---------------------------------------------------------------------------------------


def installed(monkeypatch, version):
    def answer(distribution):
        assert distribution == "langchain-core"
        if version is None:
            raise metadata.PackageNotFoundError(distribution)
        return version

    monkeypatch.setattr(metadata, "version", answer)


def required(at_least=(1, 0), below=(2,)):
    require_version("langchain-core", at_least=at_least, below=below, bridge="the-bridge")


@pytest.mark.parametrize(
    ("version", "at_least"),
    [
        ("1.0", (1, 0)),
        ("1.0.0", (1, 0)),
        ("1.0", (1, 0, 0)),
        ("1", (1, 0)),
        ("1.8.3", (1, 0)),
        ("1.8.3.post1", (1, 8, 3)),
        ("1.8.3+cu118", (1, 8, 3)),
        ("1.8.3rc1", (1, 8, 2)),
        ("1.8.3.dev4", (1, 8, 2)),
        ("1.10.0b2", (1, 9)),
        ("1.99", (1, 0)),
        ("1.0.0.post1", (1, 0)),
    ],
)
def test_a_version_in_the_range_is_taken(monkeypatch, version, at_least):
    """CV-1, REFERENCE 8: the range that the bridge was tested with is compared as versions are, by their numbers."""
    installed(monkeypatch, version)
    required(at_least)


@pytest.mark.parametrize(
    ("version", "at_least"),
    [
        ("0.3.83", (1, 0)),
        ("0.9", (1, 0)),
        ("2.0", (1, 0)),
        ("2.0.0rc1", (1, 0)),
        ("2.0.0.dev1", (1, 0)),
        ("2", (1, 0)),
        ("10.1", (1, 0)),
        ("1.0.0rc1", (1, 0)),
        ("1.0a1", (1, 0)),
        ("1.0.0.dev3", (1, 0)),
        ("1.8.3rc1", (1, 8, 3)),
        ("1.8.2", (1, 8, 3)),
        ("unknown", (1, 0)),
        ("", (1, 0)),
    ],
)
def test_a_version_out_of_the_range_is_refused(monkeypatch, version, at_least):
    """CV-1: a pre-release of the least version is before it, one of the first version beyond is beyond."""
    installed(monkeypatch, version)
    with pytest.raises(WireupInvalid) as caught:
        required(at_least)
    assert f"the-bridge works with langchain-core >={'.'.join(map(str, at_least))},<2" in str(caught.value)
    assert f"{version} is installed" in str(caught.value)


def test_a_framework_that_is_not_installed_is_named(monkeypatch):
    """CV-1: the refusal says which distribution the bridge needs."""
    installed(monkeypatch, None)
    with pytest.raises(WireupInvalid, match="the-bridge needs langchain-core, which is not installed"):
        required()


def test_a_version_is_read_of_what_is_really_installed():
    """CV-1: the check reads the installed distribution's own metadata."""
    require_version("pydantic", at_least=(2, 12), below=(3,), bridge="x")
    with pytest.raises(WireupInvalid, match=metadata.version("pydantic")):
        require_version("pydantic", at_least=(99,), below=(100,), bridge="x")


def test_a_registry_of_functions_is_bound_like_one_of_methods():
    """REFERENCE 8: a function that is registered by itself is described as a method is."""

    def find(customer_id: str): ...

    (descriptor,) = ToolRegistry().walk(find)
    assert list(argument_model(descriptor).model_fields) == ["customer_id"]
