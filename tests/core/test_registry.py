"""Marks, the walk over a tool class, look-ups, and every fault of a tool's name."""

from __future__ import annotations

import functools
import sys
from typing import Optional, ParamSpec, TypeVar

import pytest

from affiant_core.errors import WireupInvalid, WiringError
from affiant_core.registry import FieldDeclaration, ToolDescriptor, ToolRegistry, read_tool, write_tool
from affiant_core.vocabulary import FieldKind, Operation

T = TypeVar("T")
P = ParamSpec("P")

LIMIT = FieldDeclaration("limit", FieldKind.NUMBER, required=True)


class Customers:
    """A host's tools."""

    def __init__(self):
        self.asked = []

    @read_tool
    def find_customer(self, customer_id: str):
        """Find a customer."""
        self.asked.append(customer_id)
        return "found"

    @write_tool(operation="WriteUpdate", entity_type="Customer", fields=[LIMIT], strategy="by-hand")
    def set_limit(self, customer_id: str, limit: int):
        """Propose a limit."""

    async def list_customers(self):
        return "all"


def walked(target, **options):
    return {descriptor.name: descriptor for descriptor in ToolRegistry().walk(target, **options)}


def refused(work, *parts):
    """The faults of a wiring that is refused; each of ``parts``, and every remedy, stands in the message."""
    with pytest.raises(WiringError) as caught:
        work()
    message = str(caught.value)
    for fault in caught.value.faults:
        assert fault.remedy
        assert str(fault) in message
    for part in parts:
        assert part in message
    return caught.value.faults


# --- marks ---------------------------------------------------------------------------------------------------------


def test_a_mark_declares_nothing_by_itself():
    """Seed, "The attribute alone declares nothing": a marked tool is unknown until it is registered."""
    registry = ToolRegistry()
    assert registry.find("set_limit") is None
    assert len(registry) == 0
    registry.walk(Customers())
    assert registry.find("set_limit").is_write
    assert len(registry) == 3


def test_a_marked_tool_is_still_the_function_that_it_was():
    """Seed, "a declaration, not decoration": calling a marked method does what calling an unmarked one does."""
    tools = Customers()
    assert tools.find_customer("c-1") == "found"
    assert tools.asked == ["c-1"]

    def plain():
        """Plain."""

    assert read_tool(plain) is plain
    assert write_tool(operation="WriteCreate", entity_type="X")(plain) is plain


def test_read_tool_is_written_with_and_without_parentheses():
    """Seed, "A declaration is either explicit or walked": each spelling of the read mark gives a read descriptor."""

    class Tools:
        @read_tool
        def bare(self): ...

        @read_tool()
        def empty(self): ...

        @read_tool(name="renamed", entity_type="Customer")
        def named(self): ...

    found = walked(Tools())
    assert set(found) == {"bare", "empty", "renamed"}
    assert {descriptor.operation for descriptor in found.values()} == {"ReadQuery"}
    assert not any(descriptor.is_write for descriptor in found.values())
    assert [found[name].entity_type for name in ("bare", "empty", "renamed")] == [None, None, "Customer"]


def test_a_write_mark_names_operation_entity_fields_and_strategy():
    """Seed, "[AffiantWriteTool]": the mark names the operation kind, the entity type and the strategy of the write."""
    write = walked(Customers())["set_limit"]
    assert (write.operation, write.entity_type, write.fields, write.strategy) == (
        "WriteUpdate", "Customer", (LIMIT,), "by-hand",
    )  # fmt: skip
    assert write.is_write


@pytest.mark.parametrize("operation", ["CreateLeaveRequest", "readquery", Operation.WRITE_DELETE])
def test_a_hosts_own_verb_is_a_write(operation):
    """REFERENCE 8: an operation other than exactly ReadQuery is taken as it stands and is write-capable."""

    @write_tool(operation=operation, entity_type="LeaveRequest")
    def propose(): ...

    descriptor = walked(propose)["propose"]
    assert descriptor.is_write
    assert type(descriptor.operation) is str
    assert descriptor.operation == str(operation)


@pytest.mark.parametrize("operation", ["ReadQuery", Operation.READ_QUERY, "", "  "])
def test_a_write_is_not_a_read_nor_nothing(operation):
    """REFERENCE 8: a write is refused with the operation ReadQuery, and with a blank one, marked or declared."""
    with pytest.raises(ValueError, match="operation"):
        write_tool(operation=operation, entity_type="Customer")
    with pytest.raises(ValueError, match="operation"):
        ToolRegistry().declare_write("set_limit", operation=operation, entity_type="Customer")


