"""Semantic Kernel's own auto-invocation loop, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from conversation import Said, Script, call_text
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import ChatHistory, ChatMessageContent, FunctionCallContent, FunctionResultContent
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.functions import KernelArguments

from affiant_core import Affiant, TurnContext
from affiant_sk_bridge import install


class ScriptedChat(ChatCompletionClientBase):
    """A chat service that plays its script: each step is a list of tool calls, or words. It needs no key."""

    SUPPORTS_FUNCTION_CALLING = True
    script: Any
    plugins: dict[str, str]
    step: int = 0

    async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> list[ChatMessageContent]:
        line = self.script[self.step]
        self.step += 1
        if isinstance(line, str):
            return [ChatMessageContent(role=AuthorRole.ASSISTANT, content=line)]
        calls: list[Any] = [
            FunctionCallContent(
                id=f"call-{self.step}-{at}",
                plugin_name=self.plugins[name],
                function_name=name,
                arguments=json.dumps(arguments),
            )
            for at, (name, arguments) in enumerate(line, 1)
        ]
        return [ChatMessageContent(role=AuthorRole.ASSISTANT, items=calls)]


def run(host: Affiant, turn: TurnContext, instructions: str, words: str, script: Script) -> list[Said]:
    """One turn."""
    return asyncio.run(_run(host, turn, instructions, words, script))


async def _run(host: Affiant, turn: TurnContext, instructions: str, words: str, script: Script) -> list[Said]:
    kernel = Kernel()
    # Without arguments two requests of one conversation would be one row, since they differ in nothing else.
    install(kernel, host, carry_arguments=True)
    plugins = {name: key for key, plugin in kernel.plugins.items() for name in plugin.functions}
    chat = ScriptedChat(ai_model_id="scripted", script=script, plugins=plugins)
    history = ChatHistory(system_message=instructions)
    history.add_user_message(words)
    answers = await chat.get_chat_message_contents(
        history,
        PromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto()),
        kernel=kernel,
        arguments=KernelArguments(affiant_turn=turn),
    )
    said: list[Said] = []
    for message in [*history.messages[2:], *answers]:
        for item in message.items:
            if isinstance(item, FunctionCallContent):
                said.append(Said("call", call_text(str(item.function_name), json.loads(str(item.arguments)))))
            elif isinstance(item, FunctionResultContent):
                said.append(Said("tool", str(item.result)))
            elif message.content:
                said.append(Said("agent", message.content))
    return said
