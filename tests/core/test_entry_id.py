"""The same proposal, filed by any implementation, names the same row."""

from __future__ import annotations

from hashlib import sha256
from uuid import RFC_4122, UUID

import pytest

from affiant_core.canonical import canonical_bytes
from affiant_core.entry_id import derive_entry_id, layout_as_uuid
from affiant_core.errors import ValueRefused

INVOICE = {
    "tenant_id": "tenant-a",
    "conversation_id": "conv-1",
    "tool_name": "update_invoice",
    "operation_kind": "update",
    "entity_type": "Invoice",
    "entity_id": "invoice-1",
    "fields": ["status", "amount", "note"],
    "arguments": None,
}
WIDGET = {
    "tenant_id": "tenant-b",
    "conversation_id": "conv-2",
    "tool_name": "create_widget",
    "operation_kind": "create",
    "entity_type": "Widget",
    "entity_id": None,
    "fields": ["name", "size"],
    "arguments": {"name": "gizmo", "size": 4},
}
STATUS = {**INVOICE, "fields": ["status"]}


@pytest.mark.parametrize(
    ("proposal", "entry_id"),
    [
        (INVOICE, "4f3f031b-a7c4-867c-9b1f-be0de416040d"),
        (WIDGET, "b70a9b20-9907-89c8-97df-807adb0500f3"),
        (
            {**STATUS, "arguments": {"status": "Active"}, "supersedes": "8f14e45f-ceea-467e-bd76-000000000001"},
            "af734c99-d3f5-8727-9f51-d3dbfa962bf8",
        ),
        ({**INVOICE, "supersedes": "4f3f031b-a7c4-867c-9b1f-be0de416040d"}, "1048b454-9222-8892-b1ff-8bfdb05db878"),
    ],
    ids=["update", "create", "resubmission with arguments", "resubmission"],
)
def test_the_references_vectors(proposal, entry_id):
    """REFERENCE 5.2: the four vectors of the reference's own tests."""
    assert derive_entry_id(**proposal) == entry_id


def test_the_rules_check_values():
    """GT-4: the check values of the rules: a call with arguments, and its resubmission, which carries none."""
    first = derive_entry_id(**STATUS | {"arguments": {"status": "Draft"}})
    assert first == "80358c14-961a-875e-b20a-0a70a89e4592"
    assert derive_entry_id(**STATUS, supersedes=first) == "421b12e8-d13f-85a5-8afa-fdb44b7fd08f"


def test_the_material():
    """GT-4: the id is laid out from the SHA-256 of the canonical material, whose digest begins as the rules say."""
    material = (
        b'{"args":null,"conversationId":"conv-1","operation":{"entityId":"invoice-1","entityType":"Invoice",'
        b'"fields":["status","amount","note"],"kind":"update"},"tenantId":"tenant-a","toolName":"update_invoice"}'
    )
    digest = sha256(material).hexdigest()
    assert digest.startswith("4f3f031ba7c4267c1b1fbe0de416040d")
    assert layout_as_uuid(digest) == derive_entry_id(**INVOICE)


def test_an_empty_map_is_none():
    """DECISIONS 9: an empty map of arguments is "none", written null."""
    assert derive_entry_id(**INVOICE | {"arguments": {}}) == derive_entry_id(**INVOICE)


def test_no_supersedes_is_an_absent_key():
    """Seed, "Arguments and Operation": a first filing carries none, so its id is what it was before resubmission."""
    assert derive_entry_id(**INVOICE, supersedes=None) == derive_entry_id(**INVOICE)


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_id": "tenant-b"}, {"conversation_id": "conv-2"}, {"tool_name": "update_invoices"},
        {"operation_kind": "create"}, {"entity_type": "Order"}, {"entity_id": "invoice-2"}, {"entity_id": None},
        {"fields": ["amount", "status", "note"]}, {"fields": ["status", "amount"]}, {"arguments": {"amount": 1}},
        {"arguments": {"amount": None}}, {"supersedes": "4f3f031b-a7c4-867c-9b1f-be0de416040d"},
    ],
)  # fmt: skip
def test_each_part_of_the_material_counts(change):
    """GT-4, CASES C04: another tenant, conversation, tool, operation, order, argument or predecessor is another row."""
    assert derive_entry_id(**INVOICE | change) != derive_entry_id(**INVOICE)


def test_arguments_follow_the_canonical_form():
    """GT-4: arguments are written by SR-1 alone, so key order and 1.0 for 1 make no difference."""
    one = derive_entry_id(**INVOICE | {"arguments": {"a": 1, "b": [2.0]}})
    assert one == derive_entry_id(**INVOICE | {"arguments": {"b": [2], "a": 1.0}})


def test_arguments_are_not_money():
    """GT-4: a numeric amount beside a currency in the arguments is not money and is not refused."""
    assert derive_entry_id(**INVOICE | {"arguments": {"amount": 2500, "currency": "LKR"}})


def test_arguments_that_are_not_json():
    """GT-4: what has no canonical form has no identity; the place is named."""
    with pytest.raises(ValueRefused, match=r"args\.when"):
        derive_entry_id(**INVOICE | {"arguments": {"when": float("nan")}})


@pytest.mark.parametrize("proposal", [INVOICE, WIDGET, STATUS])
def test_the_layout_is_a_version_8_uuid(proposal):
    """Seed, "Arguments and Operation": the digest's first 128 bits laid out as a version-8 UUID, in lowercase."""
    entry_id = derive_entry_id(**proposal)
    uuid = UUID(entry_id)
    assert (uuid.version, uuid.variant) == (8, RFC_4122)
    assert str(uuid) == entry_id


@pytest.mark.parametrize(("digit", "laid_out"), list(zip("0123456789abcdef", "89ab89ab89ab89ab", strict=True)))
def test_the_variant_digit(digit, laid_out):
    """GT-4: digit 16 becomes the element of "89ab" at its value modulo 4, and digit 12 becomes 8."""
    text = layout_as_uuid("0" * 12 + "f" + "000" + digit + "0" * 47)
    assert text == f"00000000-0000-8000-{laid_out}000-000000000000"


def test_the_canonical_form_is_the_shared_one():
    """GT-4: the material's canonical form is SR-1's, non-ASCII text literal."""
    material = {"args": None, "conversationId": "é", "operation": {"entityId": None, "entityType": "W", "fields": [], "kind": "create"}, "tenantId": "t", "toolName": "x"}  # fmt: skip # noqa: E501  # reads best as one line
    entry_id = derive_entry_id(
        tenant_id="t", conversation_id="é", tool_name="x", operation_kind="create", entity_type="W", entity_id=None,
        fields=(), arguments=None,
    )  # fmt: skip
    assert entry_id == layout_as_uuid(sha256(canonical_bytes(material)).hexdigest())
