"""A host's own layers: extractors, interceptors, filters, errors, a provider, a transport, listeners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from affiant_core import (
    Affiant,
    Affidavit,
    ContextExtractor,
    EmitEveryEntity,
    EntityRef,
    ErrorRule,
    Extraction,
    Filter,
    InMemoryDocketStore,
    Interceptor,
    Member,
    ReadResult,
    ReviewContext,
    ReviewContextProvider,
    ToolEnvelope,
    ToolInvocation,
    Transport,
    TransportEvent,
    TurnContext,
    WriteProposal,
    parse_envelope,
)
from affiant_core.driver import SYNCHRONOUS
from affiant_core.pipeline import CallNext
from affiant_core.telemetry import AttributeValue
from affiant_core.values import JSON
from affiant_core.wire import WireModel


class FirstCustomer(ContextExtractor):
    """Keeps the first customer of each read."""

    def matches_tool(self, tool_name: str) -> bool:
        """Claim the finders."""
        return tool_name.startswith("find_")

    async def extract(self, extraction: Extraction) -> None:
        """Emit the first."""
        assert_type(extraction.result, ReadResult)
        assert_type(extraction.emit_entity(extraction.result.entities[0]), EntityRef)


class Silent(ContextExtractor):
    """Keeps nothing; written without async."""

    def matches_tool(self, tool_name: str) -> bool:
        """Claim everything."""
        return True

    def extract(self, extraction: Extraction) -> None:
        """Look, and leave."""


class FromHost:
    """A provider that takes the identity from the turn."""

    async def review_context(self, proposal: WriteProposal, turn: TurnContext) -> ReviewContext | None:
        """The context, for a proposal with an Affidavit."""
        return ReviewContext(proposal.envelope, turn) if isinstance(proposal.envelope, Affidavit) else None


class Console:
    """A transport that prints nothing, in a test."""

    def send(self, event: TransportEvent, payload: WireModel, *, group: str) -> None:
        """Deliver."""


async def timed(invocation: ToolInvocation, call_next: CallNext) -> None:
    """A filter as a function."""
    await call_next()
    assert_type(invocation.envelope(), ToolEnvelope | None)


class Counting:
    """A filter as an object."""

    calls = 0

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Count a call."""
        self.calls += 1
        await call_next()


def not_a_filter(invocation: ToolInvocation) -> None:
    """It cannot go on."""


def listen(key: str, attributes: Mapping[str, AttributeValue]) -> None:
    """Hear an event."""


def is_ping(tool_name: str, arguments: Mapping[str, JSON]) -> bool:
    """Whether the call is a ping."""
    return tool_name == "ping"


def pong(tool_name: str, arguments: Mapping[str, JSON]) -> str:
    """Answer without the tool."""
    return "pong"


counting = Counting()
provider: ReviewContextProvider = FromHost()
transport: Transport = Console()
layers: list[Filter] = [timed, counting]
wrong: list[Filter] = [not_a_filter]  # type: ignore[list-item]  # a filter is asynchronous and gets call_next

affiant = Affiant(
    docket=InMemoryDocketStore(),
    extractors=[FirstCustomer(), Silent(), EmitEveryEntity("list_customers")],
    interceptors=[Interceptor(is_ping, pong)],
    filters=layers,
    errors={KeyError: ErrorRule("CUSTOMER_NOT_FOUND", "There is no such customer.")},
    context_provider=provider,
    transport=transport,
    listeners=[listen],
    model_view="proposal",
)
Affiant(docket=InMemoryDocketStore(), model_view="receipt", terminate_on_review=True, result_ceiling=4096)


def refused_by_the_type_checker() -> None:
    """What does not type-check; nothing here is ever run."""
    Affiant(docket=InMemoryDocketStore(), model_view="all")  # type: ignore[arg-type]  # there are two views
    Affiant(docket=InMemoryDocketStore(), errors={"KeyError": 1})  # type: ignore[dict-item]  # classes and rules
    Affiant(tools=[])  # type: ignore[call-arg]  # a host has a Docket
    ErrorRule("CUSTOMER_NOT_FOUND")  # type: ignore[call-arg]  # a rule has its sentence


turn = TurnContext("acme", Member("u-1"), conversation_id="c-1")


def call(tool_name: str, result: object) -> ToolInvocation:
    """One call without a loop."""

    async def body() -> object:
        return result

    return affiant.pipeline().run_now(ToolInvocation(tool_name, turn, driver=SYNCHRONOUS), body)


assert call("ping", "never").result == "pong"
entity = EntityRef(entity_type="Customer", entity_id="c-1", display_name="A. Rivera")
found = call("find_customer", ReadResult(summary="Found it.", markdown="c-1", entities=(entity,)).to_json_string())
assert isinstance(found.result, str)
assert_type(turn.fabric.entities(), tuple[EntityRef, ...])
assert counting.calls == 2

match parse_envelope(ReadResult(tool_name="t", summary="s", markdown="m").to_json_string()):
    case ReadResult(summary=summary):
        assert_type(summary, str)
    case other:
        assert_type(other, ToolEnvelope)
