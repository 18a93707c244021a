"""What a bridge shows the conformance kit: how a host of its framework is wired, and how its tools are called.

A harness is small. :meth:`Harness.wire` gives the framework the tools of an ``Affiant``, and :meth:`Backend.call` makes
one call of one tool. Everything else has a default, or is a :class:`Capability` that the harness says it lacks, with
the reason; the kit runs what is lacking all the same, and fails when it is there after all.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeAlias

from affiant_core.affiant import Affiant
from affiant_core.bridge import carried_arguments
from affiant_core.errors import AffiantError
from affiant_core.registry import ToolDescriptor
from affiant_core.wire import dumps

Mode: TypeAlias = Literal["plain", "streamed"]


class Capability(StrEnum):
    """What one backend can do and another cannot. A harness names those that it lacks in :attr:`Harness.gaps`."""

    ARGUMENTS_AT_THE_GATE = "arguments at the gate"
    """The model's arguments reach the review, so they belong to a row's identity (DECISIONS 9)."""
    ARGUMENT_TEXT = "argument text"
    """The seam sees the text of a call's arguments, malformed text too."""
    ARGUMENT_CHECK = "argument check"
    """Arguments that do not fit the parameters reach the seam, which answers them."""
    CONTEXT_IS_LOUD = "context is loud"
    """A call without a usable context raises to the host (DECISIONS 12)."""
    NATIVE_TOOLS = "native tools"
    """The framework's own tools can be wired, declared in the registry."""
    HOSTED_TOOLS = "hosted tools"
    """The framework can offer tools that a provider runs."""
    STREAMING = "streaming"
    """The framework streams a turn."""
    NESTED_AGENTS = "nested agents"
    """An agent can be a tool of another."""
    SYNCHRONOUS = "synchronous"
    """A tool can be called from code without an event loop."""
    SYNCHRONOUS_AGENT = "synchronous agent"
    """A turn can be run from code without an event loop."""
    OBSERVERS = "observers"
    """Somebody besides the model sees results: stream events, spans, saved history."""
    TERMINATION = "termination"
    """A call can end the turn."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a backend lacks something. Made with :func:`notimpl`, :func:`notyet` or :func:`never`."""

    kind: Literal["notimpl", "notyet", "never"]
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("a gap has a reason.")

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def notimpl(reason: str) -> Gap:
    """The bridge could and does not."""
    return Gap("notimpl", reason)


def notyet(reason: str) -> Gap:
    """The framework cannot, so far."""
    return Gap("notyet", reason)


def never(reason: str) -> Gap:
    """It has no meaning on this framework."""
    return Gap("never", reason)


def only(*capabilities: Capability, otherwise: Gap) -> dict[str, Gap]:
    """The gaps of a backend that has these capabilities and lacks all others for one reason."""
    return {each: otherwise for each in Capability if each not in capabilities}


class Unsupported(AffiantError):
    """Raised by a backend for what it cannot do; a harness that raises it names the capability as a gap."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks for. ``arguments`` that are text are the text itself, as a model would send it."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    id: str = "call-1"

    @property
    def text(self) -> str:
        """The arguments as a model would send them; NaN and the like too, which JSON has not and models send."""
        return self.arguments if isinstance(self.arguments, str) else json_of_a_model(self.arguments)


def json_of_a_model(arguments: Mapping[str, object]) -> str:
    """JSON text of arguments, as loosely as a model writes it."""
    try:
        return dumps(carried_arguments(arguments))
    except ValueError:
        return repr(dict(arguments)).replace("'", '"').replace("nan", "NaN").replace("inf", "Infinity")


QUESTION = "Set the limit to 500"
"""What the person says in a turn."""

Reply: TypeAlias = "Sequence[ToolCall] | str"
"""What a scripted model says in one message: tool calls, or text, which ends the turn."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What came of a turn.

    ``results`` are the text that the model was given, by call id; a call answered twice is a fault of the backend and
    raises. ``final`` is the turn's last text. ``requests`` is how often the model was asked. ``seen`` is whatever
    anybody else was shown, as text: stream events, spans, saved history.
    """

    results: Mapping[str, str]
    final: str
    requests: int
    seen: tuple[str, ...] = ()


def reply_at(script: Sequence[Reply], said: int) -> Reply:
    """What a scripted model says when it has spoken so often: "done" after the script's end."""
    return script[said] if said < len(script) else "done"


