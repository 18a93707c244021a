"""The two stages: what each is given, what lies between them, and that the second runs once."""

from __future__ import annotations

import asyncio
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from semantic_kernel.exceptions import KernelInvokeException, OperationCancelledException
from semantic_kernel.filters import FilterTypes
from semantic_kernel.functions import FunctionResult, KernelArguments
from support.gate import turn
from support.semantic_kernel import (
    LOOPS,
    PROPOSAL,
    SECRET,
    WAYS,
    Host,
    LimitDesk,
    OwnArguments,
    asks,
    chat,
    document_of,
    found,
    go,
    host_arguments,
    proposed,
    results_in,
    texts_in,
)

from affiant_core import Interceptor, ReadResult, TurnContext, WireupInvalid, WriteProposal
from affiant_core.filters.review import DefaultReviewContextProvider
from affiant_sk_bridge import TURN_ARGUMENT, TurnArgument, install, invoke

SET = "LimitDesk-set_limit"
LIMIT = {"customer_id": "c-1", "limit": 10}
STREAMED = pytest.mark.parametrize("streamed", [False, True])


def turn_of_chat(kernel, *calls, **options):
    """The texts of one turn in which the model asks for these calls."""
    kernel.get_service("scripted").script[:] = [asks(*calls)]
    return texts_in(asyncio.run(chat(kernel, **options)))


def answering(value):
    """A native function that answers with ``value``."""

    def answer():
        """Answer."""
        return value

    return answer


class Watched(DefaultReviewContextProvider):
    """Counts how often the gate is about to be asked, and with what arguments."""

    def __init__(self):
        self.arguments = []

    def review_context(self, proposal, turn):
        self.arguments.append(proposal.arguments)
        return super().review_context(proposal, turn)


class WatchedFilter:
    """A host's own layer of the pipeline: it remembers the arguments of the invocation stage."""

    def __init__(self):
        self.seen = []

    async def __call__(self, invocation, call_next):
        self.seen.append((dict(invocation.arguments), invocation.next_is_tool_body))
        await call_next()


# --- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_gate_gets_no_arguments_and_the_invocation_stage_the_models(way):
    """DECISIONS 9: an empty map at completion on every path, the model's own arguments at invocation, once each."""
    provider, layer = Watched(), WatchedFilter()
    host = Host(LimitDesk(), context_provider=provider, filters=[layer])
    go(way, host.kernel(), SET, LIMIT)
    ((sent, is_body),) = layer.seen
    assert ({each: str(value) for each, value in sent.items()}, is_body) == (
        {"customer_id": "c-1", "limit": "10"},
        True,
    )
    assert provider.arguments == [None]


@pytest.mark.parametrize("way", WAYS)
def test_arguments_are_carried_when_the_host_opts_in(way):
    """DECISIONS 9: with carry_arguments=True the gate gets what the model sent, and none of the host's arguments."""
    provider = Watched()
    host = Host(LimitDesk(), context_provider=provider)
    # Outside a loop every argument under a parameter's name is the caller's own.
    more = {"force": "the host's"} if way in LOOPS else {}
    go(way, host.kernel(carry_arguments=True), SET, LIMIT, host_arguments(tenant="acme", **more))
    (carried,) = provider.arguments
    assert {each: str(value) for each, value in carried.items()} == {"customer_id": "c-1", "limit": "10"}


@pytest.mark.parametrize("carried", [False, True])
def test_another_value_is_another_row_only_with_arguments(carried, caplog):
    """C04: by default the second value replays the first row and says so loudly; with the opt-in there are two rows."""
    host = Host(LimitDesk())
    kernel = host.kernel(carry_arguments=carried)
    first = document_of(turn_of_chat(kernel, (SET, LIMIT))["call-1"])
    second = document_of(turn_of_chat(kernel, (SET, {**LIMIT, "limit": 11}))["call-1"])
    assert len(host.rows()) == 1 + carried
    assert (first["entryId"] != second["entryId"]) is carried
    assert ("affiant.review.replay_differs" in host.events.keys or "differ" in caplog.text) is not carried
    assert ("not filed" in second["note"]) is not carried


