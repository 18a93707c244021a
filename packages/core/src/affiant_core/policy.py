"""What a proposal needs before it may be written: verdicts, policies, the chain, and its guardrails (GT-4, GT-5, PV-4).

Only a :class:`Verdict` is a verdict. A policy that raises, or returns anything but a verdict or ``None``, is refused,
and nothing is filed (DECISIONS 19). Nothing but a Standing Order that passes every guardrail approves without a person.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from math import isfinite, isnan
from typing import ClassVar, Protocol, TypeAlias, cast

from affiant_core.affidavit import Affidavit
from affiant_core.context import ActContext
from affiant_core.docket.model import Requirement
from affiant_core.driver import Driver
from affiant_core.errors import Refusal, WireupInvalid
from affiant_core.telemetry import Telemetry
from affiant_core.vocabulary import ProvenanceSource, ReviewRequirement

log: logging.Logger = logging.getLogger(__name__)

MINIMUM_TTL = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """What a policy may look at. ``context`` is a ``TurnContext`` when the proposal comes from a turn."""

    tool_name: str
    affidavit: Affidavit
    context: ActContext


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy asks for.

    ``ttl`` is how long the row stays open, ``threshold`` the highest risk score that a Standing Order accepts,
    ``reason`` a sentence for the reviewer.
    """

    requirement: Requirement
    ttl: timedelta | None = None
    threshold: float | None = None
    reason: str | None = None

    @classmethod
    def approve(
        cls, *, ttl: timedelta | None = None, threshold: float | None = None, reason: str | None = None
    ) -> Verdict:
        """A Standing Order: approve with nobody present, if every guardrail holds (GT-5)."""
        return cls(Requirement(kind=ReviewRequirement.STANDING_ORDER), ttl, threshold, reason)

    @classmethod
    def confirm(cls, *, ttl: timedelta | None = None, reason: str | None = None) -> Verdict:
        """Ask one reviewer."""
        return cls(Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION), ttl, None, reason)

    @classmethod
    def refer(cls, *, ttl: timedelta | None = None, reason: str | None = None) -> Verdict:
        """Refer the proposal elsewhere. This version does not run referrals: the row is filed blocked (AZ-4)."""
        return cls(Requirement(kind=ReviewRequirement.REFERRAL_REQUIRED), ttl, None, reason)

    @classmethod
    def multi_party(
        cls, approvers: Sequence[str], required: int, *, ttl: timedelta | None = None, reason: str | None = None
    ) -> Verdict:
        """Ask ``required`` of the people in ``approvers`` (AZ-4)."""
        if isinstance(approvers, str):
            raise TypeError("approvers is a list of identifiers, not one text.")
        requirement = Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=tuple(approvers), required=required)
        return cls(requirement, ttl, None, reason)


class Policy(Protocol):
    """One link of the chain. ``None`` is no opinion: the next policy is asked."""

    @property
    def id(self) -> str:
        """What the policy is called on records. No two policies of a gate share it."""
        ...

    @property
    def version(self) -> str:
        """Which text of the policy was in force."""
        ...

    @property
    def default_ttl(self) -> timedelta | None:
        """How long its rows stay open when the verdict does not say; ``None`` leaves it to the gate (GT-4)."""
        ...

    @property
    def declared_inputs(self) -> Collection[ProvenanceSource]:
        """The sources whose say-so this policy relies on (PV-4)."""
        ...

    @property
    def declares_threshold(self) -> bool:
        """Whether its verdicts have a risk threshold, so that the gate needs a scorer (GT-5)."""
        ...

    def evaluate(self, request: PolicyRequest) -> Verdict | Awaitable[Verdict | None] | None:
        """The verdict on a proposal, or ``None``. May be written with ``async`` or without."""
        ...


