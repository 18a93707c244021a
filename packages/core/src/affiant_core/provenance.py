"""Where a value came from: sources, tags, bindings, chains and how two claims about one field merge (PV-1, PV-2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from affiant_core.values import utc_now
from affiant_core.vocabulary import ProvenanceSource
from affiant_core.wire import (
    Count,
    Identifier,
    Instant,
    Number,
    SparseModel,
    Text,
    TurnNumber,
    WireModel,
    is_wire,
    word_of,
)

# --- bindings: the pointer that an auditor follows -----------------------------------------------------------------


class UtteranceSpanRef(SparseModel):
    """Where in the turn a value was said: UTF-16 ``offset`` and ``length``, SHA-256 of those characters (PV-3)."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"messageId"})
    offset: Count
    length: Count
    hash: Identifier
    message_id: Identifier | None = None


class ReviewerActRef(WireModel):
    """The decision that set a value: the Docket entry and the instant of the act."""

    entry_id: Identifier
    decision_at: Instant


class FormInputRef(WireModel):
    """The form field that a person filled in."""

    field: Identifier


class RelayRef(WireModel):
    """The relayed message that a person's act arrived in."""

    principal: Identifier
    channel_identity: Identifier
    message_id: Identifier


class ExternalRecordRef(SparseModel):
    """A record in another system that can be fetched again."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"fetchedAt", "contentHash", "relay"})
    system: Identifier
    record_id: Identifier
    fetched_at: Instant | None = None
    content_hash: Identifier | None = None
    relay: RelayRef | None = None


class ComputationConstant(WireModel):
    """A constant that a computation used: where it is published and when that was checked."""

    source: Identifier
    verified_on: Identifier


class ComputationRuleRef(SparseModel):
    """The rule that computed a value and the names of its inputs."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset({"constant"})
    rule: Identifier
    inputs: tuple[Identifier, ...]
    constant: ComputationConstant | None = None


class UtteranceSpan(WireModel):
    """Binding: the value stands in the turn at this span."""

    kind: Literal["utterance-span"] = "utterance-span"
    ref: UtteranceSpanRef


class ReviewerAct(WireModel):
    """Binding: a reviewer set the value in this decision."""

    kind: Literal["reviewer-act"] = "reviewer-act"
    ref: ReviewerActRef

    @classmethod
    def on(cls, entry_id: str, decision_at: datetime) -> Self:
        """The binding for the decision taken on ``entry_id`` at ``decision_at``."""
        return cls(ref=ReviewerActRef(entry_id=entry_id, decision_at=decision_at))


class FormInput(WireModel):
    """Binding: a person filled in this form field."""

    kind: Literal["form-input"] = "form-input"
    ref: FormInputRef

    @classmethod
    def of(cls, field: str) -> Self:
        """The binding for the form field named ``field``."""
        return cls(ref=FormInputRef(field=field))


class ExternalRef(WireModel):
    """Binding: the value is what this record in another system says."""

    kind: Literal["external-ref"] = "external-ref"
    ref: ExternalRecordRef

    @classmethod
    def of(cls, system: str, record_id: str, *, fetched_at: datetime | None = None) -> Self:
        """The binding for ``record_id`` in ``system``."""
        return cls(ref=ExternalRecordRef(system=system, record_id=record_id, fetched_at=fetched_at))


class ComputationRef(WireModel):
    """Binding: the value follows from named inputs by a named rule."""

    kind: Literal["computation-ref"] = "computation-ref"
    ref: ComputationRuleRef

    @classmethod
    def of(cls, rule: str, inputs: Sequence[str]) -> Self:
        """The binding for ``rule`` applied to ``inputs``."""
        return cls(ref=ComputationRuleRef(rule=rule, inputs=tuple(inputs)))


Binding = Annotated[UtteranceSpan | ReviewerAct | FormInput | ExternalRef | ComputationRef, Field(discriminator="kind")]
"""One of the five ways to point at where a value came from; ``kind`` tells which (PV-2)."""


# --- tags ----------------------------------------------------------------------------------------------------------


def clamp(confidence: float) -> float:
    """``confidence`` within 0 and 1; NaN is 0 (PV-1)."""
    return 0.0 if isnan(confidence) else min(1.0, max(0.0, confidence))


