"""Failures become error envelopes that leak nothing, are retried once where that is safe, and are told to the host."""

from __future__ import annotations

import asyncio
import re
import urllib.error
from dataclasses import dataclass

import pydantic
import pytest
from support.gate import Events, turn
from support.pipeline import (
    CANCELLATIONS,
    Body,
    Host,
    both,
    carry,
    entity,
    invocation_for,
    read_result,
    run,
    telemetry,
)

from affiant_core.envelope import EntityRef, ReadResult, ToolError
from affiant_core.errors import (
    EntryNotFound,
    SubstanceRefused,
    SynchronousCallError,
    ValueRefused,
    WireError,
    WireupInvalid,
    WiringError,
    WiringFault,
)
from affiant_core.filters.failures import ErrorRule, ToolErrorFilter, classify
from affiant_core.pipeline import Pipeline

TIMED_OUT, UNAVAILABLE, INVALID, UNKNOWN = "DB_TIMEOUT", "UPSTREAM_UNAVAILABLE", "VALIDATION_FAILED", "UNKNOWN"


def foreign(module, name, *bases, **attributes):
    """An exception of a library that is not installed: its class has the module and name, and nothing is imported."""
    return type(name, bases or (Exception,), {"__module__": module, **attributes})


def answering(**attributes):
    """An exception of no particular type with these attributes, as HTTP clients and database drivers have them."""
    error = Exception("s3cret")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


@dataclass
class Response:
    status_code: int | None = None
    status: int | None = None


def invalid_model():
    class Model(pydantic.BaseModel):
        limit: int

    try:
        Model(limit="lots")
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


RequestsBase = foreign("requests.exceptions", "RequestException", OSError)

SHAPES = [
    # timeouts
    (TimeoutError(), TIMED_OUT),
    (TimeoutError(), TIMED_OUT),
    (foreign("mylib", "SlowDisk", TimeoutError)(), TIMED_OUT),
    (foreign("aiohttp.client_exceptions", "ServerTimeoutError", TimeoutError)(), TIMED_OUT),
    (foreign("sqlalchemy.exc", "OperationalError")(), TIMED_OUT),
    (foreign("sqlalchemy.exc", "TimeoutError")(), TIMED_OUT),
    (foreign("sqlalchemy.exc", "DisconnectionError")(), TIMED_OUT),
    (foreign("sqlalchemy.exc", "InterfaceError")(), TIMED_OUT),
    # connections and HTTP outages
    (ConnectionError(), UNAVAILABLE),
    (ConnectionRefusedError(), UNAVAILABLE),
    (BrokenPipeError(), UNAVAILABLE),
    (foreign("httpx", "ConnectError")(), UNAVAILABLE),
    (foreign("httpx", "ReadTimeout")(), UNAVAILABLE),
    (foreign("httpx", "TransportError")(), UNAVAILABLE),
    (foreign("mylib", "Own", foreign("httpx", "NetworkError"))(), UNAVAILABLE),
    (foreign("requests.exceptions", "ConnectionError", RequestsBase)(), UNAVAILABLE),
    (foreign("requests.exceptions", "Timeout", RequestsBase)(), UNAVAILABLE),
    (foreign("urllib3.exceptions", "ConnectTimeoutError")(), UNAVAILABLE),
    (foreign("httpcore", "ConnectError")(), UNAVAILABLE),
    (foreign("aiohttp.client_exceptions", "ClientConnectorError", OSError)(), UNAVAILABLE),
    (answering(response=Response(status_code=503)), UNAVAILABLE),
    (answering(response=Response(status=503)), UNAVAILABLE),
    (answering(status_code=503), UNAVAILABLE),
    (answering(status=503), UNAVAILABLE),
    (urllib.error.HTTPError("https://crm", 503, "busy", None, None), UNAVAILABLE),
    # what the call got wrong
    (ValueError(), INVALID),
    (TypeError(), INVALID),
    (UnicodeDecodeError("utf-8", b"", 0, 1, "x"), INVALID),
    (foreign("mylib", "BadLimit", ValueError)(), INVALID),
    (invalid_model(), INVALID),
    (WireError("x"), INVALID),
    # and everything else
    (RuntimeError(), UNKNOWN),
    (KeyError("c-1"), UNKNOWN),
    (LookupError(), UNKNOWN),
    (OSError(), UNKNOWN),
    (AssertionError(), UNKNOWN),
    (Exception(), UNKNOWN),
    (ExceptionGroup("several", [TimeoutError()]), UNKNOWN),
    (foreign("sqlalchemy.exc", "IntegrityError")(), UNKNOWN),
    (foreign("sqlalchemy.exc", "MyOwn", foreign("sqlalchemy.exc", "OperationalError"))(), UNKNOWN),
    (foreign("mylib", "OperationalError")(), UNKNOWN),
    (foreign("sqlalchemyish", "OperationalError")(), UNKNOWN),
    (foreign("httpx", "HTTPStatusError")(), UNKNOWN),
    (foreign("mylib", "ConnectError")(), UNKNOWN),
    (foreign("httpxish", "ConnectError")(), UNKNOWN),
    (answering(response=Response(status_code=500)), UNKNOWN),
    (answering(status_code=404, code="503"), UNKNOWN),
    (answering(response={"status_code": 503}), UNKNOWN),
]


