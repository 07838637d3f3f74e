"""Puts values kept aside back into an object, each entry where its field still has the value it predicts.

The entries may be untrusted and numerous: they become one tree, so that a single walk over the object applies
all of them, and list items are found by an index. Values that the schema does not know, or that do not belong
at their place, are refused at once.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.objects.objectnode import META_FIELDS, ObjectNode
from crdkeeper.apiserver.schema.props import PRESERVE
from crdkeeper.core.conversion.fieldpaths import ABSENT
from crdkeeper.core.conversion.keptaside import Entry, canonical, named, same
from crdkeeper.core.conversion.places import ORDER, Place

FREE: Final = ObjectNode({PRESERVE: True})
"""Where the schema allows anything."""

Fits = Callable[[Any, ObjectNode], bool]
"""Whether the schema knows everything in a value at that node."""


@dataclass(slots=True)
class Restored:
    """An object with the values kept aside for it."""

    value: Any = None
    applied: list[tuple[Place, int]] = field(default_factory=list)
    """The applied entries by place."""
    refused: set[int] = field(default_factory=set)
    """Entries that cannot come from an honest note of these rules and schemas."""

    @property
    def places(self) -> Iterator[Place]:
        """Where entries were applied."""
        return (place for place, _ in self.applied)


@dataclass(slots=True)
class _Branch:
    """The entries for a place and below it."""

    entry: int | None = None
    order: int | None = None
    fields: dict[str, "_Branch"] = field(default_factory=dict)
    names: dict[bytes, "_Branch"] = field(default_factory=dict)
    positions: list[int] = field(default_factory=list)

    @property
    def taken(self) -> bool:
        return self.entry is not None or bool(self.fields or self.names or self.positions)

    def below(self) -> Iterator[int]:
        """All entries of the branch."""
        yield from (each for each in (self.entry, self.order) if each is not None)
        yield from self.positions
        for branches in (self.fields, self.names):
            for each in branches.values():
                yield from each.below()


def restore(value: Any, entries: Sequence[Entry], node: ObjectNode, fits: Fits) -> Restored:
    """Return `value` with the entries applied; it shares unchanged parts with `value`.

    Of two entries for one place, or for a place and one within it, the first counts: no honest note has such.
    """
    work = _Work(entries, fits)
    work.made.value = work.at(value, work.tree, node, ())
    return work.made


class _Work:
    def __init__(self, entries: Sequence[Entry], fits: Fits) -> None:
        self.made = Restored()
        self.tree = _Branch()
        self._entries = entries
        self._fits = fits
        for i, entry in enumerate(entries):
            if not self._plant(entry, i):
                self.made.refused.add(i)

    def _plant(self, entry: Entry, i: int) -> bool:
        branch = self.tree
        *way, last = entry["at"]
        if type(last) is not int:
            way.append(last)
        for step in way:
            if branch.entry is not None:
                return False
            if type(step) is str:
                branch = branch.fields.setdefault(step, _Branch())
            else:
                branch = branch.names.setdefault(canonical(step), _Branch())
        if branch.entry is not None:
            return False
        if type(last) is int:
            branch.positions.append(i)
        elif "order" in entry:
            if branch.order is not None:
                return False
            branch.order = i
        elif branch.taken or branch.order is not None:
            return False
        else:
            branch.entry = i
        return True

    def at(self, value: Any, branch: _Branch, node: ObjectNode, place: Place) -> Any:
        """The value for a place."""
        if branch.entry is not None:
            return self._replaced(value, branch.entry, node, place)
        if isinstance(value, dict) and branch.fields:
            return self._fields(value, branch, node, place)
        if isinstance(value, list):
            value = self._items(value, branch, node, place)
            if branch.order is not None:
                value = self._ordered(value, branch.order, node, place)
        return value

    def _replaced(self, value: Any, i: int, node: ObjectNode, place: Place) -> Any:
        entry = self._entries[i]
        if not same(value, entry.get("is", ABSENT)):
            return value
        was = entry.get("was", ABSENT)
        if was is not ABSENT and not self._fits(was, node):
            self.made.refused.add(i)
            return value
        self.made.applied.append((place, i))
        return was

    def _fields(
        self, value: dict[str, Any], branch: _Branch, node: ObjectNode, place: Place
    ) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        for key, inner in branch.fields.items():
            below = _field(node, key)
            if below is None:
                self.made.refused.update(inner.below())
                continue
            before = value.get(key, ABSENT)
            after = self.at(before, inner, below, (*place, key))
            if after is not before:
                changed[key] = after
        if not changed:
            return value
        return {key: each for key, each in {**value, **changed}.items() if each is not ABSENT}

    def _items(self, items: list[Any], branch: _Branch, node: ObjectNode, place: Place) -> list[Any]:
        below = node.items or (FREE if node.preserve else None)
        if below is None:
            return items
        made = list(items)
        positions = named(items, _keys(node)) if branch.names else None
        for name, inner in branch.names.items():
            for key in node.map_keys:
                if key in inner.fields:
                    # The key of an item cannot have been lost: it was used to find it.
                    self.made.refused.update(inner.fields.pop(key).below())
            i = (positions or {}).get(name)
            if i is not None:
                after = self.at(items[i], inner, below, (*place, name))
                made[i] = items[i] if after is ABSENT else after
        if branch.positions:
            self._replace_items(made, branch.positions, below, place)
        return items if all(one is other for one, other in zip(items, made, strict=True)) else made

    def _replace_items(self, items: list[Any], entries: list[int], node: ObjectNode, place: Place) -> None:
        """Each entry replaces an item with the predicted value: at its position, or the first one."""
        texts = [canonical(each) for each in items]
        free: dict[bytes, deque[int]] = {}
        for i, text in enumerate(texts):
            free.setdefault(text, deque()).append(i)
        used: set[int] = set()
        for number in entries:
            entry = self._entries[number]
            if "is" not in entry or "was" not in entry:
                self.made.refused.add(number)
                continue
            text, i = canonical(entry["is"]), entry["at"][-1]
            if not (i < len(items) and texts[i] == text and i not in used):
                left = free.get(text, deque())
                while left and left[0] in used:
                    left.popleft()
                if not left:
                    continue
                i = left[0]
            used.add(i)
            items[i] = self._replaced(items[i], number, node, (*place, i))

    def _ordered(self, items: list[Any], i: int, node: ObjectNode, place: Place) -> list[Any]:
        """A list-type map in that order of its items' keys; unnamed items come last."""
        positions = named(items, _keys(node))
        if positions is None:
            return items
        order = self._entries[i]["order"]
        places = {canonical(name): rank for rank, name in enumerate(order)}
        made = [
            items[positions[name]]
            for name in sorted(positions, key=lambda name: places.get(name, len(order)))
        ]
        if all(one is other for one, other in zip(items, made, strict=True)):
            return items
        self.made.applied.append(((*place, ORDER), i))
        return made


def _keys(node: ObjectNode) -> Sequence[str] | None:
    return node.map_keys if node.list_type == "map" else None


def _field(node: ObjectNode, key: str) -> ObjectNode | None:
    """The schema of a field; None if no field can have that name."""
    found = node.child(key)
    if found is None and (node.any_key or node.preserve or (node.embedded and key in META_FIELDS)):
        return FREE
    return found
