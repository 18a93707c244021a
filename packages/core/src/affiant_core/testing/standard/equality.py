"""One scenario, played on a backend and on the oracle: the same rows, byte for byte, and the same texts (DESIGN)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from affiant_core.authority import Approve, Reject
from affiant_core.envelope import ToolError, WriteProposal
from affiant_core.registry import read_tool, write_tool
from affiant_core.testing.direct import DirectHarness
from affiant_core.testing.harness import Backend, Capability, Harness, ToolCall
from affiant_core.testing.world import T0, LimitTools, World, acting, proposed, turn


class ScenarioTools(LimitTools):
    """Reads, writes, failures of every kind."""

    @read_tool
    def fail(self) -> str:
        """Fail."""
        raise RuntimeError("db postgres://svc:pw@10.0.0.5/prod refused")

    @read_tool
    def wait_in_vain(self) -> str:
        """Time out."""
        raise TimeoutError("host db-internal-7")

    @read_tool
    def say(self, text: str) -> str:
        """Say it back."""
        return text

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def refuse(self, customer_id: str) -> ToolError:
        """Find that nothing can be proposed."""
        return ToolError(tool_name="refuse", timestamp=T0, code="CUSTOMER_GONE", message=f"{customer_id} is gone.")

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def forget(self) -> None:
        """Return nothing, which a write may not."""

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_both(self, customer_id: str, limit: int) -> WriteProposal:
        """Propose, with arguments of its own."""
        return proposed(customer_id, limit, arguments={"customer": customer_id, "to": limit})


SCENARIO: Sequence[tuple[str, dict[str, object]]] = (
    ("find_customer", {"customer_id": "c-1"}),
    ("say", {"text": "é🚀 {not json"}),
    ("fail", {}),
    ("wait_in_vain", {}),
    ("refuse", {"customer_id": "c-1"}),
    ("forget", {}),
    ("set_limit", {"customer_id": "c-1", "limit": 10}),
    ("set_limit", {"customer_id": "c-1", "limit": 10}),
    ("set_limit", {"customer_id": "c-1", "limit": 11}),
    ("set_both", {"customer_id": "c-2", "limit": 20}),
    ("set_both", {"customer_id": "c-3", "limit": 30}),
    ("set_both", {"customer_id": "c-2", "limit": 20}),
)
"""The calls, each in the turn of its place."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a scenario left behind: the texts that the model was given, and the rows as they are stored."""

    texts: tuple[str, ...]
    rows: tuple[str, ...]

    def without_identity(self) -> Ledger:
        """The same with each row's id replaced by the order in which ids appear, for comparing across an asymmetry."""
        seen: dict[str, str] = {}

        def number(match: re.Match[str]) -> str:
            return seen.setdefault(match[0], f"<id {len(seen) + 1}>")

        return Ledger(
            tuple(_ENTRY_ID.sub(number, text) for text in self.texts),
            tuple(_ENTRY_ID.sub(number, row) for row in self.rows),
        )


_ENTRY_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOT_COMPARED = re.compile(r'\(reference [0-9a-f]+\)|"timestamp":"[^"]+"')
"""The id of a log entry is new each time, and so is the instant of an error that the pipeline itself makes."""


async def play_scenario(harness: Harness) -> Ledger:
    """Play the scenario, decide on two rows in the middle, and write down what is left."""
    world = World(ScenarioTools())
    backend = harness.wire(world.affiant)
    texts = [await _answer(backend, name, arguments) for name, arguments in SCENARIO]
    rows = world.rows()
    gate = world.affiant.gate
    await gate.decide(rows[0].entry_id, Approve({"limit": 7}), acting("rev-1"))
    await gate.decide(rows[-1].entry_id, Reject("wrong\naccount"), acting("rev-2"))
    world.execute()
    texts += [await _answer(backend, name, arguments) for name, arguments in SCENARIO[6:]]
    world.clock.move(timedelta(days=30))  # whatever is left has expired
    texts.append(await _answer(backend, *SCENARIO[9]))
    told = tuple(_NOT_COMPARED.sub("", text) for text in texts)
    return Ledger(told, tuple(row.to_json_string() for row in world.rows()))


async def _answer(backend: Backend, name: str, arguments: dict[str, object]) -> str:
    return await backend.call(ToolCall(name, arguments), turn())


class EqualityTests:
    """A backend is the oracle with a framework around it."""

    def test_the_scenario_is_the_oracles(self, harness: Harness) -> None:
        """DESIGN: reads, writes, errors, replays and decisions leave the same rows, ids too, and the same texts."""
        carries = harness.has(Capability.ARGUMENTS_AT_THE_GATE)
        oracle = asyncio.run(play_scenario(DirectHarness(carries_arguments=carries)))
        ledger = asyncio.run(play_scenario(harness))
        assert ledger.texts == oracle.texts
        assert ledger.rows == oracle.rows
