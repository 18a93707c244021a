"""The standard tests of a Docket store. ``class TestMine(StoreSuite): openers = [open_mine]`` runs them all.

``open_mine`` is given a folder and returns a new, empty store; one that lives elsewhere makes itself a fresh place.
Each test opens a store of its own and closes it. A subclass may add tests. One that deletes or replaces a standard test
fails, unless it marks its own version ``xfail`` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from affiant_core.docket.store import DocketStore
from affiant_core.testing.standard_store.filing import FilingTests
from affiant_core.testing.standard_store.listings import ListingTests
from affiant_core.testing.standard_store.outcomes import OutcomeTests
from affiant_core.testing.standard_store.races import RaceTests
from affiant_core.testing.standard_store.sweeps import SweepTests
from affiant_core.testing.standard_store.tenants import TenantTests
from affiant_core.testing.standard_store.transitions import TransitionTests
from affiant_core.testing.standing import missing_tests

__all__ = ["StoreSuite"]


class StoreSuite(
    FilingTests,
    TenantTests,
    TransitionTests,
    OutcomeTests,
    ListingTests,
    SweepTests,
    RaceTests,
):
    """Every standard test. ``openers`` open the stores; those of ``--affiant-store`` do if it is empty."""

    affiant_suite: ClassVar[bool] = True
    openers: ClassVar[Sequence[Callable[[Path], DocketStore]]] = ()

    @pytest.fixture
    def store(self, opener: Callable[[Path], DocketStore], tmp_path: Path) -> Iterator[DocketStore]:
        """A new store, closed when the test is over."""
        opened = opener(tmp_path)
        yield opened
        opened.close()

    def test_no_standard_test_is_missing(self) -> None:
        """The kit: a suite that leaves a standard test out, or says something else in its place, proves nothing."""
        assert missing_tests(type(self), StoreSuite) == []
