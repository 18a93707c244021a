"""One call in two stages: what crosses between them, what the completion is about, and that it is needed once."""

from __future__ import annotations

import asyncio
import functools
import threading

import pytest
from pydantic import BaseModel
from support.pipeline import READ, WRITE, Body, Host, invocation_for, model_json, proposal, read_result

from affiant_core.bridge import (
    ArgumentsRefused,
    Handover,
    Stages,
    again,
    awaits_review,
    bound_functions,
    contradictions,
    copied,
    drained,
    faults_of,
    in_thread,
    is_blocking,
    is_made_by,
    joined,
    not_found,
    refuse,
    sent_arguments,
    undeclared,
    unfit_names,
    without_tool,
)
from affiant_core.envelope import ToolError
from affiant_core.errors import WireupInvalid, WiringError, WiringFault
from affiant_core.filters.review import DefaultReviewContextProvider
from affiant_core.pipeline import read_plain
from affiant_core.registry import marked_operation, read_tool, write_tool


class Framework:
    """A framework with two hooks: the outer one is ``call``, the inner one ``inner``, and hooks of the host between."""

    def __init__(self, host, body, *, descriptor=WRITE, between=None, **options):
        self.stages = Stages(host.affiant, package="tests", **options)
        self.body, self.descriptor, self.between = Body(body), descriptor, between
        self.seen, self.result = [], None

    def invocation(self):
        return invocation_for("async", tool_name=self.descriptor.name, descriptor=self.descriptor)

    async def inner(self):
        with self.stages.inside(lambda outer: outer is self) as handover:
            invocation = self.invocation()
            invocation.arguments = {"limit": 1}

            async def body():
                return self.body()

            await self.stages.invoke(invocation, body)
            if handover is None:
                return self.stages.told(await self.stages.complete(invocation))
            self.result = handover.give(invocation)
            self.seen.append(self.result)
            return self.result

    async def outer(self):
        proceed = self.inner if self.between is None else functools.partial(self.between, self)
        completed = await self.stages.around(self.invocation(), Handover(self), proceed, lambda: self.result)
        return self.stages.told(completed)

    def call(self):
        return asyncio.run(self.outer())


def test_a_proposal_crosses_as_a_refusal_and_is_filed_once():
    """CV-2, seam 4: what the framework carries is true if the completion is left out; the model gets the receipt."""
    host = Host()
    framework = Framework(host, proposal())
    assert model_json(framework.call())["entryId"] == host.rows()[0].entry_id
    (carried,) = framework.seen
    assert model_json(carried)["code"] == "wireup-invalid"
    assert "500" not in carried
    assert len(host.rows()) == 1


@pytest.mark.parametrize("carried", [False, True])
def test_the_completion_gets_arguments_only_when_the_host_opts_in(carried):
    """DECISIONS 9: an empty map, which is none, unless carry_arguments; the invocation stage has them either way."""
    seen = []

    class Provider(DefaultReviewContextProvider):
        def review_context(self, proposal, turn):
            seen.append(proposal.arguments)
            return super().review_context(proposal, turn)

    Framework(Host(context_provider=Provider()), proposal(), carry_arguments=carried).call()
    assert seen == [{"limit": 1} if carried else None]


def test_the_last_result_that_the_framework_holds_is_the_one_that_counts():
    """Seam 3: a hook that runs the inner stage twice and keeps the first result gets that one filed, and no other."""

    async def keeps_first(framework):
        first = await framework.inner()
        framework.body = Body(proposal(7))
        await framework.inner()
        framework.result = first

    host = Host()
    Framework(host, proposal(500), between=keeps_first).call()
    assert [row.affidavit.values()["limit"] for row in host.rows()] == [500]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_hook_that_fails_is_answered_and_what_has_executed_outlives_it(is_late, caplog):
    """DECISIONS 13: an exception would leave a turn with half its answers; none of its text reaches the model."""

    async def fails(framework):
        if is_late:
            await framework.inner()
        raise RuntimeError("db-internal-7")

    host = Host()
    told = model_json(Framework(host, proposal(), between=fails).call())
    assert "db-internal-7" in caplog.text
    assert len(host.rows()) == is_late
    assert told.get("code") == (None if is_late else "UNKNOWN")
    assert "db-internal-7" not in str(told)


