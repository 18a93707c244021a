"""Every way in which a function of a kernel is called meets the pipeline once, and the gate once."""

from __future__ import annotations

import pytest
from support.semantic_kernel import SECRET, WAYS, Host, LimitDesk, document_of, found, go

SET = "LimitDesk-set_limit"
LIMIT = {"customer_id": "c-1", "limit": 10}


@pytest.mark.parametrize("way", WAYS)
def test_a_bound_write_is_filed_once(way):
    """C19, C20: on every path the body runs once, one row is filed, and the caller gets the receipt and no value."""
    desk = LimitDesk()
    host = Host(desk)
    text = go(way, host.kernel(), SET, LIMIT)
    receipt = document_of(text)
    assert list(receipt) == ["blocked", "entryId", "fields", "note", "outcome", "requiresConfirmation", "status"]
    assert receipt["entryId"] == host.row().entry_id
    assert SECRET not in text
    assert [name for name, _ in desk.calls] == ["set_limit"]


@pytest.mark.parametrize("way", WAYS)
def test_a_bound_read_answers_with_its_text(way):
    """DECISIONS 5: an envelope reaches the caller as its JSON, the same on every path."""
    host = Host(LimitDesk())
    assert go(way, host.kernel(), "LimitDesk-find_customer", {"customer_id": "c-1"}) == found().to_json_string()
    assert host.rows() == ()
