"""Sentences of the seed that no other test proves. docs/seed-map.md says which test proves which sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from enum import Enum
from typing import get_args

import pytest
from pydantic import BaseModel
from support.gate import T0, TTL, Desk, Events, WatchedStore, act, record, sworn, turn
from support.pipeline import Body, Host, both, entity, model_json, proposal, read_result, telemetry
from support.protocol import load, protocol_dir

from affiant_core import card, vocabulary
from affiant_core.bridge import model_text
from affiant_core.docket import model, open_docket
from affiant_core.entry_id import derive_entry_id
from affiant_core.envelope import (
    EntityRef,
    ProposedOperation,
    ReadResult,
    ToolError,
    WriteProposal,
    parse_envelope,
)
from affiant_core.filters.extraction import EmitEveryEntity
from affiant_core.filters.review import DefaultReviewContextProvider
from affiant_core.vocabulary import ReviewStatus, TransportEvent
from affiant_core.wire import WireModel, loads

ERROR = ToolError(tool_name="find_customer", timestamp=T0, code="CRM_BUSY", message="The directory is busy.")
ENVELOPES = [read_result(entity("c-1", email="a@example.org")), proposal(), ERROR]
ARGUMENTS = {"customer_id": "c-1", "limit": 500}


def schema(name):
    """A schema of the protocol; the test is skipped where the protocol's documents are not at hand."""
    return load(protocol_dir() / "schemas" / f"{name}.schema.json")


def text_for_the_model(invocation):
    return model_text(invocation, ceiling=1 << 20, telemetry=telemetry(Events()))


# --- The three variants --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("envelope", ENVELOPES, ids=lambda envelope: envelope.kind)
def test_every_variant_says_which_tool_and_when(envelope):
    """Seed, "The three variants": whichever variant comes back, it carries the tool's name and its instant."""
    back = parse_envelope(envelope.to_json_string())
    assert (back.tool_name, back.timestamp) == ("set_limit" if back.kind == "write" else "find_customer", T0)


# --- The kind discriminator ----------------------------------------------------------------------------------------


def test_the_protocols_tool_result_shares_the_discriminator_alone():
    """Seed, "The kind discriminator": the protocol's schema names the same three kinds and closes other members."""
    shapes = [shape["properties"] for shape in schema("tool-result")["$defs"].values()]
    theirs = {shape["kind"]["const"]: shape.keys() for shape in shapes}
    assert theirs.keys() == {envelope.kind for envelope in ENVELOPES}
    for envelope in ENVELOPES:
        assert envelope.to_json().keys() - theirs[envelope.kind] >= {"toolName", "timestamp"}


# --- Serializing: ToolEnvelopeExtensions.ToJsonString() ------------------------------------------------------------


def test_every_path_spells_a_value_alike():
    """Seed, "Serializing": an envelope, a card, a row and the canonical form share one set of conventions."""
    desk = Desk()
    sworn_here = record(sworn("limit", "é🚀", previous=[1, None], mandatory=True), sworn("due", T0))
    filing = desk.file(sworn_here)
    paths = {
        "envelope": WriteProposal(tool_name="t", envelope=sworn_here).to_json_string(),
        "card": desk.outbox.cards[0].to_json_string(),
        "row": filing.entry.to_json_string(),
        "canonical": sworn_here.canonical_form().decode(),
    }
    found = {}
    for path, text in paths.items():
        for spelling in ('"é🚀"', '"Conversation"', '"2026-09-04T09:00:00.000Z"', '"previousValue":[1,null]'):
            assert spelling in text, path
        document = loads(text)
        written = (document.get("envelope") or document.get("affidavit") or document)["fields"]
        presentation = ("allowedValues", "pattern")  # beside the oath, so not on every path
        found[path] = [{name: each[name] for name in sorted(each) if name not in presentation} for each in written]
    assert found["envelope"] == found["card"] == found["row"] == found["canonical"]


def members_of(kind):
    """Every type that a model's members are declared with, unions and containers opened, models looked into."""
    seen, waiting = set(), [kind]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type) and issubclass(part, BaseModel):
            if part not in seen:
                seen.add(part)
                waiting += [field.annotation for field in part.model_fields.values()]
        elif isinstance(part, type):
            seen.add(part)
        waiting += get_args(part)
    return seen


def words_of(kind):
    return {part for part in members_of(kind) if isinstance(part, type) and issubclass(part, Enum)}


def test_no_envelope_has_an_enum_of_its_own():
    """Seed, "Serializing": no member of an envelope is an enum; the one inside is the provenance of a sworn record."""
    assert [words_of(variant) for variant in (ReadResult, WriteProposal, ToolError)] == [set()] * 3
    assert {EntityRef, ProposedOperation} <= members_of(ReadResult) | members_of(WriteProposal)
    tag = proposal().to_json()["envelope"]["fields"][0]["provenance"]["current"]
    assert (tag["source"], type(tag["source"])) == ("Conversation", str)


