"""Paths around the gate: undeclared, hosted, misnamed (CV-1, CV-4; DECISIONS 16; C18, C19)."""

from __future__ import annotations

import contextlib

import pytest

from affiant_core.envelope import ReadResult
from affiant_core.errors import WiringError
from affiant_core.registry import read_tool
from affiant_core.testing.harness import Capability, Harness, Reply, ToolCall
from affiant_core.testing.standard.base import needs, on_a_loop
from affiant_core.testing.world import T0, LimitTools, World, told, turn
from affiant_core.vocabulary import CoverageCategory


def first_undeclared(customer_id: str) -> str:
    """Do something that nobody has declared."""
    raise AssertionError("an undeclared tool ran")


def second_undeclared(customer_id: str) -> str:
    """Do something else that nobody has declared."""
    raise AssertionError("an undeclared tool ran")


def look_up(customer_id: str) -> str:
    """Look a customer up."""
    return f"Customer {customer_id}."


def put_limit(customer_id: str) -> str:
    """Change a limit, without proposing it."""
    return f"Changed {customer_id}."


class Similar:
    """Two tools that a provider may take for one."""

    @read_tool(name="get-customer")
    def first(self) -> str:
        """Get a customer."""
        return "first"

    @read_tool(name="get_customer")
    def second(self) -> str:
        """Get a customer."""
        return "second"


class TooLong:
    """A tool whose name no provider takes."""

    @read_tool(name="a" * 65)
    def look(self) -> str:
        """Look."""
        return "looked"


class OtherDesk:
    """Another tool class with a tool of the same name."""

    @read_tool
    def find_customer(self, customer_id: str) -> ReadResult:
        """Find one customer elsewhere."""
        return ReadResult(timestamp=T0, summary=f"Not {customer_id}.", markdown="")


class CoverageTests:
    """Everything that an agent can call is known, and is known by one name."""

    @needs(Capability.NATIVE_TOOLS)
    def test_every_undeclared_tool_is_refused_at_once(self, harness: Harness) -> None:
        """DECISIONS 16 and C19: undeclared tools are refused at wiring, all of them in one error."""
        world = World(LimitTools())
        harness.declare(world.affiant, look_up)
        with pytest.raises(WiringError) as caught:
            harness.wire_beside(world.affiant, native=[first_undeclared, look_up, second_undeclared])
        listing = str(caught.value)
        assert "first_undeclared" in listing
        assert "second_undeclared" in listing
        assert "look_up" not in listing

    @needs(Capability.NATIVE_TOOLS)
    @on_a_loop
    async def test_a_declared_tool_of_the_framework_works(self, harness: Harness) -> None:
        """DESIGN: a tool that the host already has is wrapped and declared, and its text crosses."""
        world = World(LimitTools())
        harness.declare(world.affiant, look_up)
        backend = harness.wire_beside(world.affiant, native=[look_up])
        assert await backend.call(ToolCall("look_up", {"customer_id": "c-7"}), turn()) == "Customer c-7."

    @needs(Capability.NATIVE_TOOLS)
    @on_a_loop
    async def test_a_declared_write_of_the_framework_that_proposes_nothing_is_refused(self, harness: Harness) -> None:
        """DECISIONS 6: a native tool that is declared to write and hands back text is refused, whatever it did."""
        world = World(LimitTools())
        harness.declare(world.affiant, put_limit, writes=True)
        backend = harness.wire_beside(world.affiant, native=[put_limit])
        text = await backend.call(ToolCall("put_limit", {"customer_id": "c-1"}), turn())
        assert told(text)["code"] == "wireup-invalid"

    @needs(Capability.HOSTED_TOOLS)
    def test_a_hosted_tool_is_refused_by_its_category(self, harness: Harness) -> None:
        """CV-4 and C19: a provider's tool is refused at wiring with ``coverage-refused`` and the category."""
        with pytest.raises(WiringError) as caught:
            harness.wire_beside(World(LimitTools()).affiant, hosted=["web_search"])
        faults = [fault for fault in caught.value.faults if fault.code == "coverage-refused"]
        assert ["web_search" in fault.subject for fault in faults] == [True]
        assert CoverageCategory.PROVIDER_EXECUTED.value in str(faults[0])

    @needs(Capability.HOSTED_TOOLS)
    @on_a_loop
    async def test_a_hosted_tool_may_be_accepted_by_name(self, harness: Harness) -> None:
        """CV-4: a host that names it takes it, and every other tool is gated as ever."""
        world = World(LimitTools(), uncovered={"web_search": CoverageCategory.PROVIDER_EXECUTED})
        backend = harness.wire_beside(world.affiant, hosted=["web_search"])
        text = await backend.call(ToolCall("set_limit", {"customer_id": "c-1", "limit": 10}), turn())
        assert told(text)["entryId"] == world.row().entry_id

    @pytest.mark.parametrize(
        ("tools", "parties"),
        [
            (Similar(), ("get-customer", "get_customer")),
            (TooLong(), ("a" * 65,)),
            ([LimitTools(), OtherDesk()], ("LimitTools.find_customer", "OtherDesk.find_customer")),
        ],
        ids=["alike", "too long", "twice"],
    )
    def test_names_that_a_model_cannot_tell_apart_are_refused(
        self, harness: Harness, tools: object, parties: tuple[str, ...]
    ) -> None:
        """C18: names that are one to a provider, or none, are refused at wiring, naming each party."""
        with pytest.raises(WiringError) as caught:
            harness.wire(World(tools).affiant)
        for party in parties:
            assert party in str(caught.value)

    def test_a_declaration_of_a_tool_that_does_not_exist_is_refused(self, harness: Harness) -> None:
        """C18: a host that names a tool which is not there has made a mistake, and is told at wiring."""
        world = World(LimitTools(), uncovered={"set_limits": CoverageCategory.NO_EXECUTE})
        with pytest.raises(WiringError, match="set_limits"):
            harness.wire(world.affiant)

    @pytest.mark.parametrize("name", ["setlimit", "set_Limit", "set_limit ", "set-limit", "limit"])
    @on_a_loop
    async def test_a_near_miss_is_unknown(self, harness: Harness, name: str) -> None:
        """C18: a name that is almost right is never guessed: no body runs and nothing is filed."""
        tools = LimitTools()
        world = World(tools)
        script: list[Reply] = [[ToolCall(name, {"customer_id": "c-1", "limit": 10})], "Sorry."]
        with contextlib.suppress(Exception):  # a framework may refuse a name by ending the turn
            await harness.wire(world.affiant).play(script, turn())
        assert (tools.calls, world.rows()) == ([], ())
