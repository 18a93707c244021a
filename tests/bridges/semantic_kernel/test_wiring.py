"""Installing on a kernel, the audit, and kernels that were cloned, extended or wired wrongly."""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from semantic_kernel import Kernel
from semantic_kernel.filters import FilterTypes
from semantic_kernel.functions import KernelArguments, KernelPlugin, kernel_function
from support.semantic_kernel import (
    SECRET,
    Host,
    LimitDesk,
    asks,
    chat,
    document_of,
    host_arguments,
    kernel_of,
    plugin_of,
    proposed,
    texts_in,
)

import affiant_sk_bridge
from affiant_core import Affiant, InMemoryDocketStore, ToolRegistry, WireupInvalid, WiringError, read_tool, write_tool
from affiant_sk_bridge import check, install

SET = "LimitDesk-set_limit"
LIMIT = {"customer_id": "c-1", "limit": 10}
HIDDEN = {"include_in_function_choices": False, "is_required": False}


def faults_of(work, *args, **options):
    with pytest.raises(WiringError) as caught:
        work(*args, **options)
    return {fault.subject: fault.fault for fault in caught.value.faults}


def in_loop(kernel, *calls, **options):
    kernel.get_service("scripted").script[:] = [asks(*calls)]
    return texts_in(asyncio.run(chat(kernel, **options)))


def one(**functions):
    """A kernel with native functions in the plugin P, and a host that has declared none of them."""
    kernel = kernel_of()
    kernel.add_plugin(plugin_of(**functions))
    return kernel


def look() -> str:
    """Look."""
    return "seen"


def propose() -> object:
    """Propose."""
    return proposed()


# --- install -------------------------------------------------------------------------------------------------------


def test_the_public_api_is_what_it_is():
    """DESIGN, "explicit public API, sorted __all__"."""
    assert affiant_sk_bridge.__all__ == sorted(affiant_sk_bridge.__all__)
    assert all(hasattr(affiant_sk_bridge, name) for name in affiant_sk_bridge.__all__)


def test_installing_again_files_once():
    """Seam 7: installation is idempotent; two installations are two filters on no kernel and file one row."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    assert install(kernel, host.affiant) is kernel
    assert len(kernel.function_invocation_filters) == len(kernel.auto_function_invocation_filters) == 1
    in_loop(kernel, (SET, LIMIT))
    assert len(host.rows()) == 1


def test_the_bridge_is_outermost_whenever_it_came():
    """Seam 1: the last of a list is the outermost; filters of before and after stand inside, in their order."""
    order: list[str] = []

    def filter_named(name):
        async def named(context, next):
            order.append(name)
            await next(context)

        return named

    host, kernel = Host(LimitDesk()), kernel_of()
    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, filter_named("first"))
    install(kernel, host.affiant)
    kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, filter_named("second"))
    check(kernel, host.affiant)
    in_loop(kernel, (SET, LIMIT))
    assert order == ["first", "second"]
    late = filter_named("outside")
    kernel.function_invocation_filters.append((id(late), late))
    assert "function filters" in faults_of(check, kernel, host.affiant)
    install(kernel, host.affiant)
    check(kernel, host.affiant)


def test_one_kernel_has_one_host():
    """A kernel takes one Affiant and one set of options; another installation is refused and changes nothing."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    assert "kernel" in faults_of(install, kernel, Host(LimitDesk()).affiant)
    assert "kernel" in faults_of(install, kernel, host.affiant, carry_arguments=True)
    assert "kernel" in faults_of(install, kernel, host.affiant, offload_sync_bodies=False)
    assert len(kernel.function_invocation_filters) == 1


def test_two_kernels_may_have_one_host():
    """One Affiant serves several kernels; its rows are one Docket's."""
    host = Host(LimitDesk())
    for kernel in (host.kernel(), host.kernel()):
        in_loop(kernel, (SET, LIMIT))
    assert len(host.rows()) == 1