@pytest.mark.parametrize("entity_type", ["", "\t"])
def test_a_write_names_its_entity_type(entity_type):
    """Seed, "names the tool's operation kind, entity type": a blank entity type is refused, marked or declared."""
    with pytest.raises(ValueError, match="entity type"):
        write_tool(operation="WriteCreate", entity_type=entity_type)
    with pytest.raises(ValueError, match="entity type"):
        ToolRegistry().declare_write("set_limit", operation="WriteCreate", entity_type=entity_type)


@pytest.mark.parametrize("name", ["", " \n"])
def test_a_name_override_is_not_blank(name):
    """REFERENCE 8: a blank name override raises."""
    with pytest.raises(ValueError, match="not blank"):
        read_tool(name=name)
    with pytest.raises(ValueError, match="not blank"):
        write_tool(name=name, operation="WriteCreate", entity_type="X")


# --- the walk ------------------------------------------------------------------------------------------------------


def test_the_walk_keeps_public_instance_methods():
    """Seed, "it walks the type's public instance methods": each becomes a tool of its name, callable on the object."""
    tools = Customers()
    found = walked(tools)
    assert list(found) == ["find_customer", "set_limit", "list_customers"]
    assert {descriptor.plugin for descriptor in found.values()} == {"Customers"}
    assert found["find_customer"].function("c-2") == "found"
    assert tools.asked == ["c-2"]


def test_a_method_without_a_mark_is_a_read():
    """Seed, "giving every method without one a read descriptor": the unmarked method is declared a read."""
    found = walked(Customers())["list_customers"]
    assert found.operation == "ReadQuery"
    assert not found.is_write
    assert found.description == "list customers"


def test_the_description_is_the_docstring():
    """Seed, "readable by both the LLM and a UI": what a tool says of itself is what the model is told."""
    assert walked(Customers())["find_customer"].description == "Find a customer."


def test_inherited_methods_are_walked_once_each():
    """REFERENCE 8: public instance methods are kept, inherited ones too, and an override counts once."""

    class Archive(Customers):
        @read_tool(entity_type="Customer")
        def find_customer(self, customer_id: str):
            """Find one in the archive."""
            return "archived"

        def purge(self): ...

    found = walked(Archive())
    assert sorted(found) == ["find_customer", "list_customers", "purge", "set_limit"]
    assert found["find_customer"].function("c-1") == "archived"
    assert found["set_limit"].is_write
    assert {descriptor.plugin for descriptor in found.values()} == {"Archive"}


def test_a_walked_class_is_declared_and_cannot_be_called():
    """Seed, "AddAffiantPluginsFromType<T>": a class declares its methods, marks included, and holds no function."""
    found = walked(Customers)
    assert sorted(found) == ["find_customer", "list_customers", "set_limit"]
    assert found["set_limit"].is_write
    assert [descriptor.function for descriptor in found.values()] == [None, None, None]


def test_the_plugin_may_be_named():
    """REFERENCE 8: the plugin defaults to the type's name and is the host's to choose."""
    assert {descriptor.plugin for descriptor in walked(Customers(), plugin="Desk").values()} == {"Desk"}


def test_a_function_is_walked_as_one_tool_without_a_plugin():
    """REFERENCE 8, descriptor: a single function is a tool of its own name, without a plugin unless one is given."""

    @write_tool(operation="WriteCreate", entity_type="Note", name="add_note")
    def add(text: str):
        """Propose a note."""

    (descriptor,) = ToolRegistry().walk(add)
    assert (descriptor.name, descriptor.plugin, descriptor.is_write) == ("add_note", None, True)
    assert descriptor.function is add
    assert descriptor.qualified_name == "add_note"
    (method,) = ToolRegistry().walk(Customers().find_customer, plugin="Desk")
    assert method.qualified_name == "Desk.find_customer"


def test_a_decorator_above_a_mark_keeps_it():
    """Seed, "the write tool is declared": functools.wraps around a marked method loses nothing of its declaration."""

    def logged(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)

        return inner

    class Tools:
        @logged
        @write_tool(operation="WriteCreate", entity_type="Note")
        def add(self): ...

    assert walked(Tools())["add"].is_write


