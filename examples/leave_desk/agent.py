"""One turn of one person, on whichever agent framework was chosen."""

from __future__ import annotations

import importlib

from conversation import Said, Script
from host import TENANT

from affiant_core import Affiant, Member, Turn, TurnContext

SYSTEM_PROMPT = (
    "You are a leave desk. Look people up before you propose anything. Your write tools only file proposals: "
    "tell the person what was filed and that somebody else decides."
)
FRAMEWORKS = {"langchain": "LangChain", "sk": "Semantic Kernel", "agents": "the OpenAI Agents SDK"}


def say(framework: str, host: Affiant, who: str, words: str, conversation: str, script: Script) -> list[Said]:
    """Run the agent to the end of its turn, and return what was said."""
    turn = TurnContext(
        tenant_id=TENANT,
        principal=Member(who),  # the host has verified this; no payload can change it
        channel="chat",
        conversation_id=conversation,
        turn=Turn(utterance=words, message_id=f"{conversation}-{len(words)}"),
    )
    loop = importlib.import_module(f"frameworks.on_{framework}")  # only the chosen framework has to be installed
    said: list[Said] = loop.run(host, turn, SYSTEM_PROMPT, words, script)
    return [Said("person", words), *said]
