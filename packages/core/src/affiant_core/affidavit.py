"""The Affidavit: what an agent proposes to write, and under which oath each value stands (AF-1 to AF-4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from affiant_core.canonical import canonical_bytes, canonical_hash
from affiant_core.errors import AmendmentRefused
from affiant_core.provenance import ProvenanceChain, ProvenanceTag, ReviewerAct
from affiant_core.values import JSON, Money, spell
from affiant_core.vocabulary import FieldKind, ProvenanceSource, is_update_shaped, operation_shape
from affiant_core.wire import (
    PROTOCOL_VERSION,
    Count,
    Flag,
    Identifier,
    Instant,
    Number,
    ProtocolVersion,
    Text,
    TurnNumber,
    WireModel,
    word_of,
)


def _chain(provenance: Any) -> Any:
    return ProvenanceChain.of(provenance) if isinstance(provenance, ProvenanceTag) else provenance


def _sworn_value(value: Any, info: ValidationInfo) -> Any:
    # What is refused names the field, not the record's member (DECISIONS 20).
    name = info.data.get("name", "field")
    return spell(value, name if info.field_name == "value" else f"{name}.{info.field_name}")


SwornValue = Annotated[Any, BeforeValidator(_sworn_value)]


def kind_of(value: object) -> FieldKind:
    """How a Python value would be edited: numbers and money, dates, enum members, and text for everything else."""
    if isinstance(value, Enum):
        return FieldKind.ENUM
    if isinstance(value, int | float | Decimal | Money) and not isinstance(value, bool):
        return FieldKind.NUMBER
    return FieldKind.DATE if isinstance(value, date) else FieldKind.TEXT


_CONTAINERS = (dict, list)


class AffidavitField(WireModel):
    """One sworn field: its value, the stored value it would replace, and where the value came from (AF).

    ``kind``, ``allowed_values`` and ``pattern`` tell a card how to show the field; they never constrain the value.
    ``allowed_values`` and ``pattern`` are presentation and are not in the canonical form (SR-1).
    """

    name: Identifier
    kind: Annotated[FieldKind, BeforeValidator(word_of(FieldKind))] = FieldKind.TEXT
    value: SwornValue = None
    previous_value: SwornValue = None
    provenance: Annotated[ProvenanceChain, BeforeValidator(_chain)]
    is_mandatory: Flag = False
    allowed_values: tuple[SwornValue, ...] | None = None
    pattern: Text | None = None

    required_on_wire: ClassVar[frozenset[str]] = frozenset({"kind", "value", "previousValue", "isMandatory"})

    @classmethod
    def of(
        cls,
        name: str,
        value: object,
        provenance: ProvenanceTag | ProvenanceChain,
        *,
        previous: object = None,
        mandatory: bool = False,
        kind: FieldKind | None = None,
        allowed_values: Iterable[object] | None = None,
        pattern: str | None = None,
    ) -> Self:
        """A field from a Python value, which also tells ``kind``, and an enum's ``allowed_values``, if not given."""
        if allowed_values is None and isinstance(value, Enum):
            allowed_values = list(type(value))
        return cls(
            name=name,
            kind=kind or kind_of(value),
            value=value,
            previous_value=previous,
            provenance=_chain(provenance),
            is_mandatory=mandatory,
            allowed_values=None if allowed_values is None else tuple(allowed_values),
            pattern=pattern,
        )

    @property
    def tag(self) -> ProvenanceTag:
        """The claim in force."""
        return self.provenance.current

    @property
    def is_mutable(self) -> bool:
        """Whether the field holds an object or an array, which somebody could change in place."""
        return (
            self.value.__class__ in _CONTAINERS
            or self.previous_value.__class__ in _CONTAINERS
            or (self.allowed_values is not None and any(each.__class__ in _CONTAINERS for each in self.allowed_values))
        )

    @property
    def holds_a_value(self) -> bool:
        """Whether there is a value: null and blank text are none, ``0``, ``false``, ``[]`` and ``{}`` are (GT-3)."""
        return self.value is not None and not (isinstance(self.value, str) and not self.value.strip())


_PRESENTATION: dict[str, Any] = {
    "warnings": True,
    "requires_confirmation": True,
    "fields": {"__all__": {"allowed_values": True, "pattern": True}},
}


