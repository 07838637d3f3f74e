"""A rehearsal without a cluster: the same predictions for objects from files, by the engine alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.apiserver.schema.violation import Unchecked
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.rehearsal.definition import compile_definition, version_of
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.report import (
    RehearsalReport,
    doubts,
    note_apply,
    note_conversion,
    note_unserved,
)
from crdkeeper.core.rehearsal.update import applied

Json = Any
_Kind = tuple[str, str]
"""Group and kind."""


class OfflineRehearsal:
    """Rehearses a new CRD with objects, each assumed to be stored in the version that it is written in."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        old_manifest: Mapping[str, Any] | None,
        *,
        conversion: Conversion | None = None,
        old_conversion: Conversion | None = None,
        allowance: SharedAllowance | None = None,
    ) -> None:
        """Without `old_manifest` the current CRD is unknown: then all of an object is assumed to be stored.

        The `allowance` may be shared by several rehearsals. Raises UnreadableDefinition.
        """
        self.report = RehearsalReport(manifest["metadata"]["name"], offline=True)
        self._seen: set[str] = set()
        self._unchecked: list[Unchecked] = []
        document = applied(old_manifest, manifest) if old_manifest is not None else manifest
        said = check_update(document, old_manifest) if old_manifest is not None else check_creation(document)
        self._judge: Judge | None = None
        if said.violations:
            self.report.rejections = [f"{each.path}: {each.message}" for each in said.violations]
            return
        self._unchecked = said.unchecked
        old = compile_definition(old_manifest, old_conversion) if old_manifest is not None else None
        self._judge = Judge(old, compile_definition(document, conversion, old), allowance)

    @property
    def kind(self) -> _Kind | None:
        """Group and kind of the objects to add; None if the API server rejects the CRD."""
        return (self._judge.new.group, self._judge.new.kind) if self._judge is not None else None

    def add(self, obj: Json) -> None:
        """Predict the effects on an object."""
        if self._judge is None:
            return
        version, metadata = version_of(obj), obj.get("metadata") or {}
        self._seen.add(version)
        known = version in self._judge.new.versions
        effects = self._judge.predict(obj).effects if known else [_gone(version)]
        self.report.tally.add(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), effects)

    def finished(self, others: int) -> RehearsalReport:
        """The report, once all objects are added; `others` is how many are of another kind."""
        report, judge = self.report, self._judge
        if judge is None:
            return report
        stored_in = sorted(self._seen & judge.new.versions.keys())
        report.doubts = [
            *(f"{each.path}: left to the API server: {each.reason}" for each in self._unchecked),
            *doubts(None, judge.new, stored_in),
        ]
        if others:
            report.notes.append(f"{others} of the objects are of another kind")
        if judge.old is not None:
            note_unserved(report, judge.old, judge.new)
            note_conversion(report, judge.old, judge.new, stored_in)
        note_apply(report)
        return report


def rehearse_offline(
    rehearsals: Sequence[OfflineRehearsal], objects: Iterable[Json]
) -> list[RehearsalReport]:
    """Add each object to the rehearsals of its kind; returns their reports.

    The objects are not read at all if the API server rejects every CRD.
    """
    by_kind: dict[_Kind, list[OfflineRehearsal]] = {}
    for each in rehearsals:
        if each.kind is not None:
            by_kind.setdefault(each.kind, []).append(each)
    number = 0
    for obj in objects if by_kind else ():
        number += 1
        group, slash, _ = str(obj.get("apiVersion")).rpartition("/")
        for each in by_kind.get((group, str(obj.get("kind"))), ()) if slash else ():
            each.add(obj)
    return [each.finished(number - each.report.tally.objects) for each in rehearsals]


def _gone(version: str) -> Effect:
    """The effects on an object whose version the new CRD lacks."""
    message = f"{version} is no version of the new CRD"
    return Effect(EffectKind.UNREADABLE, "apiVersion", version, message, message, "apiVersion")
