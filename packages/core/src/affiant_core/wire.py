"""The one set of JSON conventions, and the only module that touches JSON text (seed, "Serializing"; SR-3).

camelCase property names, no indentation, nulls written, non-ASCII unescaped, instants in UTC with three truncated
fractional digits and ``Z``, enums as the strings their schemas freeze, dictionary keys never renamed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from json.encoder import encode_basestring
from math import isfinite
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from affiant_core.errors import ValueRefused, WireError
from affiant_core.values import (
    JSON,
    MAX_SAFE_INTEGER,
    format_instant,
    has_lone_surrogate,
    parse_instant,
    spell,
    to_instant,
)

PROTOCOL_VERSION = "0.5.0"
"""The ``protocolVersion`` written on every record (RULES, protocolVersion by tag)."""

MAX_JSON_BYTES = 16 * 1024 * 1024
"""The most JSON text that is read as one document, in bytes of UTF-8, unless the caller says otherwise."""

ModelT = TypeVar("ModelT", bound="WireModel")
EnumT = TypeVar("EnumT", bound=StrEnum)


# --- text in, text out ---------------------------------------------------------------------------------------------


def loads(text: str | bytes, *, max_bytes: int = MAX_JSON_BYTES) -> JSON:
    """Read one JSON document strictly.

    Raises ``WireError`` for malformed text, NaN and infinity, a number too large for a double, a repeated key, text
    with a lone surrogate, nesting too deep, and documents of more than ``max_bytes`` bytes. No value is quoted.
    """
    if not isinstance(text, str | bytes):
        raise WireError(f"JSON text is text or bytes, not a {type(text).__name__}.")
    size = len(text)
    if size > max_bytes or (size * 4 > max_bytes and isinstance(text, str) and _utf8_size(text) > max_bytes):
        raise WireError(f"the JSON text is larger than the limit of {max_bytes} bytes.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")  # json.loads would take UTF-16, UTF-32 and lone surrogates as well
        document = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text or has_lone_surrogate(text):
            document = spell_text_only(document)
    except WireError:
        raise
    except ValueRefused as refused:
        raise WireError(str(refused)) from None
    except RecursionError:
        raise WireError("the JSON text is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise WireError(f"malformed JSON at line {error.lineno}, column {error.colno}.") from None
    except ValueError:  # bytes that are not UTF-8
        raise WireError("the text cannot be read as JSON.") from None
    return cast(JSON, document)


def dumps(data: JSON) -> str:
    """Write JSON data on one line. Raises ``WireError`` for data that is not JSON."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"the data is not JSON ({type(error).__name__}).") from None


def quote(text: str) -> str:
    r"""``text`` as a JSON string: only ``"``, ``\`` and U+0000 to U+001F are escaped (SR-1)."""
    return encode_basestring(text)


def _utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise WireError("an object repeats a key.")
    return result


