"""Which tools there are and which of them write: marks, descriptors, the walk over a tool class, look-ups (seed; CV-1).

A mark declares; registering makes it real. A function that the registry holds no declaration for is one that cannot be
told from a write, so a bridge refuses it at wiring. Marks, walk and look-ups share one notion of what a tool is, so
they stand in one module.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, cast, overload

from affiant_core.errors import WireupInvalid, WiringError, WiringFault
from affiant_core.names import normalised_name, refused_name, twins, undeclared_tool
from affiant_core.vocabulary import FieldKind, Operation

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MARK = "__affiant_tool__"


@dataclass(frozen=True, slots=True)
class FieldDeclaration:
    """One field that a write proposes: how it is shown, and whether the record may stand without it."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    required: bool = False
    description: str | None = None
    allowed_values: tuple[object, ...] | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDescriptor:
    """A registered tool: the name that the model sees, whether and what it writes, and the function behind it.

    ``operation`` is ``ReadQuery`` for a read and anything else for a write; a host's own verb is a create-shaped write.
    ``function`` is ``None`` for a tool that the host's framework already holds.
    """

    name: str
    plugin: str | None = None
    operation: str = Operation.READ_QUERY.value
    entity_type: str | None = None
    fields: tuple[FieldDeclaration, ...] = ()
    strategy: object = None
    description: str = ""
    function: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def is_write(self) -> bool:
        """Whether the tool is declared to propose a write: any operation but exactly ``ReadQuery``."""
        return self.operation != Operation.READ_QUERY

    @property
    def qualified_name(self) -> str:
        """``Plugin.name``, or just the name."""
        return f"{self.plugin}.{self.name}" if self.plugin else self.name


@dataclass(frozen=True, slots=True)
class _Mark:
    operation: str
    entity_type: str | None
    name: str | None
    fields: tuple[FieldDeclaration, ...] = ()
    strategy: object = None


@overload
def read_tool(function: FunctionT, /) -> FunctionT: ...


@overload
def read_tool(*, name: str | None = None, entity_type: str | None = None) -> Callable[[FunctionT], FunctionT]: ...


def read_tool(
    function: FunctionT | None = None, /, *, name: str | None = None, entity_type: str | None = None
) -> FunctionT | Callable[[FunctionT], FunctionT]:
    """Mark a function or method as a tool that fetches and changes nothing; it returns a ``ReadResult``.

    ``name`` is what the model sees, the function's own name unless given.
    """
    mark = _Mark(Operation.READ_QUERY.value, entity_type, name)
    return _marker(mark) if function is None else _marker(mark)(function)


def write_tool(
    *,
    operation: str,
    entity_type: str,
    name: str | None = None,
    fields: Sequence[FieldDeclaration] = (),
    strategy: object = None,
) -> Callable[[FunctionT], FunctionT]:
    """Mark a function or method as a tool that proposes a write and makes none; it returns a ``WriteProposal``.

    ``operation`` is ``WriteCreate``, ``WriteUpdate`` or the host's own verb, which is then create-shaped.
    ``fields`` and ``strategy`` say what is proposed and how it is inferred. Raises ``ValueError`` for ``ReadQuery`` and
    for a blank operation or entity type.
    """
    _require_write(operation, entity_type, "mark a read with @read_tool")
    return _marker(_Mark(str(operation), entity_type, name, tuple(fields), strategy))


def _require_write(operation: str, entity_type: str, instead: str) -> None:
    if operation == Operation.READ_QUERY:
        raise ValueError(f"a write tool's operation is not 'ReadQuery'; {instead}.")
    if not operation.strip() or not entity_type.strip():
        raise ValueError("a write tool names its operation and its entity type.")


def _marker(mark: _Mark) -> Callable[[FunctionT], FunctionT]:
    if mark.name is not None and not mark.name.strip():
        raise ValueError("a tool's name is not blank.")

    def apply(function: FunctionT) -> FunctionT:
        setattr(_unwrapped(function), _MARK, mark)
        return function

    return apply


def _unwrapped(member: object) -> object:
    """The function on which a mark stands, inside what a class may wrap around it."""
    match member:
        case staticmethod() | classmethod():
            return member.__func__
        case property():
            return member.fget
        case cached_property():
            return member.func
        case _:
            return member


def _mark_of(function: object) -> _Mark | None:
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, _Mark) else None


def marked_operation(function: object) -> str | None:
    """The operation that ``read_tool`` or ``write_tool`` has marked a function with, bound or partial, if it is."""
    while isinstance(function, functools.partial):
        function = function.func
    mark = _mark_of(function)
    return None if mark is None else mark.operation


