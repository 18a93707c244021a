"""The onion around a call: its order, its facts, and the last line that no raw proposal crosses."""

from __future__ import annotations

import asyncio
from collections import deque
from types import MappingProxyType, SimpleNamespace

import pytest
from support.gate import turn
from support.pipeline import (
    READ,
    Body,
    Host,
    both,
    carry,
    entity,
    invocation_for,
    model_json,
    proposal,
    read_result,
    run,
    with_kind_last,
)

import affiant_core.pipeline as pipeline_module
from affiant_core.envelope import ToolError, WriteProposal, recognise
from affiant_core.errors import SynchronousCallError
from affiant_core.filters.short_circuit import Interceptor
from affiant_core.hiding import count_proposals
from affiant_core.pipeline import Pipeline, ToolInvocation, read_plain

SECRET = 1234567
"""A sworn value that no model may see unless the gate has put the proposal on file."""


def layer(diary, name):
    async def through(invocation, call_next):
        diary.append(f"{name} in")
        await call_next()
        diary.append(f"{name} out")

    return through


# --- order and facts -----------------------------------------------------------------------------------------------


@both
def test_the_first_filter_is_the_outermost(mode):
    """REFERENCE 6.1: the runner composes an onion, first registered outermost."""
    diary = []
    run(mode, Pipeline([layer(diary, "a"), layer(diary, "b")]), lambda: diary.append("body"))
    assert diary == ["a in", "b in", "body", "b out", "a out"]


@both
def test_a_call_without_filters_is_its_body(mode):
    """REFERENCE 6.1: the terminal sets the result, and the same invocation comes back."""
    invocation = invocation_for(mode)
    assert carry(mode, Pipeline([]), invocation, "prose") is invocation
    assert invocation.result == "prose"


def test_an_invocation_starts_with_the_references_defaults():
    """REFERENCE 6.1: next_is_tool_body is true, tool_executed and terminate are false, plugin is empty when unknown."""
    invocation = ToolInvocation("find_customer", turn())
    assert invocation.next_is_tool_body is True
    assert invocation.tool_executed is False
    assert invocation.terminate is False
    assert (invocation.plugin, invocation.arguments, invocation.result) == ("", {}, None)
    assert invocation.qualified_name == "find_customer"
    assert ToolInvocation("find", turn(), "Crm").qualified_name == "Crm.find"


@both
def test_the_tool_is_executed_right_after_its_body_and_before_any_after_work(mode):
    """REFERENCE 6.1: the result is set, then tool_executed, before any filter works on after the tool."""
    seen = []

    async def watching(invocation, call_next):
        seen.append(("before", invocation.tool_executed, invocation.result))
        await call_next()
        seen.append(("after", invocation.tool_executed, invocation.result))

    invocation = invocation_for(mode)

    def body():
        seen.append(("body", invocation.tool_executed, invocation.result))
        return "prose"

    carry(mode, Pipeline([watching]), invocation, body)
    assert seen == [("before", False, None), ("body", False, None), ("after", True, "prose")]


@both
def test_a_body_that_raises_has_not_executed(mode):
    """REFERENCE 6.1: tool_executed becomes true on success only."""
    invocation = invocation_for(mode)
    with pytest.raises(OSError, match="gone"):
        carry(mode, Pipeline([]), invocation, Body(OSError("gone")))
    assert invocation.tool_executed is False
    assert invocation.result is None


@both
def test_a_filter_that_supplies_the_result_leaves_the_tool_alone(mode):
    """REFERENCE 6.3: a layer that does not call next supplies the result; the tool is not executed."""
    diary = []
    body = Body("never")

    async def supplying(invocation, call_next):
        invocation.result = "supplied"

    invocation = run(mode, Pipeline([layer(diary, "outside"), supplying, layer(diary, "inside")]), body)
    assert invocation.result == "supplied"
    assert body.calls == 0
    assert invocation.tool_executed is False
    assert diary == ["outside in", "outside out"]


@both
def test_a_filter_may_ask_to_end_the_turn(mode):
    """DECISIONS 11: the pipeline keeps a filter's terminate flag and never sets or clears it by itself."""

    async def ending(invocation, call_next):
        invocation.terminate = True
        await call_next()

    assert run(mode, Pipeline([ending]), "prose").terminate is True
    assert run(mode, Pipeline([]), "prose").terminate is False


@both
def test_a_filter_may_replace_the_result(mode):
    """REFERENCE 6.1: what a filter puts into the result after next is what comes out."""

    async def shouting(invocation, call_next):
        await call_next()
        invocation.result = invocation.result.upper()

    assert run(mode, Pipeline([shouting]), "prose").result == "PROSE"


