"""The seam: the pipeline runs inside ``_run`` and ``_arun`` of a copy of a tool, so every way to call it meets it.

A bridged tool is a copy with a class made for it; all but the call stays LangChain's. ``run`` and ``arun`` take the
turn from the config and the arguments as they were sent; ``_run`` and ``_arun`` put the pipeline around the body, so
that every observer sees what the gate made of a proposal. A context variable links the halves; no turn lives in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from langchain_core.utils.pydantic import get_fields

from affiant_core import Affiant, ToolEnvelope, ToolError, ToolInvocation, WireupInvalid
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, Driver, run_now
from affiant_core.pipeline import Pipeline, read_plain

TURN_KEY = "affiant"
"""Where a call's ``TurnContext`` stands: ``config["configurable"]["affiant"]``."""

TurnOf: TypeAlias = Callable[[RunnableConfig | None], object]


def turn_from_config(config: RunnableConfig | None) -> object:
    """What stands under ``config["configurable"]["affiant"]``, or ``None``. It is checked, never repaired (CV-2)."""
    return ((config or {}).get("configurable") or {}).get(TURN_KEY)


class Seam:
    """One host's bridge: where calls find their turn, their gate and their pipeline."""

    def __init__(self, affiant: Affiant, turn_of: TurnOf) -> None:
        shared.require_version("langchain-core", at_least=(1, 0), below=(2,), bridge="affiant-langchain-bridge")
        self.affiant: Affiant = shared.require_affiant(affiant, "affiant_langchain_bridge")
        self.turn_of: TurnOf = turn_of
        self.pipeline: Pipeline = affiant.pipeline(_is_control_flow)

    def bridged(self, tool: BaseTool, parameters: Parameters) -> BaseTool:
        """A copy of ``tool`` with the pipeline inside. Its description and schema are the original's."""
        writes = any(each.name == tool.name and each.is_write for each in self.affiant.registry)
        # LangChain ends a turn by tool, not by call. A tool that ends it of its own accord keeps doing so.
        copy = tool.model_copy(update={"return_direct": True} if writes and self.affiant.terminate_on_review else None)
        copy.__class__ = _bridged_class(type(tool), self, parameters)
        return copy


def is_bridged(tool: object, affiant: Affiant | None = None) -> bool:
    """Whether a tool is bridged already; by this host's ``affiant``, if one is named."""
    seam: Seam | None = getattr(type(tool), "__affiant_seam__", None)
    return seam is not None and (affiant is None or seam.affiant is affiant)