def test_a_proposals_own_arguments_survive():
    """DECISIONS 9, "a proposal's own arguments always survive": two values, two rows, by default."""
    host = Host(OwnArguments())
    kernel = host.kernel()
    for limit in (10, 11):
        turn_of_chat(kernel, ("OwnArguments-set_limit", {**LIMIT, "limit": limit}))
    assert len(host.rows()) == 2


def test_host_arguments_do_not_fill_a_bound_functions_parameters():
    """Seam 2, "a shallow copy of host arguments overlaid by the model's": what the host has is not the model's."""
    desk = LimitDesk()
    kernel = Host(desk).kernel()
    turn_of_chat(kernel, (SET, LIMIT), arguments=host_arguments(force=True, memo="the host's"))
    assert desk.calls[0][1]["force"] is False


def test_a_filter_may_change_what_the_model_sent():
    """An auto filter of the host that edits the arguments is obeyed: the edited call is what runs and what counts."""
    desk, provider = LimitDesk(), Watched()
    kernel = Host(desk, context_provider=provider).kernel(carry_arguments=True)

    async def capped(context, next):
        context.arguments["limit"] = min(context.arguments["limit"], 5)
        context.arguments["force"] = True
        await next(context)

    kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, capped)
    turn_of_chat(kernel, (SET, LIMIT))
    assert (desk.calls[0][1]["limit"], desk.calls[0][1]["force"]) == (5, True)
    assert provider.arguments == [{"customer_id": "c-1", "limit": 5, "force": True}]


@pytest.mark.parametrize(
    ("sent", "places"),
    [
        ('{"customer_id": "c-1", "customer_id": "c-2", "limit": 10}', ""),
        ('{"customer_id": "c-1", "limit": NaN}', ""),
        ("{'customer_id': 'c-1', 'limit': 10}", ""),
        ('{"customer_id": "c-1", "limit": "many"}', " Check: limit."),
        ('{"customer_id": "c-1", "limit": 10, "effective": "soon"}', " Check: effective."),
        ('{"customer_id": null, "limit": 10}', " Check: customer_id."),
    ],
)
@STREAMED
def test_arguments_that_do_not_fit_run_nothing(sent, places, streamed):
    """DECISIONS 8, C01: VALIDATION_FAILED with the parameters' names and no value, one answer, no body, no row."""
    desk = LimitDesk()
    host = Host(desk)
    text = turn_of_chat(host.kernel(), (SET, sent), streamed=streamed)["call-1"]
    error = document_of(text)
    assert (error["code"], error["toolName"]) == ("VALIDATION_FAILED", "set_limit")
    assert error["message"] == f"The arguments do not fit the tool's parameters.{places}"
    assert (desk.calls, host.rows()) == ([], ())


def test_values_are_read_as_they_were_sent():
    """Seam 2: Semantic Kernel reads "false" as True and refuses dates; a bound function gets what pydantic reads."""
    desk = LimitDesk()
    kernel = Host(desk).kernel()
    turn_of_chat(kernel, (SET, {**LIMIT, "force": "false", "effective": "2026-01-01T00:00:00Z"}))
    seen = desk.calls[0][1]
    assert (seen["force"], seen["effective"].year) == (False, 2026)


# --- what lies between ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", LOOPS)
def test_filters_and_spans_never_see_a_proposal(way, monkeypatch):
    """C20, seam 4: SK's span of the result, auto filters, function filters and the log see a refusal in its place."""
    from semantic_kernel.functions import kernel_function as _  # noqa: F401  # the tracer of this module is replaced
    from semantic_kernel.utils.telemetry.model_diagnostics import function_tracer

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    module = __import__("semantic_kernel.functions.kernel_function", fromlist=["tracer"])
    monkeypatch.setattr(module, "tracer", provider.get_tracer("test"))
    monkeypatch.setattr(function_tracer.MODEL_DIAGNOSTICS_SETTINGS, "enable_otel_diagnostics_sensitive", True)
    seen = []

    async def auto(context, next):
        await next(context)
        seen.append(str(context.function_result.value) + repr(context.function_result.metadata))

    async def function(context, next):
        await next(context)
        seen.append(str(context.result.value) + repr(context.result.metadata))

    for desk, native in ((LimitDesk(), None), ((), {"set_limit": answering(proposed())})):
        host = Host(desk)
        kernel = host.kernel(native=native, writes=("set_limit",))
        kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, auto)
        kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, function)
        name, arguments = ("P-set_limit", {}) if native else (SET, LIMIT)
        assert document_of(go(way, kernel, name, arguments))["entryId"] == host.row().entry_id
    spans = [value for span in exporter.get_finished_spans() for value in map(str, (span.attributes or {}).values())]
    assert len(seen) == 4
    assert any("did not pass the review gate" in each for each in spans)
    assert all("did not pass the review gate" in each for each in seen)
    assert SECRET not in "".join([*seen, *spans])
    assert "filer" not in "".join(seen)


