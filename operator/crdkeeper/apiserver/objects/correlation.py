"""A value with its old one: ratcheting tolerates what an update leaves unchanged.

Follows CorrelatedObject (apiserver: pkg/cel/common): items have an old value only in map lists, by their
keys, and a field without a schema has none, so an object with such a field always counts as changed.
"""

from typing import Any, Final

from crdkeeper.apiserver.objects.jsonvalue import same
from crdkeeper.apiserver.objects.objectnode import ObjectNode

_Key = tuple[Any, ...]
_SCALARS: Final = (bool, float, int, str)


class MapList:
    """The items of a map list by their keys; empty for any other list."""

    def __init__(self, node: ObjectNode, items: list[Any]) -> None:
        self._names = node.map_keys
        self._items: dict[_Key, Any] = {}
        if node.type != "array" or node.list_type != "map" or not node.map_keys:
            return
        for each in items:
            key = self._key(each)
            if key is not None:
                self._items.setdefault(key, each)

    def get(self, item: Any) -> Any:
        """The item with the same keys; None if there is none."""
        key = self._key(item)
        return None if key is None else self._items.get(key)

    def _key(self, item: Any) -> _Key | None:
        if type(item) is not dict:
            return None
        found: list[Any] = []
        several = len(self._names) > 1
        for name in self._names:
            value = item.get(name)
            kind = type(value)
            if kind not in _SCALARS:
                return None
            # Next to other keys, only the first six digits of a float count.
            found.append((kind, f"{value:f}" if several and kind is float else value))
        return tuple(found)


class Correlated:
    """A value, its old value, and the schema of both."""

    __slots__ = ("_children", "_map_list", "_node", "_unchanged", "old", "value")

    def __init__(self, value: Any, old: Any, node: ObjectNode) -> None:
        self.value = value
        self.old = old
        self._node = node
        self._children: dict[str | int, Correlated] = {}
        self._map_list: MapList | None = None
        self._unchanged: bool | None = None

    def key(self, key: str) -> "Correlated | None":
        """A field that both have, if the schema contains it."""
        found = self._children.get(key)
        if found is None:
            if type(self.value) is not dict or type(self.old) is not dict:
                return None
            if key not in self.value or key not in self.old:
                return None
            node = self._node.child(key)
            if node is None:
                return None
            found = self._children[key] = Correlated(self.value[key], self.old[key], node)
        return found

    def index(self, index: int) -> "Correlated | None":
        """An item of a map list, with the old one that has the same keys."""
        found = self._children.get(index)
        if found is None:
            if type(self.value) is not list or type(self.old) is not list or self._node.list_type != "map":
                return None
            if self._map_list is None:
                self._map_list = MapList(self._node, self.old)
            old = self._map_list.get(self.value[index])
            if old is None or self._node.items is None:
                return None
            found = self._children[index] = Correlated(self.value[index], old, self._node.items)
        return found

    def unchanged(self) -> bool:
        """Whether the value equals the old one."""
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if type(value) is not type(old):
            return False
        if type(value) is dict:
            return len(value) == len(old) and all(_unchanged(self.key(key)) for key in value)
        if type(value) is list:
            if len(value) != len(old):
                return False
            if self._node.list_type != "map":
                return same(value, old)
            return all(_unchanged(self.index(i)) for i in range(len(value)))
        return same(value, old)


def _unchanged(child: Correlated | None) -> bool:
    return child is not None and child.unchanged()
