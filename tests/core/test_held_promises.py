"""Promises of the README that somebody once found a way around, each with the way that was found."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta

import pytest
from support.gate import TENANT, TTL, Desk, FixedPolicy, act, record, sworn, turn, yes

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.authority import Approve
from affiant_core.context import ActContext, Service
from affiant_core.docket import InMemoryDocketStore, Listing, open_docket
from affiant_core.envelope import parse_envelope
from affiant_core.errors import CursorInvalid, DecisionExpired, NotAnEnvelope, WiringError
from affiant_core.gate import ReviewGate
from affiant_core.policy import StandingOrder, Verdict
from affiant_core.presence import grade
from affiant_core.provenance import ProvenanceTag
from affiant_core.values import utc_now


def test_a_decision_that_waited_past_the_deadline_is_late(tmp_path):
    """DK-1: the deadline is looked at when the store may write, not when the decision set out to wait for its turn."""
    path = tmp_path / "docket.db"
    with closing(open_docket(f"sqlite:///{path}")) as docket:
        gate = ReviewGate(docket=docket, authorize=yes, default_ttl=timedelta(seconds=1))
        entry_id = gate.file.sync(record(), turn(), tool_name="set_limit").entry.entry_id
        outcome = []

        def decide():
            try:
                outcome.append(gate.decide.sync(entry_id, Approve({"limit": 1}), act()))
            except DecisionExpired as error:
                outcome.append(error)

        with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
            blocker.execute("BEGIN IMMEDIATE")
            late = threading.Thread(target=decide)
            late.start()
            while utc_now() < gate.get.sync(entry_id, tenant_id=TENANT).expires_at:
                late.join(0.05)
            blocker.execute("COMMIT")
        late.join(30)
        assert isinstance(outcome[0], DecisionExpired)
        assert gate.get.sync(entry_id, tenant_id=TENANT).status == "expired"


def test_a_resubmitted_row_is_never_decided_beside_its_successor():
    """DK-1: the old row is expired in the store before its successor is filed, so a slower clock cannot decide it."""
    desk = Desk()
    slower = Desk(store=desk.store)
    entry_id = desk.row()
    desk.clock.set(TTL)
    desk.resubmit(entry_id)
    with pytest.raises(DecisionExpired):
        slower.approve(entry_id)
    assert desk.stored(entry_id).status == "expired"


def test_a_service_without_a_message_is_itself():
    """AZ-3: a service that asserts a member and relays nothing is recorded as the service that it is."""
    desk = Desk()
    entry_id = desk.row()
    claims = ActContext(TENANT, Service("bot", asserted_member="ceo"))
    assert desk.gate.withdraw.sync(entry_id, "because", claims).decision.by == "bot"


def test_a_policy_cannot_change_what_it_judges():
    """GT-1: what was judged is what is filed, whatever a policy or the caller does with the record meanwhile."""
    judged = record(sworn("items", [1]))

    def tamper(request):
        request.affidavit.field("items").value.append("more")
        judged.field("items").value.append("more")
        return Verdict.approve()

    row = Desk(FixedPolicy(tamper)).file(judged).entry
    assert row.affidavit.values() == {"items": [1]}


def test_nobody_changes_a_stored_row_by_hand():
    """AZ-5: the row is the only authority; what was filed and what is read are copies of what it holds."""
    desk = Desk(store=InMemoryDocketStore())
    filed = record(sworn("items", [1]))
    entry = desk.file(filed).entry
    before = entry.canonical_hash
    for held in (filed, entry.affidavit, desk.gate.get.sync(entry.entry_id, tenant_id=TENANT).affidavit):
        held.field("items").value.append("more")
    assert desk.gate.get.sync(entry.entry_id, tenant_id=TENANT).canonical_hash == before


def test_the_host_is_asked_about_a_copy():
    """AZ-2: an authorization port that changes the row it is shown changes nothing."""

    def port(request):
        request.entry.affidavit.field("items").value.append("more")
        return True

    desk = Desk(authorize=port)
    entry_id = desk.row(record(sworn("items", [1]), sworn("memo", "kept")))
    assert desk.approve(entry_id, amendments={"memo": "new"}).accepted.values() == {"items": [1], "memo": "new"}


def test_a_mandatory_field_without_a_value_stops_a_standing_order():
    """GT-5: a mandatory field that holds nothing is empty, whatever its tag claims."""
    tag = ProvenanceTag.user_stated(binding=None)
    hollow = record(AffidavitField.of("limit", None, tag, mandatory=True), sworn("memo", "kept"))
    assert Desk(FixedPolicy(Verdict.approve())).file(hollow).entry.status == "pending"


@pytest.mark.parametrize("inputs", [("external",), "External", iter(()), ("Nonsense",)])
def test_declared_inputs_that_could_never_match_are_refused(inputs):
    """PV-4, CV-1: a guardrail that is spelled wrong would never hold anything back, so it is a wiring fault."""
    with pytest.raises(WiringError, match="declared_inputs"):
        Desk(StandingOrder(id="order", when=lambda _: True, declared_inputs=inputs))


def test_a_span_that_fails_takes_nothing_with_it(monkeypatch, caplog):
    """TL-1: telemetry that raises is logged; the row is filed and the caller is told so."""
    desk = Desk()
    monkeypatch.setattr(type(desk.gate.telemetry), "_to_span", lambda *_: 1 / 0)
    with caplog.at_level(logging.ERROR):
        assert desk.file().created
    assert "telemetry listener failed" in caplog.text


def test_an_update_from_another_state_is_told_as_another():
    """DECISIONS 9: the same new value from another stored value is another change, and its replay is said aloud."""
    desk = Desk()
    tag = grade("limit", 500, utterance="500", at=desk.clock())

    def change(previous):
        limit = AffidavitField.of("limit", 500, tag, previous=previous)
        return Affidavit.create(operation_type="WriteUpdate", entity_type="C", entity_id="c-1", fields=[limit])

    desk.file(change(100))
    assert not desk.file(change(100)).differs
    assert desk.file(change(300)).differs


def test_wrong_types_are_told_by_name():
    """Bad input gets a clear error: what is not text, a mapping or a cursor is named, and nothing is filed."""
    desk = Desk()
    for wrong in ({"tool_name": None}, {"tool_name": ""}, {"tool_name": "t", "entry_id": 5}):
        with pytest.raises(TypeError, match="is text that is not empty"):
            desk.gate.file.sync(record(), turn(), **wrong)
    for name in ("arguments", "operation"):
        with pytest.raises(TypeError, match=name):
            desk.gate.file.sync(record(), turn(), tool_name="t", **{name: 5})
    with pytest.raises(CursorInvalid):
        desk.gate.page.sync(Listing.ALL, tenant_id=TENANT, cursor=5)
    with pytest.raises(ValueError, match="there is no listing 'pendng'"):
        desk.gate.page.sync("pendng", tenant_id=TENANT)
    with pytest.raises(TypeError, match="named by its id"):
        desk.gate.get.sync(desk.file().entry, tenant_id=TENANT)
    with pytest.raises(TypeError, match="give a reason as reason="):
        Approve("fine")
    with pytest.raises(NotAnEnvelope):
        parse_envelope(5)
    assert len(desk.store.rows()) == 1


def test_a_policy_sees_numbers_that_were_counted_here():
    """AF-2: the three numbers are computed at filing, so a proposal that overstates its confidence convinces nobody."""
    seen = []

    def look(request):
        seen.append(request.affidavit.aggregate_confidence)

    boasting = record(sworn("limit", 500)).model_copy(update={"aggregate_confidence": 1.0})
    row = Desk(FixedPolicy(look)).file(boasting).entry
    assert seen == [row.affidavit.aggregate_confidence]
    assert seen[0] < 1.0
