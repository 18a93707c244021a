"""A read's entities reach the turn's fabric through the host's extractors, and only so."""

from __future__ import annotations

import asyncio

import pytest
from support.gate import turn
from support.pipeline import (
    Body,
    Host,
    both,
    carry,
    entity,
    invocation_for,
    proposal,
    read_result,
    with_kind_last,
)

from affiant_core.envelope import ToolError
from affiant_core.errors import WireupInvalid
from affiant_core.filters.extraction import ContextExtractor, EmitEveryEntity, Extraction


class Watching(ContextExtractor):
    """An extractor that keeps what it was given, and emits nothing unless told to."""

    def __init__(self, *claimed, then=None):
        self.claimed = claimed
        self.then = then
        self.asked, self.given = [], []

    def matches_tool(self, tool_name):
        self.asked.append(tool_name)
        return tool_name in self.claimed

    def extract(self, extraction):
        self.given.append(extraction)
        return self.then(extraction) if self.then else None


def read(host, mode, body, **options):
    invocation = invocation_for(mode, **options)
    carry(mode, host.pipeline, invocation, body)
    return invocation


@both
@pytest.mark.parametrize(
    "spelling",
    [lambda found: found, lambda found: found.to_json_string(), with_kind_last, lambda found: found.to_json()],
)
def test_a_claimed_read_with_entities_is_extracted(mode, spelling):
    """Seed, "keeps going only when the host's MatchesTool claims the tool": in every spelling of a read."""
    watching = Watching("find_customer")
    found = read_result(entity("c-1"), entity("c-2"))
    invocation = read(Host(extractors=[watching]), mode, lambda: spelling(found))
    (extraction,) = watching.given
    assert extraction.tool_name == "find_customer"
    assert extraction.result == found
    assert isinstance(extraction, Extraction)
    assert invocation.turn.fabric.entities() == ()


@both
def test_a_read_that_is_not_claimed_is_left_alone(mode):
    """REFERENCE 6.6: stop unless the host's matches_tool accepts the function name."""
    watching = Watching("other")
    read(Host(extractors=[watching]), mode, read_result(entity()))
    assert watching.asked == ["find_customer"]
    assert watching.given == []


