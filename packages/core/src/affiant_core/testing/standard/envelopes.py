"""The three kinds of envelope across a seam, and what a tool may return besides (seed; DECISIONS 5 to 7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from affiant_core.envelope import EntityRef, ReadResult, ToolError
from affiant_core.testing.harness import Harness, ToolCall
from affiant_core.testing.standard.base import ask, ask_now, on_a_loop
from affiant_core.testing.world import (
    RECEIPT,
    SECRET,
    T0,
    Answering,
    AsyncLimitTools,
    LimitTools,
    World,
    found,
    proposed,
    told,
    turn,
)
from affiant_core.vocabulary import ReviewStatus


class Colour(Enum):
    """An enumeration, for the table of values."""

    RED = "red"


@dataclass
class Point:
    """A dataclass, for the table of values."""

    x: int


class Model(BaseModel):
    """A pydantic model, for the table of values."""

    x: int


SPELLED: dict[str, tuple[object, object]] = {
    "aware datetime": (datetime(2026, 9, 4, 11, tzinfo=timezone(timedelta(hours=2))), "2026-09-04T09:00:00.000Z"),
    "date": (date(2026, 9, 4), "2026-09-04"),
    "time": (time(9, 30), "09:30:00"),
    "decimal": (Decimal("10.10"), "10.10"),
    "negative zero": (-0.0, 0),
    "enum": (Colour.RED, "red"),
    "uuid": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "text": ("é🚀", "é🚀"),
    "tuple": ((1, 2), [1, 2]),
    "nothing": (None, None),
}
"""Values of a read's fields and how they cross (C16)."""

UNSPELLABLE: dict[str, object] = {
    "naive datetime": datetime(2026, 9, 4),  # the point of it
    "decimal NaN": Decimal("NaN"),
    "NaN": float("nan"),
    "huge integer": 2**70,
    "bytes": b"\x00",
    "lone surrogate": "\ud800",
    "object": object(),
    "number key": {1: "one"},
}
"""Values with no honest spelling (C16, DECISIONS 20)."""

OTHERS: dict[str, object] = {
    "nothing": None,
    "text": "Done.",
    "empty text": "",
    "a dictionary": {"limit": 10},
    "a list": [1, 2],
    "a number": 7,
    "a read's envelope": found(),
}
"""What a declared write hands back when it is neither a proposal nor an error (DECISIONS 6)."""


class Lazy(Mapping[str, object]):
    """A result that is fetched when somebody looks, and cannot be."""

    def __getitem__(self, key: str) -> object:
        """Fail."""
        raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    def __iter__(self) -> Iterator[str]:
        """Fail."""
        raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    def __len__(self) -> int:
        """Promise something."""
        return 1


PLAIN: dict[str, tuple[object, str]] = {
    "a dictionary": ({"limit": Decimal("10.10"), "name": "Zoë 🚀"}, '{"limit":"10.10","name":"Zoë 🚀"}'),
    "a list": ([1, date(2026, 9, 4), None], '[1,"2026-09-04",null]'),
    "a list of one": (["b"], '["b"]'),
    "a list of nothing": ([None], "[null]"),
    "a text block": ({"type": "text", "text": "b"}, '{"type":"text","text":"b"}'),
    "a number": (7, "7"),
    "a truth": (True, "true"),
    "nothing": (None, ""),
    "a model": (Model(x=1), '{"x":1}'),
}
"""Plain data and how it crosses (DECISIONS 20)."""

HIDING: dict[str, Any] = {
    "a list": [proposed()],
    "two in a list": [proposed(), proposed("c-2")],
    "beside text": ["Done.", proposed()],
    "a dictionary": {"answer": proposed()},
    "its text in a list": ["Done.", proposed().to_json_string()],
    "its text alone in a list": [proposed().to_json_string()],
    "beside many other things": [proposed(), *({"at": at} for at in range(6_000))],
    "behind a kind of its own": {"kind": "search", "draft": proposed()},
    "the record alone": proposed().envelope,
}
"""Places where a proposal hides in what a read returns (CV-2)."""