class Affidavit(WireModel):
    """The sworn record of one proposed create or update (AF).

    Make one with :meth:`create`, which computes the three confidence numbers. ``warnings`` and
    ``requires_confirmation`` are presentation and are not in the canonical form.
    """

    protocol_version: ProtocolVersion = PROTOCOL_VERSION
    operation_type: Identifier
    entity_type: Identifier
    entity_id: Identifier | None = None
    fields: tuple[AffidavitField, ...]
    aggregate_confidence: Annotated[Number, Field(ge=0, le=1)]
    populated_confidence: Annotated[Number, Field(ge=0, le=1)] | None
    empty_field_count: Count
    conversation_turn: TurnNumber | None = None
    created_at: Instant | None = None
    warnings: tuple[Text, ...] = ()
    requires_confirmation: Flag = True

    required_on_wire: ClassVar[frozenset[str]] = frozenset(
        {"protocolVersion", "entityId", "conversationTurn", "createdAt"}
    )

    @field_validator("fields")
    @classmethod
    def _names_are_unique(cls, fields: tuple[AffidavitField, ...]) -> tuple[AffidavitField, ...]:
        names = [field.name for field in fields]
        if len(set(names)) != len(names):
            raise ValueError("a field is named twice.")
        return fields

    @classmethod
    def create(
        cls,
        *,
        operation_type: str,
        entity_type: str,
        fields: Iterable[AffidavitField],
        entity_id: str | None = None,
        warnings: Iterable[str] = (),
        requires_confirmation: bool = True,
        conversation_turn: int | None = None,
        created_at: datetime | None = None,
    ) -> Self:
        """Swear a record over ``fields``, computing its confidence numbers (seed; AF-2).

        ``operation_type`` carries the protocol's shape: only ``WriteUpdate`` and ``update``, in any case, are updates.
        Whether the shape fits ``entity_id`` is checked when the record is filed.
        """
        sworn = tuple(fields)
        return cls(
            operation_type=operation_type,
            entity_type=entity_type,
            entity_id=entity_id,
            fields=sworn,
            warnings=tuple(warnings),
            requires_confirmation=requires_confirmation,
            conversation_turn=conversation_turn,
            created_at=created_at,
            **confidence_numbers(sworn),
        )

    @property
    def is_update(self) -> bool:
        """Whether the operation has the protocol's update shape."""
        return is_update_shaped(self.operation_type)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The proposed fields' names, in proposed order."""
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> AffidavitField:
        """The field named ``name``. Raises ``KeyError`` when the record does not propose it."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def values(self) -> dict[str, Any]:
        """The sworn values by field name: what a host's executor writes."""
        return {field.name: field.value for field in self.fields}

    def detached(self) -> Self:
        """The same record with copies of the objects and arrays among its values; everything else is frozen."""
        for field in self.fields:  # a plain loop: this runs several times for each act on a row
            if field.is_mutable:
                break
        else:
            return self
        fields = tuple(field.model_copy(deep=True) if field.is_mutable else field for field in self.fields)
        return self.model_copy(update={"fields": fields})

    def with_fields(self, fields: Sequence[AffidavitField]) -> Self:
        """The same record over other fields, with all three confidence numbers computed again (AF-2)."""
        sworn = tuple(fields)
        return self.model_copy(update={"fields": sworn, **confidence_numbers(sworn)})

    def sworn(self) -> dict[str, JSON]:
        """The protocol's closed record: ten members, the operation as ``create`` or ``update``, no presentation."""
        record: dict[str, JSON] = self.model_dump(mode="json", exclude=_PRESENTATION)
        record["operationType"] = operation_shape(self.operation_type)
        return record

    def canonical_form(self) -> bytes:
        """The canonical bytes of the sworn record (SR-1)."""
        return canonical_bytes(self.sworn())

    def canonical_hash(self) -> str:
        """SHA-256 of the canonical form, 64 lowercase hexadecimal digits: what an approval binds to (SR-1)."""
        return canonical_hash(self.sworn())

    def amend(self, amendments: Mapping[str, object] | None, *, by: str, entry_id: str, at: datetime) -> Self:
        """The accepted state after a reviewer's amendments (AF-1, AF-4, DK-2).

        A value sets the field; ``None`` clears it: a mandatory field stays, empty, and an optional one leaves the
        record. Absent names are left alone. The new tag stands on top of the chain, bound to the reviewer's act.
        Raises ``AmendmentRefused`` for a name that the record does not propose, ``ValueRefused`` for a bad value.
        """
        act = _Act(self, by, entry_id, at, note=f"Amended by {by} on Docket entry {entry_id}")
        return self._change(amendments, act.accept)

    def prefill(self, amendments: Mapping[str, object] | None, *, by: str, entry_id: str, at: datetime) -> Self:
        """The record with the amendments that a late decision carried, for a resubmission (DK-1).

        As :meth:`amend`, but a cleared field stays, holding null, stated by the person who cleared it.
        """
        act = _Act(self, by, entry_id, at, note=f"Prefilled from the amendment {by} carried on Docket entry {entry_id}")
        return self._change(amendments, act.carry)

    def _change(self, amendments: Mapping[str, object] | None, change: Any) -> Self:
        if not amendments:
            return self
        unknown = [name for name in amendments if name not in self.field_names]
        if unknown:
            raise AmendmentRefused(
                f"the record proposes no field named {', '.join(map(repr, unknown))}; "
                f"it proposes {', '.join(map(repr, self.field_names))}."
            )
        changed = (
            change(field, spell(amendments[field.name], field.name)) if field.name in amendments else field
            for field in self.fields
        )
        return self.with_fields([field for field in changed if field is not None])


