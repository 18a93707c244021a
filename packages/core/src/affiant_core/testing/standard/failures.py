"""What goes wrong in a tool: mapped, retried once where safe, never told in its own words (DECISIONS 8, 14, 15)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from affiant_core.envelope import ToolError
from affiant_core.filters.extraction import ContextExtractor, Extraction
from affiant_core.filters.failures import ErrorRule
from affiant_core.testing.harness import Harness, ToolCall
from affiant_core.testing.standard.base import ask_now, on_a_loop
from affiant_core.testing.world import T0, Answering, World, found, told, turn

LEAK = "db postgres://svc:pw@10.0.0.5/prod refused"
"""What an exception of C02 says."""


class CustomerGoneError(Exception):
    """An exception of the host's own."""


class BrokenExtractor(ContextExtractor):
    """An extractor that fails after the tool has executed."""

    def matches_tool(self, tool_name: str) -> bool:
        """Match every tool."""
        return True

    def extract(self, extraction: Extraction) -> None:
        """Fail."""
        raise RuntimeError(LEAK)


NAMES = pytest.mark.parametrize("name", ["look", "look_later"])


class FailureTests:
    """A failing body, on every backend."""

    @NAMES
    def test_no_exception_text_reaches_the_model(
        self, harness: Harness, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C02, first: an error, not retryable, with none of the exception in it, and all of it in the host's log."""
        caplog.set_level(logging.ERROR)
        tools = Answering(RuntimeError(LEAK))
        text, _ = ask_now(harness, tools, name)
        error = told(text)
        assert (error["kind"], error["toolName"], error["retryable"], tools.count) == ("error", name, False, 1)
        for part in ("postgres", "pw@", "10.0.0.5", "RuntimeError", "Traceback"):
            assert part not in text
        assert LEAK in caplog.text

    @NAMES
    def test_a_timeout_is_retried_once(self, harness: Harness, name: str) -> None:
        """C02, second, and DECISIONS 15: the body runs exactly twice, and the error that is left says no retry."""
        tools = Answering(TimeoutError("host db-internal-7"))
        text, _ = ask_now(harness, tools, name)
        error = told(text)
        assert (tools.count, error["code"], error["retryable"]) == (2, "DB_TIMEOUT", False)
        assert "db-internal-7" not in text

    @NAMES
    def test_a_second_attempt_may_succeed(self, harness: Harness, name: str) -> None:
        """DECISIONS 15: what the one retry brings is the call's result."""
        tools = Answering(TimeoutError(), found())
        assert ask_now(harness, tools, name)[0] == found().to_json_string()
        assert tools.count == 2

    def test_a_timeout_of_a_write_is_retried_once(self, harness: Harness) -> None:
        """DECISIONS 15: a write only proposes, so the same rule holds, and nothing is filed of what failed."""
        tools = Answering(TimeoutError())
        text, world = ask_now(harness, tools, "change")
        assert (tools.count, told(text)["code"], world.rows()) == (2, "DB_TIMEOUT", ())

    @on_a_loop
    async def test_a_cancelled_body_cancels_the_call(self, harness: Harness) -> None:
        """C02, third, and DECISIONS 14: cancellation propagates; there is no envelope and no second attempt."""
        tools = Answering(asyncio.CancelledError())
        world = World(tools)
        with pytest.raises(asyncio.CancelledError):
            await harness.wire(world.affiant).call(ToolCall("look_later"), turn())
        assert (tools.count, world.rows()) == (1, ())

    def test_a_returned_error_is_not_retried(self, harness: Harness) -> None:
        """Seed: ``retryable`` on a returned error is the host's information; the pipeline acts on it at no time."""
        tools = Answering(ToolError(timestamp=T0, code="BUSY", message="Busy.", retryable=True))
        text, _ = ask_now(harness, tools, "look")
        assert (tools.count, told(text)["code"], told(text)["retryable"]) == (1, "BUSY", True)

    @pytest.mark.parametrize("error", [ValueError(LEAK), TypeError(LEAK)], ids=["ValueError", "TypeError"])
    def test_a_bodys_own_complaint_about_values(self, harness: Harness, error: Exception) -> None:
        """REFERENCE 6.4: an argument error of the body is ``VALIDATION_FAILED``, without its text."""
        tools = Answering(error)
        text, _ = ask_now(harness, tools, "look")
        assert (told(text)["code"], told(text)["retryable"], tools.count) == ("VALIDATION_FAILED", False, 1)
        assert "postgres" not in text

    def test_a_hosts_own_exception_has_its_own_code(self, harness: Harness) -> None:
        """DECISIONS 8: a host names its exceptions and the one sentence that is told about each."""
        rule = ErrorRule("CUSTOMER_GONE", "The customer has left.")
        text, _ = ask_now(harness, Answering(CustomerGoneError(LEAK)), "look", errors={CustomerGoneError: rule})
        error = told(text)
        assert error["code"] == "CUSTOMER_GONE"
        assert error["message"].startswith("The customer has left.")

    def test_a_failing_extractor_costs_nothing(self, harness: Harness) -> None:
        """REFERENCE 6.6: what fails behind a tool that has executed leaves its result as it is."""
        tools = Answering(found())
        text, world = ask_now(harness, tools, "look", extractors=[BrokenExtractor()])
        assert (text, tools.count) == (found().to_json_string(), 1)
        assert len(world.events.of("affiant.extractor.failed")) == 1