@both
@pytest.mark.parametrize(
    "returned",
    ["prose", "", None, {"rows": [1]}, read_result(entity()), ToolError(code="X", message="m"), 7],
    ids=lambda value: type(value).__name__,
)
def test_what_a_read_returns_crosses_untouched(mode, returned):
    """Seed, "a plain markdown string included, crosses untouched": the very object comes out of the whole pipeline."""
    assert Host().read(mode, lambda: returned).result is returned


def test_async_and_sync_give_equal_outcomes():
    """DECISIONS 21: every kind of outcome is the same, awaited or carried through without a loop."""
    outcomes = {
        "read": read_result(entity()),
        "prose": "prose",
        "nothing": None,
        "proposal": proposal(),
        "proposal text": proposal().to_json_string(),
        "error": ToolError(code="CUSTOMER_NOT_FOUND", message="No such customer.", tool_name="t"),
        "raises": KeyError("x"),
    }
    for name, outcome in outcomes.items():
        told = {}
        for mode in ("async", "sync"):
            host = Host()
            invocation = host.write(mode, Body(outcome))
            text = model_json(invocation.result) if invocation.result is not None else None
            if isinstance(text, dict):
                text = {key: value for key, value in text.items() if key not in {"timestamp", "message"}}
            told[mode] = (text, invocation.terminate, invocation.tool_executed, len(host.rows()), host.events.keys)
        assert told["async"] == told["sync"], name


def test_a_filter_that_suspends_in_a_synchronous_call_is_told_so():
    """DECISIONS 21: without a loop nothing can be waited for by itself, and the error says what to do instead."""

    async def waiting(invocation, call_next):
        await asyncio.sleep(0)
        await call_next()

    with pytest.raises(SynchronousCallError, match=r"invocation\.driver\.call"):
        run("sync", Pipeline([waiting]), "prose")
    assert run("async", Pipeline([waiting]), "prose").result == "prose"


@both
def test_a_filter_reaches_asynchronous_code_through_the_driver(mode):
    """DECISIONS 21: invocation.driver.call waits for host code, written with async or without, in both modes."""

    async def looked_up(key):
        await asyncio.sleep(0)
        return key * 2

    async def asking(invocation, call_next):
        await call_next()
        invocation.result += await invocation.driver.call(looked_up, "x")

    assert run(mode, Pipeline([asking]), "a").result == "axx"


# --- reading a result ----------------------------------------------------------------------------------------------


def counted(monkeypatch):
    texts = []

    def counting(text):
        texts.append(text)
        return recognise(text)

    monkeypatch.setattr(pipeline_module, "recognise", counting)
    return texts


@both
def test_a_result_is_parsed_once_however_many_filters_ask(mode, monkeypatch):
    """Seed, "deserialize the same string the tool returned": every filter gets one and the same parsed envelope."""
    texts = counted(monkeypatch)
    found = []

    async def asking(invocation, call_next):
        await call_next()
        found.append(invocation.envelope())

    text = read_result(entity()).to_json_string()
    invocation = run(mode, Pipeline([asking] * 5), text)
    assert texts == [text]
    assert all(envelope is found[0] for envelope in found)
    assert found[0] == read_result(entity())
    assert invocation.result is text


@both
def test_the_whole_pipeline_parses_a_reads_text_once(mode, monkeypatch):
    """Seed, "a filter positioned after tool execution": tracing, review and the last line share one parse."""
    texts = counted(monkeypatch)
    Host().read(mode, read_result(entity()).to_json_string())
    assert len(texts) == 1


@both
def test_a_replaced_result_is_parsed_again(mode, monkeypatch):
    """CV-2: what was read of one result says nothing about the next."""
    texts = counted(monkeypatch)
    seen = []

    async def replacing(invocation, call_next):
        await call_next()
        seen.append(type(invocation.envelope()).__name__)
        invocation.result = ToolError(tool_name="t", code="X", message="m").to_json_string()
        seen.append(type(invocation.envelope()).__name__)

    run(mode, Pipeline([replacing]), read_result().to_json_string())
    assert seen == ["ReadResult", "ToolError"]
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("prose", "prose"),
        ("", ""),
        (None, ""),
        (7, None),
        ([{"kind": "write"}], None),
        ({"rows": 1}, None),
        ({"kind": "sedan", "doors": 5}, '{"kind":"sedan","doors":5}'),
        ({"kind": "sedan", "photo": b"raw"}, None),
    ],
)
def test_what_a_result_says(result, text):
    """DECISIONS 5: an envelope, its text, or a dictionary that a framework would write as one."""
    assert read_plain(result) == text


@both
def test_the_text_of_an_envelope_without_a_name_is_an_envelope(mode):
    """Seed, "a tool method's body ends with ToJsonString()": a name left out makes no prose of it."""
    unnamed = read_result(entity(), tool_name="")
    invocation = run(mode, Pipeline([]), unnamed.to_json_string())
    assert invocation.envelope() == unnamed


