"""What the reads of a turn found."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from affiant_core.envelope import EntityRef
from affiant_core.fabric import ContextFabric
from affiant_core.provenance import ProvenanceChain, ProvenanceTag


def entity(entity_id, entity_type="Customer", name="A. Rivera", **fields):
    return EntityRef(entity_type=entity_type, entity_id=entity_id, display_name=name, fields=fields)


def test_an_entity_is_kept_for_the_turn():
    """Seed, "Entities": what a read puts there is available to a write later in the same turn."""
    fabric = ContextFabric()
    assert fabric.upsert(entity("42", email="a")) == entity("42", email="a")
    assert fabric.entity("42") == entity("42", email="a")
    assert fabric.entity("43") is None


def test_upsert_overlays_the_known_entity():
    """Seed, "Entities": EmitEntity is an upsert; later fields win, earlier ones stay, type and id are the first's."""
    fabric = ContextFabric()
    fabric.upsert(entity("42", email="a", phone="1"))
    merged = fabric.upsert(entity("42", "Person", "Ana Rivera", email="b", city="c"))
    assert merged == entity("42", "Customer", "Ana Rivera", email="b", phone="1", city="c")
    assert fabric.entities() == (merged,)


def test_an_upsert_changes_no_entity_that_was_handed_out():
    """Seed, "Entities": a read's result stays as it was returned."""
    fabric = ContextFabric()
    first = fabric.upsert(entity("42", email="a"))
    fabric.upsert(entity("42", email="b"))
    assert first.fields == {"email": "a"}


def test_entities_by_type_in_the_order_found():
    """REFERENCE 2.1: the framework compares the type for equality only; an upsert does not move an entity."""
    fabric = ContextFabric()
    for found in (entity("2"), entity("1", "Order"), entity("3"), entity("2", name="again")):
        fabric.upsert(found)
    assert [found.entity_id for found in fabric.entities()] == ["2", "1", "3"]
    assert [found.entity_id for found in fabric.entities("Customer")] == ["2", "3"]
    assert fabric.entities("customer") == ()


def test_chains_by_field_name():
    """REFERENCE 3, projection: a field's remembered chain is asked for by name; the newest stands."""
    fabric = ContextFabric()
    older = ProvenanceChain.of(ProvenanceTag.default())
    newer = ProvenanceChain.of(ProvenanceTag.from_tool_result())
    fabric.set_chain("limit", older)
    fabric.set_chain("limit", newer)
    assert fabric.chain("limit") == newer
    assert fabric.chain("other") is None


def test_fabrics_share_nothing():
    """GT-2: interleaved conversations never see each other's context."""
    one, other = ContextFabric(), ContextFabric()
    one.upsert(entity("42"))
    one.set_chain("limit", ProvenanceChain.of(ProvenanceTag.default()))
    assert other.entities() == ()
    assert other.chain("limit") is None


def test_calls_of_a_turn_may_run_side_by_side():
    """CASES C15, DECISIONS 21: upserts from several threads lose nothing."""
    fabric = ContextFabric()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fabric.upsert(entity(str(number % 10), **{f"f{number}": number})), range(400)))
    assert len(fabric.entities()) == 10
    assert sum(len(found.fields) for found in fabric.entities()) == 400
