"""The host's one object: wired and checked together, and the door that every call comes in by."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.gate import Events, FixedPolicy, Outbox, WatchedStore, act, always, limit_of, turn, yes
from support.pipeline import Body, both, model_json, proposal, run

from affiant_core.affiant import DEFAULT_RESULT_CEILING, MINIMUM_RESULT_CEILING, Affiant
from affiant_core.authority import Approve
from affiant_core.context import ActContext, Member
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.store import Listing
from affiant_core.envelope import WriteProposal
from affiant_core.errors import DecisionUnauthorized, WireupInvalid, WiringError
from affiant_core.filters.failures import ErrorRule
from affiant_core.filters.review import ReviewContext
from affiant_core.filters.short_circuit import Interceptor
from affiant_core.pipeline import Stage
from affiant_core.policy import StandingOrder
from affiant_core.registry import ToolRegistry, read_tool, write_tool
from affiant_core.vocabulary import CoverageCategory, ReviewStatus


class Reads:
    @read_tool
    def find_customer(self, customer_id: str): ...


class Writes:
    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(self, customer_id: str, limit: int): ...


def affiant(*tools, **options):
    return Affiant(**{"docket": InMemoryDocketStore(), "tools": list(tools), "authorize": yes, **options})


def faults_of(work):
    """The faults of a refused wiring; each, with its remedy, stands in the message."""
    with pytest.raises(WiringError) as caught:
        work()
    assert isinstance(caught.value, WireupInvalid)
    assert caught.value.code.value == "wireup-invalid"
    for fault in caught.value.faults:
        assert fault.remedy
        assert str(fault) in str(caught.value)
    return caught.value.faults


# --- wiring --------------------------------------------------------------------------------------------------------


def test_every_fault_of_the_wiring_comes_at_once():
    """CV-1: faults of tools, ceiling, view, store, lifetime, threshold and policies come in one error."""

    class Broken:
        @read_tool
        def _hidden(self): ...

    faults = faults_of(
        lambda: Affiant(
            docket=None,
            tools=[Broken(), Reads(), Reads()],
            authorize="boss",
            policies=[always(threshold=1.0), StandingOrder(id="auto", when=yes)],
            default_ttl=timedelta(0),
            result_ceiling=10,
            model_view="everything",
        )
    )
    assert [fault.subject.partition(" (")[0] for fault in faults] == [
        "Broken._hidden",
        "tool 'Reads.find_customer'",
        "result_ceiling",
        "model_view",
        "docket",
        "authorize",
        "default_ttl",
        "policy 'auto'",
        "policy 'auto'",
    ]


def test_a_sound_wiring_has_no_fault():
    """CV-1: a host with a store, tools and an authorization port is built and checks."""
    host = affiant(Reads(), Writes())
    host.check()
    host.check(["find_customer", "set_limit"])
    assert len(host.registry) == 2


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (Reads(), ["find_customer"]),
        (Reads, ["find_customer"]),
        (Reads().find_customer, ["find_customer"]),
        ([Reads(), Writes()], ["find_customer", "set_limit"]),
        ((Reads(), Writes()), ["find_customer", "set_limit"]),
        ((), []),
    ],
    ids=["object", "class", "method", "list", "tuple", "none"],
)
def test_tools_are_one_thing_or_several(tools, names):
    """Seed, "A declaration is either explicit or walked": an object, a class, a function, or several are walked."""
    host = Affiant(docket=InMemoryDocketStore(), tools=tools)
    assert [descriptor.name for descriptor in host.registry] == names


def test_a_hosts_own_registry_is_the_one_in_use():
    """REFERENCE 8, "act on the same registry instance": also one that is still empty when it is handed over."""
    registry = ToolRegistry()
    host = affiant(Reads(), registry=registry)
    assert host.registry is registry
    registry.declare_read("later")
    assert host.admit("later", turn())[0].name == "later"
    assert registry.find("find_customer") is not None


def test_an_empty_registry_is_kept_too():
    """REFERENCE 8: what a host declares afterwards on its own registry counts."""
    registry = ToolRegistry()
    host = affiant(registry=registry)
    registry.declare_read("search")
    host.check(["search"])
    assert host.registry is registry


@pytest.mark.parametrize("ceiling", [True, 4096.0, "4096", None])
def test_a_ceiling_is_a_whole_number_of_bytes(ceiling):
    """C17, CV-1: a ceiling of another type is a fault of the wiring, not of the first large result."""
    (fault,) = faults_of(lambda: affiant(result_ceiling=ceiling))
    assert (fault.subject, fault.remedy) == ("result_ceiling", "Pass an int.")


@pytest.mark.parametrize("ceiling", [2047, 0, -1])
def test_a_ceiling_leaves_room_for_an_envelope(ceiling):
    """C17, CV-1: below 2 KiB no cut result would fit, and the message names the least."""
    (fault,) = faults_of(lambda: affiant(result_ceiling=ceiling))
    assert "2048" in fault.remedy
    assert affiant(result_ceiling=MINIMUM_RESULT_CEILING).result_ceiling == 2048
    assert affiant().result_ceiling == DEFAULT_RESULT_CEILING == 256 * 1024


@pytest.mark.parametrize("view", ["Receipt", "", None, 1, []])
def test_a_view_is_a_receipt_or_the_proposal(view):
    """DECISIONS 10, CV-1: another view of a filing is refused, naming the two."""
    (fault,) = faults_of(lambda: affiant(model_view=view))
    assert "'receipt' or 'proposal'" in fault.remedy


# --- authorization -------------------------------------------------------------------------------------------------


def test_only_a_host_that_writes_needs_an_authorization_port():
    """CV-1, AZ-2: a missing authorization port is a fault for each tool that writes, and none for a reader."""
    reader = affiant(Reads(), authorize=None)
    reader.check()
    writer = affiant(Reads(), Writes(), authorize=None)
    writer.declare_write("raise_limit", operation="WriteUpdate", entity_type="Customer")
    faults = faults_of(writer.check)
    assert [fault.subject for fault in faults] == ["tool 'Writes.set_limit'", "tool 'raise_limit'"]
    assert all("authorize=" in fault.remedy for fault in faults)


def test_without_a_port_nobody_may_decide():
    """AZ-2, REFERENCE 10, "deny-all if absent": a proposal is filed all the same, and nobody may decide on it."""
    host = affiant(authorize=None)
    filing = host.gate.file.sync(limit_of(1), turn(), tool_name="set_limit")
    with pytest.raises(DecisionUnauthorized):
        host.gate.decide.sync(filing.entry.entry_id, Approve(), act())


@pytest.mark.parametrize("port", [False, 0, "", "boss"])
def test_a_port_that_is_no_function_is_a_fault(port):
    """CV-1: something that cannot be asked is no authorization port, falsy or not."""
    (fault,) = faults_of(lambda: affiant(authorize=port))
    assert fault.subject == "authorize"


def test_the_port_is_asked():
    """AZ-2: the host's port decides who may."""
    requests = []
    host = affiant(authorize=lambda request: requests.append(request) or True)
    filing = host.gate.file.sync(limit_of(1), turn(), tool_name="set_limit")
    row = host.gate.decide.sync(filing.entry.entry_id, Approve(), act("ana"))
    assert row.status is ReviewStatus.APPROVED
    assert [(request.act, request.principal) for request in requests] == [("approve", Member("ana"))]


