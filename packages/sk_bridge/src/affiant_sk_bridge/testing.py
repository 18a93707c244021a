"""The harness of this bridge for the conformance kit: ``--affiant-bridge affiant_sk_bridge``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

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
    TextContent,
)
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.functions import KernelArguments, KernelPlugin, kernel_function

from affiant_core import Affiant
from affiant_core import testing as kit
from affiant_core.wire import dumps
from affiant_sk_bridge import TURN_ARGUMENT, install, invoke

__all__ = ["HARNESSES", "SemanticKernelHarness"]

NATIVE = "Native"
"""The plugin of the kit's native functions."""


class ScriptedChat(ChatCompletionClientBase):
    """A chat service that says what the script says, and "done" after its end."""

    SUPPORTS_FUNCTION_CALLING: ClassVar[bool] = True
    script: Any = ()
    said: int = 0

    def _next(self) -> str | list[FunctionCallContent]:
        reply = kit.reply_at(self.script, self.said)
        self.said += 1
        if isinstance(reply, str):
            return reply
        return [FunctionCallContent(id=each.id, name=each.name, arguments=each.text) for each in reply]

    async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> list[ChatMessageContent]:
        reply = self._next()
        items: Any = [TextContent(text=reply)] if isinstance(reply, str) else reply
        return [ChatMessageContent(role=AuthorRole.ASSISTANT, items=items)]

    async def _inner_get_streaming_chat_message_contents(
        self, chat_history: Any, settings: Any, function_invoke_attempt: int = 0
    ) -> AsyncGenerator[list[StreamingChatMessageContent], Any]:
        reply = self._next()
        items: Any = [StreamingTextContent(choice_index=0, text=reply)] if isinstance(reply, str) else reply
        yield [StreamingChatMessageContent(role=AuthorRole.ASSISTANT, choice_index=0, items=items)]


def _results(messages: Sequence[ChatMessageContent]) -> list[tuple[str, str]]:
    """What the functions have answered, by call id."""
    items = (item for message in messages for item in message.items)
    return [(str(item.id), str(item.result)) for item in items if isinstance(item, FunctionResultContent)]


def _shown(message: ChatMessageContent) -> str:
    """All of a message but the functions' own descriptions, where a default may say what a test looks for."""
    return dumps(message.model_dump(mode="json")) + repr(
        [(item.metadata, getattr(item, "result", "")) for item in message.items]
    )


