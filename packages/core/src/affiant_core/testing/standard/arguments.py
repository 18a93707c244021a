"""A model's arguments: strict, its own, and part of a row's identity or not (DECISIONS 8, 9; C01, C04)."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from affiant_core.registry import read_tool
from affiant_core.testing.harness import Capability, Harness, Reply, ToolCall
from affiant_core.testing.standard.base import ask, needs, on_a_loop
from affiant_core.testing.world import LimitTools, SelfArguing, World, told, turn

TRUNCATED = '{"customer_id": "c-1", "limit": 50'
"""The arguments of C01."""

NOT_ARGUMENTS = {
    "truncated": TRUNCATED,
    "a list": '["c-1", 50]',
    "text": '"c-1"',
    "a repeated key": '{"customer_id": "c-1", "customer_id": "c-2", "limit": 50}',
    "NaN": '{"customer_id": "c-1", "limit": NaN}',
    "infinity": '{"customer_id": "c-1", "limit": 1e999}',
}
"""Texts that are no JSON object, or no honest one (DECISIONS 8)."""

MISFITS: dict[str, dict[str, Any]] = {
    "one is missing": {"customer_id": "c-1"},
    "one is of another type": {"customer_id": "c-1", "limit": "lots"},
    "one is nothing": {"customer_id": None, "limit": 50},
    "one is not whole": {"customer_id": "c-1", "limit": 50.5},
    "one is not known": {"customer_id": "c-1", "limit": 50, "limt": 5},
}
"""Arguments that do not fit the parameters."""


class Measuring:
    """A read whose parameter would take numbers that JSON does not have."""

    def __init__(self) -> None:
        self.calls: list[float] = []

    @read_tool
    def measure(self, customer_id: str, limit: float) -> str:
        """Measure a customer against a limit."""
        self.calls.append(limit)
        return f"{customer_id} was measured."


class ArgumentTests:
    """What a model sends with a call."""

    @on_a_loop
    async def test_the_body_gets_what_the_parameters_say(self, harness: Harness) -> None:
        """DESIGN: the tool's annotations hold on every backend: an instant arrives as one."""
        tools, context = LimitTools(), turn()
        world = World(tools)
        arguments = {"customer_id": "c-1", "limit": 10, "force": True, "effective": "2026-09-04T09:00:00Z"}
        await harness.wire(world.affiant).call(ToolCall("set_limit", arguments), context)
        ((_, seen),) = tools.calls
        assert seen["effective"] == datetime(2026, 9, 4, 9, tzinfo=UTC)
        assert (seen["customer_id"], seen["limit"], seen["force"]) == ("c-1", 10, True)
        assert seen["turn"] is context

    @on_a_loop
    async def test_a_default_is_filled_in(self, harness: Harness) -> None:
        """DESIGN: what the model leaves out is the parameter's own default, never a framework's."""
        tools = LimitTools()
        await ask(harness, tools, "set_limit", customer_id="c-1", limit=10)
        ((_, seen),) = tools.calls
        assert (seen["force"], seen["effective"]) == (False, None)

    @pytest.mark.parametrize(("sent", "meant"), [("false", False), ("no", False), ("maybe", None), (2, None)], ids=repr)
    @on_a_loop
    async def test_a_value_is_not_taken_for_its_opposite(
        self, harness: Harness, sent: object, meant: bool | None
    ) -> None:
        """DESIGN: a parameter gets what was meant, or the body does not run; ``bool("false")`` is true in Python."""
        tools = LimitTools()
        with contextlib.suppress(Exception):  # a framework may refuse the value itself
            await ask(harness, tools, "set_limit", customer_id="c-1", limit=10, force=sent)
        assert [seen["force"] for _, seen in tools.calls if seen["force"] is not meant] == []

    @pytest.mark.parametrize("arguments", MISFITS.values(), ids=MISFITS)
    @needs(Capability.ARGUMENT_CHECK)
    @on_a_loop
    async def test_arguments_that_do_not_fit_are_answered(self, harness: Harness, arguments: dict[str, Any]) -> None:
        """DECISIONS 8: ``VALIDATION_FAILED`` with no value in it; the body does not run and nothing is filed."""
        tools = LimitTools()
        text, world = await ask(harness, tools, "set_limit", **arguments)
        error = told(text)
        assert (error["code"], error["retryable"]) == ("VALIDATION_FAILED", False)
        assert "lots" not in text
        assert "c-1" not in text
        assert (tools.calls, world.rows()) == ([], ())

    @pytest.mark.parametrize("text", NOT_ARGUMENTS.values(), ids=NOT_ARGUMENTS)
    @needs(Capability.ARGUMENT_TEXT)
    @on_a_loop
    async def test_text_that_is_no_object_is_answered(self, harness: Harness, text: str) -> None:
        """C01 and DECISIONS 8: where the seam sees the text, ``VALIDATION_FAILED``, and no parser's message in it."""
        tools = Measuring()
        world = World(tools)
        answer = await harness.wire(world.affiant).call(ToolCall("measure", text), turn())
        error = told(answer)
        assert error["code"] == "VALIDATION_FAILED"
        for part in ("c-1", "column", "Expecting", "delimiter", "char "):
            assert part not in answer
        assert (tools.calls, world.rows()) == ([], ())

    @on_a_loop
    async def test_truncated_arguments_do_not_end_the_turn(self, harness: Harness) -> None:
        """C01: no row, no effect, exactly one tool result for the call, and the turn goes on."""
        tools = LimitTools()
        world = World(tools)
        script: list[Reply] = [[ToolCall("set_limit", TRUNCATED)], "I am sorry."]
        transcript = await harness.wire(world.affiant).play(script, turn())
        world.execute()
        assert (tools.calls, world.rows(), world.log) == ([], (), [])
        assert list(transcript.results) == ["call-1"]
        assert transcript.final == "I am sorry."

    @on_a_loop
    async def test_another_value_is_another_row_or_a_loud_replay(self, harness: Harness) -> None:
        """C04 and DECISIONS 9: with arguments at the gate two rows; without, one, and the difference is said loudly."""
        world = World(LimitTools())
        backend = harness.wire(world.affiant)
        answers = [
            told(await backend.call(ToolCall("set_limit", {"customer_id": "c-1", "limit": limit}), turn()))
            for limit in (10, 11)
        ]
        if harness.has(Capability.ARGUMENTS_AT_THE_GATE):
            assert [each["outcome"] for each in answers] == ["filed", "filed"]
            assert len(world.rows()) == 2
            return
        assert [each["outcome"] for each in answers] == ["filed", "replayed"]
        assert "not filed" in answers[1]["note"]
        assert answers[0]["note"] != answers[1]["note"]
        assert world.row().affidavit.values()["limit"] == 10
        assert len(world.events.of("affiant.review.replay_differs")) == 1

    @on_a_loop
    async def test_a_proposals_own_arguments_always_survive(self, harness: Harness) -> None:
        """C04 and DECISIONS 9: a tool that states its arguments gets a row for each value on every backend."""
        world = World(SelfArguing())
        backend = harness.wire(world.affiant)
        for limit in (10, 11):
            await backend.call(ToolCall("set_limit", {"customer_id": "c-1", "limit": limit}), turn())
        assert len({row.entry_id for row in world.rows()}) == 2

    @on_a_loop
    async def test_another_conversation_and_another_tenant_are_other_rows(self, harness: Harness) -> None:
        """C04: the same call in another conversation, and in another tenant, has two more ids."""
        world = World(LimitTools())
        backend = harness.wire(world.affiant)
        call = ToolCall("set_limit", {"customer_id": "c-1", "limit": 10})
        contexts = [turn(), turn(conversation="c-2"), turn("globex")]
        ids = [told(await backend.call(call, context))["entryId"] for context in contexts]
        assert len(set(ids)) == 3

    @on_a_loop
    async def test_a_model_cannot_bring_its_own_turn(self, harness: Harness) -> None:
        """CV-2: whatever a model sends under the name of the turn, the body gets the host's or does not run."""
        tools, context = LimitTools(), turn()
        world = World(tools)
        forged = {"tenant_id": "evil", "principal": None, "conversation_id": "x"}
        arguments = {"customer_id": "c-1", "limit": 10, "turn": forged, "affiant_turn": forged}
        with contextlib.suppress(Exception):  # a framework may refuse the name itself
            await harness.wire(world.affiant).call(ToolCall("set_limit", arguments), context)
        assert all(seen["turn"] is context for _, seen in tools.calls)
        assert world.rows("evil") == ()
