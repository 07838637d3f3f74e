"""Defaults that are read but perhaps not stored: the effect of changing a default depends on that.

A default added to a CRD appears in all reads of older objects, and is stored with their next write. The API
shows no difference, but managedFields does in one direction: a field with an owner was in an object that was
written, so it is stored. The owner of a whole list or map proves nothing about its content.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from crdkeeper.apiserver.objects.defaulting import fill
from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectnode import ObjectNode, copied

_Owned = Sequence[Mapping[str, Any]]
"""The fields of a value by manager (fieldsV1)."""


def least_stored(obj: Any, node: ObjectNode) -> Any:
    """A copy of the object with the least that can be stored if it is read like this.

    Fields without an owner that equal their default may be missing in storage.
    """
    found = copied(obj)
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    owned = [each["fieldsV1"] for each in entries if isinstance(each.get("fieldsV1"), dict)]
    if node.has_defaults:
        _strip(found, node, owned)
    return found


def _strip(value: Any, node: ObjectNode, owned: _Owned) -> None:
    if isinstance(value, dict):
        for key in list(value):
            child = node.child(key)
            if child is not None and (child.has_defaults or child.default is not None):
                _strip_field(value, key, child, _of(owned, f"f:{key}"))
    elif isinstance(value, list) and node.items is not None and node.items.has_defaults:
        for each in value:
            _strip(each, node.items, _of_item(owned, each, node))


def _strip_field(value: dict[str, Any], key: str, child: ObjectNode, owned: _Owned) -> None:
    if not owned and _is_default(value[key], child):
        del value[key]
        return
    _strip(value[key], child, owned)


def _is_default(value: Any, node: ObjectNode) -> bool:
    if node.default is None:
        return False
    default = copied(node.default)
    fill(default, node)
    return same(stored(value), stored(default))


def _of(owned: _Owned, key: str) -> _Owned:
    return [fields for each in owned if isinstance(fields := each.get(key), dict)]


def _of_item(owned: _Owned, item: Any, node: ObjectNode) -> _Owned:
    """The owners of the fields of an item of a map list; items of other lists are not owned individually."""
    if node.list_type != "map" or not isinstance(item, dict):
        return []
    found = []
    for each in owned:
        for key, fields in each.items():
            if key.startswith("k:") and isinstance(fields, dict) and _has_keys(item, key[2:]):
                found.append(fields)
    return found


def _has_keys(item: Mapping[str, Any], text: str) -> bool:
    try:
        keys = orjson.loads(text)
    except ValueError:
        return False
    return isinstance(keys, dict) and all(item.get(name) == value for name, value in keys.items())
