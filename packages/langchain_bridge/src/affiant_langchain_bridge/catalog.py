"""LangChain's tools and the registry's descriptors, each made from the other, and checked together (CV-1)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import Field

from affiant_core import Affiant, CoverageCategory, WiringError
from affiant_core.bridge import acts_elsewhere, bound_functions, indistinguishable
from affiant_core.errors import WiringFault
from affiant_langchain_bridge.parameters import Parameters
from affiant_langchain_bridge.seam import Seam, TurnOf, is_bridged, turn_from_config

_MCP = "langchain_mcp_adapters"  # whose tools call another server, and can be told by nothing else


class _BoundTool(BaseTool):
    """What a model and LangChain see of a declared function; the seam calls the function itself."""

    args_schema: Any = Field(repr=False)  # no observer of an agent is to read the defaults of its tools

    def _run(self, /, **arguments):  # type: ignore[no-untyped-def]  # LangChain reads hints on every call
        raise NotImplementedError


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
    bound: list[BaseTool] = []
    for each in bound_functions(affiant, faults=faults):
        name, description = each.descriptor.name, each.descriptor.description
        tool = _BoundTool(name=name, description=description, args_schema=each.schema)
        bound.append(seam.bridged(tool, Parameters(function=each)))
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
    hosted = dict(hosted_tool(tool) for tool in tools if isinstance(tool, dict))
    writes = {each.name for each in affiant.registry if each.is_write}
    faults = [fault for tool in tools if not isinstance(tool, dict) for fault in _faults_of(tool, writes)]
    offered = [each.name for each in affiant.registry if each.function is not None]
    faults += indistinguishable([*(tool.name for tool in native), *offered])
    affiant.check((tool.name for tool in native), hosted, faults=faults)
    if hosted:  # accepted as uncovered, and still nothing that could be wrapped
        remedy = "Hand it to the agent beside the wrapped tools."
        raise WiringError([WiringFault(f"tool {name!r}", "it is a dictionary.", remedy) for name in hosted])
    return [seam.bridged(tool, Parameters.of(tool)) for tool in native]


def hosted_tool(tool: Mapping[str, Any]) -> tuple[str, CoverageCategory]:
    """The name of a tool that is a dictionary, which its provider or nobody runs, and why no gate stands there."""
    kind, function = tool.get("type"), tool.get("function")
    named = function if isinstance(function, Mapping) else tool
    name = next((named[key] for key in ("name", "server_label", "title") if named.get(key)), kind or "unnamed")
    if str(kind).startswith("mcp"):
        return str(name), CoverageCategory.HOSTED_MCP
    described = kind in {None, "function", "custom", "object"}  # to the model only: nothing stands behind the name
    return str(name), CoverageCategory.NO_EXECUTE if described else CoverageCategory.PROVIDER_EXECUTED


def _faults_of(tool: object, writes: set[str]) -> Iterator[WiringFault]:
    if not isinstance(tool, BaseTool):
        subject = f"tool {getattr(tool, '__name__', type(tool).__name__)!r}"
        remedy = "Make it one with @tool, or pass its object to Affiant(tools=...) and use bind()."
        yield WiringFault(subject, "it is not a LangChain tool.", remedy)
    elif is_bridged(tool):
        yield WiringFault(f"tool {tool.name!r}", "it is bridged already.", "Wrap each tool once.")
    elif tool.name in writes and _MCP in str(getattr(getattr(tool, "coroutine", None), "__module__", "")):
        yield acts_elsewhere(tool.name)
    else:
        for name in ("invoke", "ainvoke", "run", "arun", "batch", "abatch", "stream", "astream"):
            owner = next(kind for kind in type(tool).__mro__ if name in vars(kind))
            if not owner.__module__.startswith("langchain_core."):
                fault = f"its class {owner.__name__!r} defines {name!r} itself, which could lead past the gate."
                yield WiringFault(f"tool {tool.name!r}", fault, "Move what that does into _run and _arun.")