def _refuse_constant(_: str) -> NoReturn:
    raise WireError("NaN and infinity are not JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise WireError("a number is too large for a double.")
    return number


def _whole(text: str) -> int:
    if len(text) > 300:  # the largest double has 309 digits
        _finite(text)
    return int(text)


# Made once: json.loads would make one for each text.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)


def spell_text_only(data: Any) -> Any:
    """Refuse lone surrogates anywhere in parsed JSON; everything else stays as it is."""
    stack: list[Any] = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if has_lone_surrogate(item):
                raise WireError("a text holds a lone surrogate and has no UTF-8 form.")
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return data


# --- models --------------------------------------------------------------------------------------------------------


def is_wire(info: ValidationInfo) -> bool:
    """Whether a validator runs on data read from the wire rather than on arguments given in Python."""
    return info.context is _FROM_WIRE


_FROM_WIRE: Mapping[str, bool] = {"from_wire": True}


class WireModel(BaseModel):
    """Base of every record on the wire: camelCase outside, frozen, closed to unknown members (DECISIONS 4)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        extra="forbid",
        defer_build=True,  # importing the package builds no schema; the first use of a model does
    )

    required_on_wire: ClassVar[frozenset[str]] = frozenset()
    """Members that have a default in Python and must still be present in what is read from the wire."""

    @model_validator(mode="before")
    @classmethod
    def _complete_on_wire(cls, data: Any, info: ValidationInfo) -> Any:
        if cls.required_on_wire and is_wire(info) and isinstance(data, Mapping):
            missing = sorted(cls.required_on_wire - data.keys())
            if missing:
                raise ValueError(f"missing {', '.join(missing)}.")
        return data

    def to_json_string(self) -> str:
        """This record as JSON text on one line, by the one set of conventions (seed, ``ToJsonString``)."""
        return self.model_dump_json()

    def to_json(self) -> dict[str, JSON]:
        """This record as JSON data, keys in camelCase."""
        return self.model_dump(mode="json")


class SparseModel(WireModel):
    """A record some of whose members are left out, rather than written as null, when they have nothing to say."""

    omitted_when_null: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _omit_nulls(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {key: item for key, item in written.items() if item is not None or key not in self.omitted_when_null}

    @model_validator(mode="before")
    @classmethod
    def _absent_not_null(cls, data: Any, info: ValidationInfo) -> Any:
        if is_wire(info) and isinstance(data, Mapping):
            nulls = sorted(name for name in cls.omitted_when_null if name in data and data[name] is None)
            if nulls:
                raise ValueError(f"{', '.join(nulls)} must be absent rather than null.")
        return data


def read(model: type[ModelT], data: JSON | str | bytes) -> ModelT:
    """A ``model`` from JSON text or data, strictly: names in camelCase, nothing coerced, nothing clamped.

    Raises ``WireError`` that names the places that are wrong and quotes no value.
    """
    document = loads(data) if isinstance(data, str | bytes) else data
    try:
        return model.model_validate(document, context=_FROM_WIRE, by_alias=True, by_name=False)
    except ValidationError as error:
        raise WireError(f"not a valid {model.__name__}: {describe_faults(error)}") from None
    except ValueRefused as refused:
        raise WireError(f"not a valid {model.__name__}: {refused}") from None


def describe_faults(error: ValidationError) -> str:
    """A pydantic error as one line of places and faults, without any of the input's values."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'record'}: {_fault_text(fault)}" for fault in faults
    )


def _fault_text(fault: Any) -> str:
    # The few pydantic messages that repeat a value are replaced; the rest speak of types only.
    if fault["type"] in {"enum", "literal_error", "union_tag_invalid"}:
        return "not one of the allowed words"
    return str(fault["msg"]).removeprefix("Value error, ")


# --- member types --------------------------------------------------------------------------------------------------


def _well_formed(text: str) -> str:
    if has_lone_surrogate(text):
        raise ValueError("the text holds a lone surrogate and has no UTF-8 form.")
    return text


def _instant(value: Any, info: ValidationInfo) -> datetime:
    path = info.field_name or "value"
    if isinstance(value, datetime):
        return to_instant(value, path)
    if isinstance(value, str):
        return parse_instant(value, path)
    raise ValueError("an instant is a datetime or RFC 3339 text.")


def _json(value: Any, info: ValidationInfo) -> Any:
    return spell(value, info.field_name or "value")


def _json_object(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object.")
    return spell(value, info.field_name or "value")


def _plain_float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number.")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too large for a double.") from None


def _our_major_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError("not a protocol version such as 0.5.0.")
    if text.partition(".")[0] != PROTOCOL_VERSION.partition(".")[0]:
        raise ValueError("the record is of another major protocol version (SR-4).")
    return text


_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?")


def word_of(enumeration: type[EnumT]) -> Callable[[Any], EnumT]:
    """A validator that takes a member, or exactly its wire spelling."""
    words = {str(member.value): member for member in enumeration}

    def coerce(value: Any) -> EnumT:
        if isinstance(value, enumeration):
            return value
        if isinstance(value, str) and value in words:
            return words[value]
        raise ValueError(f"not one of {', '.join(words)}.")

    return coerce


Text = Annotated[StrictStr, AfterValidator(_well_formed)]
Identifier = Annotated[StrictStr, Field(min_length=1), AfterValidator(_well_formed)]
ProtocolVersion = Annotated[StrictStr, AfterValidator(_our_major_version)]
Flag = StrictBool
Count = Annotated[StrictInt, Field(ge=0, le=MAX_SAFE_INTEGER)]
TurnNumber = Annotated[StrictInt, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
Number = Annotated[float, BeforeValidator(_plain_float)]
Instant = Annotated[datetime, BeforeValidator(_instant), PlainSerializer(format_instant, return_type=str)]
JsonValue = Annotated[Any, BeforeValidator(_json)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object)]
