"""A review gate on a workbench: the clock can be set, store, transport and telemetry can be watched and made fail."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.authority import Approve, Reject
from affiant_core.card import EvidenceCard
from affiant_core.context import ActContext, Member, Relay, Service, Turn, TurnContext
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.store import Listing, Scope
from affiant_core.gate import ReviewGate
from affiant_core.policy import StandingOrder, Verdict
from affiant_core.provenance import ProvenanceTag
from affiant_core.telemetry import Telemetry
from affiant_core.vocabulary import ProvenanceSource

T0 = datetime(2026, 9, 4, 9, tzinfo=UTC)
"""When every test starts."""

TTL = timedelta(minutes=15)
TENANT, CONVERSATION, TOOL = "acme", "c-1", "set_limit"
MILLISECOND = timedelta(milliseconds=1)


def yes(_):
    return True


def no(_):
    return False


def member(name="filer"):
    return Member(name)


def relayed(name="ana"):
    """A service that passes on a person's message."""
    return Service("whatsapp-relay", Relay("+94770000000", "wamid-1"), name)


MACHINES = {
    "nobody and no message": Service("svc"),
    "a person and no message": Service("svc", asserted_member="ana"),
    "a message and nobody": Service("svc", Relay("+94770000000", "wamid-1")),
    "a message and a blank person": Service("svc", Relay("+94770000000", "wamid-1"), ""),
}
"""Services that may not attest, and why (AZ-3)."""


def turn(principal="filer", *, tenant=TENANT, conversation=CONVERSATION, channel="chat"):
    who = Member(principal) if isinstance(principal, str) else principal
    return TurnContext(
        tenant, who, channel, conversation_id=conversation, turn=Turn("Set the limit to 500", "msg-1", T0)
    )


def act(principal="ana", *, tenant=TENANT, channel="desk"):
    return ActContext(tenant, Member(principal) if isinstance(principal, str) else principal, channel)


def sworn(name, value, source="Conversation", confidence=0.9, *, binding=None, at=T0, **more):
    """One sworn field; ``source`` is the wire's word."""
    tag = ProvenanceTag(source=ProvenanceSource(source), confidence=confidence, binding=binding, at=at)
    return AffidavitField.of(name, value, tag, **more)


def empty(name, **more):
    return sworn(name, None, "Empty", **more)


def record(*fields, operation="WriteUpdate", entity="c-1", **more):
    """A sworn record: by default the update of one customer's limit to 500, with a memo."""
    fields = fields or (sworn("limit", 500, mandatory=True), sworn("memo", "kept"))
    return Affidavit.create(operation_type=operation, entity_type="Customer", entity_id=entity, fields=fields, **more)


def limit_of(value, memo="kept"):
    return record(sworn("limit", value, mandatory=True), sworn("memo", memo))


class FakeClock:
    """Stands still until it is set."""

    def __init__(self):
        self.now = T0

    def __call__(self):
        return self.now

    def set(self, after=timedelta(), **parts):
        self.now = T0 + after + timedelta(**parts)


class Events:
    """A telemetry listener that remembers."""

    def __init__(self):
        self.told = []

    def __call__(self, key, attributes):
        self.told.append((key, dict(attributes)))

    @property
    def keys(self):
        return [key for key, _ in self.told]

    def of(self, key):
        return [attributes for told, attributes in self.told if told == key]

    def only(self, key):
        (attributes,) = self.of(key)
        return attributes

    def clear(self):
        self.told.clear()


class Outbox:
    """A transport that remembers, and fails as often as it is told to."""

    def __init__(self):
        self.attempts, self.sent, self.failures = [], [], 0

    def send(self, event, payload, *, group):
        self.attempts.append(event)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("post office at 10.0.0.5 is closed")
        self.sent.append((event, payload, group))

    @property
    def cards(self):
        return [payload for _, payload, _ in self.sent if isinstance(payload, EvidenceCard)]

    def clear(self):
        self.attempts.clear()
        self.sent.clear()


def _watched(name):
    def method(self, *args, **kwargs):
        self.calls.append(name)
        self.threads[name].add(threading.get_ident())
        if name in self.before:
            self.before[name]()
        return getattr(InMemoryDocketStore, name)(self, *args, **kwargs)

    return method


