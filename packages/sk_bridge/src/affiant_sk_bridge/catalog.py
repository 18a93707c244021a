"""A kernel's functions and the registry's declarations: installed, audited, and called by name (CV-1; DECISIONS 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import isfunction, signature
from itertools import chain
from typing import Any

from pydantic import ValidationError
from semantic_kernel import Kernel
from semantic_kernel.functions import KernelArguments, KernelFunction, KernelPlugin

from affiant_core import Affiant, TurnContext, WireupInvalid, WiringError
from affiant_core import bridge as shared
from affiant_core.context import require_turn
from affiant_core.errors import WiringFault
from affiant_core.registry import ToolDescriptor
from affiant_sk_bridge.functions import FILLED_IN, TURN_ARGUMENT, BoundKernelFunction, declared_as, parameters_of
from affiant_sk_bridge.seam import Seam

_ELSEWHERE = ("semantic_kernel.connectors.mcp", "semantic_kernel.connectors.openapi_plugin.openapi_manager")


def install(
    kernel: Kernel, affiant: Affiant, *, carry_arguments: bool = False, offload_sync_bodies: bool = True
) -> Kernel:
    """Gate every function of ``kernel``, add those that ``affiant`` was given, audit all, and give the kernel back.

    Install before kernels are cloned and agents are made; again, it puts the bridge outermost again. Each call needs a
    ``TurnContext`` in the host argument ``affiant_turn``. ``carry_arguments`` hands the gate the model's arguments,
    which then belong to a row's identity; by default it gets none (DECISIONS 9). ``offload_sync_bodies`` runs
    synchronous functions in worker threads, where Semantic Kernel would hold up the loop.

    Raises ``WiringError`` with every fault of the wiring. The kernel is gated then, so that nothing runs undeclared.
    """
    shared.require_version("semantic-kernel", at_least=(1, 45), below=(2,), bridge="affiant-sk-bridge")
    options = (affiant, carry_arguments, offload_sync_bodies)
    seam = _seam_on(kernel) or Seam(*options)
    if seam.options != options:
        fault = "the bridge is installed on it already, for another Affiant or with other options."
        raise WiringError([WiringFault("kernel", fault, "Install it once; use another kernel for another host.")])
    for kind, filters in _filters(kernel).items():  # the last is the outermost
        filters[:] = [*(each for each in filters if _seam_of(each) is not seam), (id(seam), getattr(seam, kind))]
    shared.refuse(shared.faults_of(lambda: _add_plugins(kernel, affiant)) or _audit(kernel, seam))
    return kernel


def check(kernel: Kernel, affiant: Affiant) -> None:
    """Audit a kernel, or a clone: is the bridge there, outermost, and is every function of every plugin declared?

    Repeat it whenever plugins were added, or an MCP server's tools came in. Raises ``WiringError`` listing every fault.
    """
    seam = _seam_on(kernel)
    if seam is None or seam.affiant is not affiant:
        fault = "the bridge of this Affiant is not installed on it, so nothing that it runs is gated."
        remedy = "Call install(kernel, affiant) before the kernel is cloned."
        raise WiringError([WiringFault("kernel", fault, remedy)])
    shared.refuse(_audit(kernel, seam))


async def invoke(kernel: Kernel, name: str, arguments: Mapping[str, Any] | str = "", *, turn: TurnContext) -> str:
    """Call a function as a chat loop would, by the model's ``Plugin-function`` name, and give the model's text.

    A name that is not there is answered with the ``ToolError`` ``FUNCTION_NOT_FOUND``, arguments that do not fit with
    ``VALIDATION_FAILED``. Raises ``WireupInvalid`` where the host is at fault: no bridge, no turn, nothing declared.
    """
    if _seam_on(kernel) is None:
        raise WireupInvalid("the bridge is not installed on the kernel; call install(kernel, affiant).")
    require_turn(turn, f"a call of {name!r}", "Pass it as turn=.")
    plugin, _, function_name = name.partition("-")
    function = kernel.plugins[plugin].functions.get(function_name) if plugin in kernel.plugins else None
    if function is None:
        return shared.not_found(name).to_json_string()
    given = KernelArguments(affiant_turn=turn)
    try:
        given.update(shared.sent_arguments(arguments, parameters_of(function)))
    except shared.ArgumentsRefused as refused:
        return shared.invalid_arguments(function.name, refused.places).to_json_string()
    result = await function.invoke(kernel, given)
    return "" if result is None or result.value is None else str(result.value)


def _seam_of(entry: tuple[int, Any]) -> Seam | None:
    seam = getattr(entry[1], "__self__", None)
    return seam if isinstance(seam, Seam) else None


def _filters(kernel: Kernel) -> dict[str, list[tuple[int, Any]]]:
    return {"function": kernel.function_invocation_filters, "auto": kernel.auto_function_invocation_filters}


def _seam_on(kernel: Kernel) -> Seam | None:
    return next(filter(None, map(_seam_of, chain(*_filters(kernel).values()))), None)


def _add_plugins(kernel: Kernel, affiant: Affiant) -> Iterator[WiringFault]:
    """Add the functions that the host gave its Affiant, in one plugin for each class."""
    plugins: dict[str, list[KernelFunction]] = {}
    has_functions = any(each.function is not None for each in affiant.registry)
    for each in shared.bound_functions(affiant) if has_functions else ():
        try:
            function = BoundKernelFunction.of(each)
        except ValidationError as error:
            names = ", ".join(repr(fault["input"]) for fault in error.errors())
            fault = f"a plugin and a parameter are named with letters, digits and '_', not {names}."
            yield WiringFault(f"tool {each.descriptor.qualified_name!r}", fault, "Rename the parameter or the class.")
        else:
            plugins.setdefault(function.plugin_name, []).append(function)
    for name, functions in plugins.items():
        there = kernel.plugins.get(name)
        if there is None:
            kernel.add_plugin(KernelPlugin(name=name, functions=functions))
        elif any(each.name not in there or declared_as(there[each.name]) != declared_as(each) for each in functions):
            fault = f"the kernel has a plugin named {name!r} already, and so has the Affiant."
            yield WiringFault(f"plugin {name!r}", fault, "Rename one, or add the host's plugin to another kernel.")


def _audit(kernel: Kernel, seam: Seam) -> Iterator[WiringFault]:
    affiant = seam.affiant
    for kind, filters in _filters(kernel).items():
        if [place for place, each in enumerate(filters) if _seam_of(each)] != [len(filters) - 1]:
            fault = "the bridge's filter is not there exactly once, outermost."
            remedy = "Call install(kernel, affiant) again, behind whatever appends filters."
            yield WiringFault(f"{kind} filters", fault, remedy)
    yield from shared.faults_of(affiant.check)
    there: list[ToolDescriptor] = []
    names: list[str] = []
    for plugin_name, plugin in kernel.plugins.items():
        for key, function in plugin.functions.items():
            name = function.fully_qualified_name
            if (plugin_name, key) != (function.plugin_name, function.name):
                fault = f"it stands under the name {plugin_name}-{key}, so a call would be taken for another's."
                yield WiringFault(f"function {name!r}", fault, "Give it one name.")
            if seam.passes(function):
                continue
            names.append(name)
            tool_name, declared_in, own = declared_as(function)
            descriptor = affiant.registry.find_exact(tool_name, declared_in)
            if descriptor is None or descriptor.function is not own:
                yield shared.undeclared(name, function.name, plugin_name)
            else:
                there.append(descriptor)
                yield from shared.contradictions(name, getattr(function, "method", None), descriptor, _ELSEWHERE)
            yield from _faults_of(function, is_write=descriptor is not None and descriptor.is_write)
    yield from shared.unfit_names(names, "Rename or shorten the plugin or the function.")
    yield from shared.without_tool(affiant, there, "no plugin of the kernel")


def _faults_of(function: KernelFunction, *, is_write: bool) -> Iterator[WiringFault]:
    """What would break a chat loop or forge a turn, whatever is declared."""
    subject, method = f"tool {function.fully_qualified_name!r}", getattr(function, "method", None)
    if is_write and getattr(function, "stream_method", None) is not None:
        yield WiringFault(subject, "it is declared to write and streams.", "Let it return one WriteProposal.")
    if isfunction(method) and next(iter(signature(method).parameters), None) == "self":
        yield WiringFault(subject, "it is a method without its object.", "Add an object as the plugin, not its class.")
    for each in function.parameters:
        fault, remedy = _RESERVED.get(each.name or "", ("", ""))
        is_asked = each.include_in_function_choices and not isinstance(function, BoundKernelFunction)
        if fault and (each.name not in FILLED_IN or is_asked):
            yield WiringFault(subject, f"its parameter {each.name!r} {fault}", remedy)


_HIDE = "Annotate it as Annotated[..., {'include_in_function_choices': False}]."
_RESERVED = {
    "settings": ("breaks Semantic Kernel's chat loop.", "Rename it."),
    "self": ("breaks Semantic Kernel's chat loop.", "Rename it."),
    TURN_ARGUMENT: ("is the host's, and a model could send one.", "Read it from the KernelArguments."),
    **dict.fromkeys(FILLED_IN, ("is filled in by Semantic Kernel, and would be asked of the model.", _HIDE)),
}
