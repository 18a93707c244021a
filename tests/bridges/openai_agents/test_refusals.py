"""What is refused: at wiring everything at once, at run time before any body (CV-1, CV-2; DECISIONS 12, 13, 16)."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
import textwrap

import pytest
from agents import (
    ApplyPatchTool,
    CodeInterpreterTool,
    ComputerTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    ToolSearchTool,
    WebSearchTool,
    function_tool,
)
from pydantic import BaseModel
from support.gate import turn
from support.openai_agents import (
    FIND,
    LIMIT,
    MODES,
    PROPOSAL,
    SECRET,
    Host,
    LimitDesk,
    asks,
    call,
    document_of,
    found,
    heard_by,
    outputs_in,
    plain_agent,
    proposed,
    run,
)

from affiant_agents_bridge import bind, wrap
from affiant_core import Affiant, DocketError, InMemoryDocketStore, WireupInvalid, WiringError
from affiant_core.errors import RefusalCode
from affiant_core.filters.review import FILING_FAILED
from affiant_core.vocabulary import CoverageCategory

EVERY = pytest.mark.parametrize("mode", MODES)


def read(name="look", **options):
    async def body(customer_id: str) -> str:
        return "text"

    return function_tool(body, name_override=name, description_override="Look.", **options)


def declared(*names, writes=(), **options):
    affiant = Host(**options).affiant
    for name in names:
        affiant.declare_read(name)
    for name in writes:
        affiant.declare_write(name, operation="WriteUpdate", entity_type="Customer")
    return affiant


def faults_of(tools, affiant):
    with pytest.raises(WiringError) as refused:
        wrap(tools, affiant)
    return {fault.subject: fault for fault in refused.value.faults}


# --- the context ---------------------------------------------------------------------------------------------------

WRONG = {"nothing": None, "a dictionary": {"tenant_id": "acme"}, "text": "acme", "a class": type(turn())}


@EVERY
@pytest.mark.parametrize("context", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["find_customer", "set_limit"])
def test_a_call_without_a_turn_is_the_hosts_fault(name, context, mode):
    """DECISIONS 12: loud, before any body, reads included; the model is asked once and told nothing."""
    desk = LimitDesk()
    host = Host(desk)
    agent = host.agent(asks((name, LIMIT)))
    with pytest.raises(WireupInvalid, match=r"CV-2.*Runner\.run"):
        run(agent, context, mode=mode)
    assert (desk.calls, host.rows(), len(agent.model.calls)) == ([], (), 1)


@pytest.mark.anyio
async def test_a_restored_run_needs_its_turn_again():
    """Seam 3, "After RunState.from_string it is a plain dict unless context= is given": refused until it is given."""
    from agents import Runner, RunState
    from support.openai_agents import QUIET, model

    desk = LimitDesk()
    host = Host(desk)
    host.affiant.declare_read("ask")
    approved = function_tool(lambda: "text", name_override="ask", needs_approval=True)
    tools = [*host.bind().values(), *wrap([approved], host.affiant)]
    agent = host.agent(asks(("ask", {}), ("set_limit", LIMIT)), tools=tools)
    stopped = await Runner.run(agent, "go", context=turn(), run_config=QUIET)
    saved = stopped.to_state().to_string(context_serializer=lambda _: {"tenant_id": "acme"})
    before = len(host.rows())
    for given in ({}, {"context": turn()}):
        agent.model = model()
        state = await RunState.from_string(agent, saved)
        (item,) = state.get_interruptions()
        state.approve(item)
        if given:
            assert (await Runner.run(agent, state, run_config=QUIET, **given)).final_output == "done"
        else:
            with pytest.raises(WireupInvalid, match="a dict"):
                await Runner.run(agent, state, run_config=QUIET)
    assert len(host.rows()) == before == 1


def test_a_host_function_that_fails_is_no_turn():
    """DECISIONS 12, "malformed": what turn_of raises is told as a refusal with its cause, not as text for a model."""
    desk = LimitDesk()
    tools = bind(Host(desk).affiant, turn_of=lambda ctx: ctx.context["hunter2"])
    with pytest.raises(WireupInvalid, match="KeyError") as refused:
        run(plain_agent(tools, asks(("find_customer", FIND))), {})
    assert "hunter2" not in str(refused.value)
    assert desk.calls == []


# --- one list of faults --------------------------------------------------------------------------------------------


def hosted_tools():
    """One of every kind that no gate can stand in front of, with what it is called and why."""
    mcp = {"type": "mcp", "server_label": "crm", "server_url": "https://example.org", "require_approval": "never"}
    container = {"type": "container_auto"}
    interpreter = {"type": "code_interpreter", "container": {"type": "auto"}}
    provider, local = CoverageCategory.PROVIDER_EXECUTED, CoverageCategory.NO_EXECUTE

    async def nothing(*_):
        return ""

    yield HostedMCPTool(tool_config=mcp), "crm", CoverageCategory.HOSTED_MCP
    yield WebSearchTool(), "web_search", provider
    yield FileSearchTool(vector_store_ids=["v"]), "file_search", provider
    yield CodeInterpreterTool(tool_config=interpreter), "code_interpreter", provider
    yield ImageGenerationTool(tool_config={"type": "image_generation"}), "image_generation", provider
    yield ToolSearchTool(), "tool_search", provider
    yield ProgrammaticToolCallingTool(), "programmatic_tool_calling", provider
    yield ShellTool(environment=container), "shell", provider
    yield ShellTool(executor=nothing, name="bash"), "bash", local
    yield LocalShellTool(executor=nothing), "local_shell", local
    yield ApplyPatchTool(editor=object()), "apply_patch", local
    yield CustomTool("custom", "Do it.", nothing), "custom", local


HOSTED = {name: (tool, name, category) for tool, name, category in hosted_tools()}


@pytest.mark.parametrize(("tool", "name", "category"), HOSTED.values(), ids=HOSTED)
def test_what_runs_elsewhere_is_refused_with_its_category(tool, name, category):
    """Issue: hosted tools are refused with coverage-refused and the category, or declared uncovered by name."""
    fault = faults_of([tool], Host().affiant)[f"tool {name!r}"]
    assert fault.code is RefusalCode.COVERAGE_REFUSED
    assert category.value in fault.fault
    uncovered = Host(uncovered={name: category}).affiant
    if category is CoverageCategory.NO_EXECUTE:
        uncovered.declare_read(name)
    assert wrap([tool], uncovered) == [tool]
    other = next(each for each in CoverageCategory if each is not category)
    with pytest.raises(WiringError, match="coverage-refused"):
        wrap([tool], Host(uncovered={name: other}).affiant)


def test_a_computer_is_refused():
    """Seam 8: a ComputerTool's result must be a screenshot, so no envelope can stand for it."""

    class Screen:
        environment = dimensions = None

    tool = object.__new__(ComputerTool)
    tool.computer = Screen()
    assert "coverage-refused" in faults_of([tool], Host().affiant)[f"tool {tool.name!r}"].fault


