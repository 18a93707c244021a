"""One span around each tool call (REFERENCE 6.5)."""

from __future__ import annotations

from affiant_core.envelope import ToolError
from affiant_core.pipeline import CallNext, ToolInvocation
from affiant_core.telemetry import Telemetry, tracer


class ToolTracingFilter:
    """Opens the span ``execute_tool`` and notes how the call ended: ``ok``, ``empty`` or ``error``."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Trace one call. A returned ``ToolError`` is told as an event too; its ``retryable`` is acted on by nobody."""
        from opentelemetry.trace import StatusCode, use_span

        span = tracer().start_span("execute_tool", attributes={"gen_ai.tool.name": invocation.tool_name})
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                await call_next()
            except BaseException:
                span.set_attribute("tool_status", "error")
                span.set_status(StatusCode.ERROR)
                raise
            envelope = invocation.envelope()
            if isinstance(envelope, ToolError):
                span.set_attribute("tool_status", "error")
                self._telemetry.emit(
                    "affiant.tool_error",
                    {
                        "gen_ai.tool.name": invocation.tool_name,
                        "tool_error.code": envelope.code,
                        "tool_error.retryable": envelope.retryable,
                        "exception.type": "ReturnedToolError",
                    },
                )
                return
            span.set_attribute("tool_status", "empty" if invocation.text() == "" else "ok")
