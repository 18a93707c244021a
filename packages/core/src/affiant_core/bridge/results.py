"""Results on their way out: one text for the model, under a ceiling, an envelope always as its JSON (DECISIONS 5)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from affiant_core.affiant import Affiant
from affiant_core.bridge.arguments import invalid_arguments
from affiant_core.envelope import ReadResult, ToolEnvelope, ToolError, WriteProposal
from affiant_core.errors import ValueRefused
from affiant_core.filters.failures import classify, log_failure
from affiant_core.filters.tracing import ToolTracingFilter
from affiant_core.hiding import count_proposals
from affiant_core.pipeline import Pipeline, ToolInvocation, unwritable
from affiant_core.telemetry import Telemetry
from affiant_core.values import spell
from affiant_core.wire import dumps, quote

log: logging.Logger = logging.getLogger(__name__)


def model_text(invocation: ToolInvocation, *, ceiling: int, telemetry: Telemetry) -> str | None:
    """What the model is given: the envelope's JSON, or the text as it is; ``None`` for an object that is neither.

    An envelope that names no tool gets the tool's own name. One that is larger than ``ceiling`` bytes of UTF-8 is cut,
    says so, and stays valid JSON. Text that is no envelope crosses untouched (DECISIONS 5).
    """
    content = invocation.text()
    if not isinstance(content, ToolEnvelope):
        envelope = invocation.envelope()
        if envelope is None or content is None or _utf8_length(content) <= ceiling:
            return content
        content = envelope
    if not content.tool_name:
        content = content.model_copy(update={"tool_name": invocation.tool_name})
    text = content.to_json_string()
    size = _utf8_length(text)
    if size <= ceiling:
        return text
    kept = _cut(content, size, ceiling)
    telemetry.emit(
        "affiant.result.cut",
        {"gen_ai.tool.name": invocation.tool_name, "result.bytes": size, "result.kept": _utf8_length(kept)},
    )
    return kept


def whole_text(invocation: ToolInvocation, *, ceiling: int, telemetry: Telemetry) -> str:
    """What a model is given of a function that the host gave its ``Affiant``: always text, the same on every framework.

    As :func:`model_text`, which is for a framework's own tools and leaves their plain data to the framework.
    What is neither an envelope nor text becomes its JSON (DECISIONS 20); a value that JSON cannot spell, and what is
    larger than the ceiling, becomes a ``ToolError``. Nothing at all is empty text.
    """
    told = model_text(invocation, ceiling=ceiling, telemetry=telemetry)
    if told is not None:
        return told
    try:
        text = dumps(spell(invocation.result, "result"))
    except ValueRefused as refused:
        if refused.__cause__ is not None:
            log_failure(log, f"The result of {invocation.qualified_name} cannot be read", refused)
        return unwritable(refused).model_copy(update={"tool_name": invocation.tool_name}).to_json_string()
    size = _utf8_length(text)
    return text if size <= ceiling else _too_large(invocation.tool_name, "The result", size, ceiling).to_json_string()


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


_NOTE_ROOM = 256
"""What the longest note about a cut needs, in bytes."""


def _cut(envelope: ToolEnvelope, size: int, ceiling: int) -> str:
    tool_name = _fitting_text(envelope.tool_name, 128)
    if not isinstance(envelope, ReadResult):
        is_filed = isinstance(envelope, WriteProposal)  # nothing else comes out of the pipeline
        result = "The proposal is filed for review, and its record" if is_filed else "The result"
        too_large = _too_large(tool_name, result, size, ceiling)
        return too_large.model_copy(update={"timestamp": envelope.timestamp}).to_json_string()
    summary = _fitting_text(envelope.summary, 512)
    shown = envelope.model_copy(update={"markdown": "", "entities": (), "summary": summary, "tool_name": tool_name})
    room = ceiling - _utf8_length(shown.to_json_string()) - _NOTE_ROOM
    markdown = _fitting_text(envelope.markdown, room // 2)
    room -= _spelled_length(markdown)
    entities = []
    for entity in envelope.entities:
        room -= _utf8_length(entity.to_json_string()) + 1
        if room < 0:
            break
        entities.append(entity)
    note = (
        f" [Cut to fit {ceiling} bytes: {len(entities)} of {len(envelope.entities)} entities, "
        f"{_utf8_length(markdown)} of {_utf8_length(envelope.markdown)} bytes of markdown and "
        f"{_utf8_length(summary)} of {_utf8_length(envelope.summary)} bytes of summary are shown.]"
    )
    cut = shown.model_copy(update={"summary": summary + note, "markdown": markdown, "entities": tuple(entities)})
    return cut.to_json_string()


def _too_large(tool_name: str, what: str, size: int, ceiling: int) -> ToolError:
    return ToolError(
        tool_name=tool_name,
        code="RESULT_TOO_LARGE",
        message=f"{what} of {size} bytes is larger than the limit of {ceiling} bytes and cannot be shown.",
    )


def _fitting_text(text: str, room: int) -> str:
    """The longest start of ``text`` whose JSON spelling fits ``room`` bytes, never cut inside a character."""
    shown = _first_bytes(text, room)
    while shown and (excess := _spelled_length(shown) - room) > 0:
        shown = shown[: len(shown) - max(1, excess // 6)]
    return shown


def _spelled_length(text: str) -> int:
    return _utf8_length(quote(text))


def _first_bytes(text: str, limit: int) -> str:
    encoded = text.encode("utf-8")
    return text if len(encoded) <= limit else encoded[: max(0, limit)].decode("utf-8", "ignore")


# --- answers outside the pipeline ----------------------------------------------------------------------------------


async def answer_refused(invocation: ToolInvocation, places: Iterable[str], telemetry: Telemetry) -> None:
    """Answer a call whose arguments cannot be read: it is traced, and no layer of the host's may answer it."""

    async def body() -> object:
        return invalid_arguments(invocation.tool_name, places)

    await Pipeline([ToolTracingFilter(telemetry)]).run(invocation, body)