class Skipped:
    """Everything that a walk leaves out, unmarked."""

    attribute = print

    def _private(self): ...

    def __call__(self): ...

    @property
    def accessor(self): ...

    @functools.cached_property
    def remembered(self): ...

    @staticmethod
    def helper(): ...

    @classmethod
    def build(cls): ...

    def pick(self, item: T) -> T: ...

    def nested(self, items: dict[str, list[T]]) -> None: ...

    def maybe(self, item: Optional[T]) -> None: ...  # noqa: UP045  # the older spelling must be skipped as well

    def wrapping(self, function: P) -> None: ...

    def kept(self, names: list[str]) -> dict[str, list[int]] | None: ...


def test_what_is_not_a_public_instance_method_is_skipped():
    """Seed, "it skips generic method definitions and special-name members": only the plain public method remains.

    This file postpones its annotations, so the generic ones are text.
    """
    assert list(walked(Skipped())) == ["kept"]


def test_a_generic_method_is_skipped_with_evaluated_annotations_too():
    """Seed, "it skips generic method definitions": also where annotations are objects and not text."""
    source = "class Tools:\n    def pick(self, item: T, rest: list[T]) -> None: ...\n    def kept(self, item: str): ..."
    namespace = {"T": T}
    exec(compile(source, "tools", "exec", dont_inherit=True), namespace)
    assert list(walked(namespace["Tools"]())) == ["kept"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are a syntax error before Python 3.12")
def test_a_method_with_type_parameters_is_skipped():
    """Seed, "it skips generic method definitions": the spelling of Python 3.12 is generic too."""
    source = "class Tools:\n    def pick[T](self, item: str) -> None: ...\n    def kept(self, item: str): ..."
    namespace = {}
    exec(compile(source, "tools", "exec", dont_inherit=True), namespace)
    assert list(walked(namespace["Tools"]())) == ["kept"]


def test_an_annotation_that_cannot_be_read_hides_no_tool():
    """CV-1: a method whose annotation names nothing is kept, so that its fault is found when it is bound."""

    class Tools:
        def find(self, item: Missing): ...  # noqa: F821  # unreadable on purpose

    assert list(walked(Tools())) == ["find"]


def marked_and_skipped():
    mark = write_tool(operation="WriteCreate", entity_type="Note")

    class Private:
        @mark
        def _add(self): ...

    class Static:
        @staticmethod
        @mark
        def add(): ...

    class StaticOutside:
        @mark
        @staticmethod
        def add(): ...

    class OfClass:
        @classmethod
        @mark
        def add(cls): ...

    class Property:
        @property
        @mark
        def add(self): ...

    class PropertyOutside:
        @mark
        @property
        def add(self): ...

    class Cached:
        @functools.cached_property
        @mark
        def add(self): ...

    class Generic:
        @mark
        def add(self, item: T): ...

    class Remembering:
        @functools.lru_cache  # noqa: B019  # what is tested is the wrapper
        @mark
        def add(self): ...

    return locals()


@pytest.mark.parametrize(
    "name",
    [
        "Private", "Static", "StaticOutside", "OfClass", "Property", "PropertyOutside", "Cached", "Generic",
        "Remembering",
    ],
)  # fmt: skip
def test_a_mark_on_something_skipped_is_a_fault(name):
    """CV-1: a marked method that the walk skips is refused by name, as it would be a write that nobody knows of."""
    kind = marked_and_skipped()[name]
    (fault,) = refused(lambda: ToolRegistry().walk(kind()))
    assert fault.subject in {f"{name}.add", f"{name}._add"}
    assert "marked as a tool" in fault.fault


def test_one_method_under_two_names_is_a_fault():
    """Seed, "throws rather than registering two tools that share a method name": both names are told."""

    class Tools:
        def find(self): ...

        look_up = find

    (fault,) = refused(lambda: ToolRegistry().walk(Tools()), "Tools.find", "Tools.look_up")
    assert "same method" in fault.fault


def test_two_methods_of_one_visible_name_are_a_fault():
    """Seed, "or an LLM-visible name"; C18: both methods are named."""

    class Tools:
        @read_tool(name="find")
        def by_id(self): ...

        @write_tool(name="find", operation="WriteCreate", entity_type="X")
        def by_name(self): ...

    refused(lambda: ToolRegistry().walk(Tools()), "Tools.by_id", "Tools.by_name", "read")
    refused(lambda: ToolRegistry().walk(Tools), "Tools.find")


def test_a_method_named_like_anothers_override_is_a_fault():
    """Seed, "an LLM-visible name": a name override may not take the name of another method."""

    class Tools:
        def find(self): ...

        @read_tool(name="find")
        def search(self): ...

    refused(lambda: ToolRegistry().walk(Tools()), "Tools.find", "Tools.search")


def test_two_objects_of_one_class_are_a_fault_unless_their_plugins_differ():
    """REFERENCE 8: a duplicate of name and plugin raises; the same object twice and two of one class alike."""
    registry = ToolRegistry()
    registry.walk(Customers())
    assert len(refused(lambda: registry.walk(Customers()), "Customers.find_customer")) == 3
    registry.walk(Customers(), plugin="Second")
    assert len(registry) == 6


def test_a_refused_walk_registers_nothing():
    """CV-1: a walk with a fault leaves the registry as it was, so that no half of a class is declared."""

    class Tools:
        def fine(self): ...

        @read_tool
        def _hidden(self): ...

    registry = ToolRegistry()
    refused(lambda: registry.walk(Tools()))
    assert list(registry) == []


def test_a_walk_tells_every_fault_at_once():
    """CV-1: several faults of one class come in one WiringError, each with its remedy."""

    class Tools:
        @read_tool
        def _hidden(self): ...

        @staticmethod
        @read_tool
        def helper(): ...

        def find(self): ...

        look_up = find

        @read_tool(name="find")
        def search(self): ...

    faults = refused(lambda: ToolRegistry().walk(Tools()))
    assert [fault.subject for fault in faults[:3]] == ["Tools._hidden", "Tools.helper", "Tools.look_up"]
    assert len(faults) == 4


# --- declarations and look-ups -------------------------------------------------------------------------------------


def test_declared_tools_are_registered_as_they_were_declared():
    """Seed, "AddAffiantTool, AddAffiantReadTool": an explicit declaration makes a descriptor without a function."""
    registry = ToolRegistry()
    read = registry.declare_read("search", plugin="Crm", entity_type="Customer")
    write = registry.declare_write("set_limit", operation="Raise", entity_type="Customer", fields=[LIMIT], strategy=1)
    assert list(registry) == [read, write]
    assert (read.is_write, read.qualified_name, read.entity_type) == (False, "Crm.search", "Customer")
    assert (write.is_write, write.qualified_name, write.fields, write.strategy) == (True, "set_limit", (LIMIT,), 1)
    assert read.function is write.function is None


def test_a_second_declaration_of_one_pair_raises_with_both_parties():
    """REFERENCE 8, C18: the exact pair of name and plugin is taken once; the message says by what."""
    registry = ToolRegistry()
    registry.declare_write("set_limit", operation="WriteUpdate", entity_type="Customer", plugin="Crm")
    refused(lambda: registry.declare_read("set_limit", plugin="Crm"), "'Crm.set_limit' (write", "(read")
    assert registry.find_exact("set_limit", "Crm").is_write


def test_the_exact_look_up_tells_no_plugin_from_a_named_one():
    """REFERENCE 8: a null plugin differs from any named one, and an empty one from both."""
    registry = ToolRegistry()
    bare = registry.declare_read("search")
    named = registry.declare_read("search", plugin="Crm")
    assert registry.find_exact("search", None) is bare
    assert registry.find_exact("search", "Crm") is named
    assert registry.find_exact("search", "") is None
    assert registry.find_exact("search", "crm") is None


def test_the_look_up_by_name_raises_when_several_plugins_have_it():
    """REFERENCE 8: without a plugin the name is scanned for, and an ambiguous one raises naming each."""
    registry = ToolRegistry()
    only = registry.declare_read("find", plugin="Crm")
    assert registry.find("find") is only
    registry.declare_read("find", plugin="Erp")
    with pytest.raises(WireupInvalid, match=r"Crm\.find, Erp\.find.*Name the plugin"):
        registry.find("find")


@pytest.mark.parametrize("near", ["Find_customer", "find-customer", "find_customer ", "find_customers", "findcustomer"])
def test_a_near_miss_is_unknown(near):
    """C18: a near-miss name is unknown, never guessed."""
    registry = ToolRegistry()
    registry.walk(Customers())
    assert registry.find(near) is None
    assert registry.find_exact(near, "Customers") is None


# --- names that a provider refuses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "find_customer", "Find-2", "x" * 64, "_", "0"])
def test_a_name_that_every_provider_takes_has_no_fault(name):
    """C18: 1 to 64 letters, digits, underscores and hyphens are a name."""
    registry = ToolRegistry()
    registry.declare_read(name)
    assert registry.faults() == []


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "find.customer", "größe", "find\n", "a/b", "٣"])
def test_a_name_that_a_provider_refuses_is_a_fault(name):
    """C18: a name of 65 characters, or with characters of another kind, is refused at wiring, with a remedy."""
    registry = ToolRegistry()
    registry.declare_read(name, plugin="Crm")
    (fault,) = registry.faults()
    assert repr(f"Crm.{name}") in fault.subject
    assert "64" in fault.fault
    assert "name=" in fault.remedy