class ToolRegistry:
    """The declared tools, keyed by the exact pair of name and plugin. Filled at wiring, only read afterwards."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str | None], ToolDescriptor] = {}
        self._by_name: dict[str, list[ToolDescriptor]] = {}

    def __iter__(self) -> Iterator[ToolDescriptor]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, descriptor: ToolDescriptor) -> ToolDescriptor:
        """Register one tool. Raises ``WiringError`` when its name and plugin are taken."""
        known = self._tools.get((descriptor.name, descriptor.plugin))
        if known is not None:
            raise WiringError([_taken(descriptor, known)])
        self._put(descriptor)
        return descriptor

    def declare_read(self, name: str, *, plugin: str | None = None, entity_type: str | None = None) -> ToolDescriptor:
        """Declare that a tool which the host's framework holds writes nothing."""
        return self.add(ToolDescriptor(name, plugin, entity_type=entity_type))

    def declare_write(
        self,
        name: str,
        *,
        operation: str,
        entity_type: str,
        plugin: str | None = None,
        fields: Sequence[FieldDeclaration] = (),
        strategy: object = None,
    ) -> ToolDescriptor:
        """Declare that a tool which the host's framework holds proposes a write.

        Raises ``ValueError`` for ``ReadQuery`` and for a blank operation or entity type.
        """
        _require_write(operation, entity_type, "use declare_read")
        return self.add(ToolDescriptor(name, plugin, str(operation), entity_type, tuple(fields), strategy))

    def walk(self, target: object, *, plugin: str | None = None) -> tuple[ToolDescriptor, ...]:
        """Register every tool of an object or a class, or one function.

        Of an object or class the public instance methods are kept, inherited ones too, and read as marked. An override
        is marked as what it overrides, and a method with no mark at all is a read (seed). Skipped: names with a leading
        underscore, properties, static and class methods, generic functions. ``plugin`` is the type's name unless given,
        and none for a function. Methods of a class, as opposed to an object, are declared and cannot be called.

        Raises ``WiringError`` listing every fault: a mark on something skipped, two tools of one method or name.
        """
        if inspect.isroutine(target):
            function = cast(Callable[..., Any], target)
            found = [_describe(function, function.__name__, plugin, _mark_of(function))]
            faults: list[WiringFault] = []
        else:
            found, faults = _walk_type(target, plugin)
        fresh: dict[tuple[str, str | None], ToolDescriptor] = {}
        for descriptor in found:
            known = self._tools.get((descriptor.name, descriptor.plugin)) or fresh.get(
                (descriptor.name, descriptor.plugin)
            )
            if known is not None:
                faults.append(_taken(descriptor, known))
            fresh[(descriptor.name, descriptor.plugin)] = descriptor
        if faults:
            raise WiringError(faults)
        if isinstance(target, type):
            fresh = {key: replace(descriptor, function=None) for key, descriptor in fresh.items()}
        for descriptor in found:
            self._put(descriptor)
        return tuple(fresh.values())

    def find_exact(self, name: str, plugin: str | None) -> ToolDescriptor | None:
        """The tool under exactly this name and plugin; no plugin differs from every named one."""
        return self._tools.get((name, plugin))

    def find(self, name: str) -> ToolDescriptor | None:
        """The one tool under this name in any plugin. Raises ``WireupInvalid`` when several plugins have one.

        A near miss is unknown; nothing is guessed.
        """
        matches = self._matching(name)
        if len(matches) > 1:
            raise WireupInvalid(f"the tool name {name!r} is ambiguous: {_listed(matches)}. Name the plugin.")
        return matches[0] if matches else None

    def faults(self) -> list[WiringFault]:
        """What is wrong with the tools as a model sees them: names that a provider refuses or cannot tell apart."""
        faults: list[WiringFault] = []
        for each in self:
            faults += refused_name(each.name, each.qualified_name, "Give it another with name=.")
            fields = [declared.name for declared in each.fields]
            if len(set(fields)) != len(fields):
                faults.append(
                    WiringFault(f"tool {each.qualified_name!r}", "it declares a field twice.", "Keep one of them.")
                )
        # A tool with a function is offered under its bare name; those of a framework, within their plugin.
        places = [(each, each.plugin if each.function is None else _BARE) for each in self]
        return faults + twins(((place, normalised_name(each.name)), each.qualified_name) for each, place in places)

    def undeclared(self, names: Iterable[str]) -> list[WiringFault]:
        """One fault for each of a framework's tools that nothing is declared about, or more than one thing."""
        faults: list[WiringFault] = []
        for name in names:
            matches = self._matching(name)
            if not matches:
                faults.append(undeclared_tool(name, "affiant.declare_read(...) or affiant.declare_write(...),"))
            elif len(matches) > 1:
                faults.append(
                    WiringFault(f"tool {name!r}", f"its name is ambiguous: {_listed(matches)}.", "Declare it once.")
                )
        return faults

    def _matching(self, name: str) -> list[ToolDescriptor]:
        return self._by_name.get(name, [])

    def _put(self, descriptor: ToolDescriptor) -> None:
        self._tools[(descriptor.name, descriptor.plugin)] = descriptor
        self._by_name.setdefault(descriptor.name, []).append(descriptor)


