"""Limits in allOf, taken for what they are: limits of the value itself.

A branch of allOf that has nothing but limits says the same as these limits beside it, the stricter ones of
each. Folded so, a limit that moves in or out of allOf is no change, and one that changes there is decided.
"""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.props import Schema

_STRICTER: Final = {
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
}


def folded(schema: Schema) -> Schema:
    """The schema with such branches folded into it; itself where there is none."""
    branches = schema.get("allOf") or ()
    limits = [each for each in branches if _is_limits(each)]
    if not limits:
        return schema
    made: dict[str, Any] = {**schema, "allOf": [each for each in branches if not _is_limits(each)]}
    for branch in limits:
        for key, value in branch.items():
            made[key] = _STRICTER[key](made.get(key, value), value)
    return made


def _is_limits(branch: Any) -> bool:
    return isinstance(branch, Mapping) and bool(branch) and branch.keys() <= _STRICTER.keys()
