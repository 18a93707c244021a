"""Affiant on the OpenAI Agents SDK: ``bind`` a tool class or ``wrap`` tools, and ``audit`` the agents that get them."""

from affiant_core.bridge import require_version

require_version("openai-agents", at_least=(0, 24), below=(0, 25), bridge="affiant-agents-bridge")

# These touch the SDK, so they stand behind the check of its version.
from affiant_agents_bridge.agent import AffiantAgent, agent_tool, audit  # noqa: E402
from affiant_agents_bridge.catalog import bind, wrap  # noqa: E402
from affiant_agents_bridge.seam import TurnOf, turn_from_context  # noqa: E402

__all__ = ["AffiantAgent", "TurnOf", "agent_tool", "audit", "bind", "turn_from_context", "wrap"]
