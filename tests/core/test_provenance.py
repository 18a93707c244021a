"""Where a value came from, and how two claims about one field merge."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from affiant_core.errors import WireError
from affiant_core.provenance import (
    Binding,
    ComputationConstant,
    ComputationRef,
    ComputationRuleRef,
    ExternalRecordRef,
    ExternalRef,
    FormInput,
    ProvenanceChain,
    ProvenanceTag,
    RelayRef,
    ReviewerAct,
    UtteranceSpan,
    UtteranceSpanRef,
    clamp,
)
from affiant_core.vocabulary import ProvenanceSource
from affiant_core.wire import WireModel, read

AT = datetime(2026, 9, 4, 9, tzinfo=UTC)
WHEN = "2026-09-04T09:00:00.000Z"


class Bound(WireModel):
    """A record with nothing but a binding, to read one by itself."""

    binding: Binding


def tag(source, confidence, note=None):
    return ProvenanceTag(source=source, confidence=confidence, note=note, at=AT)


# --- tags ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "minted"),
    [(-0.1, 0.0), (0, 0.0), (0.5, 0.5), (1, 1.0), (1.4, 1.0), (float("nan"), 0.0), (float("inf"), 1.0), (-1e9, 0.0)],
)
def test_confidence_is_clamped_when_minted(given, minted):
    """PV-1: confidence is clamped to [0, 1] before minting, and the clamp is the tag's (REFERENCE 4: NaN is 0)."""
    assert clamp(given) == minted
    assert tag("Conversation", given).confidence == minted


@pytest.mark.parametrize("source", ["Empty", ProvenanceSource.EMPTY])
def test_empty_is_always_worth_nothing(source):
    """PV-1: Empty is always 0, whatever is claimed in Python; what the wire claims otherwise is refused."""
    assert tag(source, 0.7).confidence == 0.0
    document = {
        "source": "Empty",
        "confidence": 0.7,
        "note": None,
        "at": WHEN,
        "conversationTurn": None,
        "binding": None,
    }
    with pytest.raises(WireError, match="Empty is always 0"):
        read(ProvenanceTag, document)
    assert read(ProvenanceTag, {**document, "confidence": 0}).is_empty


def test_a_tag_writes_all_its_members():
    """PV-1: source, confidence, note, at, conversationTurn and binding are always present, null when nothing."""
    assert ProvenanceTag(source="Inferred", confidence=0.6, at=AT).to_json() == {
        "source": "Inferred",
        "confidence": 0.6,
        "note": None,
        "at": WHEN,
        "conversationTurn": None,
        "binding": None,
    }


@pytest.mark.parametrize(
    ("minted", "source", "confidence"),
    [
        (ProvenanceTag.user_stated(binding=FormInput.of("limit")), ProvenanceSource.USER_STATED, 1.0),
        (ProvenanceTag.external(binding=None), ProvenanceSource.EXTERNAL, 1.0),
        (ProvenanceTag.computed(binding=None), ProvenanceSource.COMPUTED, 1.0),
        (ProvenanceTag.from_tool_result(), ProvenanceSource.CONVERSATION, 0.9),
        (ProvenanceTag.default(), ProvenanceSource.DEFAULT, 0.3),
        (ProvenanceTag.empty(), ProvenanceSource.EMPTY, 0.0),
    ],
)
def test_mint_defaults(minted, source, confidence):
    """REFERENCE 4, mint defaults: a person 1.0 with an explicit binding, a tool result 0.9, a fallback 0.3, Empty 0."""
    assert (minted.source, minted.confidence) == (source, confidence)


def test_a_persons_act_names_its_binding():
    """REFERENCE 4: a person's tag has an explicit binding, even when that is none."""
    with pytest.raises(TypeError, match="binding"):
        ProvenanceTag.user_stated()
    assert ProvenanceTag.user_stated(binding=None).binding is None


def test_a_tag_needs_a_known_source():
    """PV-1: the set of sources is closed, in Python too."""
    with pytest.raises(ValidationError):
        tag("Guessed", 0.5)


def test_beats_by_confidence_then_by_source():
    """PV-1: the higher confidence wins, a tie goes to the more deterministic source, an exact tie to the incumbent."""
    assert tag("Inferred", 0.9).beats(tag("UserStated", 0.8))
    assert not tag("UserStated", 0.8).beats(tag("Inferred", 0.9))
    assert tag("External", 0.8).beats(tag("Conversation", 0.8))
    assert not tag("Conversation", 0.8).beats(tag("External", 0.8))
    assert not tag("External", 0.8, "new").beats(tag("External", 0.8, "old"))


# --- chains --------------------------------------------------------------------------------------------------------


def test_merge_keeps_the_loser_at_the_head_of_prior():
    """PV-1: the loser is kept, newest first, whoever wins."""
    chain = ProvenanceChain.of(tag("Conversation", 0.5, "first"))
    chain = chain.merge(tag("Inferred", 0.9, "second"))
    chain = chain.merge(tag("Default", 0.3, "third"))
    assert chain.current.note == "second"
    assert [claim.note for claim in chain.prior] == ["third", "first"]