class WatchedStore(InMemoryDocketStore):
    """Remembers its calls; ``before[name]`` runs first, and may raise."""

    METHODS = (
        "file", "get", "belongs_elsewhere", "transition", "preserve_amendments", "record_execution",
        "record_supersession", "page", "expire_due",
    )  # fmt: skip

    def __init__(self, *, blocking=False):
        super().__init__()
        self.blocking = blocking
        self.calls, self.before, self.threads = [], {}, defaultdict(set)

    def rows(self, tenant=TENANT):
        return InMemoryDocketStore.page(self, Listing.ALL, Scope(tenant), limit=10_000, cursor=None, now=T0).entries

    def stored(self, entry_id, tenant=TENANT):
        return InMemoryDocketStore.get(self, tenant, entry_id)


for _name in WatchedStore.METHODS:
    setattr(WatchedStore, _name, _watched(_name))


@dataclass
class FixedPolicy:
    """A policy in the host's own words: it answers with what it was given, or calls it, and counts."""

    answer: object = None
    id: str = "fixed"
    version: str = "1.0.0"
    default_ttl: timedelta | None = None
    declared_inputs: tuple = ()
    declares_threshold: bool = False
    requests: list = field(default_factory=list)

    def evaluate(self, request):
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(request) if callable(self.answer) else self.answer


def always(**options):
    """A Standing Order for everything."""
    return StandingOrder(id="auto", version="2.1.0", when=yes, **options)


def asking(*approvers, required):
    """A policy that asks several people."""
    return FixedPolicy(Verdict.multi_party(approvers, required))


class Desk:
    """A gate, and everything around it that a test wants to look at."""

    def __init__(self, *policies, authorize=yes, store=None, transport=None, **wiring):
        self.store = store or WatchedStore()
        self.clock, self.events = FakeClock(), Events()
        self.outbox = transport or Outbox()
        self.gate = ReviewGate(
            **{
                "docket": self.store,
                "authorize": authorize,
                "policies": policies,
                "default_ttl": TTL,
                "transport": self.outbox,
                "clock": self.clock,
                "telemetry": Telemetry([self.events]),
                **wiring,
            }
        )

    def file(self, affidavit=None, context=None, *, tool=TOOL, **more):
        return self.gate.file.sync(affidavit or record(), context or turn(), tool_name=tool, **more)

    def row(self, affidavit=None, context=None, **more):
        """The id of a freshly filed row, with everything that filing it has told forgotten."""
        entry_id = self.file(affidavit, context, **more).entry.entry_id
        self.forget()
        return entry_id

    def approve(self, entry_id, by="ana", amendments=None, reason=None):
        return self.gate.decide.sync(entry_id, Approve(amendments, reason), act(by))

    def reject(self, entry_id, by="ana", reason=None):
        return self.gate.decide.sync(entry_id, Reject(reason), act(by))

    def withdraw(self, entry_id, by="host", reason="the customer left"):
        return self.gate.withdraw.sync(entry_id, reason, act(by))

    def report(self, entry_id, outcome="executed", by="host", **more):
        return self.gate.report.sync(entry_id, outcome, act(by), **more)

    def resubmit(self, entry_id, by="ana"):
        return self.gate.resubmit.sync(entry_id, act(by))

    def get(self, entry_id, tenant=TENANT):
        return self.gate.get.sync(entry_id, tenant_id=tenant)

    def stored(self, entry_id, tenant=TENANT):
        return self.store.stored(entry_id, tenant)

    def forget(self):
        self.events.clear()
        self.outbox.clear()
        self.store.calls.clear()

    def brought_to(self, state, **more):
        """The id of a row in ``state``: one of ``STATES``."""
        entry_id = self.row(**more)
        match state:
            case "approved" | "executed" | "failed":
                self.approve(entry_id)
                if state != "approved":
                    self.report(entry_id, state)
            case "rejected":
                self.reject(entry_id, reason="wrong account")
            case "withdrawn":
                self.withdraw(entry_id)
            case "expired":
                self.clock.set(TTL)
            case "swept":
                self.clock.set(TTL)
                self.gate.expire_due.sync(tenant_id=TENANT)
        self.forget()
        return entry_id


STATES = ("pending", "approved", "executed", "failed", "rejected", "withdrawn", "expired", "swept")
TERMINAL = STATES[1:]
READS = {"executed": "approved", "failed": "approved", "swept": "expired"}
"""How a state reads where that is not its own name."""


def changed(before, after):
    """The wire members in which two rows differ."""
    old, new = before.to_json(), after.to_json()
    return {key for key in old if old[key] != new[key]}


def in_threads(work, count):
    """``work(index)`` in so many threads at once: what each returned or raised, in order."""
    barrier, answers = threading.Barrier(count), [None] * count

    def run(index):
        barrier.wait()
        try:
            answers[index] = work(index)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer
            answers[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
