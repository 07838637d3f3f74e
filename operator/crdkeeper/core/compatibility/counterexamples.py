"""Finds an object that the old CRD accepts and the new one refuses: then a change is breaking, and not risky.

Values are made up for the field that changed, and tried by the engine that decides as the API server does:
first the field by itself, where only the keyword in question is the new one, so that no other change can be
to blame; then in a whole object, on both schemas of the version. Where none is found, nothing is proved.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import limited
from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema
from crdkeeper.core.compatibility.candidates import MOST, values_of
from crdkeeper.core.compatibility.findings import Changes
from crdkeeper.core.compatibility.node import NOTHING_FOUND, FieldPair, Tried, shown
from crdkeeper.core.compatibility.ruleparsing import names_old_self
from crdkeeper.core.compatibility.same import size
from crdkeeper.core.conversion.samples import around

_MOST_FIELDS: Final = 20
"""How many fields of one version are tried with examples."""
_MOST_BYTES: Final = 1 << 20
"""The largest schema for which examples are tried."""
_MOST_MATCHING: Final = 100_000_000
"""Steps of all patterns, for one field."""
_MOST_SHOWN: Final = 20_000
"""The largest example that is shown, in bytes."""
_BYTES_PER_STEP: Final = 20
_STEPS_PER_VALUE: Final = 20
_ITEM: Final = "[]"
_IDENTITY: Final[Mapping[str, Any]] = {
    "apiVersion": "example.com/v1",
    "kind": "Example",
    "metadata": {"name": "example"},
}


class Counterexamples:
    """Looks for objects of one version that its new schema refuses."""

    def __init__(self, old: Schema, new: Schema, path: Path, findings: Changes) -> None:
        """`path` is that of the old schema in the CRD."""
        self._old, self._new = old, new
        self._depth = len(path.steps)
        self._findings = findings
        self._left = _MOST_FIELDS if max(size(old), size(new)) <= _MOST_BYTES else 0
        self._compiled: tuple[ObjectSchema, ObjectSchema] | None = None

    def try_out(self, node: FieldPair, changed: Mapping[str, Any], *, breaking: bool) -> Tried:
        """What comes of values of a field; of a breaking change only where that may show that it is safe.

        Raises Exhausted.
        """
        finite = bool(node.old.get("enum")) or node.old.get("type") == "boolean"
        # Only new objects are tried, which shows nothing of updates.
        finite = finite and not any(
            names_old_self(each.get("rule", "")) for each in changed.get(VALIDATIONS, ())
        )
        if not finite:
            if breaking or self._left <= 0:
                return NOTHING_FOUND
            self._left -= 1
        try:
            with limited(_MOST_MATCHING):
                return self._tried(node, changed, finite=finite)
        except (CannotCompile, RecursionError):
            return NOTHING_FOUND

    def _tried(self, node: FieldPair, changed: Mapping[str, Any], *, finite: bool) -> Tried:
        self._findings.spend(2 * (size(node.old) + size(node.new)) // _BYTES_PER_STEP)
        before, after = _field(node.old), _field(_with(changed, node))
        place = _place(node.old_path.steps[self._depth :])
        safe = finite
        for number, value in enumerate(values_of(node.old, node.new)):
            if number >= MOST:
                return NOTHING_FOUND
            self._findings.spend(_STEPS_PER_VALUE)
            if before.admit(_object({"x": value})).accepted is False:
                continue
            accepted = after.admit(_object({"x": value})).accepted
            safe = safe and accepted is True
            if accepted is False and _refuses(after, {"x": value}):
                whole = self._whole(place, value)
                if whole is not None:
                    return Tried(shown(value), whole, none_exists=False)
        return Tried(None, None, none_exists=safe)

    def _whole(self, place: tuple[str, ...], value: Any) -> dict[str, Any] | None:
        """An object with the value that was accepted and is refused; None if none can be made."""
        if self._compiled is None:
            self._findings.spend((size(self._old) + size(self._new)) // _BYTES_PER_STEP)
            self._compiled = ObjectSchema.of(self._old), ObjectSchema.of(self._new)
        whole = _put(around(self._old, place), place, copy.deepcopy(value))
        old, new = self._compiled
        if whole is None or size(whole) > _MOST_SHOWN or old.admit(_object(whole)).accepted is not True:
            return None
        return whole if _refuses(new, whole) else None


def _place(steps: tuple[str | int, ...]) -> tuple[str, ...]:
    """The way to a field in objects, from that in their schema."""
    found: list[str] = []
    rest = iter(steps)
    for step in rest:
        found.append(str(next(rest)) if step == "properties" else _ITEM)
    return tuple(found)


def _field(schema: Schema) -> ObjectSchema:
    return ObjectSchema.of({"type": "object", "properties": {"x": schema}})


def _with(changed: Mapping[str, Any], node: FieldPair) -> Schema:
    """The old schema with keywords as they are given; None stands for none."""
    made = {**node.old, **changed}
    if VALIDATIONS in changed and "properties" in node.new:
        # Rules may name fields that are new.
        made["properties"] = {**node.new["properties"], **(node.old.get("properties") or {})}
    return {name: each for name, each in made.items() if each is not None}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**_IDENTITY, **fields}


def _refuses(schema: ObjectSchema, fields: Mapping[str, Any]) -> bool:
    admitted = schema.admit(_object(fields))
    # A rule that does not compile refuses all objects, but before that, the CRD is refused itself.
    return admitted.accepted is False and not any("compile" in each.detail for each in admitted.violations)


def _put(obj: Any, place: tuple[str, ...], value: Any) -> Any:
    """The object with the value at its place; None if there is no such place in it."""
    if not place:
        return value
    at = obj
    for i, step in enumerate(place):
        key: Any = step
        if step == _ITEM:
            key = 0 if isinstance(at, list) else next(iter(at), None) if isinstance(at, dict) else None
            if key is None or (isinstance(at, list) and not at):
                return None
        elif not isinstance(at, dict):
            return None
        if i == len(place) - 1:
            at[key] = value
        elif step == _ITEM or key in at:
            at = at[key]
        else:
            return None
    return obj
