"""What can be found wrong with a gate before it is used; all of it at once (CV-1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from affiant_core.docket.store import DocketStore
from affiant_core.errors import WiringFault
from affiant_core.policy import Policy, RiskScorer, ttl_fault
from affiant_core.values import utc_now
from affiant_core.vocabulary import CoverageCategory, ProvenanceSource

_TTL_REMEDY = "Pass a timedelta such as timedelta(minutes=30)."


def gate_faults(
    docket: object,
    authorize: object,
    policies: Sequence[Policy],
    default_ttl: object,
    risk_scorer: RiskScorer | None,
    uncovered: Mapping[str, object],
) -> list[WiringFault]:
    """Every fault of a gate's parts: a missing store or authorization, a bad deadline, policies that cannot work."""
    faults: list[WiringFault] = []
    if isinstance(docket, type) or not isinstance(docket, DocketStore):
        faults.append(WiringFault("docket", "there is no Docket store.", "Pass docket=open_docket('sqlite:///...')."))
    if not callable(authorize):
        faults.append(
            WiringFault(
                "authorize",
                "there is no authorization port.",
                "Pass authorize=, a function of an AuthorizationRequest that returns True for a yes.",
            )
        )
    fault = ttl_fault(default_ttl, utc_now())
    if fault:
        faults.append(WiringFault("default_ttl", f"{fault}.", _TTL_REMEDY))
    faults += _policy_faults(policies, risk_scorer)
    words = [category.value for category in CoverageCategory]
    faults.extend(
        WiringFault(f"uncovered tool {tool!r}", "its category is not known.", f"Give one of {', '.join(words)}.")
        for tool, category in uncovered.items()
        if category not in words
    )
    return faults


def _policy_faults(policies: Sequence[Policy], risk_scorer: RiskScorer | None) -> list[WiringFault]:
    faults: list[WiringFault] = []
    usable: list[Policy] = []
    for position, policy in enumerate(policies, 1):
        if _is_policy(policy):
            usable.append(policy)
        else:
            faults.append(
                WiringFault(
                    f"policy number {position}",
                    f"a {type(policy).__name__} is no policy.",
                    "Pass a StandingOrder, a Referral, a ReviewerConfirmation or an object with the members of Policy.",
                )
            )
    for policy in usable:
        if policy.declares_threshold and risk_scorer is None:
            faults.append(
                WiringFault(
                    f"policy {policy.id!r}",
                    "it declares a risk threshold and the gate has no riskScorer.",
                    "Pass risk_scorer=, a function of a PolicyRequest that returns the host's own score.",
                )
            )
        fault = None if policy.default_ttl is None else ttl_fault(policy.default_ttl, utc_now())
        if fault:
            faults.append(WiringFault(f"policy {policy.id!r}: default_ttl", f"{fault}.", _TTL_REMEDY))
    faults.extend(
        WiringFault(
            f"policy {policy.id!r}: declared_inputs",
            "they are no collection of sources.",
            "Give ProvenanceSource members.",
        )
        for policy in usable
        if not _are_sources(policy.declared_inputs)
    )
    identifiers = [policy.id for policy in usable]
    faults.extend(
        WiringFault(f"policy {twice!r}", "two policies share this id.", "Give each policy an id of its own.")
        for twice in sorted({name for name in identifiers if identifiers.count(name) > 1})
    )
    return faults


def _is_policy(policy: object) -> bool:
    if isinstance(policy, type):
        return False
    named = all(isinstance(getattr(policy, name, None), str) for name in ("id", "version"))
    members = ("default_ttl", "declared_inputs", "declares_threshold")
    return named and all(hasattr(policy, name) for name in members) and callable(getattr(policy, "evaluate", None))


def _are_sources(inputs: object) -> bool:
    """Whether these can be compared with a field's source, again and again."""
    if isinstance(inputs, str) or not isinstance(inputs, Collection):
        return False
    return set(ProvenanceSource).issuperset(cast(Collection[object], inputs))