def told_as(error):
    return f"{type(error).__module__}.{type(error).__name__}-{len(error.__dict__)}"


@pytest.mark.parametrize(("error", "code"), SHAPES, ids=[f"{told_as(error)}={code}" for error, code in SHAPES])
def test_the_mapping(error, code):
    """DECISIONS 8, "Codes as in the reference": each shape has its code; timeouts and outages alone may be retried."""
    rule = classify(error)
    assert rule.code == code
    assert rule.retryable is (code in {TIMED_OUT, UNAVAILABLE})


@both
@pytest.mark.parametrize("code", [TIMED_OUT, UNAVAILABLE, INVALID, UNKNOWN])
def test_each_code_has_one_fixed_sentence(mode, code):
    """DECISIONS 8: mapped errors carry one fixed human sentence per code, whatever the exception said."""
    sentences = set()
    for error, expected in SHAPES:
        if expected == code:
            message = Host().read(mode, Body(error)).envelope().message
            assert str(error) not in message or not str(error)
            sentences.add(re.sub(r" \(reference [0-9a-f]{12}\)$", "", message))
    (sentence,) = sentences
    assert sentence.endswith(".")


@both
def test_an_exception_whose_attributes_raise_is_mapped_all_the_same(mode):
    """Seed, "no fourth path": an exception that cannot be looked at becomes an error envelope too."""

    class Hostile(Exception):  # what is tested is the attribute
        @property
        def response(self):
            raise RuntimeError("the .response property must not be used here")

        @property
        def code(self):
            raise KeyError("code")

    assert Host().read(mode, Body(Hostile())).envelope().code == UNKNOWN


# --- the host's own rules ------------------------------------------------------------------------------------------


class CrmError(Exception):
    pass


class CustomerNotFound(CrmError):
    pass


class Throttled(CrmError, TimeoutError):
    pass


CRM = ErrorRule("CRM_FAILED", "The customer system failed.")
NOT_FOUND = ErrorRule("CUSTOMER_NOT_FOUND", "There is no such customer.")
SLOW = ErrorRule("CRM_BUSY", "The customer system is busy.", retryable=True)


@pytest.mark.parametrize("order", [(CrmError, CustomerNotFound), (CustomerNotFound, CrmError)])
def test_the_most_specific_rule_of_the_host_wins(order):
    """Seed, "a database timeout and a not-found lookup should never share a code": the most specific first."""
    rules = {kind: {CrmError: CRM, CustomerNotFound: NOT_FOUND}[kind] for kind in order}
    assert classify(CustomerNotFound(), rules) is NOT_FOUND
    assert classify(CrmError(), rules) is CRM
    assert classify(Throttled(), rules) is CRM


def test_a_hosts_rule_goes_before_the_known_shapes():
    """DECISIONS 8, seed "domain-specific failure conditions": the host knows better what its exception means."""
    assert classify(Throttled(), {Throttled: SLOW}) is SLOW
    assert classify(ValueError(), {Exception: CRM}) is CRM
    assert classify(Throttled(), {CustomerNotFound: NOT_FOUND}).code == TIMED_OUT


