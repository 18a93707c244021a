"""The standard tests of a bridge. ``class TestMine(BridgeSuite): harnesses = (MyHarness(),)`` runs them all.

A subclass may add tests. One that deletes or replaces a standard test fails, unless it marks its own version
``xfail`` with a reason; what a backend lacks is better said in the harness's ``gaps``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from affiant_core.testing.harness import Capability, Harness
from affiant_core.testing.standard.arguments import ArgumentTests
from affiant_core.testing.standard.context import ContextTests
from affiant_core.testing.standard.coverage import CoverageTests
from affiant_core.testing.standard.envelopes import EnvelopeTests
from affiant_core.testing.standard.equality import EqualityTests
from affiant_core.testing.standard.failures import FailureTests
from affiant_core.testing.standard.parallel import ParallelTests
from affiant_core.testing.standard.review import ReviewTests
from affiant_core.testing.standard.turns import TurnTests
from affiant_core.testing.standing import missing_tests, standard_tests

__all__ = ["BridgeSuite"]


class BridgeSuite(
    EnvelopeTests,
    ReviewTests,
    ArgumentTests,
    FailureTests,
    ContextTests,
    CoverageTests,
    ParallelTests,
    TurnTests,
    EqualityTests,
):
    """Every standard test. ``harnesses`` are the backends; those of ``--affiant-bridge`` if it is empty."""

    affiant_suite: ClassVar[bool] = True
    harnesses: ClassVar[Sequence[Harness]] = ()

    def test_no_standard_test_is_missing(self) -> None:
        """The kit: a suite that leaves a standard test out, or says something else in its place, proves nothing."""
        assert missing_tests(type(self), BridgeSuite) == []

    def test_gaps_are_named_rightly(self, harness: Harness) -> None:
        """The kit: a gap is a capability or a standard test, by its own name; any other word would hide nothing."""
        known = {*Capability, *standard_tests(BridgeSuite)}
        assert [name for name in harness.gaps if name not in known] == []
