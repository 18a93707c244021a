"""Who may act, and whom a record may name."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import fields

import pytest
from support.gate import MACHINES, Desk, act, asking, member, no, record, relayed, turn, yes

from affiant_core.authority import Approve, AuthorizationRequest, Reject, attestor_for, deny_all, four_eyes
from affiant_core.context import Service, person_behind
from affiant_core.docket.model import MemberAttestor, RelayedAttestor
from affiant_core.errors import DecisionUnauthorized


def asked(principal, what="approve", requested_by="filer"):
    row = Desk().file().entry.model_copy(update={"requested_by": requested_by})
    return AuthorizationRequest(what, principal, row)


def test_a_member_attests_as_a_member():
    """AZ-1: a person whom the host has verified attests under their own name."""
    assert attestor_for(member("ana")) == MemberAttestor(id="ana")


def test_a_service_attests_only_what_it_passes_on():
    """AZ-1, AZ-3: with both the person and the message a service attests member-via-relay, naming itself as the
    relay.
    """
    assert attestor_for(relayed("ana")) == RelayedAttestor(
        member_id="ana",
        relay={"principal": "whatsapp-relay", "channelIdentity": "+94770000000", "messageId": "wamid-1"},
    )


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_a_machine_never_attests_as_a_person(machine):
    """AZ-3: lacking the person or the message a service attests nothing at all, and never as a member."""
    assert attestor_for(machine) is None


@pytest.mark.parametrize("stranger", [None, "ana", {"kind": "member", "id": "ana"}, object()])
def test_nothing_else_attests(stranger):
    """AZ-1: what cannot be attributed to anybody is not attested."""
    assert attestor_for(stranger) is None


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        (member("ana"), "ana"),
        (relayed("ana"), "ana"),
        (Service("svc"), "svc"),
        (Service("svc", asserted_member=""), "svc"),
    ],
)
def test_the_person_behind_a_principal(principal, name):
    """DK-1, AZ-4: a record names the member, or the member that a relay asserts, and else the service itself."""
    assert person_behind(principal) == name


def test_deny_all():
    """AZ-2: the port that stands in when a host gives none allows nothing."""
    desk = Desk(authorize=deny_all)
    entry_id = desk.row()
    for decision in (Approve(), Reject()):
        with pytest.raises(DecisionUnauthorized):
            desk.gate.decide.sync(entry_id, decision, act("ana"))
    assert desk.stored(entry_id).status.value == "pending"


@pytest.mark.parametrize("who", [member("filer"), relayed("filer"), Service("filer")])
def test_four_eyes_refuses_the_requester(who):
    """C12: nobody approves what their own turn filed, through a relay or otherwise, whatever the host's port says."""
    assert four_eyes(yes)(asked(who)) is False


@pytest.mark.parametrize("what", ["reject", "report", "resubmit"])
def test_four_eyes_is_about_approving(what):
    """C12: the requester may turn down, report or resubmit her own row if the host's port allows it."""
    assert four_eyes(yes)(asked(member("filer"), what)) is True
    assert four_eyes(no)(asked(member("filer"), what)) is False


@pytest.mark.parametrize("port", [yes, no])
def test_four_eyes_asks_the_host_about_everybody_else(port):
    """C12, AZ-2: four eyes only takes away; for anybody but the requester the host's own port decides."""
    assert four_eyes(port)(asked(member("ana"))) is port(None)


def test_four_eyes_needs_to_know_whose_row_it_is():
    """C12: a row that nobody is known to have asked for might be the approver's own, so nobody approves it."""
    assert four_eyes(yes)(asked(member("ana"), requested_by=None)) is False


def test_four_eyes_over_an_asynchronous_port():
    """C12, DECISIONS 21: the host's port may be asynchronous; the requester is refused without asking it."""

    async def port(_):
        await asyncio.sleep(0)
        return True

    desk = Desk(authorize=four_eyes(port))
    entry_id = desk.row()
    with pytest.raises(DecisionUnauthorized):
        asyncio.run(desk.gate.decide(entry_id, Approve(), act("filer")))
    assert asyncio.run(desk.gate.decide(entry_id, Approve(), act("ana"))).status.value == "approved"


def test_four_eyes_on_a_row_of_several():
    """C12, AZ-4: the requester cannot be one of the approvers either."""
    desk = Desk(asking("filer", "ana", "bo", required=2), authorize=four_eyes(yes))
    entry_id = desk.row()
    with pytest.raises(DecisionUnauthorized):
        desk.approve(entry_id, "filer")
    desk.approve(entry_id, "ana")
    assert desk.approve(entry_id, "bo").status.value == "approved"


def test_nothing_in_a_decision_names_who_decides():
    """C12, AZ-3: there is no parameter through which a caller could name whose signature a decision is."""
    assert [field.name for field in fields(Approve)] == ["amendments", "reason"]
    assert [field.name for field in fields(Reject)] == ["reason"]
    assert list(inspect.signature(Desk().gate.decide.__wrapped__).parameters)[2:] == ["entry_id", "decision", "context"]


def test_the_request_shows_the_port_what_it_needs():
    """AZ-2, C12: the port sees who asks, for what, and the whole row, with the requester on it."""
    seen = []
    desk = Desk(authorize=lambda request: seen.append(request) or True)
    entry_id = desk.row(record(), turn("rosa"))
    desk.approve(entry_id, "ana")
    (request,) = seen
    assert (request.act, request.principal, request.entry.requested_by) == ("approve", member("ana"), "rosa")
    assert request.entry.affidavit.values() == {"limit": 500, "memo": "kept"}
