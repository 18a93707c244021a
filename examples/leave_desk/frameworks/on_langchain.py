"""LangChain's own agent loop, with a scripted model or, if there is a key, a real one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from conversation import Said, Script, call_text
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from affiant_core import Affiant, TurnContext
from affiant_langchain_bridge import bind

_KEYS = {"OPENAI_API_KEY": "openai:gpt-4.1-mini", "ANTHROPIC_API_KEY": "anthropic:claude-3-5-haiku-latest"}


class ScriptedModel(BaseChatModel):
    """A chat model that plays its script: each step is a list of tool calls, or words. It needs no key."""

    script: Sequence[Any]
    step: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        """The script knows which tools there are."""
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        line = self.script[self.step]
        self.step += 1
        if isinstance(line, str):
            message = AIMessage(line)
        else:
            calls = [
                {"name": name, "args": arguments, "id": f"call-{self.step}-{number}"}
                for number, (name, arguments) in enumerate(line, 1)
            ]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def choose_model(script: Script) -> BaseChatModel:
    """A real model when its key and its package are there, the scripted one otherwise."""
    for key, name in _KEYS.items():
        if os.environ.get(key):
            try:
                return init_chat_model(os.environ.get("LEAVE_DESK_MODEL", name))
            except ImportError as error:
                print(f"({key} is set, but {error}. Going on with the scripted model.)")
    return ScriptedModel(script=script)


def run(host: Affiant, turn: TurnContext, instructions: str, words: str, script: Script) -> list[Said]:
    """One turn."""
    agent = create_agent(choose_model(script), bind(host), system_prompt=instructions)
    answer = agent.invoke({"messages": [HumanMessage(words)]}, {"configurable": {"affiant": turn}})
    said: list[Said] = []
    for message in answer["messages"][1:]:
        if isinstance(message, ToolMessage):
            said.append(Said("tool", message.text))
        elif isinstance(message, AIMessage):
            said += [Said("call", call_text(call["name"], call["args"])) for call in message.tool_calls]
            said += [Said("agent", message.text)] if message.text else []
    return said
