"""One implementation, two ways to run it: on an event loop, or in a thread with no loop (DECISIONS 21).

The package's own steps are written once, as coroutines that reach the outside world only through a :class:`Driver`. The
asynchronous driver awaits; the synchronous driver does the same things in place, so that the coroutine never suspends
and :func:`run_now` can carry it through without a loop. An :class:`operation` is a method offered both ways:
``await gate.decide(...)`` and ``gate.decide.sync(...)``.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
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
    async def store(self, function: Callable[[], T]) -> T:
        """Call a store that may wait for a disk, without holding up an event loop or queueing behind tool bodies."""

    @abstractmethod
    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry ``work`` through to its end even if the caller is cancelled, then let the cancellation go on."""


class _Asynchronous(Driver):
    async def call(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _settled(function(*args, **kwargs))

    async def offload(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if inspect.iscoroutinefunction(function):
            return await _settled(function(*args, **kwargs))
        from anyio import to_thread  # noqa: PLC0415  # imported when it is needed

        return await _settled(await to_thread.run_sync(functools.partial(function, *args, **kwargs)))

    async def store(self, function: Callable[[], T]) -> T:
        from affiant_core.event_loops import in_store_thread  # noqa: PLC0415  # asyncio is imported when it is needed

        return await in_store_thread(function)

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        from affiant_core.event_loops import finish  # noqa: PLC0415  # asyncio is imported when it is needed

        return await finish(work)


class _Synchronous(Driver):
    async def call(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        answer = function(*args, **kwargs)
        if not inspect.isawaitable(answer):
            return answer
        from affiant_core.event_loops import wait_for  # noqa: PLC0415  # asyncio is imported when it is needed

        return cast(T, wait_for(answer))

    async def offload(self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call(function, *args, **kwargs)

    async def store(self, function: Callable[[], T]) -> T:
        return function()

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        return await work


async def _settled(answer: T | Awaitable[T]) -> T:
    return await answer if inspect.isawaitable(answer) else answer


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


# --- operations ----------------------------------------------------------------------------------------------------


class BoundOperation(Generic[P, T]):
    """An operation of one object: call it for a coroutine, or use :meth:`sync` from code without an event loop."""

    def __init__(self, function: Callable[..., Coroutine[Any, Any, T]], owner: object) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self._owner = owner

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__wrapped__)
        return signature.replace(parameters=list(signature.parameters.values())[2:])  # without owner and driver

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """The operation as a coroutine, for an event loop."""
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
        self.__name__: str = function.__name__

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
