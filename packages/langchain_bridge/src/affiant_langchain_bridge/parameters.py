"""Whose a tool's parameters are: the model's, or those that LangChain, LangGraph or the host injects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, Tool
from langchain_core.utils.pydantic import get_fields

from affiant_core.bridge import BoundFunction

# What LangChain and LangGraph derive their marks from; the second, of ToolRuntime, has no public name.
_INJECTED = {"InjectedToolArg", "_DirectlyInjectedToolArg"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The names of one tool's parameters.

    ``taken`` are the names under which the tool takes arguments from the model, ``None`` where it takes any;
    ``injected`` are not the model's. ``function`` is what a bound tool calls; all its parameters are the model's.
    """

    taken: frozenset[str] | None = None
    injected: frozenset[str] = frozenset()
    function: BoundFunction | None = None

    @classmethod
    def of(cls, tool: BaseTool) -> Parameters:
        """Read a tool's parameters, once, at wiring."""
        functions = (tool._run, tool._arun, getattr(tool, "func", None), getattr(tool, "coroutine", None))
        hints = [hint for function in functions if function is not None for hint in hints_of(function).items()]
        injected = frozenset(name for name, hint in hints if _is_injected(hint))
        schema, taken = tool.args_schema, None
        if isinstance(schema, type):  # without a model nothing is validated, and every name reaches the body
            fields: dict[str, Any] = dict(get_fields(schema))
            shown: Any = tool.tool_call_schema
            injected |= fields.keys() - get_fields(shown).keys()
            own = fields.keys() - injected
            aliases = [getattr(fields[name], "validation_alias", None) or fields[name].alias or name for name in own]
            # Names cannot be listed where an alias is more than a name, or the model lets everything through.
            takes_any = getattr(schema, "model_config", {}).get("extra") == "allow"
            if not takes_any and all(isinstance(alias, str) for alias in aliases):
                taken = frozenset([*own, *aliases])
        return cls(taken, injected)

    def carries(self, name: str) -> bool:
        """Whether an argument of this name is the model's and reaches the body: it belongs to the call's identity."""
        return name not in self.injected and (self.taken is None or name in self.taken)

    def only(self, tool: BaseTool) -> str:
        """The parameter that text is for, under the name by which a model would fill it."""
        if isinstance(tool, Tool) and tool.args_schema is None:
            return "__arg1"  # as LangChain describes such a tool to a model
        unnamed = isinstance(tool.args_schema, dict) and self.function is None
        return "input" if unnamed else next(iter(tool.args), "input")


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, resolved; none when that fails, and LangChain then goes without them too."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # an annotation may hold any expression
        return {}


def _is_injected(hint: Any) -> bool:
    marks = (hint, get_origin(hint), *get_args(hint)[1:])
    kinds = (mark if isinstance(mark, type) else type(mark) for mark in marks)
    return hint is RunnableConfig or any(base.__name__ in _INJECTED for kind in kinds for base in kind.__mro__)
