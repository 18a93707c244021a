"""A host on Semantic Kernel: kernels, a model that follows a script, and every way in which a function is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import (
    ChatHistory,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
    StreamingChatMessageContent,
    StreamingTextContent,
)
from semantic_kernel.functions import KernelArguments, KernelPlugin, kernel_function
from support.gate import turn
from support.limit_desk import PROPOSAL, SECRET, AsyncLimitDesk, LimitDesk, MemoryHost, found, proposed  # noqa: F401  # the tests import them from here

from affiant_core import (
    TurnContext,
    WriteProposal,
    write_tool,
)
from affiant_core.wire import dumps, loads
from affiant_sk_bridge import TurnArgument, install, invoke


class OwnArguments(LimitDesk):
    """A desk whose proposals name their arguments themselves, as C03 has it."""

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    async def set_limit(self, customer_id: str, limit: int) -> WriteProposal:
        """Propose a new limit, with arguments of its own."""
        await asyncio.sleep(0)
        self.calls.append(("set_limit", {"customer_id": customer_id, "limit": limit}))
        return proposed(customer_id, limit, arguments={"customer": customer_id, "to": limit})


# --- the host ------------------------------------------------------------------------------------------------------


class Host(MemoryHost):
    """The host of these tests, with its framework."""

    def kernel(self, *script: Any, native: dict[str, Callable[..., Any]] | None = None, writes: tuple[str, ...] = (),
               **options: Any) -> Kernel:  # fmt: skip
        """A kernel with the bridge; ``native`` functions are declared and stand in the plugin ``P``."""
        kernel = kernel_of(*script)
        if native:
            kernel.add_plugin(plugin_of(**native))
            self.declare(*native, writes=writes)
        return install(kernel, self.affiant, **options)

    def declare(self, *names: str, writes: tuple[str, ...] = (), plugin: str = "P") -> None:
        for name in names:
            if name in writes:
                self.affiant.declare_write(name, operation="WriteUpdate", entity_type="Customer", plugin=plugin)
            else:
                self.affiant.declare_read(name, plugin=plugin)


def plugin_of(name: str = "P", /, **functions: Callable[..., Any]) -> KernelPlugin:
    """A plugin of native functions, as a host has them."""
    marked = {each: kernel_function(name=each)(_own(function)) for each, function in functions.items()}
    return KernelPlugin.from_object(name, marked)


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of its own, since Semantic Kernel writes a function's name on it."""
    if not isinstance(function, FunctionType):
        return function
    copied = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    wrapped = update_wrapper(copied, function)
    del wrapped.__wrapped__
    return wrapped


def kernel_of(*script: Any) -> Kernel:
    return Kernel(services=[ScriptedChat(*script)])


def host_arguments(context: object = ..., **more: Any) -> KernelArguments:
    """A host's arguments with the turn, which is a good one unless another is given."""
    return KernelArguments(affiant_turn=turn() if context is ... else context, **more)


# --- a model that follows a script ---------------------------------------------------------------------------------


def call(name: str, arguments: Any, call_id: str = "call-1") -> FunctionCallContent:
    """What a model asks for: ``name`` is ``Plugin-function``; the arguments are a map, or text as it stands."""
    text = arguments if isinstance(arguments, str) else dumps(arguments)
    return FunctionCallContent(id=call_id, name=name, arguments=text)


def asks(*calls: tuple[str, Any]) -> list[FunctionCallContent]:
    """A model's message that asks for these calls, with the ids ``call-1``, ``call-2`` and so on."""
    return [call(name, arguments, f"call-{at}") for at, (name, arguments) in enumerate(calls, 1)]


class ScriptedChat(ChatCompletionClientBase):
    """Says what the script says, plain or streamed, and remembers what it was told. After its end it says "done"."""

    SUPPORTS_FUNCTION_CALLING = True
    script: list[Any] = []  # noqa: RUF012  # pydantic copies a field's default
    heard: list[list[Any]] = []  # noqa: RUF012  # as above

    def __init__(self, *script: Any) -> None:
        super().__init__(ai_model_id="scripted", service_id="scripted")
        self.script = list(script)

    def _answer(self, history: ChatHistory) -> Any:
        self.heard.append(list(history.messages))
        return self.script.pop(0) if self.script else "done"

    async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> list[ChatMessageContent]:
        answer = self._answer(chat_history)
        content = {"content": answer} if isinstance(answer, str) else {"items": answer}
        return [ChatMessageContent(role="assistant", **content)]

    async def _inner_get_streaming_chat_message_contents(
        self, chat_history: Any, settings: Any, function_invoke_attempt: int = 0
    ) -> AsyncGenerator[list[StreamingChatMessageContent], Any]:
        answer = self._answer(chat_history)
        items = [StreamingTextContent(choice_index=0, text=answer)] if isinstance(answer, str) else answer
        yield [StreamingChatMessageContent(role="assistant", choice_index=0, items=items)]


def results_in(history: Any) -> list[FunctionResultContent]:
    """The function results of a history, in order."""
    messages = history.messages if isinstance(history, ChatHistory) else history
    return [item for message in messages for item in message.items if isinstance(item, FunctionResultContent)]


def texts_in(history: Any) -> dict[str, str]:
    """What the model was given, by call id; a call that is answered twice fails the test."""
    answered = results_in(history)
    assert len({each.id for each in answered}) == len(answered), "a call was answered twice"
    return {each.id: str(each.result) for each in answered}


