"""One call in two stages, for frameworks with two hooks around it (seed, "Where this fits"; DECISIONS 9, 13).

The inner hook runs the invocation stage and hands the framework something to carry; the outer one runs the completion
stage, where the gate is, on what the thing stands for. A framework shows what it carries to its spans and to the host's
own hooks, so a proposal crosses as a refusal, which is true should the completion be left out.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from affiant_core.affiant import Affiant
from affiant_core.bridge.results import model_text, whole_text
from affiant_core.bridge.wiring import require_affiant
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.envelope import ToolEnvelope, ToolError, WriteProposal
from affiant_core.errors import WireupInvalid
from affiant_core.filters.failures import keep_result
from affiant_core.pipeline import (
    VALIDATION_FAILED,
    Body,
    Pipeline,
    ResultReader,
    Stage,
    ToolInvocation,
    holds_proposal,
    unreviewed,
)

log: logging.Logger = logging.getLogger(__name__)

_ANSWERS: ContextVar[list[str] | None] = ContextVar("affiant_answers", default=None)
"""What the gate has answered to calls inside a call's body. It links the two, and nothing finds a turn in it."""

_HANDOVER: ContextVar[Handover | None] = ContextVar("affiant_handover", default=None)
"""The call whose outer hook waits for its inner one. It links the two frames, and nothing finds a turn in it."""


def awaits_review(invocation: ToolInvocation) -> bool:
    """Whether only the completion may show what comes of a result: it holds a proposal, or ought to be one (CV-2)."""
    if invocation.cleared is not None and invocation.cleared is invocation.result:
        return False
    envelope = invocation.envelope()
    if isinstance(envelope, WriteProposal) or (invocation.is_declared_write and not isinstance(envelope, ToolError)):
        return True
    return holds_proposal(invocation)


def stand_in(invocation: ToolInvocation) -> str:
    """What is shown in the place of a result that awaits its review."""
    return unreviewed(invocation).to_json_string()


@dataclass(slots=True, eq=False)
class Handover:
    """What the two stages of one call have between them. The host's own hooks may run the inner one many times."""

    outer: Any
    """The call as the framework's outer hook sees it."""
    hosts: Mapping[str, object] = field(default_factory=dict)
    """The host's own arguments, which are not the model's even where a parameter has their name."""
    handed: list[tuple[object, ToolInvocation]] = field(default_factory=list)
    """What the framework was given to carry, and what each of it stands for."""
    fault: Exception | None = None
    """What left the invocation stage as an exception, should the framework make a text of it."""

    def give(self, invocation: ToolInvocation) -> object:
        """What the framework may carry: a stand-in, an envelope's text in full, or the result as it is."""
        given = invocation.result
        if awaits_review(invocation):
            given = stand_in(invocation)
        elif (content := invocation.text()) is not None:
            given = content.to_json_string() if isinstance(content, ToolEnvelope) else (content or given)
        self.handed.append((given, invocation))
        return given


