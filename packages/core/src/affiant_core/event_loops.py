"""The event loops that a call may meet: the caller's own, and the one for asynchronous code called without a loop.

A room of its own so that importing the package does not import asyncio; the driver asks for it when it is needed.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, cast

from anyio import CancelScope, CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

STORE_THREADS = 16
"""How many calls of stores may wait for a disk at once, for each event loop."""


_limiters: RunVar[CapacityLimiter] = RunVar("affiant_store_limiter")


async def in_store_thread(function: Callable[[], T]) -> T:
    """Run a store's call in a worker thread of the stores' own, so that busy tool bodies never hold up a decision."""
    try:
        limiter = _limiters.get()
    except LookupError:
        limiter = CapacityLimiter(STORE_THREADS)
        _limiters.set(limiter)
    return await to_thread.run_sync(function, limiter=limiter)


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Carry ``work`` through to its end even if the caller is cancelled, then let the cancellation go on."""
    scope = CancelScope(shield=True)
    scope.__enter__()
    try:
        # On another event loop than asyncio's, the shielded scope alone protects the work.
        return await (_finish_on_asyncio(work) if _runs_on_asyncio() else work)
    finally:
        scope.__exit__(None, None, None)


def _runs_on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _finish_on_asyncio(work: Coroutine[Any, Any, T]) -> T:
    # A cancel scope does not stop ``Task.cancel()``, which is how asyncio frameworks cancel a turn.
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue  # the first cancellation is re-raised below, once the work is whole
        task.exception()  # it was logged where it was raised; the caller only learns of the cancellation
        raise


_shared_lock = threading.Lock()
_shared: tuple[asyncio.AbstractEventLoop, int] | None = None
_abandoned: list[object] = []
_nested: ContextVar[bool] = ContextVar("affiant_nested", default=False)


def wait_for(answer: Awaitable[T]) -> T:
    """Wait for asynchronous host code from synchronous code, with the caller's context variables.

    All such code runs on one event loop in one background thread, so that clients and pools which belong to a loop stay
    usable from call to call. Code that is itself on that loop gets a loop of its own, and so does what that code calls:
    the shared loop stands still until it returns.
    """
    loop, owner = _shared_loop()
    if owner == threading.get_ident() or _nested.get():
        context = copy_context()
        context.run(_nested.set, True)
        with ThreadPoolExecutor(1, "affiant-nested") as pool:
            return pool.submit(context.run, asyncio.run, _as_coroutine(answer)).result()
    try:
        return asyncio.run_coroutine_threadsafe(_as_coroutine(answer), loop).result()
    except FutureCancelled:
        # The futures between threads have a cancellation of their own, which is an ordinary exception.
        raise asyncio.CancelledError from None


async def _as_coroutine(answer: Awaitable[T]) -> T:
    return await answer


def _shared_loop() -> tuple[asyncio.AbstractEventLoop, int]:
    global _shared  # noqa: PLW0603  # one loop for the process, opened when it is first needed
    with _shared_lock:
        if _shared is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(loop,), name="affiant-loop", daemon=True)
            thread.start()
            _shared = (loop, cast(int, thread.ident))
        return _shared


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # What ends a program ends the call that raised it, and not the loop that others wait for.
        with suppress(KeyboardInterrupt, SystemExit):
            loop.run_forever()


def _forget_shared_loop() -> None:
    # The thread does not exist in a forked child. The loop is kept from being closed there: it shares the parent's
    # selector.
    global _shared, _shared_lock  # the counterpart of _shared_loop
    _abandoned.append(_shared)
    _shared, _shared_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_shared_loop)
