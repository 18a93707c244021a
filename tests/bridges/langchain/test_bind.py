"""bind(): a tool class that knows no framework becomes LangChain tools."""

from __future__ import annotations

import asyncio
import copy
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field
from support.gate import turn
from support.langchain import (
    MAIN,
    WAYS,
    Host,
    LimitDesk,
    agent_of,
    asks,
    call,
    config,
    document_of,
    found,
    go,
    proposed,
    question,
    results_in,
    text_of,
)

from affiant_core import (
    Affiant,
    InMemoryDocketStore,
    ReadResult,
    TurnContext,
    WiringError,
    WriteProposal,
    read_tool,
    write_tool,
)
from affiant_core.errors import WireupInvalid
from affiant_langchain_bridge import bind
from affiant_langchain_bridge import catalog as catalog_module


class Kind(Enum):
    ANNUAL = "annual"
    SICK = "sick"


class Line(BaseModel):
    sku: str
    quantity: int = 1


@dataclass
class Site:
    city: str
    zip: str = "00000"


class Reader:
    """Reads with all kinds of parameters; ``got`` is what the last body was given."""

    def __init__(self):
        self.got = None

    def _keep(self, **got):
        self.got = got
        return found()

    @read_tool
    def rich(
        self,
        day: date,
        kind: Kind,
        lines: list[Line],
        at: datetime | None = None,
        site: Site = Site("Galle"),  # noqa: B008  # a default of a tool
        mode: Literal["a", "b"] = "a",
        count: Annotated[int, Field(ge=1, description="How many.")] = 3,
    ) -> ReadResult:
        """Take every kind of value."""
        return self._keep(day=day, kind=kind, lines=lines, at=at, site=site, mode=mode, count=count)

    @read_tool
    async def on(self, day: date) -> ReadResult:
        """Take one date."""
        return self._keep(day=day)

    @read_tool
    def nothing(self) -> ReadResult:
        """Take nothing."""
        return self._keep()

    @read_tool
    def odd(self, config: str, run_manager: int, callbacks: str, original: str, function: str, args: str, kwargs: str):
        """Take names that mean something to LangChain, or to the bridge."""
        return self._keep(
            config=config,
            run_manager=run_manager,
            callbacks=callbacks,
            original=original,
            function=function,
            args=args,
            kwargs=kwargs,
        )

    @read_tool
    def whose(self, context: TurnContext, name: str) -> ReadResult:
        """Say whose turn it is."""
        return self._keep(context=context, name=name)


RICH = {
    "day": "2026-10-01",
    "kind": "sick",
    "lines": [{"sku": "a", "quantity": 2}, {"sku": "b"}],
    "at": "2026-10-01T09:00:00+02:00",
}


@pytest.mark.parametrize("way", MAIN)
def test_a_body_gets_typed_values_and_its_defaults(way):
    """DESIGN, "The same tool class, unchanged": dates, enums and nested models arrive as what the signature says."""
    reader = Reader()
    go(way, list(Host(reader).bind().values()), "rich", RICH, config())
    assert reader.got == {
        "day": date(2026, 10, 1),
        "kind": Kind.SICK,
        "lines": [Line(sku="a", quantity=2), Line(sku="b", quantity=1)],
        "at": datetime(2026, 10, 1, 7, tzinfo=UTC),
        "site": Site("Galle"),
        "mode": "a",
        "count": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "named", "values"),
    [
        ({**RICH, "day": "the-first"}, "day", ["the-first"]),
        ({**RICH, "kind": "holiday"}, "kind", ["holiday"]),
        ({**RICH, "lines": [{"quantity": "many-of-them"}]}, "lines", ["many-of-them", "sku"]),
        ({**RICH, "count": 0}, "count", []),
        ({**RICH, "mode": "zeta"}, "mode", ["zeta"]),
        ({**RICH, "surplus": "secret-text"}, "surplus", ["secret-text"]),
        ({"day": "2026-10-01", "lines": []}, "kind", ["2026"]),
    ],
)
def test_arguments_that_do_not_fit_are_named_and_not_quoted(arguments, named, values):
    """DECISIONS 8: VALIDATION_FAILED names the parameter, unknown ones too, and quotes no value of the model's."""
    reader = Reader()
    result = Host(reader).bind()["rich"].invoke(call("rich", arguments), config())
    told = document_of(result)
    assert (result.status, told["code"], told["retryable"]) == ("error", "VALIDATION_FAILED", False)
    assert f"Check: {named}." in told["message"]
    assert not any(value in told["message"] for value in values)
    assert reader.got is None


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "run"])
def test_text_is_the_only_argument_and_is_read_as_its_type(way):
    """Measured, "bare tool.invoke": text is the one parameter of a tool that takes one, and is coerced like a map."""
    reader = Reader()
    tool = Host(reader).bind()["on"]
    if way == "ainvoke":
        result = asyncio.run(tool.ainvoke("2026-10-01", config()))
    else:
        options = {"config": config()} if way == "run" else config()
        result = tool.run("2026-10-01", **options) if way == "run" else tool.invoke("2026-10-01", options)
    assert document_of(result)["kind"] == "read"
    assert reader.got == {"day": date(2026, 10, 1)}


