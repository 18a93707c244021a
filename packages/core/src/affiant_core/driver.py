"""One implementation, two ways to run it: on an event loop, or in a thread with no loop (DECISIONS 21).

The package's own steps are written once, as coroutines that reach the outside world only through a :class:`Driver`. The
asynchronous driver awaits; the synchronous driver does the same things in place, so that the coroutine never suspends
and :func:`run_now` can carry it through without a loop. An :class:`operation` is a method offered both ways:
``await gate.decide(...)`` and ``gate.decide.sync(...)``.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from affiant_core.errors import SynchronousCallError

P = ParamSpec("P")
T = TypeVar("T")
OwnerT = TypeVar("OwnerT")


class Driver(ABC):
    """How a step reaches host code, stores and tool bodies."""

    @abstractmethod
    async def call(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the host's function here and wait for its answer, whether it is written with ``async`` or without."""

    @abstractmethod
    async def offload(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`call`, but a plain function that may wait for something never holds up an event loop."""

    @abstractmethod
    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry ``work`` through to its end even if the caller is cancelled, then let the cancellation go on."""


class _Asynchronous(Driver):
    async def call(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _settled(function(*args, **kwargs))

    async def offload(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if inspect.iscoroutinefunction(function):
            return await _settled(function(*args, **kwargs))
        from anyio import to_thread

        return await _settled(await to_thread.run_sync(functools.partial(function, *args, **kwargs)))

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        from anyio import CancelScope

        scope = CancelScope(shield=True)
        scope.__enter__()
        try:
            return await (_finish_on_asyncio(work) if _runs_on_asyncio() else work)
        finally:
            scope.__exit__(None, None, None)


def _runs_on_asyncio() -> bool:
    # On another event loop than asyncio's, the shielded scope alone protects the work.
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


class _Synchronous(Driver):
    async def call(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        answer = function(*args, **kwargs)
        return wait_for(answer) if inspect.isawaitable(answer) else cast(T, answer)

    async def offload(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call(function, *args, **kwargs)

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        return await work


async def _settled(answer: T | Awaitable[T]) -> T:
    return await answer if inspect.isawaitable(answer) else cast(T, answer)


ASYNCHRONOUS: Driver = _Asynchronous()
SYNCHRONOUS: Driver = _Synchronous()


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Carry a coroutine through in this thread, without a loop. It must have been given the synchronous driver.

    Raises ``SynchronousCallError`` if it suspends, which only a host's own asynchronous filter can make it do.
    """
    try:
        work.send(None)
    except StopIteration as finished:
        return cast(T, finished.value)
    work.close()
    raise SynchronousCallError(
        "an asynchronous filter suspended inside a synchronous call; run the call with 'await', "
        "or let the filter reach asynchronous code through invocation.driver.call()."
    )


# --- asynchronous host code, called from synchronous code ----------------------------------------------------------

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


# --- operations ----------------------------------------------------------------------------------------------------


class BoundOperation(Generic[P, T]):
    """An operation of one object: call it for a coroutine, or use :meth:`sync` from code without an event loop."""

    def __init__(self, function: Callable[..., Coroutine[Any, Any, T]], owner: object) -> None:
        self.__wrapped__ = function
        self._owner = owner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return self.__wrapped__(self._owner, ASYNCHRONOUS, *args, **kwargs)

    def sync(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry the operation through now, in this thread. Works inside a running event loop too."""
        return run_now(self.__wrapped__(self._owner, SYNCHRONOUS, *args, **kwargs))

    def under(self, driver: Driver, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """The operation as a step of another one, under the driver that is carrying that one out."""
        return self.__wrapped__(self._owner, driver, *args, **kwargs)


class operation(Generic[OwnerT, P, T]):  # used as a decorator, like property
    """A method written once against a driver and offered as ``await owner.name(...)`` and ``owner.name.sync(...)``."""

    def __init__(self, function: Callable[Concatenate[OwnerT, Driver, P], Coroutine[Any, Any, T]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @overload
    def __get__(self, owner: None, kind: type[OwnerT]) -> operation[OwnerT, P, T]: ...

    @overload
    def __get__(self, owner: OwnerT, kind: type[OwnerT] | None = None) -> BoundOperation[P, T]: ...

    def __get__(
        self, owner: OwnerT | None, kind: type[OwnerT] | None = None
    ) -> operation[OwnerT, P, T] | BoundOperation[P, T]:
        if owner is None:
            return self
        return BoundOperation(self._function, owner)