def test_history_and_results_hold_no_host_arguments():
    """Seam 3: SK copies a result's metadata, host arguments and all, into the history; the bridge's has none."""
    host = Host(LimitDesk())
    kernel = host.kernel(native={"look": lambda: "plain"})
    kernel.get_service("scripted").script[:] = [asks((SET, LIMIT), ("P-look", {}))]
    history = asyncio.run(chat(kernel, arguments=host_arguments(token="s3cr3t-token")))
    assert [each.metadata for each in results_in(history)] == [{}, {}]
    text = history.serialize()
    assert "s3cr3t-token" not in text
    assert "filer" not in text
    result = asyncio.run(kernel.invoke(plugin_name="P", function_name="look", affiant_turn=turn()))
    assert (result.metadata, result.value) == ({}, "plain")


def test_a_filter_that_calls_next_twice_files_once():
    """Seam 3, "calling next twice runs the body twice at either stage": the body runs twice and one row is filed."""
    for kind in (FilterTypes.AUTO_FUNCTION_INVOCATION, FilterTypes.FUNCTION_INVOCATION):
        desk, provider = LimitDesk(), Watched()
        host = Host(desk, context_provider=provider)
        kernel = host.kernel()

        async def twice(context, next):
            await next(context)
            await next(context)

        kernel.add_filter(kind, twice)
        receipt = document_of(turn_of_chat(kernel, (SET, LIMIT))["call-1"])
        assert (len(desk.calls), len(provider.arguments)) == (2, 1)
        assert receipt["entryId"] == host.row().entry_id


def test_a_filter_that_fails_behind_the_body_does_not_run_it_again():
    """DECISIONS 15: the one retry is for a body that has not run; what a filter raises afterwards is mapped only."""
    desk = LimitDesk()
    kernel = Host(desk).kernel()

    async def late(context, next):
        await next(context)
        raise TimeoutError("too late")

    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, late)
    told = document_of(turn_of_chat(kernel, (SET, LIMIT))["call-1"])
    assert (len(desk.calls), told["code"]) == (1, "DB_TIMEOUT")


def test_a_filter_cannot_put_another_function_in_the_admitted_ones_place():
    """DECISIONS 16: the function that was admitted runs, whatever a filter writes into the context."""
    desk, wiped = LimitDesk(), []
    host = Host(desk)
    kernel = host.kernel(native={"look": lambda: "looked", "wipe": lambda: wiped.append(1)})
    other = kernel.get_function("P", "wipe")

    async def swap(context, next):
        context.function = other
        await next(context)

    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, swap)
    assert turn_of_chat(kernel, ("P-look", {}))["call-1"] == "looked"
    assert wiped == []


def test_a_filter_that_keeps_the_first_of_two_results_gets_that_one_filed():
    """The result that SK holds is the one that counts, whichever call of the function gave it."""
    host = Host(LimitDesk())
    kernel = host.kernel(carry_arguments=True)

    async def first(context, next):
        await next(context)
        kept = context.function_result
        context.arguments["limit"] = 99
        await next(context)
        context.function_result = kept

    kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, first)
    turn_of_chat(kernel, (SET, LIMIT))
    assert host.row().affidavit.values()["limit"] == 10


def test_a_filter_that_invokes_the_function_itself_files_once():
    """A host's filter may call the function in the place of next: it sees a refusal, and the outcome is filed once."""
    host, seen = Host(LimitDesk()), []
    kernel = host.kernel()

    async def own(context, next):
        result = await context.function.invoke(context.kernel, context.arguments)
        seen.append(result.value)
        context.function_result = result

    kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, own)
    receipt = document_of(turn_of_chat(kernel, (SET, LIMIT))["call-1"])
    assert receipt["entryId"] == host.row().entry_id
    assert "did not pass the review gate" in seen[0]


