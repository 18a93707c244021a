"""The kit's bridge suite bites: it passes a right bridge, and fails each wrong one at the rule that it breaks."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from affiant_core.testing import Capability, never, notimpl, notyet
from affiant_core.testing.bridge_suite import BridgeSuite
from affiant_core.testing.standing import standard_tests
from tests.support.kit import QUIET, by_parameter, run_kit

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

CAUGHT = {
    "the gate": {
        "Ungated": {
            "test_a_proposal_becomes_a_receipt",
            "test_a_mixed_batch",
            "test_a_review_ends_the_turn_where_the_host_says_so",
            "test_a_row_carries_what_the_context_says",
            "test_a_wiring_for_the_second_time_files_once",
            "test_the_same_call_again_replays",
        },
        "GatingTwice": {"test_a_wiring_for_the_second_time_files_once"},
        "NeverEnding": {"test_a_review_ends_the_turn_where_the_host_says_so"},
        "OneTenant": {
            "test_a_proposal_becomes_a_receipt",
            "test_a_mixed_batch",
            "test_a_review_ends_the_turn_where_the_host_says_so",
            "test_a_row_carries_what_the_context_says",
            "test_a_wiring_for_the_second_time_files_once",
            "test_the_same_call_again_replays",
        },
        "Adding": {"test_a_wiring_for_the_second_time_files_once", "test_the_same_call_again_replays"},
        "Printing": {"test_a_mixed_batch", "test_a_read_crosses_as_its_json"},
        "Twice": {"test_a_mixed_batch", "test_a_review_ends_the_turn_where_the_host_says_so"},
        "Swapping": {"test_a_mixed_batch"},
    },
    "arguments": {
        "Dropping": {"test_another_value_is_another_row_or_a_loud_replay", "test_the_scenario_is_the_oracles"},
        "Secretly": {"test_another_value_is_another_row_or_a_loud_replay", "test_the_scenario_is_the_oracles"},
        "Forgetting": {"test_arguments_that_do_not_fit_are_answered"},
        "Casting": {"test_arguments_that_do_not_fit_are_answered", "test_a_value_is_not_taken_for_its_opposite"},
        "Lenient": {"test_text_that_is_no_object_is_answered"},
        "Ending": {"test_text_that_is_no_object_is_answered", "test_truncated_arguments_do_not_end_the_turn"},
        "Forged": {"test_a_model_cannot_bring_its_own_turn"},
    },
    "the context": {
        "Remembering": {"test_a_context_is_not_remembered"},
        "Repairing": {"test_a_call_without_a_context_raises_to_the_host"},
        "Whispering": {
            "test_a_call_without_a_context_raises_to_the_host",
            "test_a_context_is_not_remembered",
            "test_a_turn_without_a_context_raises_to_the_host",
        },
        "Late": {
            "test_a_call_without_a_context_raises_to_the_host",
            "test_a_turn_without_a_context_raises_to_the_host",
        },
    },
    "failures": {
        "Persistent": {"test_a_timeout_is_retried_once"},
        "Resigned": {"test_a_second_attempt_may_succeed", "test_a_timeout_is_retried_once"},
        "Obedient": {"test_a_returned_error_is_not_retried"},
        "Talkative": {"test_no_exception_text_reaches_the_model"},
        "Deaf": {
            "test_a_call_that_is_cancelled_in_its_body_files_nothing",
            "test_a_call_that_is_cancelled_while_filing_leaves_a_whole_row",
            "test_a_cancelled_body_cancels_the_call",
        },
        "Unstoppable": {"test_a_call_that_is_cancelled_in_its_body_files_nothing"},
        "Undoing": {
            "test_a_call_that_is_cancelled_while_filing_leaves_a_whole_row",
            "test_a_turn_that_is_cancelled_while_filing_leaves_a_whole_row",
        },
    },
    "coverage": {
        "Trusting": {"test_every_undeclared_tool_is_refused_at_once"},
        "OneByOne": {"test_every_undeclared_tool_is_refused_at_once"},
        "Hosting": {"test_a_hosted_tool_is_refused_by_its_category"},
        "Refusing": {
            "test_a_hosted_tool_is_refused_by_its_category",
            "test_a_hosted_tool_may_be_accepted_by_name",
        },
        "Past": {"test_a_declared_write_of_the_framework_that_proposes_nothing_is_refused"},
        "Guessing": {"test_a_near_miss_is_unknown"},
    },
    "concurrency": {
        "Blocking": {"test_a_synchronous_body_does_not_hold_up_the_loop"},
        "Elsewhere": {
            "test_a_synchronous_body_does_not_hold_up_the_loop",
            "test_a_synchronous_call_inside_a_running_loop",
        },
        "AtHome": {"test_a_backend_belongs_to_no_event_loop", "test_sixteen_threads_file_one_row"},
        "Looping": {"test_a_synchronous_call_inside_a_running_loop"},
        "Mixing": {"test_a_synchronous_call_inside_a_running_loop", "test_tenants_that_take_turns_never_mix"},
    },
    "turns": {
        "Stream": {
            "test_a_streamed_turn_is_the_same",
            "test_an_agent_that_is_a_tool_streamed",
            "test_who_watches_a_stream_sees_the_replacement",
        },
        "Hidden": {"test_a_turn_without_an_event_loop_is_the_same"},
        "Lost": {"test_an_agent_that_is_a_tool"},
        "Watched": {
            "test_who_watches_a_nested_turn_sees_the_replacement",
            "test_who_watches_a_stream_sees_the_replacement",
            "test_who_watches_sees_the_replacement",
        },
    },
}
"""By subject, which of the subject's tests a wrong bridge fails. It passes the others, so a failure names the rule."""