@both
def test_a_hosts_rule_is_what_the_model_is_told(mode):
    """Seed, "an accurate Code": the host's code and sentence, and never the exception's text."""
    host = Host(errors={CustomerNotFound: NOT_FOUND})
    error = host.read(mode, Body(CustomerNotFound("c-1 in shard 7"))).envelope()
    assert (error.code, error.retryable) == ("CUSTOMER_NOT_FOUND", False)
    assert error.message.startswith("There is no such customer. (reference ")
    assert "shard" not in error.message


@both
def test_a_hosts_retryable_rule_is_retried(mode):
    """DECISIONS 15: the one retry is for every mapped exception that is retryable, the host's own among them."""
    body = Body(CrmError(), "answer")
    assert Host(errors={CrmError: SLOW}).read(mode, body).result == "answer"
    assert body.calls == 2


# --- C02 -----------------------------------------------------------------------------------------------------------


@both
def test_c02_no_exception_text_reaches_the_model(mode, caplog):
    """C02, first: nothing of the exception stands in the text; all of it is in the log, by its reference."""
    host = Host()
    body = Body(RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused"))
    invocation = host.read(mode, body)
    text = invocation.envelope().to_json_string()
    for secret in ("postgres", "pw@", "10.0.0.5", "RuntimeError", "Traceback", "prod", "refused", "svc"):
        assert secret not in text
    error = invocation.envelope()
    assert (error.code, error.retryable, error.tool_name, body.calls) == (UNKNOWN, False, "find_customer", 1)
    (reference,) = re.findall(r"\(reference ([0-9a-f]{12})\)", error.message)
    (record,) = [record for record in caplog.records if reference in record.getMessage()]
    assert record.levelname == "ERROR"
    for part in ("RuntimeError: db postgres://svc:pw@10.0.0.5/prod refused", "Traceback", reference):
        assert part in caplog.text


@both
def test_c02_a_timeout_is_tried_twice_and_then_not_retryable(mode, caplog):
    """C02, second: the body is called exactly twice, then an error with retryable false and no host name."""
    body = Body(TimeoutError("host db-internal-7"))
    error = Host().read(mode, body).envelope()
    assert body.calls == 2
    assert (error.code, error.retryable) == (TIMED_OUT, False)
    assert "db-internal-7" not in error.to_json_string()
    (reference,) = re.findall(r"\(reference ([0-9a-f]{12})\)", error.message)
    assert reference in caplog.text
    assert caplog.text.count("TimeoutError: host db-internal-7") == 2


@both
@pytest.mark.parametrize("kind", CANCELLATIONS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_c02_cancellation_propagates(mode, kind):
    """C02, third; DECISIONS 14: cancellation propagates, with no envelope, no retry and no event."""
    host = Host()
    invocation = invocation_for(mode)
    body = Body(kind())
    with pytest.raises(kind):
        carry(mode, host.pipeline, invocation, body)
    assert invocation.result is None
    assert body.calls == 1
    assert host.events.told == []


# --- what else propagates ------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "error",
    [WireupInvalid("no context"), WiringError([WiringFault("x", "y", "z")]), SynchronousCallError("suspended")],
    ids=lambda error: type(error).__name__,
)
def test_a_fault_of_the_wiring_propagates(mode, error):
    """DECISIONS 13: a refusal of the wiring reaches the host and is never made into a result for the model."""
    host = Host()
    invocation = invocation_for(mode)
    with pytest.raises(type(error)) as caught:
        carry(mode, host.pipeline, invocation, Body(error))
    assert caught.value is error
    assert invocation.result is None
    assert host.events.told == []


class GraphBubbleUp(Exception):  # the framework's own name
    pass


def bubbles(error):
    return isinstance(error, GraphBubbleUp)


@both
def test_a_frameworks_control_flow_propagates(mode):
    """DECISIONS 14: what the bridge names as control flow is never mapped, before the tool has executed or after."""
    host = Host()
    pipeline = host.affiant.pipeline(bubbles)
    body = Body(GraphBubbleUp())
    with pytest.raises(GraphBubbleUp):
        run(mode, pipeline, body)
    assert body.calls == 1

    async def interrupting(invocation, call_next):
        await call_next()
        raise GraphBubbleUp

    with pytest.raises(GraphBubbleUp):
        run(mode, Pipeline([*pipeline.filters, interrupting]), "prose")
    assert host.events.told == []
    assert host.read(mode, Body(GraphBubbleUp())).envelope().code == UNKNOWN


# --- retry ---------------------------------------------------------------------------------------------------------


@both
def test_success_on_the_retry_keeps_that_result(mode):
    """REFERENCE 17, "retryable failure then success (two runs)": the second run's own result comes out."""
    host = Host()
    found = read_result(entity())
    body = Body(TimeoutError(), found)
    assert host.read(mode, body).result is found
    assert body.calls == 2
    assert [event["tool_error.retryable"] for event in host.events.of("affiant.tool_error")] == [True]


@both
@pytest.mark.parametrize("error", [RuntimeError(), ValueError(), KeyError()], ids=lambda error: type(error).__name__)
def test_what_is_not_retryable_is_not_tried_again(mode, error):
    """DECISIONS 15: the retry is only for a mapped exception that is retryable."""
    body = Body(error)
    Host().read(mode, body)
    assert body.calls == 1


@both
def test_a_framework_continuation_is_not_run_again_and_stays_retryable(mode):
    """REFERENCE 17, "completion seam (one run, flag stays true)": no retry where the next step is not the body."""
    host = Host()
    body = Body(TimeoutError())
    error = host.read(mode, body, next_is_tool_body=False).envelope()
    assert body.calls == 1
    assert (error.code, error.retryable) == (TIMED_OUT, True)
    assert len(host.events.of("affiant.tool_error")) == 1


@both
def test_the_second_failure_is_mapped_afresh_and_not_retryable(mode):
    """DECISIONS 15: a second failure forces retryable false; its own code is what the model is told."""
    host = Host()
    body = Body(TimeoutError(), ConnectionError())
    error = host.read(mode, body).envelope()
    assert body.calls == 2
    assert (error.code, error.retryable) == (UNAVAILABLE, False)
    assert [
        (event["tool_error.code"], event["tool_error.retryable"], event["exception.type"])
        for event in host.events.of("affiant.tool_error")
    ] == [(TIMED_OUT, True, "TimeoutError"), (UNAVAILABLE, False, "ConnectionError")]


@both
def test_cancellation_of_the_retry_propagates(mode):
    """REFERENCE 6.4, "Retry: Cancellation propagates": a cancelled second run is no error for the model."""
    body = Body(TimeoutError(), asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        Host().read(mode, body)
    assert body.calls == 2


@both
def test_a_returned_retryable_error_is_never_tried_again(mode):
    """Seed, "On a ToolError a tool returns, nothing in the framework acts on the flag"."""
    host = Host()
    returned = ToolError(tool_name="find_customer", code="CRM_BUSY", message="Busy.", retryable=True)
    for outcome in (returned, returned.to_json_string()):
        body = Body(outcome)
        assert host.read(mode, body).result is outcome
        assert body.calls == 1


# --- after the tool has executed -----------------------------------------------------------------------------------


def failing_after(error, times):
    async def failing(invocation, call_next):
        await call_next()
        times.append(1)
        raise error

    return failing


@both
@pytest.mark.parametrize("error", [TimeoutError("db-7"), RuntimeError("x")], ids=lambda error: type(error).__name__)
def test_after_the_tool_has_executed_its_result_is_kept(mode, error, caplog):
    """REFERENCE 6.4 and 17: a failure behind an executed tool costs one run, no retry, and the result stays."""
    events, times = Events(), []
    pipeline = Pipeline([ToolErrorFilter(telemetry(events)), failing_after(error, times)])
    found = read_result(entity())
    body = Body(found)
    invocation = run(mode, pipeline, body)
    assert invocation.result is found
    assert (body.calls, len(times)) == (1, 1)
    assert events.told == [
        (
            "affiant.extractor.failed",
            {"extractor.type": "after-tool", "tool.name": "find_customer", "exception.type": type(error).__name__},
        )
    ]
    assert "its result stands" in caplog.text


@both
def test_a_retry_whose_after_work_fails_keeps_the_retrys_result(mode):
    """REFERENCE 6.4, "Failure after the tool executed": the rule holds on the second run as well."""
    events, times = Events(), []
    pipeline = Pipeline([ToolErrorFilter(telemetry(events)), failing_after(RuntimeError(), times)])
    body = Body(TimeoutError(), "answer")
    assert run(mode, pipeline, body).result == "answer"
    assert body.calls == 2
    assert events.keys == ["affiant.tool_error", "affiant.extractor.failed"]


@both
@pytest.mark.parametrize("kind", [asyncio.CancelledError, WireupInvalid])
def test_what_propagates_does_so_after_the_tool_too(mode, kind):
    """DECISIONS 14: cancellation always propagates, and a fault of the wiring is loud, also after the tool."""
    pipeline = Pipeline([ToolErrorFilter(telemetry(Events())), failing_after(kind("now"), [])])
    with pytest.raises(kind):
        run(mode, pipeline, "prose")


# --- what the tool itself refuses ----------------------------------------------------------------------------------


@both
def test_a_value_without_a_spelling_is_told_by_its_place_only(mode):
    """DECISIONS 20, C16: the error names the field's path and never the value, and is not retried."""
    body = Body(ValueRefused("fields.photo", "bytes b's3cret' are not text"))
    error = Host().read(mode, body).envelope()
    assert (error.code, error.retryable, body.calls) == (INVALID, False, 1)
    assert "fields.photo" in error.message
    assert "s3cret" not in error.message


@both
def test_a_result_that_cannot_be_made_is_an_error_naming_the_field(mode):
    """C16: a ReadResult over a value without a spelling fails in the body, and the model is told which field."""

    def body():
        fields = {"limit": float("nan"), "name": "s3cret"}
        found = EntityRef(entity_type="Customer", entity_id="c-1", display_name="A", fields=fields)
        return ReadResult(summary="s", markdown="m", entities=(found,))

    error = Host().read(mode, body).envelope()
    assert error.code == INVALID
    assert "fields.limit" in error.message
    assert "s3cret" not in error.message


@both
@pytest.mark.parametrize("refusal", [SubstanceRefused("GT-3: hollow."), EntryNotFound("AZ-2: none.")])
def test_a_refusal_that_a_tool_raises_is_told_by_code_and_reason(mode, refusal):
    """errors.Refusal, DECISIONS 8: a refusal is an answer; its reason names no value and may be shown to the model."""
    error = Host().read(mode, Body(refusal)).envelope()
    assert (error.code, error.retryable) == (refusal.code.value, False)
    assert error.message.startswith(refusal.reason)


# --- what is told --------------------------------------------------------------------------------------------------


@both
def test_a_mapped_failure_is_one_event(mode):
    """REFERENCE 6.4, TL-1: affiant.tool_error carries tool, code, flag and the exception's type, no text."""
    host = Host()
    host.read(mode, Body(RuntimeError("s3cret")))
    assert host.events.told == [
        (
            "affiant.tool_error",
            {
                "gen_ai.tool.name": "find_customer",
                "tool_error.code": UNKNOWN,
                "tool_error.retryable": False,
                "exception.type": "RuntimeError",
            },
        )
    ]


@both
def test_terminate_is_left_alone(mode):
    """REFERENCE 6.4, "Terminate untouched": a failure neither ends the turn nor clears a flag that was set."""
    assert Host().read(mode, Body(RuntimeError())).terminate is False
    assert Host().read(mode, Body(RuntimeError()), terminate=True).terminate is True


@both
def test_a_declared_writes_failure_keeps_its_code(mode):
    """DECISIONS 7, REFERENCE 7: an error made of a raised exception passes the gate of a declared write."""
    host = Host()
    error = host.write(mode, Body(RuntimeError())).envelope()
    assert (error.code, error.tool_name) == (UNKNOWN, "set_limit")
    assert host.rows() == ()


@both
def test_every_failure_has_a_reference_of_its_own(mode):
    """DECISIONS 8: the correlation id tells one failure from the next."""
    messages = {Host().read(mode, Body(RuntimeError())).envelope().message for _ in range(3)}
    assert len(messages) == 3


def test_the_turn_is_no_part_of_a_failure():
    """C02: neither the conversation nor the person stands in the model's text of an error."""
    host = Host()
    context = turn("ana-maria", conversation="conv-secret")
    text = host.read("sync", Body(RuntimeError()), turn=context).envelope().to_json_string()
    assert "ana-maria" not in text
    assert "conv-secret" not in text
