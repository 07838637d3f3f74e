"""What the API server demands of the fields that the scale subresource is made of, at every write.

There is no ratcheting here: an update that changes nothing is refused as well (ValidateScaleSpec and
ValidateScaleStatus in k8s.io/apiextensions-apiserver, pkg/registry/customresource).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import INVALID
from crdkeeper.apiserver.schema.violation import Violation

_MOST = (1 << 31) - 1
_ABSENT = object()


class _Inaccessible(Exception):
    """Something on the way to a field is no map."""


def check_scale(obj: Any, scale: Mapping[str, Any] | None) -> list[Violation]:
    """The violations of an object as it would be validated: pruned and defaulted."""
    if scale is None:
        return []
    found = []
    for key in ("specReplicasPath", "statusReplicasPath"):
        found += _replicas(obj, scale.get(key) or "")
    selector = scale.get("labelSelectorPath")
    if selector is not None:
        found += _selector(obj, selector)
    return found


def _replicas(obj: Any, path: str) -> list[Violation]:
    try:
        value = _at(obj, path)
    except _Inaccessible as error:
        return [_violation(path, "0", str(error))]
    if value is _ABSENT:
        return []
    if type(value) is not int:
        return [_violation(path, "0", _of_other_type(_steps(path), value, "int64"))]
    if value < 0:
        return [_violation(path, str(value), "should be a non-negative integer")]
    if value > _MOST:
        return [_violation(path, str(value), f"should be less than or equal to {_MOST}")]
    return []


def _selector(obj: Any, path: str) -> list[Violation]:
    try:
        value = _at(obj, path)
    except _Inaccessible as error:
        return [_violation(path, '""', str(error))]
    if value is _ABSENT or isinstance(value, str):
        return []
    return [_violation(path, '""', _of_other_type(_steps(path), value, "string"))]


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _at(obj: Any, path: str) -> Any:
    """As unstructured.NestedFieldNoCopy in k8s.io/apimachinery: below null there is nothing.

    Raises _Inaccessible.
    """
    steps = _steps(path)
    for i, name in enumerate(steps):
        if obj is None:
            return _ABSENT
        if not isinstance(obj, dict):
            raise _Inaccessible(_of_other_type(steps[: i + 1], obj, "map[string]interface{}"))
        obj = obj.get(name, _ABSENT)
        if obj is _ABSENT:
            return _ABSENT
    return obj


_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    type(None): "<nil>",
}


def _of_other_type(steps: Sequence[str], value: Any, expected: str) -> str:
    return (
        f".{'.'.join(steps)} accessor error: {_shown(value)} is of the type {_GO_TYPES[type(value)]}, "
        f"expected {expected}"
    )


def _shown(value: Any) -> str:
    """A value as Go's verb %v shows it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_shown(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_shown, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _violation(path: str, value: str, detail: str) -> Violation:
    return Violation(valuerules.SCHEMA, Path(f".{path}", (path,)), INVALID, value, detail)
