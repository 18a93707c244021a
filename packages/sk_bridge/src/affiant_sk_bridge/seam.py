"""The seam: two closures on a kernel, one in each of its filter lists, and one call in two stages between them.

Every invocation of a function meets the function filter, which runs the invocation stage. A chat loop's call meets the
auto filter around it, which runs the completion stage, where the gate is; any other call completes in the function
filter. A proposal goes from one to the other in a frame that only this call can reach, so that what lies between, spans
and the host's own filters, sees a refusal in its place. No turn is ever looked up in a context variable.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from semantic_kernel.exceptions import OperationCancelledException
from semantic_kernel.filters import AutoFunctionInvocationContext, FunctionInvocationContext
from semantic_kernel.functions import FunctionResult, KernelArguments, KernelFunction, KernelFunctionFromMethod

from affiant_core import Affiant, RefusalCode, ToolEnvelope, ToolError, ToolInvocation, TurnContext, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.envelope import recognise
from affiant_core.filters.failures import keep_result
from affiant_core.pipeline import VALIDATION_FAILED, Pipeline, Stage
from affiant_core.registry import ToolDescriptor
from affiant_sk_bridge.arguments import REMEDY, carried, fresh, sent_by_model, turn_in, with_hidden_turn
from affiant_sk_bridge.functions import CALL, BoundKernelFunction, is_made_by
from affiant_sk_bridge.results import awaits_review, read_result, text_of_parts

log: logging.Logger = logging.getLogger(__name__)

Step: TypeAlias = Callable[[Any], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Frame:
    """One call of a chat loop, as its auto filter sees it."""

    context: AutoFunctionInvocationContext
    function: KernelFunction
    admission: tuple[ToolDescriptor, TurnContext]
    hosts: Mapping[str, object]
    """The host's own arguments, which are not the model's even where a parameter has their name."""
    handed: list[tuple[object, ToolInvocation]] = field(default_factory=list)
    """What the function filter gave Semantic Kernel, and the invocation that it stands for."""
    fault: Exception | None = None


@dataclass(slots=True, eq=False)
class _Call:
    """One call on its way through the invocation stage, up to its body and back."""

    context: FunctionInvocationContext
    invocation: ToolInvocation
    arguments: KernelArguments
    hosts: Mapping[str, object]
    offload_sync_bodies: bool
    given: object = field(default_factory=object)
    """What host filters inside the seam see in the place of ``returned``."""
    returned: object = None
    parts: list[object] | None = None
    """What a streaming body returned."""
    filed: list[object] = field(default_factory=list)
    """The gate's answers to calls that the body made."""

    async def body(self, proceed: Step) -> object:
        """The pipeline's body: the host's filters inside the seam, and the function's own."""
        context = self.context
        context.arguments = fresh(context.function, self.arguments, self.invocation.turn)
        context.result = None
        await self._around(proceed)(context)
        found = None if context.result is None else context.result.value
        if found is not self.given:
            self.returned = await self._drained(found)
        return self.returned

    def _around(self, step: Any) -> Step:
        """Semantic Kernel's stack of filters, with this call in the place of the function at its end.

        A bound function asks for the call itself. In a stack of another shape a native function runs as it stands.
        """
        if isinstance(step, functools.partial) and "next" in step.keywords:
            inner = self._around(step.keywords["next"])
            return functools.partial(step.func, *step.args, **{**step.keywords, "next": inner})
        if isinstance(self.context.function, BoundKernelFunction):
            return cast(Step, step)
        return self.enter if getattr(step, "__self__", None) is self.context.function else cast(Step, step)

    async def enter(self, context: FunctionInvocationContext) -> None:
        """Run the function's own body, and show the filters around it a refusal in the place of a proposal."""
        function, invocation = context.function, self.invocation
        try:
            invocation.arguments = carried(function, context.arguments, self.hosts)  # with what filters changed
            if isinstance(function, BoundKernelFunction):
                own = deepcopy(invocation.arguments)
                value = await function.bound.call(ASYNCHRONOUS, own, invocation.turn)
            else:
                await self._native(function)(context)
                value = await self._drained(None if context.result is None else context.result.value)
                if isinstance(value, list) and getattr(function, "stream_method", None) is not None:
                    text = text_of_parts(value)  # the parts of a generator that a plain invocation has listed
                    value = text if isinstance(text, str) and recognise(text) else value
        except shared.ArgumentsRefused as refused:
            value = shared.invalid_arguments(invocation.tool_name, refused.places)
        invocation.result = self.returned = value
        is_open = awaits_review(invocation)
        self.given = _stand_in(invocation) if is_open else value
        if self.parts is not None:
            self.given = _again([self.given] if is_open else self.parts)
        context.result = _bare(function, self.given)

    def _native(self, function: KernelFunction) -> Step:
        if self.context.is_streaming:
            return function._invoke_internal_stream
        if self.offload_sync_bodies and isinstance(function, KernelFunctionFromMethod):
            method = function.method
            if not inspect.iscoroutinefunction(method) and not inspect.isasyncgenfunction(method):
                # A copy for this one call, since the function may serve other kernels and other threads.
                function = function.model_copy(update={"method": _offloaded(method)})
        return function._invoke_internal

    async def _drained(self, value: object) -> object:
        """A stream as one result, since nothing of it may be shown before all of it is known."""
        self.parts = None
        if inspect.isasyncgen(value):
            self.parts = [part async for part in value]
        elif inspect.isgenerator(value):
            self.parts = await ASYNCHRONOUS.offload(list, value) if self.offload_sync_bodies else list(value)
        else:
            return value
        return text_of_parts(self.parts)


