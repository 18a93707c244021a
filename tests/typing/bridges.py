"""A host's code on each framework must type-check: mypy reads this file, and nothing runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_type

from agents import Agent, FunctionTool, Runner, Tool
from langchain_core.tools import BaseTool
from semantic_kernel import Kernel
from semantic_kernel.functions import KernelArguments

import affiant_agents_bridge
import affiant_langchain_bridge
import affiant_sk_bridge
from affiant_core import Affiant, CoverageCategory, TurnContext
from affiant_core.pipeline import Stage
from affiant_core.testing import Backend, Capability, Harness, ToolCall, Transcript, never, only
from affiant_core.testing.bridge_suite import BridgeSuite
from affiant_core.testing.store_suite import StoreSuite
from affiant_langchain_bridge.guard import GuardMiddleware


def on_langchain(host: Affiant, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """Bind, wrap, guard."""
    assert_type(GuardMiddleware(host).affiant, Affiant)
    return [*affiant_langchain_bridge.bind(host), *affiant_langchain_bridge.wrap(tools, host)]


async def on_openai_agents(host: Affiant, turn: TurnContext, tools: Sequence[FunctionTool]) -> str:
    """Bind, wrap, audit, run."""
    wired = [*affiant_agents_bridge.bind(host), *affiant_agents_bridge.wrap(tools, host)]
    assert_type(wired, list[Tool])
    plain: Agent[TurnContext] = Agent(name="plain", tools=wired)
    affiant_agents_bridge.audit(plain, host)
    agent: Agent[TurnContext] = affiant_agents_bridge.AffiantAgent(name="desk", tools=wired, affiant=host)
    agent.tools.append(affiant_agents_bridge.agent_tool(plain, host, "plain", "Ask the other one."))
    result = await Runner.run(agent, "hello", context=turn)
    return str(result.final_output)


async def on_semantic_kernel(host: Affiant, turn: TurnContext) -> str:
    """Install, check, invoke."""
    kernel = affiant_sk_bridge.install(Kernel(), host, carry_arguments=True)
    assert_type(kernel, Kernel)
    affiant_sk_bridge.check(kernel, host)
    await kernel.invoke(plugin_name="Desk", function_name="find", arguments=KernelArguments(affiant_turn=turn))
    return await affiant_sk_bridge.invoke(kernel, "Desk-find", {"name": "q"}, turn=turn)


def stages(host: Affiant) -> None:
    """A pipeline in two stages, and what no seam stands in front of."""
    host.pipeline(stage=Stage.INVOCATION)
    host.check(["find"], hosted={"web_search": CoverageCategory.PROVIDER_EXECUTED})


class MyBackend(Backend):
    """What is called."""

    async def call(self, call: ToolCall, context: object) -> str:
        """Call it."""
        return call.name


class MyHarness(Harness):
    """What is wired."""

    name = "mine"
    gaps = only(Capability.CONTEXT_IS_LOUD, otherwise=never("it is a toy"))

    def wire(self, affiant: Affiant) -> MyBackend:
        """Wire it."""
        return MyBackend()

    def wire_beside(
        self, affiant: Affiant, *, native: Sequence[Callable[..., Any]] = (), hosted: Sequence[str] = ()
    ) -> MyBackend:
        """Wire it with other tools."""
        return MyBackend()


class TestMine(BridgeSuite):
    """The suite on a bridge of the host's own."""

    harnesses = (MyHarness(),)


class TestMyStore(StoreSuite):
    """The suite on a store of the host's own."""

    openers = ()


async def played(backend: Backend, turn: TurnContext) -> Transcript:
    """A turn of the kit's."""
    return await backend.play([[ToolCall("find", {"name": "q"})], "done"], turn, mode="streamed")
