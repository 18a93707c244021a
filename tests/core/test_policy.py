"""Verdicts, the chain of policies, and what a Standing Order must pass before it may approve with nobody present."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from support.gate import (
    T0,
    TOOL,
    TTL,
    Desk,
    FixedPolicy,
    always,
    asking,
    empty,
    no,
    record,
    sworn,
    turn,
    yes,
)

from affiant_core.docket.model import Requirement
from affiant_core.errors import DecisionExpired, SubstanceRefused, WireupInvalid
from affiant_core.policy import Referral, ReviewerConfirmation, StandingOrder, Verdict, multi_party_fault, ttl_fault
from affiant_core.provenance import ComputationRef, ExternalRef, FormInput
from affiant_core.vocabulary import ReviewRequirement

BOUND = ExternalRef.of("crm", "c-1")
STANDING_ORDER = Requirement(kind=ReviewRequirement.STANDING_ORDER)


def filed(*policies, affidavit=None, **wiring):
    """The row that these policies make of a proposal, and the desk."""
    desk = Desk(*policies, **wiring)
    return desk.file(affidavit).entry, desk


def filed_by(how, desk):
    """The row of a filing that is called in one of the two ways."""
    if how == "sync":
        return desk.file().entry
    return asyncio.run(desk.gate.file(record(), turn(), tool_name=TOOL)).entry


def invalid(*policies, affidavit=None, **wiring):
    """The refusal and the one event that these policies come to; nothing was filed."""
    desk = Desk(*policies, **wiring)
    with pytest.raises(WireupInvalid) as refused:
        desk.file(affidavit)
    assert desk.store.rows() == ()
    assert desk.outbox.attempts == []
    assert desk.events.keys == ["policy.invalid"]
    event = desk.events.only("policy.invalid")
    assert event["reason"] == refused.value.reason
    return event


def blocked(*policies, affidavit=None, **wiring):
    """The row and the one degrading event of a Standing Order that was not honoured."""
    row, desk = filed(*policies, affidavit=affidavit, **wiring)
    assert desk.events.keys == ["standing-order.blocked", "affidavit.filed"]
    assert (row.status.value, row.requirement.kind.value, row.blocked) == ("pending", "ReviewerConfirmation", None)
    assert (row.attestation, row.execution) == (None, None)
    event = desk.events.only("standing-order.blocked")
    assert row.presentation.gate_warnings == (event["reason"],)
    return row, event


# --- the chain (GT-1) ----------------------------------------------------------------------------------------------


def test_policies_are_asked_in_order_until_one_has_a_verdict():
    """GT-1 (7): the first verdict wins, None is no opinion, and policies after the verdict are not asked."""
    trace = []

    def says(name, answer):
        return FixedPolicy(lambda _: trace.append(name) or answer, id=name)

    row, _ = filed(
        says("first", None), says("second", Verdict.refer()), says("third", Verdict.approve()), says("fourth", None)
    )
    assert trace == ["first", "second"]
    assert row.requirement.kind is ReviewRequirement.REFERRAL_REQUIRED


@pytest.mark.parametrize(
    ("policies", "kind"),
    [
        ((), "ReviewerConfirmation"),
        ((FixedPolicy(None),), "ReviewerConfirmation"),
        ((StandingOrder(id="so", when=no), Referral(id="re", when=no)), "ReviewerConfirmation"),
        ((ReviewerConfirmation(id="rc"), always()), "ReviewerConfirmation"),
        ((Referral(id="re", when=yes), always()), "ReferralRequired"),
        ((always(), Referral(id="re", when=yes)), "StandingOrder"),
        ((StandingOrder(id="so", when=no), asking("ana", "bo", required=1)), "MultiParty"),
    ],
)
def test_what_a_chain_comes_to(policies, kind):
    """GT-1 (7), AZ-4: order decides, not strictness; without a verdict a reviewer is asked."""
    row, _ = filed(*policies)
    assert row.requirement.kind.value == kind


def test_what_a_policy_sees():
    """GT-2: the tool's name, the record as it was sworn and the turn that it belongs to, all handed over."""
    policy = FixedPolicy()
    desk = Desk(policy)
    affidavit, context = record(), turn("rosa")
    desk.file(affidavit, context)
    (request,) = policy.requests
    assert (request.tool_name, request.affidavit, request.context) == (TOOL, affidavit, context)
    assert request.context is context


