"""Whether applying a definition's CRD would change nothing, so that a composer that starts writes nothing.

Server-side apply removes what its manager had applied and does not apply any more, so that equal values are
not enough: the manager must have just the fields that would be applied. What the API server has written in
another form counts as different: then the CRD is applied, which does no harm.
"""

from collections.abc import Mapping
from typing import Any

_SELF = "."
"""In FieldsV1: the map itself."""
_IDENTITY = frozenset(("apiVersion", "kind"))


def is_unchanged(made: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Whether the live CRD has all that would be applied by `manager`, which manages nothing else of it."""
    fields = _applied(live, manager)
    wanted = {key: each for key, each in made.items() if key not in _IDENTITY}
    wanted["metadata"] = {key: each for key, each in made["metadata"].items() if key != "name"}
    return bool(fields) and _is_same(fields, wanted, live)


def _applied(live: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
    """The fields that the manager has applied at the version of the CRD; empty if there are none."""
    for each in live["metadata"].get("managedFields") or ():
        what = each.get("manager"), each.get("operation"), each.get("subresource") or ""
        if what == (manager, "Apply", "") and each.get("apiVersion") == live.get("apiVersion"):
            return each.get("fieldsV1") or {}
    return {}


def _is_same(fields: Mapping[str, Any], wanted: Any, live: Any) -> bool:
    if not fields:
        # Managed as a whole, such as spec.versions.
        return _is_equal(wanted, live)
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return False
    if fields.keys() - {_SELF} != {f"f:{key}" for key in wanted}:
        return False
    return all(key in live and _is_same(fields[f"f:{key}"], each, live[key]) for key, each in wanted.items())


def _is_equal(wanted: Any, live: Any) -> bool:
    """Whether two values are the same in JSON, where true is not 1. A schema may be of any depth."""
    left = [(wanted, live)]
    while left:
        one, other = left.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            left += ((each, other[key]) for key, each in one.items())
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            left += zip(one, other, strict=True)
        elif type(one) is not type(other) or one != other:
            return False
    return True