class SemanticKernelBackend(kit.Backend):
    """A kernel with the bridge, its functions called by hand and in chat loops."""

    def __init__(self, kernel: Kernel, affiant: Affiant) -> None:
        self._kernel = kernel
        self._affiant = affiant

    def _named(self, call: kit.ToolCall) -> kit.ToolCall:
        """A call by the name that a model is shown: with the function's plugin."""
        for plugin in self._kernel.plugins.values():
            if call.name in plugin:
                return kit.ToolCall(plugin[call.name].fully_qualified_name, call.arguments, call.id)
        return call

    async def call(self, call: kit.ToolCall, context: object) -> str:
        """Call a function with the manual invoker."""
        turn: Any = context
        return await invoke(self._kernel, self._named(call).name, call.arguments, turn=turn)

    async def play(self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain") -> kit.Transcript:
        """Run a chat loop, plain or streamed."""
        history = ChatHistory()
        return await self._run(self._kernel, script, history, context, mode)

    async def _run(
        self, kernel: Kernel, script: Sequence[kit.Reply], history: ChatHistory, context: object, mode: kit.Mode
    ) -> kit.Transcript:
        named = [each if isinstance(each, str) else [self._named(call) for call in each] for each in script]
        service = ScriptedChat(ai_model_id="scripted", service_id="scripted", script=named)
        settings = PromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
        arguments = KernelArguments()
        if context is not None:
            arguments[TURN_ARGUMENT] = context
        history.add_user_message(kit.QUESTION)
        seen: list[str] = []
        last: list[Any] = []
        if mode == "streamed":
            stream = service.get_streaming_chat_message_contents(history, settings, kernel=kernel, arguments=arguments)
            async for last in stream:
                seen += map(_shown, last)
        else:
            last = await service.get_chat_message_contents(history, settings, kernel=kernel, arguments=arguments)
        pairs = _results(history.messages)
        return kit.Transcript(
            kit.answers(pairs), str(last[0]), service.said, (*seen, history.serialize(), *map(_shown, history.messages))
        )

    async def play_nested(
        self, script: Sequence[kit.Reply], context: object, *, mode: kit.Mode = "plain"
    ) -> kit.Transcript:
        """Run a chat loop whose one function is an agent that has the functions."""
        named = [each if isinstance(each, str) else [self._named(call) for call in each] for each in script]
        inner_service = ScriptedChat(ai_model_id="scripted", service_id="scripted", script=named)
        inner = ChatCompletionAgent(kernel=self._kernel, service=inner_service, name="inner")
        messages: list[ChatMessageContent] = []

        async def keep(message: ChatMessageContent) -> None:
            messages.append(message)

        async def assist(
            question: str, arguments: Annotated[Any, {"include_in_function_choices": False}] = None
        ) -> str:
            """Ask the assistant."""
            given = KernelArguments(**{TURN_ARGUMENT: arguments[TURN_ARGUMENT]})
            texts = [str(each) async for each in inner.invoke(question, arguments=given, on_intermediate_message=keep)]
            return texts[-1]

        assist.__annotations__["question"] = str
        assist.__annotations__["return"] = str
        assist.__annotations__["arguments"] = Annotated[Any, {"include_in_function_choices": False}]
        outer = Kernel(plugins=[KernelPlugin.from_object("Team", {"assist": kernel_function(name="assist")(assist)})])
        if self._affiant.registry.find_exact("assist", "Team") is None:
            self._affiant.declare_read("assist", plugin="Team")
        install(outer, self._affiant)
        asked = [[kit.ToolCall("Team-assist", {"question": "?"}, "outer-1")]]
        transcript = await self._run(outer, asked, ChatHistory(), context, mode)
        return kit.Transcript(
            kit.answers(_results(messages)),
            transcript.final,
            transcript.requests,
            (*transcript.seen, *map(_shown, messages)),
        )


class SemanticKernelHarness(kit.Harness):
    """Semantic Kernel: chat loops of a kernel, and functions called by the manual invoker."""

    name = "semantic-kernel"
    plugin: str | None = NATIVE

    def __init__(self, *, carry_arguments: bool = False) -> None:
        self.carry_arguments: bool = carry_arguments
        asynchronous = kit.never("Semantic Kernel is asynchronous only")
        carries_none = kit.never("parity: the completion stage gets no arguments (DECISIONS 9)")
        self.gaps: Mapping[str, kit.Gap] = {
            kit.Capability.HOSTED_TOOLS: kit.never("a kernel holds no tools that a provider runs"),
            kit.Capability.SYNCHRONOUS: asynchronous,
            kit.Capability.SYNCHRONOUS_AGENT: asynchronous,
            **({} if carry_arguments else {kit.Capability.ARGUMENTS_AT_THE_GATE: carries_none}),
        }

    def wire(self, affiant: Affiant) -> SemanticKernelBackend:
        """Install the bridge on a new kernel."""
        return self.wire_beside(affiant)

    def wire_beside(
        self, affiant: Affiant, *, native: Sequence[Callable[..., Any]] = (), hosted: Sequence[str] = ()
    ) -> SemanticKernelBackend:
        """The same, with a plugin of native functions."""
        if hosted:
            raise kit.Unsupported("a kernel holds no tools that a provider runs")
        kernel = Kernel()
        if native:
            functions = {each.__name__: kernel_function(name=each.__name__)(each) for each in native}
            kernel.add_plugin(KernelPlugin.from_object(NATIVE, functions))
        install(kernel, affiant, carry_arguments=self.carry_arguments)
        return SemanticKernelBackend(kernel, affiant)

    def __repr__(self) -> str:
        return f"{self.name} with arguments" if self.carry_arguments else self.name


HARNESSES: tuple[kit.Harness, ...] = (SemanticKernelHarness(), SemanticKernelHarness(carry_arguments=True))
"""What ``--affiant-bridge affiant_sk_bridge`` runs."""
