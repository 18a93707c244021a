"""A host with a pipeline, and calls through it, for the tests of the pipeline, its filters and what bridges share."""

from __future__ import annotations

import asyncio
import concurrent.futures

import pytest
from support.gate import T0, Events, FakeClock, Outbox, limit_of, turn, yes

from affiant_core.affiant import Affiant
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.store import Listing, Scope
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS
from affiant_core.envelope import EntityRef, ReadResult, WriteProposal
from affiant_core.errors import DocketUnavailable
from affiant_core.pipeline import ToolInvocation
from affiant_core.registry import ToolDescriptor
from affiant_core.telemetry import Telemetry
from affiant_core.wire import loads

READ = ToolDescriptor("find_customer", "Desk")
WRITE = ToolDescriptor("set_limit", "Desk", "WriteUpdate", "Customer")

both = pytest.mark.parametrize("mode", ["async", "sync"])
"""The same behaviour, awaited on an event loop and carried through in a thread without one (DECISIONS 21)."""

CANCELLATIONS = (asyncio.CancelledError, concurrent.futures.CancelledError, KeyboardInterrupt)
"""What somebody's will looks like, as opposed to a tool's failure."""


# --- what tools return ---------------------------------------------------------------------------------------------


def entity(entity_id="c-1", **fields):
    return EntityRef(entity_type="Customer", entity_id=entity_id, display_name="A. Rivera", fields=fields)


def read_result(*entities, markdown="| c-1 |", tool_name="find_customer", summary="Found it."):
    return ReadResult(tool_name=tool_name, timestamp=T0, summary=summary, markdown=markdown, entities=entities)


def proposal(limit=500, **changes):
    return WriteProposal(**{"tool_name": "set_limit", "timestamp": T0, "envelope": limit_of(limit), **changes})


def with_kind_last(envelope):
    """The envelope's JSON text with its discriminator at the end."""
    document = envelope.to_json()
    kind = document.pop("kind")
    return to_text({**document, "kind": kind})


def to_text(document):
    from affiant_core.wire import dumps

    return dumps(document)


def model_json(result):
    """What the model reads in a result, by a parser that refuses NaN."""
    return loads(result if isinstance(result, str) else result.to_json_string())


# --- a host --------------------------------------------------------------------------------------------------------


class BrokenStore(InMemoryDocketStore):
    """A store whose disk is full."""

    def file(self, entry):
        raise DocketUnavailable("disk /var/lib/affiant is full")


class Host:
    """An Affiant over a Docket in memory, with everything kept that it tells. Options are Affiant's own."""

    def __init__(self, **options):
        self.store = options.setdefault("docket", InMemoryDocketStore())
        self.outbox = options.setdefault("transport", Outbox())
        self.clock = options.setdefault("clock", FakeClock())
        self.events = Events()
        self.affiant = Affiant(authorize=yes, listeners=[self.events], **options)
        self.gate = self.affiant.gate
        self.pipeline = self.affiant.pipeline()

    def rows(self, tenant="acme"):
        return self.store.page(Listing.ALL, Scope(tenant), limit=100, cursor=None, now=T0).entries

    def read(self, mode, body, **options):
        """A call of the declared read."""
        return run(mode, self.pipeline, body, **options)

    def write(self, mode, body, **options):
        """A call of the declared write."""
        return run(mode, self.pipeline, body, **{"tool_name": "set_limit", "descriptor": WRITE, **options})


def telemetry(events):
    return Telemetry([events])


# --- a call --------------------------------------------------------------------------------------------------------


def invocation_for(mode, **options):
    given = {
        "tool_name": "find_customer",
        "turn": turn(),
        "descriptor": READ,
        "driver": ASYNCHRONOUS if mode == "async" else SYNCHRONOUS,
    }
    return ToolInvocation(**{**given, **options})


def carry(mode, pipeline, invocation, body):
    """Run a call. ``body`` is a plain function, or the result itself; on a loop it really suspends."""

    async def entered():
        if mode == "async":
            await asyncio.sleep(0)
        return body() if callable(body) else body

    if mode == "async":
        return asyncio.run(pipeline.run(invocation, entered))
    return pipeline.run_now(invocation, entered)


def run(mode, pipeline, body, **options):
    return carry(mode, pipeline, invocation_for(mode, **options), body)


class Body:
    """A tool's body: counts its calls, goes through its outcomes, the last for ever; exceptions are raised."""

    def __init__(self, *outcomes):
        self.outcomes = outcomes
        self.calls = 0

    def __call__(self):
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome
