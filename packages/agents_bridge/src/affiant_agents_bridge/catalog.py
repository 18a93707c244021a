"""The SDK's tools and the registry's descriptors, each made from the other, and checked together (CV-1)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import agents
from agents import FunctionTool, Tool, ToolOriginType
from agents.tool import get_function_tool_origin, set_function_tool_failure_error_function

from affiant_agents_bridge.seam import Body, Invoker, TurnOf, turn_from_context
from affiant_core import Affiant, CoverageCategory
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.errors import WiringFault


def bind(affiant: Affiant, *, turn_of: TurnOf = turn_from_context) -> list[Tool]:
    """Function tools for every tool that ``affiant`` was given, each call going through its pipeline and gate.

    Hand the list to an agent. Each call needs a ``TurnContext``, which ``turn_of`` takes from the call's context: what
    was passed as ``Runner.run(..., context=...)``, unless told otherwise. Raises ``WiringError`` with every fault.
    """
    return [_bound(each, affiant, turn_of) for each in shared.bound_functions(affiant)]


def wrap(tools: Sequence[object], affiant: Affiant, *, turn_of: TurnOf = turn_from_context) -> list[Tool]:
    """Wired copies of function tools that the host already has; the originals are left as they are, and ungated.

    Every tool must be declared with ``affiant.declare_read`` or ``affiant.declare_write``. A tool that acts on another
    system inside its own body cannot be made safe by wrapping it (GT-6). A tool that runs elsewhere is handed back as
    it is when ``Affiant(uncovered=...)`` names it. Raises ``WiringError`` with every fault: tools that are undeclared,
    wired already, an agent, declared to write on an MCP server, not the SDK's, that no gate can stand in front of, or
    whose names or settings do not go with a gate.
    """
    writes = {each.name for each in shared.require_affiant(affiant, "wrap").registry if each.is_write}
    offered = [each.name for each in affiant.registry if each.function is not None]
    faults = [fault for tool in tools for fault in _faults_of(tool, writes)]
    affiant.check(*kinds_of(tools), faults=[*faults, *shared.indistinguishable([*map(name_of, tools), *offered])])
    return [_wired(each, affiant, turn_of) if isinstance(each, FunctionTool) else cast(Tool, each) for each in tools]


def _bound(function: shared.BoundFunction, affiant: Affiant, turn_of: TurnOf) -> Tool:
    descriptor = function.descriptor
    body: Body = lambda _, __, arguments, turn: function.call(ASYNCHRONOUS, arguments, turn)  # noqa: E731  # it is one
    invoker = Invoker(affiant, turn_of, descriptor, body)
    # A strict schema has no parameter that a model may leave out, so no default would ever be one.
    tool = FunctionTool(descriptor.name, descriptor.description, function.schema, invoker, strict_json_schema=False)
    return _finished(tool, invoker)


def _wired(tool: FunctionTool, affiant: Affiant, turn_of: TurnOf) -> Tool:
    bare, wired = copy.copy(tool), copy.copy(tool)
    set_function_tool_failure_error_function(bare, None)  # or the pipeline would get a text, and never the exception
    wired.timeout_seconds = None  # out there it would cut a filing short, and tell the model in the SDK's own words
    descriptor, schema = affiant.registry.find(tool.name), tool.params_json_schema
    assert descriptor is not None  # as wrap() has seen
    is_closed = schema.get("additionalProperties") is False or hasattr(tool, "__wrapped__")  # by @function_tool
    takes = frozenset(schema.get("properties", ())) if is_closed else None
    limit, raises = tool.timeout_seconds, tool.timeout_behavior == "raise_exception"
    body: Body = lambda ctx, text, *_: bare.on_invoke_tool(ctx, text)  # noqa: E731  # as above
    wired.on_invoke_tool = invoker = Invoker(affiant, turn_of, descriptor, body, takes, limit, raises)
    return _finished(wired, invoker)


def _finished(tool: FunctionTool, invoker: Invoker) -> Tool:
    set_function_tool_failure_error_function(tool, None)  # or a cancellation inside a tool would become a text
    if invoker.affiant.terminate_on_review:
        invoker.note_ending(tool)
    return tool


# --- what can be wrong with a tool ---------------------------------------------------------------------------------

_PAST_EVERY_HOOK = (agents.CustomTool, agents.LocalShellTool, agents.ApplyPatchTool, agents.ComputerTool)


def name_of(tool: object) -> str:
    """What a tool is called: of a hosted MCP server its label, since all of them have one name."""
    return tool.tool_config["server_label"] if isinstance(tool, agents.HostedMCPTool) else shared.name_of(tool)


def kinds_of(tools: Iterable[object]) -> tuple[list[str], dict[str, CoverageCategory]]:
    """The names of the function tools, which have to be declared, and what no gate can stand in front of, with why."""
    local = [each.name for each in tools if isinstance(each, FunctionTool) and not _is(each, "AGENT_AS_TOOL")]
    return local, {name_of(tool): why for tool in tools if (why := _category_of(tool)) is not None}


def _category_of(tool: object) -> CoverageCategory | None:
    if isinstance(tool, agents.HostedMCPTool):
        return CoverageCategory.HOSTED_MCP
    if isinstance(tool, _PAST_EVERY_HOOK) or (isinstance(tool, agents.ShellTool) and tool.executor is not None):
        return CoverageCategory.NO_EXECUTE
    of_the_sdk = any(kind.__module__ == FunctionTool.__module__ for kind in type(tool).__mro__)
    return CoverageCategory.PROVIDER_EXECUTED if of_the_sdk and not isinstance(tool, FunctionTool) else None


def _is(tool: FunctionTool, origin: str) -> bool:
    made_of = get_function_tool_origin(tool)
    return made_of is not None and made_of.type is ToolOriginType[origin]


def kind_faults(tool: object) -> Iterator[WiringFault]:
    """Things that are no tools of the SDK, and agents that were made a tool past the audit."""
    subject = f"tool {name_of(tool)!r}"
    if isinstance(tool, FunctionTool) and _is(tool, "AGENT_AS_TOOL"):
        fault = "it runs an agent, whose own tools have to be looked at, and which has to let out faults of the host."
        yield WiringFault(subject, fault, "Make it with agent_tool(agent, affiant, ...), and do not wrap it.")
    elif not isinstance(tool, FunctionTool) and _category_of(tool) is None:
        yield WiringFault(subject, "it is not a tool of the SDK.", "Use @function_tool, or bind().")


def setting_faults(tool: FunctionTool, *, is_write: bool) -> Iterator[WiringFault]:
    """The settings of a function tool that do not go with a gate."""
    subject = f"tool {tool.name!r}"
    if callable(tool.needs_approval):
        fault = "its needs_approval is a function, which would be asked about other arguments than those that run."
        yield WiringFault(subject, fault, "Leave it out; a read may have True.")
    elif tool.needs_approval and is_write:
        fault = "its needs_approval asks before there is a proposal, and the gate asks about the proposal."
        yield WiringFault(subject, fault, "Leave it out.")
    if tool.output_json_schema is not None:
        fault = "its output schema would be held against what the gate puts in a proposal's place."
        yield WiringFault(subject, fault, "Leave output_type and output_json_schema out.")


def _faults_of(tool: object, writes: set[str]) -> Iterator[WiringFault]:
    yield from kind_faults(tool)
    if not isinstance(tool, FunctionTool) or _is(tool, "AGENT_AS_TOOL"):
        return
    subject, is_write = f"tool {tool.name!r}", tool.name in writes
    if isinstance(tool.on_invoke_tool, Invoker):
        yield WiringFault(subject, "it is bridged already.", "Wrap each tool once.")
    elif any("on_invoke_tool" in vars(kind) for kind in type(tool).__mro__):
        fault = "its class defines 'on_invoke_tool' itself, which could lead past the gate."
        yield WiringFault(subject, fault, "Hand the function to FunctionTool(on_invoke_tool=...).")
    if is_write and _is(tool, "MCP"):
        yield shared.acts_elsewhere(tool.name)
    yield from setting_faults(tool, is_write=is_write)
