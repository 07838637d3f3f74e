"""Keywords of a schema as CEL rules, for places where the API server rejects the keyword."""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.apiserver.cel.syntax.names import escape

_LONGEST = 2000

Properties = Mapping[str, Any]


def junctor_rule(keyword: str, value: object, properties: Properties) -> str | None:
    """The rule for allOf, anyOf, oneOf or not, about `self`; None if it cannot be expressed briefly.

    Translates only required and properties, the most common use of junctors, and only for fields in
    `properties` and below: rules cannot name others.
    """
    rule = _conjunction({keyword: value}, "self", properties)
    return rule if rule is not None and len(rule) <= _LONGEST else None


def counting_rule(keyword: str, limit: int, names: Sequence[str]) -> str | None:
    """The rule for minProperties or maxProperties of an object with these fields, about `self`."""
    tests = [_has("self", each) for each in names]
    if not tests or None in tests:
        return None
    comparison = ">=" if keyword == "minProperties" else "<="
    rule = f"[{', '.join(map(str, tests))}].filter(each, each).size() {comparison} {limit}"
    return rule if len(rule) <= _LONGEST else None


def _conjunction(schema: object, at: str, known: Properties) -> str | None:
    """The schema's conditions for a value that exists, and is an object with the properties `known`."""
    if not isinstance(schema, Mapping):
        return None
    parts = [_keyword(keyword, value, at, known) for keyword, value in schema.items()]
    return _joined(parts, "&&") if parts else "true"


def _keyword(keyword: str, value: Any, at: str, known: Properties) -> str | None:
    match keyword:
        case "required" if isinstance(value, list):
            tests = [_has(at, each) if isinstance(each, str) and each in known else None for each in value]
            return _joined(tests, "&&") if tests else "true"
        case "properties" if isinstance(value, Mapping):
            parts = [_property(at, name, each, known) for name, each in value.items()]
            return _joined(parts, "&&") if parts else "true"
        case "not":
            inner = _conjunction(value, at, known)
            return None if inner is None else f"!({inner})"
        case "allOf" | "anyOf" | "oneOf" if isinstance(value, list) and value:
            branches = [_conjunction(each, at, known) for each in value]
            if keyword == "oneOf" and None not in branches:
                return f"[{', '.join(map(str, branches))}].exists_one(each, each)"
            return _joined(branches, "&&" if keyword == "allOf" else "||")
    return None


def _property(at: str, name: str, schema: object, known: Properties) -> str | None:
    has = _has(at, name) if name in known else None
    if has is None:
        return None
    if schema == {}:
        return "true"
    field = known[name]
    below = field.get("properties") if isinstance(field, Mapping) and field.get("type") == "object" else None
    if not isinstance(below, Mapping) or field.get("nullable"):
        return None
    inner = _conjunction(schema, f"{at}.{escape(name)}", below)
    return None if inner is None else f"(!{has} || {inner})"


def _has(at: str, name: str) -> str | None:
    escaped = escape(name)
    return None if escaped is None else f"has({at}.{escaped})"


def _joined(parts: Sequence[str | None], operator: str) -> str | None:
    if None in parts:
        return None
    if len(parts) == 1:
        return parts[0]
    return "(" + f" {operator} ".join(map(str, parts)) + ")"