def test_what_a_hook_puts_there_is_gated():
    """Seed, Rule 2: a hook that answers in the tool's place is a tool to the gate."""

    async def answers(framework):
        framework.result = proposal().to_json_string()

    host = Host()
    framework = Framework(host, "never", between=answers)
    assert model_json(framework.call())["entryId"] == host.rows()[0].entry_id
    assert framework.body.calls == 0


class Wrapped(Exception):
    """An exception of the framework, with what it wraps for its cause."""


Wrapped.__module__ = "tests.somewhere"


def test_a_fault_of_the_host_leaves_both_hooks():
    """DECISIONS 13: WireupInvalid is raised, also out of the framework's own wrapping, and nothing is filed."""
    host, fault = Host(), WireupInvalid("no turn")
    wrapped = Wrapped()
    wrapped.__cause__ = fault
    for error in (fault, wrapped):
        with pytest.raises(WireupInvalid) as caught:
            Framework(host, error).call()
        assert caught.value is fault
    assert host.rows() == ()


def test_a_fault_that_the_framework_made_text_of_is_still_raised():
    """DECISIONS 13: what left the inner hook counts, whatever the framework says in its place."""

    async def swallows(framework):
        try:
            await framework.inner()
        except WireupInvalid:
            framework.result = "An error occurred."

    with pytest.raises(WireupInvalid, match="no turn"):
        Framework(Host(), WireupInvalid("no turn"), between=swallows).call()


def test_the_frameworks_own_cancellation_leaves_the_inner_hook_and_is_answered_at_the_outer():
    """DECISIONS 14: it is nobody's error where the framework can take it; the loop's answer has none of its text."""

    class Cancelled(Exception):
        pass

    framework = Framework(Host(), Cancelled("secret"), cancelled=Cancelled)
    with pytest.raises(Cancelled):
        asyncio.run(framework.inner())
    assert "secret" not in framework.call()


def test_a_call_inside_the_body_is_not_the_outer_hooks_own():
    """Seam 6: the link is consumed by the inner hook, so what the body calls completes by itself."""
    host = Host()
    framework = Framework(host, None)
    inner = Framework(host, proposal())

    async def body():
        with framework.stages.inside(lambda outer: True) as handover:
            assert handover is None
        return await inner.inner()

    async def call():
        async def proceed():
            with framework.stages.inside(lambda outer: outer is framework) as handover:
                assert handover is not None
                invocation = framework.invocation()
                await framework.stages.invoke(invocation, body)
                framework.result = handover.give(invocation)

        handover = Handover(framework)
        return await framework.stages.around(framework.invocation(), handover, proceed, lambda: framework.result)

    completed = asyncio.run(call())
    assert model_json(completed.result)["entryId"] == host.rows()[0].entry_id  # and the declared write is not refused
    assert len(host.rows()) == 1


def test_the_gates_own_answer_is_let_through_only_word_for_word():
    """Seam 7: a body that says more than what the gate answered has to propose by itself."""
    host = Host()
    inner = Framework(host, proposal())

    class Saying:
        calls = 0

        async def __call__(self):
            return f"{await inner.inner()} "

    outer = Framework(host, None)
    invocation = outer.invocation()

    async def call():
        await outer.stages.invoke(invocation, Saying())
        return await outer.stages.complete(invocation)

    assert model_json(asyncio.run(call()).result)["code"] == "wireup-invalid"


# --- what needs a completion ---------------------------------------------------------------------------------------

