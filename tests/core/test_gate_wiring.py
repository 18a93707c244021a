"""What is found wrong with a gate before it is used: every fault, in one error, by name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.gate import TOOL, Desk, FixedPolicy, always, asking, record, turn, yes

from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.errors import RefusalCode, WireupInvalid, WiringError
from affiant_core.gate import ReviewGate
from affiant_core.policy import Referral, Verdict
from affiant_core.vocabulary import CoverageCategory


def faults(**wiring):
    """The faults of a gate that is whole but for ``wiring``, by whose they are."""
    with pytest.raises(WiringError) as refused:
        ReviewGate(**{"docket": InMemoryDocketStore(), "authorize": yes, **wiring})
    assert refused.value.code is RefusalCode.WIREUP_INVALID
    assert isinstance(refused.value, WireupInvalid)
    for fault in refused.value.faults:
        assert str(fault) in str(refused.value)
        assert fault.fault.endswith(".")
        assert fault.remedy.endswith(".")
    return [fault.subject for fault in refused.value.faults]


@pytest.mark.parametrize("docket", [None, {}, "sqlite:///docket.db", InMemoryDocketStore])
def test_a_store_is_needed(docket):
    """CV-1: a gate without a Docket store, or with the class of one, is refused, and the store is named."""
    assert faults(docket=docket) == ["docket"]


@pytest.mark.parametrize("authorize", [None, True, "anybody"])
def test_an_authorization_port_is_needed(authorize):
    """CV-1, AZ-2: a gate that could ask nobody is refused, and the port is named; there is no off switch."""
    assert faults(authorize=authorize) == ["authorize"]


@pytest.mark.parametrize(
    "ttl",
    [None, 0, 30, "PT30M", timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1), timedelta(days=999_999_999)],
)
def test_the_default_time_to_live(ttl):
    """CV-1, GT-4: a default that is missing or invalid is a fault of the wiring."""
    assert faults(default_ttl=ttl) == ["default_ttl"]


@pytest.mark.parametrize("ttl", [0, timedelta(0), timedelta(microseconds=1), timedelta(days=999_999_999)])
def test_a_policys_own_time_to_live(ttl):
    """GT-4: a static time to live of a policy is looked at when the gate is built, not when the first row is filed."""
    bad = [always(default_ttl=ttl), FixedPolicy(default_ttl=ttl)]
    assert faults(policies=bad) == ["policy 'auto': default_ttl", "policy 'fixed': default_ttl"]


def test_a_threshold_needs_a_scorer():
    """CV-1, GT-5: a policy that declares a threshold on a gate without a scorer is refused, naming the riskScorer."""
    with pytest.raises(WiringError, match="riskScorer"):
        ReviewGate(docket=InMemoryDocketStore(), authorize=yes, policies=[always(threshold=0)])
    assert faults(policies=[always(threshold=2)]) == ["policy 'auto'"]
    assert faults(policies=[FixedPolicy(declares_threshold=True)]) == ["policy 'fixed'"]


def test_every_fault_is_in_one_error():
    """CV-1: one run shows everything that is wrong, each fault with what to write instead."""
    found = faults(
        docket=None,
        authorize=None,
        default_ttl=timedelta(0),
        policies=[always(threshold=2), always(default_ttl=timedelta(0)), FixedPolicy(), object()],
        uncovered={TOOL: "somehow"},
    )
    assert found == [
        "docket",
        "authorize",
        "default_ttl",
        "policy number 4",
        "policy 'auto'",
        "policy 'auto': default_ttl",
        "policy 'auto'",
        f"uncovered tool '{TOOL}'",
    ]


def test_a_gate_with_one_fault_counts_one():
    """CV-1: the message counts its faults, for one and for several."""
    with pytest.raises(WiringError, match="1 fault in the wiring"):
        ReviewGate(docket=InMemoryDocketStore(), authorize=None)
    with pytest.raises(WiringError, match="2 faults in the wiring"):
        ReviewGate(docket=None, authorize=None)


class NoVersion:
    """All that a policy needs, but for a version to attest under."""

    id = "unversioned"
    default_ttl, declared_inputs, declares_threshold = None, (), False

    def evaluate(self, request):
        return None


@pytest.mark.parametrize(
    "policy",
    [object(), Verdict.approve(), lambda _: None, "auto", None, FixedPolicy, FixedPolicy(id=7), NoVersion()],
)
def test_a_policy_has_the_members_of_one(policy):
    """CV-1: what cannot be asked is refused when the gate is built, by its place in the list."""
    assert faults(policies=[FixedPolicy(), policy]) == ["policy number 2"]


def test_two_policies_of_one_name():
    """AZ-1: an attestation names a policy by its id, so an id belongs to one policy."""
    assert faults(policies=[always(), Referral(id="auto", when=yes), FixedPolicy()]) == ["policy 'auto'"]


@pytest.mark.parametrize("category", ["somehow", "", None, 7, ["no-execute"]])
def test_a_category_of_coverage(category):
    """CV-4: an uncovered tool is declared with one of the three categories."""
    assert faults(uncovered={TOOL: category}) == [f"uncovered tool '{TOOL}'"]


@pytest.mark.parametrize("category", [*CoverageCategory, *(category.value for category in CoverageCategory)])
def test_a_category_in_either_spelling(category):
    """CV-4: the member and its wire word say the same; the row is filed blocked, and filing comes back whole."""
    desk = Desk(uncovered={TOOL: category})
    filing = desk.file()
    assert filing.entry.blocked.category == category
    assert desk.events.only("coverage.refused")["coverage.category"] == str(category)


def test_policies_from_an_iterator():
    """CV-1: policies are read once, so that those which come from a generator are in force and not lost."""
    gate = ReviewGate(
        docket=InMemoryDocketStore(), authorize=yes, policies=(each for each in [asking("ana", "bo", required=2)])
    )
    row = gate.file.sync(record(), turn(), tool_name=TOOL).entry
    assert row.requirement.kind.value == "MultiParty"


def test_a_list_that_changes_afterwards():
    """CV-1: what was checked is what is in force; a list changed later adds no unchecked policy and no tool."""
    policies, uncovered = [], {}
    gate = ReviewGate(docket=InMemoryDocketStore(), authorize=yes, policies=policies, uncovered=uncovered)
    policies.append(always())
    uncovered[TOOL] = CoverageCategory.NO_EXECUTE
    row = gate.file.sync(record(), turn(), tool_name=TOOL).entry
    assert (row.status.value, row.blocked) == ("pending", None)


def test_a_whole_gate_is_silent():
    """CV-1: a store, an authorization port and nothing else is a whole gate."""
    assert ReviewGate(docket=InMemoryDocketStore(), authorize=yes).telemetry is not None
