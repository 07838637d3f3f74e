"""Limits in allOf, treated as limits of the value itself.

A branch of allOf with nothing but limits is equivalent to having these limits next to it, the stricter one of
each. After folding, a limit that moves into or out of allOf is not a change, and the effect of one that
changes is known.
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
_BOUNDS: Final = {"maximum": ("exclusiveMaximum", 1), "minimum": ("exclusiveMinimum", -1)}
"""The limits, each with its exclusive keyword, and the sign with which the smaller one is stricter."""
_EXCLUSIVE: Final = {"exclusiveMaximum": "maximum", "exclusiveMinimum": "minimum"}
_SINGLE: Final = frozenset(("pattern", "multipleOf"))
"""Keywords of which, given two different values, neither is stricter."""


def folded(schema: Schema) -> Schema:
    """The schema with such branches folded into it; itself if there are none."""
    branches = schema.get("allOf") or ()
    made: dict[str, Any] = dict(schema)
    left = [each for each in branches if not _fold(each, made)]
    return {**made, "allOf": left} if len(left) < len(branches) else schema


def _fold(branch: Any, into: dict[str, Any]) -> bool:
    """Whether a branch has nothing but limits, which then are in the schema as well."""
    if not isinstance(branch, Mapping) or not branch:
        return False
    for key, value in branch.items():
        known = key in _STRICTER or key in _BOUNDS or _EXCLUSIVE.get(key) in branch
        if not known and not (key in _SINGLE and into.get(key, value) == value):
            return False
    for key, value in branch.items():
        if key in _STRICTER:
            into[key] = _STRICTER[key](into.get(key, value), value)
        elif key in _SINGLE:
            into[key] = value
        elif key in _BOUNDS:
            _fold_bound(key, branch, into)
    return True


def _fold_bound(key: str, branch: Mapping[str, Any], into: dict[str, Any]) -> None:
    exclusive, sign = _BOUNDS[key]

    def strictness(schema: Mapping[str, Any]) -> tuple[float, bool]:
        return schema[key] * sign, not schema.get(exclusive)

    if key not in into or strictness(branch) < strictness(into):
        into[key], into[exclusive] = branch[key], bool(branch.get(exclusive))
