"""What a bridge checks before it touches a framework, and before it lets a call in (CV-1, CV-2; DECISIONS 12, 16)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import TypeVar

from affiant_core.affiant import Affiant
from affiant_core.context import TurnContext
from affiant_core.errors import WireupInvalid, WiringFault
from affiant_core.registry import ToolDescriptor, normalised_name

SourceT = TypeVar("SourceT")


def require_version(distribution: str, *, at_least: tuple[int, ...], below: tuple[int, ...], bridge: str) -> None:
    """Raise ``WireupInvalid`` unless the installed framework is in the range that the bridge was tested with."""
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise WireupInvalid(f"{bridge} needs {distribution}, which is not installed.") from None
    if not _in_range(installed, at_least, below):
        wanted = f">={'.'.join(map(str, at_least))},<{'.'.join(map(str, below))}"
        raise WireupInvalid(f"{bridge} works with {distribution} {wanted}; {installed} is installed.")


_VERSION = re.compile(r"(?:\d+!)?(\d+(?:\.\d+)*)[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)?", re.ASCII | re.IGNORECASE)


def _in_range(installed: str, at_least: tuple[int, ...], below: tuple[int, ...]) -> bool:
    """Whether a version lies between two. A pre-release of the lower one is before it."""
    match = _VERSION.match(installed)
    if match is None:
        return False
    numbers, least = _trimmed(map(int, match[1].split("."))), _trimmed(at_least)
    return least <= numbers < _trimmed(below) and not (match[2] and numbers == least)


def _trimmed(numbers: Iterable[int]) -> tuple[int, ...]:
    """Version numbers without zeros at the end: 1.0 and 1.0.0 are one."""
    kept = list(numbers)
    while kept and kept[-1] == 0:
        kept.pop()
    return tuple(kept)


# --- a call's way in -----------------------------------------------------------------------------------------------


def admitted(
    affiant: Affiant,
    tool_name: str,
    turn_of: Callable[[SourceT], object],
    source: SourceT,
    *,
    plugin: str | None = None,
    remedy: str,
) -> tuple[ToolDescriptor, TurnContext]:
    """Let a call in before any body: ``turn_of`` finds a ``TurnContext`` in ``source``, and the tool is declared.

    Raises ``WireupInvalid``, which a bridge lets through to the host (DECISIONS 12, 13); also when ``turn_of`` raises.
    """
    try:
        context = turn_of(source)
    except Exception as error:
        raise WireupInvalid(f"CV-2: turn_of raised a {type(error).__name__}, so the call has no turn.") from error
    return affiant.admit(tool_name, context, plugin=plugin, remedy=remedy)


# --- faults that every framework's tools can have ------------------------------------------------------------------


def indistinguishable(names: Iterable[str], remedy: str = "Rename one with name=.") -> list[WiringFault]:
    """One fault for all names that are one to a model, since a provider may normalise them; a name given twice too."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(normalised_name(name), []).append(repr(name))
    return [
        WiringFault(f"tools {' and '.join(twins)}", "a model could not tell their names apart.", remedy)
        for twins in alike.values()
        if len(twins) > 1
    ]


def acts_elsewhere(name: str) -> WiringFault:
    """The fault of a third party's tool that is declared to write: its server acts when it is called (DECISIONS 16)."""
    return WiringFault(
        f"tool {name!r}",
        "it is declared to write and acts on its own server, before any gate could see its result.",
        "Declare a tool of your own that builds the proposal instead.",
    )
