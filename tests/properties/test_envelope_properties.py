"""What is written is what is read, whatever a tool put into it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from affiant_core.affidavit import Affidavit
from affiant_core.envelope import WriteProposal, parse_envelope, recognise
from affiant_core.wire import loads, read
from tests.properties.strategies import affidavits, errors, few, instants, modest, names, proposals, reads


@modest
@given(reads | proposals | errors)
def test_an_envelope_survives_the_wire(envelope):
    """Seed, "The kind discriminator": what ToJsonString wrote is read back equal, for all three variants."""
    text = envelope.to_json_string()
    assert parse_envelope(text) == envelope
    assert recognise(text) == envelope
    assert parse_envelope(text).to_json_string() == text


@modest
@given(reads | proposals | errors)
def test_the_text_is_strict_json(envelope):
    """CASES C16: the text is strict JSON on one line, and equal to the record's data."""
    text = envelope.to_json_string()
    assert "\n" not in text
    assert loads(text) == envelope.to_json()


@modest
@given(reads | proposals | errors, st.randoms(use_true_random=False))
def test_the_order_of_members_is_irrelevant(envelope, random):
    """Seed, "Serializing": nothing depends on the order of members."""
    members = list(envelope.to_json().items())
    random.shuffle(members)
    assert parse_envelope(json.dumps(dict(members))) == envelope


@few
@given(affidavits, names, instants)
def test_a_record_survives_inside_a_proposal(record, tool_name, at):
    """Seed, "Why object": a record crosses as data and reads back equal, hash included."""
    text = WriteProposal(envelope=record, tool_name=tool_name, timestamp=at).to_json_string()
    back = read(Affidavit, parse_envelope(text).envelope)
    assert back == record
    assert back.canonical_hash() == record.canonical_hash()
