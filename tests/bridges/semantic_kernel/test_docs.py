"""What the documentation shows runs as it stands."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest
from support.semantic_kernel import Host, LimitDesk, ScriptedChat, asks, document_of, kernel_of, results_in

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"README": "packages/sk_bridge/README.md", "page": "docs/semantic-kernel.md"}


async def run(page, **given):
    """Run a page's examples in one namespace, which is returned; they may await."""
    text = (ROOT / PAGES[page]).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace = {"__name__": "example", **given}
    for block in blocks:
        code = compile(block, PAGES[page], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        outcome = eval(code, namespace)
        if inspect.isawaitable(outcome):
            await outcome
    return namespace


def test_the_readme_files_decides_and_writes():
    """DESIGN, "How it should feel": the README's example proposes, and after a person's approval the host writes."""
    chat = ScriptedChat(asks(("LimitTools-set_limit", {"customer_id": "c-1", "limit": 500})))
    shown = asyncio.run(run("README", chat=chat))
    (answered,) = results_in(chat.heard[-1])
    assert document_of(answered.result)["entryId"] == shown["row"].entry_id
    assert shown["limits"] == {"c-1": 500}
    assert shown["row"].accepted.field("limit").tag.binding is not None


def test_the_page_runs(capsys):
    """DESIGN, the same of the page: its examples run in their order."""
    asyncio.run(run("page", host=Host(LimitDesk()).affiant, kernel=kernel_of()))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == second == "Ana is a customer."
    assert document_of(third)["code"] == "FUNCTION_NOT_FOUND"


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_place_on_a_machine(page):
    """CONTRIBUTING: documents name no folder of anybody's machine."""
    text = (ROOT / PAGES[page]).read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w./:])/(?:home|tmp|usr|work|root|Users)\b", text)
    assert max(map(len, text.splitlines())) <= 140
