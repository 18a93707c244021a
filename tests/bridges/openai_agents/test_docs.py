"""What the documentation shows runs as it stands."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from agents import set_tracing_disabled
from agents.tracing import get_trace_provider
from support.openai_agents import Host, LimitDesk, asks, document_of, model, outputs_in

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"README": "packages/agents_bridge/README.md", "page": "docs/openai-agents.md"}


@pytest.fixture(autouse=True)
def _untraced():
    """The pages run as a reader would run them, so it is tracing as a whole that is off for a while."""
    before = get_trace_provider()._disabled
    set_tracing_disabled(True)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)
    set_tracing_disabled(before)


def run(page, **given):
    """Run a page's examples in one namespace, which is returned."""
    text = (ROOT / PAGES[page]).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace = {"__name__": "example", **given}
    for block in blocks:
        exec(compile(block, PAGES[page], "exec", dont_inherit=True), namespace)
    return namespace


def test_the_readme_files_decides_and_writes():
    """DESIGN, "How it should feel": the README's example proposes, and after a person's approval the host writes."""
    shown = run("README", model=model(asks(("set_limit", {"customer_id": "c-1", "limit": 500}))))
    (receipt,) = outputs_in(shown["result"])
    assert document_of(receipt)["entryId"] == shown["row"].entry_id
    assert shown["limits"] == {"c-1": 500}
    assert shown["row"].accepted.field("limit").tag.binding is not None


def test_the_page_runs(capfd):
    """DESIGN, the same of the page: its examples of bind, wrap, the turn and agents run in their order."""
    host = Host(LimitDesk())
    run("page", host=host.affiant, model=model(asks(("look_up", {"name": "Ana"}))))
    assert capfd.readouterr().out == "done\n"


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_place_on_a_machine(page):
    """CONTRIBUTING: documents name no folder of anybody's machine."""
    text = (ROOT / PAGES[page]).read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w./:])/(?:home|tmp|usr|work|root|Users)\b", text)
    assert max(map(len, text.splitlines())) <= 140
