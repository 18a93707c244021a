"""What a bridge checks before it touches a framework, and before it lets a call in (CV-1, CV-2; DECISIONS 12, 16)."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from affiant_core.affiant import Affiant
from affiant_core.context import TurnContext
from affiant_core.envelope import ToolError
from affiant_core.errors import WireupInvalid, WiringError, WiringFault
from affiant_core.names import NAME_PATTERN, RENAME, normalised_name, refused_name, twins, undeclared_tool
from affiant_core.registry import ToolDescriptor, marked_operation
from affiant_core.vocabulary import CoverageCategory

SourceT = TypeVar("SourceT")


def require_version(distribution: str, *, at_least: tuple[int, ...], below: tuple[int, ...], bridge: str) -> None:
    """Raise ``WireupInvalid`` unless the installed framework is in the range that the bridge was tested with."""
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise WireupInvalid(f"{bridge} needs {distribution}, which is not installed.") from None
    if not _in_range(installed, at_least, below):
        wanted = f">={'.'.join(map(str, at_least))},<{'.'.join(map(str, below))}"
        raise WireupInvalid(f"{bridge} works with {distribution} {wanted}; {installed} is installed.")


_VERSION = re.compile(r"(?:\d+!)?(\d+(?:\.\d+)*)[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)?", re.ASCII | re.IGNORECASE)


def _in_range(installed: str, at_least: tuple[int, ...], below: tuple[int, ...]) -> bool:
    """Whether a version lies between two. A pre-release of the lower one is before it."""
    match = _VERSION.match(installed)
    if match is None:
        return False
    numbers, least = _trimmed(map(int, match[1].split("."))), _trimmed(at_least)
    return least <= numbers < _trimmed(below) and not (match[2] and numbers == least)


def _trimmed(numbers: Iterable[int]) -> tuple[int, ...]:
    """Version numbers without zeros at the end: 1.0 and 1.0.0 are one."""
    kept = list(numbers)
    while kept and kept[-1] == 0:
        kept.pop()
    return tuple(kept)


# --- a call's way in -----------------------------------------------------------------------------------------------


def admitted(
    affiant: Affiant,
    tool_name: str,
    turn_of: Callable[[SourceT], object],
    source: SourceT,
    *,
    plugin: str | None = None,
    remedy: str,
) -> tuple[ToolDescriptor, TurnContext]:
    """Let a call in before any body: ``turn_of`` finds a ``TurnContext`` in ``source``, and the tool is declared.

    Raises ``WireupInvalid``, which a bridge lets through to the host (DECISIONS 12, 13); also when ``turn_of`` raises.
    """
    try:
        context = turn_of(source)
    except Exception as error:
        raise WireupInvalid(f"CV-2: turn_of raised a {type(error).__name__}, so the call has no turn.") from error
    return affiant.admit(tool_name, context, plugin=plugin, remedy=remedy)


# --- faults -------------------------------------------------------------------------------------------------------


def faults_of(step: Callable[[], Iterable[WiringFault] | None]) -> list[WiringFault]:
    """What a step of the wiring has found, whether it tells of its faults or raises them."""
    try:
        return list(step() or ())
    except WiringError as error:
        return list(error.faults)


def refuse(faults: Iterable[WiringFault]) -> None:
    """Raise ``WiringError`` with every fault once, if there is any (CV-1)."""
    if found := list(dict.fromkeys(faults)):
        raise WiringError(found)


# --- faults that every framework's tools can have ------------------------------------------------------------------


def indistinguishable(names: Iterable[str], remedy: str = RENAME) -> list[WiringFault]:
    """One fault for all names that are one to a model, since a provider may normalise them; a name given twice too."""
    return twins(((normalised_name(name), name) for name in names), remedy)


def acts_elsewhere(name: str) -> WiringFault:
    """The fault of a third party's tool that is declared to write: its server acts when it is called (DECISIONS 16)."""
    return WiringFault(
        f"tool {name!r}",
        "it is declared to write and acts on its own server, before any gate could see its result.",
        "Declare a tool of your own that builds the proposal instead.",
    )


def unfit_names(names: Iterable[str], remedy: str) -> list[WiringFault]:
    """Names that a provider refuses, one fault for each, and names that a model could not tell apart (C18)."""
    names = list(names)
    refused = (fault for name in names for fault in refused_name(name, name, remedy))
    return [*refused, *indistinguishable(names, remedy)]


def contradictions(
    name: str, function: object, descriptor: ToolDescriptor, elsewhere: Iterable[str] = ()
) -> Iterator[WiringFault]:
    """Where a framework's function is not what it is declared as: by its mark, or as a write that acts by itself.

    ``elsewhere`` are the modules whose functions act on a server of their own.
    """
    marked = marked_operation(function)
    if marked is not None and marked != descriptor.operation:
        fault = f"it is marked {marked} and declared {descriptor.operation}."
        yield WiringFault(f"tool {name!r}", fault, "Let the declaration say what the mark says.")
    if descriptor.is_write and is_made_by(function, *elsewhere):
        yield acts_elsewhere(name)


