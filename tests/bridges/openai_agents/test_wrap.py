"""wrap(): function tools that a host already has, wired by copy."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
from typing import Any

import pytest
from agents import (
    FunctionTool,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    ToolOutputText,
    ToolTimeoutError,
    function_tool,
    tool_input_guardrail,
    tool_namespace,
    tool_output_guardrail,
)
from pydantic import BaseModel
from support.openai_agents import (
    PROPOSAL,
    SECRET,
    Host,
    acall,
    asks,
    call,
    document_of,
    found,
    heard_by,
    outputs_in,
    proposed,
    run,
)

from affiant_core import ToolError


def native(body, name="set_limit", **options):
    """A function tool whose body returns what it is told."""

    async def tool(customer_id: str = "c-1") -> Any:
        return body() if callable(body) else body

    return function_tool(tool, name_override=name, description_override="Do it.", **options)


def by_hand(body, schema=None, name="set_limit", heard=None, **options):
    """A function tool without a decorator: it gets the text, and the SDK validates nothing."""

    async def invoke(ctx, text):
        if heard is not None:
            heard.append(text)
        return body() if callable(body) else body

    schema = {"type": "object", "properties": {"customer_id": {"type": "string"}}} if schema is None else schema
    return FunctionTool(name, "Do it.", schema, invoke, strict_json_schema=False, **options)


# --- results -------------------------------------------------------------------------------------------------------

PROPOSALS = {
    "text": PROPOSAL,
    "object": proposed,
    "dictionary": lambda: proposed().to_json(),
    "text part": lambda: ToolOutputText(text=PROPOSAL),
    "text dictionary": lambda: {"type": "text", "text": PROPOSAL},
}


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("made", [native, by_hand])
@pytest.mark.parametrize("body", PROPOSALS.values(), ids=PROPOSALS)
def test_a_proposal_in_any_shape_is_filed(body, made, writes):
    """DECISIONS 5 and Rule 2: an envelope object, its JSON, one text part; from a declared read as well."""
    host = Host()
    told = document_of(call(host.wrap_one(made(body), writes=writes)))
    assert told["outcome"] == "filed"
    assert len(host.rows()) == 1


class Holder(BaseModel):
    inner: Any = None


HIDDEN = {
    "a list of parts": lambda: [ToolOutputText(text="look:"), ToolOutputText(text=PROPOSAL)],
    "a list of one": lambda: [proposed()],
    "a list of texts": lambda: ["a", PROPOSAL],
    "a dictionary": lambda: {"result": proposed().to_json()},
    "an attribute": lambda: Holder(inner=proposed()),
    "a tuple": lambda: (1, {"x": [PROPOSAL]}),
}


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_proposal_reaches_nobody(body, writes):
    """Trap of seam 10.3, "a proposal hiding in a second list item": refused, nothing filed, nothing shown."""
    host = Host()
    result = call(host.wrap_one(native(body), writes=writes))
    assert document_of(result)["code"] == "wireup-invalid"
    assert SECRET not in repr(result)
    assert host.rows() == ()


NOTHING = {"None": None, "empty": "", "prose": "done", "number": 7, "list": [1], "read": found}


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
def test_a_declared_write_that_proposes_nothing_is_refused(body):
    """DECISIONS 6: nothing, prose, or a read's envelope from a declared write is refused "wireup-invalid"."""
    host = Host()
    assert document_of(call(host.wrap_one(native(body), writes=True)))["code"] == "wireup-invalid"
    assert host.rows() == ()


def test_an_error_of_a_declared_write_passes():
    """DECISIONS 7: a ToolError that a declared write returns reaches the model with the domain's own code."""
    error = ToolError(code="LIMIT_LOCKED", message="The limit is locked.")
    told = document_of(call(Host().wrap_one(native(lambda: error), writes=True)))
    assert (told["code"], told["toolName"]) == ("LIMIT_LOCKED", "set_limit")


IMAGE = ToolOutputImage(image_url="https://example.org/a.png")
CROSSING = {"image": IMAGE, "parts": [ToolOutputText(text="a"), IMAGE], "number": 7, "a part": ToolOutputText(text="a")}


