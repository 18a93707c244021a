"""The seam: the pipeline runs inside ``on_invoke_tool`` of a tool, the one thing that every kind of run awaits.

What stands outside it (hooks, guardrails, items, sessions, spans) sees what the gate made of a proposal. The SDK parses
no arguments before the seam, so the model's own text is parsed here, strictly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from weakref import WeakSet

from agents import AgentsException, FunctionTool, ModelBehaviorError, ToolOutputText, ToolTimeoutError
from agents.tool import FunctionToolCustomDataContext
from agents.tool_context import ToolContext

from affiant_core import Affiant, ToolEnvelope, ToolInvocation, TurnContext, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.filters.tracing import ToolTracingFilter
from affiant_core.pipeline import Pipeline, read_plain
from affiant_core.registry import ToolDescriptor
from affiant_core.values import JSON

TurnOf: TypeAlias = Callable[[ToolContext[Any]], object]

Body: TypeAlias = Callable[[ToolContext[Any], str, dict[str, JSON], TurnContext], Awaitable[object]]
"""What a tool does: with its context, the model's text, the same parsed, and the turn."""

CUSTOM_DATA = "affiant"
"""What a call leaves on its output item for the agent when it asks to end the turn; a model is never given it."""

_REMEDY = "Pass it to the run: Runner.run(agent, ..., context=turn); a resumed run needs it again."


def turn_from_context(context: ToolContext[Any]) -> object:
    """What the host passed as ``Runner.run(..., context=...)``. It is checked, never repaired (CV-2)."""
    return context.context


class HostFault(WireupInvalid, AgentsException):
    """Raised out of a run for a fault of the host. The SDK lets an exception of its own kind through as it is."""


class Invoker:
    """The ``on_invoke_tool`` of a wired tool. Copies of the tool share it, so they are wired as well.

    ``takes`` are the names of the parameters, where the tool ignores all others. ``limit`` is in seconds for one
    attempt; ``raises`` says that the host wants to hear of it. It raises for that, for cancellation and for faults of
    the host (DECISIONS 12, 13), and for nothing else.
    """

    def __init__(
        self,
        affiant: Affiant,
        turn_of: TurnOf,
        descriptor: ToolDescriptor,
        body: Body,
        *,
        is_bound: bool = False,
        takes: frozenset[str] | None = None,
        limit: float | None = None,
        raises: bool = False,
    ) -> None:
        self.affiant: Affiant = affiant
        self.descriptor: ToolDescriptor = descriptor
        self._pipeline = affiant.pipeline(lambda error: isinstance(error, ToolTimeoutError))
        self._turn_of, self._body, self._takes, self._limit, self._raises = turn_of, body, takes, limit, raises
        self._text = shared.whole_text if is_bound else shared.model_text
        self._reader = _read_own if is_bound else _read_result  # to a host's own function a dictionary is its data
        self._ending: WeakSet[ToolContext[Any]] = WeakSet()

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:
        """Carry one call. The SDK chooses the kind of context by its annotation, and the other kind knows no call."""
        try:
            return await self._carry(ctx, input)
        except WireupInvalid as fault:
            raise HostFault(fault.reason, **fault.details) from fault

    async def _carry(self, ctx: ToolContext[Any], text: str) -> object:
        affiant, name = self.affiant, getattr(ctx, "tool_name", self.descriptor.name)
        descriptor, turn = shared.admitted(affiant, name, self._turn_of, ctx, remedy=_REMEDY)
        if descriptor is not self.descriptor:
            raise WireupInvalid(f"the tool {self.descriptor.name!r} was renamed {name!r} after it was wired.")
        invocation = ToolInvocation(name, turn, descriptor=descriptor, reader=self._reader)
        try:
            invocation.arguments = self._arguments(text)
        except shared.ArgumentsRefused as refused:  # it is traced, and no layer of the host's may answer it
            error = shared.invalid_arguments(name, refused.places)
            tracing = Pipeline([ToolTracingFilter(affiant.telemetry)])
            await tracing.run(invocation, lambda: ASYNCHRONOUS.call(lambda: error))
        else:
            await self._pipeline.run(invocation, lambda: self._attempt(ctx, text, invocation))
        if invocation.terminate:
            self._ending.add(ctx)
        told = self._text(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
        # A text part of the SDK's that nothing replaced stays one; what is neither text nor envelope crosses untouched.
        is_kept = told is None or (told == invocation.text() and _text_part(invocation.result) is not None)
        return invocation.result if is_kept else told

    def _arguments(self, text: str) -> dict[str, JSON]:
        """What the model sent. A name that the tool ignores would give the same effect another identity."""
        arguments = shared.carried_arguments(shared.parse_arguments(text))
        if self._takes is not None and (unknown := arguments.keys() - self._takes):
            raise shared.ArgumentsRefused("there are no such parameters.", tuple(unknown))
        return arguments

    async def _attempt(self, ctx: ToolContext[Any], text: str, invocation: ToolInvocation) -> object:
        """Run the body once, with a copy of the arguments, since it may be run again."""
        name, limit = invocation.tool_name, asyncio.timeout(self._limit)
        try:
            async with limit:
                arguments = shared.carried_arguments(invocation.arguments)
                return await self._body(ctx, text if text.strip() else "{}", arguments, invocation.turn)
        except shared.ArgumentsRefused as refused:
            return shared.invalid_arguments(name, refused.places)
        except ModelBehaviorError as error:
            if not str(error).startswith(f"Invalid JSON input for tool {name}"):
                raise
            cause = error.__cause__  # there only when the host lets tool data into its logs
            return shared.invalid_arguments(name, shared.argument_fault(cause) if isinstance(cause, Exception) else ())
        except TimeoutError as error:
            if self._raises and self._limit is not None and limit.expired():
                raise ToolTimeoutError(name, self._limit) from error
            raise

    def note_ending(self, tool: FunctionTool) -> None:
        """Let the agent learn from the output item that a call asked to end the turn."""
        own = tool.custom_data_extractor

        async def extract(context: FunctionToolCustomDataContext) -> Any:
            data: Any = None if own is None else own(context)
            data = await data if isinstance(data, Awaitable) else data
            return {**(data or {}), CUSTOM_DATA: "end"} if context.tool_context in self._ending else data

        tool.custom_data_extractor = extract


def _read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of: plain, or in one text part of the SDK's."""
    text = _text_part(result)
    return read_plain(result) if text is None else text


def _read_own(result: object) -> ToolEnvelope | str | None:
    return result.text if isinstance(result, ToolOutputText) else read_plain(result)


def _text_part(result: object) -> str | None:
    match result:
        case ToolOutputText(text=str(text)) | {"type": "text", "text": str(text)}:
            return text
        case _:
            return None
