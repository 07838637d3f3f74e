"""Places in an object: where entries were restored, where two objects differ, where a schema is violated."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdkeeper.core.conversion.keptaside import Entry, canonical

Place = tuple[str | int | bytes | None, ...]
"""Keys, positions, keys of items of a list-type map, and `ORDER` at the end."""
ORDER: Final = None
"""The last step to the order of a list, which is separate from its items."""

_HERE: Final = object()
"""Marks the end of a place in a tree of places."""
_POSITIONS: Final = object()
"""Leads to items identified by position."""
_NAMES: Final = object()
"""Leads to items identified by key."""


def place_of(entry: Entry) -> Place:
    """The place of an entry."""
    steps = [step if isinstance(step, str | int) else canonical(step) for step in entry["at"]]
    return (*steps, ORDER) if "order" in entry else tuple(steps)


class Places:
    """A set of places as a tree, so that many can be compared with many.

    An item identified by its position may be any of those identified by their keys.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self._tree: dict[Any, Any] = {}
        for place in places:
            tree = self._tree
            for step in place:
                if type(step) is int:
                    tree[_POSITIONS] = True
                elif type(step) is bytes:
                    tree[_NAMES] = True
                tree = tree.setdefault(step, {})
            tree[_HERE] = True

    def around(self, place: Place) -> bool:
        """Whether one of them is this place or contains it."""
        tree = self._tree
        for step in place:
            if _HERE in tree or _crossed(tree, step):
                return True
            tree = tree.get(step, {})
        return _HERE in tree

    def within(self, place: Place) -> bool:
        """Whether one of them is this place or inside it."""
        tree = self._tree
        for step in place:
            if _crossed(tree, step):
                return True
            if step not in tree:
                return False
            tree = tree[step]
        return bool(tree)

    def meets(self, place: Place) -> bool:
        """Whether one of them is this place, inside it, or contains it."""
        return bool(self._tree) and (self.around(place) or self.within(place))


def _crossed(tree: Mapping[Any, Any], step: str | int | bytes | None) -> bool:
    if type(step) is int:
        return _NAMES in tree
    return type(step) is bytes and _POSITIONS in tree
