"""Which fields of a pair of objects the rules cover: each field belongs to one rule."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion import fieldpaths
from crdkeeper.core.conversion.actions import Tree
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.fieldpaths import FIRST, BadPath, Steps, show
from crdkeeper.core.conversion.notes import is_note

_TEXT: Final[Schema] = {"type": "string"}


class RuleField(NamedTuple):
    """A field of one side."""

    steps: Steps
    schema: Schema


class Fields:
    """The fields of both sides, and the rules' claims on them."""

    def __init__(self, schemas: Mapping[str, Schema], *, top: bool) -> None:
        """`schemas` by side; `top` says whether these are whole objects, which have metadata."""
        self._schemas = schemas
        self._top = top
        self.claimed: dict[str, dict[Steps, str]] = {HUB: {}, SPOKE: {}}
        """The rule for each field of each side."""
        self._rests: dict[str, set[Steps]] = {HUB: set(), SPOKE: set()}
        """Fields whose parts other rules may claim."""
        self.trees = {HUB: Tree(), SPOKE: Tree()}
        """What is left to rules, by the side that is read."""

    def claim(self, side: str, text: str, where: str, *, rest: bool = False) -> RuleField:
        """Claim the field of that side for the rule at `where`. Raises BadPath.

        With `rest`, other rules may claim parts of it, and this one covers what they leave.
        """
        steps = fieldpaths.parse(text)
        if self._top:
            fieldpaths.check_top(steps)
            if steps[0] == "metadata" and is_note(steps[2]):
                raise BadPath(f"{show(steps)}: holds what the conversion keeps aside")
        steps = self._resolved(side, steps)
        schema = self.find(side, steps)
        if schema is None:
            raise BadPath(f"{show(steps)}: the {side} has no such field")
        for other, by in self.claimed[side].items():
            part = len(other) < len(steps) and steps[: len(other)] == other
            whole = len(steps) < len(other) and other[: len(steps)] == steps
            if (part and other not in self._rests[side]) or (whole and not rest) or other == steps:
                raise BadPath(f"{show(steps)}: {by} is about {show(other)} already")
        self.claimed[side][steps] = where
        if rest:
            self._rests[side].add(steps)
        self.trees[side].skip(steps)
        return RuleField(steps, schema)

    def find(self, side: str, steps: Steps) -> Schema | None:
        """The schema of a field; None if that side does not have it."""
        if self._top and steps[0] == "metadata":
            return _TEXT
        schema: Any = self._schemas[side]
        for step in steps:
            if not isinstance(schema, Mapping):
                return None
            # What is not a field is a map entry, if there is a map.
            found = schema.get("items") if step == FIRST else schema.get("additionalProperties")
            schema = (schema.get("properties") or {}).get(step, found)
        return schema if isinstance(schema, Mapping) else None

    def _resolved(self, side: str, steps: Steps) -> Steps:
        """The steps, with a key 0 as the first item in a list."""
        for i, step in enumerate(steps):
            around = self.find(side, steps[:i]) if i else None
            if step == "0" and around is not None and around.get("type") == "array":
                steps = (*steps[:i], FIRST, *steps[i + 1 :])
        return steps

    def shared(self, steps: Steps) -> bool:
        """Whether the object around a field exists on both sides, and so remains when the field is removed.

        The parent of a map entry may have another entry of the same name, which would be in the way; and a
        list may be empty.
        """
        if FIRST in steps or (self._top and steps[0] == "metadata"):
            return False
        around = [self.find(side, steps[:-1]) if steps[:-1] else {} for side in (HUB, SPOKE)]
        return all(each is not None and "additionalProperties" not in each for each in around)