async def chat(kernel: Kernel, *, streamed: bool = False, arguments: Any = ..., history: Any = None) -> ChatHistory:
    """One turn of a chat loop; the history that it leaves."""
    history = ChatHistory() if history is None else history
    history.add_user_message("Set the limit to 500")
    service: Any = kernel.get_service("scripted")
    settings = PromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    given = {"kernel": kernel, "arguments": host_arguments() if arguments is ... else arguments}
    if streamed:
        async for _ in service.get_streaming_chat_message_contents(history, settings, **given):
            pass
    else:
        await service.get_chat_message_contents(history, settings, **given)
    return history


# --- every way to call a function ----------------------------------------------------------------------------------


async def _loop(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments, streamed: bool) -> str:
    kernel.get_service("scripted").script[:] = [asks((name, arguments))]  # type: ignore[attr-defined]  # the scripted
    return texts_in(await chat(kernel, streamed=streamed, arguments=host))["call-1"]


async def _plain_loop(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return await _loop(kernel, name, arguments, host, False)


async def _streaming_loop(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return await _loop(kernel, name, arguments, host, True)


def _with_hidden_turn(host: KernelArguments) -> KernelArguments:
    if isinstance(host.get("affiant_turn"), TurnContext):
        host["affiant_turn"] = TurnArgument(host["affiant_turn"])
    return host


async def _agent(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    kernel.get_service("scripted").script[:] = [asks((name, arguments))]  # type: ignore[attr-defined]  # the scripted
    agent = ChatCompletionAgent(kernel=kernel, name="Agent", instructions="Be brief.")
    thread = None
    seen: list[Any] = []
    async for answer in agent.invoke(
        "go", arguments=_with_hidden_turn(host), on_intermediate_message=lambda message: _keep(seen, message)
    ):
        thread = answer.thread
    assert thread is not None
    return texts_in(seen)["call-1"]


async def _keep(seen: list[Any], message: Any) -> None:
    seen.append(message)


async def _streaming_agent(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    kernel.get_service("scripted").script[:] = [asks((name, arguments))]  # type: ignore[attr-defined]  # the scripted
    agent = ChatCompletionAgent(kernel=kernel, name="Agent")
    seen: list[Any] = []
    async for _ in agent.invoke_stream(
        "go", arguments=host, on_intermediate_message=lambda message: _keep(seen, message)
    ):
        pass
    return texts_in(seen)["call-1"]


def _function(kernel: Kernel, name: str) -> Any:
    return kernel.get_function(*name.split("-", 1))


def _given(arguments: dict[str, Any], host: KernelArguments) -> KernelArguments:
    host.update(arguments)
    return host


async def _kernel_invoke(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    plugin, function = name.split("-", 1)
    result = await kernel.invoke(plugin_name=plugin, function_name=function, arguments=_given(arguments, host))
    return str(result.value)  # type: ignore[union-attr]  # nothing was cancelled


async def _fn_invoke(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return str((await _function(kernel, name).invoke(kernel, _given(arguments, host))).value)


async def _fn_call(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return str((await _function(kernel, name)(kernel, _given(arguments, host))).value)


async def _by_hand(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return await invoke(kernel, name, arguments, turn=host["affiant_turn"])


async def _template(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    chat_service: Any = kernel.get_service("scripted")
    host.update({f"v_{each}": value for each, value in arguments.items()})
    spelled = " ".join(f"{each}=$v_{each}" for each in arguments)
    prompt = f"<message role='user'>{{{{{name.replace('-', '.')} {spelled}}}}}</message>"
    await kernel.invoke_prompt(prompt, arguments=host)
    from html import unescape

    return unescape(str(chat_service.heard[-1][-1].content))


async def _in_a_task(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    """From a task of its own, as orchestrations call."""
    function = _function(kernel, name)

    async def inner() -> str:
        return str((await function.invoke(kernel, _given(arguments, host))).value)

    return await asyncio.create_task(inner())


async def _clone(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    return await _plain_loop(kernel.clone(), name, arguments, host)


async def _stream_invoke(kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments) -> str:
    parts = [part async for part in _function(kernel, name).invoke_stream(kernel, _given(arguments, host))]
    (only,) = parts
    return str(only.value)


LOOPS: dict[str, Any] = {
    "chat loop": _plain_loop,
    "streaming chat loop": _streaming_loop,
    "agent": _agent,
    "streaming agent": _streaming_agent,
    "clone": _clone,
}
"""The ways that pass both filters."""

DIRECT: dict[str, Any] = {
    "kernel.invoke": _kernel_invoke,
    "fn.invoke": _fn_invoke,
    "fn(...)": _fn_call,
    "by hand": _by_hand,
    "in a task": _in_a_task,
    "fn.invoke_stream": _stream_invoke,
}
"""The ways that pass the function filter only, and give back a value."""

WAYS: dict[str, Any] = {**LOOPS, **DIRECT, "template": _template}


def go(way: str, kernel: Kernel, name: str, arguments: dict[str, Any], host: KernelArguments | None = None) -> str:
    """Call a function in one of the ways on a new event loop, and give the text that the caller receives."""
    return asyncio.run(WAYS[way](kernel, name, arguments, host_arguments() if host is None else host))


def document_of(text: str) -> Any:
    """What the model receives, by a JSON parser that refuses NaN."""
    return loads(text)
