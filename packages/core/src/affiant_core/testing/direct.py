"""The bridge to no framework at all: every call goes straight into the pipeline. The kit's oracle.

What another backend does differently is either an asymmetry that its harness declares, or a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

from affiant_core import bridge as shared
from affiant_core.affiant import Affiant
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, Driver, run_now
from affiant_core.pipeline import ToolInvocation
from affiant_core.testing.harness import Backend, Capability, Gap, Harness, ToolCall, never, only


class DirectBackend(Backend):
    """The functions of an ``Affiant``, called through its pipeline and nothing else."""

    def __init__(self, affiant: Affiant, *, carries_arguments: bool) -> None:
        self._affiant = affiant
        self._carries_arguments = carries_arguments
        self._functions = {each.descriptor.name: each for each in shared.bound_functions(affiant)}
        self._pipeline = affiant.pipeline()

    async def call(self, call: ToolCall, context: object) -> str:
        """Make one call on the event loop."""
        return await self._call(call, context, ASYNCHRONOUS)

    def call_now(self, call: ToolCall, context: object) -> str:
        """Make one call in this thread."""
        return run_now(self._call(call, context, SYNCHRONOUS))

    async def _call(self, call: ToolCall, context: object, driver: Driver) -> str:
        descriptor, turn = shared.admitted(self._affiant, call.name, lambda given: given, context, remedy="Pass one.")
        invocation = ToolInvocation(call.name, turn, descriptor=descriptor, driver=driver)
        sent = call.arguments
        try:
            arguments = shared.parse_arguments(sent) if isinstance(sent, str) else shared.carried_arguments(sent)
        except shared.ArgumentsRefused as refused:
            return shared.invalid_arguments(call.name, refused.places).to_json_string()
        if self._carries_arguments:
            invocation.arguments = dict(arguments)

        async def body() -> object:
            try:
                return await self._functions[call.name].call(driver, arguments, turn)
            except shared.ArgumentsRefused as refused:
                return shared.invalid_arguments(call.name, refused.places)

        await self._pipeline.run(invocation, body)
        affiant = self._affiant
        return shared.whole_text(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)


class DirectHarness(Harness):
    """The oracle. With ``carries_arguments=False`` it hands the gate none, as the two-stage backends do."""

    name = "direct"

    def __init__(self, *, carries_arguments: bool = True) -> None:
        self.carries_arguments = carries_arguments
        present = [Capability.ARGUMENT_TEXT, Capability.ARGUMENT_CHECK, Capability.CONTEXT_IS_LOUD]
        present += [Capability.SYNCHRONOUS, *([Capability.ARGUMENTS_AT_THE_GATE] if carries_arguments else [])]
        self.gaps: Mapping[str, Gap] = only(*present, otherwise=never("there is no framework"))

    def wire(self, affiant: Affiant) -> DirectBackend:
        """Check the wiring and take the functions."""
        return DirectBackend(affiant, carries_arguments=self.carries_arguments)

    def __repr__(self) -> str:
        return "direct" if self.carries_arguments else "direct without arguments"
