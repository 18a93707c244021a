"""Runs of the conformance kit inside a test: in this process, with the kit's plugin and no other."""

from __future__ import annotations

from collections import defaultdict

import pytest

QUIET = ("-q", "--tb=no", "-Wdefault", "-p", "affiant", "-p", "no:cacheprovider")
"""Warnings are no failures there: what a wrong backend leaves open would fail whichever test runs next."""


def run_kit(pytester, *arguments):
    """Run pytest in this process: the reports of tests that passed, were skipped, and failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return pytester.inline_run(*QUIET, *arguments).listoutcomes()


def by_parameter(reports):
    """The names of the tests among these reports, by the first parameter: the backend."""
    found = defaultdict(set)
    for report in reports:
        test, _, parameters = report.nodeid.rpartition("::")[2].partition("[")
        found[parameters.rstrip("]").partition("-")[0]].add(test)
    return found
