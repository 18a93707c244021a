"""What is told to operators."""

from __future__ import annotations

import logging

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from affiant_core import telemetry
from affiant_core.telemetry import INSTRUMENTATION_SCOPE, KEYS, OWN_KEYS, PROTOCOL_KEYS, Telemetry

TL_1 = {
    "affidavit.filed": (
        "gen_ai.tool.name, gen_ai.conversation.id, entry.id, docket.requirement, docket.status, "
        "affidavit.field_count, created"
    ),
    "affidavit.refused.substance": "gen_ai.tool.name, gen_ai.conversation.id, affidavit.field_count, reason",
    "coverage.refused": "gen_ai.tool.name, coverage.category, phase",
    "docket.transition": (
        "entry.id, gen_ai.conversation.id, from, to, execution, decision.kind, attestation.kind, amended"
    ),
    "docket.expired": "entry.id",
    "decision.unauthorized": "entry.id, gen_ai.conversation.id, reason, principal.kind, path",
    "standing-order.fired": "policy.id, policy.version, entry.id, risk.score",
    "standing-order.blocked": (
        "policy.id, policy.version, blocked.reason, reason, provenance.field, provenance.source, "
        "affidavit.empty_mandatory_fields, risk.score, risk.threshold"
    ),
    "policy.invalid": "policy.id, policy.version, option, reason",
}


class Tracing:
    """A tracer provider of the test's own, so that the process-wide one is left alone."""

    def __init__(self, **options):
        self.provider = TracerProvider(**options)
        self.exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("host")

    @property
    def told(self):
        """Every finished span with its events: (span name, [(event name, attributes)])."""
        return [
            (span.name, [(event.name, dict(event.attributes)) for event in span.events])
            for span in self.exporter.get_finished_spans()
        ]


@pytest.fixture
def tracing(monkeypatch):
    tracing = Tracing(sampler=ALWAYS_ON)
    monkeypatch.setattr(trace, "get_tracer", tracing.provider.get_tracer)
    telemetry.tracer.cache_clear()
    yield tracing
    telemetry.tracer.cache_clear()


def test_the_registry():
    """TL-1: nine keys with exactly these attributes, in this order."""
    assert {key: ", ".join(entry.attributes) for key, entry in PROTOCOL_KEYS.items()} == TL_1
    assert list(PROTOCOL_KEYS) == list(TL_1)


def test_our_own_keys_keep_out_of_the_protocols_way():
    """TL-1: keys of our own stand in a namespace of our own, and each is described and dated."""
    assert all(key.startswith("affiant.") for key in OWN_KEYS)
    assert {**PROTOCOL_KEYS, **OWN_KEYS} == KEYS
    assert all(entry.since and entry.description.endswith(".") and entry.attributes for entry in KEYS.values())


def test_an_unknown_key_raises():
    """TL-1: keys are registered before they are emitted."""
    with pytest.raises(KeyError, match=r"affidavit\.lost"):
        Telemetry().emit("affidavit.lost", {})


@pytest.mark.parametrize("value", ["x", None])
def test_an_unknown_attribute_raises(value):
    """TL-1: so are attributes, whether or not they have something to say; nothing is told then."""
    heard = []
    with pytest.raises(KeyError, match=r"docket\.expired has no attribute tenant"):
        Telemetry([lambda *event: heard.append(event)]).emit("docket.expired", {"entry.id": "1", "tenant": value})
    assert heard == []


def test_an_attribute_that_is_not_known_is_absent():
    """REFERENCE 15: unknown attributes are absent, never null; false and zero are told."""
    heard = []
    Telemetry([lambda key, told: heard.append((key, dict(told)))]).emit(
        "affidavit.filed", {"entry.id": "1", "created": False, "affidavit.field_count": 0, "docket.status": None}
    )
    assert heard == [("affidavit.filed", {"entry.id": "1", "created": False, "affidavit.field_count": 0})]


def test_a_listener_that_raises_harms_nothing(tracing, caplog):
    """REFERENCE 15: a host's listener cannot change what is told; its failure is logged and the others hear all."""
    heard = []

    def broken(key, told):
        raise RuntimeError("listener down")

    with caplog.at_level(logging.ERROR, logger=telemetry.__name__):
        Telemetry([broken, lambda key, told: heard.append(key)]).emit("docket.expired", {"entry.id": "1"})
    assert heard == ["docket.expired"]
    assert "A telemetry listener failed on docket.expired" in caplog.text
    assert tracing.told == [("docket.expired", [("docket.expired", {"entry.id": "1"})])]


def test_an_event_lands_on_the_current_span(tracing):
    """REFERENCE 15: with a span open and recording, the event is on it and there is no other span."""
    with tracing.tracer.start_as_current_span("turn"):
        Telemetry().emit("docket.expired", {"entry.id": "1"})
        Telemetry().emit("standing-order.blocked", {"affidavit.empty_mandatory_fields": ("a", "b"), "risk.score": 1.5})
    assert tracing.told == [
        (
            "turn",
            [
                ("docket.expired", {"entry.id": "1"}),
                ("standing-order.blocked", {"affidavit.empty_mandatory_fields": ("a", "b"), "risk.score": 1.5}),
            ],
        )
    ]


def test_with_no_span_open_a_short_one_carries_the_event(tracing):
    """REFERENCE 15: a short span named after the event carries it, in this package's scope, and leaves none open."""
    Telemetry().emit("docket.expired", {"entry.id": "1"})
    assert tracing.told == [("docket.expired", [("docket.expired", {"entry.id": "1"})])]
    (span,) = tracing.exporter.get_finished_spans()
    assert span.instrumentation_scope.name == INSTRUMENTATION_SCOPE == "affiant_core"
    assert not trace.get_current_span().is_recording()


def test_a_span_that_does_not_record_is_no_span(tracing):
    """REFERENCE 15: an unsampled span cannot carry an event, so a short one does."""
    unsampled = Tracing(sampler=ALWAYS_OFF)
    with unsampled.tracer.start_as_current_span("turn"):
        Telemetry().emit("docket.expired", {"entry.id": "1"})
    assert unsampled.told == []
    assert tracing.told == [("docket.expired", [("docket.expired", {"entry.id": "1"})])]


def test_without_the_sdk_nothing_happens(tracing, monkeypatch):
    """DESIGN, Dependencies: the SDK is the host's; without one, telling is harmless and listeners hear all the same."""
    monkeypatch.setattr(trace, "get_tracer", trace.NoOpTracerProvider().get_tracer)
    heard = []
    Telemetry([lambda key, told: heard.append(key)]).emit("docket.expired", {"entry.id": "1"})
    assert heard == ["docket.expired"]
    assert tracing.told == []
