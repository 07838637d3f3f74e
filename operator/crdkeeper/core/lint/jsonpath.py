"""Where the JSONPath of a printer column leads in a schema, as far as it can be followed.

Follows what CRDs use: fields, quoted fields, indexes, slices and filters. Ignores everything else.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum

from crdkeeper.apiserver.jsonpath.nodes import Block, Field, Filter, Node, PlainText, Slice
from crdkeeper.apiserver.jsonpath.parser import PathError, UndecidedPath, parse_column
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    INT_OR_STRING,
    PRESERVE,
    TYPES,
    Schema,
    unsupported_keywords,
)


class Lead(Enum):
    """Where a path leads."""

    NOWHERE = "nowhere"
    SOMEWHERE = "somewhere"
    """It leads outside the schema or through what the API server refuses, or is not supported here."""
    FIELD = "field"
    BROKEN = "broken"
    """It is not a JSONPath."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a path leads, with the schema there, and whether to several values at once."""

    lead: Lead
    schema: Schema | None = None
    many: bool = False
    problem: str = ""
    """Why it is not a JSONPath, to be added to that statement."""
    escaped: str = ""
    """If it leads nowhere, the path that leads somewhere: with a backslash before each dot in quoted keys."""


_QUOTED_KEY = re.compile(r"\['[^'\]]*'\]")
_ESCAPED_OR_DOT = re.compile(r"\\.|\.")
_ESCAPED_QUOTE = re.compile(r"""\\(["'])""")
_SOMEWHERE = Target(Lead.SOMEWHERE)
_TEXT, _TIME, _NUMBER = {"type": "string"}, {"type": "string", "format": "date-time"}, {"type": "integer"}
_LABELS = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _LABELS),
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": {"type": "object", PRESERVE: True}},
        "managedFields": {"type": "array", "items": {"type": "object", PRESERVE: True}},
    },
}


def follow(path: str, root: Schema) -> Target:
    """Follow the path of a column from the root of an object."""
    target = _follow(path, root)
    if target.lead is not Lead.NOWHERE:
        return target
    # The API server splits a key at its dots, also in quotes.
    escaped = _QUOTED_KEY.sub(lambda key: _ESCAPED_OR_DOT.sub(_escape, key[0]), path)
    leads = escaped != path and _follow(escaped, root).lead in (Lead.FIELD, Lead.SOMEWHERE)
    return replace(target, escaped=escaped) if leads else target


def _escape(found: re.Match[str]) -> str:
    return "\\." if found[0] == "." else found[0]


def _follow(path: str, root: Schema) -> Target:
    try:
        template = parse_column(path)
    except UndecidedPath:
        return _SOMEWHERE
    except PathError as error:
        return Target(Lead.BROKEN, problem=_problem(path, error))
    first = template[0]
    if len(template) > 1 or not isinstance(first, tuple):
        return _SOMEWHERE
    here: Schema = {**root, "properties": {**(root.get("properties") or {}), **_ROOT}}
    many = False
    for node in first:
        below = _below(node, here)
        if isinstance(below, Target):
            return below
        here = below
        many = many or (isinstance(node, Slice) and not _is_one(node))
    return Target(Lead.FIELD, here, many)


def _is_one(node: Slice) -> bool:
    """Whether a slice selects at most one entry, as `[-1:]` does: the last one."""
    if node.single or node.end is None:
        return node.single or node.start == -1
    start = node.start or 0
    return node.end == start + 1 and (start < 0) == (node.end < 0)


def _problem(path: str, error: PathError) -> str:
    unescaped = _ESCAPED_QUOTE.sub(r"\1", path)
    if unescaped != path:
        # As in a Go string, where the text is none: a marker in backquotes, or a plain scalar of YAML.
        try:
            parse_column(unescaped)
        except PathError:
            return f": {error}"
        return "; without the backslashes before its quotes it is one"
    return f": {error}"


_ROOT = {"metadata": _METADATA, "apiVersion": _TEXT, "kind": _TEXT}
_NOWHERE = Target(Lead.NOWHERE)


def _below(node: Node, here: Schema) -> Schema | Target:
    if isinstance(node, Field):
        return _field(node.name, here)
    if isinstance(node, Slice):
        return _items(here, None)
    if isinstance(node, Filter):
        items = _items(here, _tested(node.left))
        return _NOWHERE if not isinstance(items, Target) and _is_never(node, items) else items
    return _SOMEWHERE


def _is_never(node: Filter, items: Schema) -> bool:
    """Whether a filter requires a string that the schema's enum does not have."""
    if node.operator != "==" or len(node.left) != 1 or len(node.right) != 1:
        return False
    left, right = node.left[0], node.right[0]
    if not isinstance(left, Field) or not isinstance(right, PlainText):
        return False
    enum = ((items.get("properties") or {}).get(left.name) or {}).get("enum") or ()
    return bool(enum) and right.text not in enum


def _tested(left: Block) -> str | None:
    """The field of an item that a filter reads first."""
    return left[0].name if left and isinstance(left[0], Field) else None


def _field(name: str, here: Schema) -> Schema | Target:
    properties = here.get("properties") or {}
    below = properties.get(name)
    if isinstance(below, dict):
        return below
    if here.get(EMBEDDED) and name in _ROOT:
        return _ROOT[name]
    if here.get(PRESERVE) or (here.get(EMBEDDED) and not properties) or _is_undecided(here):
        return _SOMEWHERE
    values = here.get("additionalProperties")
    if isinstance(values, dict):
        return values
    return _SOMEWHERE if values else _NOWHERE


def _items(here: Schema, tested: str | None) -> Schema | Target:
    type_ = here.get("type")
    if type_ != "array":
        # Go fails at anything that is not a list, even at a map.
        known = type_ or here.get(INT_OR_STRING)
        return _NOWHERE if known and not _is_undecided(here) else _SOMEWHERE
    items = here.get("items")
    if not isinstance(items, dict):
        return _SOMEWHERE
    if tested:
        found = _field(tested, items)
        if isinstance(found, Target) and found.lead is Lead.NOWHERE:
            return found
    return items


def _is_undecided(here: Schema) -> bool:
    """Whether the API server refuses a schema for what may be the reason that a field is missing there."""
    typed = here.get("type") in TYPES or here.get(INT_OR_STRING)
    return bool(unsupported_keywords(here)) or not (typed or here.get("properties"))