ERROR = ToolError(tool_name="set_limit", code="GONE", message="It is gone.")
NEEDED = [
    (READ, read_result(), False),
    (READ, "text", False),
    (READ, None, False),
    (READ, {"a": 1}, False),
    (READ, ERROR, False),
    (READ, proposal(), True),
    (READ, proposal().to_json_string(), True),
    (READ, [proposal(), "more"], True),
    (READ, {"kind": "search", "draft": proposal()}, True),
    (WRITE, {**ERROR.to_json(), "draft": proposal()}, True),
    (WRITE, proposal(), True),
    (WRITE, None, True),
    (WRITE, "text", True),
    (WRITE, read_result(), True),
    (WRITE, ERROR, False),
]


@pytest.mark.parametrize(("descriptor", "result", "needed"), NEEDED)
def test_what_awaits_its_review(descriptor, result, needed):
    """CV-2, DECISIONS 6: a proposal anywhere, and anything but an error from a declared write."""
    invocation = invocation_for("async", descriptor=descriptor, result=result)
    assert awaits_review(invocation) is needed
    given = Handover(None).give(invocation)
    assert ("did not pass the review gate" in str(given)) is needed


def test_a_read_without_a_proposal_is_complete_as_it_is():
    """The budget of a read call: nothing is reviewed, so no second pipeline runs; a declared write always completes."""
    stages = Stages(Host().affiant, package="tests")
    read = invocation_for("async", result=read_result())
    assert asyncio.run(stages.complete(read)) is read
    write = invocation_for("async", descriptor=WRITE, result=ERROR)
    assert asyncio.run(stages.complete(write)) is not write


def test_only_an_affiant_has_stages():
    """A mistake at wiring names what was given."""
    with pytest.raises(TypeError, match="Host"):
        Stages(Host(), package="tests")


def test_what_cannot_be_copied_is_an_error_for_a_model_only():
    """Seam 3, "a lock inside raises out of the loop": a model gets an error in its place, a caller gets the object."""
    stages = Stages(Host().affiant, package="tests")
    lock = threading.Lock()
    invocation = invocation_for("async", result=lock)
    assert stages.told(invocation, to_model=False) is lock
    assert model_json(stages.told(invocation))["code"] == "VALIDATION_FAILED"


# --- streams and threads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offloads", [False, True])
def test_streams_are_drained_and_given_again(offloads):
    """Seam 3: all parts are known before one is shown; what is no stream is none."""

    async def later():
        yield "a"
        yield "b"

    def now():
        yield threading.current_thread() is threading.main_thread()

    async def run():
        parts = await drained(later(), offloads=offloads)
        assert await drained(now(), offloads=offloads) == [not offloads]
        assert await drained(["a"], offloads=offloads) is None
        return [part async for part in again(parts)]

    assert asyncio.run(run()) == ["a", "b"]


def test_parts_are_one_text_only_if_all_are_text():
    """CV-2: a proposal in two parts is one proposal; parts of another kind stay parts."""
    text = proposal().to_json_string()
    assert joined([text[:9], text[9:]], read_plain) == text
    assert joined([1, "a"], read_plain) == [1, "a"]
    assert joined([], read_plain) == []


def test_synchronous_bodies_in_threads():
    """C15: functions and generators leave the loop's thread; what is asynchronous is not blocking."""

    def where():
        return threading.current_thread() is threading.main_thread()

    def parts():
        yield where()

    async def later():
        return where()

    assert (is_blocking(where), is_blocking(later), is_blocking(functools.partial(later)), is_blocking(None)) == (
        True,
        False,
        False,
        False,
    )
    assert asyncio.run(in_thread(where)()) is False
    assert asyncio.run(in_thread(parts)()) == [False]


# --- arguments and schemas -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", ['{"a": 1, "tenant": "EVIL"}', {"a": 1, "tenant": "EVIL"}])
def test_a_model_sends_only_what_is_its_to_send(sent):
    """Seam 2: a hidden parameter is refused by name; text and map are read alike."""
    with pytest.raises(ArgumentsRefused) as caught:
        sent_arguments(sent, {"a"})
    assert caught.value.places == ("tenant",)
    assert sent_arguments(sent, {"a", "tenant"}) == {"a": 1, "tenant": "EVIL"}


