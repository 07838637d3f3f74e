"""Converts whole objects between any two versions of a CRD, through the hub, losing nothing."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion import keptaside
from crdkeeper.core.conversion.arrival import Arrival, Route, arrived
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.fitting import Fitting
from crdkeeper.core.conversion.metadata import (
    annotations_of,
    compared,
    with_annotations,
    without_empty,
    without_note,
)
from crdkeeper.core.conversion.places import Places
from crdkeeper.core.conversion.scope import RuleError, Scope
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.schema.props import Schema


@dataclass(slots=True)
class Tally:
    """What was met while objects were converted."""

    ignored: int = 0
    """Entries of what was kept aside that were not believed."""


class Conversion:
    """A compiled VersionConversion."""

    def __init__(
        self, group: str, schemas: Mapping[str, Schema], hub: str, scopes: Mapping[str, Scope]
    ) -> None:
        self.group = group
        self._schemas = schemas
        self._hub = hub
        self._scopes = scopes
        self._fittings = {version: Fitting(schema) for version, schema in schemas.items()}
        self._inexact = {version for version, scope in scopes.items() if not scope.exact}
        self._costly = any(scope.costly for scope in scopes.values())

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that objects can have, as `v1`."""
        return tuple(self._schemas)

    def convert(self, value: Mapping[str, Any], version: str, tally: Tally | None = None) -> dict[str, Any]:
        """The object at `version`; `value` is left alone, and what does not change is shared with it.

        Raises Unconvertible, naming the field.
        """
        group, _, source = str(value.get("apiVersion") or "").rpartition("/")
        if group != self.group or source not in self._schemas:
            raise Unconvertible(
                f"apiVersion: {str(value.get('apiVersion'))[:253]!r} is no version of {self.group} known here"
            )
        if version not in self._schemas:
            raise Unconvertible(f"{version} is none of {', '.join(self._schemas)}")
        if version == source:
            return dict(value)
        with self._limited():
            return self._converted(value, source, version, tally or Tally())

    def mistyped(self, value: Mapping[str, Any], version: str) -> Places:
        """Where an object has values of another type than the schema of its version says."""
        found = self._fittings[version].violations(value) or ()
        return Places(each.place for each in found if each.mistyped)

    def _limited(self) -> AbstractContextManager[None]:
        if not self._costly:
            return nullcontext()
        # Known already if there are such rules; else nobody needs it.
        from crdkeeper.core.conversion.expressions import limited

        return limited()

    def _converted(self, value: Mapping[str, Any], source: str, version: str, tally: Tally) -> dict[str, Any]:
        # An object at a version can have nothing aside for that version.
        value = without_note(value, source)
        if self._hub in (source, version):
            step = self._step(value, source, version, tally)
            if self._exact(source, version):
                return step.value
            made, back = step.value, self._origin(step, source, version)
        else:
            made = self._through_hub(value, source, version, tally)
            back = self._through_hub(made, version, source, Tally())
        return self._noted(value, made, back, source, version)

    def _through_hub(
        self, value: Mapping[str, Any], source: str, version: str, tally: Tally
    ) -> dict[str, Any]:
        """From one spoke to another; what the hub could hold and the second cannot is noted for the hub."""
        between = self._step(value, source, self._hub, tally).value
        step = self._step(between, self._hub, version, tally)
        if self._exact(version):
            return step.value
        return self._noted(between, step.value, self._origin(step, self._hub, version), self._hub, version)

    def _exact(self, *versions: str) -> bool:
        """Whether ways between these versions lose nothing, whatever the object."""
        return self._inexact.isdisjoint(versions)

    def _step(self, value: Mapping[str, Any], source: str, version: str, tally: Tally) -> Arrival:
        """From a spoke to the hub or from the hub to a spoke, with what was kept aside for it."""
        made = self._ruled(value, source, version)
        text = annotations_of(made).get(keptaside.PREFIX + version)
        if text is None:
            return Arrival(made)
        side, scope = self._side(version, source)
        route = Route(
            there=partial(self._ruled, source=version, version=source),
            back=partial(self._ruled, source=source, version=version),
            forgiven=partial(scope.forgiven, side),
            movable=scope.movable(side),
            origin=self._fittings[source],
            target=self._fittings[version],
        )
        # To look at what is kept aside is no part of what the object itself may cost.
        with self._limited():
            arrival = arrived(value, without_note(made, version), keptaside.read(text), route)
        tally.ignored += arrival.ignored
        return arrival

    def _origin(self, step: Arrival, source: str, version: str) -> dict[str, Any]:
        """What comes back if an object that arrived at `version` goes back to `source` as it is."""
        return self._ruled(step.value, version, source) if step.origin is None else step.origin

    def _side(self, version: str, other: str) -> tuple[str, Scope]:
        """Which side an object of a version is on in the rules between it and the other, and these."""
        return (HUB, self._scopes[other]) if version == self._hub else (SPOKE, self._scopes[version])

    def _ruled(self, value: Mapping[str, Any], source: str, version: str) -> dict[str, Any]:
        """One step, from a spoke to the hub or from the hub to a spoke, by the rules alone."""
        to_hub = version == self._hub
        scope = self._scopes[source if to_hub else version]
        made: dict[str, Any] = scope.to_hub(value) if to_hub else scope.to_spoke(value)
        if scope.moves_metadata:
            made = without_empty(made)
        made["apiVersion"] = f"{self.group}/{version}"
        return made

    def _noted(
        self, value: Mapping[str, Any], made: dict[str, Any], back: dict[str, Any], source: str, version: str
    ) -> dict[str, Any]:
        """`made` with a note of what the way back would change."""
        side, scope = self._side(source, version)
        before = scope.forgiven(side, value, back)
        if before.get("metadata") is not back.get("metadata"):
            before, back = compared(before), compared(back)
        entries = keptaside.differences(before, back, self._schemas[source])
        if not entries:
            return made
        text = keptaside.written(entries)
        key = keptaside.PREFIX + source
        room = keptaside.room(annotations_of(made), key)
        size = len(text.encode())
        if size > room:
            raise Unconvertible(
                f"{size:,} bytes would have to be kept in an annotation, {room:,} at most can"
            )
        return with_annotations(made, {**annotations_of(made), key: text})


