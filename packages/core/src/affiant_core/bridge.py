"""What every bridge needs and none should write again: arguments, results, signatures, versions (DECISIONS 5, 9)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from affiant_core.affiant import Affiant
from affiant_core.context import ActContext
from affiant_core.envelope import ReadResult, ToolEnvelope, ToolError, WriteProposal
from affiant_core.errors import ValueRefused, WireError, WireupInvalid, WiringError, WiringFault
from affiant_core.filters.failures import INVALID
from affiant_core.pipeline import ToolInvocation
from affiant_core.registry import ToolDescriptor
from affiant_core.telemetry import Telemetry
from affiant_core.values import JSON, spell
from affiant_core.wire import loads, quote

__all__ = [
    "ArgumentsRefused",
    "argument_fault",
    "argument_model",
    "bindable",
    "carried_arguments",
    "invalid_arguments",
    "model_text",
    "parse_arguments",
    "require_version",
    "turn_parameter",
]


class ArgumentsRefused(WireError):
    """Raised when what a model sent as arguments is not a JSON object that the tool could take. It quotes no value.

    ``places`` are the parameters that it is about, where that is known.
    """

    def __init__(self, reason: str, places: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.places = places


# --- arguments in --------------------------------------------------------------------------------------------------


def parse_arguments(text: str) -> dict[str, JSON]:
    """A model's argument text as a map, strictly. Empty text is an empty map.

    Raises ``ArgumentsRefused`` for malformed JSON, a repeated key, NaN or infinity, anything but an object.
    """
    if isinstance(text, str) and not text.strip():
        return {}
    try:
        document = loads(text)
    except WireError as error:
        raise ArgumentsRefused(str(error)) from None
    if not isinstance(document, dict):
        raise ArgumentsRefused("the arguments are not a JSON object.")
    return document


def carried_arguments(arguments: Mapping[str, object], *, without: Iterable[str] = ()) -> dict[str, JSON]:
    """The model's own arguments, copied, less what the framework or the host put in beside them.

    Raises ``ArgumentsRefused`` for names and values that are not JSON, NaN and infinity among them.
    """
    left_out = frozenset(without)
    carried: dict[str, JSON] = {}
    for name, value in arguments.items():
        if name not in left_out:
            try:
                spell({name: None}, "arguments")  # a name is a key of the row's identity
                carried[name] = spell(value, name)
            except ValueRefused as refused:
                raise ArgumentsRefused(str(refused), (str(name),)) from None
    return carried


def invalid_arguments(tool_name: str, places: Iterable[str] = ()) -> ToolError:
    """The one answer to arguments that do not fit: ``VALIDATION_FAILED`` with the parameters' names and no values."""
    # An unknown name is the model's own text; only one that could be a parameter's is repeated.
    named = ", ".join(sorted({each for each in places if len(each) <= 64 and each.replace("-", "_").isidentifier()}))
    detail = f" Check: {named}." if named else ""
    return ToolError(
        tool_name=tool_name, code=INVALID.code, message=f"The arguments do not fit the tool's parameters.{detail}"
    )


def argument_fault(error: Exception) -> list[str]:
    """The parameters that a pydantic validation error is about."""
    listing = getattr(error, "errors", None)  # asked for by name: an older schema raises the first pydantic's own error
    faults = cast(list[dict[str, Any]], listing()) if callable(listing) else []
    return [str(fault["loc"][0]) for fault in faults if fault.get("loc")]


# --- a tool's signature --------------------------------------------------------------------------------------------


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


def bindable(affiant: Affiant) -> tuple[ToolDescriptor, ...]:
    """The registered tools that have a function, after the whole wiring was checked.

    Raises ``WiringError`` with every fault, those of the tools' signatures included.
    """
    if not isinstance(affiant, Affiant):
        raise TypeError(
            f"a bridge binds an Affiant, not a {type(affiant).__name__}; wrap the tools in Affiant(tools=...)."
        )
    faults: list[WiringFault] = []
    try:
        affiant.check()
    except WiringError as error:
        faults += error.faults
    tools = tuple(descriptor for descriptor in affiant.registry if descriptor.function is not None)
    for descriptor in tools:
        try:
            argument_model(descriptor)
        except WiringError as error:
            faults += error.faults
    if not tools:
        remedy = "Pass an object of the tool class as tools=, or use wrap()."
        faults.append(WiringFault("tools", "there are none to bind.", remedy))
    if faults:
        raise WiringError(faults)
    return tools