def without_tool(affiant: Affiant, there: Collection[ToolDescriptor], where: str) -> list[WiringFault]:
    """The faults of declarations whose tool is not ``there``, and is not a function of the host's own (C18)."""
    fault, remedy = f"it is declared, and {where} has it.", "Add it first, or declare it later."
    return [
        WiringFault(f"tool {each.qualified_name!r}", fault, remedy)
        for each in affiant.registry
        if each.function is None and each not in there
    ]


def undeclared(name: str, tool_name: str, plugin: str) -> WiringFault:
    """The fault of a framework's function about which nothing is declared under its own name and plugin (CV-1)."""
    return undeclared_tool(name, f"affiant.declare_read({tool_name!r}, plugin={plugin!r}) or declare_write(...),")


def is_made_by(function: object, *modules: str) -> bool:
    """Whether a function runs the code of one of these modules, whatever it is wrapped in."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", None)
    kinds = (function,) if owner is None else type(owner).__mro__
    return any(getattr(kind, "__module__", None) in modules for kind in kinds)


FUNCTION_NOT_FOUND = "FUNCTION_NOT_FOUND"
"""The code for a call, made by hand, of a tool that there is not."""


def not_found(name: str) -> ToolError:
    """The answer to it (REFERENCE 9). The name is the model's own text, and repeated only if it could be a tool's."""
    told = name if NAME_PATTERN.fullmatch(name) else "unknown"
    return ToolError(tool_name=told, code=FUNCTION_NOT_FOUND, message="There is no tool of this name.")


# --- tools of any make ---------------------------------------------------------------------------------------------


def name_of(tool: object) -> str:
    """What a fault calls a tool: its own name, a function's, or that of its type."""
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


def hosted_tool(tool: Mapping[str, Any]) -> tuple[str, CoverageCategory]:
    """The name of a tool that is a dictionary, which its provider or nobody runs, and why no gate stands there."""
    kind, function = tool.get("type"), tool.get("function")
    named = function if isinstance(function, Mapping) else tool
    name = next((named[key] for key in ("name", "server_label", "title") if named.get(key)), kind or "unnamed")
    if str(kind).startswith("mcp"):
        return str(name), CoverageCategory.HOSTED_MCP
    described = kind in {None, "function", "custom", "object"}  # to the model only: nothing stands behind the name
    return str(name), CoverageCategory.NO_EXECUTE if described else CoverageCategory.PROVIDER_EXECUTED


def own_ways_in(tool: object, ways: Iterable[str], *, package: str, remedy: str) -> Iterator[WiringFault]:
    """The faults of a tool whose class defines a way in itself where the framework's ``package`` ought to (CV-1)."""
    for way in ways:
        owner = next(kind for kind in type(tool).__mro__ if way in vars(kind))
        if not owner.__module__.startswith(f"{package}."):
            fault = f"its class {owner.__name__!r} defines {way!r} itself, which could lead past the gate."
            yield WiringFault(f"tool {name_of(tool)!r}", fault, remedy)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a framework's function, resolved; none when that fails, as a framework goes without them."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # an annotation may hold any expression
        return {}


def dressed(wrapper: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """``wrapper`` with the name and signature of ``original``, its hints resolved: a framework may read them often."""
    functools.update_wrapper(wrapper, original)
    signature, hints = inspect.signature(original), hints_of(original)
    if hints or not original.__annotations__:
        wrapper.__annotations__ = hints
        stated = [each.replace(annotation=hints.get(name, each.empty)) for name, each in signature.parameters.items()]
        wrapper.__signature__ = signature.replace(parameters=stated)  # type: ignore[attr-defined]  # functions take it
    return wrapper


def filled_parameters(affiant: Affiant, name: str, framework: str) -> list[WiringFault]:
    """The faults of a host's own functions with a parameter that a framework fills, as its name alone tells it to."""
    return [
        WiringFault(f"tool {each.qualified_name!r}", f"{framework} fills a parameter named {name!r}.", "Rename it.")
        for each in affiant.registry
        if each.function is not None and name in inspect.signature(each.function).parameters
    ]


def bears(hint: Any, marks: Collection[str]) -> bool:
    """Whether an annotation is, or has in ``Annotated``, one of these marks: names of types or of what they extend."""
    parts = (hint, get_origin(hint), *get_args(hint)[1:])
    kinds = (part if isinstance(part, type) else type(part) for part in parts)
    return any(base.__name__ in marks for kind in kinds for base in kind.__mro__)


def require_affiant(affiant: object, where: str) -> Affiant:
    """``affiant`` as the host's ``Affiant``. Raises ``TypeError`` that says what was given instead and what to pass."""
    if isinstance(affiant, Affiant):
        return affiant
    given = f"the class {affiant.__name__}" if isinstance(affiant, type) else f"a {type(affiant).__name__}"
    raise TypeError(f"{where} takes the host's Affiant object and was given {given}; pass Affiant(tools=...).")
