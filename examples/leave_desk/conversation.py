"""What is said in a turn, whatever framework ran it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Step: TypeAlias = "Sequence[tuple[str, dict[str, Any]]] | str"
"""One message of the scripted model: the tools that it calls, with arguments, or words, which end the turn."""

Script: TypeAlias = Sequence[Step]


@dataclass(frozen=True)
class Said:
    """One thing that was said: by the person, by the agent (words or a tool call), or to the model by a tool."""

    by: Literal["person", "agent", "call", "tool"]
    text: str


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call as it is printed."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