def caught_by(pytester, tests, names):
    """What fails of these tests on each of these bridges, and what passed."""
    file = pytester.makepyfile(
        f"""
        from affiant_core.testing.bridge_suite import BridgeSuite
        from tests.support.wrong_bridges import harnesses

        class TestWrong(BridgeSuite):
            harnesses = harnesses({names!r})
        """
    )
    passed, _, failed = run_kit(pytester, *(f"{file}::TestWrong::{test}" for test in sorted(tests)))
    assert [report.longreprtext for report in failed if "[Right" in report.nodeid] == []
    return by_parameter(failed), by_parameter(passed)


@pytest.mark.parametrize("subject", CAUGHT)
def test_each_wrong_bridge_fails_at_the_rule_that_it_breaks(pytester, subject):
    """The kit: the suite tells what a wrong bridge does wrong, and finds no fault in a right one."""
    expected = CAUGHT[subject]
    tests = set().union(*expected.values())
    failed, passed = caught_by(pytester, tests, ["Right", *expected])
    assert failed == expected
    assert passed["Right"] == tests <= set(standard_tests(BridgeSuite))


# --- the marks -----------------------------------------------------------------------------------------------------

GAPS = """
from affiant_core.testing import Capability, never
from affiant_core.testing.bridge_suite import BridgeSuite
from tests.support.wrong_bridges import Kit, Right


class Unstreamed(Right):
    async def play(self, script, context, *, mode="plain"):
        if mode == "streamed":
            return await super(Right, self).play(script, context, mode=mode)  # Backend's own: there is no streaming
        return await super().play(script, context)


class Broken(Right):
    async def play(self, script, context, *, mode="plain"):
        if mode == "streamed":
            raise KeyError("a fault of the harness")
        return await super().play(script, context)


class Suite:
    gaps = {}

    def __init_subclass__(cls):
        kit = Kit(cls.backend)
        kit.gaps = {name: never("it cannot") for name in cls.gaps}
        cls.harnesses = [kit]


class TestLacking(Suite, BridgeSuite):
    backend, gaps = Unstreamed, [Capability.STREAMING]


class TestByItsName(Suite, BridgeSuite):
    backend, gaps = Unstreamed, ["test_a_streamed_turn_is_the_same"]


class TestUndeclared(Suite, BridgeSuite):
    backend = Unstreamed


class TestNeedless(Suite, BridgeSuite):
    backend, gaps = Right, [Capability.STREAMING]


class TestHiding(Suite, BridgeSuite):
    backend, gaps = Broken, [Capability.STREAMING]


class TestMisnamed(Suite, BridgeSuite):
    backend, gaps = Unstreamed, ["streamed", "test_a_streamed_turn"]
"""