class ProvenanceTag(WireModel):
    """One claim about where a field's value came from (PV-1).

    ``confidence`` is between 0 and 1: a tag made in Python clamps it, and ``Empty`` is always 0; a tag read from the
    wire must already be within the bounds. ``note`` is a sentence for people, ``at`` the instant of the claim.
    """

    source: Annotated[ProvenanceSource, BeforeValidator(word_of(ProvenanceSource))]
    confidence: Annotated[Number, Field(ge=0, le=1)]
    note: Text | None = None
    at: Instant = Field(default_factory=utc_now)
    conversation_turn: TurnNumber | None = None
    binding: Binding | None = None

    required_on_wire: ClassVar[frozenset[str]] = frozenset(
        {"source", "confidence", "note", "at", "conversationTurn", "binding"}
    )

    @model_validator(mode="before")
    @classmethod
    def _clamp_when_minted(cls, data: Any, info: ValidationInfo) -> Any:
        if is_wire(info) or not isinstance(data, Mapping):
            return data
        minted = dict(data)
        confidence = minted.get("confidence")
        if minted.get("source") == ProvenanceSource.EMPTY:
            minted["confidence"] = 0.0
        elif isinstance(confidence, int | float) and not isinstance(confidence, bool):
            minted["confidence"] = clamp(confidence)
        return minted

    @model_validator(mode="after")
    def _empty_is_worth_nothing(self) -> Self:
        if self.is_empty and self.confidence:
            raise ValueError("the confidence of Empty is always 0 (PV-1).")
        return self

    @classmethod
    def user_stated(cls, *, binding: Binding | None, note: str | None = None, at: datetime | None = None) -> Self:
        """A person's own act, at confidence 1; ``binding`` says which act, or is an explicit ``None``."""
        return cls._mint(ProvenanceSource.USER_STATED, 1.0, note, at, binding)

    @classmethod
    def external(
        cls, *, binding: Binding | None, confidence: float = 1.0, note: str | None = None, at: datetime | None = None
    ) -> Self:
        """What a record in another system says."""
        return cls._mint(ProvenanceSource.EXTERNAL, confidence, note, at, binding)

    @classmethod
    def computed(
        cls, *, binding: Binding | None, confidence: float = 1.0, note: str | None = None, at: datetime | None = None
    ) -> Self:
        """What a rule computed from other values."""
        return cls._mint(ProvenanceSource.COMPUTED, confidence, note, at, binding)

    @classmethod
    def from_tool_result(cls, *, note: str | None = None, confidence: float = 0.9, at: datetime | None = None) -> Self:
        """A value that a tool's result brought into the conversation (REFERENCE 4, mint defaults)."""
        return cls._mint(ProvenanceSource.CONVERSATION, confidence, note, at, None)

    @classmethod
    def default(cls, *, note: str | None = None, confidence: float = 0.3, at: datetime | None = None) -> Self:
        """A value that nobody gave and the host falls back to."""
        return cls._mint(ProvenanceSource.DEFAULT, confidence, note, at, None)

    @classmethod
    def empty(cls, *, note: str | None = None, at: datetime | None = None) -> Self:
        """No known origin: confidence 0, and no value may stand under it (GT-3)."""
        return cls._mint(ProvenanceSource.EMPTY, 0.0, note, at, None)

    @classmethod
    def _mint(
        cls,
        source: ProvenanceSource,
        confidence: float,
        note: str | None,
        at: datetime | None,
        binding: Binding | None,
    ) -> Self:
        return cls(source=source, confidence=confidence, note=note, at=at or utc_now(), binding=binding)

    @property
    def is_empty(self) -> bool:
        """Whether the tag says that the origin is unknown."""
        return self.source is ProvenanceSource.EMPTY

    def beats(self, incumbent: ProvenanceTag) -> bool:
        """Whether this claim wins over ``incumbent``: more confident, or as confident and more deterministic.

        An exact tie keeps the incumbent (PV-1; REFERENCE 4).
        """
        if self.confidence != incumbent.confidence:
            return self.confidence > incumbent.confidence
        return self.source.rank < incumbent.source.rank


# --- chains --------------------------------------------------------------------------------------------------------


class ProvenanceChain(WireModel):
    """The claim in force and every claim it displaced, newest first; nothing is ever dropped (PV-1)."""

    current: ProvenanceTag
    prior: tuple[ProvenanceTag, ...] = ()

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"current", "prior"})

    @classmethod
    def of(cls, tag: ProvenanceTag) -> Self:
        """A chain of one claim."""
        return cls(current=tag)

    def merge(self, challenger: ProvenanceTag) -> ProvenanceChain:
        """Let ``challenger`` contest the claim in force; the loser goes to the head of ``prior``, whoever wins."""
        winner, loser = (challenger, self.current) if challenger.beats(self.current) else (self.current, challenger)
        return ProvenanceChain(current=winner, prior=(loser, *self.prior))

    def supersede(self, tag: ProvenanceTag) -> ProvenanceChain:
        """Put ``tag`` in force without a contest, as a reviewer's act does (PV-1, AF-4)."""
        return ProvenanceChain(current=tag, prior=(self.current, *self.prior))

    def supersede_with(self, newer: ProvenanceChain) -> ProvenanceChain:
        """Put all of ``newer`` on top: its current, its prior, then this current and this prior (REFERENCE 4)."""
        return ProvenanceChain(current=newer.current, prior=(*newer.prior, self.current, *self.prior))
