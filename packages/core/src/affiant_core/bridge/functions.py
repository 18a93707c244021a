"""A host's own functions as tools: what a model may pass to them, and how they are called with it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from affiant_core.affiant import Affiant
from affiant_core.bridge.arguments import ArgumentsRefused, argument_fault, copied
from affiant_core.bridge.wiring import faults_of, refuse, require_affiant
from affiant_core.context import ActContext, TurnContext
from affiant_core.driver import Driver
from affiant_core.errors import WiringError, WiringFault
from affiant_core.registry import ToolDescriptor


def turn_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter through which a tool asks for its ``TurnContext``; the model neither sees nor fills it."""
    return next((name for name, hint in _hints(function).items() if _is_context(hint)), None)


def _is_context(hint: object) -> bool:
    """Whether an annotation is a context, and at most ``None`` or a remark beside it."""
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return all(map(_is_context, set(get_args(hint)) - {NoneType}))
    return isinstance(hint, type) and issubclass(hint, ActContext)


def _parts(hint: object) -> Iterator[object]:
    """An annotation and everything inside it, each once, since an alias may contain itself."""
    seen: dict[int, object] = {}
    waiting = [hint]
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen[id(part)] = part
            yield part
            waiting += (*get_args(part), getattr(part, "__value__", None), getattr(part, "__supertype__", None))


def argument_model(descriptor: ToolDescriptor) -> type[BaseModel]:
    """What the model may pass to a tool, as a pydantic model closed to unknown names.

    Raises ``WiringError`` for a function that cannot be described so: ``*args``, ``**kwargs``, missing or unreadable
    annotations.
    """
    function = _function_of(descriptor)
    hidden = turn_parameter(function)
    hints = _hints(function)
    members: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == hidden:
            continue
        if name not in hints:
            fault = f"its parameter {name!r} has no annotation, so a model cannot be told what to send."
            raise _unbindable(descriptor, fault, "Annotate it; the turn as TurnContext.")
        if any(map(_is_context, _parts(hints[name]))):
            fault = f"a model could fill in the context of its parameter {name!r}."
            raise _unbindable(descriptor, fault, "Take the turn in one parameter, annotated TurnContext.")
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _unbindable(descriptor, f"its parameter {name!r} cannot be passed by name.", "Name each parameter.")
        default = ... if parameter.default is parameter.empty else parameter.default
        members[name] = (hints[name], Field(default))
    try:
        return create_model(
            f"{descriptor.name}_arguments",
            __config__=ConfigDict(extra="forbid"),
            __doc__=descriptor.description,
            **members,
        )
    except Exception as error:  # pydantic has many ways of saying that an annotation means nothing to it
        raise _unbindable(
            descriptor,
            f"its parameters cannot be described ({type(error).__name__}).",
            "Annotate them with plain types, and let no name start with '_'.",
        ) from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function.__func__ if inspect.ismethod(function) else function
    try:
        hints = get_type_hints(target, include_extras=True)
    except Exception as error:  # evaluating text may fail in every way that Python knows
        raise WiringError(
            [
                WiringFault(
                    f"tool {getattr(target, '__qualname__', target)!r}",
                    f"its annotations cannot be read ({type(error).__name__}: {error}).",
                    "Import every annotated type at run time, not under TYPE_CHECKING.",
                )
            ]
        ) from error
    hints.pop("return", None)
    return hints


def _function_of(descriptor: ToolDescriptor) -> Callable[..., Any]:
    if descriptor.function is None:
        raise _unbindable(descriptor, "it is declared without a function.", "Pass the tool object, not its class.")
    return descriptor.function


def _unbindable(descriptor: ToolDescriptor, fault: str, remedy: str) -> WiringError:
    return WiringError([WiringFault(f"tool {descriptor.qualified_name!r}", fault, remedy)])