def test_a_gap_is_declared_and_true(pytester):
    """The kit: what a backend lacks fails unless declared, and what is declared fails once it is there after all."""
    pytester.makepyfile(GAPS)
    _, skipped, failed = run_kit(pytester, "-k", "a_streamed_turn_is or gaps")
    streamed = {"TestUndeclared", "TestNeedless", "TestHiding", "TestMisnamed"}
    assert {each.nodeid.split("::")[1] for each in failed if "a_streamed_turn" in each.nodeid} == streamed
    assert [each.nodeid.split("::")[1] for each in failed if "gaps" in each.nodeid] == ["TestMisnamed"]
    assert {each.nodeid.split("::")[1] for each in skipped} == {"TestLacking", "TestByItsName"}
    assert {each.wasxfail for each in skipped} == {"never: it cannot"}
    reasons = {each.nodeid.split("::")[1]: each.longreprtext for each in failed}
    assert "Unsupported: no streaming" in reasons["TestUndeclared"]
    assert "[XPASS(strict)] never: it cannot" in reasons["TestNeedless"]
    assert "a fault of the harness" in reasons["TestHiding"]


@pytest.mark.parametrize("gap", [notimpl, notyet, never])
def test_a_gap_has_a_reason(gap):
    """The kit: nobody is told that something is lacking and not why."""
    assert str(gap("there is no stream")) == f"{gap.__name__}: there is no stream"
    with pytest.raises(ValueError, match="a gap has a reason"):
        gap(" ")


SUITES = """
import pytest

from affiant_core.testing import DirectHarness
from affiant_core.testing.bridge_suite import BridgeSuite


class TestDeleting(BridgeSuite):
    harnesses = [DirectHarness()]
    test_a_turn = None


class TestReplacing(BridgeSuite):
    harnesses = [DirectHarness()]

    def test_a_turn(self, harness):
        pass


class TestHidden(BridgeSuite):
    harnesses = [DirectHarness()]

    @pytest.mark.xfail  # it lacks the reason on purpose: the kit has to object
    def test_a_turn(self, harness):
        assert False


class TestOpen(BridgeSuite):
    harnesses = [DirectHarness()]

    @pytest.mark.xfail(reason="turns end early here")
    def test_a_turn(self, harness):
        assert False

    def test_more(self, harness):
        pass
"""


def test_a_suite_may_add_tests_and_leave_none_out(pytester):
    """The kit: a standard test that is deleted, replaced or hidden without a reason is missed."""
    pytester.makepyfile(SUITES)
    passed, _, failed = run_kit(pytester, "-k", "standard_test or test_more")
    assert {report.nodeid.split("::")[1] for report in failed} == {"TestDeleting", "TestReplacing", "TestHidden"}
    assert [report.nodeid.split("::")[1] for report in passed] == ["TestOpen"] * 2


# --- the plugin ----------------------------------------------------------------------------------------------------

SUITE = ("--pyargs", "affiant_core.testing.test_bridge")

BRIDGES = """
from affiant_core.testing import Capability, DirectHarness, never
from tests.support import wrong_bridges


class Lacking(DirectHarness):
    def __init__(self):
        super().__init__(carries_arguments=False)
        self.gaps = {**self.gaps, "test_a_turn_without_an_event_loop_is_the_same": never("it waits")}

    def __repr__(self):
        return "lacking"


HARNESSES = wrong_bridges.harnesses(["Right", "Deaf"])
one = DirectHarness
nobody = []
stranger = [DirectHarness(), "a word"]
twice = [DirectHarness(), DirectHarness()]
"""


