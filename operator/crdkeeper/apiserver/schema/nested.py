"""What is allowed inside allOf, anyOf, oneOf and not: restrictions of values, nothing that shapes them."""

from dataclasses import dataclass

from crdkeeper.apiserver.golang import regexsyntax
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
    Schema,
)
from crdkeeper.apiserver.schema.violation import Report


@dataclass(frozen=True, slots=True)
class Exempt:
    """Which junctors of a node are the accepted notation for an integer or string."""

    any_of: bool = False
    first_all_of: bool = False


_NONE = Exempt()
_ANY_OF = Exempt(any_of=True)


def check_value_validation(schema: Schema, path: Path, report: Report, *, exempt: Exempt = _NONE) -> None:
    """Report the errors in a node's junctors and pattern."""
    if not exempt.any_of:
        for i, each in enumerate(schema.get("anyOf", ())):
            _check_nested(each, path.child("anyOf").index(i), report)
    for i, each in enumerate(schema.get("allOf", ())):
        inner = _ANY_OF if exempt.first_all_of and i == 0 else _NONE
        _check_nested(each, path.child("allOf").index(i), report, exempt=inner)
    for i, each in enumerate(schema.get("oneOf", ())):
        _check_nested(each, path.child("oneOf").index(i), report)
    if "not" in schema:
        _check_nested(schema["not"], path.child("not"), report)
    pattern = schema.get("pattern")
    if pattern:
        _check_pattern(pattern, path, report)


def _check_pattern(pattern: str, path: Path, report: Report) -> None:
    try:
        error = regexsyntax.error(pattern)
    except regexsyntax.UndecidedPattern as undecided:
        report.leave(rules.PATTERN, path.child("pattern"), str(undecided))
        return
    if error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        report.invalid(rules.PATTERN, path.child("pattern"), pattern, detail)


_FORBIDDEN = (
    ("type", "empty"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    (PRESERVE, "false"),
    (EMBEDDED, "false"),
    (INT_OR_STRING, "false"),
    (LIST_MAP_KEYS, "empty"),
    (LIST_TYPE, "undefined"),
    (MAP_TYPE, "undefined"),
    (VALIDATIONS, "empty"),
)


def _check_nested(schema: Schema, path: Path, report: Report, *, exempt: Exempt = _NONE) -> None:
    check_value_validation(schema, path, report, exempt=exempt)
    items = schema.get("items")
    if isinstance(items, dict):
        _check_nested(items, path.child("items"), report)
    properties = schema.get("properties", {})
    for name, each in properties.items():
        _check_nested(each, path.child("properties").key(name), report)
    for key, state in _FORBIDDEN:
        if key in schema and (state == "undefined" or schema[key]):
            report.forbidden(rules.JUNCTOR, path.child(key), f"must be {state} to be structural")
    if schema.get("additionalProperties", False) is not False:
        at = path.child("additionalProperties")
        report.forbidden(rules.JUNCTOR, at, "must be undefined to be structural")
    if "metadata" in properties:
        at = path.child("properties").key("metadata")
        report.forbidden(rules.JUNCTOR, at, "must not be specified in a nested context")