def test_the_verdicts_reason_is_shown_to_the_reviewer():
    """REFERENCE 10: the reason of a verdict that asks a person stands among the card's warnings, after the record's
    own.
    """
    desk = Desk(FixedPolicy(Verdict.confirm(reason="above the branch's limit")))
    card = desk.file(record(warnings=["overlaps"])).card
    assert card.warnings == ("overlaps", "above the branch's limit")


# --- what is a verdict (DECISIONS 19) ------------------------------------------------------------------------------

NOT_VERDICTS = {
    "True": True,
    "False": False,
    "a word": "StandingOrder",
    "a requirement": STANDING_ORDER,
    "a kind": ReviewRequirement.STANDING_ORDER,
    "a number": 0,
    "a map": {"requirement": "StandingOrder"},
    "a list": [Verdict.approve()],
    "a verdict about text": Verdict("StandingOrder"),
    "a verdict about a kind": Verdict(ReviewRequirement.STANDING_ORDER),
    "a verdict about nothing": Verdict(None),
}


@pytest.mark.parametrize("answer", NOT_VERDICTS.values(), ids=NOT_VERDICTS.keys())
def test_only_a_verdict_is_a_verdict(answer):
    """DECISIONS 19: whatever else a policy returns is refused, no later policy is asked, and nothing is filed."""
    later = FixedPolicy(Verdict.confirm(), id="later")
    event = invalid(FixedPolicy(answer), later)
    assert (event["policy.id"], event["policy.version"], event["option"]) == ("fixed", "1.0.0", "evaluate")
    assert later.requests == []


@pytest.mark.parametrize("answer", [True, "StandingOrder", STANDING_ORDER])
def test_an_asynchronous_policy_is_held_to_the_same(answer):
    """DECISIONS 19: what an asynchronous policy comes to is judged in the same way."""

    async def later(_):
        await asyncio.sleep(0)
        return answer

    assert invalid(FixedPolicy(later))["option"] == "evaluate"


@pytest.mark.parametrize(
    "error", [RuntimeError("postgres://svc:pw@10.0.0.5 said 987654321"), KeyError("limit"), OSError()]
)
def test_a_policy_that_raises(error, caplog):
    """DECISIONS 19, CV-1: it is refused under its name with the kind of error; the text goes to the log only."""
    later = FixedPolicy(Verdict.confirm(), id="later")
    event = invalid(FixedPolicy(error), later)
    assert event["option"] == "evaluate"
    assert type(error).__name__ in event["reason"]
    assert "10.0.0.5" not in event["reason"]
    assert later.requests == []
    assert "Policy fixed raised" in caplog.text


@pytest.mark.parametrize("own", [SubstanceRefused("the host's own rule"), DecisionExpired("closed")])
def test_a_policys_own_refusal_keeps_its_code(own):
    """REFERENCE 13: a policy may refuse with a code of its own; nothing is filed, and no fault is told of."""
    desk = Desk(FixedPolicy(own))
    with pytest.raises(type(own)) as refused:
        desk.file()
    assert refused.value is own
    assert (desk.store.rows(), desk.events.told) == ((), [])


def test_cancellation_inside_a_policy_goes_on():
    """REFERENCE 13, DECISIONS 14: a policy that is cancelled is not a policy that broke."""

    async def cancelled(_):
        raise asyncio.CancelledError

    desk = Desk(FixedPolicy(cancelled))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(desk.gate.file(record(), turn(), tool_name=TOOL))
    assert (desk.store.rows(), desk.events.told) == ((), [])


@pytest.mark.parametrize("how", ["sync", "async"])
def test_asynchronous_policies(how):
    """DECISIONS 21: an asynchronous policy is waited for in both ways of calling, with the same outcome."""

    async def approve(_):
        await asyncio.sleep(0)
        return Verdict.approve()

    desk = Desk(FixedPolicy(approve))
    assert filed_by(how, desk).status.value == "approved"


@pytest.mark.parametrize("reason", [7, ["x"], b"x"])
def test_a_reason_is_text(reason):
    """DECISIONS 19: a verdict with a reason that no card can show is the policy's fault, and is told as such."""
    assert invalid(FixedPolicy(Verdict.confirm(reason=reason)))["option"] == "reason"