_FRAME: ContextVar[_Frame | None] = ContextVar("affiant_sk_frame", default=None)


class Seam:
    """One host's bridge on a kernel and on every clone of it."""

    def __init__(self, affiant: Affiant, *, carry_arguments: bool, offload_sync_bodies: bool) -> None:
        self.affiant: Affiant = affiant
        self.carry_arguments: bool = carry_arguments
        self.offload_sync_bodies: bool = offload_sync_bodies
        self.invocation_stage: Pipeline = affiant.pipeline(_is_will, stage=Stage.INVOCATION)
        self.completion_stage: Pipeline = affiant.pipeline(_is_host_fault, stage=Stage.COMPLETION)

    def admit(self, function: KernelFunction, arguments: Mapping[str, object]) -> tuple[ToolDescriptor, TurnContext]:
        """Let a call in before any body (DECISIONS 12, 13). Raises ``WireupInvalid``."""
        bound = function.bound.descriptor if isinstance(function, BoundKernelFunction) else None
        name, plugin = (bound.name, bound.plugin) if bound else (function.name, function.plugin_name)
        admission = shared.admitted(self.affiant, name, turn_in, arguments, plugin=plugin, remedy=REMEDY)
        if admission[0].function is not (bound.function if bound else None):
            raise WireupInvalid(f"{function.fully_qualified_name!r} is not the function that was declared so.")
        return admission

    def passes(self, function: KernelFunction) -> bool:
        """Whether nothing is declared about a function and need not be: a prompt, or an orchestration's own step."""
        is_free = function.is_prompt or is_made_by(function, "semantic_kernel.agents.orchestration.handoffs")
        return is_free and self.affiant.registry.find_exact(function.name, function.plugin_name) is None

    # --- the auto filter -------------------------------------------------------------------------------------------

    async def auto(self, context: AutoFunctionInvocationContext, proceed: Step) -> None:
        """Carry a chat loop's call: admission before it, the completion stage behind it.

        Raises nothing but the host's faults, ``WireupInvalid``; an exception would leave a turn with half its answers.
        """
        function = context.function
        if self.passes(function):
            await proceed(context)
            if context.function_result is not None:  # its metadata would carry the host's arguments into the history
                context.function_result = _bare(function, context.function_result.value)
            return
        admission = self.admit(function, context.arguments)
        call = _invocation(function, admission)
        try:
            sent = sent_by_model(function, context)
        except shared.ArgumentsRefused as refused:
            call.result = shared.invalid_arguments(call.tool_name, refused.places)
            context.function_result = _bare(function, self._shown(call))
            return
        hosts = {name: value for name, value in context.arguments.items() if name not in sent}
        frame = _Frame(context, function, admission, hosts)
        token = _FRAME.set(frame)
        failure: Exception | None = None
        try:
            await proceed(context)
        except Exception as error:  # noqa: BLE001  # a host's filter failed: it is mapped below, or raised again
            failure = error
        finally:
            _FRAME.reset(token)
        call, failure = self._outcome(frame, call, failure)
        completed = await self._complete(call, failure)
        context.function_result = _bare(function, self._for_model(completed))
        context.terminate = context.terminate or completed.terminate

    def _outcome(
        self, frame: _Frame, call: ToolInvocation, failure: Exception | None
    ) -> tuple[ToolInvocation, Exception | None]:
        """What the gate gets to see: what the function filter handed over, what a host put there, or a failure."""
        for fault in (frame.fault, failure):
            if fault is not None and _is_host_fault(fault):
                return call, fault
        if failure is not None:
            if not frame.handed:
                return call, failure
            call = frame.handed[-1][1]
            keep_result(call, self.affiant.telemetry, failure, "auto-filter")
            return call, None
        result = frame.context.function_result
        call.result = None if result is None else result.value
        for given, handed in reversed(frame.handed):
            if given is call.result:
                return handed, None
        return call, frame.fault

    # --- the function filter ---------------------------------------------------------------------------------------

    async def function(self, context: FunctionInvocationContext, proceed: Step) -> None:
        """Carry any invocation through the invocation stage, and through the other if no auto filter waits for it."""
        frame = _FRAME.get()
        if frame is not None and not (
            frame.context.function is context.function and frame.context.arguments is context.arguments
        ):
            frame = None  # another call, which a host's filter made in the loop's own
        token = _FRAME.set(None)  # what the body calls is not what the loop called
        try:
            if self.passes(context.function):
                context.arguments = with_hidden_turn(context.arguments)
                await proceed(context)
                if context.result is not None:
                    context.result.metadata.pop("arguments", None)
            else:
                await self._invoke(context, proceed, frame)
        except Exception as error:
            if frame is not None:
                frame.fault = error  # Semantic Kernel makes text of it on the way to the auto filter
            raise
        finally:
            _FRAME.reset(token)

    async def _invoke(self, context: FunctionInvocationContext, proceed: Step, frame: _Frame | None) -> None:
        function = context.function
        is_admitted = frame is not None and frame.function is function  # unless a host's filter put another in
        admission = frame.admission if frame is not None and is_admitted else self.admit(function, context.arguments)
        invocation = _invocation(function, admission)
        hosts = {} if frame is None else frame.hosts
        call = _Call(context, invocation, context.arguments, hosts, self.offload_sync_bodies)
        try:
            invocation.arguments = carried(function, context.arguments, call.hosts)
        except shared.ArgumentsRefused as refused:
            invocation.result = shared.invalid_arguments(invocation.tool_name, refused.places)
            context.result = _bare(function, self._shown(invocation))
            return
        token = CALL.set(call)
        try:
            await self.invocation_stage.run(invocation, functools.partial(call.body, proceed))
        finally:
            CALL.reset(token)
        if isinstance(invocation.result, str) and invocation.result in call.filed:
            invocation.cleared = invocation.result  # the gate's answer to a call in the body is not filed again
        if frame is None:
            completed = await self._complete(invocation, None)
            is_stream = call.parts is not None and completed.result is call.returned
            context.result = _bare(function, _again(call.parts or []) if is_stream else self._shown(completed))
        else:
            must_wait = invocation.cleared is None and awaits_review(invocation)
            given = _stand_in(invocation) if must_wait else _uncut(invocation)
            frame.handed.append((given, invocation))
            context.result = _bare(function, given)

    # --- both ------------------------------------------------------------------------------------------------------

    async def _complete(self, call: ToolInvocation, failure: Exception | None) -> ToolInvocation:
        """The completion stage: the gate, with no arguments unless the host opted in (DECISIONS 9)."""
        if failure is None and call.cleared is not None and call.cleared is call.result:
            return call
        completion = replace(
            call,
            arguments=dict(call.arguments) if self.carry_arguments else {},
            next_is_tool_body=False,
            tool_executed=False,
        )

        async def body() -> object:
            if failure is not None:
                raise _wiring_fault(failure) or failure
            return call.result

        await self.completion_stage.run(completion, body)
        outer = CALL.get()
        if isinstance(outer, _Call) and failure is None and awaits_review(call):
            completion.result = self._shown(completion)
            outer.filed.append(completion.result)
        return completion

    def _shown(self, invocation: ToolInvocation) -> object:
        """What Semantic Kernel is given: an envelope as its text, anything else as the tool returned it."""
        if invocation.envelope() is None and invocation.plugin and not isinstance(invocation.result, str):
            return invocation.result
        return self._for_model(invocation) if invocation.text() is not None else invocation.result

    def _for_model(self, invocation: ToolInvocation) -> object:
        """The same for a chat loop: text where there is one, and nothing that would fail when it is copied."""
        text = shared.model_text(invocation, ceiling=self.affiant.result_ceiling, telemetry=self.affiant.telemetry)
        if text is not None:
            return text
        try:
            deepcopy(invocation.result)
            str(invocation.result)
        except Exception:
            log.exception("The result of %s cannot be shown to a model", invocation.qualified_name)
            fault = "The tool produced a result that cannot be shown."
            return ToolError(tool_name=invocation.tool_name, code=VALIDATION_FAILED, message=fault).to_json_string()
        return invocation.result


