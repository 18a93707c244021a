"""Affiant on LangChain: ``bind`` a tool class, or ``wrap`` the tools that a host already has."""

from affiant_langchain_bridge.catalog import bind, wrap
from affiant_langchain_bridge.seam import TURN_KEY, TurnOf, turn_from_config

__all__ = ["TURN_KEY", "TurnOf", "bind", "turn_from_config", "wrap"]
