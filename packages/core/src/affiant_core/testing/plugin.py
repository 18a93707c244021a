"""The pytest plugin: which bridges and stores the kit runs on, what each of them lacks, and a report of it.

``pytest --pyargs affiant_core.testing --affiant-bridge affiant_langchain_bridge`` runs every standard test on every
harness of that bridge; ``--affiant-store package.module:function`` does the same for a kind of Docket store. pytest
finds the plugin by itself wherever ``affiant-core`` is installed; without these options it does nothing.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from affiant_core.testing.harness import Harness

__all__: list[str] = []

# A failing assertion of the kit then shows its values, as one in a test module does.
pytest.register_assert_rewrite(
    *(f"affiant_core.testing.{each}" for each in ("bridge_suite", "standard", "standard_store", "store_suite"))
)

_NEEDS = "affiant_needs"
_HARNESS = "affiant_harness"
_HARNESSES: pytest.StashKey[list[Harness]] = pytest.StashKey()
_OPENERS: pytest.StashKey[list[Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("affiant", "Affiant's conformance kit")
    group.addoption(
        "--affiant-bridge",
        action="append",
        default=[],
        metavar="MODULE",
        help="run the bridge suite on the harnesses of this bridge: 'package' stands for package.testing:HARNESSES, "
        "'package.module:name' for one harness or several. May be repeated.",
    )
    group.addoption(
        "--affiant-store",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="run the store suite on the stores that this function opens in the folder it is given. May be repeated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark that says what a standard test needs, and find the backends of the command line.

    Raises ``pytest.UsageError`` for an option that names none, before any test is collected.
    """
    config.addinivalue_line("markers", f"{_NEEDS}(*capabilities): what a backend must be able to do for this test.")
    bridges: list[str] = config.getoption("--affiant-bridge") or []
    stores: list[str] = config.getoption("--affiant-store") or []
    config.stash[_HARNESSES] = harnesses_for(bridges)
    config.stash[_OPENERS] = [load(name, "open_store") for name in stores]
    config.pluginmanager.register(_Report(), "affiant-report")


def load(name: str, attribute: str) -> Any:
    """What ``module:attribute`` names. A module alone stands for ``attribute`` in its ``testing`` module.

    Raises ``pytest.UsageError`` that says what is missing.
    """
    module, colon, member = name.partition(":")
    where = module if colon else f"{module}.testing"
    try:
        return getattr(importlib.import_module(where), member or attribute)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(
            f"{name!r} names no conformance harness: {error}. Give package (for package.testing:{attribute}) or "
            "package.module:name, and install the package beside affiant-core."
        ) from error


def harnesses_for(names: Sequence[str]) -> list[Harness]:
    """The harnesses of all these bridges.

    Raises ``pytest.UsageError`` for a name that gives none, or two of one name, which no report could tell apart.
    """
    if not names:
        return []
    from affiant_core.testing.harness import Harness  # noqa: PLC0415  # pytest loads this plugin for every project

    found: dict[str, Harness] = {}
    for name in names:
        named = load(name, "HARNESSES")
        given = named if isinstance(named, list | tuple) else [named]
        for each in given:
            harness = each() if isinstance(each, type) and issubclass(each, Harness) else each
            if not isinstance(harness, Harness):
                raise pytest.UsageError(
                    f"{name!r} gives {each!r}, which is no Harness. Name a Harness, its class, or a list of them."
                )
            if repr(harness) in found:
                raise pytest.UsageError(f"{name!r} gives a second {harness!r}. Give each harness its own __repr__.")
            found[repr(harness)] = harness
        if not given:
            raise pytest.UsageError(f"{name!r} gives no harness at all. Put at least one Harness into it.")
    return list(found.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each standard test its backends, and mark what a backend says it lacks."""
    if metafunc.cls is None or not hasattr(metafunc.cls, "affiant_suite"):
        return
    if "harness" in metafunc.fixturenames:
        harnesses = list(metafunc.cls.harnesses) or metafunc.config.stash[_HARNESSES]
        parameters = [pytest.param(each, id=repr(each), marks=_marks(metafunc, each)) for each in harnesses]
        metafunc.parametrize("harness", parameters or [_nothing("--affiant-bridge")])
    if "opener" in metafunc.fixturenames:
        openers = list(metafunc.cls.openers) or metafunc.config.stash[_OPENERS]
        opened = [pytest.param(each, id=getattr(each, "__name__", repr(each))) for each in openers]
        metafunc.parametrize("opener", opened or [_nothing("--affiant-store")])


def _nothing(option: str) -> Any:
    """What a standard test gets when nobody said what to run it on."""
    return pytest.param(None, id="none", marks=pytest.mark.skip(reason=f"nothing to run on: give {option}"))


def _marks(metafunc: pytest.Metafunc, harness: Harness) -> list[pytest.MarkDecorator]:
    """A strict ``xfail`` for whatever the backend lacks: if it is there after all, the harness must say so."""
    from affiant_core.testing.harness import Unsupported  # noqa: PLC0415  # as above

    whole = harness.gaps.get(metafunc.definition.originalname)
    needed = [each for mark in metafunc.definition.iter_markers(_NEEDS) for each in mark.args]
    gaps = [gap for gap in (whole, *(harness.gaps.get(each) for each in needed)) if gap is not None]
    expected = (Unsupported, AssertionError, pytest.fail.Exception)
    return [pytest.mark.xfail(reason=str(gap), raises=expected, strict=True) for gap in gaps[:1]]


# --- the report ----------------------------------------------------------------------------------------------------


class _Report:
    """Counts what each backend passed. Each run has its own; under xdist the controller is sent every report."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that ran, and what failed before or after it."""
        if report.when != "call" and not report.failed:
            return
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome if report.when == "call" else "error"
        for name, value in report.user_properties:
            if name == _HARNESS:
                self.outcomes.setdefault(str(value), Counter())[outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what each backend of the command line can do, what it cannot and why, and how its tests went."""
        harnesses = terminalreporter.config.stash[_HARNESSES]
        if not harnesses:
            return
        from affiant_core.testing.harness import Capability  # noqa: PLC0415  # as above

        terminalreporter.section("Affiant conformance")
        for harness in harnesses:
            counts = sorted(self.outcomes.get(repr(harness), Counter()).items())
            counted = ", ".join(f"{count} {outcome}" for outcome, count in counts)
            terminalreporter.line(f"{harness!r}: {counted or 'not run'}", bold=True)
            for capability in Capability:
                gap = harness.gaps.get(capability)
                terminalreporter.line(f"  {capability.value:<24} {'yes' if gap is None else gap}")
            for name, gap in harness.gaps.items():
                if name not in set(Capability):
                    terminalreporter.line(f"  {name} {gap}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Note which backend a test runs on, for the report."""
    callspec = getattr(item, "callspec", None)
    harness = callspec.params.get("harness") if callspec is not None else None
    if harness is not None and hasattr(harness, "gaps"):
        item.user_properties.append((_HARNESS, repr(harness)))
    return (yield)
