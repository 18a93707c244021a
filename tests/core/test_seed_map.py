"""docs/seed-map.md maps every sentence of the seed to its proof, and what it names exists."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "seed-map.md").read_text(encoding="utf-8")

HEADINGS = (
    "Tool Envelopes",
    "The three variants",
    "The kind discriminator",
    "Serializing: ToolEnvelopeExtensions.ToJsonString()",
    "Rule 2: dual-audience returns",
    "Read tools: ReadResult",
    "Write tools: WriteProposal",
    "Failures: ToolError",
    "Where this fits",
)
"""The seed's own, in its order. The seed itself is not part of the repository."""

CLOSING = "What is in no table"
COLUMNS = ["No.", "What it says", "Proved by", "Note"]
NODE = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)+)`")
NOTHING = "—"


def sections(page):
    """The text below each heading of the second level, in order."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section):
    """The cells of each row of a section's table, its head and the rule below it included."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def node_ids(source):
    """The tests that a file's source defines, as pytest names them behind the file's name. Nothing is imported."""
    found = set()
    waiting = [(node, "") for node in ast.parse(source).body]
    while waiting:
        node, owner = waiting.pop()
        match node:
            case ast.ClassDef(name=name, body=body) if name.startswith("Test"):
                waiting += [(inner, f"{owner}::{name}") for inner in body]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test"):
                found.add(f"{owner}::{name}")
    return found


@functools.cache
def defined_in(path):
    file = ROOT / path
    return node_ids(file.read_text(encoding="utf-8")) if file.is_file() else set()


def faults_of_row(number, cells):
    if len(cells) != len(COLUMNS):
        return [f"{number}: {len(cells)} cells"]
    given, says, proved_by, note = cells
    faults = [f"{number}: it is numbered {given}"] if given != number else []
    if not says:
        faults.append(f"{number}: it says nothing")
    named = NODE.findall(proved_by)
    rest = NODE.sub("", proved_by).replace("<br>", "").replace(NOTHING, "").strip()
    if rest:
        faults.append(f"{number}: not the name of a test: {rest}")
    if not named and not rest and not note:
        faults.append(f"{number}: no test and no reason")
    return faults + [f"{number}: there is no {path}{test}" for path, test in named if test not in defined_in(path)]


def faults_of(page):
    """Everything that is wrong with the page, each fault with the row or the heading that it is about."""
    found = sections(page)
    faults = [f"no heading: {heading}" for heading in (*HEADINGS, CLOSING) if heading not in found]
    standing = [heading for heading in found if heading in HEADINGS]
    if standing != [heading for heading in HEADINGS if heading in found]:
        faults.append("the headings are not in the seed's order")
    faults += [
        f"no word in the closing section: {heading}" for heading in HEADINGS if heading not in found.get(CLOSING, "")
    ]
    for chapter, heading in enumerate(HEADINGS, 1):
        if heading in found:
            head, *body = rows(found[heading]) or [[]]
            if head != COLUMNS or len(body) < 2:
                faults.append(f"no table: {heading}")
            for index, cells in enumerate(body[1:], 1):
                faults += faults_of_row(f"{chapter}.{index}", cells)
    return faults


# --- the page ------------------------------------------------------------------------------------------------------


def test_every_sentence_has_its_proof():
    """The map's promise: each heading of the seed is there, and each row names tests that exist, or gives a reason."""
    assert faults_of(PAGE) == []


def test_the_page_is_not_emptied():
    """The map's promise: sentences are not dropped; whoever takes a row away has to say so here too."""
    counted = {heading: len(rows(section)) - 2 for heading, section in sections(PAGE).items() if heading in HEADINGS}
    assert list(counted.values()) == [5, 13, 7, 26, 9, 20, 40, 15, 3]


# --- that the check can fail ---------------------------------------------------------------------------------------

FIRST = "`tests/core/test_bridge.py::test_an_envelope_object_becomes_its_json`"

SPOILED = {
    "a test that does not exist": (
        FIRST,
        FIRST.replace("becomes", "became"),
        "1.1: there is no tests/core/test_bridge",
    ),
    "a file that does not exist": (FIRST, FIRST.replace("bridge.py", "bridges.py"), "1.1: there is no tests/core"),
    "a helper for a test": (FIRST, "`tests/core/test_bridge.py::shown`", "1.1: there is no"),
    "a class that does not exist": (FIRST, FIRST.replace("py::", "py::TestBridge::"), "1.1: there is no"),
    "words for a test": (FIRST, "everywhere", "1.1: not the name of a test: everywhere"),
    "an empty sentence": ("| 1.2 | Whether", "| 1.2 | | Whether", "1.2: 5 cells"),
    "a row out of its place": ("| 1.2 |", "| 1.3 |", "1.2: it is numbered 1.3"),
    "a heading that is missing": ("## Failures: ToolError", "Failures", "no heading: Failures: ToolError"),
    "another heading": ("## Where this fits", "## Where it fits", "no heading: Where this fits"),
    "no closing section": (f"## {CLOSING}", "## The end", f"no heading: {CLOSING}"),
    "a heading that the closing section leaves out": (
        "- **The three variants**",
        "- **Three**",
        "no word in the closing",
    ),
    "another table": ("| No. | What it says |", "| Row | What it says |", "no table: Tool Envelopes"),
}


@pytest.mark.parametrize(("old", "new", "fault"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_page_is_noticed(old, new, fault):
    """The map's promise is checked: a missing test, reason, row or heading is a fault that names its place."""
    assert old in PAGE
    found = faults_of(PAGE.replace(old, new, 1))
    assert any(each.startswith(fault) for each in found), found


@pytest.mark.parametrize(("note", "count"), [("", 1), ("It does not apply.", 0)])
def test_a_row_without_a_test_gives_a_reason(note, count):
    """The map's promise: a sentence that no test proves is not passed over without a reason."""
    assert len(faults_of_row("1.1", ["1.1", "A sentence.", NOTHING, note])) == count
    assert len(faults_of_row("1.1", ["1.1", "A sentence.", "", note])) == count


def test_the_order_of_the_headings_is_the_seeds():
    """The map's promise: the headings stand in the seed's order."""
    names = ("## The three variants", "## The kind discriminator")
    swapped = PAGE.replace(names[0], "##").replace(names[1], names[0]).replace("##\n", f"{names[1]}\n", 1)
    assert "the headings are not in the seed's order" in faults_of(swapped)


def test_tests_are_found_wherever_they_stand():
    """The map's promise: plain tests, asynchronous ones and those of a class are named as pytest names them."""
    source = """
def test_plain(): ...
async def test_awaited(): ...
def helper(): ...
class TestStore:
    def test_method(self): ...
    class TestInner:
        def test_deep(self): ...
class Helper:
    def test_nothing(self): ...
"""
    assert node_ids(source) == {
        "::test_plain",
        "::test_awaited",
        "::TestStore::test_method",
        "::TestStore::TestInner::test_deep",
    }