@both
def test_an_envelope_as_a_dictionary_is_an_envelope(mode):
    """DECISIONS 5: a dictionary with a kind is read as the JSON that a framework would make of it."""
    invocation = run(mode, Pipeline([]), read_result(entity()).to_json())
    assert invocation.envelope() == read_result(entity())


@both
@pytest.mark.parametrize("kind", ["read", "write", "error"])
def test_an_envelope_as_a_dictionary_with_an_unspeakable_value_is_an_error_naming_the_place(mode, kind):
    """DECISIONS 20, C16: what has no honest spelling is an error naming the place, never a Python repr."""
    host = Host()
    invocation = host.read(mode, lambda: {"kind": kind, "toolName": "t", "fields": {"photo": b"s3cret"}})
    error = invocation.envelope()
    assert isinstance(error, ToolError)
    assert error.code == "VALIDATION_FAILED"
    assert "result.fields.photo" in error.message
    assert "s3cret" not in error.message
    assert host.rows() == ()


@both
def test_another_dictionary_with_an_unspeakable_value_crosses_untouched(mode):
    """Seed, "Every other return crosses untouched": a kind of the host's own is no envelope's."""
    car = {"kind": "sedan", "photo": b"raw"}
    assert Host().read(mode, lambda: car).result is car


# --- a raw proposal never comes out --------------------------------------------------------------------------------

SPELLINGS = {
    "object": lambda: proposal(SECRET),
    "text": lambda: proposal(SECRET).to_json_string(),
    "text with kind last": lambda: with_kind_last(proposal(SECRET)),
    "text in white space": lambda: f"\n  {proposal(SECRET).to_json_string()} ",
    "text that names no tool": lambda: proposal(SECRET, tool_name="").to_json_string(),
    "dictionary": lambda: proposal(SECRET).to_json(),
    "dictionary that names no tool": lambda: proposal(SECRET, tool_name="").to_json(),
    "dictionary with an Affidavit": lambda: {**proposal(SECRET).to_json(), "envelope": proposal(SECRET).envelope},
}
spelt = pytest.mark.parametrize("raw", SPELLINGS.values(), ids=SPELLINGS)


def assert_nothing_raw(invocation):
    assert not isinstance(invocation.envelope(), WriteProposal)
    assert str(SECRET) not in str(model_json(invocation.result))


@both
@spelt
def test_a_proposal_is_filed_in_every_spelling(mode, raw):
    """Seed, "carried to the review gate whether or not the registry declares that tool": in each spelling."""
    for descriptor in (READ, None):
        host = Host()
        invocation = host.read(mode, raw, descriptor=descriptor)
        assert_nothing_raw(invocation)
        assert model_json(invocation.result)["outcome"] == "filed"
        assert len(host.rows()) == 1


@both
@spelt
def test_a_host_filter_outside_the_review_cannot_put_a_proposal_back(mode, raw, caplog):
    """CV-2, "Never the raw proposal": what a filter restores after the gate is held back and logged."""

    async def restoring(invocation, call_next):
        await call_next()
        invocation.result = raw()

    host = Host(filters=[restoring])
    invocation = host.write(mode, proposal())
    assert_nothing_raw(invocation)
    error = invocation.envelope()
    assert (error.code, error.retryable, error.tool_name) == ("wireup-invalid", False, "set_limit")
    assert "without passing the gate" in caplog.text


@both
def test_a_host_filter_cannot_supply_a_proposal_past_the_gate(mode):
    """CV-2: a filter outside the review that answers with a proposal files nothing and shows none."""

    async def supplying(invocation, call_next):
        invocation.result = proposal(SECRET)

    host = Host(filters=[supplying])
    invocation = host.write(mode, "never")
    assert_nothing_raw(invocation)
    assert host.rows() == ()


@both
def test_a_host_filter_cannot_turn_a_cleared_result_into_a_proposal_in_place(mode):
    """CV-2: a result that is changed in place after the gate has seen it is read again at the end."""

    async def forging(invocation, call_next):
        await call_next()
        invocation.result.update(proposal(SECRET).to_json())

    host = Host(filters=[forging])
    assert_nothing_raw(host.read(mode, lambda: {"kind": "sedan"}))


@both
def test_a_cleared_proposal_covers_no_other(mode):
    """DECISIONS 10: with model_view="proposal" only the very object that the gate filed may come out."""

    async def swapping(invocation, call_next):
        await call_next()
        assert isinstance(invocation.result, WriteProposal)
        invocation.result = proposal(SECRET)

    assert_nothing_raw(Host(filters=[swapping], model_view="proposal").write(mode, proposal()))


