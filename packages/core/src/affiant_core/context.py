"""Who is acting, for which tenant, in which turn. Passed explicitly everywhere, never looked up (GT-2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from affiant_core.errors import WireupInvalid
from affiant_core.fabric import ContextFabric
from affiant_core.values import has_lone_surrogate, to_instant, utc_now


def _require_text(owner: str, **named: object) -> None:
    for name, value in named.items():
        if not isinstance(value, str) or not value or has_lone_surrogate(value):
            raise ValueError(f"{owner}.{name} must be text that is not empty.")


@dataclass(frozen=True, slots=True)
class Member:
    """A person whose identity the host has verified."""

    id: str
    kind: Literal["member"] = field(default="member", init=False)

    def __post_init__(self) -> None:
        _require_text("Member", id=self.id)


@dataclass(frozen=True, slots=True)
class Relay:
    """The message through which a service passes on a person's act."""

    channel_identity: str
    message_id: str

    def __post_init__(self) -> None:
        _require_text("Relay", channel_identity=self.channel_identity, message_id=self.message_id)


@dataclass(frozen=True, slots=True)
class Service:
    """A machine. It never attests as a person; with a relayed message and an asserted member it relays one (AZ-3)."""

    id: str
    relay: Relay | None = None
    asserted_member: str | None = None
    kind: Literal["service"] = field(default="service", init=False)

    def __post_init__(self) -> None:
        _require_text("Service", id=self.id)
        if self.relay is not None and not isinstance(self.relay, Relay):
            raise TypeError("Service.relay must be a Relay or None.")
        if self.asserted_member is not None and not isinstance(self.asserted_member, str):
            raise TypeError("Service.asserted_member must be text or None.")


Principal: TypeAlias = Member | Service


def person_behind(principal: Principal) -> str:
    """The identifier that a record names: the member, the one whose message a service relays, else the service."""
    if isinstance(principal, Service) and principal.relay is not None and principal.asserted_member:
        return principal.asserted_member
    return principal.id


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a person: its unmodified words, its id, its instant.

    ``utterance`` is ``None`` only when there are no words to check against; ``""`` is an utterance (PV-3).
    """

    utterance: str | None = None
    message_id: str | None = None
    at: datetime = field(default_factory=utc_now)

    def __post_init__(self) -> None:
        if not isinstance(self.at, datetime):
            raise TypeError("Turn.at must be a datetime with a time zone.")
        object.__setattr__(self, "at", to_instant(self.at, "Turn.at"))


@dataclass(frozen=True, slots=True)
class ActContext:
    """Who acts on the Docket and for which tenant. ``principal`` is ``None`` when the host could not resolve one."""

    tenant_id: str
    principal: Principal | None
    channel: str = "host"

    def __post_init__(self) -> None:
        _require_text(type(self).__name__, tenant_id=self.tenant_id, channel=self.channel)
        if self.principal is not None and not isinstance(self.principal, Member | Service):
            raise TypeError(f"{type(self).__name__}.principal must be a Member, a Service or None.")


@dataclass(frozen=True, slots=True)
class TurnContext(ActContext):
    """The context of one turn of one conversation. The host makes one per turn and hands it to every call of the turn.

    ``fabric`` is where a read's entities wait for a write of the same turn. Raises ``ValueError`` for empty
    identifiers.
    """

    conversation_id: str = field(kw_only=True)
    turn: Turn = field(default_factory=Turn)
    turn_number: int | None = None
    fabric: ContextFabric = field(default_factory=ContextFabric, compare=False, repr=False)

    def __post_init__(self) -> None:
        ActContext.__post_init__(self)
        _require_text("TurnContext", conversation_id=self.conversation_id)
        if not isinstance(self.turn, Turn):
            raise TypeError("TurnContext.turn must be a Turn.")


def require_turn(context: object, where: str, remedy: str = "Pass one explicitly.") -> TurnContext:
    """``context`` as a ``TurnContext``. Raises ``WireupInvalid`` for anything else; nothing is repaired (CV-2)."""
    if isinstance(context, TurnContext):
        return context
    found = "nothing" if context is None else f"a {type(context).__name__}"
    raise WireupInvalid(f"CV-2: {where} needs a TurnContext and was given {found}. {remedy}")


def require_act(context: object, where: str) -> ActContext:
    """``context`` as an ``ActContext``. Raises ``WireupInvalid`` for anything else (CV-2)."""
    if isinstance(context, ActContext):
        return context
    found = "nothing" if context is None else f"a {type(context).__name__}"
    raise WireupInvalid(f"CV-2: {where} needs an ActContext or a TurnContext and was given {found}.")