def nested_answer(tool_name: str, said: object) -> object:
    """What an agent that is a tool of another has said, unless it holds a proposal: no gate stands behind it (CV-2)."""
    if not count_proposals(said):
        return said
    fault = "The agent's answer holds a proposal, which has to be filed by a tool."
    return ToolError(tool_name=tool_name, code="wireup-invalid", message=fault).to_json_string()


def nested_failure(tool_name: str, error: Exception) -> str:
    """The answer of such an agent whose run failed: the kind of failure, and the log's reference to the exception."""
    rule, reference = classify(error), log_failure(log, f"The agent behind {tool_name} failed", error)
    message = f"{rule.message} (reference {reference})"
    return ToolError(tool_name=tool_name, code=rule.code, message=message).to_json_string()


def mixed_proposal(invocation: ToolInvocation, beside: object = None) -> ToolError | None:
    """The refusal of a proposal among other content, of which nobody knows what it belongs to; else ``None`` (CV-2).

    ``beside`` is what a framework keeps next to the result. Where the result is a proposal alone, it is not looked at:
    the bridge drops it with the proposal.
    """
    result = invocation.result
    if beside is None and isinstance(result, str | ToolEnvelope):
        return None
    proposes = isinstance(invocation.envelope(), WriteProposal)
    if count_proposals(result if proposes else (result, beside)) <= proposes:
        return None
    message = "The tool returned a proposal among other content, so nothing was filed. It must return it alone."
    return ToolError(tool_name=invocation.tool_name, code="wireup-invalid", message=message)


def shown(invocation: ToolInvocation, affiant: Affiant, *, is_data: bool, is_kept: bool) -> object:
    """What a framework is given for a result: the result itself if it is the body's own and says the same, else text.

    ``is_data`` is what a host's own function returned, which every framework would write in a way of its own. A result
    ``is_kept`` that no layer has replaced or changed.
    """
    written = whole_text if is_data else model_text
    text = written(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
    # A framework may write a dictionary as a repr; one that is an envelope is given to it as text.
    is_bare = type(invocation.result) is dict and invocation.envelope() is not None
    says_the_same = is_kept and text == invocation.text() and not is_bare
    return invocation.result if text is None or (says_the_same and not is_data) else text
