"""Policies of the host's own, the ready-made ones, and a risk scorer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import assert_type

from affiant_core import (
    Affidavit,
    AffidavitField,
    DocketEntry,
    InMemoryDocketStore,
    Member,
    Policy,
    PolicyRequest,
    ProvenanceSource,
    Referral,
    ReviewerConfirmation,
    ReviewGate,
    StandingOrder,
    TurnContext,
    Verdict,
    grade,
)


class SmallLimits:
    """Small limits need nobody; written without async."""

    id = "small-limits"
    version = "3"
    default_ttl: timedelta | None = timedelta(minutes=5)
    declared_inputs: Collection[ProvenanceSource] = (ProvenanceSource.USER_STATED,)
    declares_threshold = False

    def evaluate(self, request: PolicyRequest) -> Verdict | None:
        """Approve what is small, and have no opinion on the rest."""
        limit = request.affidavit.values().get("limit")
        return Verdict.approve(reason="small") if isinstance(limit, int) and limit < 100 else None


class LargeLimits:
    """Large limits are for two people; written with async."""

    id = "large-limits"
    version = "1"
    default_ttl: timedelta | None = None
    declared_inputs: Collection[ProvenanceSource] = ()
    declares_threshold = False

    async def evaluate(self, request: PolicyRequest) -> Verdict | None:
        """Ask two of three."""
        await asyncio.sleep(0)
        return Verdict.multi_party(["ana", "ben", "eve"], 2, ttl=timedelta(hours=1))


class NoVerdict:
    """Not a policy: it answers with a word."""

    id = "wrong"
    version = "1"
    default_ttl: timedelta | None = None
    declared_inputs: Collection[ProvenanceSource] = ()
    declares_threshold = False

    def evaluate(self, request: PolicyRequest) -> str:
        """Approve."""
        return "approve"


async def scored(request: PolicyRequest) -> float:
    """The host's own score."""
    return float(len(request.affidavit.fields))


def is_archive(request: PolicyRequest) -> bool:
    """Whether the tool archives."""
    return request.tool_name == "archive"


policies: list[Policy] = [
    Referral(id="archive", when=is_archive),
    StandingOrder(id="tiny", version="2", when=lambda request: request.tool_name == "tiny", threshold=3.0),
    SmallLimits(),
    LargeLimits(),
    ReviewerConfirmation(id="everything-else"),
]
wrong: Policy = NoVerdict()  # type: ignore[assignment]  # only a Verdict is a verdict (DECISIONS 19)


def refused_by_the_type_checker() -> None:
    """What does not type-check; nothing here is ever run."""
    StandingOrder(when=is_archive)  # type: ignore[call-arg]  # a policy has an id
    StandingOrder("tiny", when=is_archive)  # type: ignore[call-arg]  # and is made by keywords


gate = ReviewGate(docket=InMemoryDocketStore(), authorize=lambda request: True, policies=policies, risk_scorer=scored)


def filed(limit: int, tool_name: str) -> DocketEntry:
    """The row of one limit."""
    turn = TurnContext("acme", Member("u-1"), conversation_id="c-1")
    field = AffidavitField.of("limit", limit, grade("limit", limit, utterance=f"limit {limit}", at=turn.turn.at))
    record = Affidavit.create(operation_type="WriteCreate", entity_type="Customer", fields=[field])
    return gate.file.sync(record, turn, tool_name=tool_name).entry


assert_type(filed(10, "set_limit"), DocketEntry)
assert [filed(*given).status.value for given in ((10, "small"), (500, "large"), (500, "tiny"), (1, "archive"))] == [
    "approved",
    "pending",
    "approved",
    "pending",
]
