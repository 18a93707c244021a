"""A kernel's functions and the registry's declarations: installed, audited, and called by name (CV-1; DECISIONS 16)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from inspect import isfunction, signature
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.filters import AutoFunctionInvocationContext, FunctionInvocationContext
from semantic_kernel.functions import KernelArguments, KernelFunction, KernelPlugin

from affiant_core import Affiant, ToolError, TurnContext, WireupInvalid, WiringError
from affiant_core import bridge as shared
from affiant_core.context import require_turn
from affiant_core.errors import WiringFault
from affiant_core.registry import NAME_PATTERN, ToolDescriptor
from affiant_sk_bridge.arguments import FILLED_IN, TURN_ARGUMENT, of_the_model
from affiant_sk_bridge.functions import DEFAULT_PLUGIN, BoundKernelFunction, is_made_by, unfit
from affiant_sk_bridge.seam import Seam

FUNCTION_NOT_FOUND = "FUNCTION_NOT_FOUND"
"""The code for a call of a function that the kernel does not have."""

_ELSEWHERE = ("semantic_kernel.connectors.mcp", "semantic_kernel.connectors.openapi_plugin.openapi_manager")
_MARK = "__affiant_seam__"


def install(
    kernel: Kernel, affiant: Affiant, *, carry_arguments: bool = False, offload_sync_bodies: bool = True
) -> Kernel:
    """Gate every function of ``kernel``, add those that ``affiant`` was given, audit all, and give the kernel back.

    Install before kernels are cloned and before agents and orchestrations are made. Each call needs a ``TurnContext``
    in the host argument ``affiant_turn``. ``carry_arguments`` hands the gate the model's arguments, which then belong
    to a row's identity; by default it gets none (DECISIONS 9). ``offload_sync_bodies`` runs synchronous functions in
    worker threads, where Semantic Kernel would hold up the loop. To install again puts the bridge outermost again and
    repeats the audit; nothing is filed twice.

    Raises ``WiringError`` with every fault of the wiring. The kernel is gated then, so that nothing runs undeclared.
    """
    shared.require_version("semantic-kernel", at_least=(1, 45), below=(2,), bridge="affiant-sk-bridge")
    if not isinstance(affiant, Affiant):
        raise TypeError(f"the bridge installs an Affiant, not a {type(affiant).__name__}.")
    known = _seam_on(kernel)
    seam = known or Seam(affiant, carry_arguments=carry_arguments, offload_sync_bodies=offload_sync_bodies)
    if (seam.affiant, seam.carry_arguments, seam.offload_sync_bodies) != (
        affiant,
        carry_arguments,
        offload_sync_bodies,
    ):
        fault = "the bridge is installed on it already, for another Affiant or with other options."
        raise WiringError([WiringFault("kernel", fault, "Install it once; use another kernel for another host.")])
    _put_outermost(kernel, seam)
    faults: list[WiringFault] = []
    try:
        faults += _add_plugins(kernel, affiant)
    except WiringError as error:
        faults += error.faults
    else:
        faults += _audit(kernel, seam)
    if faults:
        raise WiringError(list(dict.fromkeys(faults)))
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
    if faults := list(dict.fromkeys(_audit(kernel, seam))):
        raise WiringError(faults)


async def invoke(kernel: Kernel, name: str, arguments: Mapping[str, Any] | str = "", *, turn: TurnContext) -> str:
    """Call a function as a chat loop would, and give the text that a model would be given.

    ``name`` is the model's, ``Plugin-function``; ``arguments`` are the model's too, as text or as a map. A function
    that is not there is answered with the ``ToolError`` ``FUNCTION_NOT_FOUND``, and nothing runs. Raises
    ``WireupInvalid`` where the host is at fault: no turn, no bridge, a function that is not declared.
    """
    seam = _seam_on(kernel)
    if seam is None:
        raise WireupInvalid("the bridge is not installed on the kernel; call install(kernel, affiant).")
    require_turn(turn, f"a call of {name!r}")
    plugin, _, function_name = name.partition("-")
    functions = kernel.plugins[plugin].functions if plugin in kernel.plugins else {}
    function = functions.get(function_name)
    if function is None:
        told = name if NAME_PATTERN.fullmatch(name) else "unknown"
        error = ToolError(tool_name=told, code=FUNCTION_NOT_FOUND, message="There is no tool of this name.")
        return error.to_json_string()
    given = KernelArguments()
    given[TURN_ARGUMENT] = turn
    try:
        sent = shared.parse_arguments(arguments) if isinstance(arguments, str) else shared.carried_arguments(arguments)
        unknown = sent.keys() - of_the_model(function)
        if unknown:
            raise shared.ArgumentsRefused("there are no such parameters.", tuple(unknown))
    except shared.ArgumentsRefused as refused:
        tool_name = function.name if seam.passes(function) else seam.admit(function, given)[0].name
        return shared.invalid_arguments(tool_name, refused.places).to_json_string()
    given.update(sent)
    result = await function.invoke(kernel, given)
    return "" if result is None or result.value is None else str(result.value)


# --- the closures --------------------------------------------------------------------------------------------------


def _put_outermost(kernel: Kernel, seam: Seam) -> None:
    """Put the two closures last in their lists, which is outermost. A clone of a kernel keeps a function as it is."""

    # Semantic Kernel passes ``next`` by that name.
    async def function_filter(
        context: FunctionInvocationContext, next: Callable[[FunctionInvocationContext], Awaitable[None]]
    ) -> None:
        await seam.function(context, next)

    async def auto_filter(
        context: AutoFunctionInvocationContext, next: Callable[[AutoFunctionInvocationContext], Awaitable[None]]
    ) -> None:
        await seam.auto(context, next)

    lists = (
        (kernel.function_invocation_filters, function_filter),
        (kernel.auto_function_invocation_filters, auto_filter),
    )
    for filters, new in lists:
        own = [each for each in filters if _seam_of(each) is seam]
        setattr(new, _MARK, seam)
        kept = own[0] if own else (id(new), new)
        filters[:] = [*(each for each in filters if _seam_of(each) is not seam), kept]


def _seam_of(entry: tuple[int, Any]) -> Seam | None:
    seam = getattr(entry[1], _MARK, None)
    return seam if isinstance(seam, Seam) else None


def _seam_on(kernel: Kernel) -> Seam | None:
    entries = (*kernel.function_invocation_filters, *kernel.auto_function_invocation_filters)
    return next((seam for seam in map(_seam_of, entries) if seam is not None), None)


# --- the audit -----------------------------------------------------------------------------------------------------


def _add_plugins(kernel: Kernel, affiant: Affiant) -> Iterator[WiringFault]:
    """Add the functions that the host gave its Affiant, in one plugin for each class."""
    has_functions = any(each.function is not None for each in affiant.registry)
    bound = shared.bound_functions(affiant) if has_functions else ()
    plugins: dict[str, list[KernelFunction]] = {}
    for each in bound:
        faults = list(unfit(each))
        yield from faults
        if not faults:
            plugins.setdefault(each.descriptor.plugin or DEFAULT_PLUGIN, []).append(BoundKernelFunction.of(each))
    for name, functions in plugins.items():
        there = kernel.plugins.get(name)
        if there is None:
            kernel.add_plugin(KernelPlugin(name=name, functions=functions))
        elif not all(_is_bound(there.functions.get(each.name), affiant) for each in functions):
            fault = f"the kernel has a plugin named {name!r} already, and so has the Affiant."
            yield WiringFault(f"plugin {name!r}", fault, "Rename one, or add the host's plugin to another kernel.")


def _is_bound(function: KernelFunction | None, affiant: Affiant) -> bool:
    if not isinstance(function, BoundKernelFunction):
        return False
    descriptor = function.bound.descriptor
    return affiant.registry.find_exact(descriptor.name, descriptor.plugin) is descriptor


def _audit(kernel: Kernel, seam: Seam) -> Iterator[WiringFault]:
    affiant = seam.affiant
    for kind, filters in (
        ("function", kernel.function_invocation_filters),
        ("auto", kernel.auto_function_invocation_filters),
    ):
        if [index for index, each in enumerate(filters) if _seam_of(each) is not None] != [len(filters) - 1]:
            fault = "the bridge's filter is not there exactly once, outermost."
            yield WiringFault(
                f"{kind} filters", fault, "Call install(kernel, affiant) again, behind whatever appends filters."
            )
    try:
        affiant.check()
    except WiringError as error:
        yield from error.faults
    there: set[ToolDescriptor] = set()
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
            if isinstance(function, BoundKernelFunction):
                descriptor = function.bound.descriptor if _is_bound(function, affiant) else None
            else:
                descriptor = affiant.registry.find_exact(function.name, function.plugin_name)
            if descriptor is None or (
                descriptor.function is not None and not isinstance(function, BoundKernelFunction)
            ):
                fault = "it is not declared, so nobody can tell whether it writes."
                declare = f"affiant.declare_read({function.name!r}, plugin={plugin_name!r})"
                remedy = f"Declare it with {declare} or declare_write(...), or leave it out."
                yield WiringFault(f"tool {name!r}", fault, remedy)
            else:
                there.add(descriptor)
                yield from _faults_of(function, descriptor)
            yield from _parameter_faults(function)
            if len(name) > 64:
                fault = f"its name has {len(name)} characters, and providers take 64."
                yield WiringFault(f"tool {name!r}", fault, "Shorten the plugin's name or the function's.")
    yield from shared.indistinguishable(names, "Rename a plugin or a function.")
    for descriptor in affiant.registry:
        if descriptor not in there and descriptor.function is None:
            fault = "it is declared, and no plugin of the kernel has it."
            yield WiringFault(
                f"tool {descriptor.qualified_name!r}", fault, "Add its plugin first, or declare it later."
            )


def _faults_of(function: KernelFunction, descriptor: ToolDescriptor) -> Iterator[WiringFault]:
    """Where a native function and its declaration do not agree."""
    subject, method = f"tool {function.fully_qualified_name!r}", getattr(function, "method", None)
    mark = getattr(getattr(method, "func", method), "__affiant_tool__", None)  # as read_tool and write_tool leave it
    if mark is not None and mark.operation != descriptor.operation:
        fault = f"it is marked {mark.operation} and declared {descriptor.operation}."
        yield WiringFault(subject, fault, "Let the declaration say what the mark says.")
    if isfunction(method) and next(iter(signature(method).parameters), None) == "self":
        yield WiringFault(subject, "it is a method without its object.", "Add an object as the plugin, not its class.")
    if descriptor.is_write and is_made_by(function, *_ELSEWHERE):
        yield shared.acts_elsewhere(function.fully_qualified_name)
    if descriptor.is_write and getattr(function, "stream_method", None) is not None:
        yield WiringFault(subject, "it is declared to write and streams.", "Let it return one WriteProposal.")


def _parameter_faults(function: KernelFunction) -> Iterator[WiringFault]:
    """Parameters that break a chat loop, or that a model could forge the host's own arguments with."""
    subject = f"tool {function.fully_qualified_name!r}"
    for each in function.parameters:
        if each.name in ("settings", "self"):
            fault = f"its parameter {each.name!r} breaks Semantic Kernel's chat loop."
            yield WiringFault(subject, fault, "Rename it.")
        elif each.name == TURN_ARGUMENT:
            fault = f"its parameter {each.name!r} is the host's, and a model could send one."
            yield WiringFault(subject, fault, "Take the turn from the parameter that is annotated KernelArguments.")
        elif (
            each.name in FILLED_IN
            and each.include_in_function_choices
            and not isinstance(function, BoundKernelFunction)
        ):
            fault = f"its parameter {each.name!r} is filled in by Semantic Kernel, and would be asked of the model."
            remedy = "Annotate it as Annotated[..., {'include_in_function_choices': False}]."
            yield WiringFault(subject, fault, remedy)
