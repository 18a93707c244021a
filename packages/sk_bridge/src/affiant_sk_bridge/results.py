"""What a Semantic Kernel result says: the one text or envelope in it, whatever it is wrapped in."""

from __future__ import annotations

from semantic_kernel.contents import ChatMessageContent, TextContent
from semantic_kernel.functions import FunctionResult

from affiant_core import ToolEnvelope, ToolError, WriteProposal
from affiant_core.hiding import count_proposals
from affiant_core.pipeline import ToolInvocation, read_plain


def read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of; ``None`` when it is something else, or several things."""
    if isinstance(result, str | ToolEnvelope):
        return result
    for _ in range(8):  # deeper than any real result
        match result:
            case FunctionResult():
                result = result.value
            case TextContent():
                return result.text
            case ChatMessageContent(items=[only]):
                result = only
            case [(TextContent() | ChatMessageContent()) as only]:  # as an MCP server's tool and a prompt answer
                result = only
            case _:
                break
    return read_plain(result)


def awaits_review(invocation: ToolInvocation) -> bool:
    """Whether only the completion stage may show what comes of a result: it holds a proposal, or ought to be one."""
    envelope = invocation.envelope()
    if isinstance(envelope, WriteProposal):
        return True
    if invocation.is_declared_write:
        return not isinstance(envelope, ToolError)
    return invocation.text() is None and count_proposals(invocation.result) > 0


def text_of_parts(parts: list[object]) -> object:
    """A drained stream as one result: its text if every part is text, so that no proposal hides between two parts."""
    texts: list[object] = [part.text if isinstance(part, TextContent) else part for part in parts]
    if parts and all(isinstance(text, str) for text in texts):
        return "".join(map(str, texts))
    return parts
