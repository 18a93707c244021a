"""What a LangChain result says: the one text or envelope in it, and whether a proposal hides among other content."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from affiant_core import ToolEnvelope, WriteProposal
from affiant_core.envelope import recognise
from affiant_core.pipeline import read_plain

_KINDS = ("read", "write", "error")


def read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of; ``None`` when it is something else, or several things.

    Raises ``ValueRefused`` for a dictionary that says it is an envelope and has no JSON spelling.
    """
    if isinstance(result, str):
        return result
    part = only_part(result)
    match only_part(part.content) if isinstance(part, ToolMessage) else part:
        case {"type": "text", "text": str(text)}:
            return text
        case dict(other) if other.get("kind") not in _KINDS:
            return None
        case plain:
            return read_plain(plain)


def only_part(result: Any) -> Any:
    """The message, block or value that a result consists of, out of the lists and the command around it."""
    for _ in range(8):  # deeper than any real result, and an end for a list that holds itself
        if isinstance(result, list | tuple) and len(result) == 1:
            result = result[0]
        elif hasattr(result, "goto") and isinstance(update := getattr(result, "update", None), dict):
            result = update.get("messages")  # langgraph's Command, without importing it
        else:
            break
    return result


def holds_proposal(value: Any, seen: set[int]) -> bool:
    """Whether a proposal lies anywhere in a value: in a list, a message, an artifact, a command's update."""
    match value:
        case str():
            return isinstance(recognise(value), WriteProposal)
        case WriteProposal() | {"kind": "write", "envelope": _}:
            return True
        case dict():
            inside: Any = value.values()
        case list() | tuple() | set() | frozenset():
            inside = value
        case BaseModel():
            inside = vars(value).values()
        case _ if is_dataclass(value):  # LangGraph's Command is one, and its Send, which a command may hold, is not
            inside = [getattr(value, field.name, None) for field in fields(value)]
        case _:
            inside = [getattr(value, "arg", None)] if hasattr(value, "node") else []
    if id(value) in seen:
        return False
    seen.add(id(value))
    return any(holds_proposal(member, seen) for member in inside)
