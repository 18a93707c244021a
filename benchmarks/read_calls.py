"""What the pipeline adds to a read call on each framework, beside the framework's own call of the same function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from measure import Comparison, Figure, micro, side_by_side

from affiant_core import Affiant, InMemoryDocketStore, Member, ReadResult, TurnContext

TURN = TurnContext("acme", Member("ana"), conversation_id="c-1")
CALLS = 50
"""How many calls one run of an event loop makes."""


def find(name: str) -> str:
    """Find."""
    return ReadResult(tool_name="find", summary="Found it.", markdown=f"| {name} |").to_json_string()


async def find_later(name: str) -> str:
    """Find."""
    return find(name)


def declared(**where: str) -> Affiant:
    """A host for which ``find`` is declared."""
    affiant = Affiant(docket=InMemoryDocketStore())
    affiant.declare_read("find", **where)  # type: ignore[arg-type]
    return affiant


def figure(what: str, found: Comparison, *, ratio_counts: bool) -> Figure:
    """One line; the ratio is part of the budget on LangChain only."""
    within = found.added <= 60e-6 and (found.ratio <= 1.15 or not ratio_counts)
    budget = "≤ 60 µs, ≤ 1.15×" if ratio_counts else "≤ 60 µs"
    result = f"+{micro(found.added)}, {found.ratio:.2f}×"
    return Figure(what, micro(found.ours), f"bare call {micro(found.theirs)}", result, budget, within)


def awaited(
    runner: asyncio.Runner, ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], rounds: int
) -> Comparison:
    """Time calls on one event loop, many at a time so that entering the loop does not count."""

    def repeatedly(call: Callable[[], Awaitable[object]]) -> Callable[[], object]:
        async def calls() -> None:
            for _ in range(CALLS):
                await call()

        return lambda: runner.run(calls())

    found = side_by_side(repeatedly(ours), repeatedly(theirs), rounds=rounds, calls=4)
    return Comparison(found.ours / CALLS, found.theirs / CALLS, found.ratio)


def on_langchain(rounds: int) -> Iterator[Figure]:
    """A ``@tool``, bare and wrapped, called with ``invoke`` and ``ainvoke``."""
    from langchain_core.tools import StructuredTool

    from affiant_langchain_bridge import wrap

    bare = StructuredTool.from_function(find, coroutine=find_later)
    [bridged] = wrap([bare], declared())
    config = {"configurable": {"affiant": TURN}}
    yield figure(
        "read call, LangChain, invoke",
        side_by_side(
            lambda: bridged.invoke({"name": "q"}, config), lambda: bare.invoke({"name": "q"}, config),
            rounds=rounds, calls=200,
        ),
        ratio_counts=True,
    )  # fmt: skip
    with asyncio.Runner() as runner:
        found = awaited(
            runner,
            lambda: bridged.ainvoke({"name": "q"}, config), lambda: bare.ainvoke({"name": "q"}, config),
            rounds,
        )  # fmt: skip
    yield figure("read call, LangChain, ainvoke", found, ratio_counts=True)


def on_openai_agents(rounds: int) -> Iterator[Figure]:
    """A ``@function_tool``, bare and wrapped, called as the runner calls it."""
    from agents import function_tool
    from agents.tool_context import ToolContext

    from affiant_agents_bridge import wrap

    bare = function_tool(find_later, name_override="find")
    [bridged] = wrap([bare], declared())
    text = '{"name": "q"}'
    context = ToolContext(TURN, tool_name="find", tool_call_id="call-1", tool_arguments=text)
    with asyncio.Runner() as runner:
        found = awaited(
            runner,
            lambda: bridged.on_invoke_tool(context, text), lambda: bare.on_invoke_tool(context, text),
            rounds,
        )  # fmt: skip
    yield figure("read call, OpenAI Agents SDK", found, ratio_counts=False)


def on_semantic_kernel(rounds: int) -> Iterator[Figure]:
    """A kernel function on a bare kernel and on a bridged one, invoked by the host and by the chat loop."""
    from semantic_kernel import Kernel
    from semantic_kernel.contents import ChatHistory, FunctionCallContent
    from semantic_kernel.functions import KernelArguments, KernelFunctionFromMethod, kernel_function

    from affiant_sk_bridge import TURN_ARGUMENT, install

    def kernel() -> Kernel:
        made = Kernel()
        method = kernel_function(name="find")(find_later)
        made.add_function("desk", KernelFunctionFromMethod(method=method, plugin_name="desk"))
        return made

    bare, bridged = kernel(), kernel()
    install(bridged, declared(plugin="desk"))
    call = FunctionCallContent(id="call-1", plugin_name="desk", function_name="find", arguments='{"name": "q"}')

    def invoked(made: Kernel) -> Callable[[], Awaitable[object]]:
        function = made.get_function("desk", "find")
        return lambda: function.invoke(made, KernelArguments(name="q", **{TURN_ARGUMENT: TURN}))

    def called(made: Kernel) -> Callable[[], Awaitable[object]]:
        return lambda: made.invoke_function_call(
            call, ChatHistory(), arguments=KernelArguments(**{TURN_ARGUMENT: TURN}), function_call_count=1
        )

    for what, way in (("invoke", invoked), ("chat loop", called)):
        with asyncio.Runner() as runner:
            found = awaited(runner, way(bridged), way(bare), rounds)
        yield figure(f"read call, Semantic Kernel, {what}", found, ratio_counts=False)


def read_calls(rounds: int) -> Iterator[Figure]:
    """All of them."""
    yield from on_langchain(rounds)
    yield from on_openai_agents(rounds)
    yield from on_semantic_kernel(rounds)
