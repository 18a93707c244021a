"""Filing, deciding, reporting and listing, awaited and in place: each act has one type in both forms."""

from __future__ import annotations

import asyncio
from typing import assert_type

from affiant_core import (
    ActContext,
    Affidavit,
    AffidavitField,
    Approve,
    DocketEntry,
    DocketStore,
    EvidenceCard,
    ExecutionOutcome,
    Filing,
    Listing,
    Member,
    Page,
    Refusal,
    RefusalCode,
    Reject,
    ReviewGate,
    Service,
    TurnContext,
    decision_result,
    four_eyes,
    grade,
    open_docket,
)
from affiant_core.authority import AuthorizationRequest, Authorize


def authorize(request: AuthorizationRequest) -> bool:
    """Let everybody but services decide."""
    return isinstance(request.principal, Member)


async def ask(request: AuthorizationRequest) -> bool:
    """Ask somewhere else."""
    return request.act != "resubmit"


def record(limit: int) -> Affidavit:
    """A record that swears to a limit."""
    tag = grade("limit", limit, utterance=f"limit {limit}", at=turn.turn.at)
    return Affidavit.create(
        operation_type="WriteCreate", entity_type="Customer", fields=[AffidavitField.of("limit", limit, tag)]
    )


store: DocketStore = open_docket("memory://")
port: Authorize = four_eyes(ask)
gate = ReviewGate(docket=store, authorize=four_eyes(authorize))
turn = TurnContext("acme", Member("u-1"), conversation_id="c-1")
reviewer = ActContext("acme", Member("ana"))


def in_place() -> None:
    """Everything without an event loop."""
    filing = gate.file.sync(record(10), turn, tool_name="set_limit", arguments={"limit": 10})
    assert_type(filing, Filing)
    assert_type(filing.card, EvidenceCard)
    row = gate.decide.sync(filing.entry.entry_id, Approve({"limit": 5}, reason="enough"), reviewer)
    assert_type(row, DocketEntry)
    assert row.accepted.values() == {"limit": 5}
    assert_type(gate.report.sync(row.entry_id, "executed", reviewer, detail={"code": "row-updated"}), DocketEntry)
    assert_type(gate.get.sync(row.entry_id, tenant_id="acme"), DocketEntry)
    assert_type(gate.page.sync(Listing.ALL, tenant_id="acme"), Page)
    assert decision_result(row).attestation is not None
    try:
        gate.decide.sync(row.entry_id, Reject("too late"), reviewer)
    except Refusal as refusal:
        assert_type(refusal.code, RefusalCode)
        assert_type(refusal.reason, str)


async def awaited() -> None:
    """The same, awaited."""
    filing = await gate.file(record(20), turn, tool_name="set_limit", arguments={"limit": 20})
    assert_type(filing, Filing)
    row = await gate.decide(filing.entry.entry_id, Reject("wrong account"), reviewer)
    assert_type(row, DocketEntry)
    other = await gate.file(record(30), turn, tool_name="set_limit", arguments={"limit": 30})
    assert_type(await gate.withdraw(other.entry.entry_id, "no longer needed", reviewer), DocketEntry)
    assert_type(await gate.rehydrate(tenant_id="acme"), Page)
    assert_type((await gate.expire_due(tenant_id="acme")).more, bool)


def refused_by_the_type_checker() -> None:
    """What does not type-check; nothing here is ever run."""
    gate.decide.sync("id", "approve", reviewer)  # type: ignore[arg-type]  # a decision is an Approve or a Reject
    gate.decide.sync("id", Approve())  # type: ignore[call-arg]  # nobody acts without a context (GT-2)
    gate.decide.sync("id", Approve(), "ana")  # type: ignore[arg-type]  # a name in a payload is no context (AZ-2)
    gate.file.sync(record(1), reviewer, tool_name="t")  # type: ignore[arg-type]  # a proposal comes from a turn
    gate.file.sync({"limit": 1}, turn, tool_name="t")  # type: ignore[arg-type]  # a row holds an Affidavit
    gate.report.sync("id", "unexecuted", reviewer)  # type: ignore[arg-type]  # a report says what happened
    gate.report.sync("id", ExecutionOutcome.FAILED, reviewer)
    ReviewGate(docket=store)  # type: ignore[call-arg]  # somebody must be able to say who may
    ReviewGate(docket=store, authorize=lambda: True)  # type: ignore[arg-type,misc]  # a port looks at the request
    Service("bot").id = "boss"  # type: ignore[misc]  # a principal does not change


in_place()
asyncio.run(awaited())