def test_everything_that_is_wrong_is_told_at_once():
    """C19 and DECISIONS 16, "all offenders in one error": undeclared, hosted, plain, twice named, bridged, agents."""

    def plain(customer_id: str) -> str:
        return customer_id

    affiant = declared("bridged", "twice", "near_miss", "near-miss", "x" * 65)
    (bridged,) = wrap([read("bridged")], declared("bridged"))
    agent = plain_agent([]).as_tool("inner", "Ask.")
    tools = [read("unknown"), read("other"), WebSearchTool(), plain, LimitDesk, read("twice"), read("twice"), agent]
    told = faults_of([*tools, read("near_miss"), read("near-miss"), bridged, read("x" * 65), {"type": "mcp"}], affiant)
    assert set(told) == {
        "tool 'unknown'",
        "tool 'other'",
        "tool 'web_search'",
        "tool 'plain'",
        "tool 'LimitDesk'",
        "tool 'dict'",
        "tool 'inner'",
        "tools 'twice' and 'twice'",
        "tools 'near_miss' and 'near-miss'",
        "tool 'bridged'",
        f"tool '{'x' * 65}'",
    }
    assert "not declared" in told["tool 'unknown'"].fault
    assert "bridged already" in told["tool 'bridged'"].fault
    assert "agent_tool" in told["tool 'inner'"].remedy


