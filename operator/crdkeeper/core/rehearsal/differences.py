"""How two reads of an object differ: fields that are gone, new, or have another value."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.core.conversion.notes import PREFIX

_PLACE = re.compile(r"\[[^\]]*\]")
_COMPARED = ("labels", "annotations")


class How(Enum):
    """How a field differs."""

    GONE = "gone"
    NEW = "new"
    CHANGED = "changed"


class Difference(NamedTuple):
    """A field that differs, with everything below it."""

    how: How
    field: str
    """The path, with [*] for any item of a list and any entry of a map."""
    exact: str
    """The path in this object."""


def differences(before: Any, after: Any, node: ObjectNode | None = None) -> list[Difference]:
    """The differences from an object to another read of it.

    Ignores apiVersion, what the API server sets in metadata, and what a conversion has kept aside. `node`
    distinguishes the fields of an object from the entries of a map.
    """
    return list(_below(_comparable(before), _comparable(after), node, "", ""))


def _comparable(obj: Any) -> Any:
    found = {key: each for key, each in stored(obj).items() if key not in ("apiVersion", "metadata")}
    metadata = obj.get("metadata") or {}
    kept = {key: dict(metadata[key]) for key in _COMPARED if isinstance(metadata.get(key), dict)}
    for entries in kept.values():
        for key in [each for each in entries if each.startswith(PREFIX)]:
            del entries[key]
    return {**found, "metadata": {key: each for key, each in kept.items() if each}}


def _below(before: Any, after: Any, node: ObjectNode | None, field: str, exact: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            below, *paths = _step(node, key, field, exact)
            if key not in after:
                yield Difference(How.GONE, *paths)
            else:
                yield from _below(value, after[key], below, *paths)
        for key in after:
            if key not in before:
                yield Difference(How.NEW, *_step(node, key, field, exact)[1:])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        items = node.items if node is not None else None
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _below(one, other, items, f"{field}[*]", f"{exact}[{i}]")
    elif not same(before, after):
        yield Difference(How.CHANGED, field, exact)


def _step(node: ObjectNode | None, key: str, field: str, exact: str) -> tuple[ObjectNode | None, str, str]:
    if node is not None and key not in node.properties and node.any_key:
        return node.additional, f"{field}[*]", f"{exact}[{key}]"
    name = f".{key}"
    return (
        node.child(key) if node is not None else None,
        (field + name).lstrip("."),
        (exact + name).lstrip("."),
    )


def general(path: str) -> str:
    """A field's path in the API server's format, with [*] for what is in brackets."""
    return _PLACE.sub("[*]", path)
