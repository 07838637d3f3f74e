"""Compiled rules applied to one object: read at a path of the old version, write at a path of the new one.

What follows from a rule alone is prepared when it is compiled. A webhook applies each to every object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.core.conversion.fieldpaths import ABSENT, FIRST, Steps, reader, writer
from crdkeeper.core.conversion.standins import settle
from crdkeeper.core.conversion.template import Template
from crdkeeper.core.conversion.values import NOTHING, Convert, Unconvertible, kind_of

Action = Callable[[Any, dict[str, Any]], None]
"""Applies a rule, from an object of one version to that of the other, which is being made."""


@dataclass(slots=True)
class Tree:
    """Which fields of an object are left to rules, at any depth."""

    skipped: set[str] = field(default_factory=set)
    inner: dict[str, "Tree"] = field(default_factory=dict)

    def skip(self, steps: Steps) -> None:
        """Leave this field to a rule."""
        self.own(steps).skipped.add(steps[-1])

    def own(self, steps: Steps) -> "Tree":
        """Copy the objects around this field instead of sharing them: a rule writes into them."""
        tree = self
        for step in steps[:-1]:
            tree = tree.inner.setdefault(step, Tree())
        return tree

    def copier(self) -> Callable[[Any], Any]:
        """Returns a function that copies a value without the fields that are left to rules by now.

        The copy shares unchanged parts with the value.
        """
        skipped = tuple(self.skipped)
        inner = [(key, tree.copier()) for key, tree in self.inner.items()]
        drops_first, copy_first = FIRST in self.skipped, dict(inner).get(FIRST)

        def copy(value: Any) -> Any:
            if isinstance(value, dict):
                made = value.copy()
                for key in skipped:
                    made.pop(key, None)
                for key, copy_inner in inner:
                    if key in made:
                        made[key] = copy_inner(made[key])
                return made
            if not isinstance(value, list) or not value:
                return value
            # A path leads to the first item.
            rest = value[1:] if drops_first else value
            return [copy_first(value[0]), *rest[1:]] if copy_first is not None else rest

        return copy


def carry(source: Steps, target: Steps, convert: Convert, otherwise: Any) -> Action:
    """One field becomes another; it shows `otherwise` if the value cannot be converted (`standins`)."""
    read, write = reader(source), writer(target)

    def act(value: Any, made: dict[str, Any]) -> None:
        found = read(value)
        if found is ABSENT:
            return
        try:
            write(made, convert(found))
        except NOTHING:
            return
        except Unconvertible as error:
            settle(made, {target: otherwise}, source, error)

    return act


def compute(
    source: Steps | None,
    target: Steps,
    evaluate: Callable[[Any, Any], Any],
    otherwise: Any,
    *,
    nullable: bool,
) -> Action:
    """A field is computed from the whole object, or from one field and the object around it.

    `evaluate` is called with the object and the value at `source`. If that field is absent, so is the target;
    null becomes null or, unless the target is `nullable`, nothing. A `source` of None means that the target
    depends on the object alone. The target shows `otherwise` if the evaluation fails (`standins`).
    """
    read = reader(source) if source is not None else None
    write = writer(target)

    def act(value: Any, made: dict[str, Any]) -> None:
        found = ABSENT if read is None else read(value)
        if read is not None and (found is ABSENT or found is None):
            if found is None and nullable:
                write(made, None)
            return
        try:
            write(made, evaluate(value, found))
        except NOTHING:
            return
        except Unconvertible as error:
            settle(made, {target: otherwise}, source or target, error)

    return act


def fill(target: Steps, value: Any) -> Action:
    """A field that does not exist in the other version gets a value, if the object around it exists.

    It must be applied after all other actions.
    """
    around, write = reader(target[:-1]), writer(target)

    def act(_: Any, made: dict[str, Any]) -> None:
        if isinstance(around(made), dict):
            write(made, value)

    return act


def split(
    source: Steps,
    template: Template,
    parts: Mapping[str, tuple[Steps, Convert]],
    otherwise: Mapping[Steps, Any],
) -> Action:
    """A string becomes several fields; all show `otherwise` if one of them is unknown (`standins`)."""
    read = reader(source)
    prepared = [(name, writer(steps), convert) for name, (steps, convert) in parts.items()]

    def act(value: Any, made: dict[str, Any]) -> None:
        found = read(value)
        if not isinstance(found, str):
            return
        try:
            texts = template.split(found)
            fields = [(write, convert(texts[name])) for name, write, convert in prepared]
        except Unconvertible as error:
            settle(made, otherwise, source, error)
            return
        for write, each in fields:
            write(made, each)

    return act


def join(
    target: Steps,
    template: Template,
    parts: Mapping[str, tuple[Steps, Convert]],
    check: Convert,
    otherwise: Any,
) -> Action:
    """Several fields become a string; if one of them is absent, so is the string.

    `check` returns the string, or raises Unconvertible if the field cannot have it. The target shows
    `otherwise` in that case, and if a part cannot become a string (`standins`).
    """
    write = writer(target)
    prepared = [(name, steps, reader(steps), convert) for name, (steps, convert) in parts.items()]

    def act(value: Any, made: dict[str, Any]) -> None:
        texts: dict[str, str] = {}
        at = target
        try:
            for name, steps, read, convert in prepared:
                found = read(value)
                if found is ABSENT or found is None:
                    return
                at = steps
                texts[name] = convert(found)
            at = target
            write(made, check(template.join(texts)))
        except Unconvertible as error:
            settle(made, {target: otherwise}, at, error)

    return act


def over_list(convert: Convert) -> Convert:
    """Apply `convert` to each item of a list."""

    def all_items(value: Any) -> Any:
        if not isinstance(value, list):
            raise Unconvertible(f"{kind_of(value)}, and no list")
        made = []
        for i, each in enumerate(value):
            try:
                made.append(convert(each))
            except Unconvertible as error:
                raise type(error)(f"[{i}]: {error}") from None
        return made

    return all_items


def over_map(convert: Convert) -> Convert:
    """Apply `convert` to each value of a map."""

    def all_values(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Unconvertible(f"{kind_of(value)}, and no map")
        made = {}
        for key, each in value.items():
            try:
                made[key] = convert(each)
            except Unconvertible as error:
                raise type(error)(f"[{key}]: {error}") from None
        return made

    return all_values