class _Call:
    """One call of a bridged tool, from ``run`` to the end of ``_run``. Making one admits the call, or raises."""

    def __init__(
        self, seam: Seam, tool: BaseTool, parameters: Parameters, sent: Any, options: Mapping[str, Any], driver: Driver
    ) -> None:
        config, self.tool_call_id = options.get("config"), options.get("tool_call_id")
        descriptor, turn = shared.admitted(seam.affiant, tool.name, seam.turn_of, config, remedy=_REMEDY)
        self.seam, self.tool, self.parameters = seam, tool, parameters
        self.has_artifact = tool.response_format == "content_and_artifact"
        self.state: Literal["open", "inside", "closed"] = "open"
        self.returned: object = ...  # until the body has returned
        self.artifact = self.answer = None
        self.refused: Sequence[str] | None = None
        self.invocation = ToolInvocation(tool.name, turn, descriptor=descriptor, driver=driver)
        self.invocation.reader = read_result if parameters.function is None else read_own
        arguments = sent if isinstance(sent, dict) else {parameters.only(tool): sent}
        self.tool_input = sent if parameters.function is None else arguments  # text is read as its type, too
        own = {name: value for name, value in arguments.items() if parameters.carries(name)}
        try:
            self.invocation.arguments = shared.carried_arguments(own)
        except shared.ArgumentsRefused as error:
            self.refused = error.places

    def __enter__(self) -> Self:
        self._token = _CALL.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Turn arguments that LangChain refused into an answer; every other exception goes on."""
        _CALL.reset(self._token)
        # A validation error of either pydantic, or a Tool's complaint of too many arguments.
        at_fault = isinstance(error, ToolException) or type(error).__name__ == "ValidationError"
        if self.state != "open" or not isinstance(error, Exception) or not at_fault or _is_control_flow(error):
            return False
        places = shared.argument_fault(error)
        told = [place for place in places if place not in self.parameters.injected]
        if places and not told:
            return False  # what the host injects is missing or wrong, which no model can mend
        refusal = self._refuse(told)
        self.answer = refusal[0] if self.has_artifact else refusal
        return True

    async def carry(self, original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Carry the call through the pipeline, with ``original`` as the tool's body."""
        if self.refused is not None:
            return self._refuse(self.refused)
        function, driver = self.parameters.function, self.invocation.driver

        async def body() -> object:
            # What a body does to its arguments reaches neither the model's message in the history nor a second attempt.
            try:
                if function is not None:
                    result = await function.call(driver, self.invocation.arguments, self.invocation.turn)
                else:
                    own = {name: shared.copied(kwargs[name]) for name in kwargs if self.parameters.carries(name)}
                    result = await driver.call(partial(original, self.tool, *map(deepcopy, args), **(kwargs | own)))
            except shared.ArgumentsRefused as error:
                result = shared.invalid_arguments(self.tool.name, error.places)
            except ToolException as error:
                result = self._handled(error)
            return self._returned(result)

        await self.seam.pipeline.run(self.invocation, body)
        return self._close()

    def _handled(self, error: ToolException) -> object:
        """What the tool's own handler makes of its ``ToolException``; raised again when it has no handler."""
        if not (handler := self.tool.handle_tool_error):
            raise error
        self.invocation.failed = True
        told = error.args[0] if error.args else "Tool execution error"  # as LangChain has it
        content = handler(error) if callable(handler) else handler if isinstance(handler, str) else told
        return (content, None) if self.has_artifact else content

    def _returned(self, result: Any) -> object:
        """Note what the body returned. A proposal among other content is refused."""
        if self.has_artifact and not isinstance(result, ToolEnvelope):
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError("with response_format='content_and_artifact' a tool returns content and artifact.")
            result, self.artifact = result
        self.returned = self.invocation.result = result
        part = only_part(result)
        self.invocation.failed |= isinstance(part, ToolMessage) and part.status == "error"
        # What lies beside a proposal in the artifact is dropped with it: MCP's adapters put a second copy there.
        if refusal := shared.mixed_proposal(self.invocation, self.artifact):
            return refusal
        if self.invocation.failed and self.invocation.is_declared_write and isinstance(part, ToolMessage):
            self.returned = self.invocation.result = part  # the error, and nothing that came beside it
        return self.returned

    def _close(self) -> Any:
        """What LangChain gets from ``_run``: the body's own objects if nothing replaced them, else text."""
        self.state = "closed"
        invocation, native = self.invocation, is_native(self.invocation.result)
        kept = invocation.result is self.returned
        is_data = self.parameters.function is not None and not native
        result: Any = shared.shown(invocation, self.seam.affiant, is_data=is_data, is_kept=kept)
        artifact = self.artifact if kept else None  # else it belonged to what was replaced
        fails = isinstance(invocation.envelope(), ToolError) or (kept and invocation.failed)
        if fails and self.tool_call_id is not None and not (native and result is invocation.result):
            call_id, name = self.tool_call_id, self.tool.name
            result = ToolMessage(result, tool_call_id=call_id, name=name, artifact=artifact, status="error")
        return (result, artifact) if self.has_artifact else result

    def _refuse(self, places: Sequence[str]) -> Any:
        """The same for a call whose arguments do not fit; its body never ran."""
        self.invocation.result = shared.invalid_arguments(self.tool.name, places)
        return self._close()


_REMEDY = f'Pass it in the config: tool.invoke(..., {{"configurable": {{"{TURN_KEY}": turn}}}}).'
_CALL: ContextVar[_Call | None] = ContextVar("affiant_langchain_call", default=None)


def _bridged_class(cls: type[BaseTool], seam: Seam, parameters: Parameters) -> type[BaseTool]:
    def run(self: BaseTool, tool_input: Any, *args: Any, **options: Any) -> Any:
        if isinstance(self, StructuredTool | Tool) and self.func is None:
            raise NotImplementedError(f"the tool {self.name!r} is asynchronous; call it with ainvoke.")
        with _Call(seam, self, parameters, tool_input, options, SYNCHRONOUS) as call:
            return cls.run(self, call.tool_input, *args, **options)
        return call.answer

    async def arun(self: BaseTool, tool_input: Any, *args: Any, **options: Any) -> Any:
        with _Call(seam, self, parameters, tool_input, options, ASYNCHRONOUS) as call:
            return await cls.arun(self, call.tool_input, *args, **options)
        return call.answer

    def _run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _take(self)  # none in the thread in which LangChain runs an asynchronous call's body
        return run_now(call.carry(cls._run, *args, **kwargs)) if call else cls._run(self, *args, **kwargs)

    async def _arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _take(self)
        return await (call.carry(cls._arun, *args, **kwargs) if call else cls._arun(self, *args, **kwargs))

    members: dict[str, Any] = {
        "run": run,
        "arun": arun,
        "_run": shared.dressed(_run, cls._run),
        "_arun": shared.dressed(_arun, cls._run if cls._arun is BaseTool._arun else cls._arun),
        "ainvoke": BaseTool.ainvoke,  # some kinds have one that runs the whole call of a synchronous tool in a thread
        "__affiant_seam__": seam,
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
    }
    return cast(type[BaseTool], type(f"Bridged{cls.__name__}", (cls,), members))


