"""wrap(): tools that the host already has keep everything that is LangChain's, and get the gate inside."""

from __future__ import annotations

import asyncio
import copy
from typing import Annotated, Any

import pytest
from langchain.tools import InjectedState, InjectedStore, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from support.gate import turn
from support.langchain import (
    ASYNC_WAYS,
    FEW,
    MAIN,
    PROPOSAL,
    SECRET,
    WAYS,
    Host,
    agent_of,
    asks,
    call,
    config,
    document_of,
    found,
    go,
    graph_of,
    newer,
    proposed,
    question,
    results_in,
    text_of,
)

from affiant_core.entry_id import derive_entry_id

TEXT = found().to_json_string()


def args_of(host, arguments):
    """Whether the only row's identity is made of exactly these arguments, as GT-4 derives it."""
    row = host.row()
    return row.entry_id == derive_entry_id(
        tenant_id=row.tenant_id,
        conversation_id=row.conversation_id,
        tool_name=row.tool_name,
        operation_kind="update",
        entity_type="Customer",
        entity_id="c-1",
        fields=["limit", "memo"],
        arguments=arguments,
    )


# --- every kind of tool --------------------------------------------------------------------------------------------


class Arguments(BaseModel):
    customer_id: str
    limit: int = 3


SCHEMA = {
    "type": "object",
    "properties": {"customer_id": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["customer_id"],
}


class RunOnly(BaseTool):
    name: str = "set_limit"
    description: str = "Propose."
    args_schema: Any = Arguments
    shelf: str = "a host's own attribute"

    def _run(self, customer_id: str, limit: int = 3) -> str:
        return proposed(customer_id, limit).to_json_string()


class RunsOnly(BaseTool):
    """Asynchronous only, as LangChain asks for it: ``_run`` is abstract and has to be there."""

    name: str = "set_limit"
    description: str = "Propose."
    args_schema: Any = Arguments

    def _run(self, customer_id: str, limit: int = 3) -> str:
        raise NotImplementedError

    async def _arun(self, customer_id: str, limit: int = 3) -> str:
        await asyncio.sleep(0)
        return proposed(customer_id, limit).to_json_string()


class Both(RunOnly):
    async def _arun(self, customer_id: str, limit: int = 3) -> str:
        await asyncio.sleep(0)
        return self._run(customer_id, limit)


class WithoutSchema(BaseTool):
    name: str = "set_limit"
    description: str = "Propose."

    def _run(self, customer_id: str, limit: int = 3) -> str:
        return proposed(customer_id, limit).to_json_string()


def function_tool():
    @tool("set_limit")
    def made(customer_id: str, limit: int = 3) -> str:
        """Propose."""
        return proposed(customer_id, limit).to_json_string()

    return made


def with_dict_schema():
    def body(**given):
        return proposed(given["customer_id"], given["limit"]).to_json_string()

    return StructuredTool(name="set_limit", description="Propose.", args_schema=SCHEMA, func=body)


def with_both_functions():
    def body(customer_id: str, limit: int = 3) -> str:
        return proposed(customer_id, limit).to_json_string()

    async def abody(customer_id: str, limit: int = 3) -> str:
        return body(customer_id, limit)

    return StructuredTool.from_function(body, abody, name="set_limit", description="Propose.")


KINDS = {
    "@tool": function_tool,
    "StructuredTool, both": with_both_functions,
    "dictionary schema": with_dict_schema,
    "_run only": RunOnly,
    "_arun only": RunsOnly,
    "both": Both,
    "no schema": WithoutSchema,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_proposal_of_every_kind_of_tool_is_filed(kind, way):
    """Measured, "16 call cases, 15 tools": whichever class a tool is of, its proposal is filed under the same id."""
    if kind == "_arun only" and (way not in ASYNC_WAYS or way == "invoke inside a running loop"):
        return
    host = Host()
    wrapped = host.wrap_one(KINDS[kind](), writes=True)
    result = go(way, [wrapped], "set_limit", {"customer_id": "c-1", "limit": 10}, config())
    assert document_of(result)["entryId"] == host.row().entry_id
    assert args_of(host, {"customer_id": "c-1", "limit": 10})
    assert SECRET not in repr(result)


@pytest.mark.parametrize("way", MAIN)
def test_a_single_input_tool(way):
    """Measured, the same of ``Tool``: its one argument comes as text or as ``__arg1``, and both name one row."""
    host = Host()
    wrapped = host.wrap_one(Tool("set_limit", lambda text: proposed(text).to_json_string(), "Propose."), writes=True)
    result = go(way, [wrapped], "set_limit", {"__arg1": "c-1"}, config())
    assert document_of(result)["outcome"] == "filed"
    assert document_of(wrapped.invoke("c-1", config()))["outcome"] == "replayed"
    assert args_of(host, {"__arg1": "c-1"})


def test_too_many_arguments_for_a_single_input_tool_are_the_models_fault():
    """DECISIONS 13, "A fault of the model's call is a ToolError": LangChain would quote it and end the run."""
    wrapped = Host().wrap_one(Tool("echo", lambda text: text, "Echo."))
    result = wrapped.invoke(call("echo", {"a": "hunter2", "b": "c-1"}), config())
    assert (result.status, document_of(result)["code"]) == ("error", "VALIDATION_FAILED")
    assert "hunter2" not in result.content


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "_arun only"])
def test_what_is_seen_of_a_tool_stays_as_it_was(kind):
    """Measured, "nothing broke: schema identical": class, schema, description and fields are those of the original."""
    original = KINDS[kind]()
    shown = convert_to_openai_tool(original)
    before = dict(vars(original))
    wrapped = Host().wrap_one(original, writes=True)
    assert isinstance(wrapped, type(original))
    assert convert_to_openai_tool(wrapped) == shown
    assert wrapped.args == original.args
    assert wrapped.is_single_input == original.is_single_input
    assert {name: value for name, value in vars(original).items() if name in before} == before


