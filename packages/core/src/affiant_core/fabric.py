"""The context fabric: what the reads of one turn found, kept for the writes of the same turn (seed, "Entities")."""

from __future__ import annotations

import threading

from affiant_core.envelope import EntityRef
from affiant_core.provenance import ProvenanceChain


class ContextFabric:
    """Entities and field chains of one turn. Never a singleton; nothing here is saved by this package (seed).

    Entities are keyed by entity id alone. Safe to use from several threads, since the calls of a turn may run side by
    side.
    """

    def __init__(self) -> None:
        self._entities: dict[str, EntityRef] = {}
        self._chains: dict[str, ProvenanceChain] = {}
        self._lock = threading.Lock()

    def upsert(self, entity: EntityRef) -> EntityRef:
        """Add ``entity``, or overlay its display name and fields on the one with its id, whose type stays."""
        with self._lock:
            known = self._entities.get(entity.entity_id)
            if known is not None:
                entity = known.model_copy(
                    update={"display_name": entity.display_name, "fields": {**known.fields, **entity.fields}}
                )
            self._entities[entity.entity_id] = entity
            return entity

    def entity(self, entity_id: str) -> EntityRef | None:
        """The entity with this id, if a read of this turn found it."""
        with self._lock:
            return self._entities.get(entity_id)

    def entities(self, entity_type: str | None = None) -> tuple[EntityRef, ...]:
        """The entities found so far, in the order they were first found, optionally of one type."""
        with self._lock:
            found = tuple(self._entities.values())
        return tuple(entity for entity in found if entity_type is None or entity.entity_type == entity_type)

    def set_chain(self, field: str, chain: ProvenanceChain) -> None:
        """Remember where a field's value came from, replacing what was remembered for that name."""
        with self._lock:
            self._chains[field] = chain

    def chain(self, field: str) -> ProvenanceChain | None:
        """The remembered chain for a field name."""
        with self._lock:
            return self._chains.get(field)
