"""Docket entries, the acts on them, stores of every kind, and what other processes do in the tests of the stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.docket import DocketEntry, DocketStore, open_docket
from affiant_core.docket.model import (
    Attestation,
    DecisionRecord,
    MemberAttestor,
    Presentation,
    PreservedAmendments,
    Requirement,
    StandingOrderAttestor,
)
from affiant_core.docket.store import Applied, Transition, TransitionGuard
from affiant_core.provenance import FormInput, ProvenanceTag
from affiant_core.vocabulary import DecisionKind, ExecutionOutcome, ReviewRequirement, ReviewStatus

T0 = datetime(2026, 9, 4, 9, tzinfo=UTC)
"""When the rows of the tests are filed."""

TTL = timedelta(minutes=15)
DEADLINE = T0 + TTL
MILLISECOND = timedelta(milliseconds=1)

TENANT, CONVERSATION = "acme", "c-1"

KINDS = ("memory", "sqlite")
"""Every kind of store that the suite runs on."""


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = T0

    def move(self, by: timedelta) -> datetime:
        self.now += by
        return self.now


def open_store(kind: str, folder: Path) -> DocketStore:
    """A new store of one kind; a durable one lives in ``folder``."""
    return open_docket("memory://" if kind == "memory" else f"sqlite:///{folder / 'docket.db'}")


def make_affidavit(values: dict[str, object] | None = None, *, at: datetime = T0) -> Affidavit:
    """A sworn record, as the gate normalises it before it files."""
    tag = ProvenanceTag.user_stated(binding=FormInput.of("form"), at=at)
    fields = [AffidavitField.of(name, value, tag) for name, value in (values or {"reason": "holiday"}).items()]
    return Affidavit.create(operation_type="create", entity_type="Leave", fields=fields, created_at=at)


def make_entry(entry_id: str = "e-1", **members: Any) -> DocketEntry:
    """A pending row; any member may be given another value."""
    filed_at = members.get("filed_at", T0)
    standard: dict[str, Any] = {
        "entry_id": entry_id,
        "tenant_id": TENANT,
        "conversation_id": CONVERSATION,
        "channel": "chat",
        "tool_name": "request_leave",
        "affidavit": make_affidavit({"reason": f"holiday {entry_id}"}),
        "requirement": Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION),
        "filed_at": filed_at,
        "expires_at": filed_at + TTL,
        "presentation": Presentation(),
        "requested_by": "u-1",
    }
    return DocketEntry(**(standard | members))


def make_approved_entry(entry_id: str = "e-1", **members: Any) -> DocketEntry:
    """A row that a Standing Order approved as it was filed."""
    at = members.get("filed_at", T0)
    by = StandingOrderAttestor(policy_id="small-change", version="1")
    approved = {
        "requirement": Requirement(kind=ReviewRequirement.STANDING_ORDER),
        "status": ReviewStatus.APPROVED,
        "execution": ExecutionOutcome.UNEXECUTED,
        "attestation": Attestation(by=by, at=at, entry_id=entry_id),
        "decided_at": at,
    }
    return make_entry(entry_id, **(approved | members))


# --- acts ----------------------------------------------------------------------------------------------------------


def approval(entry_id: str = "e-1", now: datetime = T0, by: str = "r-1", **more: Any) -> Transition:
    """A person approves."""
    changes = {
        "status": ReviewStatus.APPROVED,
        "execution": ExecutionOutcome.UNEXECUTED,
        "attestation": Attestation(by=MemberAttestor(id=by), at=now, entry_id=entry_id),
        "decision": DecisionRecord(kind=DecisionKind.APPROVE, reason=None, at=now, by=by),
        "decided_at": now,
    }
    return Transition(TransitionGuard.UNDECIDED, now, changes | more)


def rejection(entry_id: str = "e-1", now: datetime = T0, by: str = "r-1") -> Transition:
    """A person rejects."""
    changes = {
        "status": ReviewStatus.REJECTED,
        "attestation": Attestation(by=MemberAttestor(id=by), at=now, entry_id=entry_id),
        "decision": DecisionRecord(kind=DecisionKind.REJECT, reason="no", at=now, by=by),
        "decided_at": now,
    }
    return Transition(TransitionGuard.UNDECIDED, now, changes)


def withdrawal(now: datetime = T0, by: str = "u-1") -> Transition:
    """The host withdraws."""
    decision = DecisionRecord(kind=DecisionKind.WITHDRAW, reason="changed my mind", at=now, by=by)
    changes = {"status": ReviewStatus.WITHDRAWN, "decision": decision, "decided_at": now}
    return Transition(TransitionGuard.OPEN, now, changes)


def expiry(deadline: datetime = DEADLINE, now: datetime = DEADLINE) -> Transition:
    """The gate persists what the row reads anyway."""
    return Transition(TransitionGuard.DUE, now, {"status": ReviewStatus.EXPIRED, "decided_at": deadline})


def late_amendments(now: datetime = DEADLINE, by: str = "r-1", reason: str = "wedding") -> PreservedAmendments:
    """What a decision that came too late would have changed."""
    return PreservedAmendments(amendments={"reason": reason}, at=now, by=by)


# --- at the same time ----------------------------------------------------------------------------------------------


def at_once(calls: Iterable[Any]) -> list[Any]:
    """What ``calls`` return when threads make them all at the same moment, in their order."""
    waiting = list(calls)
    start = threading.Barrier(len(waiting))
    results: list[Any] = [None] * len(waiting)

    def run(index: int) -> None:
        start.wait(30)
        try:
            results[index] = waiting[index]()
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(waiting))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def count_applied(results: Iterable[Any]) -> int:
    """How many of the results are applied writes. A failed call fails the test."""
    applied = 0
    for result in results:
        if isinstance(result, BaseException):
            raise result
        assert isinstance(result, Applied)
        applied += result.applied
    return applied


# --- in other processes --------------------------------------------------------------------------------------------


def open_and_file(urls: list[str], entry_id: str, start: Any, results: Any) -> None:
    """Open one Docket after the other, each together with the other processes, and file one row in each."""
    try:
        for url in urls:
            start.wait(60)
            store = open_docket(url)
            assert store.file(make_entry(entry_id)).created
            store.close()
        results.put(entry_id)
    except BaseException as error:  # noqa: BLE001  # the test looks at it
        results.put(repr(error))


def race_to_approve(url: str, entry_id: str, threads: int, start: Any, results: Any) -> None:
    """Open the Docket, wait for the other processes, and approve one row from several threads at once."""
    store = open_docket(url)
    start.wait(60)
    try:
        calls = [
            lambda name=f"r-{number}": store.transition(TENANT, entry_id, approval(entry_id, by=name))
            for number in range(threads)
        ]
        results.put(count_applied(at_once(calls)))
    except BaseException as error:  # noqa: BLE001  # the test looks at it
        results.put(repr(error))
    finally:
        store.close()


def file_until_killed(url: str, acknowledged: Path) -> None:
    """File rows for ever, and write down each one that the Docket has acknowledged."""
    store = open_docket(url)
    with acknowledged.open("a", encoding="utf-8") as notes:
        number = 0
        while True:
            store.file(make_entry(f"e-{number}"))
            notes.write(f"e-{number}\n")
            notes.flush()
            number += 1
            time.sleep(0.001)
