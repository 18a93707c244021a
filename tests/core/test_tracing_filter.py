"""The span around a tool call, and the event of a returned error."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from support.gate import Events
from support.pipeline import Body, Host, both, entity, proposal, read_result, run, telemetry

import affiant_core
from affiant_core import telemetry as telemetry_module
from affiant_core.envelope import ToolError
from affiant_core.filters.tracing import ToolTracingFilter
from affiant_core.pipeline import Pipeline

RETURNED = ToolError(tool_name="find_customer", code="CRM_BUSY", message="Busy in shard 7.", retryable=True)


class Spans:
    """What an OpenTelemetry SDK of a host would export."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("host")

    def named(self, name):
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def only(self, name="execute_tool"):
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans(monkeypatch):
    """The package's tracer, of a provider that belongs to this test alone."""
    spans = Spans()
    own = spans.provider.get_tracer(telemetry_module.INSTRUMENTATION_SCOPE)
    monkeypatch.setattr(telemetry_module, "tracer", lambda: own)
    return spans


def told(span):
    return [(event.name, dict(event.attributes)) for event in span.events]


@both
def test_a_call_is_one_span(mode, spans):
    """REFERENCE 6.5: the span execute_tool, internal, carries the tool's name; the package's own scope opened it."""
    Host().read(mode, read_result(entity()))
    span = spans.only()
    assert dict(span.attributes) == {"gen_ai.tool.name": "find_customer", "tool_status": "ok"}
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.instrumentation_scope.name == "affiant_core"
    assert told(span) == []


@both
@pytest.mark.parametrize(
    ("returned", "status"),
    [
        (read_result(), "ok"),
        (read_result().to_json_string(), "ok"),
        ("prose", "ok"),
        (" ", "ok"),
        ({"rows": []}, "ok"),
        ("", "empty"),
        (None, "empty"),
        (RETURNED, "error"),
        (RETURNED.to_json_string(), "error"),
    ],
    ids=[
        "read",
        "text of a read",
        "prose",
        "blank",
        "dictionary",
        "empty text",
        "nothing",
        "error",
        "text of an error",
    ],
)
def test_how_the_call_ended(mode, spans, returned, status):
    """REFERENCE 6.5: an error envelope is error, empty text or nothing is empty, and everything else is ok."""
    Host().read(mode, lambda: returned)
    assert spans.only().attributes["tool_status"] == status


@both
def test_a_returned_error_is_an_event_on_the_span(mode, spans):
    """Seed, "the tool_error.retryable tag ToolTracingFilter puts on its affiant.tool_error span event"."""
    host = Host()
    host.read(mode, RETURNED)
    facts = {
        "gen_ai.tool.name": "find_customer",
        "tool_error.code": "CRM_BUSY",
        "tool_error.retryable": True,
        "exception.type": "ReturnedToolError",
    }
    assert told(spans.only()) == [("affiant.tool_error", facts)]
    assert host.events.told == [("affiant.tool_error", facts)]
    assert "shard" not in str(spans.exporter.get_finished_spans()[0].to_json())


@both
def test_an_exception_marks_the_span_and_tells_no_text(mode, spans):
    """REFERENCE 6.5, TL-1: the span's status is error and it goes on; the exception's text is recorded nowhere."""
    Host().read(mode, Body(RuntimeError("db at 10.0.0.5")))
    span = spans.only()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.attributes["tool_status"] == "error"
    assert told(span) == []
    assert all("10.0.0.5" not in each.to_json() for each in spans.exporter.get_finished_spans())


@both
def test_an_exception_goes_on(mode, spans):
    """REFERENCE 6.5, "Exception: rethrow": the very exception leaves the filter."""
    error = KeyError("x")
    with pytest.raises(KeyError) as caught:
        run(mode, Pipeline([ToolTracingFilter(telemetry(Events()))]), Body(error))
    assert caught.value is error
    assert spans.only().attributes["tool_status"] == "error"


@both
def test_cancellation_ends_the_span_as_an_error(mode, spans):
    """REFERENCE 6.5, DECISIONS 14: a cancelled call has a finished span, and the cancellation propagates."""
    with pytest.raises(asyncio.CancelledError):
        Host().read(mode, Body(asyncio.CancelledError()))
    assert spans.only().status.status_code is StatusCode.ERROR


@both
def test_a_thrown_failures_event_lands_on_the_enclosing_span(mode, spans):
    """REFERENCE 6.5: the tool's span is closed by then, so the event is on the span around the call."""
    with spans.tracer.start_as_current_span("turn"):
        Host().read(mode, Body(RuntimeError()))
    ((name, facts),) = told(spans.only("turn"))
    assert name == "affiant.tool_error"
    assert (facts["tool_error.code"], facts["exception.type"]) == ("UNKNOWN", "RuntimeError")


@both
def test_a_thrown_failures_event_has_a_short_span_where_none_is_open(mode, spans):
    """REFERENCE 15: with no span open, a short span named after the event carries it."""
    Host().read(mode, Body(RuntimeError()))
    ((name, facts),) = told(spans.only("affiant.tool_error"))
    assert name == "affiant.tool_error"
    assert facts["tool_error.code"] == "UNKNOWN"


@both
def test_each_try_is_a_span_of_its_own(mode, spans):
    """DECISIONS 15, REFERENCE 6.4: the one retry runs everything inside the error filter, tracing too."""
    Host().read(mode, Body(TimeoutError(), "prose"))
    assert [span.attributes["tool_status"] for span in spans.named("execute_tool")] == ["error", "ok"]


@both
def test_the_span_sees_what_the_gate_made_of_a_proposal(mode, spans):
    """C20, REFERENCE 6.5: observers see the replacement; a refusal of the gate is an error, a filing is ok."""
    host = Host()
    host.write(mode, proposal())
    assert spans.only().attributes["tool_status"] == "ok"
    assert [name for name, _ in told(spans.only())] == ["affidavit.filed"]
    spans.exporter.clear()
    host.write(mode, "prose")
    span = spans.only()
    assert span.attributes["tool_status"] == "error"
    assert told(span)[0][1]["tool_error.code"] == "wireup-invalid"


@both
def test_the_bodys_own_spans_are_children_of_the_call(mode, spans):
    """REFERENCE 6.5: the span is the current one while the tool runs."""

    def body():
        with spans.tracer.start_as_current_span("query"):
            return "prose"

    Host().read(mode, body)
    assert spans.only("query").parent.span_id == spans.only().context.span_id


def test_without_an_sdk_nothing_is_exported_and_nothing_fails():
    """REFERENCE 6.5: the SDK is the host's; without one a call runs as it does with one."""
    assert Host().read("sync", RETURNED).result is RETURNED


def test_an_sdk_that_is_set_up_late_is_found():
    """TL-1: the package's tracer follows the provider that the host sets, also after the first event."""
    program = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from affiant_core.telemetry import Telemetry, tool_span

Telemetry().emit("docket.expired", {"entry.id": "before"})
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
with tool_span("find_customer"):
    Telemetry().emit("docket.expired", {"entry.id": "after"})
(span,) = exporter.get_finished_spans()
print(span.name, [event.attributes["entry.id"] for event in span.events])
"""
    path = os.path.dirname(os.path.dirname(affiant_core.__file__))
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == "execute_tool ['after']\n"
