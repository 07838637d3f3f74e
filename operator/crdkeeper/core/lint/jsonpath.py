"""The JSON paths of printer columns, as far as they can be followed through a schema.

The API server takes the whole of kubectl's template language and checks none of it. What is followed here
is what CRDs use: fields, quoted fields, indexes, wildcards and filters. All else is left alone.
"""

import re
from dataclasses import dataclass
from enum import Enum

from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema

_TOKEN = re.compile(
    r"""\.(?P<name>(?:[^.\[\]'"\\(){}*@?\s]|\\.)+)"""
    r"""|\[\s*(?P<quote>['"])(?P<quoted>[^'"\\]+)(?P=quote)\s*\]"""
    r"""|\[(?P<one>-?[0-9]+)\]"""
    r"""|(?P<all>\[\s*(?:\*|[0-9]*:[0-9]*(?::[0-9]*)?)\s*\])"""
    r"""|\[\?\(\s*@\.(?P<test>[A-Za-z0-9_]+)[^\[\]]*\)\]"""
)


class Lead(Enum):
    """Where a path leads."""

    NOWHERE = "nowhere"
    SOMEWHERE = "somewhere"
    """It leads out of what the schema says, or is more than is followed here."""
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a path leads, with the schema there, and whether to several values at once."""

    lead: Lead
    schema: Schema | None = None
    many: bool = False


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
    """Where the path of a column leads from the root of an object."""
    here: Schema = {**root, "properties": {**(root.get("properties") or {}), **_ROOT}}
    many, at = False, 0
    while at < len(path):
        token = _TOKEN.match(path, at)
        if token is None:
            return _SOMEWHERE
        at = token.end()
        if here.get(PRESERVE) or (here.get(EMBEDDED) and not here.get("properties")):
            return _SOMEWHERE
        name = token["name"] or token["quoted"]
        if name is not None:
            below = _field(name.replace("\\", ""), here)
        else:
            many = many or bool(token["all"])
            below = _items(here, token["test"])
        if isinstance(below, Target):
            return below
        here = below
    return Target(Lead.FIELD, here, many)


_ROOT = {"metadata": _METADATA, "apiVersion": _TEXT, "kind": _TEXT}
_NOWHERE = Target(Lead.NOWHERE)


def _field(name: str, here: Schema) -> Schema | Target:
    properties = here.get("properties") or {}
    below = properties.get(name)
    if isinstance(below, dict):
        return below
    if here.get(EMBEDDED) and name in _ROOT:
        return _ROOT[name]
    values = here.get("additionalProperties")
    if isinstance(values, dict):
        return values
    if values or here.get("type") == "array":
        return _SOMEWHERE
    return _NOWHERE


def _items(here: Schema, tested: str | None) -> Schema | Target:
    items = here.get("items")
    if here.get("type") != "array":
        # A map's values can be selected like items.
        is_scalar = here.get("type") not in ("object", None) or bool(here.get(INT_OR_STRING))
        return _NOWHERE if is_scalar else _SOMEWHERE
    if not isinstance(items, dict):
        return _SOMEWHERE
    if tested and not items.get(PRESERVE):
        found = _field(tested, items)
        if isinstance(found, Target):
            return found
    return items
