"""Everybody besides the model: streams, hooks, items, sessions, saved states, spans (C20)."""

from __future__ import annotations

import json

import pytest
from agents import RunConfig, RunHooks, Runner, RunState, SQLiteSession, function_tool
from agents.tracing import TracingProcessor, get_trace_provider, set_trace_processors
from agents.tracing.span_data import FunctionSpanData
from support.gate import turn
from support.openai_agents import (
    LIMIT,
    MODES,
    PROPOSAL,
    QUIET,
    SECRET,
    AsyncLimitDesk,
    Host,
    LimitDesk,
    arun,
    asks,
    document_of,
    model,
    outputs_in,
    run,
)

EVERY = pytest.mark.parametrize("mode", MODES)


def bound(desk):
    return lambda: (host := Host(desk()), list(host.bind().values()))


def wrapped():
    @function_tool
    def set_limit(customer_id: str, limit: int) -> str:
        """Propose."""
        return PROPOSAL

    host = Host()
    return host, host.wrap(set_limit, writes=True)


KINDS = pytest.mark.parametrize(
    "make", [bound(LimitDesk), bound(AsyncLimitDesk), wrapped], ids=["bound", "bound, async", "wrapped"]
)


def shown_by(result):
    """All that the items of a run show, without the agents and the tools that they belong to."""
    return repr([(item.raw_item, getattr(item, "output", None)) for item in result.new_items])


@KINDS
@EVERY
def test_items_and_events_show_the_replacement_once(make, mode):
    """C20, "one tool result per call, not doubled in the stream": and what it shows is the receipt."""
    host, tools = make()
    result = run(host.agent(asks(("set_limit", LIMIT)), tools=tools), mode=mode)
    assert [document_of(each)["entryId"] for each in outputs_in(result)] == [host.row().entry_id]
    assert SECRET not in shown_by(result) + repr(result.raw_responses) + repr(result.to_input_list())
    if mode == "streamed":
        events = [each for each in result.seen if getattr(each, "name", None) == "tool_output"]
        assert [document_of(each.item.output)["entryId"] for each in events] == [host.row().entry_id]
        assert SECRET not in repr([(e.item.raw_item, e.item.output) for e in events])
        assert SECRET not in repr([each.data for each in result.seen if each.type == "raw_response_event"])


class Watch(RunHooks):
    def __init__(self):
        self.told = []

    async def on_tool_start(self, context, agent, tool):
        self.told.append(("start", tool.name))

    async def on_tool_end(self, context, agent, tool, result):
        self.told.append(("end", result))


@KINDS
@EVERY
def test_hooks_see_the_replacement(make, mode):
    """C20, observers: on_tool_end is given the receipt, once, as the same text that the model gets."""
    host, tools = make()
    hooks = Watch()
    result = run(host.agent(asks(("set_limit", LIMIT)), tools=tools), mode=mode, hooks=hooks)
    assert hooks.told == [("start", "set_limit"), ("end", outputs_in(result)[0])]


@KINDS
@EVERY
def test_sessions_keep_the_replacement(make, mode, tmp_path):
    """C20, saved sessions: the database holds the receipt and no sworn value; a second run reads it back."""
    host, tools = make()
    session = SQLiteSession("s", tmp_path / "session.db")
    run(host.agent(asks(("set_limit", LIMIT)), tools=tools), mode=mode, session=session)
    run(host.agent(tools=tools), mode=mode, session=session)
    session.close()
    kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert host.row().entry_id.encode() in kept
    assert SECRET.encode() not in kept


@pytest.mark.anyio
@KINDS
@pytest.mark.parametrize("mode", ["plain", "streamed"])
async def test_a_saved_state_keeps_the_replacement_and_a_resumed_run_goes_on(make, mode):
    """Issue, "plain, streamed and resumed runs": the state's JSON holds the receipt, and resuming files nothing new."""
    host, tools = make()
    host.affiant.declare_read("ask")
    from affiant_agents_bridge import wrap

    ask = function_tool(lambda: "asked", name_override="ask", needs_approval=True)
    tools = [*tools, *wrap([ask], host.affiant)]
    agent = host.agent(asks(("set_limit", LIMIT), ("ask", {})), tools=tools)
    stopped = await arun(agent, mode=mode)
    saved = stopped.to_state().to_string(context_serializer=lambda _: {})
    assert host.row().entry_id in saved
    assert SECRET not in saved
    agent.model = model()
    state = await RunState.from_string(agent, saved)
    (item,) = state.get_interruptions()
    state.approve(item)
    if mode == "plain":
        done = await Runner.run(agent, state, context=turn(), run_config=QUIET)
    else:
        done = Runner.run_streamed(agent, state, context=turn(), run_config=QUIET)
        async for _ in done.stream_events():
            pass
    assert done.final_output == "done"
    assert len(host.rows()) == 1


class Collector(TracingProcessor):
    """Keeps the spans of functions as they would be exported."""

    def __init__(self):
        self.spans = []

    def on_span_end(self, span):
        if isinstance(span.span_data, FunctionSpanData):
            self.spans.append(span.export())

    def on_trace_start(self, trace): ...
    def on_trace_end(self, trace): ...
    def on_span_start(self, span): ...
    def shutdown(self): ...
    def force_flush(self): ...


@pytest.fixture
def collector():
    """The only processor while a test runs, so nothing is exported; afterwards those that were there before."""
    processors = get_trace_provider()._multi_processor
    before = list(processors._processors)
    made = Collector()
    set_trace_processors([made])
    yield made
    set_trace_processors(before)


@KINDS
@EVERY
def test_spans_show_the_replacement(make, mode, collector):
    """C20, spans: one for the call, whose output is the receipt; none without sensitive data."""
    host, tools = make()
    run(host.agent(asks(("set_limit", LIMIT)), tools=tools), mode=mode, run_config=RunConfig())
    (span,) = collector.spans
    assert document_of(span["span_data"]["output"])["entryId"] == host.row().entry_id
    assert SECRET not in json.dumps(collector.spans)
    collector.spans.clear()
    config = RunConfig(trace_include_sensitive_data=False)
    run(host.agent(asks(("set_limit", LIMIT)), tools=tools), mode=mode, run_config=config)
    (span,) = collector.spans
    assert span["span_data"]["output"] is None


def test_the_bridge_leaves_tracing_as_the_host_set_it():
    """Seam 9, "the bridge should leave tracing global state alone": neither processors nor the switch change."""
    provider = get_trace_provider()
    before = (list(provider._multi_processor._processors), provider._disabled)
    run(Host(LimitDesk()).agent(asks(("set_limit", LIMIT))))
    assert (list(provider._multi_processor._processors), provider._disabled) == before


@EVERY
def test_every_way_to_run_gives_one_text(mode):
    """C20, "row, text and events equal in all modes": the same row and the same receipt, whatever the mode."""
    host = Host(LimitDesk())
    (text,) = outputs_in(run(host.agent(asks(("set_limit", LIMIT))), mode=mode))
    assert document_of(text) == {
        "blocked": None,
        "entryId": host.row().entry_id,
        "fields": ["limit", "memo"],
        "note": document_of(text)["note"],
        "outcome": "filed",
        "requiresConfirmation": True,
        "status": "pending",
    }
    assert host.row().entry_id == "d370997b-7148-844c-8de5-7640a52e7bf3"