def test_text_that_does_not_fit_is_a_validation_failure():
    """DECISIONS 8 for text input: the parameter is named, the text is not quoted."""
    told = document_of(Host(Reader()).bind()["on"].invoke("tomorrow", config()))
    assert told["code"] == "VALIDATION_FAILED"
    assert "day" in told["message"]
    assert "tomorrow" not in told["message"]


def test_text_and_a_map_file_the_same_row():
    """GT-4: the id is derived from what was proposed, not from the form in which the arguments came."""

    class Desk:
        from affiant_core import write_tool

        @write_tool(operation="WriteUpdate", entity_type="Customer")
        def close_account(self, customer_id: str):
            """Propose to close an account."""
            return proposed(customer_id, 0)

    host = Host(Desk())
    tool = host.bind()["close_account"]
    first = document_of(tool.invoke("c-1", config()))
    again = document_of(tool.invoke({"customer_id": "c-1"}, config()))
    assert (first["outcome"], again["outcome"], len(host.rows())) == ("filed", "replayed", 1)


@pytest.mark.parametrize("way", MAIN)
def test_a_tool_without_parameters(way):
    """Seed, a read tool: one that needs nothing is called with nothing."""
    reader = Reader()
    assert document_of(go(way, list(Host(reader).bind().values()), "nothing", {}, config()))["kind"] == "read"
    assert reader.got == {}


@pytest.mark.parametrize("way", MAIN)
def test_no_name_of_a_parameter_means_anything_to_the_framework(way):
    """DESIGN, "The same tool class, unchanged": LangChain overwrites 'config' and 'run_manager' of its own tools."""
    reader = Reader()
    given = dict.fromkeys(("config", "callbacks", "original", "function", "args", "kwargs"), "x") | {"run_manager": 7}
    assert document_of(go(way, list(Host(reader).bind().values()), "odd", given, config()))["kind"] == "read"
    assert reader.got == given


def test_a_parameter_that_langgraph_fills_by_name_is_refused_at_wiring():
    """Measured, "a model-visible parameter called runtime is overwritten by ToolNode by name": refused."""

    class Desk:
        def slow(self, runtime: int):
            """Has a name that LangGraph takes."""

        def wide(self, *values: int):
            """Cannot be described."""

    with pytest.raises(WiringError) as refused:
        bind(Affiant(tools=Desk(), docket=InMemoryDocketStore()))
    assert {fault.subject for fault in refused.value.faults} >= {"tool 'Desk.slow'", "tool 'Desk.wide'"}
    assert "'runtime'" in str(refused.value)


# --- the turn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_turn_is_injected(way):
    """DECISIONS 12: a TurnContext parameter gets the very object that stands in the call's config."""
    reader, context = Reader(), turn()
    go(way, list(Host(reader).bind().values()), "whose", {"name": "Ana"}, config(context))
    assert reader.got["context"] is context


def test_the_turn_is_invisible_to_the_model():
    """DECISIONS 12: the schema that a model is shown has no such parameter, and is closed to unknown names."""
    shown = convert_to_openai_tool(Host(Reader()).bind()["whose"])["function"]
    assert shown["name"] == "whose"
    assert shown["description"] == "Say whose turn it is."
    assert list(shown["parameters"]["properties"]) == ["name"]
    assert "context" not in str(shown)


