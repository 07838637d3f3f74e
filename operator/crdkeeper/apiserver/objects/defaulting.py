"""Defaults: absent fields get the defaults of their schema, from the top down (defaulting.Default)."""

from typing import Any, Final

from crdkeeper.apiserver.objects.effort import spend_on_defaults
from crdkeeper.apiserver.objects.objectnode import ObjectNode, copied
from crdkeeper.apiserver.objects.surrounding import Surrounding

_PORTION: Final = 1_000
"""Values that are added before they count: most objects get less, and to count them takes time, too."""


def fill(value: Any, node: ObjectNode) -> None:
    """Set the defaults in an object or list, in place. Raises UndecidedValue.

    A null that the schema does not allow counts as absent. Defaults are set inside defaults, too.
    """
    if node.has_defaults:
        _Filler().part(value, node)


class _Filler:
    __slots__ = ("_added",)

    def __init__(self) -> None:
        self._added = 0

    def part(self, value: Any, node: ObjectNode) -> None:
        if not node.has_defaults:
            return
        if type(value) is dict:
            self._map(value, node)
        elif type(value) is list and node.items is not None:
            items = node.items
            for i, each in enumerate(value):
                if each is None and not items.nullable:
                    value[i] = self._default(items)
                self.part(value[i], items)

    def _map(self, value: dict[str, Any], node: ObjectNode) -> None:
        for name, child in node.fills:
            if name not in value:
                value[name] = self._default(child)
        properties, additional = node.properties, node.additional
        for key, each in value.items():
            below = properties.get(key, additional)
            if below is None or not (below.has_defaults or below.default is not None):
                continue
            if each is None and not below.nullable:
                value[key] = self._default(below)
            self.part(value[key], below)

    def _default(self, node: ObjectNode) -> Any:
        self._added += node.default_size
        if self._added >= _PORTION:
            spend_on_defaults(self._added)
            self._added = 0
        return node.default if node.default_size == 1 else copied(node.default)


def prune_defaults(node: ObjectNode, around: Surrounding) -> None:
    """Remove from the defaults of a schema what would be pruned from an object (defaulting.PruneDefaults).

    A CRD may have such defaults inside maps, where they are not checked. `around` is the place of the
    schema's value. Raises UndecidedValue.
    """
    if node.default is not None:
        node.default = around.kept(node.default)
    below = [(each, around.child(name)) for name, each in node.properties.items()]
    if node.additional is not None:
        below.append((node.additional, around.child("*")))
    if node.items is not None:
        below.append((node.items, around.index()))
    for child, inner in below:
        if child.has_defaults or child.default is not None:
            prune_defaults(child, inner)
    node.fills = [(name, each) for name, each in node.fills if each.default is not None]
