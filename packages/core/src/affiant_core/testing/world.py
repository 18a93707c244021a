"""What the kit's tests are played in: a desk that raises limits, its Docket, its clock, and whoever decides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from affiant_core.affiant import Affiant
from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.authority import AuthorizationRequest
from affiant_core.context import ActContext, Member, Turn, TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.store import DocketStore, Listing
from affiant_core.envelope import EntityRef, ReadResult, WriteProposal
from affiant_core.provenance import FormInput, ProvenanceTag
from affiant_core.registry import read_tool, write_tool
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus
from affiant_core.wire import loads

T0 = datetime(2026, 9, 4, 9, tzinfo=UTC)
"""When everything happens."""

SECRET = "hunter2-of-the-vault"
"""A sworn value that no model and no observer may ever see."""

RECEIPT = ["blocked", "entryId", "fields", "note", "outcome", "requiresConfirmation", "status"]
"""The members of what a model gets after a filing (DECISIONS 10)."""


# --- what the tools say --------------------------------------------------------------------------------------------


def found(customer_id: str = "c-1", **fields: Any) -> ReadResult:
    """What the read returns: one entity, which has these fields."""
    entity = EntityRef(entity_type="Customer", entity_id=customer_id, display_name="Zoë 🚀", fields=fields)
    return ReadResult(
        tool_name="find_customer", timestamp=T0, summary="Found it.", markdown=f"| {customer_id} |", entities=(entity,)
    )


def proposed(customer_id: str = "c-1", limit: object = 10, memo: str = SECRET, **more: Any) -> WriteProposal:
    """What the write returns: a sworn record of a new limit, with its previous value, and a memo."""
    tag = ProvenanceTag.user_stated(binding=FormInput.of("limit"), at=T0)
    fields = [
        AffidavitField.of("limit", limit, tag, previous=5, mandatory=True),
        AffidavitField.of("memo", memo, tag),
    ]
    record = Affidavit.create(
        operation_type="WriteUpdate", entity_type="Customer", entity_id=customer_id, fields=fields, created_at=T0
    )
    return WriteProposal(tool_name="set_limit", timestamp=T0, envelope=record, **more)


class LimitTools:
    """The tool class of the cases: a read that finds one entity, and a write that only proposes."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @read_tool
    def find_customer(self, customer_id: str) -> ReadResult:
        """Find one customer."""
        self.calls.append(("find_customer", {"customer_id": customer_id}))
        return found(customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(
        self,
        customer_id: str,
        limit: int,
        force: bool = False,
        effective: datetime | None = None,
        memo: str = "",
        *,
        turn: TurnContext,
    ) -> WriteProposal:
        """Propose a new limit for a customer."""
        seen = {"customer_id": customer_id, "limit": limit, "force": force, "effective": effective, "turn": turn}
        self.calls.append(("set_limit", seen))
        return proposed(customer_id, limit, memo or SECRET)


class AsyncLimitTools(LimitTools):
    """The same tools with asynchronous bodies."""

    @read_tool
    async def find_customer(self, customer_id: str) -> ReadResult:  # type: ignore[override]  # the same to a framework
        """Find one customer."""
        await asyncio.sleep(0)
        return LimitTools.find_customer(self, customer_id)

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(  # type: ignore[override]  # as above
        self,
        customer_id: str,
        limit: int,
        force: bool = False,
        effective: datetime | None = None,
        memo: str = "",
        *,
        turn: TurnContext,
    ) -> WriteProposal:
        """Propose a new limit for a customer."""
        await asyncio.sleep(0)
        return LimitTools.set_limit(self, customer_id, limit, force, effective, memo, turn=turn)


class SelfArguing(LimitTools):
    """Tools whose proposals state their arguments themselves, as C03 and C04 have it."""

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(self, customer_id: str, limit: int) -> WriteProposal:  # type: ignore[override]  # fewer parameters
        """Propose a new limit for a customer."""
        self.calls.append(("set_limit", {"customer_id": customer_id, "limit": limit}))
        return proposed(customer_id, limit, arguments={"customer": customer_id, "to": limit})


class Answering:
    """A read and a write that go through what they are given, in order and the last for ever; exceptions are raised."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = outcomes
        self.count: int = 0

    def _next(self) -> Any:
        outcome = self.outcomes[min(self.count, len(self.outcomes) - 1)]
        self.count += 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @read_tool
    def look(self) -> Any:
        """Look something up."""
        return self._next()

    @read_tool
    async def look_later(self) -> Any:
        """Look something up on the event loop."""
        await asyncio.sleep(0)
        return self._next()

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def change(self) -> Any:
        """Propose a change."""
        return self._next()


# --- the host ------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now: datetime = T0

    def __call__(self) -> datetime:
        """What the clock says."""
        return self.now

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self.now += by


class Events:
    """A telemetry listener that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    def __call__(self, key: str, attributes: Mapping[str, object]) -> None:
        """Remember one event."""
        self.told.append((key, dict(attributes)))

    def of(self, key: str) -> list[dict[str, object]]:
        """What was told under one key."""
        return [attributes for told, attributes in self.told if told == key]


def anybody(_: AuthorizationRequest) -> bool:
    """Who may decide: anybody who is somebody."""
    return True


class World:
    """An ``Affiant`` over a Docket in memory, and everything that happens to it. Options are Affiant's own.

    ``log`` is the list that the host's executor appends to: the only proof that an effect happened.
    """

    def __init__(self, tools: object = (), **options: Any) -> None:
        self.tools = tools
        self.clock: Clock = Clock()
        self.events: Events = Events()
        self.docket: DocketStore = options.setdefault("docket", InMemoryDocketStore())
        options = {"authorize": anybody, "clock": self.clock, **options}
        self.affiant: Affiant = Affiant(tools=tools, listeners=[self.events], **options)
        self.log: list[tuple[str, object]] = []

    def rows(self, tenant: str = "acme") -> tuple[DocketEntry, ...]:
        """Every row of a tenant, in filing order."""
        return self.affiant.gate.page.sync(Listing.ALL, tenant_id=tenant, limit=100_000).entries

    def row(self, tenant: str = "acme") -> DocketEntry:
        """The one row."""
        (row,) = self.rows(tenant)
        return row

    def execute(self) -> None:
        """What the host's executor does: it writes what is approved and not yet written, and reports."""
        for row in self.rows():
            if row.status is ReviewStatus.APPROVED and row.execution is ExecutionOutcome.UNEXECUTED:
                assert row.accepted is not None
                self.log.append((row.entry_id, row.accepted.values()["limit"]))
                self.affiant.gate.report.sync(row.entry_id, "executed", acting("host"))


def turn(tenant: str = "acme", conversation: str = "c-1", principal: str = "filer") -> TurnContext:
    """A turn of a person's conversation."""
    said = Turn("Set the limit to 500", "msg-1", T0)
    return TurnContext(tenant, Member(principal), "chat", conversation_id=conversation, turn=said)


def acting(principal: str = "ana", tenant: str = "acme") -> ActContext:
    """Somebody who decides."""
    return ActContext(tenant, Member(principal), "desk")


# --- reading what came of it ---------------------------------------------------------------------------------------


def told(text: str) -> dict[str, Any]:
    """What a model reads, by a JSON parser that refuses NaN."""
    document = loads(text)
    assert isinstance(document, dict), f"the model was given {text!r}"
    return document


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and everything behind it, its groups' members included."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        members: Sequence[BaseException] = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [each.__cause__, each.__context__, *members]
