"""A bridge for a framework of your own, and its harness for the conformance kit, in one small file.

In this toy framework a tool is ``async def tool(text: str, state: dict) -> str``: it is given a model's arguments as
JSON text and the state that the host passed for the turn. The whole kit runs on it, from this folder:

    python -m pytest --pyargs affiant_core.testing.test_bridge --affiant-bridge toy_bridge:HARNESS
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from affiant_core import Affiant
from affiant_core import bridge as shared
from affiant_core.bridge import BoundFunction
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.pipeline import Pipeline, ToolInvocation
from affiant_core.testing import Backend, Capability, Harness, ToolCall, never, only
from affiant_core.wire import dumps

Tool = Callable[[str, dict[str, Any]], Awaitable[str]]


def bind(affiant: Affiant) -> dict[str, Tool]:
    """The tools of ``affiant`` as the toy framework wants them. Raises ``WiringError`` with every fault."""
    pipeline = affiant.pipeline()
    return {each.descriptor.name: _tool(affiant, pipeline, each) for each in shared.bound_functions(affiant)}


def _tool(affiant: Affiant, pipeline: Pipeline, function: BoundFunction) -> Tool:
    async def tool(text: str, state: dict[str, Any]) -> str:
        name = function.descriptor.name
        # First the context: a call without one raises to the host, before any body.
        descriptor, turn = shared.admitted(affiant, name, lambda given: given.get("turn"), state, remedy="Set 'turn'.")
        invocation = ToolInvocation(name, turn, descriptor=descriptor)

        async def body() -> object:
            try:  # then the model's own arguments, strictly; what does not fit is answered
                invocation.arguments = shared.parse_arguments(text)
                return await function.call(ASYNCHRONOUS, invocation.arguments, turn)
            except shared.ArgumentsRefused as refused:
                return shared.invalid_arguments(name, refused.places)

        await pipeline.run(invocation, body)
        return shared.whole_text(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)

    return tool


class ToyBackend(Backend):
    """The bound tools, called as the toy framework calls them."""

    def __init__(self, tools: dict[str, Tool]) -> None:
        self._tools = tools

    async def call(self, call: ToolCall, context: object) -> str:
        """Call one tool."""
        text = call.arguments if isinstance(call.arguments, str) else dumps(shared.carried_arguments(call.arguments))
        return await self._tools[call.name](text, {"turn": context})


class ToyHarness(Harness):
    """What the kit needs to know of the toy framework: how it is wired, and what it lacks."""

    name = "toy"
    _present = (Capability.ARGUMENTS_AT_THE_GATE, Capability.ARGUMENT_TEXT, Capability.ARGUMENT_CHECK)
    gaps = only(*_present, Capability.CONTEXT_IS_LOUD, otherwise=never("it awaits tools, and has nothing else"))

    def wire(self, affiant: Affiant) -> ToyBackend:
        """Bind the tools."""
        return ToyBackend(bind(affiant))


HARNESS = ToyHarness()
