"""A host's tools, the wiring around them and one call: what a user writes, under mypy --strict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_type

from affiant_core import (
    Affiant,
    Affidavit,
    AffidavitField,
    EntityRef,
    FieldDeclaration,
    FieldKind,
    InMemoryDocketStore,
    Member,
    ReadResult,
    ToolDescriptor,
    ToolError,
    ToolInvocation,
    Turn,
    TurnContext,
    WriteProposal,
    grade,
    read_tool,
    write_tool,
)
from affiant_core.bridge import argument_model, bindable, model_text, parse_arguments
from affiant_core.driver import SYNCHRONOUS


class Customers:
    """The tools of a customer desk."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    @read_tool
    def find_customer(self, customer_id: str) -> ReadResult | ToolError:
        """Find one customer."""
        name = self._names.get(customer_id)
        if name is None:
            return ToolError(code="CUSTOMER_NOT_FOUND", message="There is no such customer.")
        entity = EntityRef(entity_type="Customer", entity_id=customer_id, display_name=name, fields={"name": name})
        return ReadResult(summary="Found one customer.", markdown=f"[{customer_id}](#) {name}", entities=(entity,))

    @read_tool(entity_type="Customer", name="list_customers")
    async def all(self) -> ReadResult:
        """List all customers."""
        return ReadResult(summary=f"Found {len(self._names)}.", markdown="\n".join(self._names))

    @write_tool(
        operation="WriteUpdate",
        entity_type="Customer",
        fields=[FieldDeclaration("limit", FieldKind.NUMBER, required=True)],
    )
    def set_limit(self, customer_id: str, limit: int, *, turn: TurnContext) -> WriteProposal:
        """Propose another limit for a customer."""
        tag = grade("limit", limit, utterance=turn.turn.utterance, at=turn.turn.at)
        record = Affidavit.create(
            operation_type="WriteUpdate",
            entity_type="Customer",
            entity_id=customer_id,
            fields=[AffidavitField.of("limit", limit, tag, mandatory=True)],
        )
        return WriteProposal(envelope=record)


@read_tool
def today() -> str:
    """Say what day it is."""
    return "Friday"


desk = Customers({"c-1": "A. Rivera"})

# A mark leaves a function's type as it was.
assert_type(desk.find_customer("c-1"), ReadResult | ToolError)
assert_type(today(), str)
find: Callable[[str], ReadResult | ToolError] = desk.find_customer


def refused_by_the_type_checker() -> None:
    """What does not type-check; nothing here is ever run."""
    read_tool(entity_type=7)  # type: ignore[call-overload]  # an entity type is text
    write_tool(entity_type="Customer")  # type: ignore[call-arg]  # a write names its operation
    write_tool(operation="X", entity_type="Y", fields=["limit"])  # type: ignore[list-item]  # a name is no declaration
    write_tool(desk.find_customer)  # type: ignore[arg-type,call-arg]  # a write is never marked without saying what it is


with Affiant(docket=InMemoryDocketStore(), tools=[desk, today], authorize=lambda request: True) as affiant:
    assert_type(affiant, Affiant)
    affiant.check(["find_customer"])
    assert_type(affiant.declare_read("search", plugin="Crm"), ToolDescriptor)
    tools = bindable(affiant)
    assert_type(tools, tuple[ToolDescriptor, ...])
    names: Sequence[str] = sorted(tool.name for tool in tools)
    assert names == ["find_customer", "list_customers", "set_limit", "today"]

    descriptor, turn = affiant.admit(
        "set_limit", TurnContext("acme", Member("u-1"), conversation_id="c-1", turn=Turn("limit 10 for c-1"))
    )
    assert_type(descriptor, ToolDescriptor)
    assert_type(turn, TurnContext)
    arguments = parse_arguments('{"customer_id": "c-1", "limit": 10}')
    checked = argument_model(descriptor).model_validate(arguments)

    async def body() -> object:
        return desk.set_limit(**checked.model_dump(), turn=turn)

    invocation = ToolInvocation("set_limit", turn, descriptor=descriptor, arguments=arguments, driver=SYNCHRONOUS)
    affiant.pipeline().run_now(invocation, body)
    text = model_text(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
    assert_type(text, str | None)
    assert text is not None
    assert '"outcome":"filed"' in text
