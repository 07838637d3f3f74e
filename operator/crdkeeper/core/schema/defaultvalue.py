"""Whether a default is a valid value of its schema, with the API server's words where that is certain.

The server hands this to a library whose errors pile up in ways of their own: one cause may be reported twice,
another not at all. So only what is wrong in one way is worded here, and the rest is left to the server.
"""

from typing import Any

from crdkeeper.core.schema import rules
from crdkeeper.core.schema.fieldpath import Path
from crdkeeper.core.schema.gotext import displayed, number, quote
from crdkeeper.core.schema.props import EMBEDDED, INT_OR_STRING, VALIDATIONS, Schema
from crdkeeper.core.schema.violation import Report, Violation


class Unsure(Exception):
    """Only the API server can tell."""


def check_value(value: Any, schema: Schema, path: Path, report: Report) -> None:
    """Reports why the default at `path` is not valid. Raises Unsure."""
    found = _errors(value, schema, "", path)
    if len({each.kind for each in found}) > 1 or (len(found) > 1 and found[0].kind != "Required value"):
        raise Unsure
    report.violations.extend(found)


_SUBTLE = ("allOf", "oneOf", "pattern", "multipleOf", EMBEDDED, VALIDATIONS)
_HARMLESS_FORMATS = frozenset(("", "int32", "int64", "password"))


def _errors(value: Any, schema: Schema, name: str, path: Path) -> list[Violation]:
    # An empty schema under `not` refuses everything.
    if "not" in schema or any(schema.get(key) for key in _SUBTLE):
        raise Unsure
    if schema.get("format", "") not in _HARMLESS_FORMATS:
        raise Unsure
    if schema.get("anyOf") and not (_is_int_or_string(schema) and type(value) in (int, str)):
        raise Unsure
    if value is None:
        if schema.get("nullable") and "enum" not in schema:
            return []
        raise Unsure
    type_ = schema.get("type", "")
    if type_ and not _has_type(value, type_):
        return [_wrong_type(value, schema, name, path)]
    found = [*_enum_errors(value, schema, path), *_limit_errors(value, schema, name, path)]
    return found + _part_errors(value, schema, name, path)


def _is_int_or_string(schema: Schema) -> bool:
    return bool(schema.get(INT_OR_STRING)) and schema["anyOf"] == [{"type": "integer"}, {"type": "string"}]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for type_, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, type_):
            return name
    return "object"


def _has_type(value: Any, type_: str) -> bool:
    kind = _kind(value)
    if kind == "number" and type_ == "integer":
        if not value.is_integer():
            raise Unsure
        return True
    return kind == type_ or (kind == "integer" and type_ == "number")


_BESIDE_TYPE = frozenset(("enum", "format", "minimum", "maximum", "required", "additionalProperties"))


def _wrong_type(value: Any, schema: Schema, name: str, path: Path) -> Violation:
    about_parts = isinstance(value, list | dict) and (schema.get("properties") or "items" in schema)
    about_size = any(key.startswith(("min", "max")) for key in schema)
    if about_parts or about_size or _BESIDE_TYPE & schema.keys():
        raise Unsure
    kind = _kind(value)
    detail = f'{name} in body must be of type {schema["type"]}: "{kind}"'
    return Violation(rules.DEFAULT_VALUE, path, "Invalid value", quote(kind), detail)


def _enum_errors(value: Any, schema: Schema, path: Path) -> list[Violation]:
    accepted = schema.get("enum")
    if not accepted:
        return []
    if any(type(each) is not type(value) or isinstance(each, float | list | dict) for each in accepted):
        raise Unsure
    if value in accepted:
        return []
    words = [each if isinstance(each, str) else displayed(each) for each in accepted]
    detail = "supported values: " + ", ".join(map(quote, words))
    return [Violation(rules.DEFAULT_VALUE, path, "Unsupported value", displayed(value), detail)]


def _limit_errors(value: Any, schema: Schema, name: str, path: Path) -> list[Violation]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return _number_errors(value, schema, name, path)
    if isinstance(value, str):
        return _size_errors(len(value), value, "Length", schema, name, path)
    suffix = "Items" if isinstance(value, list) else "Properties"
    return _size_errors(len(value), len(value), suffix, schema, name, path)


def _number_errors(value: int | float, schema: Schema, name: str, path: Path) -> list[Violation]:
    if schema.get("format") and (isinstance(value, float) or not -(1 << 31) <= value < (1 << 31)):
        raise Unsure
    found = []
    for key, sign, open_words, words in (
        ("Maximum", 1, "less than", "less than or equal to"),
        ("Minimum", -1, "greater than", "greater than or equal to"),
    ):
        limit = schema.get(key.lower())
        if limit is None:
            continue
        exclusive = schema.get(f"exclusive{key}")
        if (value - limit) * sign > 0 or (exclusive and value == limit):
            said = open_words if exclusive else words
            detail = f"{name} in body should be {said} {number(limit)}"
            found.append(Violation(rules.DEFAULT_VALUE, path, "Invalid value", displayed(value), detail))
    return found


_TOO_SHORT = {
    "Length": "should be at least {} chars long",
    "Items": "should have at least {} items",
    "Properties": "should have at least {} properties",
}


def _size_errors(
    size: int, shown: str | int, suffix: str, schema: Schema, name: str, path: Path
) -> list[Violation]:
    low, high = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if (low is not None and low < 0) or (high is not None and high < 0):
        raise Unsure
    if high is not None and size > high:
        plural = "" if high == 1 else "s"
        if suffix == "Length":
            detail = f"may not be more than {high} byte{plural}"
            return [Violation(rules.DEFAULT_VALUE, path, "Too long", None, detail)]
        detail = f"must have at most {high} item{plural}"
        return [Violation(rules.DEFAULT_VALUE, path, "Too many", str(size), detail)]
    if low is not None and size < low:
        detail = f"{name} in body {_TOO_SHORT[suffix].format(low)}"
        return [Violation(rules.DEFAULT_VALUE, path, "Invalid value", displayed(shown), detail)]
    return []


def _part_errors(value: Any, schema: Schema, name: str, path: Path) -> list[Violation]:
    found: list[Violation] = []
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for i, each in enumerate(value):
                found += _errors(each, items, f"[{i}]", path.child(f"[{i}]", i))
    elif isinstance(value, dict):
        for each in schema.get("required", ()):
            if each not in value:
                missing = path.child(each)
                found.append(Violation(rules.DEFAULT_VALUE, missing, "Required value", None, ""))
        properties = schema.get("properties") or {}
        values = schema.get("additionalProperties")
        for key, each in value.items():
            if key in properties:
                found += _errors(each, properties[key], key, path.child(key))
            elif isinstance(values, dict):
                found += _errors(each, values, f".{key}", path.child(key))
    if found and name:
        # How the server names what lies deeper depends on what lies between.
        raise Unsure
    return found