def answers(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Results by call id. Raises ``AssertionError`` when a call was answered twice (C01, C20)."""
    found: dict[str, str] = {}
    for call_id, text in pairs:
        assert call_id not in found, f"the call {call_id!r} was answered twice"
        found[call_id] = text
    return found


class Backend(ABC):
    """A framework with an ``Affiant``'s tools wired into it."""

    @abstractmethod
    async def call(self, call: ToolCall, context: object) -> str:
        """Make one call outside any agent and give the text that a model would be given.

        ``context`` is what the host passes as the turn's context, whatever it is. What the host is to see, wiring
        faults and cancellation, is raised.
        """

    def call_now(self, call: ToolCall, context: object) -> str:
        """The same from code without an event loop, if the framework has such a way of its own."""
        raise Unsupported("no call without an event loop")

    async def play(self, script: Sequence[Reply], context: object, *, mode: Mode = "plain") -> Transcript:
        """Run one turn of an agent whose model follows ``script`` and says "done" after its end.

        This is the kit's own loop, for what has none: the calls of one message run at once.
        """
        if mode == "streamed":
            raise Unsupported("no streaming")
        pairs: list[tuple[str, str]] = []
        for requests, reply in enumerate(script, 1):
            if isinstance(reply, str):
                return Transcript(answers(pairs), reply, requests)
            texts = await asyncio.gather(*(self.call(each, context) for each in reply))
            pairs += zip((each.id for each in reply), texts, strict=True)
        return Transcript(answers(pairs), "done", len(script) + 1)

    def play_now(self, script: Sequence[Reply], context: object) -> Transcript:
        """The same from code without an event loop."""
        raise Unsupported("no turn without an event loop")

    async def play_nested(self, script: Sequence[Reply], context: object, *, mode: Mode = "plain") -> Transcript:
        """Run a turn of an agent whose one tool is another agent, which has the tools and follows ``script``.

        ``results`` are those of the inner agent's calls.
        """
        raise Unsupported("no agent as a tool")


class Harness(ABC):
    """One backend as the kit sees it. Give an instance to ``--affiant-bridge``, or to a subclass of ``BridgeSuite``.

    ``gaps`` names what the backend lacks: capabilities, or single tests by their names, each with its reason.
    """

    name: ClassVar[str]
    gaps: Mapping[str, Gap] = {}
    plugin: str | None = None
    """The plugin under which this backend's own tools are declared, where the framework has plugins."""

    @abstractmethod
    def wire(self, affiant: Affiant) -> Backend:
        """Offer the tools of ``affiant`` to a new host of the framework, as its bridge does at start-up.

        Raises ``WiringError`` when the bridge refuses.
        """

    def wire_beside(
        self, affiant: Affiant, *, native: Sequence[Callable[..., Any]] = (), hosted: Sequence[str] = ()
    ) -> Backend:
        """The same, with other tools beside the Affiant's.

        ``native`` are functions to make the framework's own tools of, under their own names; the kit declares those
        that are to be declared. ``hosted`` are names of tools that a provider runs.

        Raises ``WiringError`` when the bridge refuses; ``Unsupported`` for tools that the framework does not have.
        """
        raise Unsupported("no tools but the Affiant's own")

    def has(self, capability: Capability) -> bool:
        """Whether the backend has a capability."""
        return capability not in self.gaps

    def declare(self, affiant: Affiant, function: Callable[..., Any], *, writes: bool = False) -> ToolDescriptor:
        """Declare one of this backend's own tools."""
        name = function.__name__
        if writes:
            return affiant.declare_write(name, operation="WriteUpdate", entity_type="Customer", plugin=self.plugin)
        return affiant.declare_read(name, plugin=self.plugin)

    def __repr__(self) -> str:
        return self.name


def description_of(function: Callable[..., Any]) -> str:
    """What a native tool says of itself to a model."""
    return inspect.getdoc(function) or function.__name__