# --- check ---------------------------------------------------------------------------------------------------------


def test_check_lists_everything_at_once():
    """CV-1, DECISIONS 16, C19: undeclared, ambiguous and ill-named tools and missing ports come in one error."""
    host = affiant(Writes(), authorize=None)
    host.declare_read("search", plugin="Crm")
    host.declare_read("search", plugin="Erp")
    host.declare_read("a b")
    faults = faults_of(lambda: host.check(["set_limit", "mcp_write", "search", "Set_limit"]))
    assert [fault.subject for fault in faults] == [
        "tool 'a b'",
        "tool 'mcp_write'",
        "tool 'search'",
        "tool 'Set_limit'",
        "tool 'Writes.set_limit'",
    ]


def test_declared_tools_pass():
    """DECISIONS 16, GT-6: the framework's own tools are declared read or write, by name and plugin."""
    host = affiant()
    read = host.declare_read("search", plugin="Crm", entity_type="Customer")
    write = host.declare_write("set_limit", operation="WriteUpdate", entity_type="Customer", plugin="Crm")
    host.check(["search", "set_limit"])
    assert (read.is_write, write.is_write) == (False, True)
    assert host.registry.find_exact("set_limit", "Crm") is write
    with pytest.raises(WiringError, match="taken"):
        host.declare_read("set_limit", plugin="Crm")


# --- admit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["find_customer", "set_limit"])
def test_a_call_with_context_and_declaration_comes_in(tool):
    """DECISIONS 13: the declaration and the very context are handed back, and the store is not asked."""
    store = WatchedStore()
    host = affiant(Reads(), Writes(), docket=store)
    context = turn()
    descriptor, admitted = host.admit(tool, context)
    assert descriptor.name == tool
    assert admitted is context
    assert store.calls == []


@pytest.mark.parametrize("tool", ["find_customer", "set_limit"])
@pytest.mark.parametrize(
    "context",
    [None, {}, {"tenant_id": "acme"}, "acme", object(), ActContext("acme", Member("u")), [turn()], type(turn())],
    ids=lambda value: type(value).__name__,
)
def test_a_call_without_a_turn_is_refused_reads_included(tool, context):
    """CV-2, DECISIONS 12: a missing or malformed context is refused wireup-invalid before any body."""
    store = WatchedStore()
    host = affiant(Reads(), Writes(), docket=store)
    with pytest.raises(WireupInvalid, match=rf"CV-2: a call of '{tool}' needs a TurnContext"):
        host.admit(tool, context)
    assert store.calls == []