@pytest.mark.parametrize("name", ["find_customer", "find-customer"])
def test_a_name_that_bind_offers_is_taken(name):
    """C18, "two tools with one name": a tool with the name of a function of Affiant(tools=...) is refused."""
    affiant = Host(LimitDesk()).affiant
    if name != "find_customer":
        affiant.declare_read(name)
    assert list(faults_of([read(name)], affiant)) == [f"tools {name!r} and 'find_customer'"]


@pytest.mark.parametrize("names", [("a__b", "a_b"), ("Find", "find"), ("a-b", "a_b")])
def test_names_that_a_model_cannot_tell_apart(names):
    """C18, "names equal after the provider's normalisation": refused at wiring, naming both, once."""
    affiant = Host().affiant
    for name, plugin in zip(names, ("p", "q"), strict=True):
        affiant.declare_read(name, plugin=plugin)
    assert list(faults_of([read(name) for name in names], affiant)) == [f"tools {names[0]!r} and {names[1]!r}"]


def test_bound_tools_are_bridged_already():
    """Issue, "a bridge installed twice (wrapping a wired tool)": refused, since a proposal would be filed twice."""
    told = faults_of(list(Host(LimitDesk()).bind().values()), declared("find_customer", "set_limit"))
    assert {fault.fault for fault in told.values()} == {"it is bridged already."}


class Row(BaseModel):
    n: int = 1


SETTINGS = {
    "approval by a function": ({"needs_approval": lambda *_: False}, False, "needs_approval is a function"),
    "approval of a write": ({"needs_approval": True}, True, "before there is a proposal"),
    "output type": ({"output_type": Row}, False, "output schema"),
    "output schema": ({"output_json_schema": {"type": "object", "properties": {}}}, True, "output schema"),
}


@pytest.mark.parametrize(("options", "writes", "words"), SETTINGS.values(), ids=SETTINGS)
def test_settings_that_do_not_go_with_a_gate(options, writes, words):
    """Traps 4 and 5: an output schema aborts a run after filing, a callable approval is asked about other arguments."""
    affiant = declared(writes=("look",)) if writes else declared("look")
    assert words in faults_of([read(**options)], affiant)["tool 'look'"].fault


def test_a_class_with_a_way_in_of_its_own_is_refused():
    """C19, "Paths around the gate": a class that defines on_invoke_tool itself would not run the wired one."""

    class Short(FunctionTool):
        @property
        def on_invoke_tool(self):
            return self._invoke

        @on_invoke_tool.setter
        def on_invoke_tool(self, value):
            pass

        async def _invoke(self, ctx, text):
            return PROPOSAL

    tool = Short("look", "Look.", {"type": "object", "properties": {}}, None)
    assert "'on_invoke_tool' itself" in faults_of([tool], declared("look"))["tool 'look'"].fault


def test_a_write_that_nobody_may_decide_is_refused_at_wiring():
    """CV-1: a declared write without an authorization port is a fault of the wiring, told with the others."""
    affiant = Affiant(docket=InMemoryDocketStore())
    affiant.declare_write("look", operation="WriteUpdate", entity_type="Customer")
    assert set(faults_of([read("look"), read("unknown")], affiant)) == {"tool 'look'", "tool 'unknown'"}