@pytest.mark.parametrize("twin", ["Find_Customer", "find-customer", "FIND-CUSTOMER", "find--customer"])
def test_two_names_that_a_provider_makes_one_are_a_fault(twin):
    """C18: names equal after the provider's normalisation are refused, naming both parties."""

    class Desk:
        def find_customer(self): ...

    class Archive:
        @read_tool(name=twin)
        def look(self): ...

    registry = ToolRegistry()
    registry.walk(Desk())
    registry.walk(Archive())
    (fault,) = registry.faults()
    assert "'Desk.find_customer'" in fault.subject
    assert f"'Archive.{twin}'" in fault.subject
    assert "Rename one" in fault.remedy


def test_two_objects_with_one_method_name_are_a_fault():
    """C18: two tools of one name in two plugins are refused where both are offered under their bare names."""

    class Crm:
        def find(self): ...

    class Erp:
        def find(self): ...

    registry = ToolRegistry()
    registry.walk(Crm())
    registry.walk(Erp())
    (fault,) = registry.faults()
    assert "'Crm.find' and 'Erp.find'" in fault.subject


def test_declared_names_that_a_provider_makes_one_are_a_fault_within_a_plugin():
    """C18: the framework's own tools are compared too; another plugin of theirs is another name."""
    registry = ToolRegistry()
    registry.declare_read("find_customer", plugin="Crm")
    registry.declare_read("find-customer", plugin="Erp")
    assert registry.faults() == []
    registry.declare_read("find-customer", plugin="Crm")
    (fault,) = registry.faults()
    assert "'Crm.find_customer' and 'Crm.find-customer'" in fault.subject