# --- the time to live (GT-4) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(microseconds=1), timedelta(seconds=-1), 60, "PT1M"])
@pytest.mark.parametrize("verdict", [Verdict.approve, Verdict.confirm, Verdict.refer])
def test_a_bad_time_to_live_is_the_policys_fault(verdict, ttl):
    """GT-4: it is refused at evaluation whatever the verdict asks for, and no default stands in for it."""
    event = invalid(FixedPolicy(verdict(ttl=ttl), default_ttl=TTL))
    assert (event["option"], event["policy.id"]) == ("ttl", "fixed")


def test_a_policys_default_that_went_bad():
    """GT-4, REFERENCE 13: a policy's own default is checked where it is used, also when it changes after the wiring."""
    policy = FixedPolicy(Verdict.confirm(), default_ttl=TTL)
    desk = Desk(policy)
    policy.default_ttl = timedelta(0)
    with pytest.raises(WireupInvalid):
        desk.file()
    assert desk.events.only("policy.invalid")["option"] == "default_ttl"
    policy.answer = Verdict.confirm(ttl=timedelta(minutes=1))
    assert desk.file().entry.expires_at == T0 + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("ttl", "fault"),
    [
        (timedelta(milliseconds=1), None),
        (timedelta(days=365), None),
        (None, "timedelta, not a NoneType"),
        (True, "timedelta, not a bool"),
        (timedelta(microseconds=999), "at least one millisecond"),
        (timedelta(milliseconds=1, microseconds=1), "whole number"),
        (timedelta(days=3_000_000), "calendar"),
    ],
)
def test_what_is_wrong_with_a_time_to_live(ttl, fault):
    """GT-4: a whole number of milliseconds, at least one, that ends within the calendar; the message says which."""
    said = ttl_fault(ttl, T0)
    assert said is None if fault is None else re.search(fault, said)


# --- several people (AZ-4) -----------------------------------------------------------------------------------------

BAD_REQUIREMENTS = {
    "nobody": ([], 1),
    "one": (["ana"], 1),
    "one person twice": (["ana", "ana"], 1),
    "one of three twice": (["ana", "bo", "ana"], 2),
    "none required": (["ana", "bo"], 0),
    "fewer than none required": (["ana", "bo"], -1),
    "more required than asked": (["ana", "bo"], 3),
    "an unnamed person": (["ana", ""], 1),
    "no text": (["ana", 7], 1),
}


@pytest.mark.parametrize(("approvers", "required"), BAD_REQUIREMENTS.values(), ids=BAD_REQUIREMENTS.keys())
def test_an_invalid_verdict_of_several_people(approvers, required):
    """AZ-4: at least two different approvers, and between one and all of them required; else nothing is filed."""
    event = invalid(FixedPolicy(lambda _: Verdict.multi_party(approvers, required)))
    assert event["option"] in {"requirement", "evaluate"}


def test_a_requirement_without_a_number():
    """AZ-4: how many are required is never guessed."""
    bare = Requirement(kind=ReviewRequirement.MULTI_PARTY, approvers=("ana", "bo"))
    assert invalid(FixedPolicy(Verdict(bare)))["option"] == "requirement"


@pytest.mark.parametrize("kind", ["StandingOrder", "ReviewerConfirmation", "ReferralRequired"])
@pytest.mark.parametrize("more", [{"approvers": ("ana", "bo")}, {"required": 1}])
def test_approvers_belong_to_one_kind_alone(kind, more):
    """AZ-4: approvers beside any other kind would be lost, so the verdict is refused."""
    assert "takes no approvers" in multi_party_fault(Requirement(kind=kind, **more))
    assert invalid(FixedPolicy(Verdict(Requirement(kind=kind, **more))))["option"] == "requirement"


@pytest.mark.parametrize("required", [1, 2, 3])
def test_a_valid_verdict_of_several_people(required):
    """AZ-4: any number from one to all of them, in the given order."""
    row, _ = filed(asking("cy", "ana", "bo", required=required))
    assert row.requirement.to_json() == {"kind": "MultiParty", "approvers": ["cy", "ana", "bo"], "required": required}


# --- the guardrails of a Standing Order (GT-5, PV-4) ---------------------------------------------------------------


