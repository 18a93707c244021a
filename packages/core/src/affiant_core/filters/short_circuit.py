"""Answers that need no tool: a host's deterministic interceptors (REFERENCE 6.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from affiant_core.filters.review import ReviewGateFilter
from affiant_core.pipeline import CallNext, ToolInvocation
from affiant_core.values import JSON


@dataclass(frozen=True, slots=True)
class Interceptor:
    """Supplies a call's result instead of the tool. Both functions get the tool's name and a copy of the arguments."""

    matches: Callable[[str, Mapping[str, JSON]], bool]
    supply: Callable[[str, Mapping[str, JSON]], object | Awaitable[object]]


class DeterministicShortCircuit:
    """Asks each interceptor in order; the first that matches supplies the result and the tool does not run.

    A proposal that is supplied in this way goes to the gate like any other, on every backend. ``review`` is ``None``
    where the review is a stage of its own, which every result meets.
    """

    def __init__(self, interceptors: Sequence[Interceptor], review: ReviewGateFilter | None) -> None:
        self._interceptors = tuple(interceptors)
        self._review = review

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Supply the result, or go on to the tool."""
        for interceptor in self._interceptors:
            arguments = deepcopy(invocation.arguments)
            if interceptor.matches(invocation.tool_name, arguments):
                invocation.result = await invocation.driver.call(interceptor.supply, invocation.tool_name, arguments)
                if self._review is not None:
                    await self._review.review(invocation)
                return
        await call_next()