def test_a_context_is_never_remembered():
    """CV-2, "never repaired or remembered": the call after a good one is refused when it comes without its own."""
    host = affiant(Reads())
    host.admit("find_customer", turn())
    with pytest.raises(WireupInvalid, match="CV-2"):
        host.admit("find_customer", None)
    host.admit("find_customer", turn())


@pytest.mark.parametrize("name", ["find_customers", "Find_Customer", "", "Reads.find_customer"])
def test_an_undeclared_call_is_refused(name):
    """DECISIONS 16, C18: at run time an undeclared call is refused before its body, and a near miss is unknown."""
    with pytest.raises(WireupInvalid, match="not declared"):
        affiant(Reads()).admit(name, turn())


def test_an_ambiguous_call_is_refused_and_a_named_plugin_is_exact():
    """REFERENCE 8, C18: with a plugin the look-up is exact; without one an ambiguous name is refused, never guessed."""
    host = affiant()
    crm = host.declare_read("search", plugin="Crm")
    host.declare_write("search", operation="WriteCreate", entity_type="Query", plugin="Erp")
    with pytest.raises(WireupInvalid, match="ambiguous"):
        host.admit("search", turn())
    assert host.admit("search", turn(), plugin="Crm")[0] is crm
    for near in ("crm", ""):
        with pytest.raises(WireupInvalid, match="not declared"):
            host.admit("search", turn(), plugin=near)


def test_the_context_is_looked_at_first():
    """DECISIONS 12: an undeclared call without a context is refused for the context, the host's louder mistake."""
    with pytest.raises(WireupInvalid, match="CV-2"):
        affiant().admit("nosuch", None)


# --- closing -------------------------------------------------------------------------------------------------------


class Closing(InMemoryDocketStore):
    closed = 0

    def close(self):
        self.closed += 1


def test_the_context_manager_closes_the_docket():
    """REFERENCE 12, "close": leaving the block releases what the store holds open, once."""
    store = Closing()
    with affiant(docket=store) as host:
        assert isinstance(host, Affiant)
        assert store.closed == 0
    assert store.closed == 1


def test_an_exception_in_the_block_closes_and_goes_on():
    """REFERENCE 12: the store is closed on the way out of a failure, which is not swallowed."""
    store = Closing()
    with pytest.raises(KeyError), affiant(docket=store):
        raise KeyError("x")
    assert store.closed == 1


def test_close_may_be_called_by_hand():
    """REFERENCE 12: the same without a block."""
    store = Closing()
    affiant(docket=store).close()
    assert store.closed == 1


# --- what the pipeline is made of ----------------------------------------------------------------------------------


@both
def test_the_hosts_options_are_the_pipelines(mode):
    """REFERENCE 6.2, "a host filter wraps everything": filters stand outside; all that the host passes is in use."""
    order, events, outbox = [], Events(), Outbox()

    def outside(name):
        async def through(invocation, call_next):
            order.append(name)
            await call_next()
            order.append(type(invocation.result).__name__)

        return through

    class Provider:
        def review_context(self, given, context):
            order.append("provider")
            return ReviewContext(given.envelope, context, "row-1")

    host = affiant(
        filters=[outside("first"), outside("second")],
        errors={KeyError: ErrorRule("CUSTOMER_NOT_FOUND", "There is no such customer.")},
        context_provider=Provider(),
        policies=[FixedPolicy(lambda request: order.append("policy"))],
        transport=outbox,
        listeners=[events],
        uncovered={"raise_limit": CoverageCategory.HOSTED_MCP},
        terminate_on_review=True,
    )
    invocation = run(mode, host.pipeline(), proposal())
    assert order == ["first", "second", "provider", "policy", "str", "str"]
    assert model_json(invocation.result)["entryId"] == "row-1"
    assert invocation.terminate is True
    assert host.terminate_on_review is True
    assert events.keys == ["affidavit.filed"]
    assert len(outbox.cards) == 1
    order.clear()
    assert run(mode, host.pipeline(), Body(KeyError())).envelope().code == "CUSTOMER_NOT_FOUND"
    assert order == ["first", "second", "ToolError", "ToolError"]
    assert host.gate.telemetry is host.telemetry


def test_a_falsy_provider_is_a_provider():
    """DECISIONS 12: what the host passes is used, whatever its truth value."""

    class Empty:
        def __len__(self):
            return 0

        def review_context(self, given, context):
            return None

    invocation = run("sync", affiant(context_provider=Empty()).pipeline(), proposal())
    assert invocation.envelope().code == "wireup-invalid"