def _take(tool: BaseTool) -> _Call | None:
    """The call that this is the body of, or ``None`` further inside. Raises when ``_run`` was called past the seam."""
    call = _CALL.get()
    if call is None or call.tool is not tool or call.state == "closed":
        raise WireupInvalid(f"CV-2: the tool {tool.name!r} was entered past its seam; call it with invoke or ainvoke.")
    is_first, call.state = call.state == "open", "inside"
    return call if is_first else None


def _is_control_flow(error: BaseException) -> bool:
    """LangGraph's interrupts and bubbling commands, and answers to an interrupt that did not fit it."""
    misfits = getattr(error, "_langgraph_invalid_resume", False) is True
    return misfits or any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)


# --- whose a tool's parameters are, and what its results say -------------------------------------------------------

# What LangChain and LangGraph derive their marks from; the second, of ToolRuntime, has no public name.
_INJECTED = {"InjectedToolArg", "_DirectlyInjectedToolArg"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The names of one tool's parameters.

    ``taken`` are the names under which the tool takes arguments from the model, ``None`` where it takes any;
    ``injected`` are not the model's. ``function`` is what a bound tool calls; all its parameters are the model's.
    """

    taken: frozenset[str] | None = None
    injected: frozenset[str] = frozenset()
    function: shared.BoundFunction | None = None

    @classmethod
    def of(cls, tool: BaseTool) -> Parameters:
        """Read a tool's parameters, once, at wiring."""
        functions = (tool._run, tool._arun, getattr(tool, "func", None), getattr(tool, "coroutine", None))
        hints = [hint for function in functions if function is not None for hint in shared.hints_of(function).items()]
        injected = frozenset(name for name, hint in hints if hint is RunnableConfig or shared.bears(hint, _INJECTED))
        schema, taken = tool.args_schema, None
        if isinstance(schema, type):  # without a model nothing is validated, and every name reaches the body
            fields: dict[str, Any] = dict(get_fields(schema))
            shown: Any = tool.tool_call_schema
            injected |= fields.keys() - get_fields(shown).keys()
            own = fields.keys() - injected
            aliases = [getattr(fields[name], "validation_alias", None) or fields[name].alias or name for name in own]
            # Names cannot be listed where an alias is more than a name, or the model lets everything through.
            takes_any = getattr(schema, "model_config", {}).get("extra") == "allow"
            if not takes_any and all(isinstance(alias, str) for alias in aliases):
                taken = frozenset([*own, *aliases])
        return cls(taken, injected)

    def carries(self, name: str) -> bool:
        """Whether an argument of this name is the model's and reaches the body: it belongs to the call's identity."""
        return name not in self.injected and (self.taken is None or name in self.taken)

    def only(self, tool: BaseTool) -> str:
        """The parameter that text is for, under the name by which a model would fill it."""
        if isinstance(tool, Tool) and tool.args_schema is None:
            return "__arg1"  # as LangChain describes such a tool to a model
        unnamed = isinstance(tool.args_schema, dict) and self.function is None
        return "input" if unnamed else next(iter(tool.args), "input")


def read_result(result: object) -> ToolEnvelope | str | None:
    """The text or the envelope that a result consists of; ``None`` when it is something else, or several things."""
    if isinstance(result, str):
        return result
    part = only_part(result)
    match only_part(part.content) if isinstance(part, ToolMessage) else part:
        case {"type": "text", "text": str(text)}:
            return text
        case plain:
            return read_plain(plain)


def read_own(result: object) -> ToolEnvelope | str | None:
    """The same for a host's own function, whose lists and dictionaries are its data and nothing of LangChain's."""
    return read_result(result) if is_native(result) else read_plain(result)


def is_native(result: object) -> bool:
    """Whether LangChain takes a result as it is: a message, a command, or a list of one."""
    return isinstance(result, ToolOutputMixin) or isinstance(only_part(result), ToolOutputMixin)


def only_part(result: Any) -> Any:
    """The message, block or value that a result consists of, out of the lists and the command around it."""
    for _ in range(8):  # deeper than any real result, and an end for a list that holds itself
        if isinstance(result, list | tuple) and len(result) == 1:
            result = result[0]
        elif hasattr(result, "goto") and isinstance(update := getattr(result, "update", None), dict):
            result = update.get("messages")  # langgraph's Command, without importing it
        else:
            break
    return result