@pytest.mark.parametrize("version", ["1.44.9", "2.0.0", "1.45.0rc1", "nonsense"])
def test_another_version_is_refused_by_name(monkeypatch, version):
    """DECISIONS 1: outside >=1.45,<2 neither the import nor an installation goes further, and the message says why."""
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: version if name == "semantic-kernel" else real(name)
    )
    with pytest.raises(WireupInvalid, match=f">=1.45,<2; {version} is installed"):
        install(kernel_of(), Host(LimitDesk()).affiant)
    with pytest.raises(WireupInvalid, match="affiant-sk-bridge works with semantic-kernel"):
        importlib.reload(affiant_sk_bridge)


def test_only_an_affiant_is_installed():
    """A mistake at wiring names what was given."""
    with pytest.raises(TypeError, match="LimitDesk"):
        install(kernel_of(), LimitDesk())


def test_a_host_without_functions_of_its_own_is_served():
    """A host whose functions are all the kernel's declares them, and has nothing to add."""
    host = Host()
    host.declare("look")
    kernel = install(one(look=look), host.affiant)
    assert list(kernel.plugins) == ["P"]


def test_functions_by_themselves_stand_in_one_plugin():
    """A function that was given without a class is offered in the plugin 'affiant'."""
    host = Host([look])
    kernel = host.kernel()
    assert in_loop(kernel, ("affiant-look", {}))["call-1"] == "seen"


def test_what_the_model_is_shown():
    """The parameters are the function's own, closed over, with nothing of the host's among them."""

    class Color(Enum):
        RED = "red"

    class Node(BaseModel):
        value: int
        next: Node | None = None  # rebuilt below

    class Line(BaseModel):
        color: Color
        text: str = Field(description="What it says.")

    Node.model_rebuild(_types_namespace={"Node": Node})

    class Desk:
        @read_tool
        def draw(self, lines: list[Line], node: Node, kind: Literal["a", "b"] = "a", settled: bool = False) -> str:
            """Draw."""
            return f"{lines[0].color.value} {node.next.value} {kind} {settled}"

    Desk.draw.__annotations__.update(
        lines=list[Line], node=Node, kind=Literal["a", "b"], settled=bool, **{"return": str}
    )
    kernel = Host(Desk()).kernel()
    (metadata,) = kernel.get_full_list_of_function_metadata()
    shown = {each.name: each.schema_data for each in metadata.parameters}
    assert [each.name for each in metadata.parameters if each.is_required] == ["lines", "node"]
    assert shown["lines"]["items"]["properties"]["color"]["enum"] == ["red"]
    assert shown["lines"]["items"]["properties"]["text"]["description"] == "What it says."
    assert shown["node"]["$defs"]["Node"]["properties"]["next"]["anyOf"][0] == {"$ref": "#/properties/node/$defs/Node"}
    import jsonschema

    document = {"type": "object", "properties": shown}
    sent = {"lines": [{"color": "red", "text": "x"}], "node": {"value": 1, "next": {"value": 2, "next": None}}}
    jsonschema.validate(sent, document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"node": {"value": 1, "next": {"value": "two"}}}, document)
    assert in_loop(kernel, ("Desk-draw", sent))["call-1"] == "red 2 a False"


# --- the audit -----------------------------------------------------------------------------------------------------


def test_every_undeclared_function_is_listed_at_once():
    """CV-1, DECISIONS 16: all offenders of all plugins in one error, with what to write instead."""
    kernel = one(first=look, second=look)
    kernel.add_plugin(plugin_of("Q", third=look))
    host = Host(LimitDesk())
    with pytest.raises(WiringError) as caught:
        install(kernel, host.affiant)
    subjects = [fault.subject for fault in caught.value.faults]
    assert subjects == ["tool 'P-first'", "tool 'P-second'", "tool 'Q-third'"]
    assert "declare_read('third', plugin='Q')" in str(caught.value)
    with pytest.raises(WireupInvalid, match="not declared"):  # and the kernel is gated all the same
        in_loop(kernel, ("P-first", {}))


