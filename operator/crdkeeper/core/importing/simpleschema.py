"""Reads SimpleSchema, kro's short notation for schemas: `replicas: integer | default=1 minimum=1`.

Facts about it come from its specification (https://kro.run/api/specifications/simple-schema) and from the
schemas that kro makes of it (pkg/simpleschema).
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.importing.note import NotImportable

MOST_FIELDS: Final = 5_000
"""The most fields of a schema, with those of types wherever they are used: a type can double another one."""
_MOST_DEPTH: Final = 32
_ATOMIC: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "number": {"type": "number"},
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_MAP: Final = re.compile(r"map\[([^\[\]]*)\]")
_KEY: Final = re.compile(r"[\s|]*+([A-Za-z]++)\s*+=\s*+")
_ESCAPE: Final = re.compile(r'\\(["\\])')
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_COLUMN_TYPES: Final = ("boolean", "integer", "number", "string")


@dataclass(frozen=True, slots=True)
class SimpleSchema:
    """What an object in the notation describes."""

    schema: dict[str, Any]
    """In OpenAPI v3, as in a CRD."""
    columns: tuple[dict[str, Any], ...]
    """Those that fields ask for, as in a CRD."""


def read_simple_schema(
    fields: Mapping[str, Any], types: Mapping[str, Any], *, name: str, path: Path, types_path: Path
) -> SimpleSchema:
    """The schema of the field `name` of objects. Raises NotImportable, naming the place in the file."""
    reader = _Reader(types, types_path)
    schema = reader.struct(fields, path, (name,))
    return SimpleSchema(schema, tuple(reader.columns))


class _Reader:
    def __init__(self, types: Mapping[str, Any], types_path: Path) -> None:
        self.columns: list[dict[str, Any]] = []
        self._types = types
        self._types_path = types_path
        self._within: list[str] = []
        """The names of the types that are being read."""
        self._left = MOST_FIELDS
        self._depth = 0

    def struct(self, fields: Mapping[str, Any], path: Path, place: tuple[str, ...] | None) -> dict[str, Any]:
        """The schema of an object; `place` is where columns find it, None if they cannot."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for name, value in fields.items():
            self._left -= 1
            if self._left < 0:
                raise NotImportable(f"more than {MOST_FIELDS:,} fields", path)
            at, inner = path.child(str(name)), None if place is None else (*place, str(name))
            properties[str(name)], must = self._field(value, at, inner)
            if must:
                required.append(str(name))
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        elif any("default" in each for each in properties.values()):
            # Otherwise the defaults of its fields would have no effect where the object is absent.
            schema["default"] = {}
        return schema

    def _field(self, value: Any, path: Path, place: tuple[str, ...] | None) -> tuple[dict[str, Any], bool]:
        """The schema of a field, and whether it is required."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise NotImportable(f"more than {_MOST_DEPTH} levels", path)
        try:
            return self._one(value, path, place)
        finally:
            self._depth -= 1

    def _one(self, value: Any, path: Path, place: tuple[str, ...] | None) -> tuple[dict[str, Any], bool]:
        if isinstance(value, Mapping):
            return self.struct(value, path, place), False
        if not isinstance(value, str):
            raise NotImportable("must be a type, such as integer | default=1, or an object", path)
        text, _, markers = value.partition("|")
        schema, must = self._type(text.strip(), path, place)
        for key, said in _markers(markers, path):
            if key == "required":
                must = _boolean(said, path, key)
            elif key == "printColumn":
                self._column(said, schema, path, place)
            else:
                _apply(schema, key, said, path)
        return schema, must

    def _type(self, text: str, path: Path, place: tuple[str, ...] | None) -> tuple[dict[str, Any], bool]:
        """The schema of a type, and whether fields of it are required."""
        # From the outside in: a text has at most some thousand brackets, but Python's stack is finite.
        outer: list[Callable[[dict[str, Any]], dict[str, Any]]] = []
        while True:
            if len(outer) > _MOST_DEPTH:
                raise NotImportable(f"more than {_MOST_DEPTH} levels", path)
            found = _MAP.match(text)
            if text.startswith("[]"):
                outer.append(_list_of)
                text = text[2:].strip()
            elif found is not None:
                if found[1].strip() != "string":
                    raise NotImportable(
                        f"the keys of a map must be of type string, not {found[1]!r:.60}", path
                    )
                outer.append(_map_of)
                text = text[found.end() :].strip()
            else:
                break
        schema, must = self._named(text, path, None if outer else place)
        for make in reversed(outer):
            schema, must = make(schema), False
        return schema, must

    def _named(self, name: str, path: Path, place: tuple[str, ...] | None) -> tuple[dict[str, Any], bool]:
        if name in _ATOMIC:
            return dict(_ATOMIC[name]), False
        if name not in self._types:
            known = ", ".join((*_ATOMIC, *map(str, self._types)))
            raise NotImportable(f"there is no type {name!r:.60}; known are {known:.300}", path)
        if name in self._within:
            raise NotImportable(f"the type {name} contains itself", path)
        self._within.append(name)
        try:
            return self._field(self._types[name], self._types_path.child(name), place)
        finally:
            self._within.pop()

    def _column(
        self, title: str, schema: Mapping[str, Any], path: Path, place: tuple[str, ...] | None
    ) -> None:
        if place is None or schema.get("type") not in _COLUMN_TYPES:
            raise NotImportable("printColumn is for single values that are not in a list or map", path)
        self.columns.append(
            {"name": title, "type": schema["type"], "jsonPath": "".join(f".{each}" for each in place)}
        )


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _markers(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Each marker with its value, without quotes."""
    at = 0
    while text[at:].strip(" \t\r\n|"):
        found = _KEY.match(text, at)
        if found is None:
            raise NotImportable(f"not a marker such as required=true: {text[at:].strip():.60}", path)
        end = _end_of_value(text, found.end(), path)
        value = text[found.end() : end]
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = _ESCAPE.sub(r"\1", value[1:-1])
        yield found[1], value
        at = end


