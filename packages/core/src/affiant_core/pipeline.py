"""The onion around one tool call (seed, "Where this fits"; REFERENCE 6.1).

A bridge makes a :class:`ToolInvocation` and hands the pipeline the tool's body. Each filter works before and after the
next one. Whatever the filters do, a proposal that the gate has not cleared never comes out.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from affiant_core.context import TurnContext
from affiant_core.driver import ASYNCHRONOUS, Driver, run_now
from affiant_core.envelope import ToolEnvelope, ToolError, WriteProposal, recognise
from affiant_core.errors import RefusalCode, ValueRefused
from affiant_core.hiding import count_proposals
from affiant_core.registry import ToolDescriptor
from affiant_core.values import JSON, spell
from affiant_core.wire import dumps

log: logging.Logger = logging.getLogger(__name__)

CallNext: TypeAlias = Callable[[], Awaitable[None]]
Body: TypeAlias = Callable[[], Awaitable[object]]
ResultReader: TypeAlias = Callable[[object], "ToolEnvelope | str | None"]

VALIDATION_FAILED = "VALIDATION_FAILED"
"""The code for what does not fit: a call's arguments, or a value in a result that JSON has no spelling for."""

_KINDS = ("read", "write", "error")


def read_plain(result: object) -> ToolEnvelope | str | None:
    """What a result says: an envelope, text (nothing at all is empty text), or ``None`` for any other object."""
    if isinstance(result, ToolEnvelope | str):
        return result
    if isinstance(result, dict) and "kind" in result:
        # A framework would write the dictionary as JSON, and a model would read the proposal in it.
        try:
            return dumps(spell(result, "result"))
        except ValueRefused as refused:
            return unwritable(refused) if result["kind"] in _KINDS else None
    return "" if result is None else None


def unwritable(refused: ValueRefused) -> ToolError:
    """The answer to a result with a value that JSON cannot spell: its place, and not the value (DECISIONS 20)."""
    fault = f"The tool produced a value that cannot be written as JSON, at {refused.path}."
    return ToolError(code=VALIDATION_FAILED, message=fault)


@dataclass(slots=True, eq=False)
class ToolInvocation:
    """One call of one tool on its way through the pipeline.

    ``arguments`` are what the seam carried: the model's own map, or an empty one for none. They are the row's identity,
    so a layer reads them and leaves them as they are. ``result`` is whatever the
    body returned, until a filter replaces it. ``tool_executed`` becomes true as soon as the body has returned.
    ``next_is_tool_body`` is false where the next step is a framework's own continuation, which must not run twice.
    ``terminate`` asks the framework to end the turn.
    """

    tool_name: str
    turn: TurnContext
    plugin: str = ""
    descriptor: ToolDescriptor | None = None
    arguments: dict[str, JSON] = field(default_factory=dict)
    driver: Driver = ASYNCHRONOUS
    next_is_tool_body: bool = True
    reader: ResultReader = read_plain
    result: object = None
    tool_executed: bool = False
    terminate: bool = False
    failed: bool = False
    """The framework's own result says that the tool failed, without an envelope."""
    cleared: object = None
    """The result that the gate has let through; any other proposal is held back."""
    _read: tuple[str, ToolEnvelope | None] | None = field(default=None, repr=False)

    @property
    def qualified_name(self) -> str:
        """``Plugin.name``, or just the name."""
        return f"{self.plugin}.{self.tool_name}" if self.plugin else self.tool_name

    @property
    def is_declared_write(self) -> bool:
        """Whether the tool is declared to propose a write."""
        return self.descriptor is not None and self.descriptor.is_write

    def text(self) -> ToolEnvelope | str | None:
        """The result as an envelope or text, ``None`` for an object that is neither."""
        return self.reader(self.result)

    def envelope(self) -> ToolEnvelope | None:
        """The envelope in the result, if it is one. Each text is read once, however many filters ask."""
        content = self.text()
        if isinstance(content, ToolEnvelope):
            return content
        if not content:
            return None
        # Compared by its text: a result that can be changed in place is not what was read before.
        if self._read is None or self._read[0] != content:
            self._read = (content, recognise(content))
        return self._read[1]


class Filter(Protocol):
    """One layer of the onion. Call ``call_next`` to go inwards; leave it out to supply a result instead."""

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Take part in one call: work before, call ``call_next``, work after."""
        ...


class Stage(Enum):
    """Which part of the onion a framework's hook carries.

    Most frameworks have one hook around a call, and it carries the whole. Where a framework has two, the inner one
    carries the invocation and the outer one the completion, and the bridge hands the result from one to the other.
    """

    WHOLE = "whole"
    INVOCATION = "invocation"
    """Everything but the review. A proposal comes out as it is; the bridge shows it to nobody but the completion."""
    COMPLETION = "completion"
    """The review, and the mapping of its failures."""


class Pipeline:
    """Filters in order, the first outermost."""

    def __init__(self, filters: Sequence[Filter], stage: Stage = Stage.WHOLE) -> None:
        self.filters: tuple[Filter, ...] = tuple(filters)
        self.stage: Stage = stage

    async def run(self, invocation: ToolInvocation, body: Body) -> ToolInvocation:
        """Run a call through every filter and the body; the outcome is on the invocation, which is also returned."""
        await self._enter(0, invocation, body)
        if self.stage is not Stage.INVOCATION:
            hold_back_uncleared(invocation)
        return invocation

    def run_now(self, invocation: ToolInvocation, body: Body) -> ToolInvocation:
        """As :meth:`run`, in this thread without a loop. The invocation must carry the synchronous driver.

        Raises ``SynchronousCallError`` when a host's filter or the body suspends.
        """
        return run_now(self.run(invocation, body))

    async def _enter(self, layer: int, invocation: ToolInvocation, body: Body) -> None:
        if layer < len(self.filters):
            await self.filters[layer](invocation, lambda: self._enter(layer + 1, invocation, body))
            return
        result = await body()
        invocation.result = result
        invocation.tool_executed = True


def hold_back_uncleared(invocation: ToolInvocation) -> None:
    """The last line: a proposal leaves only as what the gate made of it (CV-2)."""
    if invocation.cleared is invocation.result or not holds_proposal(invocation):
        return
    log.error("A proposal of %s reached the end of the pipeline without passing the gate", invocation.qualified_name)
    invocation.result = unreviewed(invocation)


def holds_proposal(invocation: ToolInvocation) -> bool:
    """Whether a result is a proposal, or hides one in whatever it is made of."""
    if isinstance(invocation.result, str | ToolEnvelope):
        return isinstance(invocation.envelope(), WriteProposal)
    return count_proposals(invocation.result) > 0


def unreviewed(invocation: ToolInvocation) -> ToolError:
    """What stands in the place of a proposal that the gate has not seen."""
    return ToolError(
        tool_name=invocation.tool_name,
        code=RefusalCode.WIREUP_INVALID.value,
        message="The proposal did not pass the review gate, so nothing was filed. The host must mend its filters.",
    )
