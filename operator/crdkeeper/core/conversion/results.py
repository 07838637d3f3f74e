"""The result of an expression, as JSON of the type that a schema requires."""

import base64
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import (
    Account,
    BoundList,
    BoundMap,
    Type,
    UnseenData,
    unwrap_optional,
)
from crdkeeper.apiserver.cel.syntax.names import unescape
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.unordered import Unordered
from crdkeeper.apiserver.cel.values.values import MapValue, Uint, Value, elements_of, is_list, read, type_name
from crdkeeper.apiserver.golang.durations import shown as shown_duration
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema
from crdkeeper.core.conversion.values import NOTHING, Unconvertible, kind_of

_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset(("string",)),
    "integer": frozenset(("int", "uint")),
    "number": frozenset(("double", "int", "uint")),
    "boolean": frozenset(("bool",)),
    "array": frozenset(("list",)),
    "object": frozenset(("map", "struct")),
}
_FORMATS: Final = {
    "timestamp": ("date-time", "datetime", "date"),
    "duration": ("duration",),
    "bytes": ("byte",),
}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MIDNIGHT: Final = "T00:00:00Z"
_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def type_problem(result: Type, schema: Schema, *, strict: bool = False) -> str | None:
    """Why no result of a type can be a value of a schema; None if one can, or only run time can tell.

    `strict` also refuses objects with a field that the schema does not have, which fit while it is not set,
    and strings in fields of bytes, which fit if they happen to be base64.
    """
    found = _type_problem(result, schema, strict=strict)
    if found is None:
        return None
    steps, problem = found
    inside = ".".join(step for step in steps if step)
    return ": ".join(part for part in ("in what it gives" if steps else "", inside, problem) if part)


def _type_problem(result: Type, schema: Schema, *, strict: bool) -> tuple[tuple[str, ...], str] | None:
    """The fields that lead to what does not fit, empty names for items and values of maps, and why not."""
    result, _ = unwrap_optional(result)
    kind = result.kind
    if kind in ("dyn", "any", "param", "null", "error"):
        return None
    if schema.get(INT_OR_STRING):
        wanted = frozenset(("int", "uint", "string"))
    else:
        wanted = _KINDS.get(schema.get("type", ""), frozenset())
        if not wanted:
            return None
    form = schema.get("format", "")
    if (kind not in wanted and form not in _FORMATS.get(kind, ())) or (
        strict and kind == "string" and form == "byte"
    ):
        return (), f"gives a value of type {result.text}, but the field is {_shown(schema)}"
    inner = schema.get("items") if kind == "list" else schema.get("additionalProperties")
    if kind in ("list", "map") and isinstance(inner, Mapping):
        found = _type_problem(result.parameters[-1], inner, strict=strict)
        return (("", *found[0]), found[1]) if found else None
    return _field_problem(result, schema) if strict and kind == "struct" else None


def _field_problem(result: Type, schema: Schema) -> tuple[tuple[str, ...], str] | None:
    """The first field of a struct that does not fit."""
    assert result.fields is not None
    for name in result.fields.names():
        field = unescape(name) or name
        type_, inner = result.fields(name), _schema_of(field, schema)
        if inner is None and not _open(schema):
            return (field,), "there is no such field"
        found = _type_problem(type_, inner, strict=True) if type_ is not None and inner is not None else None
        if found is not None:
            return (field, *found[0]), found[1]
    return None


def _schema_of(field: str, schema: Schema) -> Schema | None:
    """The schema of a field or entry, if there is one."""
    values = schema.get("additionalProperties")
    found = (schema.get("properties") or {}).get(field) or (values if isinstance(values, Mapping) else None)
    return found if isinstance(found, Mapping) else None


def _open(schema: Schema) -> bool:
    """Whether objects of a schema may have other fields."""
    return bool(schema.get("additionalProperties") is True or schema.get(PRESERVE) or schema.get(EMBEDDED))


def _shown(schema: Schema) -> str:
    type_ = "an integer or string" if schema.get(INT_OR_STRING) else schema.get("type")
    form = schema.get("format")
    return f"{type_} ({form})" if form else f"{type_}"


