"""The tool envelope: the one closed union that every tool returns (seed, "The three variants").

A read tool returns a :class:`ReadResult`, a write tool a :class:`WriteProposal`, and any tool that fails a
:class:`ToolError`. On the wire ``kind`` tells which: ``"read"``, ``"write"`` or ``"error"``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SerializeAsAny, field_serializer

from affiant_core.affidavit import Affidavit
from affiant_core.errors import NotAnEnvelope, WireError
from affiant_core.values import JSON, RECORD_DEPTH, spell, utc_now
from affiant_core.vocabulary import operation_shape
from affiant_core.wire import (
    MAX_JSON_BYTES,
    Flag,
    Identifier,
    Instant,
    JsonObject,
    Text,
    WireModel,
    loads,
    read,
)

if TYPE_CHECKING:
    from datetime import datetime

log: logging.Logger = logging.getLogger(__name__)


class EntityRef(WireModel):
    """An entity that a read found: the structured half of a dual-audience result (seed, "Read tools").

    ``entity_type`` is the host's own label. ``fields`` is a flat map of whatever the domain needs.
    """

    entity_type: Identifier
    entity_id: Identifier
    display_name: Text
    fields: JsonObject = Field(default_factory=dict)

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"fields"})


class ProposedOperation(WireModel):
    """The shape of a proposed write: ``kind`` is ``create`` or ``update``; ``fields`` keep their order (seed)."""

    kind: Literal["create", "update"]
    entity_type: Identifier
    entity_id: Identifier | None = None
    fields: tuple[Identifier, ...]

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"entityId"})

    @classmethod
    def from_affidavit(cls, affidavit: Affidavit) -> Self:
        """The operation that a sworn record states: what the gate falls back to when a proposal names none (seed)."""
        return cls(
            kind=cast(Any, operation_shape(affidavit.operation_type)),
            entity_type=affidavit.entity_type,
            entity_id=affidavit.entity_id,
            fields=affidavit.field_names,
        )


class ToolEnvelope(WireModel):
    """Base of the three variants, and of no others. All carry ``tool_name`` and ``timestamp``.

    ``tool_name`` may be left out in Python: the pipeline fills in the name that the tool is declared under.
    ``timestamp`` is the current instant unless given.
    """

    if TYPE_CHECKING:
        # Declared by each variant, last, so that they are written last (seed, "the property order").
        tool_name: str
        timestamp: datetime

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if cls.__module__ != __name__:
            raise TypeError("ToolEnvelope has exactly three variants: ReadResult, WriteProposal and ToolError.")
        super().__init_subclass__(**kwargs)

    # Unknown members are ignored on the envelope itself and nowhere below it (DECISIONS 4).
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102  # it makes what the variant describes
        if cls is ToolEnvelope:
            raise TypeError("ToolEnvelope is abstract; make a ReadResult, a WriteProposal or a ToolError.")
        return super().__new__(cls)


def _envelope_json(value: Any) -> Any:
    return value if isinstance(value, Affidavit) else spell(value, "envelope", max_depth=RECORD_DEPTH)


class ReadResult(ToolEnvelope):
    """What a read tool found, readable by the model and by a UI from the same payload (seed, Rule 2).

    ``summary`` is one sentence for the model's reasoning, ``markdown`` the full result for both audiences, ``entities``
    its structured half. No entities is a valid result, not an error.
    """

    kind: Literal["read"] = "read"
    summary: Text
    markdown: Text
    entities: Annotated[Sequence[EntityRef], AfterValidator(tuple)] = ()
    tool_name: Text = ""
    timestamp: Instant = Field(default_factory=utc_now)

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"kind", "entities", "toolName", "timestamp"})


class WriteProposal(ToolEnvelope):
    """What a write tool proposes. It changes nothing: the gate files it and a person decides (seed, Rule 3).

    ``envelope`` is an :class:`~affiant_core.affidavit.Affidavit` in practice, and raw JSON after reading. A proposal's
    own ``arguments`` become part of the row's identity where the seam carried none; ``operation`` is the host's own
    statement of the write's shape, read off the record when it is missing.
    """

    kind: Literal["write"] = "write"
    envelope: Annotated[SerializeAsAny[Any], BeforeValidator(_envelope_json)]
    arguments: JsonObject | None = None
    operation: ProposedOperation | None = None
    tool_name: Text = ""
    timestamp: Instant = Field(default_factory=utc_now)

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"kind", "toolName", "timestamp"})

    @field_serializer("envelope")
    def _write_envelope(self, envelope: Any) -> Any:
        return envelope.to_json() if isinstance(envelope, Affidavit) else envelope


class ToolError(ToolEnvelope):
    """A tool's failure, told to the model and the person (seed, "Failures").

    ``code`` is a short stable label, ``message`` a sentence for people and never an exception's text. ``retryable``
    speaks of the failure; on an error that a tool returns, nothing acts on it.
    """

    kind: Literal["error"] = "error"
    code: Identifier
    message: Text
    retryable: Flag = False
    tool_name: Text = ""
    timestamp: Instant = Field(default_factory=utc_now)

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"kind", "retryable", "toolName", "timestamp"})


_VARIANTS: dict[str, type[ToolEnvelope]] = {"read": ReadResult, "write": WriteProposal, "error": ToolError}


def parse_envelope(text: str | bytes, *, max_bytes: int = MAX_JSON_BYTES) -> ToolEnvelope:
    """The typed envelope in ``text``. ``kind`` may stand anywhere in the object (seed, "The kind discriminator").

    Raises ``NotAnEnvelope`` for malformed JSON, anything but an object, a missing, unknown or wrong-case ``kind``, a
    missing member, or text larger than ``max_bytes``. The message says which, and quotes no value.
    """
    try:
        document = loads(text, max_bytes=max_bytes)
    except WireError as error:
        raise NotAnEnvelope(str(error)) from None
    return envelope_from_json(document)


def envelope_from_json(document: JSON) -> ToolEnvelope:
    """The typed envelope in parsed JSON. Raises ``NotAnEnvelope`` as :func:`parse_envelope` does."""
    if not isinstance(document, dict):
        raise NotAnEnvelope("a tool envelope is a JSON object.")
    if "kind" not in document:
        old = " Its discriminator is spelled '$type'; it is 'kind' now." if "$type" in document else ""
        raise NotAnEnvelope(f"the object has no 'kind'.{old}")
    kind = document["kind"]
    variant = _VARIANTS.get(kind) if isinstance(kind, str) else None
    if variant is None:
        raise NotAnEnvelope("the object's 'kind' is none of 'read', 'write' and 'error'.")
    if not document.get("toolName"):
        raise NotAnEnvelope("the object names no tool in 'toolName'.")
    try:
        return read(variant, document)
    except WireError as error:
        raise NotAnEnvelope(str(error)) from None


def recognise(text: str) -> ToolEnvelope | None:
    """The envelope in a tool's text, or ``None`` when it is something else, which is not a fault.

    An object that looks like an envelope and is not is told to the host's log, so that a misspelled proposal does not
    pass for prose in silence (DECISIONS 4).
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = loads(text, max_bytes=sys.maxsize)  # what is too long to read must not pass unread
    except WireError:
        return None
    if not isinstance(document, dict) or not ({"kind", "$type"} & document.keys()):
        return None
    # Python may leave the name out (above), so its text must not turn into prose: the pipeline knows the tool.
    is_unnamed = document.get("toolName") == ""
    try:
        envelope = envelope_from_json({**document, "toolName": "unnamed"} if is_unnamed else document)
        return envelope.model_copy(update={"tool_name": ""}) if is_unnamed else envelope
    except NotAnEnvelope as error:
        log.warning("A tool returned JSON that resembles a tool envelope and is not one: %s", error)
        return None