def test_a_standing_order_with_nothing_in_its_way():
    """GT-5: without a threshold it fires on its verdict, and no scorer is asked."""

    def scorer(_):
        raise AssertionError("there is no threshold")

    row, desk = filed(always(), risk_scorer=scorer)
    assert (row.status.value, desk.events.keys[-1]) == ("approved", "standing-order.fired")


def test_a_mandatory_field_that_is_empty():
    """GT-5: it degrades to a reviewer, names every empty mandatory field, keeps the time to live, and may be
    approved.
    """
    hour = timedelta(hours=1)
    affidavit = record(
        empty("limit", mandatory=True), sworn("memo", "kept"), empty("owner", mandatory=True), empty("note")
    )
    row, event = blocked(always(default_ttl=hour), affidavit=affidavit)
    assert row.expires_at == T0 + hour
    assert event == {
        "policy.id": "auto",
        "policy.version": "2.1.0",
        "blocked.reason": "mandatory-field-empty",
        "reason": "GT-5: a Standing Order does not fire while mandatory fields are empty: limit, owner.",
        "affidavit.empty_mandatory_fields": ("limit", "owner"),
    }
    desk = Desk(always())
    assert desk.approve(desk.row(affidavit)).status.value == "approved"


def test_an_optional_field_that_is_empty():
    """GT-5: an optional field of unknown origin does not hold up a Standing Order."""
    row, _ = filed(always(), affidavit=record(sworn("limit", 500, mandatory=True), empty("memo")))
    assert row.status.value == "approved"


@pytest.mark.parametrize(
    ("source", "declared", "binding", "fires"),
    [
        ("External", ["External"], None, False),
        ("External", ["External"], BOUND, True),
        ("External", ["Computed", "UserStated"], None, True),
        ("External", [], None, True),
        ("Computed", ["External", "Computed"], None, False),
        ("Computed", ["Computed"], ComputationRef.of("sum", ["memo"]), True),
        ("UserStated", ["UserStated"], None, False),
        ("UserStated", ["UserStated"], FormInput.of("limit"), True),
        ("Conversation", ["Conversation"], None, True),
        ("Inferred", ["Inferred"], None, True),
        ("Default", ["Default"], None, True),
        ("Empty", ["Empty"], None, True),
    ],
)
def test_what_a_policy_relies_on_must_be_bound(source, declared, binding, fires):
    """PV-4, PV-5: a declared source above Conversation without a binding approves nothing; others are left alone."""
    value = None if source == "Empty" else 500
    affidavit = record(sworn("memo", "kept"), sworn("limit", value, source, binding=binding))
    if fires:
        row, _ = filed(always(declared_inputs=declared), affidavit=affidavit)
        assert row.status.value == "approved"
        return
    row, event = blocked(always(declared_inputs=declared, default_ttl=TTL * 2), affidavit=affidavit)
    assert row.expires_at == T0 + TTL * 2
    assert event == {
        "policy.id": "auto",
        "policy.version": "2.1.0",
        "blocked.reason": "unbound-declared-input",
        "reason": f"PV-4: limit carries a {source} tag with no binding, which the Standing Order relies on.",
        "provenance.field": "limit",
        "provenance.source": source,
    }


def test_one_bound_field_does_not_cover_another():
    """PV-4: each proposed field is looked at, not only the first."""
    affidavit = record(sworn("limit", 500, "External", binding=BOUND), sworn("memo", "x", "External"))
    _, event = blocked(always(declared_inputs=["External"]), affidavit=affidavit)
    assert event["provenance.field"] == "memo"


def test_only_the_claim_in_force_counts():
    """PV-4: a bound claim that was displaced does not bind the one that displaced it."""
    bound = sworn("limit", 500, "External", 0.5, binding=BOUND)
    chain = bound.provenance.merge(sworn("limit", 500, "External", 0.9).tag)
    affidavit = record(bound.model_copy(update={"provenance": chain}))
    blocked(always(declared_inputs=["External"]), affidavit=affidavit)