@pytest.mark.parametrize("body", CROSSING.values(), ids=CROSSING)
def test_what_a_read_returns_crosses_untouched(body):
    """DECISIONS 5, "anything else crosses untouched": the SDK gets the very object that a read returned."""
    assert call(Host().wrap_one(native(lambda: body))) is body


@pytest.mark.parametrize("body", [found, lambda: found().to_json()], ids=["object", "dictionary"])
def test_an_envelope_becomes_json_and_never_a_repr(body):
    """Seam 7, "Everything else is str()": an envelope object or dictionary is its JSON text before the SDK gets it."""
    assert call(Host().wrap_one(native(body))) == found().to_json_string()


def test_nothing_from_a_read_is_empty_text():
    """Seam 7, 'None becomes "None"': here it is empty, and no Python repr."""
    assert call(Host().wrap_one(native(None))) == ""


def test_a_huge_part_is_cut():
    """C17 for the SDK's text parts: an envelope in one is held under the ceiling as well."""
    host = Host(result_ceiling=4096)
    big = found().model_copy(update={"markdown": "x" * 100_000}).to_json_string()
    told = call(host.wrap_one(native(lambda: ToolOutputText(text=big))))
    assert len(told) <= 4096
    assert "Cut to fit" in document_of(told)["summary"]


# --- arguments -----------------------------------------------------------------------------------------------------


def test_an_unknown_name_is_no_other_identity():
    """Seam 10.2, "otherwise zz mints a new id for the same effect": a name outside the parameters is refused."""
    for options in ({}, {"strict_mode": False}):
        host = Host()
        tool = host.wrap_one(native(PROPOSAL, **options), writes=True)
        told = document_of(call(tool, {"customer_id": "c-1", "zz": 9}))
        assert (told["code"], host.rows()) == ("VALIDATION_FAILED", ())
        assert "zz" in told["message"]


