"""The protocol's byte vectors: what an amendment leaves, the canonical bytes of it, and their hash."""

from __future__ import annotations

from hashlib import sha256

import pytest

from affiant_core.affidavit import Affidavit
from affiant_core.canonical import canonical_bytes, canonical_hash, canonical_text
from affiant_core.values import parse_instant
from affiant_core.wire import read
from tests.support.protocol import index, load, protocol_dir

FOLDER = protocol_dir()
ROWS = [row for row in index()["conformance"] if row["set"] == "canonical"]


def test_the_index_names_every_vector_that_is_there():
    """FIXTURES 1: the run is driven from the index, and the index has the vectors."""
    assert {FOLDER / row["file"] for row in ROWS} == set((FOLDER / "fixtures" / "canonical").glob("*.json"))
    assert len(ROWS) >= 6


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_vectors_are_unmodified(row):
    """FIXTURES 10: each document is the one that the index sums."""
    assert sha256((FOLDER / row["file"]).read_bytes()).hexdigest() == row["sha256"]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_vector(row):
    """SR-1, AF-4, DK-2: the amendments fold to the stated record, and its bytes and hash are the stated ones."""
    vector = load(FOLDER / row["file"])
    assert vector["id"] == row["id"]
    record = read(Affidavit, vector["input"])
    assert canonical_text(record.sworn()) == canonical_text(vector["input"])
    if vector["amendments"] is not None:
        act = vector["reviewerAct"]
        record = record.amend(
            vector["amendments"], by=act["by"], entry_id=act["entryId"], at=parse_instant(act["decisionAt"])
        )
    accepted = vector.get("amendedInput", vector["input"])
    assert canonical_text(record.sworn()) == canonical_text(accepted)
    expected = vector["expectedBytesUtf8"].encode()
    assert record.canonical_form() == expected
    assert record.canonical_hash() == vector["expectedSha256"]
    assert canonical_bytes(accepted) == expected
    assert canonical_hash(accepted) == sha256(expected).hexdigest()