def test_a_transport_event_is_no_word_of_a_payload():
    """Seed, "Serializing": a transport event is a method's name beside the payload, and never a word inside one."""
    payloads = [
        thing
        for module in (card, model)
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, WireModel) and thing is not WireModel
    ]
    assert ReviewStatus in words_of(card.DocketTransition)
    assert [payload for payload in payloads if TransportEvent in words_of(payload)] == []
    desk = Desk()
    desk.row()
    desk.file()
    desk.clock.set(TTL)
    desk.gate.expire_due.sync(tenant_id="acme", limit=10)
    assert {event for event, _, _ in desk.outbox.sent} == {
        TransportEvent.EVIDENCE_CARD_REQUEST,
        TransportEvent.DOCKET_EXPIRED,
    }
    for event, payload, _ in desk.outbox.sent:
        assert event.value not in payload.to_json_string()
        assert event.client_event_name not in payload.to_json_string()


NEWER = {
    "ReviewStatus": {"withdrawn", "deferred"},
    "DecisionOutcome": {"withdrawn"},
    "DecisionKind": {"withdraw"},
}
"""Words that the protocol took up after its schemas were published."""


def frozen_words():
    row, result = schema("docket-entry")["$defs"], schema("decision-result")["properties"]
    return {
        "ProvenanceSource": schema("provenance-source")["enum"],
        "ReviewRequirement": row["requirementKind"]["enum"],
        "ReviewStatus": row["status"]["enum"],
        "ExecutionOutcome": row["execution"]["enum"],
        "DecisionOutcome": result["outcome"]["enum"],
        "CoverageCategory": schema("blocked")["$defs"]["coverageRefused"]["properties"]["category"]["enum"],
        "DecisionKind": row["decisionRecord"]["properties"]["kind"]["enum"],
    }


def test_the_schemas_freeze_the_spellings():
    """Seed, "Serializing": six of the sets are spelled as their schemas freeze them, and here the row's kind is too."""
    ours = {name: {member.value for member in getattr(vocabulary, name)} for name in frozen_words()}
    assert {name: words - NEWER.get(name, set()) for name, words in ours.items()} == {
        name: set(words) for name, words in frozen_words().items()
    }
    assert all(NEWER[name] <= ours[name] for name in NEWER)


def test_no_schema_names_an_answer_to_a_card():
    """Seed, "Serializing": the set with no schema keeps the PascalCase that nothing else would give it."""
    published = "".join(path.read_text(encoding="utf-8") for path in (protocol_dir() / "schemas").iterdir())
    assert "ApprovalDecision" not in published
    assert not any(f'"{member.value}"' in published for member in vocabulary.ApprovalDecision)


def test_a_decision_is_stored_in_the_schemas_words(tmp_path):
    """Seed, "Serializing": a row's decision reaches storage as approve or reject, never as a member's name."""
    path = tmp_path / "docket.db"
    with closing(open_docket(f"sqlite:///{path}")) as store:
        desk = Desk(store=store)
        approved, rejected = (desk.file(arguments={"n": n}).entry.entry_id for n in range(2))
        desk.approve(approved)
        desk.reject(rejected)
    with closing(sqlite3.connect(path)) as connection:
        stored = dict(connection.execute("SELECT entry_id, decision FROM docket_entries"))
    assert {key: loads(text)["kind"] for key, text in stored.items()} == {approved: "approve", rejected: "reject"}


# --- Rule 2: dual-audience returns ---------------------------------------------------------------------------------


@both
def test_one_payload_serves_the_model_and_a_ui(mode):
    """Seed, "Rule 2": what a model reads as text is, whole, what a UI parses; neither gets a summary of the other's."""
    found = read_result(entity("c-1", email="a@example.org"), markdown="| [A. Rivera](Customer:c-1) |")
    text = text_for_the_model(Host().read(mode, found))
    assert "| [A. Rivera](Customer:c-1) |" in text
    assert '"email":"a@example.org"' in text
    assert parse_envelope(text) == found


@both
def test_the_model_and_the_reviewer_read_one_record(mode):
    """Seed, "Write tools": a host may let the model read the record that the card shows, each field with its origin."""
    host = Host(model_view="proposal")
    shown = model_json(text_for_the_model(host.write(mode, proposal())))["envelope"]
    (evidence,) = host.outbox.cards
    on_card = evidence.to_json()["affidavit"]
    assert [field["name"] for field in on_card["fields"]] == ["limit", "memo"]
    for read_by_model, read_by_person in zip(shown["fields"], on_card["fields"], strict=True):
        assert read_by_person.items() <= read_by_model.items()
        assert {"value", "previousValue", "provenance"} <= read_by_person.keys()
    assert (shown["entityType"], shown["entityId"]) == (on_card["entityType"], on_card["entityId"])


# --- Read tools: ReadResult ----------------------------------------------------------------------------------------

MARKDOWNS = {
    "with a reference": "See [Customer:c-9](crm/customers/c-9) for the full record",
    "without one": "Nothing to point at.",
    "empty": "",
    "a table": "| a |\n|---|\n| 1 |",
    "half a link": "[Customer:c-9](",
    "markup": "<b>c-9</b>",
}


