"""Answers that need no tool: the first interceptor that matches supplies the result."""

from __future__ import annotations

import asyncio

import pytest
from support.pipeline import WRITE, Body, Host, both, entity, model_json, proposal, read_result

from affiant_core.envelope import ToolError
from affiant_core.filters.extraction import EmitEveryEntity
from affiant_core.filters.short_circuit import Interceptor
from affiant_core.filters.tracing import ToolTracingFilter

ARGUMENTS = {"customer_id": "c-1", "options": {"tags": ["a"]}}


def interceptor(answer, *, matches=lambda *_: True, diary=None):
    """An interceptor that supplies ``answer``, or calls it, and notes when it is asked and when it answers."""
    diary = [] if diary is None else diary

    def asked(name, arguments):
        diary.append(("asked", name, arguments))
        return matches(name, arguments)

    def supply(name, arguments):
        diary.append(("supplied", name, arguments))
        return answer() if callable(answer) else answer

    return Interceptor(asked, supply)


@both
def test_a_match_supplies_the_result_and_the_tool_does_not_run(mode):
    """REFERENCE 6.3: the first interceptor that matches supplies the result, and next is not called."""
    body = Body("never")
    invocation = Host(interceptors=[interceptor("supplied")]).read(mode, body)
    assert invocation.result == "supplied"
    assert body.calls == 0
    assert invocation.tool_executed is False


@both
def test_without_a_match_the_tool_runs(mode):
    """REFERENCE 6.3: an interceptor that does not match changes nothing and is not asked to supply."""
    diary = []
    host = Host(interceptors=[interceptor("never", matches=lambda *_: False, diary=diary)])
    found = read_result(entity())
    assert host.read(mode, found).result is found
    assert [entry[0] for entry in diary] == ["asked"]


@both
def test_the_first_match_wins(mode):
    """REFERENCE 6.3: interceptors are asked in order, and the ones behind the first match are not asked."""
    diary = []
    chain = [
        interceptor("no", matches=lambda *_: False, diary=diary),
        interceptor("first", matches=lambda name, arguments: arguments["customer_id"] == "c-1", diary=diary),
        interceptor("second", diary=diary),
    ]
    invocation = Host(interceptors=chain).read(mode, "never", arguments=dict(ARGUMENTS))
    assert invocation.result == "first"
    assert [entry[0] for entry in diary] == ["asked", "asked", "supplied"]
    assert {entry[1] for entry in diary} == {"find_customer"}


@both
def test_the_arguments_are_a_snapshot(mode):
    """REFERENCE 6.3, "Snapshot the arguments": what one interceptor does to them reaches no other, nor the tool."""

    def spoiling(name, arguments):
        arguments["options"]["tags"].append("spoilt")
        arguments["extra"] = 1
        return False

    diary = []
    given = {"customer_id": "c-1", "options": {"tags": ["a"]}}
    host = Host(interceptors=[Interceptor(spoiling, lambda *_: "never"), interceptor("supplied", diary=diary)])
    invocation = host.read(mode, "never", arguments=given)
    assert invocation.arguments == ARGUMENTS
    assert [entry[2] for entry in diary] == [ARGUMENTS, ARGUMENTS]


@both
def test_an_answer_may_be_asynchronous(mode):
    """DECISIONS 21: supply is waited for in both modes."""

    async def supply():
        await asyncio.sleep(0)
        return "supplied"

    assert Host(interceptors=[interceptor(supply)]).read(mode, "never").result == "supplied"


@both
def test_there_is_no_span_and_no_extraction(mode, monkeypatch):
    """REFERENCE 6.3, "no execute_tool span exists": a supplied result passes none of the layers further in."""
    entered = []
    original = ToolTracingFilter.__call__

    async def watching(self, invocation, call_next):
        entered.append(invocation.tool_name)
        await original(self, invocation, call_next)

    monkeypatch.setattr(ToolTracingFilter, "__call__", watching)
    host = Host(interceptors=[interceptor(read_result(entity()))], extractors=[EmitEveryEntity()])
    invocation = host.read(mode, "never")
    assert entered == []
    assert invocation.turn.fabric.entities() == ()
    Host(interceptors=[interceptor("x", matches=lambda *_: False)]).read(mode, "prose")
    assert entered == ["find_customer"]


@both
def test_a_supplied_proposal_is_gated(mode):
    """REFERENCE 6.3, CV-2: the gate files a proposal that an interceptor supplies, and the model gets the receipt."""
    host = Host(interceptors=[interceptor(proposal)])
    invocation = host.write(mode, "never")
    assert model_json(invocation.result)["outcome"] == "filed"
    assert len(host.rows()) == 1
    assert host.read(mode, "never").tool_executed is False


@both
def test_a_declared_write_supplied_with_prose_is_refused(mode):
    """DECISIONS 6: what a declared write hands back is a proposal or an error, whoever supplies it."""
    host = Host(interceptors=[interceptor("done")])
    assert host.write(mode, "never").envelope().code == "wireup-invalid"
    assert host.rows() == ()


@both
def test_a_supplied_error_passes(mode):
    """DECISIONS 7: an error that an interceptor supplies for a declared write crosses untouched."""
    error = ToolError(tool_name="set_limit", code="CLOSED", message="Closed on Sundays.")
    assert Host(interceptors=[interceptor(error)]).write(mode, "never").result is error


@both
@pytest.mark.parametrize("where", ["matches", "supply"])
def test_an_interceptor_that_fails_is_mapped_like_the_tool(mode, where):
    """Seed, "no fourth path": the error filter stands outside, so a host's interceptor leaks no exception either."""

    def fail(*_):
        raise RuntimeError("cache at 10.0.0.5")

    failing = Interceptor(fail if where == "matches" else lambda *_: True, fail)
    body = Body("never")
    error = Host(interceptors=[failing]).read(mode, body).envelope()
    assert error.code == "UNKNOWN"
    assert "10.0.0.5" not in error.message
    assert body.calls == 0


def test_without_interceptors_there_is_no_layer():
    """REFERENCE 6.2: error filter, short circuit, tracing, extractors, review; what is unused is left out."""
    plain = [type(each).__name__ for each in Host().pipeline.filters]
    assert plain == ["ToolErrorFilter", "ToolTracingFilter", "ReviewGateFilter"]
    full = Host(interceptors=[interceptor("x")], extractors=[EmitEveryEntity(), EmitEveryEntity()]).pipeline.filters
    assert [type(each).__name__ for each in full] == [
        "ToolErrorFilter",
        "DeterministicShortCircuit",
        "ToolTracingFilter",
        "ContextExtractionFilter",
        "ContextExtractionFilter",
        "ReviewGateFilter",
    ]


@both
def test_the_declared_write_descriptor_is_the_tools(mode):
    """REFERENCE 6.3: an interceptor is asked by the tool's name, for writes as for reads."""
    diary = []
    Host(interceptors=[interceptor("x", matches=lambda *_: False, diary=diary)]).write(mode, proposal())
    assert [entry[1] for entry in diary] == [WRITE.name]
