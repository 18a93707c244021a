"""What is told to operators: the versioned keys of TL-1, emitted as OpenTelemetry events and to the host's listeners.

Attributes carry names and codes, never a field's value. An attribute that is not known is absent, never null.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

log: logging.Logger = logging.getLogger(__name__)

REGISTRY_VERSION = "0.1.0"
"""The version of the key registry below. Keys are added; none is renamed or removed (TL-1)."""

INSTRUMENTATION_SCOPE = "affiant_core"

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
Listener: TypeAlias = Callable[[str, Mapping[str, AttributeValue]], None]


@dataclass(frozen=True, slots=True)
class TelemetryKey:
    """One event: when it was added, what it says, and the attributes that it may carry."""

    since: str
    description: str
    attributes: tuple[str, ...]


def _key(description: str, *attributes: str) -> TelemetryKey:
    return TelemetryKey("0.1.0", description, attributes)


PROTOCOL_KEYS: Mapping[str, TelemetryKey] = {
    "affidavit.filed": _key(
        "A proposal was filed on the Docket, or replayed a row that was there (created is false).",
        "gen_ai.tool.name", "gen_ai.conversation.id", "entry.id", "docket.requirement", "docket.status",
        "affidavit.field_count", "created",
    ),
    "affidavit.refused.substance": _key(
        "A proposal that swears to nothing was refused before filing (GT-3).",
        "gen_ai.tool.name", "gen_ai.conversation.id", "affidavit.field_count", "reason",
    ),
    "coverage.refused": _key(
        "A write tool that the gate cannot stand in front of was refused, or its proposal was blocked (CV-4).",
        "gen_ai.tool.name", "coverage.category", "phase",
    ),
    "docket.transition": _key(
        "A row changed state; told by the one caller whose write did it (DK-1).",
        "entry.id", "gen_ai.conversation.id", "from", "to", "execution", "decision.kind", "attestation.kind", "amended",
    ),
    "docket.expired": _key("A sweep moved a row past its deadline to expired (DK-3).", "entry.id"),
    "decision.unauthorized": _key(
        "An act was refused on identity grounds (AZ-2, AZ-3).",
        "entry.id", "gen_ai.conversation.id", "reason", "principal.kind", "path",
    ),
    "standing-order.fired": _key(
        "A Standing Order approved a write with nobody present (AZ-1).",
        "policy.id", "policy.version", "entry.id", "risk.score",
    ),
    "standing-order.blocked": _key(
        "A Standing Order was not honoured and a person is asked instead (GT-5, PV-4).",
        "policy.id", "policy.version", "blocked.reason", "reason", "provenance.field", "provenance.source",
        "affidavit.empty_mandatory_fields", "risk.score", "risk.threshold",
    ),
    "policy.invalid": _key(
        "A policy broke its contract and the filing was refused (GT-4, CV-1).",
        "policy.id", "policy.version", "option", "reason",
    ),
}  # fmt: skip
"""The nine keys that the protocol publishes (TL-1)."""

OWN_KEYS: Mapping[str, TelemetryKey] = {
    "affiant.tool_error": _key(
        "A tool failed, by raising or by returning a ToolError.",
        "gen_ai.tool.name", "tool_error.code", "tool_error.retryable", "exception.type", "correlation.id",
    ),
    "affiant.extractor.failed": _key(
        "Something failed after the tool had executed; its result was kept.",
        "extractor.type", "tool.name", "exception.type",
    ),
    "affiant.review.filing_failed": _key(
        "A proposal could not be filed; nothing was written.", "tool_error.code", "exception.type", "correlation.id"
    ),
    "affiant.review.broadcast_failed": _key(
        "A card could not be delivered, twice; the row is filed all the same.", "docket.entry_id", "exception.type"
    ),
    "affiant.review.replay_differs": _key(
        "A call replayed a row whose proposal would write something else; the new proposal was not filed.",
        "gen_ai.tool.name", "gen_ai.conversation.id", "entry.id",
    ),
    "affiant.result.cut": _key(
        "A result was larger than the ceiling and was cut for the model.",
        "gen_ai.tool.name", "result.bytes", "result.kept",
    ),
}  # fmt: skip
"""Events of this package beyond the protocol's; their names start with ``affiant.``."""

KEYS: Mapping[str, TelemetryKey] = {**PROTOCOL_KEYS, **OWN_KEYS}


class Telemetry:
    """Emits events on the current span, or on a short span of their own, and hands them to each listener."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._listeners = tuple(listeners)

    def emit(self, key: str, attributes: Mapping[str, AttributeValue | None]) -> None:
        """Emit the event ``key``. Raises ``KeyError`` for a key or attribute that is not in the registry.

        A listener that raises is logged and harms nothing.
        """
        known = KEYS[key].attributes
        for name in attributes:
            if name not in known:
                raise KeyError(f"{key} has no attribute {name}")
        told = {name: value for name, value in attributes.items() if value is not None}
        for listener in (self._to_span, *self._listeners):
            try:
                listener(key, told)
            except Exception:  # spans and listeners are the host's; telling them must not change what is told
                log.exception("A telemetry listener failed on %s", key)

    @staticmethod
    def _to_span(key: str, told: Mapping[str, AttributeValue]) -> None:
        from opentelemetry import trace  # noqa: PLC0415  # imported when it is needed

        span = trace.get_current_span()
        if span.is_recording():
            span.add_event(key, told)
            return
        short = tracer().start_span(key)
        if short.is_recording():  # without the SDK no span ever is
            short.add_event(key, told)
        short.end()


@functools.cache
def tracer() -> Tracer:
    """The tracer of this package. Without the SDK, which is the host's to install, it does nothing."""
    from opentelemetry import trace  # noqa: PLC0415  # imported when it is needed

    return trace.get_tracer(INSTRUMENTATION_SCOPE)


class ToolSpan:
    """The span around one tool call."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def ended(self, status: Literal["ok", "empty", "error"]) -> None:
        """Note how the call ended."""
        self._span.set_attribute("tool_status", status)


@contextmanager
def tool_span(tool_name: str) -> Generator[ToolSpan]:
    """The span ``execute_tool`` around a call; an exception marks it as an error and goes on (REFERENCE 6.5).

    The exception's text is not recorded: it may hold values.
    """
    from opentelemetry import trace  # noqa: PLC0415  # imported when it is needed

    span = tracer().start_span("execute_tool", attributes={"gen_ai.tool.name": tool_name})
    if span is trace.INVALID_SPAN:  # nobody records, and there is no trace for anything to belong to
        yield ToolSpan(span)
        return
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield ToolSpan(span)
        except BaseException:
            span.set_attribute("tool_status", "error")
            span.set_status(trace.StatusCode.ERROR)
            raise