# --- at run time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["set-limit", "Set_limit", "set_limit ", "setLimit", "nosuch"])
@EVERY
def test_a_near_miss_is_unknown_at_run_time(name, mode):
    """C18, "a near-miss name at run time is unknown, never guessed": the SDK ends the run, and nothing is filed."""
    from agents import ModelBehaviorError

    desk = LimitDesk()
    host = Host(desk)
    with pytest.raises(ModelBehaviorError):
        run(host.agent(asks((name, LIMIT))), mode=mode)
    assert (desk.calls, host.rows()) == ([], ())


@pytest.mark.parametrize("copied", [copy.copy, dataclasses.replace])
@pytest.mark.parametrize("name", ["renamed", "find_customer"])
def test_a_tool_that_lost_its_declaration_is_refused_before_its_body(name, copied):
    """DECISIONS 16, "at run time an undeclared call is refused before its body"; under another's name as well."""
    desk = LimitDesk()
    host = Host(desk)
    tool = copied(host.bind()["set_limit"])
    tool.name = name
    with pytest.raises(WireupInvalid, match=r"not declared|was renamed"):
        run(plain_agent([tool], asks((name, LIMIT))))
    assert (desk.calls, host.rows()) == ([], ())


def test_the_function_behind_a_wired_tool_is_out_of_reach():
    """Seam 1: __wrapped__ of a function tool calls the body past everything; a wired tool has none."""
    host = Host()
    assert not hasattr(host.wrap_one(read()), "__wrapped__")


def test_the_original_of_a_wrapped_tool_is_not_gated():
    """A documented limit, so that nobody takes it for a promise: wrap() copies, and the original stays as it is."""
    original = function_tool(lambda: PROPOSAL, name_override="set_limit")
    host = Host()
    host.wrap_one(original, writes=True)
    assert call(original) == PROPOSAL
    assert host.rows() == ()


# --- a store that is down, filters that fail -----------------------------------------------------------------------


class Down(InMemoryDocketStore):
    def file(self, entry):
        raise DocketError("disk full at /srv/hunter2")


@EVERY
def test_a_filing_that_fails_is_told_and_the_turn_goes_on(mode, caplog):
    """DECISIONS 13: REVIEW_FILING_FAILED, not retryable; the sibling answers, and the model speaks."""
    desk = LimitDesk()
    agent = Host(desk, docket=Down()).agent(asks(("set_limit", LIMIT), ("find_customer", FIND)))
    result = run(agent, mode=mode)
    (_, failed), (_, answered) = heard_by(agent)
    told = document_of(failed)
    assert (told["code"], told["retryable"]) == (FILING_FAILED, False)
    assert "hunter2" not in failed
    assert "/srv/hunter2" in caplog.text
    assert answered == found().to_json_string()
    assert result.final_output == "done"
    assert SECRET not in repr([each.input for each in agent.model.calls])


def test_a_filter_that_lets_a_proposal_in_is_held_back():
    """CV-2 at the last line: a host's filter that puts a proposal in place of a result shows it to nobody."""

    async def forging(invocation, call_next):
        await call_next()
        invocation.result = proposed()

    host = Host(LimitDesk(), filters=[forging])
    result = run(host.agent(asks(("find_customer", FIND))))
    assert document_of(outputs_in(result)[0])["code"] == "wireup-invalid"


# --- the framework's version ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.23.9", "0.25.0", "1.0", "0.24rc1", None])
def test_another_version_is_refused_at_import(version):
    """Issue, "checked at import with a clear message": before a module of the SDK has been imported."""
    program = f"""
        import sys
        from importlib import metadata
        real = metadata.version
        def version(name):
            if name != "openai-agents":
                return real(name)
            if {version!r} is None:
                raise metadata.PackageNotFoundError(name)
            return {version!r}
        metadata.version = version
        try:
            import affiant_agents_bridge
        except Exception as error:
            print(type(error).__name__, error, "agents" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.startswith("WireupInvalid wireup-invalid: affiant-agents-bridge")
    assert "openai-agents" in told
    assert told.endswith("False\n")