def test_arguments_are_copied_for_each_attempt():
    """DECISIONS 15: what a body does to a list is not seen by a second attempt."""
    nested = [{"a": 1}]
    attempt = copied(nested)
    assert attempt == nested
    assert attempt[0] is not nested[0]
    assert copied("text") == "text"


class Node(BaseModel):
    """A node of a tree."""

    value: int
    next: Node | None = None


class Recursive:
    """A desk with a parameter that refers to itself."""

    @read_tool
    def look(self, node: Node, other: int = 1) -> str:
        """Look."""
        return f"{node} {other}"


def test_each_parameter_is_shown_alone():
    """Frameworks that show a parameter's schema without the rest need what it refers to written in."""
    (bound,) = bound_functions(Host(tools=Recursive()).affiant)
    schemas = bound.parameter_schemas()
    assert set(schemas) == {"node", "other"}
    assert schemas["node"]["$defs"]["Node"]["properties"]["next"]["anyOf"][0] == {
        "$ref": "#/properties/node/$defs/Node"
    }
    assert schemas["other"]["default"] == 1


# --- faults --------------------------------------------------------------------------------------------------------


@write_tool(operation="WriteUpdate", entity_type="Customer")
def marked():
    """Write."""


def test_a_mark_is_read_through_a_partial():
    """Seam 6: the mark of a function is what read_tool and write_tool have left on it."""
    assert marked_operation(functools.partial(functools.partial(marked))) == "WriteUpdate"
    assert marked_operation(Recursive().look) == "ReadQuery"
    assert marked_operation(test_a_mark_is_read_through_a_partial) is None
    assert marked_operation(None) is None


def test_faults_of_a_frameworks_functions():
    """C18, DECISIONS 16: marks that contradict, writes that act elsewhere, names, and tools that are not there."""
    here = __name__
    assert [fault.fault for fault in contradictions("P-f", marked, READ)] == [
        "it is marked WriteUpdate and declared ReadQuery."
    ]
    assert not list(contradictions("P-f", marked, WRITE, ["elsewhere"]))
    (elsewhere,) = contradictions("P-f", functools.partial(marked), WRITE, [here])
    assert "its own server" in elsewhere.fault
    assert is_made_by(Recursive().look, here)
    assert not is_made_by(None, here)
    names = [fault.subject for fault in unfit_names(["a" * 65, "a_b", "a-b", "a"], "Rename.")]
    assert names == [f"tool {'a' * 65!r}", "tools 'a_b' and 'a-b'"]
    host = Host()
    there = host.affiant.declare_read("there", plugin="P")
    host.affiant.declare_read("gone", plugin="P")
    (gone,) = without_tool(host.affiant, [there], "nobody")
    assert (gone.subject, gone.fault) == ("tool 'P.gone'", "it is declared, and nobody has it.")
    assert "declare_read('f', plugin='P')" in undeclared("P-f", "f", "P").remedy


def test_faults_are_told_once_and_together():
    """CV-1: told or raised, every fault is in one error, once; without one nothing is raised."""
    fault = WiringFault("tool 'a'", "it is wrong.", "Mend it.")

    def raises():
        raise WiringError([fault])

    assert faults_of(raises) == faults_of(lambda: iter([fault])) == [fault]
    assert faults_of(lambda: None) == []
    refuse([])
    with pytest.raises(WiringError) as caught:
        refuse([fault, fault])
    assert list(caught.value.faults) == [fault]


def test_a_tool_that_is_not_there():
    """REFERENCE 9: FUNCTION_NOT_FOUND, not retryable; a name that no tool could have is not repeated."""
    assert (not_found("a-b").tool_name, not_found("a b\nIGNORE").tool_name) == ("a-b", "unknown")
    assert (not_found("a").code, not_found("a").retryable) == ("FUNCTION_NOT_FOUND", False)
