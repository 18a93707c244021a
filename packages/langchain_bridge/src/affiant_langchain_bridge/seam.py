"""The seam: the pipeline runs inside ``_run`` and ``_arun`` of a copy of a tool, so every way to call it meets it.

A bridged tool is a copy whose class is a subclass made for it: its schema, its injected arguments, its artifacts and
its callbacks stay LangChain's. ``run`` and ``arun`` take the turn from the call's config and the model's arguments as
they were sent; ``_run`` and ``_arun`` put the pipeline around the body, so that every observer sees what the gate made
of a proposal. A context variable links the two halves of one call and carries nothing further; no turn lives in it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, Literal, Self, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from pydantic import BaseModel

from affiant_core import Affiant, ToolEnvelope, ToolError, ToolInvocation, WireupInvalid, WriteProposal
from affiant_core import bridge as shared
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, Driver, run_now
from affiant_core.hiding import count_proposals
from affiant_core.pipeline import Pipeline
from affiant_langchain_bridge.parameters import Parameters, hints_of
from affiant_langchain_bridge.results import only_part, read_own, read_result

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
        self.affiant: Affiant = affiant
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
        config = options.get("config")
        descriptor, turn = shared.admitted(seam.affiant, tool.name, seam.turn_of, config, remedy=_REMEDY)
        self.seam, self.tool, self.parameters = seam, tool, parameters
        self.tool_call_id: str | None = options.get("tool_call_id")
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
                    result = await function.call(driver, deepcopy(self.invocation.arguments), self.invocation.turn)
                else:
                    nested = [name for name, value in kwargs.items() if isinstance(value, dict | list | BaseModel)]
                    own = {name: deepcopy(kwargs[name]) for name in nested if self.parameters.carries(name)}
                    call = functools.partial(original, self.tool, *map(deepcopy, args), **{**kwargs, **own})
                    result = await driver.call(call)
            except shared.ArgumentsRefused as error:
                result = shared.invalid_arguments(self.tool.name, error.places)
            except ToolException as error:
                result = self._handled(error)
            return self._returned(result)

        await self.seam.pipeline.run(self.invocation, body)
        return self._close()

    def _handled(self, error: ToolException) -> object:
        """What the tool's own handler makes of its ``ToolException``; raised again when it has no handler."""
        handler: Any = self.tool.handle_tool_error
        if not handler:
            raise error
        self.invocation.failed = True
        told = error.args[0] if error.args else "Tool execution error"  # as LangChain has it
        content = handler(error) if callable(handler) else handler if isinstance(handler, str) else told
        return (content, None) if self.has_artifact else content

    def _returned(self, result: Any) -> object:
        """Note what the body returned. A proposal among other content is refused: nobody knows what it belongs to."""
        if self.has_artifact and not isinstance(result, ToolEnvelope):
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError("with response_format='content_and_artifact' a tool returns content and artifact.")
            result, self.artifact = result
        self.returned = self.invocation.result = result
        alone = isinstance(result, str | ToolEnvelope)
        if alone and self.artifact is None:
            return result
        part = only_part(result)
        self.invocation.failed |= isinstance(part, ToolMessage) and part.status == "error"
        proposes = isinstance(self.invocation.envelope(), WriteProposal)
        # What lies beside a proposal in the artifact is dropped with it: MCP's adapters put a second copy there.
        if count_proposals(result if proposes else (result, self.artifact)) <= proposes:
            if self.invocation.failed and self.invocation.is_declared_write and isinstance(part, ToolMessage):
                self.returned = self.invocation.result = result = part  # the error, and nothing that came beside it
            return result
        message = "The tool returned a proposal among other content, so nothing was filed. It must return it alone."
        return ToolError(tool_name=self.tool.name, code="wireup-invalid", message=message)

    def _close(self) -> Any:
        """What LangChain gets from ``_run``: the body's own objects if nothing replaced them, else text."""
        self.state = "closed"
        invocation, affiant = self.invocation, self.seam.affiant
        result, kept, envelope = invocation.result, invocation.result is self.returned, invocation.envelope()
        is_native = isinstance(result, ToolOutputMixin) or isinstance(only_part(result), ToolOutputMixin)
        # The data of a host's own function is written here: every framework would write it in a way of its own.
        is_plain = self.parameters.function is not None and not is_native
        written = shared.whole_text if is_plain else shared.model_text
        text = written(invocation, ceiling=affiant.result_ceiling, telemetry=affiant.telemetry)
        # LangChain may write a dictionary as a repr; one that is an envelope is given to it as text.
        is_own = kept and text == invocation.text() and not (envelope and type(result) is dict)
        if text is not None and (is_plain or not is_own):
            result = text
        artifact = self.artifact if kept else None  # else it belonged to what was replaced
        if self.tool_call_id is not None and (isinstance(envelope, ToolError) or (kept and invocation.failed)):
            told: dict[str, Any] = {"content": result, "artifact": artifact, "status": "error"}
            if not is_native or result is text:
                result = ToolMessage(tool_call_id=self.tool_call_id, name=self.tool.name, **told)
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
        call = _take(self)
        if call is None:
            return cls._run(self, *args, **kwargs)  # the thread in which LangChain runs an asynchronous call's body
        return run_now(call.carry(cls._run, *args, **kwargs))

    async def _arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _take(self)
        if call is None:
            return await cls._arun(self, *args, **kwargs)
        return await call.carry(cls._arun, *args, **kwargs)

    members: dict[str, Any] = {
        "run": run,
        "arun": arun,
        "_run": _as(cls._run, _run),
        "_arun": _as(cls._run if cls._arun is BaseTool._arun else cls._arun, _arun),
        "ainvoke": BaseTool.ainvoke,  # some kinds have one that runs the whole call of a synchronous tool in a thread
        "__affiant_seam__": seam,
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
    }
    return cast(type[BaseTool], type(f"Bridged{cls.__name__}", (cls,), members))


def _as(original: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``wrapper`` the signature of ``original``, its hints resolved: LangChain reads them on every call."""
    functools.update_wrapper(wrapper, original)
    signature, hints = inspect.signature(original), hints_of(original)
    if hints or not original.__annotations__:
        wrapper.__annotations__ = hints
        stated = [each.replace(annotation=hints.get(name, each.empty)) for name, each in signature.parameters.items()]
        wrapper.__signature__ = signature.replace(parameters=stated)  # type: ignore[attr-defined]  # functions take it
    return wrapper


def _take(tool: BaseTool) -> _Call | None:
    """The call that this is the body of, or ``None`` further inside. Raises when ``_run`` was called past the seam."""
    call = _CALL.get()
    if call is None or call.tool is not tool or call.state == "closed":
        raise WireupInvalid(f"CV-2: the tool {tool.name!r} was entered past its seam; call it with invoke or ainvoke.")
    if call.state == "inside":
        return None
    call.state = "inside"
    return call


def _is_control_flow(error: BaseException) -> bool:
    """LangGraph's interrupts and bubbling commands, and answers to an interrupt that did not fit it."""
    if getattr(error, "_langgraph_invalid_resume", False) is True:
        return True
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)