@pytest.mark.parametrize("sent", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(sent):
    """Measured, '"" parsed as {}' and blank text refused: here both are an empty object, as for bound tools."""
    assert call(Host().wrap_one(native("text", "look")), sent) == "text"


def test_a_tool_that_takes_any_name_gets_any_name():
    """A tool made by hand with an open schema may read every key, so every key belongs to the call's identity."""
    seen = []
    host = Host()
    tool = host.wrap_one(by_hand(PROPOSAL, heard=seen), writes=True)
    first = document_of(call(tool, {"customer_id": "c-1", "zz": 9}))
    second = document_of(call(tool, {"customer_id": "c-1", "zz": 10}))
    assert first["entryId"] != second["entryId"]
    assert seen == ['{"customer_id":"c-1","zz":9}', '{"customer_id":"c-1","zz":10}']
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    refused = call(Host().wrap_one(by_hand(PROPOSAL, closed), writes=True), {"zz": 1})
    assert document_of(refused)["code"] == "VALIDATION_FAILED"


def test_identity_is_of_what_the_model_sent():
    """DECISIONS 9, "parsed strictly, before coercion": "7" and 7 run alike and are two proposals."""
    ran = []

    @function_tool
    def set_limit(limit: int) -> str:
        """Propose."""
        ran.append(limit)
        return proposed(limit=limit).to_json_string()

    host = Host()
    tool = host.wrap_one(set_limit, writes=True)
    ids = {document_of(call(tool, {"limit": value}))["entryId"] for value in (7, "7")}
    assert (ran, len(ids)) == ([7, 7], 2)


@pytest.mark.parametrize("sent", [{"limit": "lots"}, {}, {"limit": None}])
def test_arguments_that_the_sdk_refuses_are_a_validation_failure(sent, caplog):
    """DECISIONS 8: what @function_tool refuses before its body is VALIDATION_FAILED, and not an unknown failure."""

    @function_tool
    def look(limit: int) -> str:
        """Look."""
        raise AssertionError

    told = document_of(call(Host().wrap_one(look), sent))
    assert (told["code"], told["retryable"]) == ("VALIDATION_FAILED", False)
    assert "lots" not in told["message"]


def test_a_host_that_logs_tool_data_has_the_names_told(monkeypatch):
    """DECISIONS 8: with OPENAI_AGENTS_DONT_LOG_TOOL_DATA off the SDK keeps the cause, and the parameters are named."""
    from agents import _debug

    monkeypatch.setattr(_debug, "DONT_LOG_TOOL_DATA", False)

    @function_tool
    def look(limit: int) -> str:
        """Look."""
        return "text"

    told = document_of(call(Host().wrap_one(look), {"limit": "hunter2"}))
    assert told["message"].endswith("Check: limit.")


def test_another_error_of_the_model_behaviour_is_no_argument_fault():
    """A body that raises ModelBehaviorError of its own has failed, and its arguments have not."""
    from agents import ModelBehaviorError

    def body():
        raise ModelBehaviorError("the inner model said hunter2")

    told = document_of(call(Host().wrap_one(native(body))))
    assert told["code"] == "UNKNOWN"
    assert "hunter2" not in told["message"]


# --- what a copy keeps ---------------------------------------------------------------------------------------------


@tool_input_guardrail
def let_in(data):
    return ToolGuardrailFunctionOutput.allow()


SEEN = []


@tool_output_guardrail
def let_out(data):
    SEEN.append(data.output)
    return ToolGuardrailFunctionOutput.allow()


def test_a_copy_keeps_everything_else():
    """Seam 1: guardrails, enabling, extractors, namespaces and unknown attributes stay; the original is untouched."""
    original = native("text", "look", is_enabled=lambda *_: True, tool_input_guardrails=[let_in], defer_loading=True)
    original.mine = object()
    before = dict(vars(original))
    (spaced,) = tool_namespace(name="crm", description="The CRM.", tools=[original])
    wired = Host().wrap_one(spaced)
    assert wired.mine is original.mine
    assert wired.qualified_name == "crm.look"
    for name in ("is_enabled", "tool_input_guardrails", "defer_loading", "params_json_schema", "description"):
        assert getattr(wired, name) == getattr(original, name), name
    assert vars(original) == before
    assert call(original) == "text"


def test_output_guardrails_and_extractors_see_the_replacement():
    """Seam 1, the order of one call: what stands outside the pipeline sees what the gate made of a proposal."""
    SEEN.clear()
    extracted = []
    options = {"tool_output_guardrails": [let_out]}
    original = native(PROPOSAL, **options)
    original.custom_data_extractor = lambda context: extracted.append(context.output) or {"mine": 1}
    host = Host()
    result = run(host.agent(asks(("set_limit", {})), tools=host.wrap(original, writes=True)))
    assert [document_of(each)["outcome"] for each in (*SEEN, *extracted)] == ["filed", "filed"]
    assert outputs_in(result) == SEEN


class Counter(FunctionTool):
    """A subclass with a constructor and a bound invoker of its own."""

    def __init__(self, answer):
        self.answer = answer
        super().__init__("look", "Look.", {"type": "object", "properties": {}}, self._invoke, strict_json_schema=False)

    async def _invoke(self, ctx, text):
        return self.answer


def test_a_subclass_with_a_constructor_of_its_own_is_wired():
    """Seam 1, "dataclasses.replace breaks subclasses with their own __init__": wiring copies and does not construct."""
    host = Host()
    wired = host.wrap_one(Counter(PROPOSAL), writes=True)
    assert type(wired) is Counter
    assert document_of(call(wired))["outcome"] == "filed"


@pytest.mark.parametrize("copied", [copy.copy, dataclasses.replace])
def test_copies_of_a_wrapped_tool_are_wired(copied):
    """Seam 1: copy and replace of a wired tool stay wired."""
    host = Host()
    assert document_of(call(copied(host.wrap_one(native(PROPOSAL), writes=True))))["outcome"] == "filed"


def test_a_disabled_tool_is_not_offered():
    """is_enabled is the SDK's affair and stays so."""
    host = Host()
    agent = host.agent(tools=host.wrap(native("text", "look", is_enabled=False)))
    run(agent)
    assert not agent.model.last_call.tools


# --- time limits ---------------------------------------------------------------------------------------------------


def waiting(calls, seconds=5.0):
    async def look() -> str:
        calls.append(1)
        await asyncio.sleep(seconds)
        return "late"

    return look


def test_a_time_limit_is_a_retryable_failure_of_the_tool():
    """Trap 6, "Move it inside": the model gets an envelope; each of the two attempts has the whole limit."""
    calls = []
    wired = Host().wrap_one(function_tool(waiting(calls), timeout=0.05))
    told = document_of(call(wired))
    assert (told["code"], told["retryable"], len(calls)) == ("DB_TIMEOUT", False, 2)
    assert wired.timeout_seconds is None


def test_a_host_that_wants_to_hear_of_a_time_limit_does():
    """timeout_behavior="raise_exception": the run fails with the SDK's own exception, at once, without a retry."""
    calls = []
    host = Host()
    tools = host.wrap(function_tool(waiting(calls), timeout=0.05, timeout_behavior="raise_exception"))
    with pytest.raises(ToolTimeoutError) as raised:
        run(host.agent(asks(("look", {})), tools=tools))
    assert (raised.value.timeout_seconds, len(calls)) == (0.05, 1)


def test_a_timeout_of_the_body_is_no_time_limit():
    """A TimeoutError that the body raises itself is mapped and retried, also where the limit is to be raised."""
    calls = []

    async def look() -> str:
        calls.append(1)
        raise TimeoutError("db-internal-7")

    tool = function_tool(look, timeout=5, timeout_behavior="raise_exception")
    told = document_of(call(Host().wrap_one(tool)))
    assert (told["code"], len(calls)) == ("DB_TIMEOUT", 2)


def test_a_slow_filing_is_not_cut_by_the_time_limit_of_the_body():
    """Trap 6: the limit is the body's. A store that is slower than it still files a whole row."""
    import time

    from affiant_core import InMemoryDocketStore

    class Slow(InMemoryDocketStore):
        def file(self, entry):
            time.sleep(0.3)
            return super().file(entry)

    host = Host(docket=Slow())
    tool = native(PROPOSAL, timeout=0.1)
    assert document_of(call(host.wrap_one(tool, writes=True)))["outcome"] == "filed"


def test_a_synchronous_body_has_no_time_limit():
    """Seam 1, trap 6: the SDK refuses it with a ValueError when the tool is made, before it can be wrapped."""

    def look() -> str:
        return "text"

    with pytest.raises(ValueError, match="only supported for async"):
        function_tool(look, timeout=1)


def test_a_formatter_of_failures_is_not_asked(caplog):
    """Trap 1: failure_error_function and timeout_error_function speak inside the body, where nothing would be gated."""
    caplog.set_level(logging.ERROR)
    asked = []

    def formatter(ctx, error):
        asked.append(error)
        return f"hunter2 {error}"

    def body():
        raise RuntimeError("db-internal-7")

    told = document_of(call(Host().wrap_one(native(body, failure_error_function=formatter))))
    assert (asked, told["code"]) == ([], "UNKNOWN")
    limited = function_tool(waiting([]), timeout=0.05, timeout_error_function=formatter)
    assert document_of(call(Host().wrap_one(limited)))["code"] == "DB_TIMEOUT"
    assert asked == []


# --- approvals of the SDK ------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_read_may_ask_for_the_sdks_approval(decision):
    """Seam 5: needs_approval=True on a read stops the run, and a resumed run goes through the seam."""
    from agents import Runner, RunState
    from support.gate import turn
    from support.openai_agents import QUIET, model

    ran = []
    host = Host()
    tools = host.wrap(native(lambda: ran.append(1) or "text", "look", needs_approval=True))
    agent = host.agent(asks(("look", {})), tools=tools)
    stopped = await Runner.run(agent, "go", context=turn(), run_config=QUIET)
    assert len(stopped.interruptions) == 1
    assert ran == []
    saved = stopped.to_state().to_string(context_serializer=lambda _: {})
    agent.model = model()
    state = await RunState.from_string(agent, saved, context_override=turn())
    (item,) = state.get_interruptions()
    state.approve(item) if decision == "approve" else state.reject(item)
    done = await Runner.run(agent, state, run_config=QUIET)
    assert done.final_output == "done"
    assert len(ran) == (decision == "approve")
    assert len(heard_by(agent)) == 1


@pytest.mark.anyio
async def test_bodies_run_in_the_wired_tools_own_bare_copy():
    """Wrapping twice in two hosts gives two wirings, each with its own gate."""
    original = native(PROPOSAL)
    first, second = Host(), Host()
    await acall(first.wrap_one(original, writes=True))
    assert (len(first.rows()), len(second.rows())) == (1, 0)
    await acall(second.wrap_one(original, writes=True))
    assert (len(first.rows()), len(second.rows())) == (1, 1)
