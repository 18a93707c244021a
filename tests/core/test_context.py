"""Who acts, for which tenant, in which turn."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest

from affiant_core.context import (
    ActContext,
    Member,
    Relay,
    Service,
    Turn,
    TurnContext,
    person_behind,
    require_act,
    require_turn,
)
from affiant_core.errors import RefusalCode, ValueRefused, WireupInvalid
from affiant_core.fabric import ContextFabric

ANA = Member("ana")
TURN = TurnContext("tenant-a", ANA, conversation_id="conv-1", turn=Turn("hello", "m-1"))


def test_principals():
    """RULES, Vocabulary: a principal is a member with an id, or a service with optional relay and asserted member."""
    assert (ANA.kind, ANA.id) == ("member", "ana")
    relayed = Service("relay-1", Relay("+94", "m-1"), "ana")
    assert (relayed.kind, relayed.relay.message_id, relayed.asserted_member) == ("service", "m-1", "ana")
    assert (Service("job").relay, Service("job").asserted_member) == (None, None)
    with pytest.raises(TypeError):
        Member("ana", kind="service")


@pytest.mark.parametrize(
    ("principal", "person"),
    [(ANA, "ana"), (Service("relay-1", Relay("+94", "m-1"), "ana"), "ana"), (Service("job"), "job")],
)
def test_the_person_behind(principal, person):
    """DK-1, withdraw: a record names the member, the member that a relay asserts, else the service."""
    assert person_behind(principal) == person


@pytest.mark.parametrize(
    "make",
    [
        lambda: Member(""),
        lambda: Member(None),
        lambda: Member(7),
        lambda: Service(""),
        lambda: Relay("", "m-1"),
        lambda: Relay("+94", ""),
        lambda: ActContext("", ANA),
        lambda: ActContext(None, ANA),
        lambda: ActContext("tenant-a", ANA, channel=""),
        lambda: TurnContext("tenant-a", ANA, conversation_id=""),
        lambda: TurnContext("", ANA, conversation_id="conv-1"),
    ],
)
def test_identifiers_are_text_that_is_not_empty(make):
    """CV-2: a context that does not say whose it is cannot be made."""
    with pytest.raises(ValueError, match="must be text that is not empty"):
        make()


@pytest.mark.parametrize("principal", ["ana", {"kind": "member", "id": "ana"}, object()])
def test_a_principal_is_checked_by_type(principal):
    """DECISIONS 12: the context is checked by type, never repaired."""
    with pytest.raises(TypeError, match="principal must be"):
        ActContext("tenant-a", principal)
    with pytest.raises(TypeError, match="principal must be"):
        TurnContext("tenant-a", principal, conversation_id="conv-1")


def test_a_turn_is_checked_by_type():
    """DECISIONS 12: a turn is a Turn and no look-alike."""
    with pytest.raises(TypeError, match="must be a Turn"):
        TurnContext("tenant-a", ANA, conversation_id="conv-1", turn={"utterance": "hi"})


def test_an_unresolved_principal():
    """RULES, Vocabulary: principal null means unresolved and is a context all the same."""
    assert TurnContext("tenant-a", None, conversation_id="conv-1").principal is None


def test_no_words_and_empty_words_differ():
    """PV-3, absent utterance: test absence, not emptiness."""
    assert Turn().utterance is None
    assert Turn("").utterance == ""


def test_a_turns_instant():
    """PV-3, DECISIONS 20: the turn's instant is in UTC to the millisecond; a naive one is refused."""
    moment = datetime(2026, 9, 4, 11, 0, 0, 1999, tzinfo=timezone(timedelta(hours=2)))
    assert Turn(at=moment).at == datetime(2026, 9, 4, 9, 0, 0, 1000, tzinfo=UTC)
    assert Turn().at.tzinfo is UTC
    with pytest.raises(ValueRefused, match=r"Turn\.at"):
        Turn(at=datetime(2026, 9, 4))


def test_contexts_are_frozen():
    """GT-2: a context is passed through, never changed on the way."""
    for context, member in ((TURN, "tenant_id"), (ANA, "id"), (TURN.turn, "utterance")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(context, member, "other")


def test_each_turn_has_a_fabric_of_its_own():
    """GT-2; seed, "Entities": the fabric is scoped and never shared between turns."""
    again = TurnContext("tenant-a", ANA, conversation_id="conv-1", turn=TURN.turn)
    assert isinstance(again.fabric, ContextFabric)
    assert again.fabric is not TURN.fabric
    assert again == TURN
    assert hash(again) == hash(TURN)
    assert "fabric" not in repr(TURN)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "was given nothing"),
        ({"tenant_id": "tenant-a"}, "was given a dict"),
        ("tenant-a", "was given a str"),
        (TurnContext, "was given a type"),
        ((TURN,), "was given a tuple"),
        (ActContext("tenant-a", ANA), "was given a ActContext"),
    ],
)
def test_a_seam_refuses_what_is_no_turn_context(found, words):
    """CV-2: no or malformed context is wireup-invalid; a complete one in the wrong wrapper is refused too."""
    with pytest.raises(
        WireupInvalid, match=f"^wireup-invalid: CV-2: the seam needs a TurnContext and {words}"
    ) as refused:
        require_turn(found, "the seam")
    assert refused.value.code is RefusalCode.WIREUP_INVALID


def test_a_context_passes_through():
    """CV-2: the context is passed through, never remembered; a turn's context may also act on the Docket."""
    act = ActContext("tenant-a", ANA, channel="desk")
    assert require_turn(TURN, "the seam") is TURN
    assert require_act(TURN, "decide") is TURN
    assert require_act(act, "decide") is act
    for found in (None, {}, "tenant-a"):
        with pytest.raises(WireupInvalid, match="CV-2: decide needs an ActContext or a TurnContext"):
            require_act(found, "decide")