def test_merge_keeps_the_incumbent_on_an_exact_tie():
    """PV-1: equal confidence and equal source change nothing in force."""
    chain = ProvenanceChain.of(tag("External", 1, "old")).merge(tag("External", 1, "new"))
    assert chain.current.note == "old"
    assert [claim.note for claim in chain.prior] == ["new"]


def test_supersede_never_contests():
    """PV-1: a reviewer's act supersedes, however confident the displaced claim was."""
    chain = ProvenanceChain.of(tag("External", 1, "old")).merge(tag("Default", 0.1, "older"))
    chain = chain.supersede(tag("Empty", 0, "cleared"))
    assert chain.current.note == "cleared"
    assert [claim.note for claim in chain.prior] == ["old", "older"]


def test_supersede_with_a_chain():
    """REFERENCE 4, appendChain: the other's current, then its prior, then this current and this prior."""
    older = ProvenanceChain(current=tag("Inferred", 0.5, "b"), prior=(tag("Default", 0.3, "a"),))
    newer = ProvenanceChain(current=tag("Default", 0.1, "d"), prior=(tag("Default", 0.1, "c"),))
    chain = older.supersede_with(newer)
    assert [chain.current.note, *(claim.note for claim in chain.prior)] == ["d", "c", "b", "a"]


def test_a_chain_of_one():
    """RULES, PV-1: a chain is its current claim and every prior one, and prior is written even when empty."""
    claim = tag("Inferred", 0.5)
    assert ProvenanceChain.of(claim).to_json() == {"current": claim.to_json(), "prior": []}


# --- bindings ------------------------------------------------------------------------------------------------------

RELAY = {"principal": "relay-1", "channelIdentity": "+94", "messageId": "m-1"}
BINDINGS = [
    (UtteranceSpan(ref=UtteranceSpanRef(offset=3, length=4, hash="ab")),
     {"kind": "utterance-span", "ref": {"offset": 3, "length": 4, "hash": "ab"}}),
    (UtteranceSpan(ref=UtteranceSpanRef(offset=0, length=4, hash="ab", message_id="m-1")),
     {"kind": "utterance-span", "ref": {"offset": 0, "length": 4, "hash": "ab", "messageId": "m-1"}}),
    (ReviewerAct.on("e-1", AT), {"kind": "reviewer-act", "ref": {"entryId": "e-1", "decisionAt": WHEN}}),
    (FormInput.of("limit"), {"kind": "form-input", "ref": {"field": "limit"}}),
    (ExternalRef.of("erp", "po/77"), {"kind": "external-ref", "ref": {"system": "erp", "recordId": "po/77"}}),
    (ExternalRef(ref=ExternalRecordRef(
        system="web", record_id="https://example.org/", fetched_at=AT, content_hash="cd",
        relay=RelayRef(principal="relay-1", channel_identity="+94", message_id="m-1"))),
     {"kind": "external-ref", "ref": {"system": "web", "recordId": "https://example.org/", "fetchedAt": WHEN,
                                      "contentHash": "cd", "relay": RELAY}}),
    (ExternalRef.of("erp", "po/77", fetched_at=AT),
     {"kind": "external-ref", "ref": {"system": "erp", "recordId": "po/77", "fetchedAt": WHEN}}),
    (ComputationRef.of("invoice.total@v3", ["LineItems"]),
     {"kind": "computation-ref", "ref": {"rule": "invoice.total@v3", "inputs": ["LineItems"]}}),
    (ComputationRef(ref=ComputationRuleRef(
        rule="r", inputs=(), constant=ComputationConstant(source="law", verified_on="2026-01-01"))),
     {"kind": "computation-ref", "ref": {"rule": "r", "inputs": [],
                                         "constant": {"source": "law", "verifiedOn": "2026-01-01"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("binding", "document"), BINDINGS, ids=[document["kind"] for _, document in BINDINGS])
def test_bindings(binding, document):
    """PV-2: five kinds, each {kind, ref} with exactly its members; optional ones are absent, not null."""
    assert binding.to_json() == document
    assert read(Bound, {"binding": document}).binding == binding
    backwards = dict(reversed(document.items()))
    assert read(Bound, {"binding": backwards}).binding == binding


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "database-row", "ref": {"system": "a", "recordId": "b"}},
        {"ref": {"field": "a"}},
        {"kind": "form-input"},
        {"kind": "form-input", "ref": None},
        {"kind": "form-input", "ref": {"field": ""}},
        {"kind": "Form-Input", "ref": {"field": "a"}},
        {"kind": "utterance-span", "ref": {"offset": -1, "length": 1, "hash": "a"}},
        {"kind": "utterance-span", "ref": {"offset": 0, "length": 1}},
        {"kind": "reviewer-act", "ref": {"entryId": "e-1", "decisionAt": "today"}},
        {"kind": "external-ref", "ref": {"system": "a"}},
        {"kind": "external-ref", "ref": {"system": "a", "recordId": "b", "relay": {**RELAY, "extra": 1}}},
        {"kind": "computation-ref", "ref": {"rule": "r", "inputs": "LineItems"}},
        {"kind": "computation-ref", "ref": {"rule": "r", "inputs": [1]}},
        "form-input",
    ],
)
def test_malformed_bindings(document):
    """REFERENCE 4: a missing or unknown kind, a missing ref, and any open or ill-typed ref are errors."""
    with pytest.raises(WireError):
        read(Bound, {"binding": document})
