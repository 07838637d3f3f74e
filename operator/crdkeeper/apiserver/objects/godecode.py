"""The error of Go's JSON decoder for invalid metadata, which the API server quotes for defaults."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.finding import UndecidedValue

_TEXTS = frozenset(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"))
_CONTAINERS: Mapping[str, tuple[type[dict[str, Any]] | type[list[Any]], str]] = {
    "labels": (dict, "map[string]string"),
    "annotations": (dict, "map[string]string"),
    "finalizers": (list, "[]string"),
    "ownerReferences": (list, "[]v1.OwnerReference"),
    "managedFields": (list, "[]v1.ManagedFieldsEntry"),
}
_UID = "types.UID"


def metadata_error(raw: Any) -> str:
    """The error for the first field, by name, that cannot be decoded. Raises UndecidedValue.

    `raw` is known to be invalid.
    """
    if not isinstance(raw, dict):
        return f"json: cannot unmarshal {_kind(raw)} into Go value of type v1.ObjectMeta"
    for key in sorted(raw):
        error = _field_error(key, raw[key])
        if error is not None:
            return error
    raise UndecidedValue("how the API server words what it cannot decode")


def _field_error(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if key in _TEXTS:
        return None if isinstance(value, str) else _error(value, key, _UID if key == "uid" else "string")
    if key not in _CONTAINERS:
        if key in ("generation", "deletionGracePeriodSeconds") and type(value) is int:
            return None
        if key in ("generation", "deletionGracePeriodSeconds", "creationTimestamp", "deletionTimestamp"):
            raise UndecidedValue("how the API server words what it cannot decode")
        return None
    container, go_type = _CONTAINERS[key]
    if not isinstance(value, container):
        return _error(value, key, go_type)
    parts = [value[each] for each in sorted(value)] if isinstance(value, dict) else value
    for each in parts:
        if each is None:
            continue
        if key in ("ownerReferences", "managedFields"):
            raise UndecidedValue("how the API server words what it cannot decode")
        if not isinstance(each, str):
            return _error(each, key, "string")
    return None


def _error(value: Any, key: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_kind(value)} into Go struct field ObjectMeta.{key} of type {go_type}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    for type_, name in ((str, "string"), (int, "number"), (float, "number"), (list, "array")):
        if isinstance(value, type_):
            return name
    return "object"