@pytest.mark.parametrize(
    ("score", "fires"), [(0, True), (1.999, True), (2, True), (2.0, True), (2.001, False), (3, False)]
)
def test_the_risk_score(score, fires):
    """GT-5: the host's score at or under the threshold fires; above it a reviewer is asked, with both numbers told."""
    policy = always(threshold=2, default_ttl=TTL * 2)
    if fires:
        row, desk = filed(policy, risk_scorer=lambda _: score)
        assert row.status.value == "approved"
        assert desk.events.only("standing-order.fired")["risk.score"] == score
        return
    row, event = blocked(policy, risk_scorer=lambda _: score)
    assert row.expires_at == T0 + TTL * 2
    assert event == {
        "policy.id": "auto",
        "policy.version": "2.1.0",
        "blocked.reason": "risk-above-threshold",
        "reason": "GT-5: the risk score is above the Standing Order's threshold.",
        "risk.score": float(score),
        "risk.threshold": 2,
    }


def test_the_guardrails_stand_in_their_order():
    """GT-5: mandatory-empty, then PV-4, then risk; once one has degraded the verdict the scorer is not called."""
    scored = []
    policy = always(declared_inputs=["External"], threshold=1)
    unbound, hole = sworn("memo", "x", "External"), empty("limit", mandatory=True)

    def reason(*fields):
        _, event = blocked(policy, affidavit=record(*fields), risk_scorer=lambda _: scored.append(1) or 9)
        return event["blocked.reason"]

    assert reason(unbound, hole) == "mandatory-field-empty"
    assert reason(unbound, sworn("limit", 5)) == "unbound-declared-input"
    assert scored == []
    assert reason(sworn("limit", 5)) == "risk-above-threshold"
    assert scored == [1]


SCORES = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "True": True,
    "False": False,
    "text": "0.1",
    "None": None,
    "a decimal": Decimal("0.1"),
    "a list": [0],
    "an integer beyond every double": 10**400,
}


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES.keys())
def test_a_score_is_a_finite_number(score):
    """GT-5: a scorer that returns anything else approves nothing and files nothing."""
    event = invalid(always(threshold=2), risk_scorer=lambda _: score)
    assert (event["option"], event["policy.id"]) == ("riskScorer", "auto")


def test_a_scorer_that_raises(caplog):
    """GT-5, DECISIONS 19: it is refused like a policy that raises, and its text goes to the log only."""

    def scorer(_):
        raise RuntimeError("scored 987654321")

    event = invalid(always(threshold=2), risk_scorer=scorer)
    assert event["option"] == "riskScorer"
    assert "987654321" not in event["reason"]
    assert "987654321" in caplog.text


def test_an_asynchronous_scorer():
    """DECISIONS 21: a scorer may be asynchronous; its number is compared, not its coroutine."""

    async def scorer(_):
        await asyncio.sleep(0)
        return 3

    blocked(always(threshold=2), risk_scorer=scorer)


@pytest.mark.parametrize("threshold", [float("nan"), True, "2", Decimal(2), [2]])
def test_a_threshold_is_a_number(threshold):
    """GT-5, DECISIONS 19: a threshold that cannot be compared is the policy's fault; nothing is approved by it."""
    event = invalid(FixedPolicy(Verdict.approve(threshold=threshold)), risk_scorer=lambda _: 1)
    assert event["option"] == "threshold"


def test_a_threshold_that_nobody_can_score():
    """GT-5, CV-1: a verdict that brings a threshold to a gate without a scorer approves nothing; the
    scorer is named.
    """
    event = invalid(FixedPolicy(Verdict.approve(threshold=2)))
    assert event["option"] == "threshold"
    assert "riskScorer" in event["reason"]


def test_the_guardrails_hold_for_any_policys_verdict():
    """REFERENCE 13: a policy in the host's own words is guarded exactly as a StandingOrder is."""
    policy = FixedPolicy(Verdict.approve(), id="auto", version="2.1.0", declared_inputs=("External",))
    blocked(policy, affidavit=record(sworn("limit", 500, "External")))
    blocked(policy, affidavit=record(sworn("memo", "x"), empty("limit", mandatory=True)))
    row, _ = filed(policy)
    assert row.attestation.by.to_json() == {"kind": "standing-order", "policyId": "auto", "version": "2.1.0"}


@pytest.mark.parametrize("verdict", [Verdict.confirm(), Verdict.refer(), Verdict.multi_party(["ana", "bo"], 2)])
def test_the_guardrails_are_for_standing_orders_alone(verdict):
    """GT-5, PV-4: a verdict that asks a person anyway is not degraded, and nothing is told of it."""
    policy = FixedPolicy(verdict, declared_inputs=("External",))
    affidavit = record(sworn("memo", "x", "External"), empty("limit", mandatory=True))
    row, desk = filed(policy, affidavit=affidavit)
    assert row.requirement == verdict.requirement
    assert desk.events.keys == ["affidavit.filed"]


