"""A guard for ``create_agent``: it refuses what is not bridged before a model hears of it and before its body (C19).

It files nothing. It needs ``affiant-langchain-bridge[langchain]``; all else here needs no more than LangChain's core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from affiant_core import Affiant, ToolError, WireupInvalid, WiringError
from affiant_core import bridge as shared
from affiant_core.errors import WiringFault
from affiant_langchain_bridge.seam import is_bridged

shared.require_version("langchain", at_least=(1, 0), below=(2,), bridge="affiant-langchain-bridge[langchain]")

from langchain.agents.middleware import AgentMiddleware, hook_config  # noqa: E402  # only now is it known to be there


class GuardMiddleware(AgentMiddleware[Any, Any]):
    """Refuses, in an agent of ``create_agent``, every tool that ``affiant`` does not gate. It must stand last.

    Before a call of the model: tools that are not bridged, wherever they come from, and a provider's own (dictionaries)
    unless ``Affiant(uncovered=...)`` names them. Before a call of a tool: what another middleware put in its place. The
    output tools of ``response_format=`` run no body and pass. Raises ``WiringError`` with every fault, to the host. The
    model is told of its own mistakes: a name that no tool has, and arguments that are no JSON (C01).
    """

    def __init__(self, affiant: Affiant) -> None:
        super().__init__()
        self.affiant: Affiant = shared.require_affiant(affiant, "GuardMiddleware")

    def check(self, tools: Sequence[object], output_tools: Sequence[str] = ()) -> None:
        """Look at an agent's tools, at start-up too (C19). A model calls ``output_tools`` like any other."""
        hosted = dict(shared.hosted_tool(tool) for tool in tools if isinstance(tool, dict))
        native = [tool for tool in tools if not isinstance(tool, dict)]
        faults = [_ungated(tool) for tool in native if not is_bridged(tool, self.affiant)]
        faults += shared.indistinguishable([*map(shared.name_of, native), *hosted, *output_tools])
        self.affiant.check(hosted=hosted, faults=faults)

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call the model if everything that it is offered is gated."""
        return handler(self._gated(request, handler))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call the model if everything that it is offered is gated."""
        return await handler(self._gated(request, handler))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool if it is gated and the one that was called."""
        return self._answer(request, handler) or handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool if it is gated and the one that was called."""
        return self._answer(request, handler) or await handler(request)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Answer calls whose arguments are no JSON, which LangChain leaves unanswered, and let the turn go on (C01)."""
        last = state["messages"][-1]
        broken = [call for call in getattr(last, "invalid_tool_calls", ()) if call["id"]]
        if not broken:
            return None
        told = [_told(call, shared.invalid_arguments(call["name"] or "")) for call in broken]
        return {"messages": told} if last.tool_calls else {"messages": told, "jump_to": "model"}

    def _gated(self, request: Any, handler: object) -> Any:
        _require_last(handler)
        # Tools also reach a provider in the call's settings, or with a model that was given them before.
        settings = (request.model_settings, getattr(request.model, "kwargs", None))
        offered = [*request.tools, *(tool for each in settings for tool in (each or {}).get("tools") or ())]
        self.check(offered, [each.name for each in getattr(request.response_format, "schema_specs", ())])
        return request

    def _answer(self, request: Any, handler: object) -> ToolMessage | None:
        """The answer to a name that no tool has, ``None`` for a call that may go on (DECISIONS 13)."""
        _require_last(handler)
        tool, call = request.tool, request.tool_call
        if tool is None:
            message = "There is no tool of the name that was called."
            return _told(call, ToolError(code="VALIDATION_FAILED", message=message))
        if not is_bridged(tool, self.affiant):
            raise WiringError([_ungated(tool)])
        if tool.name != call["name"]:
            fault = f"it was put in the place of {call['name']!r}, which the model called."
            raise WiringError([WiringFault(f"tool {tool.name!r}", fault, "Let a call reach the tool that it names.")])
        return None


def _require_last(handler: object) -> None:
    """What the last one calls on is defined in the tool node or the agent; anything else is another middleware's."""
    if getattr(handler, "__qualname__", "").partition(".")[0] not in {"ToolNode", "_ToolNode", "create_agent"}:
        raise WireupInvalid("GuardMiddleware must be the last in create_agent(middleware=[...]).")


def _told(call: Mapping[str, Any], error: ToolError) -> ToolMessage:
    return ToolMessage(error.to_json_string(), tool_call_id=call["id"], name=call["name"], status="error")


def _ungated(tool: object) -> WiringFault:
    remedy = "Declare it and use what wrap() gives; a middleware's too: its tools = wrap(its tools, affiant)."
    return WiringFault(
        f"tool {shared.name_of(tool)!r}", "it is not bridged by this Affiant, so nothing gates it.", remedy
    )