def confidence_numbers(fields: Sequence[AffidavitField]) -> dict[str, Any]:
    """The numbers of AF-2: minimum with ``Empty`` as 0, minimum over the rest (or ``None``), count of ``Empty``."""
    populated = [field.tag.confidence for field in fields if not field.tag.is_empty]
    empty = len(fields) - len(populated)
    return {
        "aggregate_confidence": 0.0 if empty or not populated else min(populated),
        "populated_confidence": min(populated) if populated else None,
        "empty_field_count": empty,
    }


def hollow_or_empty(affidavit: Affidavit) -> str | None:
    """Why a record has no substance, or ``None`` when it has (GT-3). The reason names fields, never values."""
    hollow = next((field.name for field in affidavit.fields if field.tag.is_empty and field.holds_a_value), None)
    if hollow is not None:
        return f"GT-3: field {hollow!r} holds a value under Empty provenance."
    if all(field.tag.is_empty for field in affidavit.fields):
        return "GT-3: no proposed field carries provenance other than Empty."
    return None


def misshapen(affidavit: Affidavit) -> str | None:
    """Why a record's operation and entity do not fit together, or ``None`` when they do (AF-3)."""
    if affidavit.is_update:
        return (
            None if affidavit.entity_id else "AF-3: an update names the entity that it changes; entity_id is missing."
        )
    if affidavit.entity_id is not None:
        return (
            "AF-3: a create names no entity. Only 'WriteUpdate' and 'update' are updates; "
            "use one of them, and let the tool's name or a field carry the host's own verb."
        )
    if any(field.previous_value is not None for field in affidavit.fields):
        return "AF-3: a create has no previous values."
    return None


@dataclass(frozen=True, slots=True)
class _Act:
    """One person's change of a record: what its tags say."""

    record: Affidavit
    by: str
    entry_id: str
    at: datetime
    note: str

    def accept(self, field: AffidavitField, value: JSON) -> AffidavitField | None:
        if value is not None:
            return self._set(field, value, self._stated())
        if not field.is_mandatory:
            return None
        return self._set(field, None, self._tag(ProvenanceSource.EMPTY, 0.0, None))

    def carry(self, field: AffidavitField, value: JSON) -> AffidavitField:
        return self._set(field, value, self._stated())

    def _stated(self) -> ProvenanceTag:
        return self._tag(ProvenanceSource.USER_STATED, 1.0, ReviewerAct.on(self.entry_id, self.at))

    def _tag(self, source: ProvenanceSource, confidence: float, binding: ReviewerAct | None) -> ProvenanceTag:
        return ProvenanceTag(
            source=source,
            confidence=confidence,
            note=self.note,
            at=self.at,
            conversation_turn=self.record.conversation_turn,
            binding=binding,
        )

    @staticmethod
    def _set(field: AffidavitField, value: JSON, tag: ProvenanceTag) -> AffidavitField:
        return field.model_copy(update={"value": value, "provenance": field.provenance.supersede(tag)})
