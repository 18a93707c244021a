"""The names of tools as a model sees them: which a provider takes, and which it cannot tell apart (C18)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from affiant_core.errors import WiringFault

NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that every supported model provider takes as they are."""

RENAME = "Rename one with name=."


def normalised_name(name: str) -> str:
    """A name as the loosest provider would keep it; two tools that share one cannot be told apart."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


def refused_name(name: str, shown: str, remedy: str) -> list[WiringFault]:
    """The fault of a name that a provider refuses, if it does. ``shown`` is what the fault calls the tool."""
    if NAME_PATTERN.fullmatch(name):
        return []
    return [WiringFault(f"tool {shown!r}", "its name is not 1 to 64 letters, digits, '_' or '-'.", remedy)]


def twins(named: Iterable[tuple[Hashable, str]], remedy: str = RENAME) -> list[WiringFault]:
    """One fault for all tools that share a key, which is what a model could tell them apart by."""
    alike: dict[Hashable, list[str]] = {}
    for key, shown in named:
        alike.setdefault(key, []).append(repr(shown))
    return [
        WiringFault(f"tools {' and '.join(names)}", "a model could not tell their names apart.", remedy)
        for names in alike.values()
        if len(names) > 1
    ]


def undeclared_tool(shown: str, declare: str) -> WiringFault:
    """The fault of a tool that nothing is declared about. ``declare`` is the call that would (CV-1)."""
    remedy = f"Declare it with {declare} or leave it out."
    return WiringFault(f"tool {shown!r}", "it is not declared, so nobody can tell whether it writes.", remedy)