@pytest.mark.parametrize("kind", [FilterTypes.AUTO_FUNCTION_INVOCATION, FilterTypes.FUNCTION_INVOCATION])
@pytest.mark.parametrize("value", [proposed(), PROPOSAL, found(), "text", None])
def test_a_result_that_a_filter_puts_there_is_gated(kind, value):
    """A host's filter that skips the function answers in its place, and the answer goes through the gate like any."""
    desk = LimitDesk()
    host = Host(desk)
    kernel = host.kernel()

    async def instead(context, next):
        result = FunctionResult(function=context.function.metadata, value=value)
        setattr(context, "function_result" if kind == FilterTypes.AUTO_FUNCTION_INVOCATION else "result", result)

    kernel.add_filter(kind, instead)
    text = turn_of_chat(kernel, (SET, LIMIT))["call-1"]
    assert desk.calls == []
    assert SECRET not in text
    if value is not None and "set_limit" in str(getattr(value, "tool_name", value)):
        assert document_of(text)["entryId"] == host.row().entry_id
    else:  # DECISIONS 6: a declared write that hands back anything else is refused
        assert document_of(text)["code"] == "wireup-invalid"
        assert host.rows() == ()


@pytest.mark.parametrize("kind", [FilterTypes.AUTO_FUNCTION_INVOCATION, FilterTypes.FUNCTION_INVOCATION])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_filter_that_fails_leaves_an_answer(kind, is_late, caplog):
    """Seam 3: an exception out of the auto stage breaks the turn. A host's failing filter becomes an answer instead."""
    desk = LimitDesk()
    host = Host(desk)
    kernel = host.kernel()

    async def failing(context, next):
        if is_late:
            await next(context)
        raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    kernel.add_filter(kind, failing)
    caplog.set_level(logging.ERROR)
    text = turn_of_chat(kernel, (SET, LIMIT))["call-1"]
    assert "postgres" not in text
    assert "postgres" in caplog.text
    if is_late and kind == FilterTypes.AUTO_FUNCTION_INVOCATION:
        assert document_of(text)["entryId"] == host.row().entry_id  # what has executed is kept
    else:
        assert document_of(text)["code"] == "UNKNOWN"
        assert host.rows() == ()


def test_an_interceptors_answer_is_gated():
    """REFERENCE 6.3 on two stages: a proposal that an interceptor supplies is filed, and the tool does not run."""
    desk = LimitDesk()
    host = Host(desk, interceptors=[Interceptor(lambda name, _: name == "set_limit", lambda *_: proposed())])
    for way in ("chat loop", "fn.invoke"):
        assert document_of(go(way, host.kernel() if way == "chat loop" else host_kernel(host), SET, LIMIT))["entryId"]
    assert desk.calls == []
    assert len(host.rows()) == 1


def host_kernel(host):
    """Another kernel of the same host."""
    from support.semantic_kernel import kernel_of

    return install(kernel_of(), host.affiant)


# --- termination ---------------------------------------------------------------------------------------------------


@STREAMED
@pytest.mark.parametrize("terminates", [False, True])
def test_termination_is_asked_for_and_never_cleared(streamed, terminates):
    """DECISIONS 11: the model speaks again after a filing unless the host asks; a filter's own wish stands."""
    host = Host(LimitDesk(), terminate_on_review=terminates)
    kernel = host.kernel()
    turn_of_chat(kernel, (SET, LIMIT), streamed=streamed)
    assert len(kernel.get_service("scripted").heard) == (1 if terminates else 2)

    async def ends(context, next):
        await next(context)
        context.terminate = True

    kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, ends)
    kernel.get_service("scripted").heard.clear()
    turn_of_chat(kernel, ("LimitDesk-find_customer", {"customer_id": "c-1"}), streamed=streamed)
    assert len(kernel.get_service("scripted").heard) == 1


# --- the host's faults ---------------------------------------------------------------------------------------------