def test_the_original_is_untouched_and_ungated():
    """Measured, a copy with its class swapped: the original still gives its raw proposal, and files none."""
    host = Host()
    original = function_tool()
    wrapped = host.wrap_one(original, writes=True)
    assert type(original) is StructuredTool
    assert original.invoke({"customer_id": "c-1", "limit": 10}) == PROPOSAL
    assert host.rows() == ()
    wrapped.invoke({"customer_id": "c-1", "limit": 10}, config())
    assert len(host.rows()) == 1


@newer
def test_host_attributes_tags_and_metadata_are_kept():
    """Measured, "keeps isinstance, .func, host attributes, tags, metadata and callbacks"."""
    original = RunOnly(tags=["t"], metadata={"m": 1}, shelf="mine", return_direct=True, extras={"defer": True})
    wrapped = Host().wrap_one(original, writes=True)
    assert (wrapped.shelf, wrapped.tags, wrapped.metadata) == ("mine", ["t"], {"m": 1})
    assert (wrapped.return_direct, wrapped.extras) == (True, {"defer": True})
    made = function_tool()
    assert Host().wrap_one(made, writes=True).func is made.func


def test_a_deep_copy_of_a_bridged_tool_is_bridged():
    """Measured, "the bridge object needs __deepcopy__ returning itself": a copy goes through the same gate."""
    host = Host()
    copied = copy.deepcopy(host.wrap_one(RunOnly(), writes=True))
    assert document_of(copied.invoke({"customer_id": "c-1"}, config()))["entryId"] == host.row().entry_id


# --- what is injected ----------------------------------------------------------------------------------------------


class Injected(BaseModel):
    customer_id: str
    user: Annotated[str, InjectedToolArg] = "nobody"


def injected_tool(got):
    @tool("set_limit")
    def made(
        customer_id: str,
        call_id: Annotated[str, InjectedToolCallId],
        state: Annotated[dict, InjectedState],
        store: Annotated[BaseStore, InjectedStore],
        runtime: ToolRuntime,
        cfg: RunnableConfig,
    ) -> str:
        """Propose."""
        got.update(call_id=call_id, state=state, store=store, runtime=runtime, cfg=cfg)
        return proposed(customer_id).to_json_string()

    return made


class InjectedSubclass(BaseTool):
    """The same without a schema: LangChain reads the annotations of ``_run``, here those of a postponed kind."""

    name: str = "set_limit"
    description: str = "Propose."
    got: Any = None

    def _run(
        self,
        customer_id: str,
        state: Annotated[dict, InjectedState],
        runtime: ToolRuntime,
        cfg: RunnableConfig,
        run_manager: Any = None,
    ) -> str:
        self.got.update(state=state, runtime=runtime, cfg=cfg, run_manager=run_manager)
        return proposed(customer_id).to_json_string()


