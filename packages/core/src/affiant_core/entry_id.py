"""How a Docket row gets its id: the same proposal, filed by any implementation, names the same row (GT-4, seed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from affiant_core.canonical import canonical_bytes
from affiant_core.values import JSON


def derive_entry_id(
    *,
    tenant_id: str,
    conversation_id: str,
    tool_name: str,
    operation_kind: str,
    entity_type: str,
    entity_id: str | None,
    fields: Sequence[str],
    arguments: Mapping[str, JSON] | None,
    supersedes: str | None = None,
) -> str:
    """The id of a proposal: SHA-256 of the canonical material, its first 128 bits laid out as a version-8 UUID.

    ``arguments`` are JSON data, written as given, or ``null`` when there are none; an empty map is none (DECISIONS 9).
    ``supersedes`` is written only on a resubmission. The Affidavit and the time are not in the material.
    Raises ``ValueRefused`` when the arguments are not JSON.
    """
    material: dict[str, JSON] = {
        "args": dict(arguments) if arguments else None,
        "conversationId": conversation_id,
        "operation": {
            "entityId": entity_id,
            "entityType": entity_type,
            "fields": list(fields),
            "kind": operation_kind,
        },
        "tenantId": tenant_id,
        "toolName": tool_name,
    }
    if supersedes is not None:
        material["supersedes"] = supersedes
    return layout_as_uuid(sha256(canonical_bytes(material)).hexdigest())


def layout_as_uuid(digest: str) -> str:
    """The first 32 hexadecimal digits of ``digest`` as a version-8, RFC 9562 variant UUID in lowercase."""
    digits = list(digest[:32])
    digits[12] = "8"
    digits[16] = "89ab"[int(digits[16], 16) % 4]
    text = "".join(digits)
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