def compile_conversion(
    spec: VersionConversionSpec, schemas: Mapping[str, Schema]
) -> Conversion | Sequence[RuleError]:
    """The conversion of a CRD whose versions have these schemas, or all that is wrong with the rules.

    Every version of the CRD must be the hub or a spoke. The schemas are in the form of `core.schema.props`.
    """
    errors: list[RuleError] = []
    if spec.hub not in schemas:
        errors.append(
            RuleError("spec.hub", f"{spec.hub} is none of the CRD's versions ({', '.join(schemas)})")
        )
    seen = {spec.hub}
    for i, spoke in enumerate(spec.spokes):
        where = f"spec.spokes[{i}].version"
        if spoke.version in seen:
            errors.append(RuleError(where, f"{spoke.version} is named twice"))
        elif spoke.version not in schemas:
            errors.append(
                RuleError(where, f"{spoke.version} is none of the CRD's versions ({', '.join(schemas)})")
            )
        seen.add(spoke.version)
    errors += [
        RuleError("spec.spokes", f"lacks {version}, a version of the CRD")
        for version in schemas
        if version not in seen
    ]
    if errors:
        return errors
    scopes: dict[str, Scope] = {}
    for i, spoke in enumerate(spec.spokes):
        scope = Scope(schemas[spec.hub], schemas[spoke.version], spoke.rules, at=f"spec.spokes[{i}].rules")
        errors += [
            replace(each, where=f"spec.spokes[{i}].version") if each.where == "schema" else each
            for each in scope.errors
        ]
        scopes[spoke.version] = scope
    if errors:
        return errors
    return Conversion(spec.resource.group, {each: schemas[each] for each in schemas}, spec.hub, scopes)