def _invocation(function: KernelFunction, admission: tuple[ToolDescriptor, TurnContext]) -> ToolInvocation:
    descriptor, turn = admission
    plugin = "" if isinstance(function, BoundKernelFunction) else function.plugin_name
    return ToolInvocation(descriptor.name, turn, plugin=plugin, descriptor=descriptor, reader=read_result)


def _bare(function: KernelFunction, value: object) -> FunctionResult:
    """A result with nothing beside it: Semantic Kernel's own carries the host's arguments into the history."""
    return FunctionResult(function=function.metadata, value=value)


def _stand_in(invocation: ToolInvocation) -> str:
    """What is seen of a proposal between the stages; should the completion stage be left out, it is true."""
    message = "The proposal did not pass the review gate, so nothing was filed. The host must mend its filters."
    code = RefusalCode.WIREUP_INVALID.value
    return ToolError(tool_name=invocation.tool_name, code=code, message=message).to_json_string()


def _uncut(invocation: ToolInvocation) -> object:
    """What needs no review, for whatever stands between the stages: the size of it is the completion's business."""
    content = invocation.text()
    return content.to_json_string() if isinstance(content, ToolEnvelope) else (content or invocation.result)


def _offloaded(method: Callable[..., Any]) -> Callable[..., Any]:
    """A synchronous method's body in a worker thread, with the caller's context variables."""

    def run(arguments: Mapping[str, Any]) -> Any:
        result = method(**arguments)
        return list(result) if inspect.isgenerator(result) else result

    async def offloaded(**arguments: Any) -> Any:
        return await ASYNCHRONOUS.offload(run, arguments)

    return offloaded


async def _again(parts: Sequence[object]) -> AsyncIterator[object]:
    for part in parts:
        yield part


def _wiring_fault(error: BaseException | None) -> WireupInvalid | None:
    """The host's fault in an exception, out of what Semantic Kernel wrapped around it."""
    while error is not None and not isinstance(error, WireupInvalid):
        error = error.__cause__ if type(error).__module__.startswith("semantic_kernel.") else None
    return error


def _is_host_fault(error: BaseException) -> bool:
    return _wiring_fault(error) is not None


def _is_will(error: BaseException) -> bool:
    """What the function filter lets through: the host's faults, and Semantic Kernel's own word for cancellation."""
    return isinstance(error, OperationCancelledException) or _is_host_fault(error)
