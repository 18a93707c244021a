"""The seam: the pipeline runs inside ``_run`` and ``_arun`` of a copy of each tool, so every way to call a tool meets it.

A bridged tool is a copy whose class is a subclass made for it: its schema, its injected arguments, its artifacts and its
callbacks stay LangChain's. ``run`` and ``arun`` take the turn from the call's config and the model's arguments as they
were sent; ``_run`` and ``_arun`` put the pipeline around the body, so that every observer sees what the gate made of a
proposal. A context variable links the two frames of one call and carries nothing further; no turn lives in it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from pydantic import BaseModel, ValidationError

from affiant_core import Affiant, ToolDescriptor, ToolEnvelope, ToolError, ToolInvocation, WireupInvalid, WriteProposal
from affiant_core.bridge import ArgumentsRefused, argument_fault, carried_arguments, invalid_arguments, model_text
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, Driver
from affiant_core.envelope import recognise
from affiant_core.pipeline import Pipeline, read_plain

TURN_KEY = "affiant"
"""Where a call's ``TurnContext`` stands: ``config["configurable"]["affiant"]``."""

TurnOf: TypeAlias = Callable[[RunnableConfig | None], object]

_NOT_RETURNED = object()


def turn_from_config(config: RunnableConfig | None) -> object:
    """What stands under ``config["configurable"]["affiant"]``, or ``None``. It is checked, never repaired (CV-2)."""
    return ((config or {}).get("configurable") or {}).get(TURN_KEY)


@dataclass(slots=True, eq=False)
class _Frame:
    """What ``run`` hands to the ``_run`` of the same call."""

    tool: BaseTool
    invocation: ToolInvocation
    tool_call_id: str | None
    state: Literal["open", "inside", "closed"] = "open"
    returned: object = _NOT_RETURNED


_FRAME: ContextVar[_Frame | None] = ContextVar("affiant_langchain_frame", default=None)


