"""A model's arguments on their way in: parsed strictly, carried without what is not the model's (DECISIONS 8, 9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any, cast

from pydantic import BaseModel

from affiant_core.envelope import ToolError
from affiant_core.errors import ValueRefused, WireError
from affiant_core.filters.failures import INVALID
from affiant_core.values import JSON, spell
from affiant_core.wire import loads


class ArgumentsRefused(WireError):
    """Raised when what a model sent as arguments is not a JSON object that the tool could take. It quotes no value.

    ``places`` are the parameters that it is about, where that is known.
    """

    def __init__(self, reason: str, places: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.places = places


def parse_arguments(text: str) -> dict[str, JSON]:
    """A model's argument text as a map, strictly. Empty text is an empty map.

    Raises ``ArgumentsRefused`` for malformed JSON, a repeated key, NaN or infinity, anything but an object.
    """
    if isinstance(text, str) and not text.strip():
        return {}
    try:
        document = loads(text)
    except WireError as error:
        raise ArgumentsRefused(str(error)) from None
    if not isinstance(document, dict):
        raise ArgumentsRefused("the arguments are not a JSON object.")
    return document


def carried_arguments(arguments: Mapping[str, object], *, without: Iterable[str] = ()) -> dict[str, JSON]:
    """The model's own arguments, copied, less what the framework or the host put in beside them.

    Raises ``ArgumentsRefused`` for names and values that are not JSON, NaN and infinity among them.
    """
    left_out = frozenset(without)
    carried: dict[str, JSON] = {}
    for name, value in arguments.items():
        if name not in left_out:
            try:
                spell({name: None}, "arguments")  # a name is a key of the row's identity
                carried[name] = spell(value, name)
            except ValueRefused as refused:
                raise ArgumentsRefused(str(refused), (str(name),)) from None
    return carried


def sent_arguments(sent: str | Mapping[str, object], takes: Collection[str] | None) -> dict[str, JSON]:
    """What a model sent, as text or as a map, read strictly. ``takes`` are its to fill; ``None``, where all names are.

    Raises ``ArgumentsRefused``; also for any other name, which could be the host's or change the row's identity.
    """
    read = parse_arguments(sent) if isinstance(sent, str) else carried_arguments(sent)
    if takes is not None and (unknown := tuple(name for name in read if name not in takes)):
        raise ArgumentsRefused("the model sent what is not its to send.", unknown)
    return read


def copied(value: object) -> object:
    """An argument for one attempt at a body: what it does to it reaches neither the history nor a second attempt."""
    return deepcopy(value) if isinstance(value, list | dict | BaseModel) else value


def invalid_arguments(tool_name: str, places: Iterable[str] = ()) -> ToolError:
    """The one answer to arguments that do not fit: ``VALIDATION_FAILED`` with the parameters' names and no values."""
    # An unknown name is the model's own text; only one that could be a parameter's is repeated.
    named = ", ".join(sorted({each for each in places if len(each) <= 64 and each.replace("-", "_").isidentifier()}))
    detail = f" Check: {named}." if named else ""
    return ToolError(
        tool_name=tool_name, code=INVALID.code, message=f"The arguments do not fit the tool's parameters.{detail}"
    )


def argument_fault(error: BaseException | None) -> list[str]:
    """The parameters that a pydantic validation error is about; none for anything else."""
    listing = getattr(error, "errors", None)  # asked for by name: an older schema raises the first pydantic's own error
    faults = cast(list[dict[str, Any]], listing()) if callable(listing) else []
    return [str(fault["loc"][0]) for fault in faults if fault.get("loc")]