@both
@spelt
def test_a_layer_inside_the_review_that_raises_after_the_body_hides_no_proposal(mode, raw):
    """REFERENCE 7, CV-2: a proposal is reviewed also when something between the tool and the review fails."""

    async def failing(invocation, call_next):
        await call_next()
        raise RuntimeError("merge failed at 10.0.0.5")

    host = Host()
    inside = Pipeline([*host.pipeline.filters, failing])
    invocation = run(mode, inside, raw, tool_name="set_limit")
    assert_nothing_raw(invocation)
    assert model_json(invocation.result)["outcome"] == "filed"
    assert len(host.rows()) == 1
    assert host.events.of("affiant.extractor.failed") == [
        {"extractor.type": "inside-review", "tool.name": "set_limit", "exception.type": "RuntimeError"}
    ]


@both
@spelt
def test_a_short_circuit_cannot_supply_a_raw_proposal(mode, raw):
    """REFERENCE 6.3, CV-2: a proposal that an interceptor supplies goes to the gate like any other."""
    host = Host(interceptors=[Interceptor(lambda *_: True, lambda *_: raw())])
    invocation = host.write(mode, "never")
    assert_nothing_raw(invocation)
    assert len(host.rows()) == 1


@both
def test_a_layer_outside_the_error_filter_that_raises_shows_no_proposal(mode):
    """CV-2: when a host's own filter fails after the gate, its exception propagates and the proposal is on file."""

    async def failing(invocation, call_next):
        await call_next()
        raise LookupError("host filter")

    host = Host(filters=[failing])
    invocation = invocation_for(mode, tool_name="set_limit")
    with pytest.raises(LookupError):
        carry(mode, host.pipeline, invocation, proposal(SECRET))
    assert_nothing_raw(invocation)
    assert len(host.rows()) == 1


@both
def test_a_pipeline_without_a_gate_lets_no_proposal_out(mode):
    """CV-2: the last line stands in every pipeline, whatever its filters are."""
    assert_nothing_raw(run(mode, Pipeline([]), proposal(SECRET)))


class Odd:
    """An object that says of itself what it holds."""

    def __init__(self, held):
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


@both
@pytest.mark.parametrize(
    "hide",
    [
        lambda p: [p, "and more"],
        lambda p: {"x": p},
        lambda p: {p.to_json_string(): 1},
        lambda p: MappingProxyType({"x": p}),
        lambda p: deque([p]),
        lambda p: {"x": p}.values(),
        lambda p: SimpleNamespace(p=p),
        ValueError,
        Odd,
        Slotted,
        lambda p: p.to_json_string().encode(),
        lambda p: p.envelope,
        lambda p: [{"type": "text", "text": p.to_json_string()}, {"type": "text", "text": "x"}],
    ],
)
@pytest.mark.parametrize("way", ["interceptor", "filter"])
def test_a_proposal_that_hides_in_something_never_comes_out(mode, hide, way):
    """CV-2: whoever puts it there, a proposal in a container, an attribute or a part reaches no model."""
    hidden = hide(proposal(tool_name="find_customer"))

    async def put(invocation, call_next):
        await call_next()
        invocation.result = hidden

    supply = Interceptor(lambda *_: True, lambda *_: hidden)
    host = Host(interceptors=[supply]) if way == "interceptor" else Host(filters=[put])
    told = host.read(mode, lambda: "fine").result
    assert isinstance(told, ToolError)
    assert told.code == "wireup-invalid"
    assert host.rows() == ()


def test_what_holds_no_proposal_is_left_alone():
    """Seed, "Every other return crosses untouched": the search changes nothing and takes data for data."""
    loop = []
    loop.append(loop)
    for result in ({"kind": "write"}, loop, [1] * 100_000, range(10**9), object(), {"a": {1: {2: "{"}}}, read_result()):
        assert count_proposals(result) == 0
    two = [proposal(), proposal().to_json_string()]
    assert (count_proposals(two[0]), count_proposals(two)) == (1, 2)


@pytest.mark.parametrize("filler", [0, "text", {"at": 1}], ids=["numbers", "texts", "dictionaries"])
def test_a_proposal_among_very_many_parts_is_found_or_the_result_is_refused(filler):
    """CV-2: a result that is too large to look through counts as hiding proposals; nothing of it is vouched for."""
    many = [filler if not isinstance(filler, dict) else dict(filler) for _ in range(30_000)]
    assert count_proposals([proposal(), *many]) == count_proposals([*many, proposal()]) == 1
    assert count_proposals([0] * 300_000) == 2
    assert count_proposals({"rows": [0] * 300_000}) == 2


def test_a_result_that_cannot_be_looked_through_is_refused(caplog):
    """C02 and CV-2: a part that raises while it is looked at hides what it may; its exception is the host's to read."""

    class Lazy(list):
        def __iter__(self):
            raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    assert count_proposals({"rows": Lazy([1])}) == 2
    assert "postgres" in caplog.text
