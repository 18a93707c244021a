"""The seam: a filter in each of a kernel's two lists, and one call in two stages between them.

Every invocation meets the function filter, which runs the invocation stage. A chat loop's call meets the auto filter
around it, which runs the completion stage, where the gate is; any other call completes in the function filter.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from semantic_kernel.contents import ChatMessageContent, TextContent
from semantic_kernel.exceptions import OperationCancelledException
from semantic_kernel.filters import AutoFunctionInvocationContext, FunctionInvocationContext
from semantic_kernel.functions import FunctionResult, KernelArguments, KernelFunction

from affiant_core import Affiant, ToolEnvelope, ToolInvocation, TurnContext, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.envelope import recognise
from affiant_core.pipeline import read_plain
from affiant_sk_bridge.functions import BoundKernelFunction, carried, declared_as, parameters_of, turn_in, with_turn

Step: TypeAlias = Callable[[Any], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Call:
    """One call on its way through the invocation stage, up to its body and back."""

    context: FunctionInvocationContext
    function: KernelFunction
    invocation: ToolInvocation
    arguments: KernelArguments
    hosts: Mapping[str, object]
    offloads: bool
    is_filtered: bool = False  # filters of the host stand inside the seam, and may change the arguments
    given: object = field(default_factory=object)
    """What host filters inside the seam see in the place of ``returned``."""
    returned: object = None
    parts: list[object] | None = None  # what a streaming body returned

    async def body(self, proceed: Step) -> object:
        """The pipeline's body: the host's filters inside the seam, and the function's own."""
        context = self.context
        context.arguments = with_turn(self.function, self.arguments, self.invocation.turn)
        if context.result is not None:
            context.result = None
        await self._around(proceed)(context)
        found = _value(context.result)
        if found is not self.given:
            self.returned = await self._drained(found)
        return self.returned

    def _around(self, step: Any) -> Step:
        """The filters of the host, with this call in the function's place. In another kind of stack it stays there."""
        if isinstance(step, functools.partial) and "next" in step.keywords:
            self.is_filtered, inner = True, self._around(step.keywords["next"])
            return functools.partial(step.func, *step.args, **{**step.keywords, "next": inner})
        return self._enter if getattr(step, "__self__", None) is self.function else cast(Step, step)

    async def _enter(self, context: FunctionInvocationContext) -> None:
        """Run the function's own body, and show the filters around it a refusal in the place of a proposal."""
        function, invocation = self.function, self.invocation
        try:
            if self.is_filtered:
                invocation.arguments = carried(function, context.arguments, self.hosts)
            if isinstance(function, BoundKernelFunction):
                value = await function.bound.call(ASYNCHRONOUS, invocation.arguments, invocation.turn)
            else:
                value = await self._native(function)
        except shared.ArgumentsRefused as refused:
            value = shared.invalid_arguments(invocation.tool_name, refused.places)
        invocation.next_is_tool_body = False  # it has run: whatever a filter around it raises, it does not run again
        invocation.result = self.returned = value
        is_open = shared.awaits_review(invocation)
        self.given = shared.stand_in(invocation) if is_open else value
        if self.parts is not None:
            self.given = shared.again([self.given] if is_open else self.parts)
        _put(context, "result", self.given)

    async def _native(self, function: KernelFunction) -> object:
        context, method = self.context, getattr(function, "method", None)
        if context.is_streaming:
            await function._invoke_internal_stream(context)
        elif self.offloads and shared.is_blocking(method):  # in a copy, since the function may serve other kernels
            await function.model_copy(update={"method": shared.in_thread(method)})._invoke_internal(context)
        else:
            await function._invoke_internal(context)
        value = await self._drained(_value(context.result))
        if isinstance(value, list) and getattr(function, "stream_method", None) is not None:
            text = shared.joined(value, _read)  # the parts of a generator that a plain invocation has listed
            return text if isinstance(text, str) and recognise(text) else value
        return value

    async def _drained(self, value: object) -> object:
        self.parts = await shared.drained(value, offloads=self.offloads)
        return value if self.parts is None else shared.joined(self.parts, _read)


