"""Compiled rules applied to one object: read at a path of the old version, write at a path of the new one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.core.conversion.fieldpaths import ABSENT, FIRST, Steps, get, put
from crdkeeper.core.conversion.standins import settle
from crdkeeper.core.conversion.template import Template
from crdkeeper.core.conversion.values import NOTHING, Convert, Unconvertible, kind_of


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

    def copy(self, value: Any) -> Any:
        """The object without the fields left to rules. Shares unchanged parts with `value`."""
        if not isinstance(value, dict):
            if not isinstance(value, list) or not value:
                return value
            # A path leads to the first item.
            rest = value[1:] if FIRST in self.skipped else value
            return [self.inner[FIRST].copy(value[0]), *rest[1:]] if FIRST in self.inner else rest
        made = value.copy()
        for key in self.skipped:
            made.pop(key, None)
        for key, tree in self.inner.items():
            if key in made:
                made[key] = tree.copy(made[key])
        return made


@dataclass(frozen=True, slots=True)
class Carry:
    """One field becomes another."""

    source: Steps
    target: Steps
    convert: Convert
    otherwise: Any
    """What the target shows if the value cannot be converted (`standins`)."""

    def __call__(self, value: Any, made: dict[str, Any]) -> None:
        """Apply the rule, from `value` to `made`."""
        found = get(value, self.source)
        if found is ABSENT:
            return
        try:
            put(made, self.target, self.convert(found))
        except NOTHING:
            return
        except Unconvertible as error:
            settle(made, {self.target: self.otherwise}, self.source, error)


@dataclass(frozen=True, slots=True)
class Compute:
    """A field is computed from the whole object, or from one field and the object around it."""

    source: Steps | None
    """If this field is absent, so is the target; None if the target depends on the object alone."""
    target: Steps
    evaluate: Callable[[Any, Any], Any]
    """Called with the object and the value at `source`; null becomes null or nothing, without evaluation."""
    nullable: bool
    """Whether the target can be null."""
    otherwise: Any
    """What the target shows if the evaluation fails (`standins`)."""

    def __call__(self, value: Any, made: dict[str, Any]) -> None:
        """Apply the rule, from `value` to `made`."""
        found = ABSENT if self.source is None else get(value, self.source)
        if self.source is not None and (found is ABSENT or found is None):
            if found is None and self.nullable:
                put(made, self.target, None)
            return
        try:
            put(made, self.target, self.evaluate(value, found))
        except NOTHING:
            return
        except Unconvertible as error:
            settle(made, {self.target: self.otherwise}, self.source or self.target, error)


@dataclass(frozen=True, slots=True)
class Fill:
    """A field that does not exist in the other version gets a value, if the object around it exists."""

    target: Steps
    value: Any

    def __call__(self, value: Any, made: dict[str, Any]) -> None:
        """Apply the rule to `made`, after everything else is in it."""
        if isinstance(get(made, self.target[:-1]), dict):
            put(made, self.target, self.value)


@dataclass(frozen=True, slots=True)
class Split:
    """A string becomes several fields."""

    source: Steps
    template: Template
    parts: Mapping[str, tuple[Steps, Convert]]
    otherwise: Mapping[Steps, Any]
    """What all fields show if one of them is unknown (`standins`)."""

    def __call__(self, value: Any, made: dict[str, Any]) -> None:
        """Apply the rule, from `value` to `made`."""
        found = get(value, self.source)
        if not isinstance(found, str):
            return
        try:
            texts = self.template.split(found)
            fields = {steps: convert(texts[name]) for name, (steps, convert) in self.parts.items()}
        except Unconvertible as error:
            settle(made, self.otherwise, self.source, error)
            return
        for steps, each in fields.items():
            put(made, steps, each)


@dataclass(frozen=True, slots=True)
class JoinAction:
    """Several fields become a string; if one of them is absent, so is the string."""

    target: Steps
    template: Template
    parts: Mapping[str, tuple[Steps, Convert]]
    check: Convert
    """Returns the string, or raises Unconvertible if the field cannot have it."""
    otherwise: Any
    """What the target shows if a part cannot become a string (`standins`)."""

    def __call__(self, value: Any, made: dict[str, Any]) -> None:
        """Apply the rule, from `value` to `made`."""
        texts: dict[str, str] = {}
        for name, (steps, convert) in self.parts.items():
            found = get(value, steps)
            if found is ABSENT or found is None:
                return
            try:
                texts[name] = convert(found)
            except Unconvertible as error:
                settle(made, {self.target: self.otherwise}, steps, error)
                return
        try:
            put(made, self.target, self.check(self.template.join(texts)))
        except Unconvertible as error:
            settle(made, {self.target: self.otherwise}, self.target, error)


Action = Carry | Compute | Fill | Split | JoinAction


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
