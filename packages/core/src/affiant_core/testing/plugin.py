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
    """Register the mark that says what a standard test needs."""
    config.addinivalue_line("markers", f"{_NEEDS}(*capabilities): what a backend must be able to do for this test.")


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


def harnesses_for(config: pytest.Config, names: Sequence[str]) -> list[Harness]:
    """The harnesses of all these bridges."""
    from affiant_core.testing.harness import Harness  # noqa: PLC0415  # pytest loads this plugin for every project

    found: list[Harness] = []
    for name in names:
        named = load(name, "HARNESSES")
        for each in named if isinstance(named, list | tuple) else [named]:
            harness = each() if isinstance(each, type) else each
            if not isinstance(harness, Harness):
                raise pytest.UsageError(f"{name!r} gives a {type(harness).__name__}, which is no Harness.")
            found.append(harness)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each standard test its backends, and mark what a backend says it lacks."""
    if metafunc.cls is None or not hasattr(metafunc.cls, "affiant_suite"):
        return
    if "harness" in metafunc.fixturenames:
        own = metafunc.cls.harnesses
        harnesses = list(own) or harnesses_for(metafunc.config, metafunc.config.getoption("--affiant-bridge"))
        parameters = [pytest.param(each, id=repr(each), marks=_marks(metafunc, each)) for each in harnesses]
        metafunc.parametrize("harness", parameters or [_nothing("--affiant-bridge")])
    if "opener" in metafunc.fixturenames:
        own = metafunc.cls.openers
        names = metafunc.config.getoption("--affiant-store")
        openers = list(own) or [load(name, "open_store") for name in names]
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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what each backend passed."""
    for name, value in report.user_properties:
        if name == "affiant_harness" and report.when == "call":
            _outcomes.setdefault(str(value), Counter())[
                "xfailed" if hasattr(report, "wasxfail") else report.outcome
            ] += 1


_outcomes: dict[str, Counter[str]] = {}
_gaps: dict[str, list[str]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Remember which backend a test runs on, for the report."""
    callspec = getattr(item, "callspec", None)
    harness = callspec.params.get("harness") if callspec is not None else None
    if harness is not None and hasattr(harness, "gaps"):
        item.user_properties.append(("affiant_harness", repr(harness)))
    return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what each backend can do, what it cannot and why, and how its tests went."""
    config: pytest.Config = terminalreporter.config
    names = config.getoption("--affiant-bridge")
    if not names:
        return
    from affiant_core.testing.harness import Capability  # noqa: PLC0415  # as above

    terminalreporter.section("Affiant conformance")
    for harness in harnesses_for(config, names):
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(_outcomes.get(repr(harness), {}).items()))
        terminalreporter.line(f"{harness!r}: {counted or 'not run'}", bold=True)
        for capability in Capability:
            gap = harness.gaps.get(capability)
            terminalreporter.line(f"  {capability.value:<24} {'yes' if gap is None else gap}")
        for name, gap in harness.gaps.items():
            if name not in set(Capability):
                terminalreporter.line(f"  {name} {gap}")