class Seam:
    """One host's bridge on a kernel and on every clone of it. Its methods ``auto`` and ``function`` are the filters."""

    def __init__(self, affiant: Affiant, carry_arguments: bool, offload_sync_bodies: bool) -> None:
        self.affiant: Affiant = affiant
        self.options: tuple[Affiant, bool, bool] = (affiant, carry_arguments, offload_sync_bodies)
        self._stages = shared.Stages(
            affiant, carry_arguments=carry_arguments, cancelled=OperationCancelledException, package="semantic_kernel"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Seam:
        return self  # a kernel's clone copies its filters, and has the same Docket

    def passes(self, function: KernelFunction) -> bool:
        """Whether nothing is declared about a function and need not be: a prompt, or an orchestration's own step."""
        if self.affiant.registry.find_exact(function.name, function.plugin_name) is not None:
            return False
        method = getattr(function, "method", None)
        return function.is_prompt or shared.is_made_by(method, "semantic_kernel.agents.orchestration.handoffs")

    def _admitted(self, function: KernelFunction, arguments: Mapping[str, object]) -> ToolInvocation:
        """Let a call in before any body (DECISIONS 12, 13). Raises ``WireupInvalid``."""
        (name, plugin, own), remedy = declared_as(function), "Pass it so: KernelArguments(affiant_turn=turn)."
        descriptor, turn = shared.admitted(self.affiant, name, turn_in, arguments, plugin=plugin, remedy=remedy)
        if descriptor.function is not own:
            raise WireupInvalid(f"{function.fully_qualified_name!r} is not the function that was declared so.")
        return ToolInvocation(name, turn, plugin="" if own else plugin or "", descriptor=descriptor, reader=_read)

    async def auto(self, context: AutoFunctionInvocationContext, next: Step) -> None:
        """Carry a chat loop's call: admission before it, the completion stage behind it."""
        function, content, arguments = context.function, context.function_call_content, context.arguments
        if self.passes(function):
            await next(context)
            _put(context, "function_result", _value(context.function_result))
            return
        call = self._admitted(function, arguments)
        try:
            sent = shared.sent_arguments((content and content.arguments) or {}, parameters_of(function))
        except shared.ArgumentsRefused as refused:
            call.result = shared.invalid_arguments(call.tool_name, refused.places)
        else:
            hosts = {name: value for name, value in arguments.items() if name not in sent}
            handover, proceed = shared.Handover(context, hosts), functools.partial(next, context)
            call = await self._stages.around(call, handover, proceed, lambda: _value(context.function_result))
        _put(context, "function_result", self._stages.told(call))
        context.terminate = context.terminate or call.terminate

    async def function(self, context: FunctionInvocationContext, next: Step) -> None:
        """Carry any invocation through the invocation stage, and through the other if no auto filter waits for it."""
        function, given, stages = context.function, context.arguments, self._stages
        with stages.inside(lambda outer: outer.function is function and outer.arguments is given) as handover:
            if self.passes(function):
                if isinstance(turn := turn_in(given), TurnContext):  # for the functions that a template calls
                    context.arguments = with_turn(function, given, turn)
                await next(context)
                if context.result is not None:
                    context.result.metadata.pop("arguments", None)
                return
            invocation = self._admitted(function, given)
            call = _Call(context, function, invocation, given, handover.hosts if handover else {}, self.options[2])
            try:
                invocation.arguments = carried(function, given, call.hosts)
            except shared.ArgumentsRefused as refused:
                invocation.result = shared.invalid_arguments(invocation.tool_name, refused.places)
            else:
                await stages.invoke(invocation, functools.partial(call.body, next))
            if handover is not None:
                _put(context, "result", handover.give(invocation))
                return
            completed = await stages.complete(invocation)
            is_stream = call.parts is not None and completed.result is call.returned
            told = shared.again(call.parts or ()) if is_stream else stages.told(completed, to_model=False)
            _put(context, "result", told)


def _read(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of; ``None`` when it is something else, or several things."""
    if isinstance(result, str | ToolEnvelope):
        return result
    match result:
        case TextContent(text=text):
            return text
        case FunctionResult(value=only) | ChatMessageContent(items=[only]):
            return _read(only)
        case [(TextContent() | ChatMessageContent()) as only]:  # as an MCP server's tool and a prompt answer
            return _read(only)
        case _:
            return read_plain(result)


def _value(result: FunctionResult | None) -> object:
    return None if result is None else result.value


def _put(context: Any, attribute: str, value: object) -> None:
    """A result with nothing beside it: Semantic Kernel's own carries the host's arguments into the history."""
    there = getattr(context, attribute)
    if there is None or there.value is not value or there.metadata:
        setattr(context, attribute, FunctionResult(function=context.function.metadata, value=value))
