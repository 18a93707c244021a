"""The audit of an agent and all that it can reach, agents as tools, an agent that looks after itself (CV-1)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agents import Agent, AgentBase, FunctionTool, FunctionToolResult, Handoff, RunContextWrapper, TContext, Tool
from agents import ToolsToFinalOutputResult as EndOfTurn
from agents.exceptions import ToolTimeoutError
from agents.tool_context import ToolContext

from affiant_agents_bridge.catalog import kind_faults, kinds_of, name_of, setting_faults, wrap
from affiant_agents_bridge.seam import CUSTOM_DATA, Invoker, TurnOf, turn_from_context
from affiant_core import Affiant, CoverageCategory, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.errors import WiringFault


def audit(
    agent: AgentBase[Any], affiant: Affiant, *, acknowledged: Collection[str] = (), found: Sequence[object] = ()
) -> None:
    """Look at an agent and at every agent that it can reach, before it runs.

    ``acknowledged`` are the tool names of handoffs whose ``on_handoff`` the host answers for: it is the host's code, is
    fed a model's arguments, and no gate stands in front of it. ``found`` are tools that the agent has beside its own.

    Raises ``WiringError`` with every fault (DECISIONS 16): tools that are not wired, not declared, renamed, wired to
    another Affiant or changed since; tools, and prompts with tools of their own, that run elsewhere and that
    ``Affiant(uncovered=...)`` does not name; names that a model could not tell apart; MCP servers of an agent that does
    not wire their tools; handoffs with an unknown target or code; agents that collect their tools themselves.
    """
    affiant = shared.require_affiant(affiant, "audit(agent, affiant)")
    faults: list[WiringFault] = []
    every: list[object] = []
    agents: list[AgentBase[Any]] = [agent]
    for each in agents:  # which grows by what each of them leads to
        tools: list[object] = [*each.tools, *(found if each is agent else ())]
        handoffs: list[object] = [*getattr(each, "handoffs", ())]
        faults += shared.indistinguishable([*map(name_of, tools), *map(_handoff_name, handoffs)], "Rename one of them.")
        faults += _agent_faults(each, affiant)
        faults += (fault for tool in tools for fault in _tool_faults(tool, affiant))
        faults += (fault for handoff in handoffs for fault in _handoff_faults(handoff, acknowledged))
        every += tools
        for other in (*(getattr(tool, "_agent_instance", None) for tool in tools), *map(_target, handoffs)):
            if isinstance(other, AgentBase) and not any(other is known for known in agents):
                agents.append(other)
    local, hosted = kinds_of(every)
    if any(getattr(each, "prompt", None) is not None for each in agents):
        hosted.setdefault("prompt", CoverageCategory.PROVIDER_EXECUTED)
    affiant.check(local, hosted, faults=faults)


def agent_tool(
    agent: Agent[Any],
    affiant: Affiant,
    name: str | None = None,
    description: str | None = None,
    *,
    acknowledged: Collection[str] = (),
    **options: Any,
) -> FunctionTool:
    """An audited agent as a tool of another. ``options`` are those of ``Agent.as_tool``.

    The tools of the agent are gated, under the turn of the outer run; what it says is text, and needs no declaration. A
    failure inside it is a ``ToolError`` for the outer model; faults of the host and cancellation come out of the run.
    Raises ``WiringError`` with every fault that ``audit`` finds.
    """
    audit(agent, affiant, acknowledged=acknowledged)
    tool = agent.as_tool(name, description, failure_error_function=None, **options)
    tool.on_invoke_tool = _AgentInvoker(affiant, tool.on_invoke_tool)
    return tool


@dataclass(eq=False, repr=False)
class _AgentInvoker:
    """Outside the gate, since a nested run that waits for an approval passes here twice, first without a result."""

    affiant: Affiant
    invoke: Callable[[ToolContext[Any], str], Awaitable[Any]]

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:
        try:  # an extractor of the host's may have taken a proposal out of the nested run
            return shared.nested_answer(ctx.tool_name, await self.invoke(ctx, input))
        except (WireupInvalid, ToolTimeoutError):
            raise
        except Exception as error:  # noqa: BLE001  # whatever fails in a run of its own
            return shared.nested_failure(ctx.tool_name, error)


@dataclass
class AffiantAgent(Agent[TContext]):
    """An ``Agent`` that is audited when it is made and again at each turn, and that wires the tools of its MCP servers.

    Every tool of an MCP server has to be declared a read; leave the others out with the server's ``tool_filter``. With
    ``Affiant(terminate_on_review=True)`` the turn ends when a call asked a person, whatever else ``tool_use_behavior``
    says. ``acknowledged`` and ``turn_of`` are those of ``audit`` and ``wrap``. Raises ``WiringError`` with every fault,
    out of the run when a turn finds one.
    """

    affiant: Affiant = field(kw_only=True, repr=False)
    turn_of: TurnOf = field(default=turn_from_context, kw_only=True, repr=False)
    acknowledged: Collection[str] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[no-untyped-call]  # the SDK gives it no annotation
        ends = shared.require_affiant(self.affiant, "AffiantAgent").terminate_on_review
        if ends and not isinstance(self.tool_use_behavior, _EndOnReview):
            vars(self)["tool_use_behavior"] = _EndOnReview(self.tool_use_behavior)  # the SDK declares its type
        audit(self, self.affiant, acknowledged=self.acknowledged)

    async def get_mcp_tools(self, run_context: RunContextWrapper[TContext]) -> list[Tool]:
        """The tools of the MCP servers, wired. Raises ``WiringError`` for those that are not declared a read."""
        return wrap(await super().get_mcp_tools(run_context), self.affiant, turn_of=self.turn_of)

    async def get_all_tools(self, run_context: RunContextWrapper[TContext]) -> list[Tool]:
        """The tools for this turn. Raises ``WiringError`` for what has become wrong since the last."""
        tools = await super().get_all_tools(run_context)
        found = [tool for tool in tools if not any(tool is own for own in self.tools)]
        audit(self, self.affiant, acknowledged=self.acknowledged, found=found)
        return tools


@dataclass(eq=False, repr=False)
class _EndOnReview:
    """A ``tool_use_behavior``: the turn ends when a call asked for it, or when the agent's own behaviour says so."""

    own: Any

    async def __call__(self, context: RunContextWrapper[Any], results: list[FunctionToolResult]) -> EndOfTurn:
        ending = [each for each in results if CUSTOM_DATA in (getattr(each.run_item, "custom_data", None) or {})]
        if not ending and callable(self.own):
            return cast(EndOfTurn, await ASYNCHRONOUS.call(self.own, context, results))
        if not ending and self.own == "stop_on_first_tool":
            ending = results
        elif not ending and isinstance(self.own, dict):
            names = self.own.get("stop_at_tool_names", ())
            ending = [each for each in results if each.tool.name in names or each.tool.qualified_name in names]
        return EndOfTurn(True, ending[0].output) if ending else EndOfTurn(False)