def test_a_field_is_declared_once():
    """CV-1, AF: a write that declares one field twice is refused by name."""
    registry = ToolRegistry()
    registry.declare_write("set_limit", operation="WriteUpdate", entity_type="Customer", fields=[LIMIT, LIMIT])
    (fault,) = registry.faults()
    assert "'set_limit'" in fault.subject
    assert "twice" in fault.fault


def test_every_undeclared_name_is_a_fault():
    """DECISIONS 16: undeclared tools are listed all at once, each with how to declare it."""
    registry = ToolRegistry()
    registry.declare_read("find")
    faults = registry.undeclared(["find", "Find", "mcp_write", "search"])
    assert [fault.subject for fault in faults] == ["tool 'Find'", "tool 'mcp_write'", "tool 'search'"]
    assert all("declare_read" in fault.remedy and "declare_write" in fault.remedy for fault in faults)


def test_an_ambiguous_name_is_one_fault_among_the_others():
    """CV-1, C18: a name that several plugins have hides no other fault, and the parties are named."""
    registry = ToolRegistry()
    registry.declare_read("find", plugin="Crm")
    registry.declare_read("find", plugin="Erp")
    faults = registry.undeclared(["nosuch", "find", "other"])
    assert [fault.subject for fault in faults] == ["tool 'nosuch'", "tool 'find'", "tool 'other'"]
    assert "Crm.find, Erp.find" in faults[1].fault


def test_a_descriptor_is_what_it_says_and_not_its_function():
    """REFERENCE 8, descriptor: two descriptors of one declaration are equal, whatever function they hold."""
    assert ToolDescriptor("find", "Crm", function=print) == ToolDescriptor("find", "Crm", function=len)
    assert ToolDescriptor("find", "Crm") != ToolDescriptor("find")


def test_an_override_of_a_write_stays_a_write():
    """Seed, 'Write tools': the mark declares the tool, and a subclass that overrides the body does not take it back."""

    class Base:
        @write_tool(operation="WriteUpdate", entity_type="Customer")
        def set_limit(self, limit: int) -> str:
            """Set."""
            return str(limit)

    class Special(Base):
        def set_limit(self, limit: int) -> str:
            """Set, specially."""
            return f"special {limit}"

    registry = ToolRegistry()
    [descriptor] = registry.walk(Special())
    assert descriptor.is_write
    assert descriptor.entity_type == "Customer"
    assert descriptor.function(1) == "special 1"