@pytest.mark.parametrize("way", MAIN)
@pytest.mark.parametrize("forged", ["a tenant", {"tenant_id": "other"}, None])
def test_the_turn_cannot_be_forged(way, forged):
    """DECISIONS 12: an argument of that name is an unknown argument, refused before the body, and never the turn."""
    reader = Reader()
    result = go(way, list(Host(reader).bind().values()), "whose", {"name": "Ana", "context": forged}, config())
    assert document_of(result)["code"] == "VALIDATION_FAILED"
    assert reader.got is None


def test_the_turn_comes_from_where_the_host_says():
    """DECISIONS 12: ``turn_of`` reads the turn out of the call's config, wherever the host keeps it."""
    reader, context = Reader(), turn()
    tools = bind(Host(reader).affiant, turn_of=lambda config: config["configurable"]["desk"]["turn"])
    go("agent", tools, "whose", {"name": "Ana"}, {"configurable": {"desk": {"turn": context}}})
    assert reader.got["context"] is context


# --- what bind() gives ---------------------------------------------------------------------------------------------


def test_bind_gives_a_tool_for_every_declared_function():
    """DESIGN, ``bind(affiant)`` is a list of BaseTool: one for each function, with its name and description."""

    @read_tool(name="standing")
    def how_is_it_going():
        """Say how it is going."""
        return found()

    host = Host([LimitDesk(), how_is_it_going])
    host.affiant.declare_read("elsewhere")  # it has no function, and is for wrap()
    tools = bind(host.affiant)
    assert all(isinstance(tool, BaseTool) for tool in tools)
    assert [tool.name for tool in tools] == ["find_customer", "set_limit", "standing"]
    assert tools[2].description == "Say how it is going."


def test_a_deep_copy_shares_the_hosts_object():
    """GT-6 and the registry's walk: a copied tool works on the same host object, whose locks cannot be copied."""

    class Guarded(LimitDesk):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    desk = Guarded()
    copied = copy.deepcopy(Host(desk).bind()["find_customer"])
    copied.invoke({"customer_id": "c-1"}, config())
    assert [name for name, _ in desk.calls] == ["find_customer"]


def test_an_agent_is_offered_the_tools_as_they_are():
    """Measured, "What a wrapper must preserve": create_agent hands the model the bound tools' own schemas."""
    agent = agent_of(list(Host(LimitDesk()).bind().values()), asks(("find_customer", {"customer_id": "c-1"})))
    state = agent.invoke(question(), config())
    assert text_of(results_in(state)[0]) == found().to_json_string()


def test_a_version_that_was_not_tested_is_refused(monkeypatch):
    """CONTRIBUTING, "It checks the framework's version before it touches it": another major version is refused."""
    monkeypatch.setattr("affiant_core.bridge.wiring.metadata.version", lambda _: "2.0.1")
    with pytest.raises(WireupInvalid, match="langchain-core"):
        bind(Host(LimitDesk()).affiant)
    with pytest.raises(WireupInvalid, match="langchain-core"):
        catalog_module.wrap([], Host().affiant)


@pytest.mark.parametrize("way", MAIN)
def test_what_a_body_does_to_its_arguments_stays_there(way):
    """DECISIONS 9 and 15: neither the second attempt of a call nor the proposal's identity sees what a body changed."""
    seen = []

    class Changing:
        @write_tool(operation="WriteUpdate", entity_type="Customer")
        def change(self, lines: dict[str, Any]) -> WriteProposal:
            """Change what it is given."""
            seen.append(copy.deepcopy(lines))
            lines["deep"].append(2)
            if len(seen) == 1:
                raise TimeoutError
            return proposed()

    host = Host(Changing())
    given = {"lines": {"deep": [1]}}
    tools = list(host.bind().values())
    ids = {document_of(go(way, tools, "change", copy.deepcopy(given), config()))["entryId"] for _ in range(2)}
    assert seen == [{"deep": [1]}] * 3
    assert ids == {host.row().entry_id}