NO_TURN = {
    "nothing": KernelArguments(),
    "None": KernelArguments(affiant_turn=None),
    "text": KernelArguments(affiant_turn="turn"),
    "a dictionary": KernelArguments(affiant_turn={"tenant_id": "acme"}),
    "another object": KernelArguments(affiant_turn=object()),
}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "template"])
@pytest.mark.parametrize("given", NO_TURN)
@pytest.mark.parametrize("name", ["LimitDesk-find_customer", SET])
def test_a_call_without_its_turn_raises(way, given, name):
    """DECISIONS 12: no turn, or no such object, raises to the host before any body; the model is told nothing."""
    if way == "agent" and given in ("a dictionary", "another object"):
        return  # its instructions are rendered before any call, and Semantic Kernel raises then
    desk = LimitDesk()
    host = Host(desk)
    arguments = LIMIT if name == SET else {"customer_id": "c-1"}
    host_given = KernelArguments(**NO_TURN[given])
    if way == "by hand":
        host_given.setdefault(TURN_ARGUMENT, None)
    with pytest.raises((WireupInvalid, KernelInvokeException)) as caught:
        go(way, host.kernel(), name, arguments, host_given)
    fault = caught.value if isinstance(caught.value, WireupInvalid) else caught.value.__cause__
    assert isinstance(fault, WireupInvalid)
    assert "TurnContext" in str(fault)
    assert (desk.calls, host.rows()) == ([], ())


@STREAMED
def test_a_turn_that_is_missing_leaves_the_history_unanswered(streamed):
    """DECISIONS 13: the fault leaves the auto stage; nothing is appended to the history in its place."""
    kernel = Host(LimitDesk()).kernel(asks((SET, LIMIT)))
    from semantic_kernel.contents import ChatHistory

    history = ChatHistory()
    with pytest.raises(WireupInvalid):
        asyncio.run(chat(kernel, streamed=streamed, arguments=KernelArguments(), history=history))
    assert results_in(history) == []


def test_a_model_cannot_send_a_turn():
    """DECISIONS 12: SK refuses the unknown name by itself, and the tool does not run."""
    desk = LimitDesk()
    texts = turn_of_chat(Host(desk).kernel(), (SET, {**LIMIT, "affiant_turn": {"tenant_id": "evil"}}))
    assert "unexpected argument" in texts["call-1"]
    assert desk.calls == []


def test_a_forged_turn_is_never_taken():
    """A function with a parameter of that name is refused at wiring; run all the same, a forged turn fails the turn."""
    host = Host()

    def look(affiant_turn: str = "") -> str:
        """Look."""
        raise AssertionError("the body ran")

    kernel = host.kernel()
    from support.semantic_kernel import plugin_of

    kernel.add_plugin(plugin_of(look=look))
    host.declare("look")
    with pytest.raises(WireupInvalid, match="given a str"):
        turn_of_chat(kernel, ("P-look", {"affiant_turn": "forged"}))


@STREAMED
def test_an_undeclared_late_function_raises_out_of_the_loop(streamed):
    """DECISIONS 16: what came after the audit and is declared nowhere is refused before its body, loudly."""
    from support.semantic_kernel import plugin_of

    host, ran = Host(LimitDesk()), []
    kernel = host.kernel()
    kernel.add_plugin(plugin_of(late=lambda: ran.append(1)))
    with pytest.raises(WireupInvalid, match="not declared"):
        turn_of_chat(kernel, ("P-late", {}), streamed=streamed)
    assert ran == []


def test_a_wiring_fault_inside_a_body_leaves_the_turn():
    """DECISIONS 13: a nested call without its turn is the host's fault, through every exception that SK wraps it in."""
    host = Host(LimitDesk())

    async def outer() -> str:
        """Call without a turn."""
        return str(await kernel.invoke(plugin_name="LimitDesk", function_name="find_customer", customer_id="c-1"))

    kernel = host.kernel(native={"outer": outer})
    with pytest.raises(WireupInvalid, match="TurnContext"):
        turn_of_chat(kernel, ("P-outer", {}))