# --- results out ---------------------------------------------------------------------------------------------------


def model_text(invocation: ToolInvocation, *, ceiling: int, telemetry: Telemetry) -> str | None:
    """What the model is given: the envelope's JSON, or the text as it is; ``None`` for an object that is neither.

    An envelope that names no tool gets the tool's own name. One that is larger than ``ceiling`` bytes of UTF-8 is cut,
    says so, and stays valid JSON. Text that is no envelope crosses untouched (DECISIONS 5).
    """
    content = invocation.text()
    if not isinstance(content, ToolEnvelope):
        envelope = invocation.envelope()
        if envelope is None or content is None or _utf8_length(content) <= ceiling:
            return content
        content = envelope
    if not content.tool_name:
        content = content.model_copy(update={"tool_name": invocation.tool_name})
    text = content.to_json_string()
    size = _utf8_length(text)
    if size <= ceiling:
        return text
    kept = _cut(content, size, ceiling)
    telemetry.emit(
        "affiant.result.cut",
        {"gen_ai.tool.name": invocation.tool_name, "result.bytes": size, "result.kept": _utf8_length(kept)},
    )
    return kept


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


_NOTE_ROOM = 256
"""What the longest note about a cut needs, in bytes."""


def _cut(envelope: ToolEnvelope, size: int, ceiling: int) -> str:
    tool_name = _fitting_text(envelope.tool_name, 128)
    if not isinstance(envelope, ReadResult):
        is_filed = isinstance(envelope, WriteProposal)  # nothing else comes out of the pipeline
        result = "The proposal is filed for review, and its record" if is_filed else "The result"
        too_large = ToolError(
            tool_name=tool_name,
            timestamp=envelope.timestamp,
            code="RESULT_TOO_LARGE",
            message=f"{result} of {size} bytes is larger than the limit of {ceiling} bytes and cannot be shown.",
        )
        return too_large.to_json_string()
    summary = _fitting_text(envelope.summary, 512)
    shown = envelope.model_copy(update={"markdown": "", "entities": (), "summary": summary, "tool_name": tool_name})
    room = ceiling - _utf8_length(shown.to_json_string()) - _NOTE_ROOM
    markdown = _fitting_text(envelope.markdown, room // 2)
    room -= _spelled_length(markdown)
    entities = []
    for entity in envelope.entities:
        room -= _utf8_length(entity.to_json_string()) + 1
        if room < 0:
            break
        entities.append(entity)
    note = (
        f" [Cut to fit {ceiling} bytes: {len(entities)} of {len(envelope.entities)} entities, "
        f"{_utf8_length(markdown)} of {_utf8_length(envelope.markdown)} bytes of markdown and "
        f"{_utf8_length(summary)} of {_utf8_length(envelope.summary)} bytes of summary are shown.]"
    )
    cut = shown.model_copy(update={"summary": summary + note, "markdown": markdown, "entities": tuple(entities)})
    return cut.to_json_string()


def _fitting_text(text: str, room: int) -> str:
    """The longest start of ``text`` whose JSON spelling fits ``room`` bytes, never cut inside a character."""
    shown = _first_bytes(text, room)
    while shown and (excess := _spelled_length(shown) - room) > 0:
        shown = shown[: len(shown) - max(1, excess // 6)]
    return shown


def _spelled_length(text: str) -> int:
    return _utf8_length(quote(text))


def _first_bytes(text: str, limit: int) -> str:
    encoded = text.encode("utf-8")
    return text if len(encoded) <= limit else encoded[: max(0, limit)].decode("utf-8", "ignore")


# --- the framework's version ---------------------------------------------------------------------------------------


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