class Stages:
    """Both stages of one host's calls. ``carry_arguments`` hands the second the model's arguments; by default, none.

    ``cancelled`` is the framework's own word for cancellation, which the invocation stage lets through. ``package`` is
    the framework's, whose exceptions may have a fault of the host for their cause.

    Raises ``TypeError`` for anything but an ``Affiant``.
    """

    def __init__(
        self,
        affiant: Affiant,
        *,
        carry_arguments: bool = False,
        cancelled: type[BaseException] | tuple[type[BaseException], ...] = (),
        package: str,
    ) -> None:
        self._affiant = require_affiant(affiant, "a bridge")
        self._carry_arguments = carry_arguments
        self._package = package

        def is_will(error: BaseException) -> bool:
            return isinstance(error, cancelled) or self.host_fault(error) is not None

        self._invocation: Pipeline = affiant.pipeline(is_will, stage=Stage.INVOCATION)
        self._completion: Pipeline = affiant.pipeline(stage=Stage.COMPLETION)

    def host_fault(self, error: BaseException | None) -> WireupInvalid | None:
        """The host's fault in an exception, out of what the framework has wrapped around it (DECISIONS 13)."""
        while error is not None and not isinstance(error, WireupInvalid):
            error = error.__cause__ if type(error).__module__.split(".", 1)[0] == self._package else None
        return error

    # --- the hooks -------------------------------------------------------------------------------------------------

    async def around(
        self,
        call: ToolInvocation,
        handover: Handover,
        proceed: Callable[[], Awaitable[object]],
        result: Callable[[], object],
    ) -> ToolInvocation:
        """The outer hook: let the framework ``proceed`` to the inner one, and complete the ``result`` it has then.

        What a host's own hook raises is answered, or outlived by what has executed: out of here it would leave a turn
        with half its answers. Raises the host's faults, ``WireupInvalid``.
        """
        failure: Exception | None = None
        token = _HANDOVER.set(handover)
        try:
            await proceed()
        except Exception as error:  # noqa: BLE001  # it is answered below, or is the host's fault
            failure = error
        finally:
            _HANDOVER.reset(token)
        if fault := self.host_fault(handover.fault) or self.host_fault(failure):
            raise fault
        return await self.resume(call, handover, result(), failure)

    @contextmanager
    def inside(self, is_own: Callable[[Any], bool]) -> Iterator[Handover | None]:
        """The inner hook: the handover of its own call if an outer hook waits for it, ``None`` for any other call.

        ``is_own`` tells from what the outer hook sees whether it is the same call. What the body calls is never.
        """
        handover = _HANDOVER.get()
        if handover is not None and not is_own(handover.outer):
            handover = None
        token = _HANDOVER.set(None)
        try:
            yield handover
        except Exception as error:
            if handover is not None:
                handover.fault = error
            raise
        finally:
            _HANDOVER.reset(token)

    # --- the stages ------------------------------------------------------------------------------------------------

    async def invoke(self, invocation: ToolInvocation, body: Body) -> None:
        """Run the invocation stage. A body that hands back the gate's answer to its own call files nothing again."""
        answers: list[str] = []
        token = _ANSWERS.set(answers)
        try:
            await self._invocation.run(invocation, body)
        finally:
            _ANSWERS.reset(token)
        if answers and (told := invocation.text()) in answers:
            invocation.result = invocation.cleared = told

    async def resume(
        self, call: ToolInvocation, handover: Handover, result: object, failure: Exception | None
    ) -> ToolInvocation:
        """Run the completion stage on what became of ``call`` between the stages.

        ``result`` is what the framework has carried to its outer hook: what it was given, or something that a hook has
        put there, which is gated like any result. ``failure`` is what a hook has raised; what has executed outlives it.
        """
        if failure is not None and handover.handed:
            call = handover.handed[-1][1]
            keep_result(call, self._affiant.telemetry, failure, "between-stages")
            return await self.complete(call)
        if failure is None:
            for given, handed in reversed(handover.handed):
                if given is result:
                    return await self.complete(handed)
            call.result = result
        return await self.complete(call, failure or handover.fault)

    async def complete(self, call: ToolInvocation, failure: Exception | None = None) -> ToolInvocation:
        """Run the completion stage, where the gate is, unless there is nothing for it to do.

        Nothing is to be done about what the gate has answered already, and about a read without a proposal.
        """
        if failure is None and not awaits_review(call) and (call.cleared is not None or not call.is_declared_write):
            return call

        async def body() -> object:
            if failure is not None:
                raise failure
            return call.result

        arguments = dict(call.arguments) if self._carry_arguments else {}
        completion = replace(call, arguments=arguments, next_is_tool_body=False, tool_executed=False)
        await self._completion.run(completion, body)
        answers = _ANSWERS.get()
        if answers is not None and (text := self._text(completion)) is not None:
            completion.result = text  # as a body that made this call gets it
            answers.append(text)
        return completion

    def told(self, invocation: ToolInvocation, *, to_model: bool = True) -> object:
        """What a model is given: text wherever there is one, and nothing that would fail when it is copied or written.

        A host's own function always answers with text (DECISIONS 5, 20); a framework's own keeps its plain data. What
        is not ``to_model`` but to whoever called a framework's own function keeps what text is wrapped in, too.
        """
        if invocation.descriptor is not None and invocation.descriptor.function is not None:
            affiant = self._affiant
            return whole_text(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
        if not to_model and not isinstance(invocation.result, str) and invocation.envelope() is None:
            return invocation.result
        text = self._text(invocation)
        if text is not None:
            return text
        try:
            str(deepcopy(invocation.result))
        except Exception:  # an object of the host's may refuse to be copied or written in any way
            log.exception("The result of %s cannot be shown to a model", invocation.qualified_name)
            fault = "The tool produced a result that cannot be shown."
            return ToolError(tool_name=invocation.tool_name, code=VALIDATION_FAILED, message=fault).to_json_string()
        return invocation.result

    def _text(self, invocation: ToolInvocation) -> str | None:
        return model_text(invocation, ceiling=self._affiant.result_ceiling, telemetry=self._affiant.telemetry)


async def drained(value: object, *, offloads: bool) -> list[object] | None:
    """The parts of a stream, since nothing of it may be shown before all of it is known; ``None`` for no stream."""
    if inspect.isasyncgen(value):
        return [part async for part in value]
    if not inspect.isgenerator(value):
        return None
    return await ASYNCHRONOUS.offload(list, value) if offloads else list(value)


def joined(parts: list[object], reader: ResultReader) -> object:
    """The parts of a stream as one result: their text if all have one, so that no proposal hides between two parts."""
    texts = [reader(part) for part in parts]
    return "".join(map(str, texts)) if parts and all(isinstance(text, str) for text in texts) else parts


async def again(parts: Iterable[object]) -> AsyncIterator[object]:
    """A stream of what was drained."""
    for part in parts:
        yield part


def is_blocking(method: object) -> TypeGuard[Callable[..., Any]]:
    """Whether a function's body would hold up an event loop."""
    return callable(method) and not inspect.iscoroutinefunction(method) and not inspect.isasyncgenfunction(method)


def in_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose body, or generator, runs in a worker thread, with the caller's context variables."""

    def run(arguments: Mapping[str, Any]) -> Any:
        result = method(**arguments)
        return list(result) if inspect.isgenerator(result) else result

    async def offloaded(**arguments: Any) -> Any:
        return await ASYNCHRONOUS.offload(run, arguments)

    return offloaded