def test_a_function_is_declared_in_its_own_plugin():
    """CV-4: the pair of name and plugin is exact; a declaration for another plugin, or for none, is none."""
    host = Host()
    host.affiant.declare_read("look")
    host.affiant.declare_read("look", plugin="Q")
    faults = faults_of(install, one(look=look), host.affiant)
    assert set(faults) == {"tool 'P-look'", "tool 'look'", "tool 'Q.look'"}


def test_a_declaration_without_its_function_is_refused():
    """C18: a declaration for a tool that does not exist is a fault of the wiring."""
    host = Host(LimitDesk())
    host.declare("nowhere")
    assert faults_of(host.kernel) == {"tool 'P.nowhere'": "it is declared, and no plugin of the kernel has it."}


NAMES = {
    "equal after normalisation": {"a__b": {"c": look}, "a": {"b__c": look}},
    "differing in case": {"P": {"look": look, "Look": look}},
    "sixty-five characters": {"P" * 30: {"l" * 34: look}},
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_a_model_could_not_tell_apart(case):
    """C18: plugins a__b/c and a/b__c, and names of more than 64 characters, are refused at wiring, naming both."""
    host, kernel = Host(), kernel_of()
    for plugin, functions in NAMES[case].items():
        kernel.add_plugin(plugin_of(plugin, **functions))
        host.declare(*functions, plugin=plugin)
    faults = faults_of(install, kernel, host.affiant)
    both = [f"{plugin}-{name}" for plugin, functions in NAMES[case].items() for name in functions]
    assert any(all(name in subject for name in both) for subject in faults)


def test_sixty_four_characters_are_taken():
    """C18: the limit is the providers', and the whole of it can be used."""
    host, kernel = Host(), kernel_of()
    kernel.add_plugin(plugin_of("P" * 29, **{"l" * 34: look}))
    host.declare("l" * 34, plugin="P" * 29)
    install(kernel, host.affiant)


def test_a_function_under_another_name_is_refused():
    """Seam 4: plugins["P"]["alias"] = fn keeps fn.name, so the call would be taken for another's."""
    host, kernel = Host(), one(look=look)
    kernel.plugins["P"]["alias"] = kernel.plugins["P"]["look"]
    host.declare("look")
    assert "stands under the name P-alias" in faults_of(install, kernel, host.affiant)["function 'P-look'"]


def settings(settings: str) -> str:
    """Break the loop."""
    return settings


def forgeable(affiant_turn: str) -> str:
    """Take a turn."""
    return affiant_turn


def with_kernel(kernel: Kernel) -> str:
    """Ask the model for a kernel."""
    return str(kernel)


@pytest.mark.parametrize("function", [settings, forgeable, with_kernel])
def test_parameters_that_break_semantic_kernel(function):
    """Seam 2: such parameters crash the turn, are demanded of the model, or could carry what is the host's."""
    host = Host()
    host.declare("tool")
    assert "its parameter" in faults_of(install, one(tool=function), host.affiant)["tool 'P-tool'"]


def test_parameters_that_do_not():
    """The same parameters, hidden from the model and not asked of it, are what Semantic Kernel fills in."""

    def tool(kernel: Annotated[Any, HIDDEN] = None, arguments: Annotated[KernelArguments | None, HIDDEN] = None) -> str:
        """Take them."""
        return f"{type(kernel).__name__} {type(arguments).__name__}"

    tool.__annotations__["arguments"] = Annotated[KernelArguments, HIDDEN]
    kernel = Host().kernel(native={"tool": tool})
    assert in_loop(kernel, ("P-tool", {}))["call-1"] == "Kernel KernelArguments"


def bound(function):
    """A desk with one tool."""
    return Host(type("Desk", (), {"tool": function})())


def test_parameters_of_bound_functions():
    """Every name that Semantic Kernel cannot carry is refused; those that it would fill in are not."""

    def crash(self, settings: str) -> str:
        """Break."""
        return settings

    def foreign(self, größe: int) -> str:  # noqa: PLC2401  # what it is about
        """Use a name of another alphabet."""
        return str(größe)

    def forge(self, affiant_turn: str) -> str:
        """Take a turn."""
        return affiant_turn

    for function in (crash, foreign, forge):
        (fault,) = faults_of(bound(function).kernel).values()
        assert "parameter" in fault

    def fine(
        self, kernel: str, arguments: int, execution_settings: str = "", function: str = "f", name: str = "n"
    ) -> str:
        """Take names that mean something to others."""
        return f"{kernel} {arguments}{execution_settings} {name}"

    kernel = bound(fine).kernel()
    assert in_loop(kernel, ("Desk-tool", {"kernel": "k", "arguments": 3}))["call-1"] == "k 3 n"


def test_a_plugins_name_must_be_one():
    """A registry may name a plugin as it likes; what Semantic Kernel refuses is told at wiring."""
    registry = ToolRegistry()
    registry.walk(LimitDesk(), plugin="limit desk")
    affiant = Affiant(docket=InMemoryDocketStore(), registry=registry, authorize=lambda _: True)
    faults = faults_of(install, kernel_of(), affiant)
    assert set(faults) == {"tool 'limit desk.find_customer'", "tool 'limit desk.set_limit'"}


def test_a_plugin_of_the_same_name_is_not_overwritten():
    """Seam 4, "re-adding a plugin name overwrites silently": the host's plugin stays, and both are named."""
    host, kernel = Host(LimitDesk()), kernel_of()
    kernel.add_plugin(plugin_of("LimitDesk", set_limit=look))
    assert "plugin 'LimitDesk'" in faults_of(install, kernel, host.affiant)
    with pytest.raises(WireupInvalid, match="not the function"):
        in_loop(kernel, ("LimitDesk-set_limit", {}))


def test_a_plugin_of_the_same_name_hides_nothing():
    """The same when the host's plugin has none of the names: the Affiant's functions are not left out silently."""
    host, kernel = Host(LimitDesk()), kernel_of()
    kernel.add_plugin(plugin_of("LimitDesk", other=look))
    host.declare("other", plugin="LimitDesk")
    assert "plugin 'LimitDesk'" in faults_of(install, kernel, host.affiant)


def test_a_bound_plugin_that_was_overwritten_is_noticed():
    """The same after installation: a check names it, and a call of the impostor is refused before its body."""
    host, ran = Host(LimitDesk()), []
    kernel = host.kernel()
    kernel.add_plugin(plugin_of("LimitDesk", find_customer=lambda: ran.append(1)))
    assert "tool 'LimitDesk-find_customer'" in faults_of(check, kernel, host.affiant)
    with pytest.raises(WireupInvalid, match="not the function"):
        in_loop(kernel, ("LimitDesk-find_customer", {}))
    assert ran == []


def test_a_declaration_that_contradicts_a_mark():
    """Seam 6: a function that is marked to write and declared to read says two things."""

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def marked() -> str:
        """Write."""
        return ""

    host = Host()
    host.declare("tool")
    assert "marked WriteUpdate" in faults_of(install, one(tool=marked), host.affiant)["tool 'P-tool'"]


def test_a_class_in_the_place_of_an_object():
    """Seam 4: a class registers, and every call would fail for the missing self."""

    class Desk:
        @kernel_function
        def look(self) -> str:
            """Look."""
            return ""

    host, kernel = Host(), kernel_of()
    kernel.add_plugin(Desk, plugin_name="Desk")
    host.declare("look", plugin="Desk")
    assert "without its object" in faults_of(install, kernel, host.affiant)["tool 'Desk-look'"]


def test_a_write_that_streams_is_refused_at_wiring_and_gated_at_run_time():
    """Seam 7: refuse or drain streaming writes; both are done."""

    async def stream():
        """Stream."""
        yield proposed().to_json_string()

    host = Host()
    host.declare("tool", writes=("tool",))
    kernel = one(tool=stream)
    assert "streams" in faults_of(install, kernel, host.affiant)["tool 'P-tool'"]
    document = document_of(in_loop(kernel, ("P-tool", {}))["call-1"])
    assert document["entryId"] == host.row().entry_id


# --- clones --------------------------------------------------------------------------------------------------------


def test_a_clone_of_after_is_gated_on_the_same_docket():
    """C14, seam 4: closures keep their identity in a clone, so its rows are the host's, and its audit is clean."""
    host = Host(LimitDesk())
    clone = host.kernel().clone().clone()
    check(clone, host.affiant)
    assert document_of(in_loop(clone, (SET, LIMIT))["call-1"])["entryId"] == host.row().entry_id


def test_a_clone_of_before_is_refused_at_start_up():
    """C14: a clone of before has no filters; a check says so, and installing on it makes it good."""
    host, kernel = Host(LimitDesk()), kernel_of()
    clone = kernel.clone()
    install(kernel, host.affiant)
    assert "not installed" in faults_of(check, clone, host.affiant)["kernel"]
    assert "not installed" in faults_of(check, kernel, Host(LimitDesk()).affiant)["kernel"]
    install(clone, host.affiant)
    check(clone, host.affiant)


def test_plugins_that_came_after_the_clone_are_audited_there():
    """Seam 4, "later filters and plugins do not propagate": each kernel is checked by itself."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    clone = kernel.clone()
    clone.add_plugin(plugin_of(late=look))
    check(kernel, host.affiant)
    assert set(faults_of(check, clone, host.affiant)) == {"tool 'P-late'"}


def test_a_check_may_be_repeated():
    """The audit changes nothing and may be called whenever plugins were added."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    before = [list(kernel.function_invocation_filters), dict(kernel.plugins)]
    for _ in range(3):
        check(kernel, host.affiant)
    assert [kernel.function_invocation_filters, kernel.plugins] == before
    kernel.add_plugin(plugin_of(late=look))
    host.declare("late")
    check(kernel, host.affiant)


def test_deep_copies_share_the_hosts_object():
    """A copy of a bound function calls the same object: a Docket or a connection is never forked."""
    from copy import deepcopy

    host = Host(LimitDesk())
    function = host.kernel().get_function("LimitDesk", "set_limit")
    copied = deepcopy(function)
    assert copied is not function
    assert copied.bound is function.bound
    assert "bound" not in function.model_dump()


def test_a_filter_that_was_taken_out_is_noticed():
    """Seam 6: the bridge's filter stands in both lists; a kernel that lost one is not gated, and a check says which."""
    host = Host(LimitDesk())
    kernel = host.kernel()
    kernel.auto_function_invocation_filters.clear()
    assert set(faults_of(check, kernel, host.affiant)) == {"auto filters"}
    text = in_loop(kernel, (SET, LIMIT))["call-1"]  # the function filter still completes by itself
    assert document_of(text)["entryId"] == host.row().entry_id
    assert SECRET not in text


def test_a_kernel_without_the_function_filter_shows_nothing():
    """Without the function filter a bound function does not run, and a native one is gated by the auto filter."""
    desk = LimitDesk()
    host = Host(desk)
    kernel = host.kernel(native={"write": propose}, writes=("write",))
    kernel.function_invocation_filters.clear()
    texts = in_loop(kernel, (SET, LIMIT), ("P-write", {}), arguments=host_arguments())
    assert desk.calls == []
    assert SECRET not in str(texts)
    assert document_of(texts["call-2"])["entryId"] == host.row().entry_id


def test_a_plugin_of_functions_is_a_plugin():
    """The bound plugin is an ordinary one: it can be listed, filtered and handed to another kernel."""
    kernel = Host(LimitDesk()).kernel()
    assert isinstance(kernel.plugins["LimitDesk"], KernelPlugin)
    names = [
        each.fully_qualified_name for each in kernel.get_list_of_function_metadata({"included_plugins": ["LimitDesk"]})
    ]
    assert names == ["LimitDesk-find_customer", "LimitDesk-set_limit"]