_BARE = object()


def _listed(descriptors: Iterable[ToolDescriptor]) -> str:
    return ", ".join(descriptor.qualified_name for descriptor in descriptors)


def _taken(descriptor: ToolDescriptor, known: ToolDescriptor) -> WiringFault:
    return WiringFault(
        f"tool {_party(descriptor)}",
        f"the name is taken by {_party(known)}.",
        "Give one of them another name with name=, or register it once.",
    )


def _party(descriptor: ToolDescriptor) -> str:
    """A tool with what tells it from another of the same name."""
    behind = getattr(descriptor.function, "__qualname__", "declared")
    return f"{descriptor.qualified_name!r} ({'write' if descriptor.is_write else 'read'}, {behind})"


def _describe(function: Callable[..., Any], method_name: str, plugin: str | None, mark: _Mark | None) -> ToolDescriptor:
    mark = mark or _Mark(Operation.READ_QUERY.value, None, None)
    return ToolDescriptor(
        name=mark.name or method_name,
        plugin=plugin,
        operation=mark.operation,
        entity_type=mark.entity_type,
        fields=mark.fields,
        strategy=mark.strategy,
        description=inspect.getdoc(function) or method_name.replace("_", " "),
        function=function,
    )


def _walk_type(target: object, plugin: str | None) -> tuple[list[ToolDescriptor], list[WiringFault]]:
    kind = target if isinstance(target, type) else type(target)
    owner = kind.__name__
    found: list[ToolDescriptor] = []
    faults: list[WiringFault] = []
    by_function: dict[object, str] = {}
    for name in _member_names(kind):
        member = inspect.getattr_static(kind, name)
        function = _unwrapped(member)
        skipped = _why_skipped(name, member)
        if skipped:
            if _mark_of(function) is not None:
                faults.append(
                    WiringFault(f"{owner}.{name}", f"it is marked as a tool and is {skipped}, which the walk skips.",
                                "Make it a public instance method, or register the function itself.")
                )  # fmt: skip
            continue
        if function in by_function:
            faults.append(
                WiringFault(f"{owner}.{name}", f"it is the same method as {owner}.{by_function[function]}.",
                            "Keep one name for it.")
            )  # fmt: skip
            continue
        by_function[function] = name
        method = member if isinstance(target, type) else getattr(target, name)
        descriptor = _describe(method, name, plugin or owner, _nearest_mark(kind, name))
        found.append(replace(descriptor, function=None) if isinstance(target, type) else descriptor)
    return found, faults


def _nearest_mark(kind: type, name: str) -> _Mark | None:
    """The mark of a method, or of the one that it overrides: a write does not become a read by being overridden."""
    marks = (_mark_of(_unwrapped(vars(base)[name])) for base in kind.__mro__ if name in vars(base))
    return next((mark for mark in marks if mark is not None), None)


def _member_names(kind: type) -> list[str]:
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        if base is not object:
            names.update(dict.fromkeys(vars(base)))
    return list(names)


def _why_skipped(name: str, member: object) -> str | None:
    if name.startswith("_"):
        return "not public"
    if isinstance(member, staticmethod):
        return "a static method"
    if isinstance(member, classmethod):
        return "a class method"
    if not inspect.isfunction(member):
        return "not a method"
    return "generic" if _is_generic(member) else None


def _is_generic(function: Callable[..., Any]) -> bool:
    if getattr(function, "__type_params__", ()):
        return True
    try:
        annotations = inspect.get_annotations(function, eval_str=True)
    except Exception:  # noqa: BLE001  # unreadable text is the business of whoever binds the tool
        annotations = inspect.get_annotations(function)
    return any(map(_is_open, annotations.values()))


def _is_open(annotation: object) -> bool:
    """Whether an annotation leaves a type to be chosen. A generic class named without one is a plain class."""
    if isinstance(annotation, TypeVar | ParamSpec | TypeVarTuple):
        return True
    return not isinstance(annotation, type) and bool(getattr(annotation, "__parameters__", ()))
