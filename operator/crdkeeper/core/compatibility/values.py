"""Compares the restrictions of single values: type, null, enum, limits, pattern, format and default."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.schema.props import INT_OR_STRING, Schema
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.node import FieldPair, Teller, from_to, shown

_EXACT = 2**53
"""Smaller integers are exact as floats."""
_ANYTHING = frozenset(("object", "array", "string", "integer", "number", "boolean"))
_NUMERIC = frozenset(("integer", "number"))
_UPPER = {"maxLength": "string", "maxItems": "array", "maxProperties": "object"}
_LOWER = {"minLength": "string", "minItems": "array", "minProperties": "object"}

# k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go, without dashes. Others are ignored, and
# any string is a password.
_TEXT_FORMATS = frozenset(
    (
        "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4",
        "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "date",
        "duration", "datetime", "k8sshortname", "k8slongname",
    )
)  # fmt: skip


def types(schema: Schema) -> frozenset[str]:
    """The possible JSON types of a value, except null."""
    if schema.get(INT_OR_STRING):
        return frozenset(("integer", "string"))
    type_ = schema.get("type")
    if type_ == "number":
        return _NUMERIC
    return frozenset((type_,)) if type_ else _ANYTHING


def compare_types(node: FieldPair, teller: Teller) -> bool:
    """Whether the types have enough in common to compare the rest of the schemas."""
    old, new = types(node.old), types(node.new)
    if old == new:
        return True
    message = f"type: {_type_text(node.old)} → {_type_text(node.new)}"
    if old < new:
        teller.say(kinds.TYPE_WIDENED, node, message, "type")
    else:
        teller.say(kinds.TYPE_CHANGED, node, message, "type")
    return old < new


def _type_text(schema: Schema) -> str:
    if schema.get(INT_OR_STRING):
        return "integer or string"
    return schema.get("type") or "any"


def compare_values(node: FieldPair, teller: Teller) -> None:
    """Everything that restricts a single value, and its default."""
    old, new = node.old, node.new
    _compare_null(node, teller)
    _compare_enum(node, teller)
    possible = types(old)
    if possible & _NUMERIC:
        _compare_bound("maximum", "exclusiveMaximum", 1, node, teller)
        _compare_bound("minimum", "exclusiveMinimum", -1, node, teller)
        _compare_multiple(node, teller)
    for keyword, type_ in _UPPER.items():
        if type_ in possible:
            _compare_limit(keyword, old.get(keyword), new.get(keyword), 1, node, teller)
    for keyword, type_ in _LOWER.items():
        if type_ in possible:
            # Zero does not limit anything.
            _compare_limit(keyword, old.get(keyword) or None, new.get(keyword) or None, -1, node, teller)
    if "string" in possible:
        _compare_pattern(node, teller)
    _compare_format(node, teller)
    _compare_default(node, teller)
    if any(old.get(each) != new.get(each) for each in ("description", "title", "example", "externalDocs")):
        teller.say(
            kinds.DOCUMENTATION, node, "description, title, example or externalDocs changed", "description"
        )


def _compare_null(node: FieldPair, teller: Teller) -> None:
    old, new = bool(node.old.get("nullable")), bool(node.new.get("nullable"))
    if new and not old:
        teller.say(kinds.NULLABLE_ADDED, node, "null is accepted", "nullable")
    elif old and not new and "default" in node.new and not node.field.endswith("[]"):
        # A null among the items of a list is not replaced.
        message = f"null is replaced by the default {shown(node.new['default'])}"
        teller.say(kinds.NULL_DEFAULTED, node, message, "nullable")
    elif old and not new and not node.required and not node.field.endswith("[]"):
        teller.say(kinds.NULL_DROPPED, node, "null is dropped, as if the field were absent", "nullable")
    elif old and not new:
        teller.say(kinds.NULLABLE_REMOVED, node, "null is no longer accepted", "nullable")


def _compare_enum(node: FieldPair, teller: Teller) -> None:
    null = bool(node.old.get("nullable") and node.new.get("nullable"))
    old, new = _enum(node.old, null=null), _enum(node.new, null=null)
    if old == new:
        return
    if old is None:
        teller.say(kinds.ENUM_TIGHTENED, node, f"enum: any value → {_listed(new)}", "enum")
    elif new is None:
        teller.say(kinds.ENUM_LOOSENED, node, f"enum: {_listed(old)} → any value", "enum")
    else:
        gone, come = old - new, new - old
        if gone:
            teller.say(kinds.ENUM_TIGHTENED, node, f"enum: {_listed(gone)} no longer accepted", "enum")
        if come:
            teller.say(kinds.ENUM_LOOSENED, node, f"enum: {_listed(come)} added", "enum")


def _enum(schema: Schema, *, null: bool) -> frozenset[str] | None:
    """The values as JSON; None if there is no restriction. `null`: whether null is one that may come."""
    values = schema.get("enum")
    if not values:
        return None
    found = frozenset(map(json_text, values))
    possible = {"true", "false", "null"} if null else {"true", "false"}
    return None if schema.get("type") == "boolean" and found >= possible else found


def _listed(values: frozenset[str] | None) -> str:
    most = sorted(values or ())
    return ", ".join(each if len(each) < 60 else f"{each[:60]}…" for each in most[:12]) + (
        f" and {len(most) - 12} more" if len(most) > 12 else ""
    )


def _compare_limit(
    keyword: str, old: float | None, new: float | None, sign: int, node: FieldPair, teller: Teller
) -> None:
    """`sign` is 1 for an upper limit and -1 for a lower one."""
    if old == new:
        return
    tighter = old is None or (new is not None and new * sign < old * sign)
    kind = kinds.LIMIT_LOOSENED
    if tighter and new is not None:
        within = _all_values(node.old, lambda value: type(value) is str and len(value) * sign <= new * sign)
        kind = kinds.LIMIT_SATISFIED if within else kinds.LIMIT_TIGHTENED
    teller.say(kind, node, from_to(keyword, node.old, node.new), keyword)


def _all_values(schema: Schema, fits: Callable[[Any], bool]) -> bool:
    """Whether the schema names all possible values, and all of them match."""
    values = schema.get("enum") or ()
    return bool(values) and not schema.get("nullable") and all(map(fits, values))


def _compare_bound(keyword: str, exclusive: str, sign: int, node: FieldPair, teller: Teller) -> None:
    old, new = (_bound(each, keyword, exclusive, sign) for each in (node.old, node.new))
    if old == new:
        return
    tighter = old is None or (new is not None and new < old)
    kind = kinds.LIMIT_LOOSENED
    if tighter and new is not None:
        within = _all_values(node.old, lambda each: _is_number(each) and (each * sign, 0) <= new)
        kind = kinds.LIMIT_SATISFIED if within else kinds.LIMIT_TIGHTENED
    before, after = (_bound_text(each, keyword, exclusive) for each in (node.old, node.new))
    teller.say(kind, node, f"{keyword}: {before} → {after}", keyword)


def _bound(schema: Schema, keyword: str, exclusive: str, sign: int) -> tuple[float, int] | None:
    """A key by which the stricter bound is the smaller one. For integers, the last one within the bound."""
    if keyword not in schema:
        return None
    limit = schema[keyword] * sign
    strict = bool(schema.get(exclusive))
    if types(schema) == {"integer"} and abs(limit) < _EXACT:
        whole = math.floor(limit)
        return (whole - 1 if strict and whole == limit else whole), 0
    return limit, -1 if strict else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bound_text(schema: Schema, keyword: str, exclusive: str) -> str:
    if keyword not in schema:
        return "none"
    return shown(schema[keyword]) + (" (exclusive)" if schema.get(exclusive) else "")


def _compare_multiple(node: FieldPair, teller: Teller) -> None:
    old, new = node.old.get("multipleOf"), node.new.get("multipleOf")
    if old == new:
        return
    kind = kinds.LIMIT_LOOSENED if new is None or _is_multiple(old, new) else kinds.LIMIT_TIGHTENED
    teller.say(kind, node, from_to("multipleOf", node.old, node.new), "multipleOf")


def _is_multiple(old: float | None, new: float) -> bool:
    """Whether every multiple of the old number is one of the new. Only for integers: others are rounded."""
    return old is not None and new != 0 and old.is_integer() and new.is_integer() and (old / new).is_integer()


def _compare_pattern(node: FieldPair, teller: Teller) -> None:
    old, new = node.old.get("pattern"), node.new.get("pattern")
    if old == new:
        return
    message = from_to("pattern", node.old, node.new)
    if not new or new in _MATCH_ALL:
        teller.say(kinds.PATTERN_LOOSENED, node, message, "pattern")
        return
    kind = kinds.PATTERN_TIGHTENED if not old or old in _MATCH_ALL else kinds.PATTERN_CHANGED
    teller.say_tried(kind, node, message, {"pattern": new}, proved=kinds.PATTERN_TIGHTENED)


_MATCH_ALL = frozenset(("^", "$", "^.*", ".*", ".*$", "(.*)", "^(.*)"))
"""Patterns that every text matches; `.` does not match a line end, so `^.*$` is not one of them."""


def _compare_format(node: FieldPair, teller: Teller) -> None:
    if node.old.get("format") == node.new.get("format") and node.old.get("type") == node.new.get("type"):
        return
    old, new = _checked_format(node.old), _checked_format(node.new)
    message = from_to("format", node.old, node.new)
    if old == new:
        if node.old.get("format") != node.new.get("format"):
            teller.say(kinds.DOCUMENTATION, node, message, "format")
    elif new is None:
        teller.say(kinds.FORMAT_LOOSENED, node, message, "format")
    else:
        kind = kinds.FORMAT_TIGHTENED if old is None else kinds.FORMAT_CHANGED
        changed = {"format": node.new["format"], "type": node.new.get("type")}
        teller.say_tried(kind, node, message, changed, proved=kind)


def _checked_format(schema: Schema) -> str | None:
    """The format as far as the API server checks it: every number is a valid int64 and double anyway."""
    format_: str = schema.get("format", "")
    type_ = "" if schema.get(INT_OR_STRING) else schema.get("type", "")
    if type_ in ("", "string"):
        normal = format_.replace("-", "")
        return normal if normal in _TEXT_FORMATS else None
    if (type_, format_) in (("integer", "int32"), ("number", "float")):
        return format_
    return None


def _compare_default(node: FieldPair, teller: Teller) -> None:
    old, new = _default(node.old), _default(node.new)
    if old == new:
        return
    message = from_to("default", node.old, node.new)
    if old is None:
        teller.say(kinds.DEFAULT_ADDED, node, message, "default")
    elif new is None:
        teller.say(kinds.DEFAULT_REMOVED, node, message, "default")
    else:
        teller.say(kinds.DEFAULT_CHANGED, node, message, "default")


def _default(schema: Mapping[str, Any]) -> str | None:
    return json_text(schema["default"]) if "default" in schema else None
