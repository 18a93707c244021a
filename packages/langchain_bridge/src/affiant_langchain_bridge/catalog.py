"""LangChain's tools and the registry's descriptors, each made from the other, and checked together (CV-1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import Field

from affiant_core import Affiant
from affiant_core import bridge as shared
from affiant_core.errors import WiringFault
from affiant_langchain_bridge.seam import Parameters, Seam, TurnOf, is_bridged, turn_from_config

_MCP = "langchain_mcp_adapters"  # whose tools call another server, and can be told by nothing else
_WAYS_IN = ("invoke", "ainvoke", "run", "arun", "batch", "abatch", "stream", "astream")


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
    bound: list[BaseTool] = []
    for each in shared.bound_functions(affiant, faults=shared.filled_parameters(affiant, "runtime", "LangGraph")):
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
    hosted = dict(shared.hosted_tool(tool) for tool in tools if isinstance(tool, dict))
    writes = {each.name for each in affiant.registry if each.is_write}
    faults = [fault for tool in tools if not isinstance(tool, dict) for fault in _faults_of(tool, writes)]
    offered = [each.name for each in affiant.registry if each.function is not None]
    faults += shared.indistinguishable([*(tool.name for tool in native), *offered])
    affiant.check((tool.name for tool in native), hosted, faults=faults)
    remedy = "Hand it to the agent beside the wrapped tools."  # accepted as uncovered, and still nothing to wrap
    shared.refuse(WiringFault(f"tool {name!r}", "it is a dictionary.", remedy) for name in hosted)
    return [seam.bridged(tool, Parameters.of(tool)) for tool in native]


def _faults_of(tool: object, writes: set[str]) -> Iterator[WiringFault]:
    subject = f"tool {shared.name_of(tool)!r}"
    if not isinstance(tool, BaseTool):
        remedy = "Make it one with @tool, or pass its object to Affiant(tools=...) and use bind()."
        yield WiringFault(subject, "it is not a LangChain tool.", remedy)
    elif is_bridged(tool):
        yield WiringFault(subject, "it is bridged already.", "Wrap each tool once.")
    elif tool.name in writes and _MCP in str(getattr(getattr(tool, "coroutine", None), "__module__", "")):
        yield shared.acts_elsewhere(tool.name)
    else:
        remedy = "Move what that does into _run and _arun."
        yield from shared.own_ways_in(tool, _WAYS_IN, package="langchain_core", remedy=remedy)
