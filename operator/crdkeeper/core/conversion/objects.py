"""Converts whole objects between any two versions of a CRD, through the hub, losing nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion import keptaside
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.scope import RuleError, Scope
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.schema.props import Schema

_ANNOTATIONS = "annotations"


class Conversion:
    """A compiled VersionConversion."""

    def __init__(
        self, group: str, schemas: Mapping[str, Schema], hub: str, scopes: Mapping[str, Scope]
    ) -> None:
        self.group = group
        self._schemas = schemas
        self._hub = hub
        self._scopes = scopes
        self._inexact = {version for version, scope in scopes.items() if not scope.exact}
        self._costly = any(scope.costly for scope in scopes.values())

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that objects can have, as `v1`."""
        return tuple(self._schemas)

    def convert(self, value: Mapping[str, Any], version: str) -> dict[str, Any]:
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
        if not self._costly:
            return self._converted(value, source, version)
        # Known already if there are such rules; else nobody needs it.
        from crdkeeper.core.conversion.expressions import limited

        with limited():
            return self._converted(value, source, version)

    def _converted(self, value: Mapping[str, Any], source: str, version: str) -> dict[str, Any]:
        if self._hub in (source, version) and not self._kept(value):
            # The usual case: one step, and nothing to remember.
            made = self._travel(value, source, version)
            if self._exact(source, version):
                return made
            return self._noted(value, made, self._travel(made, version, source), source, version)
        made = self._led(value, source, version)
        return self._noted(value, made, self._led(made, version, source), source, version)

    def _exact(self, *versions: str) -> bool:
        """Whether ways between these versions lose nothing, whatever the object."""
        return self._inexact.isdisjoint(versions)

    def _kept(self, value: Mapping[str, Any]) -> list[tuple[int, str]]:
        """What is kept aside on an object: the order in which it left those versions, and the versions."""
        annotations = (value.get("metadata") or {}).get(_ANNOTATIONS)
        if not annotations:
            return []
        found = []
        for version in self._schemas:
            text = annotations.get(keptaside.PREFIX + version)
            if text is not None:
                found.append((keptaside.read(text).order, version))
        return sorted(found)

    def _led(self, value: Mapping[str, Any], source: str, version: str) -> dict[str, Any]:
        """The object at `version`, by the way that it came: what each version could hold comes back on it."""
        start = source
        for hop in self._hops(value, source, version):
            made = self._travel(value, source, hop)
            if source != start and not self._exact(source, hop):
                made = self._noted(value, made, self._travel(made, hop, source), source, hop)
            value, source = made, hop
        return dict(value)

    def _hops(self, value: Mapping[str, Any], source: str, version: str) -> list[str]:
        """Back by the versions that something is kept for, the last one first, and then on to `version`."""
        goals = [each for _, each in reversed(self._kept(value)) if each != source]
        if version in goals:
            del goals[goals.index(version) :]
        hops: list[str] = []
        for goal in (*goals, version):
            if self._hub not in (source, goal):
                hops.append(self._hub)
            if goal != source:
                hops.append(goal)
            source = goal
        return hops

    def _travel(self, value: Mapping[str, Any], source: str, version: str) -> dict[str, Any]:
        """One step, from a spoke to the hub or from the hub to a spoke."""
        to_hub = version == self._hub
        scope = self._scopes[source if to_hub else version]
        made: dict[str, Any] = scope.to_hub(value) if to_hub else scope.to_spoke(value)
        if scope.moves_metadata:
            made = _without_empty(made)
        made["apiVersion"] = f"{self.group}/{version}"
        return self._arrived(made, version)

    def _arrived(self, made: dict[str, Any], version: str) -> dict[str, Any]:
        """With what was kept aside for this version back in its place."""
        key = keptaside.PREFIX + version
        annotations = (made.get("metadata") or {}).get(_ANNOTATIONS)
        if not annotations or key not in annotations:
            return made
        note = keptaside.read(annotations[key])
        left = _with_annotations(made, {name: each for name, each in annotations.items() if name != key})
        restored: dict[str, Any] = keptaside.restore(left, note.entries, self._schemas[version])
        return restored

    def _noted(
        self, value: Mapping[str, Any], made: dict[str, Any], back: dict[str, Any], source: str, version: str
    ) -> dict[str, Any]:
        """`made` with a note of what the way back would change."""
        side, spoke = (HUB, version) if source == self._hub else (SPOKE, source)
        before = self._scopes[spoke].forgiven(side, value, back)
        # Notes are no part of what is compared: each is made anew where its version is left again.
        entries = keptaside.differences(without_notes(before), without_notes(back), self._schemas[source])
        if not entries:
            return made
        order = max((each for each, _ in self._kept(made)), default=0) + 1
        annotations = dict((made.get("metadata") or {}).get(_ANNOTATIONS) or {})
        annotations[keptaside.PREFIX + source] = keptaside.written(keptaside.Note(order, entries))
        return _with_annotations(made, annotations)


def without_notes(value: Any) -> Any:
    """An object without what is kept aside on it."""
    annotations = (value.get("metadata") or {}).get(_ANNOTATIONS)
    if not annotations:
        return value
    left = {key: each for key, each in annotations.items() if not key.startswith(keptaside.PREFIX)}
    return value if len(left) == len(annotations) else _with_annotations(value, left)


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """An object without maps of labels and annotations that have nothing left; the API server has none."""
    metadata = value.get("metadata") or {}
    left = {key: each for key, each in metadata.items() if each or key not in (_ANNOTATIONS, "labels")}
    return value if len(left) == len(metadata) else {**value, "metadata": left}


def _with_annotations(value: dict[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != _ANNOTATIONS}
    if annotations:
        metadata[_ANNOTATIONS] = annotations
    return {**value, "metadata": metadata}


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
