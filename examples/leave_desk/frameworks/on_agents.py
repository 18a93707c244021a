"""The OpenAI Agents SDK's own loop, with a scripted model."""

from __future__ import annotations

import json

from agents import Agent, ItemHelpers, RunConfig, Runner
from agents.items import MessageOutputItem, ToolCallItem, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call
from conversation import Said, Script, call_text
from openai.types.responses import ResponseFunctionToolCall

from affiant_agents_bridge import bind
from affiant_core import Affiant, TurnContext


def run(host: Affiant, turn: TurnContext, instructions: str, words: str, script: Script) -> list[Said]:
    """One turn."""
    steps = [
        [assistant_message(step)]
        if isinstance(step, str)
        else [
            function_call(name, json.dumps(arguments), call_id=f"call-{number}-{at}")
            for at, (name, arguments) in enumerate(step, 1)
        ]
        for number, step in enumerate(script, 1)
    ]
    agent = Agent(name="leave desk", instructions=instructions, tools=bind(host), model=ScriptedModel(steps))
    # No key, and nothing of this run leaves the machine.
    result = Runner.run_sync(agent, words, context=turn, run_config=RunConfig(tracing_disabled=True))
    said: list[Said] = []
    for item in result.new_items:
        match item:
            case ToolCallItem(raw_item=ResponseFunctionToolCall() as call):
                said.append(Said("call", call_text(call.name, json.loads(call.arguments))))
            case ToolCallOutputItem(output=output):
                said.append(Said("tool", str(output)))
            case MessageOutputItem():
                said.append(Said("agent", ItemHelpers.text_message_output(item)))
            case _:
                pass  # nothing else comes of this script
    return said
