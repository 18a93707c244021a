"""A kernel's functions and their arguments: the host's own, with a body behind the seam, and native ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import Field
from semantic_kernel.filters import FunctionInvocationContext
from semantic_kernel.functions import KernelArguments, KernelFunction, KernelParameterMetadata
from semantic_kernel.functions.kernel_function_metadata import KernelFunctionMetadata

from affiant_core import TurnContext, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.values import JSON

TURN_ARGUMENT = "affiant_turn"
"""The host argument that a call's ``TurnContext`` stands in: ``KernelArguments(affiant_turn=turn)``."""

DEFAULT_PLUGIN = "affiant"
"""The plugin of functions that the host gave by themselves; methods stand in a plugin named after their class."""

FILLED_IN = frozenset({"kernel", "service", "execution_settings", "arguments"})
"""Parameters of a native function that Semantic Kernel fills in by their names."""


class TurnArgument(bytes):
    """A turn in a form that prompt templates let through; they refuse arguments of types that they do not know.

    An agent renders its instructions past every filter: give it ``KernelArguments(affiant_turn=TurnArgument(turn))``.
    """

    turn: TurnContext

    def __new__(cls, turn: TurnContext) -> TurnArgument:
        """Hide ``turn`` in bytes that are empty, so that a template or a log that shows them shows nothing."""
        made = super().__new__(cls)
        made.turn = turn
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> TurnArgument:
        return self


class BoundKernelFunction(KernelFunction):
    """A declared function. Its arguments reach it as they were sent: Semantic Kernel parses none of them."""

    bound: shared.BoundFunction = Field(exclude=True, repr=False)

    @classmethod
    def of(cls, bound: shared.BoundFunction) -> Self:
        """Make one, with the parameters of its JSON schema. Raises pydantic's error for names that it cannot have."""
        described, required = bound.descriptor, bound.schema.get("required", ())
        parameters: list[KernelParameterMetadata] = []
        for name, own in bound.parameter_schemas().items():
            more: Any = {"description": own.get("description"), "type": str(own.get("type", "object"))}
            parameters.append(KernelParameterMetadata(name=name, is_required=name in required, schema_data=own, **more))
        name, plugin, told = described.name, described.plugin or DEFAULT_PLUGIN, described.description
        metadata = KernelFunctionMetadata(
            name=name, plugin_name=plugin, description=told, parameters=parameters, is_prompt=False
        )
        return cls(metadata=metadata, bound=bound)

    async def _invoke_internal(self, context: FunctionInvocationContext) -> None:
        """Raise: the seam runs the bound function itself, in this one's place."""
        fault = f"CV-2: the function {self.fully_qualified_name!r} was entered past its seam; "
        raise WireupInvalid(f"{fault}invoke it with the kernel that the bridge is installed on.")

    _invoke_internal_stream = _invoke_internal

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy with the same function, since the object behind it, and its connections, are the host's."""
        return cast(Self, super().__deepcopy__({**(memo or {}), id(self.bound): self.bound}))


def turn_in(arguments: Mapping[str, object]) -> object:
    """What stands under ``affiant_turn``. It is checked, never repaired; a model can send no such object (CV-2)."""
    found = arguments.get(TURN_ARGUMENT)
    return found.turn if isinstance(found, TurnArgument) else found


def declared_as(function: KernelFunction) -> tuple[str, str | None, object]:
    """The name and the plugin that a function is declared under, and the host's own function behind a bound one."""
    if isinstance(function, BoundKernelFunction):
        own = function.bound.descriptor
        return own.name, own.plugin, own.function
    return function.name, function.plugin_name, None


def parameters_of(function: KernelFunction) -> frozenset[str]:
    """The parameters that a model is shown and may fill."""
    shown = frozenset(each.name for each in function.parameters if each.include_in_function_choices and each.name)
    return shown if isinstance(function, BoundKernelFunction) else shown - FILLED_IN


def carried(function: KernelFunction, arguments: Mapping[str, object], hosts: Mapping[str, object]) -> dict[str, JSON]:
    """The model's arguments among all of a call's, with what filters made of them, without any of the host's.

    ``hosts`` are host arguments that have a parameter's name; a native function gets them, and they are not the call's.
    Raises ``ArgumentsRefused`` for NaN and the like.
    """
    own = {name: arguments[name] for name in parameters_of(function) & arguments.keys()}
    if hosts:
        own = {name: value for name, value in own.items() if name not in hosts or hosts[name] is not value}
    if not isinstance(function, BoundKernelFunction):  # a host may pass it objects by hand
        own = {name: value for name, value in own.items() if isinstance(value, str | int | float | list | dict | None)}
    return shared.carried_arguments(own)


def with_turn(function: KernelFunction, arguments: KernelArguments, turn: TurnContext) -> KernelArguments:
    """Arguments for one attempt at the body, with the turn in a form that the body can be given."""
    attempt = KernelArguments.__new__(type(arguments))  # copy() takes six times as long
    vars(attempt).update(vars(arguments))
    own = parameters_of(function)
    attempt.update((name, shared.copied(value) if name in own else value) for name, value in arguments.items())
    attempt[TURN_ARGUMENT] = TurnArgument(turn) if function.is_prompt else turn
    return attempt