def test_siblings_of_a_fault_are_not_answered_for_it():
    """DECISIONS 12: the fault is raised whatever the other calls of the message do."""
    host = Host(LimitDesk())
    kernel = host.kernel()

    async def drops(context, next):
        if context.function.name == "set_limit":
            context.arguments.pop(TURN_ARGUMENT)
        await next(context)

    kernel.auto_function_invocation_filters.append((id(drops), drops))
    with pytest.raises(WireupInvalid):
        turn_of_chat(kernel, (SET, LIMIT), ("LimitDesk-find_customer", {"customer_id": "c-1"}))
    assert host.rows() == ()


def test_a_turn_can_be_hidden_from_templates():
    """TurnArgument is a turn for every purpose, and shows nothing of it."""
    host = Host(LimitDesk())
    hidden = TurnArgument(turn())
    assert (hidden.turn, bytes(hidden)) == (turn(), b"")
    assert "filer" not in KernelArguments(affiant_turn=hidden).dumps()
    turn_of_chat(host.kernel(), (SET, LIMIT), arguments=KernelArguments(affiant_turn=hidden))
    assert host.row().conversation_id == turn().conversation_id


# --- cancellation --------------------------------------------------------------------------------------------------


def test_semantic_kernels_own_cancellation():
    """DECISIONS 14: kernel.invoke gives None for it as ever; a chat loop answers without the exception's text."""
    host = Host()

    def stop() -> str:
        """Stop."""
        raise OperationCancelledException("secret reason")

    kernel = host.kernel(native={"stop": stop})
    assert asyncio.run(kernel.invoke(plugin_name="P", function_name="stop", affiant_turn=turn())) is None
    text = turn_of_chat(kernel, ("P-stop", {}))["call-1"]
    assert "secret reason" not in text
    assert document_of(text)["code"] == "UNKNOWN"


# --- the manual invoker --------------------------------------------------------------------------------------------


def by_hand(kernel, name, arguments="", **options):
    return asyncio.run(invoke(kernel, name, arguments, turn=options.get("turn", turn())))


@pytest.mark.parametrize("name", ["LimitDesk-set_limits", "LimitDesk", "set_limit", "limitdesk-set_limit", "", "a b"])
def test_a_function_that_is_not_there_is_not_guessed(name):
    """REFERENCE 9, ManualToolInvoker: FUNCTION_NOT_FOUND, not retryable, nothing run; a near miss is unknown (C18)."""
    desk = LimitDesk()
    error = document_of(by_hand(Host(desk).kernel(), name, LIMIT))
    assert (error["code"], error["retryable"], desk.calls) == ("FUNCTION_NOT_FOUND", False, [])


@pytest.mark.parametrize(
    "arguments", ['{"customer_id": "c-1"', {**LIMIT, "nosuch": 1}, {**LIMIT, "limit": float("nan")}]
)
def test_the_manual_invoker_reads_arguments_strictly(arguments):
    """DECISIONS 8: as in a chat loop, malformed text, unknown names and NaN are VALIDATION_FAILED and run nothing."""
    desk = LimitDesk()
    error = document_of(by_hand(Host(desk).kernel(), SET, arguments))
    assert (error["code"], error["toolName"], desk.calls) == ("VALIDATION_FAILED", "set_limit", [])


def test_the_manual_invoker_takes_text_and_completes_once():
    """Seam 6: it must not run the completion stage again; text and map are one call."""
    provider = Watched()
    host = Host(LimitDesk(), context_provider=provider)
    kernel = host.kernel()
    first = document_of(by_hand(kernel, SET, '{"customer_id": "c-1", "limit": 10}'))
    assert document_of(by_hand(kernel, SET, LIMIT))["entryId"] == first["entryId"] == host.row().entry_id
    assert len(provider.arguments) == 2


def test_the_manual_invoker_needs_bridge_and_turn():
    """DECISIONS 12: what the host left out raises."""
    from support.semantic_kernel import kernel_of

    with pytest.raises(WireupInvalid, match="not installed"):
        by_hand(kernel_of(), SET, LIMIT)
    with pytest.raises(WireupInvalid, match="TurnContext"):
        by_hand(Host(LimitDesk()).kernel(), SET, LIMIT, turn=None)


# --- past the seam -------------------------------------------------------------------------------------------------


