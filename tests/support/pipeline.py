"""A host with a pipeline, and calls through it, for the tests of the pipeline and its filters."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from affiant_core.affiant import Affiant
from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.context import Member, Turn, TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.store import Filed, Listing
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS
from affiant_core.envelope import EntityRef, ReadResult, WriteProposal
from affiant_core.errors import DocketUnavailable
from affiant_core.pipeline import Pipeline, ToolInvocation
from affiant_core.presence import grade
from affiant_core.provenance import ProvenanceTag
from affiant_core.registry import ToolDescriptor
from affiant_core.telemetry import Telemetry
from affiant_core.wire import loads

AT = datetime(2026, 9, 4, 9, 0, tzinfo=UTC)
UTTERANCE = "set the limit of c-1 to 10"

READ = ToolDescriptor("find_customer", "Desk")
WRITE = ToolDescriptor("set_limit", "Desk", "WriteUpdate", "Customer")

both = pytest.mark.parametrize("mode", ["async", "sync"])
"""The same behaviour, awaited on an event loop and carried through in a thread without one (DECISIONS 21)."""


# --- a turn and what its tools return ------------------------------------------------------------------------------


def turn_context(**changes: Any) -> TurnContext:
    given = {
        "tenant_id": "acme",
        "principal": Member("user-1"),
        "conversation_id": "conv-1",
        "turn": Turn(UTTERANCE, "m-1", AT),
    }
    return TurnContext(**{**given, **changes})


def entity(entity_id: str = "c-1", **fields: object) -> EntityRef:
    return EntityRef(entity_type="Customer", entity_id=entity_id, display_name="A. Rivera", fields=fields)


def read_result(*entities: EntityRef, markdown: str = "| c-1 |", tool_name: str = "find_customer") -> ReadResult:
    return ReadResult(
        tool_name=tool_name, timestamp=AT, summary="Found it.", markdown=markdown, entities=tuple(entities)
    )


def affidavit(limit: object = 10, customer_id: str = "c-1") -> Affidavit:
    return Affidavit.create(
        operation_type="WriteUpdate",
        entity_type="Customer",
        entity_id=customer_id,
        fields=[AffidavitField.of("limit", limit, grade("limit", limit, utterance=UTTERANCE, at=AT), previous=5)],
    )


def hollow_affidavit() -> Affidavit:
    """A record that swears to nothing (GT-3)."""
    return Affidavit.create(
        operation_type="WriteCreate",
        entity_type="Customer",
        fields=[AffidavitField.of("limit", None, ProvenanceTag.empty(at=AT))],
    )


def proposal(limit: object = 10, customer_id: str = "c-1", **changes: Any) -> WriteProposal:
    given = {"tool_name": "set_limit", "timestamp": AT, "envelope": affidavit(limit, customer_id)}
    return WriteProposal(**{**given, **changes})


# --- what the host watches with ------------------------------------------------------------------------------------


class Events(list[tuple[str, dict[str, Any]]]):
    """A telemetry listener that keeps what it was told."""

    def __call__(self, key: str, attributes: Mapping[str, Any]) -> None:
        self.append((key, dict(attributes)))

    def of(self, key: str) -> list[dict[str, Any]]:
        return [attributes for told, attributes in self if told == key]

    def telemetry(self) -> Telemetry:
        return Telemetry([self])


class Post:
    """A transport that keeps what it delivers, or refuses to."""

    def __init__(self, *, broken: bool = False) -> None:
        self.sent: list[tuple[Any, Any, str]] = []
        self.broken = broken

    def send(self, event: Any, payload: Any, *, group: str) -> None:
        self.sent.append((event, payload, group))
        if self.broken:
            raise ConnectionError("hub signalr-7.internal refused")


class BrokenStore(InMemoryDocketStore):
    """A store that cannot be written."""

    def file(self, entry: DocketEntry) -> Filed:
        raise DocketUnavailable("disk /var/lib/affiant is full")


def rows(store: InMemoryDocketStore, tenant_id: str = "acme") -> list[DocketEntry]:
    from affiant_core.docket.store import Scope

    return list(store.page(Listing.ALL, Scope(tenant_id), limit=100, cursor=None, now=AT).entries)


class Host:
    """An Affiant over a Docket in memory, with everything that it tells kept; options are Affiant's own."""

    def __init__(self, *, docket: InMemoryDocketStore | None = None, clock: Any = None, **options: Any) -> None:
        self.store = InMemoryDocketStore() if docket is None else docket
        self.events = Events()
        self.post = options.pop("transport", Post())
        self.now = AT
        self.affiant = Affiant(
            docket=self.store,
            authorize=lambda _: True,
            transport=self.post,
            clock=clock or (lambda: self.now),
            listeners=[self.events],
            **options,
        )
        self.pipeline = self.affiant.pipeline()

    @property
    def rows(self) -> list[DocketEntry]:
        return rows(self.store)

    def call(self, mode: str, body: Any, **options: Any) -> ToolInvocation:
        return run(mode, self.pipeline, body, **options)

    def write(self, mode: str, body: Any, **options: Any) -> ToolInvocation:
        """A call of the declared write."""
        return run(mode, self.pipeline, body, **{"tool_name": "set_limit", "descriptor": WRITE, **options})


# --- a call --------------------------------------------------------------------------------------------------------


def invocation_for(mode: str, **options: Any) -> ToolInvocation:
    given = {
        "tool_name": "find_customer",
        "turn": turn_context(),
        "descriptor": READ,
        "driver": ASYNCHRONOUS if mode == "async" else SYNCHRONOUS,
    }
    return ToolInvocation(**{**given, **options})


def carry(mode: str, pipeline: Pipeline, invocation: ToolInvocation, body: Any) -> ToolInvocation:
    """Run a call; ``body`` is a plain function, or what one would return."""

    async def entered() -> object:
        if mode == "async":
            await asyncio.sleep(0)  # a body that really suspends
        return body() if callable(body) else body

    if mode == "async":
        return asyncio.run(pipeline.run(invocation, entered))
    return pipeline.run_now(invocation, entered)


def run(mode: str, pipeline: Pipeline, body: Any, **options: Any) -> ToolInvocation:
    return carry(mode, pipeline, invocation_for(mode, **options), body)


class Body:
    """A tool's body that counts its calls and goes through its outcomes: what is an exception is raised."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = outcomes
        self.calls = 0

    def __call__(self) -> object:
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def model_json(result: object) -> Any:
    """What the model would read in a result that has a text, by a parser that refuses NaN."""
    text = result if isinstance(result, str) else result.to_json_string()  # type: ignore[attr-defined]  # an envelope
    return loads(text)


CANCELLATIONS: tuple[Callable[[], BaseException], ...] = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    KeyboardInterrupt,
)