class EnvelopeTests:
    """What crosses the seam, and as what."""

    @pytest.mark.parametrize("tools", [LimitTools, AsyncLimitTools])
    @on_a_loop
    async def test_a_read_crosses_as_its_json(self, harness: Harness, tools: type[LimitTools]) -> None:
        """Seed and C16: a read's envelope reaches the model as its JSON, letter for letter, nothing escaped."""
        text, world = await ask(harness, tools(), "find_customer", customer_id="c-1")
        assert text == found().to_json_string()
        assert "Zoë 🚀" in text
        assert world.rows() == ()

    @pytest.mark.parametrize("tools", [LimitTools, AsyncLimitTools])
    @on_a_loop
    async def test_a_proposal_becomes_a_receipt(self, harness: Harness, tools: type[LimitTools]) -> None:
        """Rule 2 and DECISIONS 10: the proposal is on the Docket, and the model gets a receipt without its values."""
        text, world = await ask(harness, tools(), "set_limit", customer_id="c-1", limit=10)
        receipt, row = told(text), world.row()
        assert sorted(receipt) == RECEIPT
        assert (receipt["entryId"], receipt["outcome"], receipt["status"]) == (row.entry_id, "filed", "pending")
        assert receipt["fields"] == ["limit", "memo"]
        assert SECRET not in text
        assert row.affidavit.values() == {"limit": 10, "memo": SECRET}
        assert (row.status, row.tool_name, row.requested_by) == (ReviewStatus.PENDING, "set_limit", "filer")
        assert world.log == []

    @pytest.mark.parametrize("name", ["look", "change"])
    @pytest.mark.parametrize("as_text", [False, True])
    def test_a_returned_error_crosses(self, harness: Harness, name: str, as_text: bool) -> None:
        """DECISIONS 7: any tool that fails returns an error; the model gets its own code, and nothing is filed."""
        error = ToolError(tool_name=name, timestamp=T0, code="CUSTOMER_GONE", message="Gone.", retryable=True)
        tools = Answering(error.to_json_string() if as_text else error)
        text, world = ask_now(harness, tools, name)
        assert text == error.to_json_string()
        assert (tools.count, world.rows()) == (1, ())

    def test_an_envelope_and_its_text_are_one(self, harness: Harness) -> None:
        """DECISIONS 5: a tool may return the envelope or its JSON text; the model reads the same."""
        texts = {ask_now(harness, Answering(each), "look")[0] for each in (found(), found().to_json_string())}
        assert texts == {found().to_json_string()}

    def test_a_proposals_text_is_filed_like_the_proposal(self, harness: Harness) -> None:
        """DECISIONS 5: text that is a proposal is one."""
        text, world = ask_now(harness, Answering(proposed().to_json_string()), "change")
        assert told(text)["entryId"] == world.row().entry_id
        assert SECRET not in text

    def test_a_proposal_of_a_declared_read_is_filed(self, harness: Harness) -> None:
        """Rule 2: a proposal is gated whatever its tool was declared as."""
        text, world = ask_now(harness, Answering(proposed()), "look")
        assert told(text)["entryId"] == world.row().entry_id

    @pytest.mark.parametrize("text", ["Done.", "", '{"kind":"Write","envelope":{}}', "{broken"], ids=repr)
    def test_text_that_is_no_envelope_crosses_untouched(self, harness: Harness, text: str) -> None:
        """DECISIONS 4 and 5: from a read, whatever is no envelope is data and crosses as it is."""
        assert ask_now(harness, Answering(text), "look")[0] == text

    @pytest.mark.parametrize(("data", "text"), PLAIN.values(), ids=PLAIN)
    def test_plain_data_of_a_read_crosses_as_its_json(self, harness: Harness, data: object, text: str) -> None:
        """DECISIONS 5 and 20: what a host's own read returns besides is data, in one spelling on every backend."""
        assert ask_now(harness, Answering(data), "look")[0] == text

    def test_plain_data_that_json_cannot_spell_is_an_error(self, harness: Harness) -> None:
        """DECISIONS 20: never a Python repr; the error names the place."""
        text, _ = ask_now(harness, Answering({"customer": {"since": object()}}), "look")
        error = told(text)
        assert (error["code"], error["toolName"]) == ("VALIDATION_FAILED", "look")
        assert "result.customer.since" in error["message"]
        assert "object at" not in text

    @pytest.mark.parametrize("name", ["look", "change"])
    def test_a_result_that_raises_when_it_is_read_is_an_error(
        self, harness: Harness, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C02: what a lazy result raises reaches the host's log, and neither the model nor the framework."""
        caplog.set_level(logging.ERROR)
        text, world = ask_now(harness, Answering(Lazy()), name)
        assert told(text)["kind"] == "error"
        assert "postgres" not in text
        assert name == "change" or "postgres" in caplog.text  # of a write nothing but a proposal is looked at
        assert world.rows() == ()

    @pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
    def test_a_write_that_proposes_nothing_is_refused(self, harness: Harness, other: object) -> None:
        """DECISIONS 6: a declared write that hands back anything else is refused, null and empty results included."""
        text, world = ask_now(harness, Answering(other), "change")
        refusal = told(text)
        assert (refusal["kind"], refusal["code"], refusal["retryable"]) == ("error", "wireup-invalid", False)
        assert world.rows() == ()

    @pytest.mark.parametrize("name", ["look", "change"])
    @pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
    def test_a_proposal_does_not_hide(self, harness: Harness, name: str, hiding: Any) -> None:
        """CV-2: a proposal inside something else reaches neither the model nor the Docket unreviewed."""
        text, world = ask_now(harness, Answering(hiding), name)
        assert SECRET not in text
        assert (told(text)["kind"], told(text)["code"]) == ("error", "wireup-invalid")
        assert world.rows() == ()

    @pytest.mark.parametrize(("value", "spelling"), SPELLED.values(), ids=SPELLED)
    def test_the_table_of_values(self, harness: Harness, value: object, spelling: object) -> None:
        """C16: one table of values holds on every backend."""
        text, _ = ask_now(harness, _Reading(value), "look")
        assert told(text)["entities"][0]["fields"] == {"value": spelling}

    @pytest.mark.parametrize("value", UNSPELLABLE.values(), ids=UNSPELLABLE)
    def test_what_has_no_spelling_is_an_error_that_names_its_place(self, harness: Harness, value: object) -> None:
        """C16: what JSON cannot say honestly is an error with the field's path, and never a Python repr."""
        text, _ = ask_now(harness, _Reading(value), "look")
        error = told(text)
        assert (error["kind"], error["code"]) == ("error", "VALIDATION_FAILED")
        assert "value" in error["message"]
        assert repr(value) not in text

    def test_a_huge_result_is_cut_and_says_so(self, harness: Harness) -> None:
        """C17: the text stays valid JSON under the ceiling, never cut inside a character, and tells what is left."""
        entities = tuple(
            EntityRef(entity_type="Customer", entity_id=f"c-{at}", display_name="Zoë 東京") for at in range(10_000)
        )
        huge = ReadResult(timestamp=T0, summary="All.", markdown="東京🚀" * 500_000, entities=entities)
        text, world = ask_now(harness, Answering(huge), "look")
        assert len(text.encode()) <= world.affiant.result_ceiling
        cut = told(text)
        assert cut["kind"] == "read"
        assert f"of {len(entities)} entities" in cut["summary"]
        assert huge.markdown.startswith(cut["markdown"])

    def test_a_host_may_let_the_model_read_the_proposal(self, harness: Harness) -> None:
        """DECISIONS 10: with ``model_view="proposal"`` the model gets the filed envelope instead of a receipt."""
        text, world = ask_now(harness, Answering(proposed()), "change", model_view="proposal")
        shown = told(text)
        assert (shown["kind"], shown["toolName"]) == ("write", world.row().tool_name)
        assert SECRET in text

    @on_a_loop
    async def test_the_host_sees_a_call_from_within(self, harness: Harness) -> None:
        """DESIGN: a host's own filter stands around every call and is handed the tool, the turn and the result."""
        seen: list[Any] = []

        async def watch(invocation: Any, call_next: Any) -> None:
            await call_next()
            seen.append((invocation.tool_name, invocation.turn, invocation.tool_executed))

        world, context = World(LimitTools(), filters=[watch]), turn()
        await harness.wire(world.affiant).call(ToolCall("find_customer", {"customer_id": "c-1"}), context)
        ((name, given, executed),) = seen
        assert (name, executed) == ("find_customer", True)
        assert given is context


class _Reading:
    """A read of one entity with one field."""

    def __init__(self, value: object) -> None:
        self.value = value

    def look(self) -> ReadResult:
        """Look something up."""
        entity = EntityRef(entity_type="Thing", entity_id="t-1", display_name="T", fields={"value": self.value})
        return ReadResult(timestamp=T0, summary="Found.", markdown="", entities=(entity,))