_MOST_VALUES: Final = 1_000_000
"""In one result. An expression of a few hundred characters can make a list that contains another one many
times, and so on, at hardly any cost: written out, it would fill the memory.
"""
_COST_OF_VALUE: Final = 10


def plain(value: Value, account: Account | None = None) -> Any:
    """The value as JSON, whose size is charged to the account. Raises NOTHING for the empty optional,
    Unconvertible for what JSON does not have or what is too large, EvaluationError and Indeterminate for a
    part that is one.
    """
    if type(value) is OptionalValue:
        if value is NONE:
            raise NOTHING
        value = value.value
    most = _MOST_VALUES if account is None else min(_MOST_VALUES, account.left // _COST_OF_VALUE)
    left = [most]
    try:
        return _plain(value, left)
    finally:
        if account is not None:
            account.left -= (most - left[0]) * _COST_OF_VALUE


def _plain(value: Value, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise Unconvertible("too many values")
    value = read(value)
    kind = type(value)
    if kind is str or kind is bool or kind is int or value is None:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise Unconvertible("a number that JSON does not have")
        return value
    if kind is Uint:
        return int(value)
    if isinstance(value, BoundMap | BoundList | UnseenData):
        return value.data
    if isinstance(value, MapValue):
        return {_key(key): _plain(value.find(key), left) for key in value.key_list()}
    if is_list(value):
        made = [_plain(each, left) for each in elements_of(value)]
        # Iterating over a map has no defined order: any order that is always the same will do.
        if kind is Unordered:
            made[value.ordered :] = sorted(made[value.ordered :], key=repr)
        return made
    if kind is Timestamp:
        return value.text() if value.written is None else value.written
    if kind is Duration:
        return shown_duration(value.order) if value.written is None else value.written
    if kind is bytes:
        return base64.b64encode(value).decode()
    raise Unconvertible(f"a value of type {type_name(value)} is nothing that JSON has; use string()")


def _key(key: Value) -> str:
    if type(key) is not str:
        raise Unconvertible(f"a key of type {type_name(key)}: keys must be strings")
    return key


def fitted(value: Any, schema: Schema, at: str = "") -> Any:
    """The value, with whole numbers as integers, and times as dates, if the schema requires them.

    Raises Unconvertible for a value of another type, NOTHING for null if the field does not allow null.
    """
    if value is None:
        if not schema.get("nullable") and schema.get("type"):
            if not at:
                raise NOTHING
            raise Unconvertible(f"{at}: null")
        return None
    if schema.get(INT_OR_STRING):
        if type(value) not in (int, str):
            raise Unconvertible(f"{at or 'it'} is {kind_of(value)}, and neither an integer nor a string")
        return value
    wanted = schema.get("type", "")
    if wanted == "integer" and type(value) is float and value.is_integer():
        value = int(value)
    if wanted in _PYTHON and type(value) not in _PYTHON[wanted]:
        raise Unconvertible(f"{at or 'it'} is {kind_of(value)}, and no {wanted}")
    if type(value) is str:
        return _text(value, schema, at)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return [fitted(each, items, f"{at}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, dict) and wanted == "object":
        return _object(value, schema, at)
    return value


def _text(value: str, schema: Schema, at: str) -> str:
    form = schema.get("format")
    if form == "date" and value[10:11] == "T" and _DATE.fullmatch(value[:10]):
        if value[10:] != _MIDNIGHT:
            raise Unconvertible(f"{at or 'it'} has a time of day, and a date has none")
        return value[:10]
    if form in ("date-time", "datetime") and _DATE.fullmatch(value):
        return value + _MIDNIGHT
    return value


def _object(value: dict[str, Any], schema: Schema, at: str) -> dict[str, Any]:
    open_ = _open(schema)
    made = {}
    for name, each in value.items():
        inner = _schema_of(name, schema)
        path = f"{at}.{name}" if at else name
        if inner is not None:
            made[name] = fitted(each, inner, path)
        elif open_:
            made[name] = each
        else:
            raise Unconvertible(f"{path}: there is no such field")
    return made
