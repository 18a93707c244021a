"""What can be found wrong with a gate before it is used; all of it at once (CV-1)."""

from __future__ import annotations

from collections.abc import Sequence

from affiant_core.docket.store import DocketStore
from affiant_core.errors import WiringFault
from affiant_core.policy import Policy, RiskScorer, ttl_fault


def gate_faults(
    docket: object,
    authorize: object,
    policies: Sequence[Policy],
    default_ttl: object,
    risk_scorer: RiskScorer | None,
) -> list[WiringFault]:
    faults: list[WiringFault] = []
    if not isinstance(docket, DocketStore):
        faults.append(WiringFault("docket", "there is no Docket store.", "Pass docket=open_docket('sqlite:///...')."))
    if not callable(authorize):
        faults.append(
            WiringFault(
                "authorize",
                "there is no authorization port.",
                "Pass authorize=, a function of an AuthorizationRequest that returns True for a yes.",
            )
        )
    fault = ttl_fault(default_ttl)
    if fault:
        faults.append(WiringFault("default_ttl", f"{fault}.", "Pass a timedelta such as timedelta(minutes=30)."))
    for policy in policies:
        if policy.declares_threshold and risk_scorer is None:
            faults.append(
                WiringFault(
                    f"policy {policy.id!r}",
                    "it declares a risk threshold and the gate has no riskScorer.",
                    "Pass risk_scorer=, a function of a PolicyRequest that returns the host's own score.",
                )
            )
    identifiers = [policy.id for policy in policies]
    faults.extend(
        WiringFault(f"policy {twice!r}", "two policies share this id.", "Give each policy an id of its own.")
        for twice in sorted({name for name in identifiers if identifiers.count(name) > 1})
    )
    return faults