def injected_coroutine(got):
    """As langchain-mcp-adapters makes them: a dictionary for a schema, a runtime that is found by its annotation."""

    async def body(runtime: ToolRuntime = None, **arguments: Any) -> tuple[list, Any]:
        got.update(runtime=runtime)
        return [{"type": "text", "text": proposed(arguments["customer_id"]).to_json_string()}], {"raw": SECRET}

    return StructuredTool(
        name="set_limit",
        description="Propose.",
        args_schema={"type": "object", "properties": {"customer_id": {"type": "string"}}},
        coroutine=body,
        response_format="content_and_artifact",
    )


def in_a_graph(wrapped, arguments, **options):
    """Call a tool from a ToolNode, with a store, and give its message."""
    store = InMemoryStore()
    agent = agent_of([wrapped], asks(("set_limit", arguments)), store=store)
    state = asyncio.run(agent.ainvoke(question(), config(**options)))
    return results_in(state)[0]


FORGED = {"customer_id": "c-1", "state": "FORGED", "store": "FORGED", "runtime": "FORGED", "call_id": "FORGED"}


@newer
@pytest.mark.parametrize("arguments", [{"customer_id": "c-1"}, FORGED])
@pytest.mark.parametrize("kind", ["@tool", "no schema", "MCP"])
def test_injected_values_reach_the_body_and_not_the_identity(kind, arguments):
    """Measured, "Which arguments a seam sees"; DECISIONS 9: injected and forged values are not carried."""
    got, host = {}, Host()
    original = {"@tool": injected_tool, "no schema": lambda got: InjectedSubclass(got=got), "MCP": injected_coroutine}
    if kind == "no schema":  # it has no such parameters, and nothing keeps them from its body
        arguments = {name: value for name, value in arguments.items() if name not in {"store", "call_id"}}
    message = in_a_graph(host.wrap_one(original[kind](got), writes=True), arguments)
    assert document_of(message)["entryId"] == host.row().entry_id
    assert isinstance(got["runtime"], ToolRuntime)
    assert "FORGED" not in map(repr, got.values())
    if kind == "@tool":
        assert got["call_id"] == "call-1"
        assert got["cfg"]["configurable"]["affiant"].tenant_id == "acme"
    if kind == "no schema":
        assert got["state"]["messages"][0].content == question()["messages"][0].content
        assert got["cfg"]["configurable"]["affiant"].tenant_id == "acme"
    # With a dictionary for a schema a tool takes every other name that the model makes up.
    made_up = {name: value for name, value in arguments.items() if name != "runtime"}
    assert args_of(host, made_up if kind == "MCP" else {"customer_id": "c-1"})


@newer
@pytest.mark.parametrize("way", ["invoke with a call", "ainvoke with a call"])
def test_postponed_annotations_are_read_where_they_were_written(way):
    """Measured, "core inspects their signatures": annotations that are text are read in the tool's module."""

    class Keyed(BaseTool):
        name: str = "look"
        description: str = "Look."
        args_schema: Any = Arguments

        def _run(self, customer_id: str, limit: int, key: Annotated[str, InjectedToolArg]) -> str:
            return f"{customer_id} {limit} {key}"

    seen: list = []
    arguments = {"customer_id": "c-1", "limit": 1, "key": SECRET}
    for tool_ in (Keyed(), Host().wrap_one(Keyed())):
        cfg = config() | {"callbacks": [Ends(seen)]}
        assert go(way, [tool_], "look", arguments, cfg).content == f"c-1 1 {SECRET}"
    assert seen[0] == seen[2]
    assert SECRET not in seen[2]


def test_an_argument_that_the_host_injects_is_not_carried():
    """DECISIONS 9, "without injected or host values": what a host puts in beside the model's arguments is left out."""
    host = Host()

    @tool("set_limit", args_schema=Injected)
    def made(customer_id: str, user: str) -> str:
        """Propose."""
        return proposed(customer_id, memo=user).to_json_string()

    host.wrap_one(made, writes=True).invoke({"customer_id": "c-1", "user": "ana"}, config())
    assert host.row().affidavit.values()["memo"] == "ana"
    assert args_of(host, {"customer_id": "c-1"})