class Seam:
    """One host's bridge: makes bridged tools and carries their calls."""

    def __init__(self, affiant: Affiant, turn_of: TurnOf) -> None:
        self._affiant = affiant
        self._turn_of = turn_of
        self._shown: dict[str, frozenset[str] | None] = {}
        self._classes: dict[tuple[type[BaseTool], str | None], type[BaseTool]] = {}
        self._pipeline = affiant.pipeline(_is_control_flow)
        # A tool that handles its own ToolExceptions keeps doing so.
        self._handling_pipeline = affiant.pipeline(
            lambda error: _is_control_flow(error) or isinstance(error, ToolException)
        )

    @staticmethod
    def is_bridged(tool: BaseTool) -> bool:
        """Whether a tool is a bridged copy."""
        return getattr(type(tool), "__affiant_bridged__", False)

    def bridged(self, tool: BaseTool, descriptor: ToolDescriptor | None, turn_parameter: str | None) -> BaseTool:
        """A copy of ``tool`` with the pipeline inside. Its description and schema are the original's."""
        copy = tool.model_copy()
        self._shown[tool.name] = _shown_to_model(tool)
        copy.__class__ = self._class_for(type(tool), turn_parameter)
        if self._affiant.terminate_on_review and descriptor is not None and descriptor.is_write:
            copy.return_direct = True  # LangChain ends a turn by tool, not by call
        return copy

    # --- one call --------------------------------------------------------------------------------------------------

    def open(
        self, tool: BaseTool, tool_input: str | dict[str, Any], options: Mapping[str, Any], driver: Driver
    ) -> tuple[_Frame, str | dict[str, Any]]:
        """Admit a call, before anything of the tool runs; also a copy of its input that the body may do with as it likes.

        Raises ``WireupInvalid`` for a missing context or an undeclared tool, ``ArgumentsRefused`` for bad arguments.
        """
        descriptor, turn = self._affiant.admit(tool.name, self._turn_of(options.get("config")))
        own = tool_input if isinstance(tool_input, dict) else {_only_argument(tool): tool_input}
        shown = self._shown.get(tool.name)
        arguments = carried_arguments({name: own[name] for name in own if shown is None or name in shown})
        invocation = ToolInvocation(
            tool_name=tool.name,
            turn=turn,
            descriptor=descriptor,
            arguments=arguments,
            driver=driver,
            reader=functools.partial(_read, has_artifact=tool.response_format == "content_and_artifact"),
        )
        copied = (
            {name: deepcopy(value) if name in arguments else value for name, value in tool_input.items()}
            if isinstance(tool_input, dict)
            else tool_input
        )
        return _Frame(tool, invocation, options.get("tool_call_id")), copied

    def pipeline_for(self, tool: BaseTool) -> Pipeline:
        """The layers around a call of this tool."""
        return self._handling_pipeline if tool.handle_tool_error else self._pipeline

    def close(self, frame: _Frame) -> Any:
        """What the call returns to LangChain: the body's own object if nothing replaced it, else a message in its place."""
        frame.state = "closed"
        invocation = frame.invocation
        text = model_text(invocation, ceiling=self._affiant.result_ceiling, telemetry=self._affiant.telemetry)
        untouched = invocation.result is frame.returned
        if text is None or (untouched and text == invocation.text()):
            return invocation.result
        answer = self.answer(frame.tool, text, frame.tool_call_id, invocation.envelope())
        if frame.tool.response_format != "content_and_artifact":
            return answer
        return answer, invocation.result[1] if untouched and isinstance(invocation.result, tuple) else None

    def refuse_arguments(self, tool: BaseTool, options: Mapping[str, Any], places: list[str]) -> Any:
        """The result of a call whose arguments do not fit; its body never ran."""
        error = invalid_arguments(tool.name, places)
        return self.answer(tool, error.to_json_string(), options.get("tool_call_id"), error)

    @staticmethod
    def answer(tool: BaseTool, text: str, tool_call_id: str | None, envelope: ToolEnvelope | None) -> ToolMessage | str:
        """Text for a bare call, a tool message where there is a call to answer; an error says so in its status."""
        if tool_call_id is None:
            return text
        status: Literal["error", "success"] = "error" if isinstance(envelope, ToolError) else "success"
        return ToolMessage(text, tool_call_id=tool_call_id, name=tool.name, status=status)

    def failed_outside(self, frame: _Frame, error: Exception, options: Mapping[str, Any]) -> Any:
        """An exception from LangChain itself: arguments that do not validate are answered, everything else is raised."""
        if frame.state == "open" and isinstance(error, ValidationError) and not _is_control_flow(error):
            return self.refuse_arguments(frame.tool, options, argument_fault(error))
        raise error

    # --- the class -------------------------------------------------------------------------------------------------

    def _class_for(self, cls: type[BaseTool], turn_parameter: str | None) -> type[BaseTool]:
        key = (cls, turn_parameter)
        if key not in self._classes:
            self._classes[key] = self._make_class(cls, turn_parameter)
        return self._classes[key]

    def _make_class(self, cls: type[BaseTool], turn_parameter: str | None) -> type[BaseTool]:
        seam = self

        def run(self: BaseTool, tool_input: str | dict[str, Any], *args: Any, **options: Any) -> Any:
            if isinstance(self, StructuredTool | Tool) and self.func is None:
                raise NotImplementedError(f"the tool {self.name!r} is asynchronous; call it with ainvoke.")
            try:
                frame, copied = seam.open(self, tool_input, options, SYNCHRONOUS)
            except ArgumentsRefused:
                return seam.refuse_arguments(self, options, [])
            token = _FRAME.set(frame)
            try:
                return cls.run(self, copied, *args, **options)
            except Exception as error:  # sorted there: raised again unless the arguments did not validate
                return seam.failed_outside(frame, error, options)
            finally:
                _FRAME.reset(token)

        async def arun(self: BaseTool, tool_input: str | dict[str, Any], *args: Any, **options: Any) -> Any:
            try:
                frame, copied = seam.open(self, tool_input, options, ASYNCHRONOUS)
            except ArgumentsRefused:
                return seam.refuse_arguments(self, options, [])
            token = _FRAME.set(frame)
            try:
                return await cls.arun(self, copied, *args, **options)
            except Exception as error:  # sorted there: raised again unless the arguments did not validate
                return seam.failed_outside(frame, error, options)
            finally:
                _FRAME.reset(token)

        @functools.wraps(cls._run)
        def _run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
            frame = _take(self)
            if frame is None:
                return cls._run(self, *args, **kwargs)  # the thread in which LangChain runs an asynchronous call's body

            async def body() -> object:
                return _returned(frame, cls._run(self, *args, **_with_turn(kwargs, frame, turn_parameter)))

            seam.pipeline_for(self).run_now(frame.invocation, body)
            return seam.close(frame)

        @functools.wraps(cls._run if cls._arun is BaseTool._arun else cls._arun)
        async def _arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
            frame = _take(self)
            if frame is None:
                return await cls._arun(self, *args, **kwargs)

            async def body() -> object:
                return _returned(frame, await cls._arun(self, *args, **_with_turn(kwargs, frame, turn_parameter)))

            await seam.pipeline_for(self).run(frame.invocation, body)
            return seam.close(frame)

        async def ainvoke(self: BaseTool, value: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
            # Past the shortcut of StructuredTool and Tool that runs a synchronous tool's whole call in a thread: here the
            # pipeline stays on the loop, and only the body goes to a thread.
            return await BaseTool.ainvoke(self, value, config, **kwargs)

        for wrapper in (_run, _arun):
            # LangChain asks for the signature on every call; stated here, it need not be looked for.
            wrapper.__signature__ = inspect.signature(wrapper)  # type: ignore[attr-defined]  # functions take it
        members: dict[str, Any] = {
            "run": run,
            "arun": arun,
            "_run": _run,
            "_arun": _arun,
            "__affiant_bridged__": True,
            "__module__": cls.__module__,
            "__doc__": cls.__doc__,
        }
        if cls.ainvoke in (StructuredTool.ainvoke, Tool.ainvoke, BaseTool.ainvoke):
            members["ainvoke"] = ainvoke
        return cast(type[BaseTool], type(f"Bridged{cls.__name__}", (cls,), members))


def _take(tool: BaseTool) -> _Frame | None:
    """The open frame of this very call, or ``None`` inside a body that the pipeline is already around.

    Raises ``WireupInvalid`` when there is no frame: somebody called ``_run`` past the seam.
    """
    frame = _FRAME.get()
    if frame is None or frame.tool is not tool or frame.state == "closed":
        raise WireupInvalid(f"CV-2: the tool {tool.name!r} was entered past its seam; call it with invoke or ainvoke.")
    if frame.state == "inside":
        return None
    frame.state = "inside"
    return frame


def _with_turn(kwargs: dict[str, Any], frame: _Frame, turn_parameter: str | None) -> dict[str, Any]:
    return kwargs if turn_parameter is None else {**kwargs, turn_parameter: frame.invocation.turn}


def _returned(frame: _Frame, result: object) -> object:
    """Note what the body returned, and how: a proposal among other content is refused, an error message is a failure."""
    parts = _parts(result[0] if _is_pair(frame.tool, result) else result)
    if len(parts) > 1 and any(isinstance(recognise(part), WriteProposal) for part in parts):
        result = ToolError(
            tool_name=frame.tool.name,
            code="wireup-invalid",
            message="The tool returned a proposal together with other content, so nothing was filed.",
        )
    frame.invocation.failed = isinstance(result, ToolMessage) and result.status == "error"
    frame.returned = result
    return result


def _is_pair(tool: BaseTool, result: object) -> bool:
    return tool.response_format == "content_and_artifact" and isinstance(result, tuple) and len(result) == 2


def _read(result: object, *, has_artifact: bool) -> ToolEnvelope | str | None:
    """What a LangChain result says, if it says one thing."""
    if has_artifact and isinstance(result, tuple) and len(result) == 2:
        result = result[0]
    plain = read_plain(result)
    if plain is not None:
        return plain
    parts = _parts(result)
    return parts[0] if len(parts) == 1 else None


def _parts(result: object) -> list[str]:
    """The texts in a result: of a message, a list of content blocks, a command's messages."""
    match result:
        case str():
            return [result]
        case ToolMessage(content=content):
            return _parts(content)
        case {"type": "text", "text": str(text)}:
            return [text]
        case list() | tuple():
            return [text for part in result for text in _parts(part)]
        case _ if hasattr(result, "update") and hasattr(result, "goto"):  # langgraph's Command, without importing it
            update = result.update
            return _parts(update.get("messages", [])) if isinstance(update, dict) else []
        case _:
            return []


def _only_argument(tool: BaseTool) -> str:
    return next(iter(tool.args), "input")


def _shown_to_model(tool: BaseTool) -> frozenset[str] | None:
    """The names under which the model may send arguments, aliases among them; ``None`` where it may send any."""
    if tool.args_schema is None or isinstance(tool.args_schema, dict):
        return None
    schema = tool.tool_call_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        fields = schema.model_fields
        return frozenset(fields) | {field.alias for field in fields.values() if field.alias}
    return frozenset(tool.args)


def _is_control_flow(error: BaseException) -> bool:
    """LangGraph's interrupts and bubbling commands, and answers to an interrupt that did not fit it."""
    if getattr(error, "_langgraph_invalid_resume", False) is True:
        return True
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)
