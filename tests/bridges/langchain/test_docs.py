"""What the documentation shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage
from support.langchain import Host, LimitDesk, ScriptedModel, asks, document_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"README": "packages/langchain_bridge/README.md", "page": "docs/langchain.md"}


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
    model = ScriptedModel(script=[asks(("set_limit", {"customer_id": "c-1", "limit": 500}))])
    shown = run("README", model=model)
    (message,) = [each for each in shown["state"]["messages"] if isinstance(each, ToolMessage)]
    assert document_of(message)["entryId"] == shown["row"].entry_id
    assert shown["limits"] == {"c-1": 500}
    assert shown["row"].accepted.field("limit").tag.binding is not None


def test_the_page_runs(capsys):
    """DESIGN, the same of the page: its examples of bind, wrap and the turn run in their order."""
    host = Host(LimitDesk())
    run("page", host=host.affiant, model=ScriptedModel())
    assert capsys.readouterr().out == "Ana is a customer.\n"


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_place_on_a_machine(page):
    """CONTRIBUTING: documents name no folder of anybody's machine."""
    text = (ROOT / PAGES[page]).read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w./:])/(?:home|tmp|usr|work|root|Users)\b", text)
    assert max(map(len, text.splitlines())) <= 140
