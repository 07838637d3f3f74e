"""Data of a custom resource, with its schema, as values of CEL (UnstructuredToVal of k8s.io/apiserver).

`bind(data, schema)` returns the value of `self` at a node of the schema. What is below is converted when an
expression reads it. A schema is prepared once: binding many objects to the same schema object is cheap.

`whole_converter` is for expressions that the API server does not evaluate: they also read what it cannot.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from crdkeeper.apiserver.cel.run.bound import BoundList, BoundMap, BoundMapList, BoundSet, Convert, UnseenData
from crdkeeper.apiserver.cel.syntax.names import escape
from crdkeeper.apiserver.cel.types.declared import leaves_open
from crdkeeper.apiserver.cel.values.times import (
    SECOND,
    Duration,
    Timestamp,
    days_in,
    days_of,
    parse_duration,
    parse_timestamp,
)
from crdkeeper.apiserver.cel.values.values import MISSING, EvaluationError, Indeterminate, Value
from crdkeeper.apiserver.golang import durations
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    PRESERVE,
    Schema,
)

_CACHED: Final = 4096
_ALPHABETS: Final = str.maketrans("-_", "+/")
NO_BASE64: Final = "a field of bytes is not base64"
"""The error when such a field is read by `whole_converter`."""
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_LOCAL_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_WORDS: Final = (
    (1, ("ns", "nano")),
    (10**3, ("us", "\u00b5s", "micro")),
    (10**6, ("ms", "milli")),
    (SECOND, ("s", "sec")),
    (60 * SECOND, ("m", "min")),
    (3600 * SECOND, ("h", "hr", "hour")),
    (86400 * SECOND, ("d", "day")),
    (7 * 86400 * SECOND, ("w", "wk", "week")),
)


def bind(data: Any, schema: Schema, *, root: bool = False) -> Value:
    """The CEL value of data at a node of a structural schema.

    `root` says that the node is the root of a resource, where apiVersion, kind and metadata are always known.
    Data that does not match the schema becomes an EvaluationError or Indeterminate, which an evaluation
    raises when it reads the value.
    """
    return converter(schema, root=root)(data)


_converters: dict[tuple[int, bool], tuple[Schema, Convert]] = {}


def converter(schema: Schema, *, root: bool = False) -> Convert:
    """A function from data at a node to values; made once for a schema object, which must not change then."""
    key = id(schema), root
    cached = _converters.get(key)
    if cached is not None and cached[0] is schema:
        return cached[1]
    made = _nullable(schema, _converter(with_metadata(schema) if root else schema, converter))
    if len(_converters) >= _CACHED:
        _converters.clear()
    _converters[key] = schema, made
    return made


def whole_converter(schema: Schema) -> Convert:
    """Like `converter`, but reads also what a schema leaves open, and bytes in both alphabets of base64.

    The API server reads bytes only in the alphabet of URLs, although Secrets have the other. The function
    prepares what it needs itself, and nothing is kept without it.
    """
    if leaves_open(schema):
        return unchecked_value
    if schema.get("type") == "string" and schema.get("format") == "byte":
        return _nullable(schema, _bytes)
    return _nullable(schema, _converter(schema, whole_converter))


def unchecked_value(data: Any) -> Value:
    """JSON without a schema as a value."""
    if type(data) is dict:
        return BoundMap(data, _any_field, None)
    if type(data) is list:
        return BoundList(data, unchecked_value, MISSING)
    return data


def _any_field(_: str) -> Convert:
    return unchecked_value


def _nullable(schema: Schema, convert: Convert) -> Convert:
    error = None
    if not schema.get("nullable"):
        error = EvaluationError("invalid data, got null for schema with nullable=false")

    def converted(data: Any) -> Value:
        return error if data is None else convert(data)

    return converted


def _converter(schema: Schema, prepare: Callable[[Schema], Convert]) -> Convert:
    """The conversion of data that are not null; `prepare` makes that of what is inside."""
    if schema.get(INT_OR_STRING):
        return _int_or_string
    kind = schema.get("type", "")
    if kind == "object":
        return _object(with_metadata(schema) if schema.get(EMBEDDED) else schema, prepare)
    if kind == "array":
        return _array(schema, prepare)
    if kind == "string":
        return _TEXTS.get(schema.get("format", ""), _text)
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    return UnseenData if schema.get(PRESERVE) else _untyped


def _bad(expected: str, data: Any) -> EvaluationError:
    return EvaluationError(f"invalid data, expected {expected}, got {_go_type(data)}")


def _go_type(data: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(data), "map[string]interface {}")


def _untyped(data: Any) -> Value:
    return Indeterminate("data without a type in the schema")


def _int_or_string(data: Any) -> Value:
    if type(data) is str or type(data) is int:
        return data
    return EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")


def _integer(data: Any) -> Value:
    return data if type(data) is int else _bad("int", data)


def _number(data: Any) -> Value:
    if type(data) is float:
        return data
    return float(data) if type(data) is int else _bad("float", data)


def _boolean(data: Any) -> Value:
    return data if type(data) is bool else _bad("bool", data)


def _text(data: Any) -> Value:
    return data if type(data) is str else _bad("string", data)


def _duration(data: Any) -> Value:
    if type(data) is not str:
        return _bad("string", data)
    parsed = parse_duration(data) or _worded_duration(data)
    return _written(parsed, data)


def _written(value: Value, text: str) -> Value:
    """The duration or time with the text that it was read from."""
    if type(value) is Duration or type(value) is Timestamp:
        value.written = text
    return value


def _worded_duration(text: str) -> Value:
    """A duration such as "3 days" (strfmt.ParseDuration)."""
    total, known = 0, False
    for digits, unit in durations.WORDED.findall(text):
        if len(digits) > 19 or int(digits) > MAX_INT:
            return Indeterminate("a duration that Go cannot read")
        word = unit.lower()
        for factor, names in _WORDS:
            if word in names or word.startswith(names[-1]):
                total, known = total + int(digits) * factor, True
    if not known:
        return EvaluationError(f"Invalid duration {text}: unable to parse {text} as duration")
    return Duration((total - MIN_INT) % 2**64 + MIN_INT)


def _date(data: Any) -> Value:
    if type(data) is not str:
        return _bad("string", data)
    found = _DATE.fullmatch(data)
    year, month, day = map(int, found.groups()) if found else (0, 0, 0)
    if not 1 <= month <= 12 or not 1 <= day <= days_in(year, month):
        return Indeterminate("a date that is none")
    return _written(Timestamp(days_of(year, month, day) * 86400 * SECOND), data)


def _date_time(data: Any) -> Value:
    if type(data) is not str:
        return _bad("string", data)
    if not data:
        return Timestamp(0)
    parsed = parse_timestamp(data)
    if parsed is None and _LOCAL_TIME.fullmatch(data):
        parsed = parse_timestamp(f"{data}Z")
    return Indeterminate("a date-time that Go cannot read") if parsed is None else _written(parsed, data)


def _byte(data: Any) -> Value:
    if type(data) is not str:
        return _bad("string", data)
    for at, each in enumerate(data):
        if each in "+/":
            return EvaluationError(
                f"Invalid byte formatted string {data}: illegal base64 data at input byte {at}"
            )
    try:
        return base64.b64decode(data, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return Indeterminate("bytes that are no base64")


def _bytes(data: Any) -> Value:
    if type(data) is not str:
        return _bad("string", data)
    try:
        return base64.b64decode(data.translate(_ALPHABETS), validate=True)
    except ValueError:
        return EvaluationError(NO_BASE64)


_SIMPLE: Final[Mapping[str, Convert]] = {"number": _number, "integer": _integer, "boolean": _boolean}
_TEXTS: Final[Mapping[str, Convert]] = {
    "duration": _duration,
    "date": _date,
    "date-time": _date_time,
    "byte": _byte,
}
_ZEROS: Final[Mapping[Convert, Value]] = {
    _integer: 0,
    _number: 0.0,
    _duration: Duration(0),
}


def _object(schema: Schema, prepare: Callable[[Schema], Convert]) -> Convert:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    shown: Mapping[str, str] | None = None
    of_field: Callable[[str], Convert | None]
    if properties:
        shown = {name: escape(name) or name for name in properties}
        of_field = {name: _Lazy(each, prepare) for name, each in properties.items()}.get
    else:
        of_value = _Lazy(values, prepare) if isinstance(values, Mapping) else None

        def of_field(name: str) -> Convert | None:
            return of_value

    def convert(data: Any) -> Value:
        if type(data) is not dict:
            return EvaluationError("invalid data, expected a map for the provided schema with type=object")
        return BoundMap(data, of_field, shown)

    return convert


class _Lazy:
    """The conversion by a schema, prepared on first use."""

    def __init__(self, schema: Schema, prepare: Callable[[Schema], Convert]) -> None:
        self._schema = schema
        self._prepare = prepare
        self._convert: Convert | None = None

    def __call__(self, data: Any) -> Value:
        if self._convert is None:
            self._convert = self._prepare(self._schema)
        return self._convert(data)


def _array(schema: Schema, prepare: Callable[[Schema], Convert]) -> Convert:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return lambda data: EvaluationError("invalid array type, expected Items with a non-empty Schema")
    of_item = _Lazy(items, prepare)
    list_type = schema.get(LIST_TYPE) or "atomic"
    names = tuple(escape(name) or name for name in schema.get(LIST_MAP_KEYS, ()))
    zero = MISSING if items.get("type") not in ("integer", "number", "string") else _zero(items)
    kind = BoundSet if list_type == "set" else BoundList

    def convert(data: Any) -> Value:
        if type(data) is not list:
            return EvaluationError("invalid data, expected an array for the provided schema with type=array")
        if list_type == "map":
            return BoundMapList(data, of_item, names)
        return kind(data, of_item, zero)

    return convert


def _zero(items: Schema) -> Value:
    return MISSING if items.get(INT_OR_STRING) else _ZEROS.get(_converter(items, converter), MISSING)


def with_metadata(schema: Schema) -> Schema:
    """A schema of a resource with apiVersion, kind and metadata.name and generateName
    (WithTypeAndObjectMeta).
    """
    properties = dict(schema.get("properties") or {})
    text: Schema = {"type": "string"}
    metadata = {"type": "object", "properties": {"name": text, "generateName": text}}
    known = properties.get("metadata", {})
    fields = known.get("properties") or {}
    if (
        all(properties.get(name, {}).get("type") == "string" for name in ("apiVersion", "kind"))
        and known.get("type") == "object"
        and all(fields.get(name, {}).get("type") == "string" for name in ("name", "generateName"))
    ):
        return schema
    properties |= {"apiVersion": text, "kind": text, "metadata": metadata}
    return {**schema, "properties": properties}
