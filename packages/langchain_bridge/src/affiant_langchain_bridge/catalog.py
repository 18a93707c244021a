"""LangChain's tools and the registry's descriptors, each made from the other, and checked together (CV-1)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from affiant_core import Affiant, ToolDescriptor, WiringError
from affiant_core.bridge import argument_model, bindable, require_version, turn_parameter
from affiant_core.driver import wait_for
from affiant_core.errors import WiringFault
from affiant_langchain_bridge.seam import Seam, TurnOf, turn_from_config


def bind(affiant: Affiant, *, turn_of: TurnOf = turn_from_config) -> list[BaseTool]:
    """LangChain tools for every tool that ``affiant`` was given, each call going through its pipeline and gate.

    Hand the list to ``create_agent``, a ``ToolNode`` or ``model.bind_tools``. Each call needs a ``TurnContext``, which
    ``turn_of`` takes from the call's config: under ``config["configurable"]["affiant"]`` unless told otherwise.

    Raises ``WiringError`` with every fault of the wiring.
    """
    _check_version()
    descriptors = bindable(affiant)
    seam = Seam(affiant, turn_of)
    return [seam.bridged(_native(descriptor), descriptor, _turn_parameter(descriptor)) for descriptor in descriptors]


def wrap(tools: Sequence[object], affiant: Affiant, *, turn_of: TurnOf = turn_from_config) -> list[BaseTool]:
    """Bridged copies of tools that the host already has; the originals are left as they are, and ungated.

    Every tool must be declared with ``affiant.declare_read`` or ``affiant.declare_write``. A tool that acts on another
    system inside its own body cannot be made safe by wrapping it (GT-6).

    Raises ``WiringError`` listing, at once, every undeclared tool, every tool that is bridged already, every two tools
    of one name, and everything that is not a LangChain tool, a provider's own tools among them.
    """
    _check_version()
    faults: list[WiringFault] = []
    native = [tool for tool in tools if isinstance(tool, BaseTool)]
    faults += [_not_a_tool(tool) for tool in tools if not isinstance(tool, BaseTool)]
    faults += [
        WiringFault(f"tool {tool.name!r}", "it is bridged already.", "Wrap each tool once.")
        for tool in native
        if Seam.is_bridged(tool)
    ]
    names = [tool.name for tool in native]
    faults += [
        WiringFault(f"tool {twice!r}", "two tools share this name.", "Rename one of them.")
        for twice in sorted({name for name in names if names.count(name) > 1})
    ]
    try:
        affiant.check(names)
    except WiringError as error:
        faults += error.faults
    if faults:
        raise WiringError(faults)
    seam = Seam(affiant, turn_of)
    return [seam.bridged(tool, affiant.registry.find(tool.name), None) for tool in native]


def _not_a_tool(tool: object) -> WiringFault:
    if isinstance(tool, dict):
        name = tool.get("name") or tool.get("type") or "unnamed"
        return WiringFault(
            f"tool {name!r}",
            "it is a provider's own tool (a dictionary); it runs at the provider, where no gate can stand.",
            "Leave it out, or put a tool of your own in its place.",
        )
    return WiringFault(
        f"tool {getattr(tool, '__name__', type(tool).__name__)!r}",
        "it is not a LangChain tool.",
        "Make it one with @tool, or pass its object to Affiant(tools=...) and use bind().",
    )


def _check_version() -> None:
    require_version("langchain-core", at_least=(1, 0), below=(2,), bridge="affiant-langchain-bridge")


def _turn_parameter(descriptor: ToolDescriptor) -> str | None:
    return None if descriptor.function is None else turn_parameter(descriptor.function)


def _native(descriptor: ToolDescriptor) -> BaseTool:
    function = descriptor.function
    assert function is not None  # bindable() gives none without
    is_async = inspect.iscoroutinefunction(function)
    return StructuredTool(
        name=descriptor.name,
        description=descriptor.description,
        args_schema=argument_model(descriptor),
        func=_waiting(function) if is_async else _plain(function),
        coroutine=_plain(function) if is_async else None,
    )


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a signature that names nothing, so that LangChain injects nothing of its own by name."""
    if inspect.iscoroutinefunction(function):

        async def call_async(**arguments):  # type: ignore[no-untyped-def]  # LangChain reads hints on every call
            return await function(**arguments)

        return call_async

    def call(**arguments):  # type: ignore[no-untyped-def]  # LangChain reads hints on every call
        return function(**arguments)

    return call


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """An asynchronous function for a synchronous call."""

    def call(**arguments):  # type: ignore[no-untyped-def]  # LangChain reads hints on every call
        return wait_for(function(**arguments))

    return call
