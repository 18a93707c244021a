"""Whose a call's arguments are: the model's, the host's, or those that Semantic Kernel fills in itself."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any

from semantic_kernel.filters import AutoFunctionInvocationContext
from semantic_kernel.functions import KernelArguments, KernelFunction

from affiant_core import TurnContext
from affiant_core.bridge import ArgumentsRefused, carried_arguments, parse_arguments
from affiant_core.values import JSON
from affiant_sk_bridge.functions import BoundKernelFunction

TURN_ARGUMENT = "affiant_turn"
"""The host argument that a call's ``TurnContext`` stands in: ``KernelArguments(affiant_turn=turn)``."""

FILLED_IN = frozenset({"kernel", "service", "execution_settings", "arguments"})
"""Parameters of a native function that Semantic Kernel fills in by their names."""

REMEDY = f"Pass it as a host argument: KernelArguments({TURN_ARGUMENT}=turn)."


class TurnArgument(bytes):
    """A turn in a form that prompt templates let through; they refuse arguments of types that they do not know.

    The bridge puts it in the place of a ``TurnContext`` around prompt functions. An agent renders its instructions past
    every filter, so a host whose agent has some writes ``KernelArguments(affiant_turn=TurnArgument(turn))``.
    """

    turn: TurnContext

    def __new__(cls, turn: TurnContext) -> TurnArgument:
        """Hide ``turn`` in bytes that are empty, so that a template or a log that shows them shows nothing."""
        made = super().__new__(cls)
        made.turn = turn
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> TurnArgument:
        return self


def turn_in(arguments: Mapping[str, object]) -> object:
    """What stands under ``affiant_turn``. It is checked, never repaired; a model can send no such object (CV-2)."""
    found = arguments.get(TURN_ARGUMENT)
    return found.turn if isinstance(found, TurnArgument) else found


def with_hidden_turn(arguments: KernelArguments) -> KernelArguments:
    """The arguments of a prompt function: a template can carry the turn to the functions that it calls."""
    turn = arguments.get(TURN_ARGUMENT)
    if isinstance(turn, TurnContext):
        arguments = copy(arguments)
        arguments[TURN_ARGUMENT] = TurnArgument(turn)
    return arguments


def of_the_model(function: KernelFunction) -> frozenset[str]:
    """The parameters that a model is shown and may fill."""
    filled_in = frozenset[str]() if isinstance(function, BoundKernelFunction) else FILLED_IN
    shown = (each.name for each in function.parameters if each.include_in_function_choices and each.name)
    return frozenset(shown) - filled_in


def sent_by_model(function: KernelFunction, context: AutoFunctionInvocationContext) -> dict[str, JSON]:
    """What the model itself sent with a chat loop's call, read strictly (DECISIONS 8).

    Raises ``ArgumentsRefused``; also for a parameter that the host has hidden, which Semantic Kernel would let it fill.
    """
    sent = None if context.function_call_content is None else context.function_call_content.arguments
    arguments = parse_arguments(sent) if isinstance(sent, str) else carried_arguments(sent or {})
    if hidden := arguments.keys() - of_the_model(function):
        raise ArgumentsRefused("the model sent what is not its to send.", tuple(hidden))
    return arguments


def carried(function: KernelFunction, arguments: Mapping[str, object], hosts: Mapping[str, object]) -> dict[str, JSON]:
    """The model's arguments among all of a call's, with what filters made of them, without any of the host's.

    ``hosts`` are host arguments that have a parameter's name; a native function gets them, and they are not the call's.
    Raises ``ArgumentsRefused`` for NaN and the like.
    """
    is_bound = isinstance(function, BoundKernelFunction)
    own: dict[str, object] = {}
    for name in of_the_model(function):
        if name in arguments and not (name in hosts and hosts[name] is arguments[name]):
            value = arguments[name]
            if is_bound or isinstance(value, str | int | float | list | dict | None):  # else an object of the host's
                own[name] = value
    return carried_arguments(own)


def fresh(function: KernelFunction, arguments: KernelArguments, turn: TurnContext) -> KernelArguments:
    """Arguments for one attempt at the body: what it does to a list reaches neither the history nor a second one."""
    attempt = copy(arguments)
    for name in of_the_model(function) & attempt.keys():
        if isinstance(attempt[name], list | dict):
            attempt[name] = deepcopy(attempt[name])
    attempt[TURN_ARGUMENT] = TurnArgument(turn) if function.is_prompt else turn
    return attempt
