"""Values at the paths of the scale subresource, which are split at dots and nothing else.

The functions follow k8s.io/apimachinery pkg/apis/meta/v1/unstructured (NestedFieldNoCopy, SetNestedField).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.golang.numbers import shortest

ABSENT: Final = object()
_GO_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    type(None): "<nil>",
}


class AccessError(Exception):
    """A value on the way or at the end has another type; with the API server's message."""


def steps_of(path: str) -> list[str]:
    """The keys of a path such as .spec.replicas (splitReplicasPath)."""
    return path.removeprefix(".").split(".")


def value_at(obj: Any, path: str) -> Any:
    """The value there; ABSENT if there is none, and below null. Raises AccessError below other non-maps."""
    steps = steps_of(path)
    for i, name in enumerate(steps):
        if obj is None:
            return ABSENT
        if not isinstance(obj, dict):
            raise _error(steps[: i + 1], obj, "map[string]interface{}")
        obj = obj.get(name, ABSENT)
        if obj is ABSENT:
            return ABSENT
    return obj


def int_at(obj: Any, path: str) -> int | None:
    """An integer; None if absent. Raises AccessError for any other type, even for null."""
    value = value_at(obj, path)
    if value is ABSENT:
        return None
    if type(value) is not int:
        raise _error(steps_of(path), value, "int64")
    return value


def text_at(obj: Any, path: str) -> str | None:
    """A string; None if absent. Raises AccessError for any other type, even for null."""
    value = value_at(obj, path)
    if value is ABSENT:
        return None
    if not isinstance(value, str):
        raise _error(steps_of(path), value, "string")
    return value


def with_value(obj: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The object with a value at that path; creates missing maps. Raises AccessError."""
    steps = steps_of(path)
    new = here = dict(obj)
    for i, name in enumerate(steps[:-1]):
        below = here.get(name, ABSENT)
        if below is not ABSENT and not isinstance(below, dict):
            where = ".".join(steps[: i + 1])
            raise AccessError(f"value cannot be set because .{where} is not a map[string]interface{{}}")
        here[name] = dict(below) if isinstance(below, dict) else {}
        here = here[name]
    here[steps[-1]] = value
    return new


def _error(steps: Sequence[str], value: Any, expected: str) -> AccessError:
    return AccessError(
        f".{'.'.join(steps)} accessor error: {_shown(value)} is of the type {_GO_TYPES[type(value)]}, "
        f"expected {expected}"
    )


def _shown(value: Any) -> str:
    """A value printed with Go's verb %v."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_shown(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_shown, value)) + "]"
    return shortest(value) if isinstance(value, float) else str(value)