Matches: TypeAlias = Callable[[PolicyRequest], "bool | Awaitable[bool]"]
RiskScorer: TypeAlias = Callable[[PolicyRequest], "float | Awaitable[float]"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _MatchingPolicy:
    """A policy that has one verdict for what its ``when`` matches, and no opinion on anything else."""

    id: str
    version: str = "1"
    when: Matches
    default_ttl: timedelta | None = None
    declared_inputs: Collection[ProvenanceSource] = ()
    reason: str | None = None
    declares_threshold: ClassVar[bool] = False

    async def evaluate(self, request: PolicyRequest) -> Verdict | None:
        answer = self.when(request)
        matched: object = await cast(Awaitable[object], answer) if isawaitable(answer) else answer
        if matched is True:
            return self._verdict()
        if matched is False:
            return None
        raise TypeError(f"when() must return True or False, not a {type(matched).__name__}.")

    def _verdict(self) -> Verdict:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class StandingOrder(_MatchingPolicy):
    """Approve what ``when`` matches with nobody present, if every guardrail holds (GT-5, PV-4).

    ``threshold`` is the highest score of the host's risk scorer that still fires, on the host's own scale.
    """

    threshold: float | None = None

    @property
    def declares_threshold(self) -> bool:  # type: ignore[override]  # a fact of the instance here
        """Whether a threshold was given."""
        return self.threshold is not None

    def _verdict(self) -> Verdict:
        return Verdict.approve(threshold=self.threshold, reason=self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Referral(_MatchingPolicy):
    """Refer what ``when`` matches elsewhere; this version files such rows blocked (AZ-4)."""

    def _verdict(self) -> Verdict:
        return Verdict.refer(reason=self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewerConfirmation(_MatchingPolicy):
    """Ask one reviewer for what ``when`` matches; for everything, unless told otherwise."""

    when: Matches = field(default=lambda _: True)

    def _verdict(self) -> Verdict:
        return Verdict.confirm(reason=self.reason)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the chain came to: the requirement in force, how long it stays open, and which policy said so."""

    requirement: Requirement
    ttl: timedelta
    policy_id: str | None = None
    policy_version: str | None = None
    risk_score: float | None = None
    warnings: tuple[str, ...] = ()


def ttl_fault(ttl: object, now: datetime) -> str | None:
    """What is wrong with a time to live, or ``None``. It is a whole number of milliseconds, at least one (GT-4).

    From ``now`` on it must end within the calendar (REFERENCE 13).
    """
    if not isinstance(ttl, timedelta):
        return f"a time to live is a timedelta, not a {type(ttl).__name__}"
    if ttl < MINIMUM_TTL:
        return "a time to live is at least one millisecond"
    if ttl % MINIMUM_TTL:
        return "a time to live is a whole number of milliseconds"
    return "a time to live ends within the calendar, before the year 10000" if ttl > _END - now else None


_END = datetime.max.replace(tzinfo=UTC)


class PolicyChain:
    """The host's policies in order; the first verdict wins, and without one a reviewer is asked (GT-1)."""

    def __init__(
        self,
        policies: Sequence[Policy],
        *,
        default_ttl: timedelta,
        risk_scorer: RiskScorer | None,
        telemetry: Telemetry,
    ) -> None:
        self.policies: tuple[Policy, ...] = tuple(policies)
        self._default_ttl = default_ttl
        self._risk_scorer = risk_scorer
        self._telemetry = telemetry

    async def rule(self, driver: Driver, request: PolicyRequest, now: datetime) -> Ruling:
        """Ask the policies. Raises ``WireupInvalid`` when one breaks its contract; nothing is filed then."""
        for policy in self.policies:
            verdict = await self._ask(driver, policy, request)
            if verdict is not None:
                return await self._guard(driver, policy, verdict, request, now)
        return Ruling(Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION), self._default_ttl)

    async def _ask(self, driver: Driver, policy: Policy, request: PolicyRequest) -> Verdict | None:
        try:
            verdict = cast(object, await driver.call(policy.evaluate, request))
        except Refusal:
            raise
        except Exception as error:
            log.exception("Policy %s raised", policy.id)
            raise self._invalid(policy, "evaluate", f"it raised a {type(error).__name__}") from error
        if verdict is None:
            return None
        if not isinstance(verdict, Verdict) or not isinstance(verdict.requirement, Requirement):
            raise self._invalid(policy, "evaluate", f"it returned a {type(verdict).__name__}, not a Verdict or None")
        return verdict

    async def _guard(
        self, driver: Driver, policy: Policy, verdict: Verdict, request: PolicyRequest, now: datetime
    ) -> Ruling:
        ttl = self._default_ttl
        for option, chosen in (("ttl", verdict.ttl), ("default_ttl", policy.default_ttl)):
            if chosen is not None:
                fault = ttl_fault(chosen, now)
                if fault:
                    raise self._invalid(policy, option, fault)
                ttl = chosen
                break
        self._check_multi_party(policy, verdict.requirement)
        reason = cast(object, verdict.reason)
        if reason is not None and not isinstance(reason, str):
            raise self._invalid(policy, "reason", f"a reason is text, not a {type(reason).__name__}")
        if verdict.threshold is not None and _number(verdict.threshold) is None:
            raise self._invalid(policy, "threshold", "a threshold is a number")
        if verdict.requirement.kind is not ReviewRequirement.STANDING_ORDER:
            warnings = (verdict.reason,) if verdict.reason else ()
            return Ruling(verdict.requirement, ttl, policy.id, policy.version, warnings=warnings)
        return await self._guard_standing_order(driver, policy, verdict, request, ttl)

    async def _guard_standing_order(
        self, driver: Driver, policy: Policy, verdict: Verdict, request: PolicyRequest, ttl: timedelta
    ) -> Ruling:
        affidavit = request.affidavit
        empty = tuple(
            item.name
            for item in affidavit.fields
            if item.is_mandatory and (item.tag.is_empty or not item.holds_a_value)
        )
        if empty:
            reason = f"GT-5: a Standing Order does not fire while mandatory fields are empty: {', '.join(empty)}."
            return self._degrade(
                policy, ttl, "mandatory-field-empty", reason, {"affidavit.empty_mandatory_fields": empty}
            )
        for item in affidavit.fields:
            source = item.tag.source
            if source in policy.declared_inputs and source.outranks_conversation and item.tag.binding is None:
                reason = (
                    f"PV-4: {item.name} carries a {source.value} tag with no binding, "
                    "which the Standing Order relies on."
                )
                facts = {"provenance.field": item.name, "provenance.source": source.value}
                return self._degrade(policy, ttl, "unbound-declared-input", reason, facts)
        score = None
        if verdict.threshold is not None:
            score = await self._score(driver, policy, request)
            if not score <= verdict.threshold:
                reason = "GT-5: the risk score is above the Standing Order's threshold."
                facts_of_risk = {"risk.score": score, "risk.threshold": verdict.threshold}
                return self._degrade(policy, ttl, "risk-above-threshold", reason, facts_of_risk, score)
        return Ruling(verdict.requirement, ttl, policy.id, policy.version, score)

    async def _score(self, driver: Driver, policy: Policy, request: PolicyRequest) -> float:
        if self._risk_scorer is None:
            raise self._invalid(policy, "threshold", "its verdict has a threshold and the gate has no riskScorer")
        try:
            score = cast(object, await driver.call(self._risk_scorer, request))
        except Exception as error:
            log.exception("The risk scorer raised")
            raise self._invalid(policy, "riskScorer", f"the risk scorer raised a {type(error).__name__}") from error
        number = _number(score)
        if number is None or not isfinite(number):
            raise self._invalid(policy, "riskScorer", "the risk scorer returned no finite number")
        return number

    def _degrade(
        self,
        policy: Policy,
        ttl: timedelta,
        blocked_reason: str,
        reason: str,
        facts: dict[str, str | float | tuple[str, ...]]
        | dict[str, str]
        | dict[str, float]
        | dict[str, tuple[str, ...]],
        score: float | None = None,
    ) -> Ruling:
        self._telemetry.emit(
            "standing-order.blocked",
            {
                "policy.id": policy.id,
                "policy.version": policy.version,
                "blocked.reason": blocked_reason,
                "reason": reason,
                **facts,
            },
        )
        requirement = Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION)
        return Ruling(requirement, ttl, policy.id, policy.version, score, (reason,))

    def _check_multi_party(self, policy: Policy, requirement: Requirement) -> None:
        fault = multi_party_fault(requirement)
        if fault:
            raise self._invalid(policy, "requirement", fault)

    def _invalid(self, policy: Policy, option: str, fault: str) -> WireupInvalid:
        reason = f"policy {policy.id!r}: {fault}."
        self._telemetry.emit(
            "policy.invalid",
            {"policy.id": policy.id, "policy.version": policy.version, "option": option, "reason": reason},
        )
        return WireupInvalid(reason)


def _number(value: object) -> float | None:
    """``value`` as a double, or ``None`` when it is none: a bool, NaN, text, an integer beyond every double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if isnan(number) else number


def multi_party_fault(requirement: Requirement) -> str | None:
    """What is wrong with a requirement's approvers, or ``None`` (AZ-4)."""
    if requirement.kind is not ReviewRequirement.MULTI_PARTY:
        if requirement.approvers is None and requirement.required is None:
            return None
        return f"{requirement.kind.value} takes no approvers"
    approvers = requirement.approvers or ()
    if len(approvers) < 2 or len(set(approvers)) != len(approvers):
        return "MultiParty takes at least two different approvers"
    required = requirement.required
    if isinstance(required, bool) or not isinstance(required, int) or not 1 <= required <= len(approvers):
        return "MultiParty requires between one and all of its approvers"
    return None