def _end_of_value(text: str, at: int, path: Path) -> int:
    """Where a value ends: at a blank that is neither quoted nor in brackets."""
    depth, quoted, escaped = 0, False, False
    for i in range(at, len(text)):
        char = text[i]
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char.isspace() and depth <= 0:
            return i
    if quoted or depth > 0:
        raise NotImportable(f"the value has no end: {text[at:]:.60}", path)
    return len(text)


def _apply(schema: dict[str, Any], key: str, value: str, path: Path) -> None:
    """Add what a marker says to the schema of its field."""
    kind = schema["type"]
    if key in _WHOLE:
        wanted = _WHOLE[key]
        if kind != wanted:
            raise NotImportable(f"{key} is for fields of type {wanted}, not {kind}", path)
        if not _INTEGER.fullmatch(value):
            raise NotImportable(f"{key} must be a whole number, not {value!r:.60}", path)
        schema[key] = int(value)
    elif key in ("minimum", "maximum"):
        schema[key] = _number(value, path, key)
    elif key == "default":
        schema[key] = value if kind == "string" else _json(value, path)
    elif key == "description" or key == "pattern":
        schema[key] = value
    elif key == "enum":
        schema[key] = [_enumerated(each.strip(), kind, path) for each in value.split(",")]
    elif key == "validation":
        _rules(schema).append({"rule": value, "message": "validation failed"})
    elif key == "immutable":
        if _boolean(value, path, key):
            _rules(schema).append({"rule": "self == oldSelf", "message": "field is immutable"})
    elif key == "uniqueItems":
        if _boolean(value, path, key):
            schema["x-kubernetes-list-type"] = "set"
    else:
        raise NotImportable(f"there is no marker {key}", path)


_WHOLE: Final = {"minLength": "string", "maxLength": "string", "minItems": "array", "maxItems": "array"}


def _rules(schema: dict[str, Any]) -> list[dict[str, str]]:
    rules: list[dict[str, str]] = schema.setdefault("x-kubernetes-validations", [])
    return rules


def _boolean(value: str, path: Path, key: str) -> bool:
    if value not in _BOOLEANS:
        raise NotImportable(f"{key} must be true or false, not {value!r:.60}", path)
    return _BOOLEANS[value]


def _number(value: str, path: Path, key: str) -> int | float:
    if _INTEGER.fullmatch(value):
        return int(value)
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise NotImportable(f"{key} must be a number, not {value!r:.60}", path)
    return found


def _json(value: str, path: Path) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise NotImportable(f"the default is no JSON: {value:.60}", path) from None


def _enumerated(value: str, kind: str, path: Path) -> str | int:
    if kind == "integer" and _INTEGER.fullmatch(value):
        return int(value)
    if kind == "string" and value:
        return value
    raise NotImportable(f"{value!r:.60} cannot be in the enum of a field of type {kind}", path)
