"""The host's own functions as functions of a kernel: what a model is shown of them, and a body behind the seam."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, Self, cast

from pydantic import Field
from semantic_kernel.filters import FunctionInvocationContext
from semantic_kernel.functions import KernelFunction, KernelParameterMetadata
from semantic_kernel.functions.kernel_function_metadata import KernelFunctionMetadata
from semantic_kernel.utils.validation import FUNCTION_PARAM_NAME_REGEX, PLUGIN_NAME_REGEX

from affiant_core import WireupInvalid
from affiant_core.bridge import BoundFunction
from affiant_core.errors import WiringFault

DEFAULT_PLUGIN = "affiant"
"""The plugin of functions that the host gave by themselves; methods stand in a plugin named after their class."""


class Entry(Protocol):
    """A call that has come through the seam, from the side of its body."""

    context: FunctionInvocationContext

    async def enter(self, context: FunctionInvocationContext) -> None:
        """Run the body and put what may be seen of its result into ``context``."""
        ...


CALL: ContextVar[Entry | None] = ContextVar("affiant_sk_call", default=None)
"""The call whose body may run now. It links the seam with the body of one call, and nothing finds a turn in it."""


class BoundKernelFunction(KernelFunction):
    """A declared function. Its arguments reach it as they were sent: Semantic Kernel parses none of them."""

    bound: BoundFunction = Field(exclude=True, repr=False)

    @classmethod
    def of(cls, bound: BoundFunction) -> Self:
        """Make one, with the parameters of its JSON schema."""
        described = bound.descriptor
        metadata = KernelFunctionMetadata(
            name=described.name,
            plugin_name=described.plugin or DEFAULT_PLUGIN,
            description=described.description,
            parameters=[_parameter(name, bound.schema) for name in bound.schema.get("properties", {})],
            is_prompt=False,
            return_parameter=KernelParameterMetadata(name="return", type="str", is_required=True),
        )
        return cls(metadata=metadata, bound=bound)

    async def _invoke_internal(self, context: FunctionInvocationContext) -> None:
        call = CALL.get()
        if call is None or call.context is not context:
            raise WireupInvalid(
                f"CV-2: the function {self.fully_qualified_name!r} was entered past its seam; "
                "invoke it with the kernel that the bridge is installed on."
            )
        await call.enter(context)

    async def _invoke_internal_stream(self, context: FunctionInvocationContext) -> None:
        await self._invoke_internal(context)  # the whole result is one part of the stream

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy with the same function, since the object behind it, and its connections, are the host's."""
        return cast(Self, super().__deepcopy__({**(memo or {}), id(self.bound): self.bound}))


def is_made_by(function: KernelFunction, *modules: str) -> bool:
    """Whether a native function runs the code of one of these modules, whatever it is wrapped in."""
    method = getattr(function, "method", None)
    while isinstance(method, functools.partial):
        method = method.func
    owner = getattr(method, "__self__", None)
    kinds = (method,) if owner is None else type(owner).__mro__
    return any(getattr(kind, "__module__", None) in modules for kind in kinds)


def unfit(bound: BoundFunction) -> Iterator[WiringFault]:
    """What Semantic Kernel cannot carry of a function: its plugin's name, and names of its parameters."""
    subject, plugin = f"tool {bound.descriptor.qualified_name!r}", bound.descriptor.plugin or DEFAULT_PLUGIN
    if not re.fullmatch(PLUGIN_NAME_REGEX, plugin):
        fault = f"Semantic Kernel takes no plugin named {plugin!r}, only letters, digits and '_'."
        yield WiringFault(subject, fault, "Rename the class, or register it with registry.walk(..., plugin=...).")
    for name in bound.schema.get("properties", {}):
        if not re.fullmatch(FUNCTION_PARAM_NAME_REGEX, name):
            fault = f"Semantic Kernel takes no parameter named {name!r}, only letters, digits and '_'."
            yield WiringFault(subject, fault, "Rename the parameter.")


def _parameter(name: str, schema: Mapping[str, Any]) -> KernelParameterMetadata:
    own: dict[str, Any] = schema["properties"][name]
    return KernelParameterMetadata(
        name=name,
        description=own.get("description"),
        default_value=own.get("default"),
        type=str(own.get("type", "object")),
        is_required=name in schema.get("required", ()),
        schema_data=_self_contained(name, own, schema.get("$defs", {})),
    )


def _self_contained(name: str, own: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter's schema with what it refers to written in: Semantic Kernel shows a model nothing beside it."""
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
