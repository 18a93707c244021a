"""Who may act on the Docket, and whom a record may name (AZ-1 to AZ-3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from affiant_core.context import Member, Principal, Service, person_behind
from affiant_core.docket.model import DocketEntry, MemberAttestor, RelayedAttestor
from affiant_core.provenance import RelayRef
from affiant_core.values import spell

Act: TypeAlias = Literal["approve", "reject", "report", "resubmit"]


@dataclass(frozen=True, slots=True)
class Approve:
    """Let the write happen. ``amendments`` change it first: a value sets a field, ``None`` clears it (DK-2)."""

    amendments: Mapping[str, object] | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.amendments is not None and not isinstance(self.amendments, Mapping):
            raise TypeError("amendments is a mapping of field names to values; give a reason as reason=...")
        _require_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Reject:
    """Turn the write down. A reason is not demanded here; whoever shows the card should ask for one."""

    reason: str | None = None

    def __post_init__(self) -> None:
        _require_reason(self.reason)


def _require_reason(reason: object) -> None:
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"a reason is text, not a {type(reason).__name__}.")
    spell(reason, "reason")


Decision: TypeAlias = Approve | Reject


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a host is asked: may this principal do this to this row?

    The principal is the one that the host authenticated and passed in; nothing in a payload can change it.
    """

    act: Act
    principal: Principal
    entry: DocketEntry


Authorize: TypeAlias = Callable[[AuthorizationRequest], "bool | Awaitable[bool]"]
"""The host's authorization port. Only ``True`` is a yes; anything else, and anything raised, is a no (AZ-2)."""


def deny_all(_: AuthorizationRequest) -> bool:
    """Nobody may do anything: what stands in when a host has no write tools and gives no port."""
    return False


def four_eyes(authorize: Authorize) -> Authorize:
    """``authorize``, and moreover nobody approves a row that their own turn filed, or that nobody is known to have."""

    def check(request: AuthorizationRequest) -> bool | Awaitable[bool]:
        if request.act == "approve" and request.entry.requested_by in (None, person_behind(request.principal)):
            return False
        return authorize(request)

    return check


def attestor_for(principal: Principal) -> MemberAttestor | RelayedAttestor | None:
    """Whom a decision by ``principal`` attests, or ``None`` when it may not attest at all (AZ-1, AZ-3).

    A member attests as a member. A service attests only for a person, and only with both the asserted member and the
    relayed message; there is no way from a service to a member's attestation.
    """
    match principal:
        case Member(id=member_id):
            return MemberAttestor(id=member_id)
        case Service(id=service_id, relay=relay, asserted_member=asserted) if relay and asserted:
            return RelayedAttestor(
                member_id=asserted,
                relay=RelayRef(
                    principal=service_id, channel_identity=relay.channel_identity, message_id=relay.message_id
                ),
            )
        case _:
            return None