def test_two_pipelines_of_one_host_share_its_gate():
    """DECISIONS 21: what one pipeline filed, another replays."""
    host = affiant()
    first, second = (model_json(run("sync", host.pipeline(), proposal()).result) for _ in range(2))
    assert (first["outcome"], second["outcome"]) == ("filed", "replayed")
    assert first["entryId"] == second["entryId"]


def test_something_without_tools_is_refused():
    """CV-1: a set or an object without public methods holds no tools, and saying nothing would leave the agent bare."""
    with pytest.raises(WiringError, match="it has no tools"):
        Affiant(tools={1, 2}, docket=InMemoryDocketStore())


def test_an_error_rule_without_a_code_is_refused():
    """CV-1: a rule that could not be told as an error is found at wiring, not while a failure is being mapped."""
    with pytest.raises(WiringError, match="errors: KeyError"):
        Affiant(docket=InMemoryDocketStore(), errors={KeyError: ErrorRule("", "Gone.")})


def test_an_uncovered_tool_that_nobody_declared_is_refused():
    """C18: a declaration about a tool that does not exist is refused at wiring, by name."""
    host = Affiant(docket=InMemoryDocketStore(), uncovered={"nosuch": CoverageCategory.NO_EXECUTE})
    with pytest.raises(WiringError, match=r"'nosuch'.*no such tool"):
        host.check()


# --- two stages, and tools that no seam stands in front of ---------------------------------------------------------


@both
def test_the_two_stages_together_are_the_whole(mode):
    """DECISIONS 9: an inner hook carries all but the review; the outer one files what it is handed, once."""
    host, outside = affiant(), []

    async def watch(invocation, call_next):
        await call_next()
        outside.append(type(invocation.envelope()).__name__)

    host = affiant(filters=[watch])
    inner = run(mode, host.pipeline(stage=Stage.INVOCATION), proposal())
    assert isinstance(inner.result, WriteProposal)
    assert host.gate.page.sync(Listing.ALL, tenant_id="acme").entries == ()
    outer = run(mode, host.pipeline(stage=Stage.COMPLETION), inner.result, next_is_tool_body=False)
    assert model_json(outer.result)["outcome"] == "filed"
    assert outside == ["WriteProposal"]


@both
def test_an_interceptors_answer_is_reviewed_in_the_stage_that_reviews(mode):
    """REFERENCE 6.3: where the review is a stage of its own, an interceptor's proposal is filed there, not before."""
    supplied = Interceptor(lambda name, arguments: True, lambda name, arguments: proposal())
    host = affiant(interceptors=[supplied])
    body = Body(proposal(limit=1))
    inner = run(mode, host.pipeline(stage=Stage.INVOCATION), body)
    assert (body.calls, inner.tool_executed) == (0, False)
    outer = run(mode, host.pipeline(stage=Stage.COMPLETION), inner.result)
    assert model_json(outer.result)["outcome"] == "filed"


@both
def test_a_failure_of_the_completion_is_mapped_there_and_not_tried_again(mode):
    """DECISIONS 15: the next step of the completion is a framework's own continuation, which must not run twice."""
    body = Body(TimeoutError("host db-internal-7"))
    outcome = run(mode, affiant().pipeline(stage=Stage.COMPLETION), body, next_is_tool_body=False)
    assert (body.calls, outcome.envelope().retryable) == (1, True)
    assert "db-internal-7" not in outcome.result.to_json_string()


def test_a_hosted_tool_is_refused_by_its_category_unless_the_host_names_it():
    """CV-4: what no gate can stand in front of is refused at wiring with its own code, or accepted by name."""
    events = Events()
    host = affiant(listeners=[events])
    offered = {"web_search": CoverageCategory.PROVIDER_EXECUTED, "crm": CoverageCategory.HOSTED_MCP}
    with pytest.raises(WiringError) as caught:
        host.check(["nosuch"], hosted=offered)
    codes = {fault.subject: fault.code.value for fault in caught.value.faults}
    assert codes["tool 'web_search'"] == codes["tool 'crm'"] == "coverage-refused"
    assert codes["tool 'nosuch'"] == "wireup-invalid"
    assert "provider-executed" in str(caught.value)
    assert events.keys == ["coverage.refused", "coverage.refused"]
    affiant(uncovered=offered).check(hosted=offered)


def test_a_hosted_tool_that_is_accepted_for_another_reason_is_refused():
    """CV-4: the host accepts a tool for what it is; another category is another risk."""
    host = affiant(uncovered={"crm": CoverageCategory.PROVIDER_EXECUTED})
    with pytest.raises(WiringError, match=r"'crm'.*hosted-mcp"):
        host.check(hosted={"crm": CoverageCategory.HOSTED_MCP})
