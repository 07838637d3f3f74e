"""Places in an object: where entries were put back, where two objects differ, where a schema is violated."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdkeeper.core.conversion.keptaside import Entry, canonical

Place = tuple[str | int | bytes | None, ...]
"""Keys, positions, names of items of a list-type map, and `ORDER` at the end."""
ORDER: Final = None
"""The last step to the order of a list, which is a matter of its own."""

_HERE: Final = object()
"""In a tree of places: one ends here."""
_POSITIONS: Final = object()
"""Items that are known by their positions go on from here."""
_NAMES: Final = object()
"""Items that are known by their names do."""


def place_of(entry: Entry) -> Place:
    """Where an entry says that something is."""
    steps = [step if isinstance(step, str | int) else canonical(step) for step in entry["at"]]
    return (*steps, ORDER) if "order" in entry else tuple(steps)


class Places:
    """A set of places as a tree, so that many can be compared with many.

    An item that is known by its position may be any of those that are known by their names.
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
        """Whether one of them is this place, or what it is in."""
        tree = self._tree
        for step in place:
            if _HERE in tree or _crossed(tree, step):
                return True
            tree = tree.get(step, {})
        return _HERE in tree

    def within(self, place: Place) -> bool:
        """Whether one of them is this place, or in it."""
        tree = self._tree
        for step in place:
            if _crossed(tree, step):
                return True
            if step not in tree:
                return False
            tree = tree[step]
        return bool(tree)

    def meets(self, place: Place) -> bool:
        """Whether one of them is this place, in it, or what it is in."""
        return bool(self._tree) and (self.around(place) or self.within(place))


def _crossed(tree: Mapping[Any, Any], step: str | int | bytes | None) -> bool:
    if type(step) is int:
        return _NAMES in tree
    return type(step) is bytes and _POSITIONS in tree