@both
@pytest.mark.parametrize(
    "returned",
    [
        read_result(),
        "prose",
        "",
        "   ",
        None,
        {"rows": [1]},
        '{"$type":"read","summary":"s"}',
        ToolError(tool_name="t", code="X", message="m"),
        proposal(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_found_nothing_is_not_extracted(mode, returned):
    """Seed, "and the ReadResult carries at least one entity": prose, an error, a proposal or no entities stop it."""
    watching = Watching("find_customer")
    host = Host(extractors=[watching])
    read(host, mode, lambda: returned)
    assert watching.given == []
    assert host.events.of("affiant.extractor.failed") == []


@both
def test_nothing_reaches_the_fabric_by_itself(mode):
    """Seed, "nothing in the framework upserts a read's entities on its own"."""
    assert read(Host(), mode, read_result(entity())).turn.fabric.entities() == ()
    silent = Host(extractors=[Watching("find_customer")])
    assert read(silent, mode, read_result(entity())).turn.fabric.entities() == ()


@both
def test_what_is_emitted_is_in_the_turns_fabric(mode):
    """Seed, "EmitEntity is the upsert into the ContextFabric": the emitted entity is there for a write of the turn."""

    def then(extraction):
        extraction.emit_entity(extraction.result.entities[1])

    emitting = Watching("find_customer", then=then)
    invocation = read(Host(extractors=[emitting]), mode, read_result(entity("c-1"), entity("c-2", limit=5)))
    assert [found.entity_id for found in invocation.turn.fabric.entities()] == ["c-2"]
    assert invocation.turn.fabric.entity("c-2").fields == {"limit": 5}


@both
def test_an_entity_is_overlaid_and_keeps_its_first_type(mode):
    """REFERENCE 6.6: merge keeps the first type and id, takes the display name, overlays fields, preserves the rest."""
    host = Host(extractors=[EmitEveryEntity()])
    context = turn()
    first = entity("c-1", limit=5, email="a@b.c")
    second = first.model_copy(
        update={"entity_type": "Client", "display_name": "Ana Rivera", "fields": {"limit": 10, "since": 2020}}
    )
    read(host, mode, read_result(first), turn=context)
    read(host, mode, read_result(second), turn=context)
    (kept,) = context.fabric.entities()
    assert (kept.entity_type, kept.display_name) == ("Customer", "Ana Rivera")
    assert kept.fields == {"limit": 10, "email": "a@b.c", "since": 2020}


@both
def test_every_entity_of_the_named_tools_is_emitted(mode):
    """Seed, "a host's picker": the ready-made extractor claims the tools that it names, or every tool."""
    found = read_result(entity("c-1"), entity("c-2"))
    for extractor, expected in [
        (EmitEveryEntity(), ["c-1", "c-2"]),
        (EmitEveryEntity("find_customer", "other"), ["c-1", "c-2"]),
        (EmitEveryEntity("other"), []),
    ]:
        invocation = read(Host(extractors=[extractor]), mode, found)
        assert [each.entity_id for each in invocation.turn.fabric.entities()] == expected


@both
def test_an_extractor_may_be_asynchronous(mode):
    """DECISIONS 21: extract is waited for, written with async or without, awaited or without a loop."""

    async def then(extraction):
        await asyncio.sleep(0)
        extraction.emit_entity(extraction.result.entities[0])

    invocation = read(Host(extractors=[Watching("find_customer", then=then)]), mode, read_result(entity()))
    assert [found.entity_id for found in invocation.turn.fabric.entities()] == ["c-1"]


@both
@pytest.mark.parametrize("where", ["matches_tool", "extract"])
def test_an_extractor_that_fails_leaves_the_result(mode, where, caplog):
    """REFERENCE 17, "extractor raising after the tool: one run, result intact": told and logged, nothing more."""

    class Failing(EmitEveryEntity):
        pass

    def fail(*_):
        raise TimeoutError("graph at 10.0.0.5")

    setattr(Failing, where, fail)
    host = Host(extractors=[Failing(), Watching("find_customer")])
    found = read_result(entity())
    body = Body(found)
    invocation = read(host, mode, body)
    assert invocation.result is found
    assert body.calls == 1
    assert host.events.told == [
        (
            "affiant.extractor.failed",
            {"extractor.type": "Failing", "tool.name": "find_customer", "exception.type": "TimeoutError"},
        )
    ]
    assert "graph at 10.0.0.5" in caplog.text


@both
def test_one_extractor_that_fails_stops_no_other(mode):
    """REFERENCE 6.6: each extractor is a filter of its own."""

    def fail(_):
        raise RuntimeError

    failing = Watching("find_customer", then=fail)
    for extractors in ([failing, EmitEveryEntity()], [EmitEveryEntity(), failing]):
        invocation = read(Host(extractors=extractors), mode, read_result(entity()))
        assert len(invocation.turn.fabric.entities()) == 1


@both
@pytest.mark.parametrize("kind", [asyncio.CancelledError, WireupInvalid])
def test_what_propagates_does_so_from_an_extractor(mode, kind):
    """REFERENCE 6.6, DECISIONS 14: cancellation in an extractor propagates, and so does a fault of the wiring."""

    def fail(_):
        raise kind("now")

    with pytest.raises(kind):
        read(Host(extractors=[Watching("find_customer", then=fail)]), mode, read_result(entity()))


@both
def test_an_extractor_does_not_see_a_failed_call(mode):
    """REFERENCE 6.6, "after next": when the tool raises there is nothing to extract from."""
    watching = Watching("find_customer")
    read(Host(extractors=[watching]), mode, Body(RuntimeError()))
    assert watching.asked == []


@both
def test_two_turns_share_no_fabric(mode):
    """Seed, "the fabric is registered scoped"; C14: what one turn found is not in another's."""
    host = Host(extractors=[EmitEveryEntity()])
    first = read(host, mode, read_result(entity("c-1")))
    second = read(host, mode, read_result(entity("c-2")))
    assert [found.entity_id for found in first.turn.fabric.entities()] == ["c-1"]
    assert [found.entity_id for found in second.turn.fabric.entities()] == ["c-2"]


def test_an_extractor_says_what_it_claims_and_extracts():
    """Seed, "the abstract base class": a host must override both methods."""
    with pytest.raises(TypeError, match="abstract"):
        ContextExtractor()
