"""What a LangChain result says: the one text or envelope in it, whatever it is wrapped in."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin

from affiant_core import ToolEnvelope
from affiant_core.pipeline import read_plain


def read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of; ``None`` when it is something else, or several things."""
    if isinstance(result, str):
        return result
    part = only_part(result)
    match only_part(part.content) if isinstance(part, ToolMessage) else part:
        case {"type": "text", "text": str(text)}:
            return text
        case plain:
            return read_plain(plain)


def read_own(result: object) -> ToolEnvelope | str | None:
    """The same for a host's own function, whose lists and dictionaries are its data and nothing of LangChain's."""
    is_native = isinstance(result, ToolOutputMixin) or isinstance(only_part(result), ToolOutputMixin)
    return read_result(result) if is_native else read_plain(result)


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
