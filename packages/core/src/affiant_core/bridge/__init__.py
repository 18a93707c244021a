"""What every bridge needs and none should write again: arguments, functions, results, wiring (DECISIONS 5, 9, 16)."""

from affiant_core.bridge.arguments import (
    ArgumentsRefused,
    argument_fault,
    carried_arguments,
    invalid_arguments,
    parse_arguments,
)
from affiant_core.bridge.functions import BoundFunction, argument_model, bindable, bound_functions, turn_parameter
from affiant_core.bridge.results import model_text, whole_text
from affiant_core.bridge.wiring import acts_elsewhere, admitted, indistinguishable, require_version

__all__ = [
    "ArgumentsRefused",
    "BoundFunction",
    "acts_elsewhere",
    "admitted",
    "argument_fault",
    "argument_model",
    "bindable",
    "bound_functions",
    "carried_arguments",
    "indistinguishable",
    "invalid_arguments",
    "model_text",
    "parse_arguments",
    "require_version",
    "turn_parameter",
    "whole_text",
]
