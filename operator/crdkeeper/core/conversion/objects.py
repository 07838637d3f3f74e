"""Converts whole objects between any two versions of a CRD, through the hub, without losses."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion import keptaside
from crdkeeper.core.conversion.arrival import Arrival, Route, arrived
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.fitting import Fitting, Violated
from crdkeeper.core.conversion.metadata import annotations_of, without_annotations, without_empty
from crdkeeper.core.conversion.notes import compared, fits, note_of, with_note, without_note
from crdkeeper.core.conversion.places import Places
from crdkeeper.core.conversion.scope import RuleError, Scope
from crdkeeper.core.conversion.standins import count_one, met
from crdkeeper.core.conversion.values import Unconvertible


@dataclass(slots=True)
class ConversionTally:
    """Counts of what happened while objects were converted."""

    ignored: int = 0
    """Entries of notes that were not believed."""
    stand_ins: int = 0
    """Values without counterpart at the new version (`standins`)."""

    def add(self, other: "ConversionTally") -> None:
        """Count what happened to another object, or on a part of its way, too."""
        self.ignored += other.ignored
        self.stand_ins += other.stand_ins


class Conversion:
    """A compiled VersionConversion."""

    def __init__(
        self,
        group: str,
        schemas: Mapping[str, Schema],
        hub: str,
        scopes: Mapping[str, Scope],
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
        """The versions that objects can have, such as `v1`."""
        return tuple(self._schemas)

    def convert(
        self, value: Mapping[str, Any], version: str, tally: ConversionTally | None = None
    ) -> dict[str, Any]:
        """The object at `version`; does not change `value`, but shares unchanged parts with it.

        Raises Unconvertible, naming the field: because of a rule that refuses, and for too deep nesting.
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
        # An object at a version cannot have a note for that version.
        return self._converted(without_note(value, source), source, version, tally or ConversionTally())

    def mistyped(self, value: Mapping[str, Any], version: str) -> Places:
        """The places where an object has a value of another type than in the schema of its version."""
        found = self._fittings[version].violations(value) or ()
        return Places(each.place for each in found if each.mistyped)

    def _limited(self) -> AbstractContextManager[None]:
        if not self._costly:
            return nullcontext()
        # Already known if there are such rules; otherwise not needed.
        from crdkeeper.core.conversion.expressions import limited

        return limited()

    def _converted(
        self, value: Mapping[str, Any], source: str, version: str, tally: ConversionTally
    ) -> dict[str, Any]:
        if self._hub in (source, version):
            before = tally.stand_ins
            step = self._step(value, source, version, tally)
            if self._exact(source, version) and tally.stand_ins == before:
                return step.value
            made, back = step.value, self._origin(step, source, version)
        else:
            made = self._through_hub(value, source, version, tally)
            back = self._through_hub(made, version, source, ConversionTally())
        return self._noted(value, made, back, source, version)

    def _through_hub(
        self, value: Mapping[str, Any], source: str, version: str, tally: ConversionTally
    ) -> dict[str, Any]:
        """Converts from one spoke to another; values that only the hub can hold are noted for the hub."""
        first = ConversionTally()
        step = self._step(value, source, self._hub, first)
        made = self._onward(step.value, version, first)
        if step.ignored:
            # What a spoke allows, the hub may not, such as an object without a field that it requires.
            second = ConversionTally()
            other = self._step(value, source, self._hub, second, passing=True).value
            if not keptaside.same(step.value, other):
                with suppress(Unconvertible, RecursionError):
                    allowed = self._onward(other, version, second)
                    if self._is_as_valid(allowed, made, version):
                        first, made = second, allowed
        tally.add(first)
        return made

    def _is_as_valid(self, value: Mapping[str, Any], known: Mapping[str, Any], version: str) -> bool:
        """Whether an object violates the schema nowhere but where the known one does."""
        violated = self._fittings[version].violations(value)
        before = self._fittings[version].violations(known) if violated else frozenset[Violated]()
        return violated is not None and before is not None and violated <= before

    def _onward(self, between: Mapping[str, Any], version: str, tally: ConversionTally) -> dict[str, Any]:
        """From the hub, on the way from a spoke to another one."""
        before = tally.stand_ins
        step = self._step(between, self._hub, version, tally)
        if self._exact(version) and tally.stand_ins == before:
            return step.value
        back = self._origin(step, self._hub, version)
        return self._noted(between, step.value, back, self._hub, version)

    def _exact(self, *versions: str) -> bool:
        """Whether conversion between these versions never loses anything, for any object."""
        return self._inexact.isdisjoint(versions)

    def _step(
        self,
        value: Mapping[str, Any],
        source: str,
        version: str,
        tally: ConversionTally,
        *,
        passing: bool = False,
    ) -> Arrival:
        """Converts from a spoke to the hub or vice versa, and applies the note for the target."""
        before = met()
        made = self._ruled(value, source, version)
        tally.stand_ins += met() - before
        text = note_of(made, version)
        made = without_note(made, version)
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
            passing=passing,
        )
        arrival = arrived(value, made, keptaside.read(text), route)
        tally.ignored += arrival.ignored
        return arrival

    def _origin(self, step: Arrival, source: str, version: str) -> dict[str, Any]:
        """The result of converting an object that arrived at `version` back to `source` without edits."""
        return self._ruled(step.value, version, source) if step.origin is None else step.origin

    def _side(self, version: str, other: str) -> tuple[str, Scope]:
        """The side of a version in the rules between it and the other version, and these rules."""
        return (HUB, self._scopes[other]) if version == self._hub else (SPOKE, self._scopes[version])

    def _ruled(self, value: Mapping[str, Any], source: str, version: str) -> dict[str, Any]:
        """One step, from a spoke to the hub or vice versa, by the rules alone."""
        to_hub = version == self._hub
        scope = self._scopes[source if to_hub else version]
        # Its own limit for each step: a trial must have the same result as the real conversion.
        with self._limited():
            made: dict[str, Any] = scope.to_hub(value) if to_hub else scope.to_spoke(value)
        if scope.moves_metadata:
            written = scope.movable(HUB if to_hub else SPOKE)
            if not fits(annotations_of(made), besides=version):
                # The API server would reject the answer. What rules have put there remains aside instead.
                made = without_annotations(made, written)
                count_one()
            made = without_empty(made)
        made["apiVersion"] = f"{self.group}/{version}"
        return made

    def _noted(
        self,
        value: Mapping[str, Any],
        made: dict[str, Any],
        back: dict[str, Any],
        source: str,
        version: str,
    ) -> dict[str, Any]:
        """`made` with a note of what the way back would change."""
        side, scope = self._side(source, version)
        before = scope.forgiven(side, value, back)
        if before.get("metadata") is not back.get("metadata"):
            before, back = compared(before), compared(back)
        entries = keptaside.differences(before, back, self._schemas[source])
        return with_note(made, source, keptaside.written(entries)) if entries else made


def compile_conversion(
    spec: VersionConversionSpec, schemas: Mapping[str, Schema], *, refuse: bool = False
) -> Conversion | Sequence[RuleError]:
    """Compile the conversion of a CRD whose versions have these schemas, or return all errors in the rules.

    Every version of the CRD must be the hub or a spoke. The schemas are those of `apiserver.schema.props`.
    With `refuse`, a value without counterpart raises Unconvertible, whatever the rules say.
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
        scope = Scope(
            schemas[spec.hub],
            schemas[spoke.version],
            spoke.rules,
            at=f"spec.spokes[{i}].rules",
            refuse=refuse,
        )
        errors += [
            replace(each, where=f"spec.spokes[{i}].version") if each.where == "schema" else each
            for each in scope.errors
        ]
        scopes[spoke.version] = scope
    if errors:
        return errors
    return Conversion(spec.resource.group, {each: schemas[each] for each in schemas}, spec.hub, scopes)
