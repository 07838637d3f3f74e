"""Pruning: a request drops fields that a schema does not contain, and nulls that it does not allow.

The order is the API server's: first unknown fields, then nulls of fields that are neither nullable nor have a
default (apiextensions-apiserver: pruning.Prune, defaulting.PruneNonNullableNullsWithoutDefaults). Both happen
in one pass here, which creates the copy that all later steps use.
"""

from enum import Enum
from typing import Any, Final

from crdkeeper.apiserver.golang.numbers import received
from crdkeeper.apiserver.objects.objectnode import META_FIELDS, ObjectNode
from crdkeeper.apiserver.schema.fieldpath import joined

MOST_UNKNOWN: Final = 10_000
"""Unknown fields of an object whose paths are listed; nobody reads more."""


class _Mode(Enum):
    PRUNE = "fields that the schema does not know go"
    SKIP = "they stay, but pruning begins again in those that it knows"
    KEEP = "nothing is unknown: metadata, which has rules of its own"


def pruned(
    value: Any, node: ObjectNode | None, *, nulls: bool = True, listed: bool = True
) -> tuple[Any, list[str]]:
    """A copy without unknown fields, and, if `listed`, their paths in the server's format, sorted.

    Of more than `MOST_UNKNOWN`, that many are listed.

    With `nulls`, it also drops the nulls that the schema does not allow, without listing them.
    """
    pruner = _Pruner(nulls, MOST_UNKNOWN if listed else 0)
    return pruner.part(value, node, _Mode.PRUNE), sorted(pruner.unknown)


def unpruned(value: Any) -> Any:
    """A copy with all fields and nulls, for a CRD with preserveUnknownFields from v1beta1."""
    return _Pruner(nulls=False, most=0).part(value, None, _Mode.KEEP)


class _Pruner:
    def __init__(self, nulls: bool, most: int) -> None:
        self._nulls = nulls
        self._most = most
        self._at: list[str] = []
        self.unknown: list[str] = []

    def part(self, value: Any, node: ObjectNode | None, mode: _Mode) -> Any:
        if node is not None and node.preserve and mode is _Mode.PRUNE:
            mode = _Mode.SKIP
        if type(value) is dict:
            return self._map(value, node, mode)
        if type(value) is list:
            return self._list(value, node, mode)
        return received(value) if type(value) is int else value

    def _list(self, value: list[Any], node: ObjectNode | None, mode: _Mode) -> list[Any]:
        items = node.items if node is not None else None
        if items is None and mode is _Mode.SKIP:
            mode = _Mode.KEEP
        found = []
        at = self._at
        for i, each in enumerate(value):
            if type(each) is dict or type(each) is list:
                at.append(f"[{i}]")
                found.append(self.part(each, items, mode))
                at.pop()
            else:
                found.append(received(each) if type(each) is int else each)
        return found

    def _map(self, value: dict[str, Any], node: ObjectNode | None, mode: _Mode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if node is None and mode is _Mode.PRUNE:
            for key in value:
                self._drop(key)
            return found
        properties = node.properties if node is not None else {}
        additional = node.additional if node is not None else None
        at = self._at
        for key, each in value.items():
            child = properties.get(key, additional)
            below = mode
            if mode is not _Mode.KEEP and node is not None:
                if node.embedded and key in META_FIELDS:
                    below = _Mode.KEEP
                elif child is not None or node.any_key:
                    below = _Mode.PRUNE
                elif mode is _Mode.PRUNE:
                    self._drop(key)
                    continue
                else:
                    below = _Mode.KEEP
            kind = type(each)
            if kind is dict or kind is list:
                at.append(f".{key}")
                found[key] = self.part(each, child, below)
                at.pop()
            elif kind is int:
                found[key] = received(each)
            elif (
                each is not None
                or child is None
                or child.nullable
                or child.default is not None
                or not self._nulls
            ):
                found[key] = each
        return found

    def _drop(self, key: str) -> None:
        if len(self.unknown) < self._most and (self._at or key not in META_FIELDS):
            self.unknown.append(joined((*self._at, f".{key}")).removeprefix("."))
