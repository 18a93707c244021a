"""No exception reaches a model as text: failures become ``ToolError`` envelopes (seed, "Failures"; DECISIONS 8, 15)."""

from __future__ import annotations

import concurrent.futures
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from affiant_core.envelope import ToolError
from affiant_core.errors import Refusal, SynchronousCallError, ValueRefused, WireupInvalid
from affiant_core.pipeline import VALIDATION_FAILED, CallNext, ToolInvocation, unwritable
from affiant_core.telemetry import Telemetry

log: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """What a kind of exception is called, and the one fixed sentence that is told about it."""

    code: str
    message: str
    retryable: bool = False


TIMED_OUT = ErrorRule("DB_TIMEOUT", "The data source did not answer in time.", retryable=True)
UNAVAILABLE = ErrorRule("UPSTREAM_UNAVAILABLE", "A service that the tool depends on is not available.", retryable=True)
INVALID = ErrorRule(VALIDATION_FAILED, "The call was not valid for this tool.")
UNKNOWN = ErrorRule("UNKNOWN", "The tool failed for a reason that is not known.")

Propagates = Callable[[BaseException], bool]

_SQLALCHEMY_TIMEOUTS = frozenset({"OperationalError", "TimeoutError", "DisconnectionError", "InterfaceError"})
_HTTP_LIBRARIES = frozenset({"httpx", "httpcore", "requests", "urllib3", "aiohttp"})


def classify(error: BaseException, host_rules: Mapping[type[BaseException], ErrorRule] | None = None) -> ErrorRule:
    """The rule for an exception: the host's own, most specific first, then the shapes that are known everywhere.

    Timeouts are ``DB_TIMEOUT``; connection errors and HTTP 503 are ``UPSTREAM_UNAVAILABLE``; both may be retried.
    ``ValueError`` and ``TypeError``, pydantic's errors among them, are ``VALIDATION_FAILED``. The rest is ``UNKNOWN``.
    """
    for kind in type(error).__mro__:
        if host_rules and kind in host_rules:
            return host_rules[kind]
    if isinstance(error, TimeoutError) or _is_sqlalchemy_timeout(error):
        return TIMED_OUT
    if isinstance(error, ConnectionError) or _is_http_outage(error):
        return UNAVAILABLE
    return INVALID if isinstance(error, ValueError | TypeError) else UNKNOWN


def _is_sqlalchemy_timeout(error: BaseException) -> bool:
    kind = type(error)
    return kind.__module__.startswith("sqlalchemy.") and kind.__name__ in _SQLALCHEMY_TIMEOUTS


def _is_http_outage(error: BaseException) -> bool:
    response = _attribute(error, "response")
    statuses = [_attribute(error, name) for name in ("status_code", "status", "code")]
    if 503 in [*statuses, _attribute(response, "status_code"), _attribute(response, "status")]:
        return True
    return any(
        kind.__module__.split(".", 1)[0] in _HTTP_LIBRARIES and _names_an_outage(kind.__name__)
        for kind in type(error).__mro__
    )


def _attribute(owner: object, name: str) -> object:
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001  # a property may raise anything, and classifying must not
        return None


def _names_an_outage(name: str) -> bool:
    return "Timeout" in name or "Connect" in name or name in {"NetworkError", "TransportError"}


class ToolErrorFilter:
    """Outermost of the package's own filters: maps what escapes, retries once where that is safe, leaks nothing.

    Cancellation, the host's wiring faults and a framework's control flow always propagate. After the tool has executed
    its result is kept whatever fails behind it. The full exception goes to the log under the id that the message names.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        rules: Mapping[type[BaseException], ErrorRule] | None = None,
        propagates: Propagates = lambda _: False,
    ) -> None:
        self._telemetry = telemetry
        self._rules = dict(rules or {})
        self._host_propagates = propagates

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Map, and retry once, immediately, only a retryable failure of a body that has not executed (DECISIONS 15)."""
        failure = await self._attempt(invocation, call_next)
        if failure is None:
            return
        error = self._mapped(invocation, failure)
        if error.retryable and invocation.next_is_tool_body:
            failure = await self._attempt(invocation, call_next)
            if failure is None:
                return
            error = self._mapped(invocation, failure, is_retry=True)
        invocation.result = error

    async def _attempt(self, invocation: ToolInvocation, call_next: CallNext) -> Exception | None:
        """The failure to map, or ``None`` when the call has a result to keep."""
        try:
            await call_next()
        except Exception as error:
            if self.propagates(error):
                raise
            if not invocation.tool_executed:
                return error
            keep_result(invocation, self._telemetry, error, "after-tool")
        return None

    def propagates(self, error: BaseException) -> bool:
        """Whether an exception is not the tool's failure but somebody's will: cancellation, wiring, control flow."""
        return (
            isinstance(error, WireupInvalid | SynchronousCallError | concurrent.futures.CancelledError)
            or not isinstance(error, Exception)
            or self._host_propagates(error)
        )

    def _mapped(self, invocation: ToolInvocation, failure: Exception, *, is_retry: bool = False) -> ToolError:
        error = self._to_envelope(invocation, failure)
        if is_retry:
            error = error.model_copy(update={"retryable": False})
        self._telemetry.emit(
            "affiant.tool_error",
            {
                "gen_ai.tool.name": invocation.tool_name,
                "tool_error.code": error.code,
                "tool_error.retryable": error.retryable,
                "exception.type": type(failure).__name__,
            },
        )
        return error

    def _to_envelope(self, invocation: ToolInvocation, error: Exception) -> ToolError:
        reference = log_failure(log, f"Tool {invocation.qualified_name} failed", error)
        if isinstance(error, Refusal):
            return _told(invocation, ErrorRule(error.code.value, error.reason), reference)
        if isinstance(error, ValueRefused):
            return _told(invocation, ErrorRule(INVALID.code, unwritable(error).message), reference)
        return _told(invocation, classify(error, self._rules), reference)


def _told(invocation: ToolInvocation, rule: ErrorRule, reference: str) -> ToolError:
    return ToolError(
        tool_name=invocation.tool_name,
        code=rule.code,
        message=f"{rule.message} (reference {reference})",
        retryable=rule.retryable,
    )


def log_failure(logger: logging.Logger, what: str, error: BaseException) -> str:
    """Write the whole exception to the host's log under a new correlation id, and return the id."""
    reference = secrets.token_hex(6)
    logger.error("%s (reference %s)", what, reference, exc_info=error)
    return reference


def keep_result(invocation: ToolInvocation, telemetry: Telemetry, error: Exception, what: str) -> None:
    """Note a failure behind a tool that has executed; its result stands and the model is told nothing of it."""
    log_failure(log, f"{what} failed after tool {invocation.qualified_name} had executed; its result stands", error)
    telemetry.emit(
        "affiant.extractor.failed",
        {"extractor.type": what, "tool.name": invocation.tool_name, "exception.type": type(error).__name__},
    )