@both
@pytest.mark.parametrize("markdown", MARKDOWNS.values(), ids=MARKDOWNS)
def test_markdown_is_not_looked_into(mode, markdown):
    """Seed, "Read tools": naming entities in the markdown is an author's discipline; it is text, and nothing more."""
    context = turn()
    found = ReadResult(tool_name="find_customer", summary="Found it.", markdown=markdown)
    invocation = Host(extractors=[EmitEveryEntity()]).read(mode, found.to_json_string(), turn=context)
    assert invocation.envelope() == found
    assert (found.summary, found.markdown, found.entities) == ("Found it.", markdown, ())
    assert context.fabric.entities() == ()


@both
@pytest.mark.parametrize("entity_type", ["Customer", "WorkOrder", "customer", "受注", "a b/c", "create"])
def test_an_entitys_type_and_fields_are_the_hosts_own(mode, entity_type):
    """Seed, "Read tools": the type is the host's label, compared for equality alone, and no schema binds the fields."""
    fields = {"email": "a@example.org", "": 0, "kind": "write", "rows": [{"deep": [None, 1.5, True]}], "受": "注"}
    label = EntityRef(entity_type=entity_type, entity_id="1", display_name="", fields=fields)
    other = EntityRef(entity_type=entity_type + " ", entity_id="2", display_name="", fields={})
    context = turn()
    Host(extractors=[EmitEveryEntity()]).read(mode, read_result(label, other).to_json_string(), turn=context)
    assert context.fabric.entities(entity_type) == (label,)
    assert context.fabric.entity("1").fields == fields


def test_an_entity_of_a_read_is_not_the_protocols_entity_of_a_write():
    """Seed, "Read tools": under the same name the protocol describes what a write names, type and id alone."""
    theirs = schema("entity-ref")["properties"].keys()
    assert theirs == {"entityType", "entityId"}
    assert entity().to_json().keys() - theirs == {"displayName", "fields"}


@both
def test_finding_nothing_is_a_result_and_failing_is_not(mode):
    """Seed, "Read tools": a query that found nothing is a read without entities; only a failed one is an error."""
    host = Host()
    nothing = read_result(summary="Found nothing.", markdown="")
    assert parse_envelope(text_for_the_model(host.read(mode, nothing))) == nothing
    assert host.events.of("affiant.tool_error") == []
    assert isinstance(host.read(mode, Body(LookupError("no table"))).envelope(), ToolError)


@both
def test_a_write_uses_what_a_read_of_its_turn_found(mode):
    """Seed, "Read tools": a write later in the turn has what a read found, without the model saying it again."""
    host = Host(extractors=[EmitEveryEntity()])
    context = turn()

    def body():
        known = context.fabric.entity("c-1")
        stored = None if known is None else known.fields["limit"]
        return proposal(envelope=record(sworn("limit", 500, previous=stored)))

    host.read(mode, read_result(entity("c-1", limit=100)), turn=context)
    host.write(mode, body, turn=context)
    (row,) = host.rows()
    assert row.affidavit.field("limit").previous_value == 100


@both
def test_nothing_saves_the_fabric(mode):
    """Seed, "Read tools": what a turn found is kept nowhere; the next turn of the conversation starts with nothing."""
    store = WatchedStore()
    host = Host(docket=store, extractors=[EmitEveryEntity()])
    context = turn()
    host.read(mode, read_result(entity("c-1", email="a@example.org")), turn=context)
    assert len(context.fabric.entities()) == 1
    assert store.calls == []
    host.write(mode, proposal(), turn=context)
    (row,) = host.rows()
    assert "a@example.org" not in row.to_json_string()
    assert turn().conversation_id == context.conversation_id
    assert turn().fabric.entities() == ()


# --- Write tools: WriteProposal ------------------------------------------------------------------------------------


def test_a_resubmission_reads_the_operation_off_the_record():
    """Seed, "Write tools": a resubmission supplies no operation, so its id is derived from the record's own."""
    desk = Desk()
    stated = ProposedOperation(kind="update", entity_type="Customer", entity_id="c-1", fields=("memo", "limit"))
    first = desk.file(operation=stated, arguments=ARGUMENTS).entry.entry_id
    desk.clock.set(TTL)
    derived = derive_entry_id(
        tenant_id="acme",
        conversation_id="c-1",
        tool_name="set_limit",
        operation_kind="update",
        entity_type="Customer",
        entity_id="c-1",
        fields=["limit", "memo"],
        arguments=None,
        supersedes=first,
    )
    assert desk.gate.resubmit.sync(first, act()).entry.entry_id == derived


@both
def test_the_seams_arguments_are_attached_to_the_proposal(mode):
    """Seed, "Write tools": the gate's filter attaches the call's arguments, so whoever reads the proposal has them."""
    given = []

    class Provider(DefaultReviewContextProvider):
        def review_context(self, proposal, turn):
            given.append(proposal.arguments)
            return super().review_context(proposal, turn)

    host = Host(context_provider=Provider(), model_view="proposal")
    shown = host.write(mode, proposal(arguments={"other": 1}), arguments=ARGUMENTS).envelope()
    assert given == [ARGUMENTS]
    assert shown.arguments == ARGUMENTS