def bindable(affiant: Affiant, *, faults: Iterable[WiringFault] = ()) -> tuple[ToolDescriptor, ...]:
    """The registered tools that have a function, after the whole wiring was checked.

    Raises ``WiringError`` with every fault, those of the tools' signatures and the bridge's own ``faults`` included.
    """
    return tuple(each.descriptor for each in bound_functions(affiant, faults=faults))


# --- calling one ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A registered function with what a model may pass to it, for frameworks that leave both to the bridge."""

    descriptor: ToolDescriptor
    function: Callable[..., Any]
    model: type[BaseModel]
    turn: str | None
    """The parameter that gets the ``TurnContext``, if the function asks for it."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the parameters, as a model is shown it."""
        schema = self.model.model_json_schema()
        schema.pop("description", None)  # the tool's own, which frameworks show beside the schema
        return schema

    def parameter_schemas(self) -> dict[str, dict[str, Any]]:
        """The JSON schema of each parameter with what it refers to written in, for frameworks that show each alone.

        What refers to itself keeps its definition, and refers to it from the root of an object of these parameters.
        """
        schema = self.schema
        definitions = schema.get("$defs", {})
        return {name: _self_contained(name, own, definitions) for name, own in schema.get("properties", {}).items()}

    async def call(self, driver: Driver, arguments: Mapping[str, object], turn: TurnContext) -> object:
        """Validate a model's arguments and call the function with copies of them.

        Under the asynchronous driver a plain function runs in a worker thread, with the caller's context variables.
        Raises ``ArgumentsRefused``, naming the parameters and no value, for arguments that do not fit.
        """
        try:
            values = self.model.model_validate({name: copied(value) for name, value in arguments.items()})
        except ValidationError as error:
            raise ArgumentsRefused("the arguments do not fit the parameters.", tuple(argument_fault(error))) from None
        taken = {name: getattr(values, name) for name in type(values).model_fields}
        if self.turn is not None:
            taken[self.turn] = turn
        return await driver.offload(functools.partial(self.function, **taken))  # no name of a parameter is the driver's


def _self_contained(name: str, own: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    recursive: dict[str, Any] = {}

    def written(part: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(part, list):
            return [written(each, inside) for each in part]
        if not isinstance(part, dict):
            return part
        # The mapping of a discriminator refers to definitions by their place; the alternatives say the same.
        beside = {key: written(each, inside) for key, each in part.items() if key not in ("$ref", "discriminator")}
        reference = part.get("$ref")
        if not isinstance(reference, str):
            kept = {key: written(part[key], inside) for key in ("$ref", "discriminator") if key in part}
            return {**beside, **({} if "mapping" in kept.get("discriminator", ()) else kept)}
        target = reference.removeprefix("#/$defs/")
        if target not in inside:
            return {**written(definitions[target], (*inside, target)), **beside}
        if target not in recursive:
            recursive[target] = None
            recursive[target] = written(definitions[target], (target,))
        return {"$ref": f"#/properties/{name}/$defs/{target}", **beside}

    schema: dict[str, Any] = written(own, ())
    return {**schema, "$defs": recursive} if recursive else schema


def bound_functions(affiant: Affiant, *, faults: Iterable[WiringFault] = ()) -> tuple[BoundFunction, ...]:
    """Every function that a host gave its ``Affiant``, after the whole wiring was checked.

    Raises ``WiringError`` with every fault, those of the tools' signatures and the bridge's own ``faults`` included.
    """
    affiant = require_affiant(affiant, "a bridge")
    found = [*faults, *faults_of(affiant.check)]
    bound: list[BoundFunction] = []
    tools = [(each, each.function) for each in affiant.registry if each.function is not None]
    for descriptor, function in tools:
        try:
            bound.append(BoundFunction(descriptor, function, argument_model(descriptor), turn_parameter(function)))
        except WiringError as error:
            found += error.faults
    if not tools:
        remedy = "Pass an object of the tool class as tools=, or use wrap()."
        found.append(WiringFault("tools", "there are none to bind.", remedy))
    refuse(found)
    return tuple(bound)