@pytest.fixture
def named(pytester):
    """Some bridges that can be named on the command line: ``bridge`` and ``bridge.testing``."""
    pytester.mkpydir("bridge").joinpath("testing.py").write_text(BRIDGES)
    pytester.syspathinsert()


def test_without_a_bridge_the_suite_passes_nothing(pytester):
    """The kit: a run that was given no bridge skips its tests and says how to give it one."""
    passed, skipped, failed = run_kit(pytester, *SUITE, "-k", "test_a_turn or standard_test")
    assert [report.nodeid.rpartition("::")[2] for report in passed] == ["test_no_standard_test_is_missing"]
    assert {report.longrepr[2] for report in skipped} == {"Skipped: nothing to run on: give --affiant-bridge"}
    assert not failed


def run_apart(pytester, *arguments):
    """Run pytest in a process of its own: its status, and what it printed."""
    paths = [pytester.path, ROOT, ROOT / "packages" / "core" / "src"]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    command = [sys.executable, "-m", "pytest", *QUIET, *SUITE, *arguments]
    ran = subprocess.run(
        command, cwd=pytester.path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("bridge", "told"),
    [
        ("nosuch", "'nosuch' names no conformance harness: No module named 'nosuch'. Give package"),
        ("tests", "'tests' names no conformance harness: No module named 'tests.testing'. Give package"),
        ("bridge.testing:nothing", "has no attribute 'nothing'. Give package"),
        ("bridge.testing:stranger", "gives 'a word', which is no Harness. Name a Harness"),
        ("bridge.testing:nobody", "gives no harness at all. Put at least one Harness into it."),
        ("bridge.testing:twice", "gives a second direct. Give each harness its own __repr__."),
    ],
)
@pytest.mark.usefixtures("named")
def test_a_name_that_gives_no_harness_is_a_usage_error(pytester, capsys, bridge, told):
    """The kit: a mistake on the command line ends the run before any test, and says what to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        status = pytest.main([*QUIET, *SUITE, "--affiant-bridge", bridge])
    assert status is pytest.ExitCode.USAGE_ERROR
    printed = capsys.readouterr().err
    assert printed.startswith(f"ERROR: {bridge!r} ")
    assert told in printed
    assert "Traceback" not in printed


def blocks(printed):
    """The report's block of each bridge."""
    _, _, report = printed.partition("Affiant conformance")
    return dict(re.findall(r"^(\w+): (.*\n(?:  .*\n)+)", report, re.MULTILINE))


@pytest.mark.usefixtures("named")
def test_the_report_tells_what_each_bridge_can_do(pytester):
    """The kit: several bridges in one run, each with its counts, and every capability or why it is lacking.

    With several processes the counts are the same.
    """
    bridges = ["--affiant-bridge", "bridge", "--affiant-bridge", "bridge.testing:Lacking"]
    options = [*bridges, "-k", "test_a_turn or cancelled_body or gaps_are"]
    status, printed = run_apart(pytester, *options)
    assert status == pytest.ExitCode.TESTS_FAILED, printed
    told = blocks(printed)
    counts = {name: block.partition("\n")[0] for name, block in told.items()}
    assert counts == {"Right": "8 passed", "Deaf": "1 failed, 7 passed", "lacking": "6 passed, 2 xfailed"}
    for capability in Capability:
        assert f"  {capability.value:<24} yes\n" in told["Right"]
    assert "  streaming                never: there is no framework\n" in told["lacking"]
    assert "  synchronous              yes\n" in told["lacking"]
    assert "  test_a_turn_without_an_event_loop_is_the_same never: it waits\n" in told["lacking"]
    if importlib.util.find_spec("xdist") is not None:
        status, printed = run_apart(pytester, *options, "-p", "xdist", "-n", "2")
        assert (status, blocks(printed)) == (pytest.ExitCode.TESTS_FAILED, told), printed