def test_a_bound_function_runs_nowhere_but_behind_the_seam():
    """C14, C19: on another kernel, or entered directly, a bound function refuses and its body does not run."""
    from support.semantic_kernel import kernel_of

    desk = LimitDesk()
    kernel = Host(desk).kernel()
    function = kernel.get_function("LimitDesk", "set_limit")
    with pytest.raises(WireupInvalid, match="past its seam"):
        asyncio.run(function.invoke(kernel_of(), host_arguments(**LIMIT)))
    other = kernel_of()
    other.add_plugin(kernel.plugins["LimitDesk"])
    texts = turn_of_chat(other, (SET, LIMIT))
    assert "past its seam" in texts["call-1"]
    assert not hasattr(function, "method")
    assert desk.calls == []


def test_a_body_that_calls_its_neighbours_internals_is_refused():
    """The way in is open for one call's own body, and for nothing else that the body reaches."""
    host = Host(LimitDesk())

    async def sneak() -> str:
        """Enter another function past its seam."""
        from semantic_kernel.filters import FunctionInvocationContext

        other = kernel.get_function("LimitDesk", "set_limit")
        context = FunctionInvocationContext(function=other, kernel=kernel, arguments=host_arguments(**LIMIT))
        await other._invoke_internal(context)
        return context.result.value.to_json_string()

    kernel = host.kernel(native={"sneak": sneak})
    with pytest.raises(WireupInvalid, match="past its seam"):
        turn_of_chat(kernel, ("P-sneak", {}))


# --- nested calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["receipt", "proposal"])
@pytest.mark.parametrize("writes", [(), ("outer",)])
@pytest.mark.parametrize("way", ["chat loop", "fn.invoke"])
def test_the_gates_own_answer_is_not_filed_again(view, writes, way):
    """Seam 7: a tool that hands back what the gate answered to its own nested call files nothing of its own."""
    host = Host(LimitDesk(), model_view=view)

    async def outer(arguments: KernelArguments) -> object:
        """Propose through another tool."""
        given = host_arguments(arguments[TURN_ARGUMENT], **LIMIT)
        return await kernel.invoke(plugin_name="LimitDesk", function_name="set_limit", arguments=given)

    from typing import Annotated

    hidden = {"include_in_function_choices": False, "is_required": False}
    outer.__annotations__["arguments"] = Annotated[KernelArguments, hidden]
    kernel = host.kernel(native={"outer": outer}, writes=writes)
    document = document_of(go(way, kernel, "P-outer", {}))
    assert host.row().tool_name == "set_limit"
    assert document["entryId" if view == "receipt" else "toolName"] in (host.row().entry_id, "set_limit")


def test_a_nested_call_is_not_the_loops_own():
    """Seam 6: the frame is matched by identity and consumed once, so a nested call of the same function completes."""
    host, depth = Host(), []

    async def again(arguments: KernelArguments) -> object:
        """Call itself with the very same arguments, once."""
        depth.append(len(host.rows()))
        if len(depth) == 1:
            inner = await kernel.invoke(plugin_name="P", function_name="again", arguments=arguments)
            assert document_of(inner.value)["entryId"]
            return proposed("c-2")
        return proposed("c-1")

    from typing import Annotated

    hidden = {"include_in_function_choices": False, "is_required": False}
    again.__annotations__["arguments"] = Annotated[KernelArguments, hidden]
    kernel = host.kernel(native={"again": again}, writes=("again",))
    receipt = document_of(go("chat loop", kernel, "P-again", {}))
    assert len(host.rows()) == 2
    assert receipt["entryId"] == host.rows()[1].entry_id


def test_an_answer_of_the_wrong_kind_is_refused():
    """DECISIONS 6: None, text, a dictionary and a model are wireup-invalid from a declared write, on both stages."""
    for value in (None, "", "done", {"limit": 1}, found(), [proposed(), proposed()]):
        host = Host()
        kernel = host.kernel(native={"write": answering(value)}, writes=("write",))
        for way in ("chat loop", "fn.invoke"):
            document = document_of(go(way, kernel, "P-write", {}))
            assert document["code"] == "wireup-invalid", value
        assert host.rows() == ()


def test_types_of_the_fixtures():
    """The fixtures are what the tests take them for."""
    assert isinstance(found(), ReadResult)
    assert isinstance(proposed(), WriteProposal)
    assert isinstance(turn(), TurnContext)
