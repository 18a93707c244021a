"""One span around each tool call (REFERENCE 6.5)."""

from __future__ import annotations

from affiant_core.envelope import ToolError
from affiant_core.pipeline import CallNext, ToolInvocation
from affiant_core.telemetry import Telemetry, tool_span


class ToolTracingFilter:
    """Opens the span ``execute_tool`` and notes how the call ended: ``ok``, ``empty`` or ``error``."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Trace one call. A returned ``ToolError`` is told as an event too; its ``retryable`` is acted on by nobody."""
        with tool_span(invocation.tool_name) as span:
            await call_next()
            envelope = invocation.envelope()
            if not isinstance(envelope, ToolError):
                span.ended("empty" if invocation.text() == "" else "ok")
                return
            span.ended("error")
            self._telemetry.emit(
                "affiant.tool_error",
                {
                    "gen_ai.tool.name": invocation.tool_name,
                    "tool_error.code": envelope.code,
                    "tool_error.retryable": envelope.retryable,
                    "exception.type": "ReturnedToolError",
                },
            )