def _agent_faults(agent: AgentBase[Any], affiant: Affiant) -> Iterator[WiringFault]:
    subject = f"agent {agent.name!r}"
    for name in ("get_all_tools", "get_mcp_tools"):
        owner = next(kind for kind in type(agent).__mro__ if name in vars(kind))
        if owner not in (AgentBase, AffiantAgent):
            fault = f"its class {owner.__name__!r} collects tools itself, in {name}, where nobody can look at them."
            yield WiringFault(subject, fault, "Use AffiantAgent, and give it the tools.")
    if isinstance(agent, AffiantAgent) and agent.affiant is not affiant:
        yield WiringFault(subject, "it belongs to another Affiant.", "Use one for all agents of a run.")
    if agent.mcp_servers and not isinstance(agent, AffiantAgent):
        yield WiringFault(subject, "it has MCP servers, and nobody wires their tools.", "Use AffiantAgent.")
    if affiant.terminate_on_review and not isinstance(getattr(agent, "tool_use_behavior", None), _EndOnReview):
        yield WiringFault(subject, "it cannot end its turn when a person is asked.", "Use AffiantAgent.")


def _tool_faults(tool: object, affiant: Affiant) -> Iterator[WiringFault]:
    subject, invoker = f"tool {name_of(tool)!r}", getattr(tool, "on_invoke_tool", None)
    if not isinstance(invoker, Invoker | _AgentInvoker):
        yield from kind_faults(tool)
        if isinstance(tool, FunctionTool) and any(each.name == tool.name for each in affiant.registry):
            fault = "it is not wired, so it would run past the gate."  # else it is told that it is not declared
            yield WiringFault(subject, fault, "Use bind() or wrap().")
    elif invoker.affiant is not affiant:
        yield WiringFault(subject, "it is wired to another Affiant.", "Use one for all tools of a run.")
    if isinstance(tool, FunctionTool) and isinstance(invoker, Invoker):
        if tool.name != invoker.descriptor.name:
            fault = f"it was wired as {invoker.descriptor.name!r} and renamed."
            yield WiringFault(subject, fault, "Rename the original, and wire that.")
        if tool.timeout_seconds is not None:
            fault = "it was given a time limit after it was wired, which could cut a filing short."
            yield WiringFault(subject, fault, "Give it to the original, and wire that.")
        yield from setting_faults(tool, is_write=invoker.descriptor.is_write)


def _handoff_faults(handoff: object, acknowledged: Collection[str]) -> Iterator[WiringFault]:
    name = _handoff_name(handoff)
    if _target(handoff) is None:
        yield WiringFault(f"handoff {name!r}", "nobody can tell where it leads to.", "Make it with handoff(agent).")
    elif _runs_host_code(handoff) and name not in acknowledged:
        fault = "its on_handoff is the host's code, is fed a model's arguments, and stands behind no gate."
        yield WiringFault(f"handoff {name!r}", fault, f"Leave it out, or answer for it: acknowledged=[{name!r}].")


# What the SDK says of a handoff nowhere in public; each of these, and _agent_instance above, has a test of its own.


def _handoff_name(handoff: object) -> str:
    if isinstance(handoff, AgentBase):
        return Handoff.default_tool_name(handoff)
    return str(getattr(handoff, "tool_name", type(handoff).__name__))


def _target(handoff: object) -> object:
    reference = getattr(handoff, "_agent_ref", None)
    return handoff if isinstance(handoff, AgentBase) else reference and reference()


def _runs_host_code(handoff: object) -> bool:
    """Whether there is an ``on_handoff``. A handoff that cannot be looked into counts as having one."""
    invoke = getattr(handoff, "on_invoke_handoff", None)
    made = invoke.args[0] if isinstance(invoke, functools.partial) and invoke.args else None
    is_known = inspect.isfunction(made) and inspect.getclosurevars(made).nonlocals.get("on_handoff", ...) is None
    return not is_known and not isinstance(handoff, AgentBase)
