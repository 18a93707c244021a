"""One scenario on every bridge that is installed: the same rows, byte for byte, and the same texts (DESIGN; C04)."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import json
from dataclasses import replace
from difflib import unified_diff

import pytest

from affiant_core.testing import Capability, DirectHarness
from affiant_core.testing.standard.equality import SCENARIO, Ledger, play_scenario

BRIDGES = {
    "affiant_agents_bridge": "agents",
    "affiant_langchain_bridge": "langchain",
    "affiant_sk_bridge": "semantic_kernel",
}
"""Each bridge of this distribution, and the framework that it needs."""

HIDDEN = [8, 14]
"""The answers that differ where the gate gets no arguments: ``set_limit("c-1", 11)`` replays the row of 10 (C04)."""


def harnesses_of(bridge):
    """The harnesses of a bridge, or the reason for which there are none here."""
    framework = BRIDGES[bridge]
    for needed in (framework, bridge, f"{bridge}.testing"):
        if importlib.util.find_spec(needed) is None:
            # The latest and the oldest set leave a framework out.
            pytest.skip(reason=f"{needed} is not installed in this environment")
    return importlib.import_module(f"{bridge}.testing").HARNESSES


@functools.cache
def oracle(*, carries_arguments):
    """What the scenario leaves behind with no framework at all."""
    return asyncio.run(play_scenario(DirectHarness(carries_arguments=carries_arguments)))


def lines(ledger):
    """A ledger to be read by people: a line for each text and for each member of each row."""
    calls = [name for name, _ in SCENARIO]
    calls += [*calls[6:], calls[9]]
    told = [f"{at} {name}: {text}" for at, (name, text) in enumerate(zip(calls, ledger.texts, strict=True))]
    rows = [json.dumps(json.loads(row), indent=1, ensure_ascii=False).splitlines() for row in ledger.rows]
    return [*told, *(f"row {at}: {line}" for at, row in enumerate(rows) for line in row)]


def difference(one, other, names):
    """What two ledgers do not have in common, as a diff; nothing for equal ones."""
    if one == other:
        return ""
    found = list(unified_diff(lines(one), lines(other), *names, lineterm="", n=1))
    return "\n".join(found) or f"{names[0]} and {names[1]} differ in the spelling of a row's JSON"


def without_ids(texts):
    """The same with every row's id taken out, each text by itself."""
    return [Ledger((text,), ()).without_identity().texts[0] for text in texts]


def carries(harness):
    return harness.has(Capability.ARGUMENTS_AT_THE_GATE)


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_leaves_what_the_oracle_leaves(bridge):
    """DESIGN: a framework between the model and the pipeline changes no byte of a row, no id, and no text."""
    for harness in harnesses_of(bridge):
        ledger = asyncio.run(play_scenario(harness))
        told = difference(oracle(carries_arguments=carries(harness)), ledger, ("direct", repr(harness)))
        assert not told, f"\n{told}"


def test_semantic_kernel_is_compared_both_ways():
    """DECISIONS 9: that bridge hands the gate no arguments by default, and with ``carry_arguments`` all of them."""
    assert sorted(map(carries, harnesses_of("affiant_sk_bridge"))) == [False, True]


@pytest.mark.parametrize("bridge", ["affiant_agents_bridge", "affiant_langchain_bridge"])
def test_the_others_carry_arguments(bridge):
    """DECISIONS 9: these bridges hand the gate the arguments that the model passed."""
    assert all(map(carries, harnesses_of(bridge)))


def test_where_the_gate_gets_no_arguments_one_row_is_missing():
    """C04, DECISIONS 9: the second value of a tool without arguments of its own is no row, and both answers say so.

    All else is equal, to the byte but for the ids: an identity without arguments is another one. What the seam carries
    replaces a proposal's own arguments, so the ids of ``set_both`` differ too (seed).
    """
    whole, lesser = oracle(carries_arguments=True), oracle(carries_arguments=False)
    one, other = without_ids(whole.texts), without_ids(lesser.texts)
    assert [at for at, texts in enumerate(zip(one, other, strict=True)) if len(set(texts)) > 1] == HIDDEN
    for at in HIDDEN:
        assert '"outcome":"replayed"' in other[at]
        assert "this one, which differs, was not filed" in other[at]
    first, hidden, *rest = whole.rows
    assert json.loads(hidden)["affidavit"]["fields"][0]["value"] == 11
    assert without_ids([first, *rest]) == without_ids(lesser.rows)
    ids = [{json.loads(row)["entryId"] for row in rows} for rows in (whole.rows, lesser.rows)]
    assert [len(each) for each in ids] == [4, 3]
    assert not ids[0] & ids[1]


def test_a_difference_is_told_so_that_it_can_be_read():
    """The kit: what differs is named by its call, or by its row and member, and nothing else is printed."""
    right = oracle(carries_arguments=True)
    wrong = replace(
        right,
        texts=(right.texts[0].replace("Found it.", "Lost it."), *right.texts[1:]),
        rows=(right.rows[0], right.rows[1].replace('"channel":"chat"', '"channel":"mail"'), *right.rows[2:]),
    )
    told = [line for line in difference(right, wrong, ("direct", "wrong")).splitlines() if line[0] in "-+"]
    assert told[:2] == ["--- direct", "+++ wrong"]
    assert [line[:17] for line in told[2:4]] == ["-0 find_customer:", "+0 find_customer:"]
    assert told[4:] == ['-row 1:  "channel": "chat",', '+row 1:  "channel": "mail",']
    assert difference(right, right, ("direct", "wrong")) == ""
    spelled = replace(right, rows=(right.rows[0].replace(":", ": ", 1), *right.rows[1:]))
    assert difference(right, spelled, ("direct", "wrong")) == "direct and wrong differ in the spelling of a row's JSON"