def test_an_injected_argument_that_is_missing_is_the_hosts_fault():
    """DECISIONS 13: what the model cannot mend is not told to it; it is raised, and nothing ran."""

    @tool("needs_user")
    def made(name: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Need a user."""
        return TEXT

    wrapped = Host().wrap_one(made)
    with pytest.raises(ValueError, match="user"):
        wrapped.invoke({"name": "c-1"}, config())
    told = document_of(wrapped.invoke({"name": ["c-1"]}, config()))  # both are wrong: the model's own part is told
    assert told["message"].endswith("Check: name.")


# --- arguments -----------------------------------------------------------------------------------------------------


class Line(BaseModel):
    quantity: int


class Order(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    customer_id: str = Field(alias="customerId")
    limit: int = 3
    lines: list[Line] = []


def order_tool(got, schema=Order):
    def body(customer_id, limit=3, lines=(), **more):
        got.append((customer_id, limit, lines, more))
        return proposed(customer_id, limit).to_json_string()

    return StructuredTool(name="set_limit", description="Propose.", args_schema=schema, func=body)


@newer
@pytest.mark.parametrize(
    "arguments",
    [
        {"customerId": "c-1", "limit": "5"},
        {"customerId": "c-1", "limit": 5},
        {"customerId": "c-1", "limit": 5, "lines": [{"quantity": "2"}]},
        {"customer_id": "c-1", "limit": 5},
        {"customerId": "c-1"},
    ],
)
def test_the_identity_is_what_the_model_sent(arguments):
    """DECISIONS 9, "parsed strictly, before coercion": aliases as written, "5" unlike 5, no defaults filled in."""
    got, host = [], Host()
    host.wrap_one(order_tool(got), writes=True).invoke(call("set_limit", arguments), config())
    assert args_of(host, arguments)
    assert got[0][0] == "c-1"
    assert isinstance(got[0][1], int)
    assert all(isinstance(line, Line) for line in got[0][2])


@newer
def test_text_and_number_are_two_rows():
    """Measured, '"5" and 5 differ: decide this deliberately': two proposals, since the model said two things."""
    host = Host()
    wrapped = host.wrap_one(order_tool([]), writes=True)
    for limit in ("5", 5, 5):
        wrapped.invoke(call("set_limit", {"customerId": "c-1", "limit": limit}), config())
    assert len(host.rows()) == 2


@newer
def test_an_alias_that_is_more_than_a_name():
    """DECISIONS 9: where the names that a model takes cannot be listed, all that it was sent is carried."""

    class Choosing(BaseModel):
        customer_id: str = Field(validation_alias=AliasChoices("who", AliasPath("ids", 0)))

    host = Host()
    wrapped = host.wrap_one(order_tool([], Choosing), writes=True)
    wrapped.invoke({"ids": ["c-1"]}, config())
    assert args_of(host, {"ids": ["c-1"]})


@newer
def test_a_schema_of_the_first_pydantic():
    """Measured: langchain-core still takes pydantic.v1 models, whose arguments, aliases and faults are read too."""
    from pydantic import v1

    class Old(v1.BaseModel):
        customer_id: str = v1.Field(alias="customerId")
        limit: int = 3

    host = Host()
    wrapped = host.wrap_one(order_tool([], Old), writes=True)
    told = document_of(wrapped.invoke(call("set_limit", {"customerId": "c-1", "limit": "hunter2"}), config()))
    assert told["message"].endswith("Check: limit.")
    wrapped.invoke(call("set_limit", {"customerId": "c-1", "limit": "5", "mood": 1}), config())
    assert args_of(host, {"customerId": "c-1", "limit": "5"})


@newer
@pytest.mark.parametrize(("extra", "carried"), [("ignore", False), ("allow", True)])
def test_a_name_that_the_tool_ignores_is_no_part_of_the_identity(extra, carried):
    """Measured, "an ignored extra key would otherwise mint a new row": carried is what reaches the body."""

    class Open(Order):
        model_config = ConfigDict(extra=extra, populate_by_name=True)

    got, host = [], Host()
    wrapped = host.wrap_one(order_tool(got, Open), writes=True)
    wrapped.invoke(call("set_limit", {"customerId": "c-1", "limit": 5, "mood": "good"}), config())
    assert got[0][3] == ({"mood": "good"} if carried else {})
    assert args_of(host, {"customerId": "c-1", "limit": 5, **({"mood": "good"} if carried else {})})


def test_names_that_the_tool_forbids_are_told():
    """DECISIONS 8: a name that the schema forbids is told, its value is not."""

    class Closed(Order):
        model_config = ConfigDict(extra="forbid")

    arguments = {"customerId": "c-1", "mood": "hunter2", "not a name": 1, "x" * 65: 2}
    told = document_of(Host().wrap_one(order_tool([], Closed)).invoke(call("set_limit", arguments), config()))
    assert told["message"] == "The arguments do not fit the tool's parameters. Check: mood."


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), [1, {"deep": float("-inf")}], "\ud800", 2**60, object()])
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_values_that_are_not_json_are_refused_by_name(bad, schema):
    """DECISIONS 8, "hold NaN or infinity": such a call is answered without its body, and observed as one call."""
    ran, seen = [], []

    def body(customer_id=None, limit=None):
        ran.append(customer_id)
        return TEXT

    class Loose(BaseModel):
        customer_id: Any
        limit: Any = None

    original = StructuredTool(name="free", description="Free.", args_schema=schema or Loose, func=body)
    wrapped = Host().wrap_one(original)
    result = wrapped.invoke(call("free", {"customer_id": "c-1", "limit": bad}), config() | {"callbacks": [Ends(seen)]})
    assert (result.status, document_of(result)["code"]) == ("error", "VALIDATION_FAILED")
    assert document_of(result)["message"].endswith("Check: limit.")
    assert ran == []
    assert [type(each) for each in seen] == [str, ToolMessage]


@pytest.mark.parametrize("way", FEW)
def test_a_body_that_changes_its_arguments_does_not_rewrite_the_history(way):
    """Measured, ".copy() is shallow: a body mutating lines[0] rewrote the AIMessage history": it gets a deep copy."""
    seen = []

    def body(lines, deep):
        lines[0]["quantity"] = 999
        lines.append("forged")
        deep["a"]["b"] = "forged"
        seen.append(lines)
        return TEXT

    schema = {"type": "object", "properties": {"lines": {"type": "array"}, "deep": {"type": "object"}}}
    original = StructuredTool(name="find_customer", description="Read.", args_schema=schema, func=body)
    arguments = {"lines": [{"quantity": 1}], "deep": {"a": {"b": 1}}}
    go(way, [Host().wrap_one(original)], "find_customer", arguments, config())
    assert seen == [[{"quantity": 999}, "forged"]]
    assert arguments == {"lines": [{"quantity": 1}], "deep": {"a": {"b": 1}}}


@newer
def test_the_state_and_the_store_are_not_copied():
    """Measured, injected values: what the framework injects is the framework's own object, of whatever size."""
    got, store = {}, InMemoryStore()
    wrapped = Host().wrap_one(injected_tool(got), writes=True)
    agent_of([wrapped], asks(("set_limit", {"customer_id": "c-1"})), store=store).invoke(question(), config())
    assert got["store"] is store
    assert got["state"] is got["runtime"].state


# --- artifacts -----------------------------------------------------------------------------------------------------


def artifact_tool(content, artifact, **options):
    def body(customer_id: str) -> Any:
        """Give content and artifact."""
        return (content, artifact)

    return StructuredTool.from_function(body, name="look", response_format="content_and_artifact", **options)


@pytest.mark.parametrize("content", [TEXT, found(), "plain text", [{"type": "text", "text": TEXT}]])
def test_the_artifact_of_a_read_is_kept(content):
    """Measured, "artifact lost" by the naive wrapper: a read keeps its artifact, whatever its content is."""
    artifact = {"rows": [1, 2]}
    wrapped = Host().wrap_one(artifact_tool(content, artifact))
    message = wrapped.invoke(call("look", {"customer_id": "c-1"}), config())
    assert message.artifact is artifact
    assert text_of(message) == ("plain text" if content == "plain text" else TEXT)
    assert text_of(asyncio.run(wrapped.ainvoke({"customer_id": "c-1"}, config()))) == text_of(message)


@pytest.mark.parametrize("artifact", [{"raw": SECRET}, {"structured_content": {"result": PROPOSAL}}, proposed()])
@pytest.mark.parametrize("content", [PROPOSAL, proposed(), [{"type": "text", "text": PROPOSAL}]])
def test_the_artifact_of_a_proposal_is_dropped(content, artifact):
    """Measured, "Drop artifact of what was replaced": it may hold what the receipt leaves out, as MCP's copy does."""
    host = Host()
    wrapped = host.wrap_one(artifact_tool(content, artifact), writes=True)
    message = wrapped.invoke(call("look", {"customer_id": "c-1"}), config())
    assert document_of(message)["entryId"] == host.row().entry_id
    assert (message.artifact, message.status) == (None, "success")
    assert SECRET not in repr(message)


@pytest.mark.parametrize("artifact", [proposed(), PROPOSAL, [{"x": proposed()}], proposed().to_json()])
def test_a_proposal_in_an_artifact_is_refused(artifact):
    """GT-1, "a raw proposal never reaches an observer": an artifact is kept in the state, so none may lie in it."""
    host = Host()
    message = host.wrap_one(artifact_tool(TEXT, artifact)).invoke(call("look", {"customer_id": "c-1"}), config())
    assert (message.status, document_of(message)["code"]) == ("error", "wireup-invalid")
    assert message.artifact is None
    assert SECRET not in repr(message)
    assert host.rows() == ()


def test_an_error_keeps_status_and_loses_no_artifact():
    """Seed, ToolError: content that is one makes an error message; the artifact beside it is the tool's own."""
    from affiant_core import ToolError

    error = ToolError(tool_name="look", code="CUSTOMER_NOT_FOUND", message="There is none.")
    for content in (error, error.to_json_string()):
        message = (
            Host().wrap_one(artifact_tool(content, {"tried": 2})).invoke(call("look", {"customer_id": "c-1"}), config())
        )
        assert (message.status, message.artifact) == ("error", {"tried": 2})
        assert document_of(message)["code"] == "CUSTOMER_NOT_FOUND"


@pytest.mark.parametrize("result", ["only content", "ok", ["content", "artifact"], ("a", "b", "c"), None])
def test_a_broken_pair_is_a_failure_of_the_tool(result):
    """Seed, "any tool that fails returns ToolError": LangChain would end the run over content without an artifact."""

    def body(customer_id: str) -> str:
        """Forget the artifact."""
        return result

    wrapped = Host().wrap_one(StructuredTool.from_function(body, name="look", response_format="content_and_artifact"))
    result = wrapped.invoke(call("look", {"customer_id": "c-1"}), config())
    assert (result.status, document_of(result)["kind"]) == ("error", "error")


# --- handlers of the tool's own ------------------------------------------------------------------------------------


def failing(error, **options):
    def body(customer_id: str) -> str:
        """Fail."""
        raise error

    async def abody(customer_id: str) -> str:
        raise error

    return StructuredTool.from_function(body, abody, name="set_limit", **options)


HANDLERS = {
    "as it is": (True, "no such customer"),
    "text": ("try another", "try another"),
    "function": (lambda error: f"handled {error}", "handled no such customer"),
    "blocks": (lambda _: [{"type": "text", "text": "in a block"}], "in a block"),
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_tool_exception_goes_to_the_tools_own_handler(handler, way):
    """Measured, "re-raise ToolException when the tool sets handle_tool_error": its handler speaks, for writes too."""
    given, told = HANDLERS[handler]
    host = Host()
    wrapped = host.wrap_one(failing(ToolException("no such customer"), handle_tool_error=given), writes=True)
    result = go(way, [wrapped], "set_limit", {"customer_id": "c-1"}, config())
    assert text_of(result) == told
    assert not isinstance(result, ToolMessage) or result.status == "error"
    assert host.rows() == ()


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize(
    "error", [ToolException("db password=hunter2"), ValueError("hunter2"), RuntimeError("hunter2")]
)
def test_every_other_exception_is_mapped(error, way):
    """C02: what a body raises reaches no model as text, a ToolException without a handler neither."""
    wrapped = Host().wrap_one(failing(error))
    result = go(way, [wrapped], "set_limit", {"customer_id": "c-1"}, config())
    assert document_of(result)["kind"] == "error"
    assert "hunter2" not in repr(result)


@pytest.mark.parametrize("handler", [lambda _: PROPOSAL, PROPOSAL, lambda _: proposed(), True])
def test_a_handler_that_gives_a_proposal_has_it_filed(handler):
    """GT-1: what a handler makes up is a result like any other, and a proposal in it is filed, not shown."""
    host, seen = Host(), []
    wrapped = host.wrap_one(failing(ToolException(PROPOSAL), handle_tool_error=handler))
    message = wrapped.invoke(call("set_limit", {"customer_id": "c-1"}), config() | {"callbacks": [Ends(seen)]})
    assert document_of(message)["entryId"] == host.row().entry_id
    assert (message.status, SECRET in repr((message, seen))) == ("success", False)


def test_a_handler_that_fails_is_mapped():
    """C02 again: an exception of the handler is a failure of the tool."""
    wrapped = Host().wrap_one(failing(ToolException("x"), handle_tool_error=lambda _: 1 / 0))
    result = wrapped.invoke(call("set_limit", {"customer_id": "c-1"}), config())
    assert document_of(result)["code"] == "UNKNOWN"


def test_a_handled_exception_of_a_tool_with_artifacts():
    """Measured, content_and_artifact with handle_tool_error: the handler's content comes without an artifact."""
    options = {"response_format": "content_and_artifact", "handle_tool_error": True}
    message = (
        Host()
        .wrap_one(failing(ToolException("gone"), **options))
        .invoke(call("set_limit", {"customer_id": "c-1"}), config())
    )
    assert (message.content, message.artifact, message.status) == ("gone", None, "error")


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize(
    ("handler", "told"),
    [(True, "Tool input validation error"), ("Look again.", "Look again."), (lambda _: "Look twice.", "Look twice.")],
)
def test_a_validation_failure_goes_to_the_tools_own_handler(handler, told, way):
    """Measured, "handle_validation_error lost" by the naive wrapper: the tool's own handler wins over ours."""
    original = function_tool()
    original.handle_validation_error = handler
    result = go(way, [Host().wrap_one(original, writes=True)], "set_limit", {"limit": "x"}, config())
    assert text_of(result) == told


@pytest.mark.parametrize("way", FEW)
def test_a_bodys_own_validation_error_is_not_an_argument_fault(way):
    """Measured, "a body's own ValidationError is not confused with it": it is the tool's failure, and names nothing."""

    def body(customer_id: str) -> str:
        """Fail inside."""
        Arguments(customer_id={"hunter2": 1})  # type: ignore[arg-type]  # on purpose
        return TEXT

    wrapped = Host().wrap_one(StructuredTool.from_function(body, name="look", handle_validation_error="not this"))
    told = document_of(go(way, [wrapped], "look", {"customer_id": "c-1"}, config()))
    assert told["message"].startswith("The call was not valid for this tool.")


# --- callbacks -----------------------------------------------------------------------------------------------------

from langchain_core.callbacks import BaseCallbackHandler  # noqa: E402  # beside its only use


class Ends(BaseCallbackHandler):
    """Remembers the starts, as text, and the ends and errors of tools."""

    def __init__(self, seen):
        self.seen = seen

    def on_tool_start(self, serialized, input_str, **_):
        self.seen.append(input_str)

    def on_tool_end(self, output, **_):
        self.seen.append(output)

    def on_tool_error(self, error, **_):
        self.seen.append(error)


@pytest.mark.parametrize("way", MAIN)
def test_a_call_is_observed_once_at_its_start_and_end(way):
    """Measured, "in B it is one start/end pair", even when the body is retried; and the end holds the replacement."""
    runs, seen = [], []

    def body(customer_id: str) -> str:
        """Fail once."""
        runs.append(customer_id)
        if len(runs) == 1:
            raise TimeoutError
        return PROPOSAL

    wrapped = Host().wrap_one(StructuredTool.from_function(body, name="set_limit"), writes=True)
    go(way, [wrapped], "set_limit", {"customer_id": "c-1"}, config() | {"callbacks": [Ends(seen)]})
    start, end = seen
    assert len(runs) == 2
    assert "c-1" in start
    assert document_of(end)["outcome"] == "filed"
    assert SECRET not in repr(seen)


def test_callbacks_of_the_tool_itself_are_kept():
    """Measured, the swapped class keeps callbacks: those that the original carries are called for the copy."""
    seen = []
    original = function_tool()
    original.callbacks = [Ends(seen)]
    Host().wrap_one(original, writes=True).invoke({"customer_id": "c-1"}, config())
    assert len(seen) == 2


def test_a_tool_that_asks_for_its_run_manager_gets_it():
    """Measured, "_run and _arun must be functools.wraps of the base method, since core inspects their signatures"."""
    got = {}
    wrapped = Host().wrap_one(InjectedSubclass(got=got), writes=True)
    arguments = {"customer_id": "c-1", "state": {}, "runtime": None}
    wrapped.invoke(call("set_limit", arguments), config())
    assert type(got["run_manager"]).__name__ == "CallbackManagerForToolRun"
    assert got["cfg"]["configurable"]["affiant"] == turn()
    got.clear()
    asyncio.run(wrapped.ainvoke(call("set_limit", arguments), config()))
    assert type(got["run_manager"]).__name__ == "CallbackManagerForToolRun"
    assert got["cfg"]["configurable"]["affiant"] == turn()


def test_return_direct_is_kept():
    """Measured, "return_direct lost" by the naive wrapper: a tool that ends the turn still does."""
    original = function_tool()
    original.return_direct = True
    wrapped = Host().wrap_one(original, writes=True)
    agent = agent_of([wrapped], asks(("set_limit", {"customer_id": "c-1"})))
    state = agent.invoke(question(), config())
    assert state["messages"][-1] is results_in(state)[0]


def test_a_graph_with_a_bridged_tool_per_name():
    """Measured, ToolNode finds tools by name: a node of bridged tools calls each by its own."""
    host = Host()
    wrapped = host.wrap(function_tool(), artifact_tool(TEXT, None), writes=("set_limit",))
    message = asks(("set_limit", {"customer_id": "c-1"}), ("look", {"customer_id": "c-1"}))
    state = graph_of(wrapped).invoke({"messages": [message]}, config())
    assert [each.name for each in results_in(state)] == ["set_limit", "look"]


def test_a_config_is_handed_through_and_not_copied():
    """Measured, "run(config=...) holds the whole configurable": the body gets the call's own objects."""
    got, context = {}, turn()

    def body(cfg: RunnableConfig, **arguments: Any) -> str:
        got.update(cfg=cfg, arguments=arguments)
        return TEXT

    original = StructuredTool(name="look", description="Look.", args_schema=SCHEMA, func=body)
    Host().wrap_one(original).invoke({"customer_id": "c-1", "config": "FORGED", "cfg": "FORGED"}, config(context))
    assert got["cfg"]["configurable"]["affiant"] is context
    assert got["arguments"] == {"customer_id": "c-1"}


@pytest.mark.parametrize("way", FEW)
def test_annotations_that_nobody_can_read(way):
    """Measured, LangChain goes without hints that it cannot resolve: so does the copy, and is gated all the same."""

    class Vague(BaseTool):
        name: str = "set_limit"
        description: str = "Propose."
        args_schema: Any = Arguments

        def _run(self, customer_id: Nowhere, limit: int = 3) -> str:  # type: ignore[name-defined]  # noqa: F821  # on purpose
            return proposed(customer_id, limit).to_json_string()

    host = Host()
    result = go(way, [host.wrap_one(Vague(), writes=True)], "set_limit", {"customer_id": "c-1"}, config())
    assert document_of(result)["entryId"] == host.row().entry_id


def test_a_body_that_enters_itself_again():
    """Measured, "its inner hop to _run must pass through": so must a hop of the asynchronous body to itself."""

    class Again(BaseTool):
        name: str = "set_limit"
        description: str = "Propose."
        args_schema: Any = Arguments

        def _run(self, customer_id: str, limit: int = 3) -> str:
            return self._run(customer_id, limit - 1) if limit else proposed(customer_id).to_json_string()

        async def _arun(self, customer_id: str, limit: int = 3) -> str:
            return await self._arun(customer_id, limit - 1) if limit else self._run(customer_id, 2)

    host = Host()
    wrapped = host.wrap_one(Again(), writes=True)
    assert document_of(wrapped.invoke({"customer_id": "c-1"}, config()))["outcome"] == "filed"
    assert document_of(asyncio.run(wrapped.ainvoke({"customer_id": "c-1"}, config())))["outcome"] == "replayed"
