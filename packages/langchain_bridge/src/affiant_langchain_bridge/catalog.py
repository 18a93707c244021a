"""LangChain's tools and the registry's descriptors, each made from the other, and checked together (CV-1)."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from langchain_core.tools import BaseTool
from pydantic import Field

from affiant_core import Affiant, WiringError
from affiant_core.bridge import argument_model, bindable, turn_parameter
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.errors import WiringFault
from affiant_langchain_bridge.parameters import Parameters
from affiant_langchain_bridge.seam import Seam, TurnOf, turn_from_config

_MCP = "langchain_mcp_adapters"  # whose tools call another server, and can be told by nothing else


class _BoundTool(BaseTool):
    """A declared function. All its parameters are the model's, so no name of one means anything to LangChain."""

    function: Callable[..., Any] = Field(exclude=True, repr=False)

    def _run(self, /, **arguments):  # type: ignore[no-untyped-def]  # LangChain reads hints on every call
        return self.function(**arguments)  # the seam waits for what an asynchronous function returns

    async def _arun(self, /, **arguments):  # type: ignore[no-untyped-def]  # as above
        return await ASYNCHRONOUS.offload(functools.partial(self.function, **arguments))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy with the same function, since the object behind it, and its connections, are the host's."""
        return super().__deepcopy__({**(memo or {}), id(self.function): self.function})


def bind(affiant: Affiant, *, turn_of: TurnOf = turn_from_config) -> list[BaseTool]:
    """LangChain tools for every tool that ``affiant`` was given, each call going through its pipeline and gate.

    Hand the list to ``create_agent``, a ``ToolNode`` or ``model.bind_tools``. Each call needs a ``TurnContext``, which
    ``turn_of`` takes from the call's config: under ``config["configurable"]["affiant"]`` unless told otherwise.

    Raises ``WiringError`` with every fault of the wiring.
    """
    seam = Seam(affiant, turn_of)
    faults = [
        WiringFault(f"tool {each.qualified_name!r}", "LangGraph fills a parameter named 'runtime'.", "Rename it.")
        for each in affiant.registry
        if each.function is not None and "runtime" in inspect.signature(each.function).parameters
    ]
    try:
        bindable(affiant)
    except WiringError as error:
        faults += error.faults
    if faults:
        raise WiringError(faults)
    bound: list[BaseTool] = []
    for each in affiant.registry:
        if (function := each.function) is not None:
            schema = argument_model(each)
            tool = _BoundTool(name=each.name, description=each.description, args_schema=schema, function=function)
            bound.append(seam.bridged(tool, Parameters.of(tool, bound=True, turn=turn_parameter(function))))
    return bound


def wrap(tools: Sequence[object], affiant: Affiant, *, turn_of: TurnOf = turn_from_config) -> list[BaseTool]:
    """Bridged copies of tools that the host already has; the originals are left as they are, and ungated.

    Every tool must be declared with ``affiant.declare_read`` or ``affiant.declare_write``. A tool that acts on another
    system inside its own body cannot be made safe by wrapping it (GT-6).

    Raises ``WiringError`` listing, at once, every undeclared tool, every tool that is bridged already or has a way in
    of its own, all tools whose names cannot be told apart, and everything that is not a LangChain tool.
    """
    seam = Seam(affiant, turn_of)
    native = [tool for tool in tools if isinstance(tool, BaseTool)]
    writes = {each.name for each in affiant.registry if each.is_write}
    faults = [fault for tool in tools for fault in _faults_of(tool, writes)]
    twins: dict[str, list[str]] = {}
    for name in [tool.name for tool in native] + [each.name for each in affiant.registry if each.function is not None]:
        twins.setdefault(re.sub("[^a-z0-9]+", "_", name.lower()), []).append(repr(name))
    for names in twins.values():
        if len(names) > 1:
            fault = "a model could not tell their names apart."
            faults.append(WiringFault(f"tools {' and '.join(names)}", fault, "Rename one with name=."))
    try:
        affiant.check(tool.name for tool in native)
    except WiringError as error:
        faults += error.faults
    if faults:
        raise WiringError(list(dict.fromkeys(faults)))
    return [seam.bridged(tool, Parameters.of(tool)) for tool in native]


def _faults_of(tool: object, writes: set[str]) -> Iterator[WiringFault]:
    if isinstance(tool, dict):
        subject = f"tool {tool.get('name') or tool.get('type') or 'unnamed'!r}"
        fault = "it is a provider's own tool (a dictionary); it runs at the provider, where no gate can stand."
        yield WiringFault(subject, fault, "Leave it out, or put a tool of your own in its place.")
    elif not isinstance(tool, BaseTool):
        subject = f"tool {getattr(tool, '__name__', type(tool).__name__)!r}"
        remedy = "Make it one with @tool, or pass its object to Affiant(tools=...) and use bind()."
        yield WiringFault(subject, "it is not a LangChain tool.", remedy)
    elif getattr(type(tool), "__affiant_bridged__", False):
        yield WiringFault(f"tool {tool.name!r}", "it is bridged already.", "Wrap each tool once.")
    elif tool.name in writes and _MCP in str(getattr(getattr(tool, "coroutine", None), "__module__", "")):
        fault = "it is declared to write and acts on its own server, before any gate could see its result."
        yield WiringFault(f"tool {tool.name!r}", fault, "Declare a tool of your own that builds the proposal instead.")
    else:
        for name in ("invoke", "ainvoke", "run", "arun", "batch", "abatch", "stream", "astream"):
            owner = next(kind for kind in type(tool).__mro__ if name in vars(kind))
            if not owner.__module__.startswith("langchain_core."):
                fault = f"its class {owner.__name__!r} defines {name!r} itself, which could lead past the gate."
                yield WiringFault(f"tool {tool.name!r}", fault, "Move what that does into _run and _arun.")
