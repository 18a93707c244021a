"""The seam: the pipeline runs inside ``on_invoke_tool`` of a tool, the one thing that every kind of run awaits.

What stands outside it (hooks, guardrails, items, sessions, spans) sees what the gate made of a proposal. The SDK parses
no arguments before the seam, so the model's own text is parsed here, strictly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakSet

from agents import AgentsException, FunctionTool, ModelBehaviorError, ToolOutputText, ToolTimeoutError
from agents.tool import FunctionToolCustomDataContext
from agents.tool_context import ToolContext

from affiant_core import Affiant, ToolEnvelope, ToolInvocation, TurnContext, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.pipeline import read_plain
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


@dataclass(eq=False, repr=False)
class Invoker:
    """The ``on_invoke_tool`` of a wired tool. Copies of the tool share it, so they are wired as well.

    It raises for an expired limit of which the host wants to hear, for cancellation and for faults of the host
    (DECISIONS 12, 13), and for nothing else.
    """

    affiant: Affiant
    turn_of: TurnOf
    descriptor: ToolDescriptor
    body: Body
    takes: frozenset[str] | None = None
    """The names of the parameters, where the tool ignores all others: they would give an effect another identity."""
    limit: float | None = None
    """In seconds, for one attempt; ``raises`` says that the host wants to hear of it."""
    raises: bool = False
    _ending: WeakSet[ToolContext[Any]] = field(default_factory=WeakSet, init=False)

    def __post_init__(self) -> None:
        self._pipeline = self.affiant.pipeline(lambda error: isinstance(error, ToolTimeoutError))

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:
        """Carry one call. The SDK chooses the kind of context by its annotation, and the other kind knows no call."""
        try:
            return await self._carry(ctx, input)
        except WireupInvalid as fault:
            raise HostFault(fault.reason, **fault.details) from fault

    async def _carry(self, ctx: ToolContext[Any], text: str) -> object:
        affiant, name = self.affiant, getattr(ctx, "tool_name", self.descriptor.name)
        descriptor, turn = shared.admitted(affiant, name, self.turn_of, ctx, remedy=_REMEDY)
        if descriptor is not self.descriptor:
            raise WireupInvalid(f"the tool {self.descriptor.name!r} was renamed {name!r} after it was wired.")
        read, write = (_read_own, shared.whole_text) if descriptor.function else (_read_result, shared.model_text)
        invocation = ToolInvocation(name, turn, descriptor=descriptor, reader=read)
        try:
            invocation.arguments = shared.carried_arguments(shared.sent_arguments(text, self.takes))
        except shared.ArgumentsRefused as refused:
            await shared.answer_refused(invocation, refused.places, affiant.telemetry)
        else:
            await self._pipeline.run(invocation, lambda: self._attempt(ctx, text, invocation))
        if invocation.terminate:
            self._ending.add(ctx)
        told = write(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
        # A text part of the SDK's that nothing replaced stays one; what is neither text nor envelope crosses untouched.
        is_kept = told is None or (told == invocation.text() and _text_part(invocation.result) is not None)
        return invocation.result if is_kept else told

    async def _attempt(self, ctx: ToolContext[Any], text: str, invocation: ToolInvocation) -> object:
        """Run the body once, with a copy of the arguments, since it may be run again."""
        name, limit = invocation.tool_name, asyncio.timeout(self.limit)
        try:
            async with limit:
                arguments = shared.carried_arguments(invocation.arguments)
                return await self.body(ctx, text if text.strip() else "{}", arguments, invocation.turn)
        except shared.ArgumentsRefused as refused:
            return shared.invalid_arguments(name, refused.places)
        except ModelBehaviorError as error:  # with a cause only when the host lets tool data into its logs
            if not str(error).startswith(f"Invalid JSON input for tool {name}"):
                raise
            return shared.invalid_arguments(name, shared.argument_fault(error.__cause__))
        except TimeoutError as error:
            if self.raises and self.limit is not None and limit.expired():
                raise ToolTimeoutError(name, self.limit) from error
            raise

    def note_ending(self, tool: FunctionTool) -> None:
        """Let the agent learn from the output item that a call asked to end the turn."""
        own = tool.custom_data_extractor

        async def extract(context: FunctionToolCustomDataContext) -> Any:
            data: Any = None if own is None else await ASYNCHRONOUS.call(own, context)
            return {**(data or {}), CUSTOM_DATA: "end"} if context.tool_context in self._ending else data

        tool.custom_data_extractor = extract


def _read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of: plain, or in one text part of the SDK's."""
    return read_plain(result) if (text := _text_part(result)) is None else text


def _read_own(result: object) -> ToolEnvelope | str | None:  # of a host's own function, whose dictionary is its data
    return result.text if isinstance(result, ToolOutputText) else read_plain(result)


def _text_part(result: object) -> str | None:
    match result:
        case ToolOutputText(text=str(text)) | {"type": "text", "text": str(text)}:
            return text
        case _:
            return None
