"""Side-by-side timing: two callables in turn, round by round, so that a ratio holds while the machine drifts."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Comparison:
    """Medians in seconds per call, and the median of the ratios of the rounds."""

    ours: float
    theirs: float
    ratio: float

    @property
    def added(self) -> float:
        """What ours costs more, in seconds per call."""
        return self.ours - self.theirs


def side_by_side(ours: Callable[[], object], theirs: Callable[[], object], *, rounds: int, calls: int) -> Comparison:
    """Time ``ours`` against ``theirs``: ``rounds`` rounds of ``calls`` calls each, after one that does not count."""
    ours_times, theirs_times = [], []
    for counted in [False] + [True] * rounds:
        pair = [_seconds(function, calls) for function in (ours, theirs)]
        if counted:
            ours_times.append(pair[0])
            theirs_times.append(pair[1])
    ratios = [left / right for left, right in zip(ours_times, theirs_times, strict=True)]
    return Comparison(statistics.median(ours_times), statistics.median(theirs_times), statistics.median(ratios))


def _seconds(function: Callable[[], object], calls: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(calls):
            function()
        return (perf_counter() - start) / calls
    finally:
        gc.enable()


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    ours: str
    beside: str
    result: str
    budget: str
    met: bool


def micro(seconds: float) -> str:
    """Seconds as microseconds."""
    return f"{seconds * 1e6:,.0f} µs"