def test_a_standing_order_without_a_version():
    """REFERENCE 10: an attestation names a policy version, or says that there is none."""
    row, _ = filed(FixedPolicy(Verdict.approve(), version=""))
    assert row.attestation.by.version == "unversioned"


# --- the policies that come along ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [StandingOrder, Referral, ReviewerConfirmation])
@pytest.mark.parametrize("answer", [1, "yes", [0], None, 0, "", object(), re.match("x", "x")])
def test_when_answers_true_or_false(make, answer):
    """DECISIONS 19: a condition that is merely truthy or falsy decides nothing; it is refused."""
    event = invalid(make(id="p", when=lambda _: answer))
    assert (event["policy.id"], event["option"]) == ("p", "evaluate")


@pytest.mark.parametrize("answer", [1, "yes", None])
def test_an_asynchronous_when_answers_true_or_false(answer):
    """DECISIONS 19: the same for a condition that has to be waited for."""

    async def when(_):
        await asyncio.sleep(0)
        return answer

    assert invalid(StandingOrder(id="p", when=when))["option"] == "evaluate"


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(("answer", "status"), [(True, "approved"), (False, "pending")])
def test_an_asynchronous_when(answer, status, how):
    """DECISIONS 21: an asynchronous condition is waited for, in both ways of calling."""

    async def when(request):
        await asyncio.sleep(0)
        return answer and request.tool_name == TOOL

    desk = Desk(StandingOrder(id="p", when=when))
    assert filed_by(how, desk).status.value == status


def test_a_condition_on_the_proposal():
    """GT-5: a Standing Order approves what its condition matches and leaves the rest to the next policy."""
    order = StandingOrder(id="small", when=lambda request: request.affidavit.values()["limit"] <= 100)
    small, _ = filed(order, affidavit=record(sworn("limit", 100)))
    large, _ = filed(order, affidavit=record(sworn("limit", 101)))
    assert (small.status.value, large.status.value) == ("approved", "pending")


def test_a_referral():
    """AZ-4: what a referral matches is filed with its level; this version blocks it."""
    row, _ = filed(Referral(id="credit", when=yes, reason="to the credit office", default_ttl=TTL * 2))
    assert (row.requirement.kind.value, row.blocked.level.value) == ("ReferralRequired", "ReferralRequired")
    assert row.presentation.gate_warnings[0] == "to the credit office"
    assert row.expires_at == T0 + TTL * 2


def test_a_confirmation():
    """AZ-4: a confirmation asks for everything unless it is told otherwise, and stops the chain where it matches."""
    everything = ReviewerConfirmation(id="all", reason="always")
    row, _ = filed(everything, always())
    assert (row.status.value, row.presentation.gate_warnings) == ("pending", ("always",))
    row, _ = filed(ReviewerConfirmation(id="some", when=no), always())
    assert row.status.value == "approved"


def test_what_a_standing_order_declares():
    """CV-1, GT-5: an order with a threshold declares one, zero included, and one without does not."""
    assert [always(threshold=level).declares_threshold for level in (None, 0, 2.5)] == [False, True, True]
    assert not Referral(id="r", when=yes).declares_threshold


def test_verdicts_in_words():
    """AZ-4: the four ways to make a verdict, each with its kind, deadline and reason."""
    ttl = timedelta(minutes=1)
    assert [
        Verdict.approve(ttl=ttl, threshold=2, reason="r"),
        Verdict.confirm(ttl=ttl, reason="r"),
        Verdict.refer(ttl=ttl, reason="r"),
    ] == [
        Verdict(STANDING_ORDER, ttl, 2, "r"),
        Verdict(Requirement(kind=ReviewRequirement.REVIEWER_CONFIRMATION), ttl, None, "r"),
        Verdict(Requirement(kind=ReviewRequirement.REFERRAL_REQUIRED), ttl, None, "r"),
    ]
    several = Verdict.multi_party(["ana", "bo"], 2, ttl=ttl, reason="r")
    assert several.requirement.to_json() == {"kind": "MultiParty", "approvers": ["ana", "bo"], "required": 2}
    assert (several.ttl, several.reason) == (ttl, "r")
