"""What the standard tests share: running on a loop, calling a tool, and saying what a backend must be able to do."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import pytest

from affiant_core.errors import WireupInvalid
from affiant_core.testing.harness import Capability, Harness, ToolCall
from affiant_core.testing.world import World, chain_of, turn

TestT = TypeVar("TestT", bound=Callable[..., object])


def needs(*capabilities: Capability) -> Callable[[TestT], TestT]:
    """Say what a backend must be able to do; on one that cannot, the test is expected to fail."""
    return cast(Callable[[TestT], TestT], pytest.mark.affiant_needs(*capabilities))


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test on an event loop of its own, whatever plugins the host's pytest has."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60):  # a call that never ends is a failure, not a hanging run
                await test(*args, **kwargs)

        asyncio.run(whole())

    return run


async def ask(harness: Harness, tools: object, name: str, /, **arguments: object) -> tuple[str, World]:
    """One call of one tool of a fresh host: the text that a model is given, and the host."""
    world = World(tools)
    return await harness.wire(world.affiant).call(ToolCall(name, arguments), turn()), world


def ask_now(harness: Harness, tools: object, name: str, /, **options: Any) -> tuple[str, World]:
    """The same for tests that have no loop. ``options`` are those of the host; there are no arguments."""
    world = World(tools, **options)
    return asyncio.run(harness.wire(world.affiant).call(ToolCall(name), turn())), world


async def refused_by_the_host(work: Awaitable[object]) -> WireupInvalid:
    """Assert that a call raises the host's own fault, bare or inside the framework's exception, and return it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # a framework may wrap it in anything
        await work
    found = [each for each in chain_of(caught.value) if isinstance(each, WireupInvalid)]
    assert found, f"the host was told {caught.value!r}, with no WireupInvalid in it"
    return found[0]
