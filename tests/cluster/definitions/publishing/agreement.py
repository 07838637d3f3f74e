"""Compares published schemas, in which the API server describes the fields that it adds and we do not."""

from collections.abc import Iterator
from typing import Any

_ADDED = frozenset(("apiVersion", "kind", "metadata", "items"))
_REFERENCES = frozenset(("$ref", "allOf"))


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two schemas differ, each with both values. Numbers are compared by value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours:
                if not _is_of_an_added_field(key, path, ours):
                    yield f"{path}.{key}: only the server: {str(theirs[key])[:300]}"
            elif key not in theirs:
                yield f"{path}.{key}: only we: {str(ours[key])[:300]}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{i}]")
    elif not _equal(ours, theirs):
        yield f"{path}: we {str(ours)[:300]}, the server {str(theirs)[:300]}"


def _equal(ours: Any, theirs: Any) -> bool:
    if type(ours) is type(theirs):
        return bool(ours == theirs)
    # Go writes a big float as the shortest integer that parses to the same float.
    return {type(ours), type(theirs)} == {int, float} and float(ours) == float(theirs)


def _is_of_an_added_field(key: str, path: str, ours: dict[str, Any]) -> bool:
    """Whether this is the server's own description of apiVersion, kind, metadata or a list's items."""
    if key != "description" or path.rpartition(".properties.")[2] not in _ADDED:
        return False
    if path.endswith(".items"):
        return "$ref" in ours.get("items", {})
    return ours == {"type": "string"} or ours.keys() in ({"$ref"}, {"allOf"})
