"""A rehearsal without a cluster: the same predictions for objects from files, by the engine alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.rehearsal.definition import compile_definition, version_of
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.report import RehearsalReport, doubts, note_apply, note_unserved
from crdkeeper.core.rehearsal.update import applied

Json = Any


def rehearse_offline(
    manifest: Mapping[str, Any],
    old_manifest: Mapping[str, Any] | None,
    objects: Iterable[Json],
    *,
    conversion: Conversion | None = None,
    old_conversion: Conversion | None = None,
) -> RehearsalReport:
    """Rehearse a new CRD with objects, each assumed to be stored in the version that it is written in.

    Without `old_manifest` the current CRD is unknown: then everything in an object is assumed to be stored.
    Raises UnreadableDefinition.
    """
    report = RehearsalReport(manifest["metadata"]["name"], offline=True)
    document = applied(old_manifest, manifest) if old_manifest is not None else manifest
    said = check_update(document, old_manifest) if old_manifest is not None else check_creation(document)
    if said.violations:
        report.rejections = [f"{each.path}: {each.message}" for each in said.violations]
        return report
    old = compile_definition(old_manifest, old_conversion) if old_manifest is not None else None
    new = compile_definition(document, conversion, old)
    judge = Judge(old, new)
    seen: set[str] = set()
    others = 0
    for obj in objects:
        version = version_of(obj)
        if obj.get("apiVersion") != f"{new.group}/{version}" or obj.get("kind") != new.kind:
            others += 1
            continue
        seen.add(version)
        metadata = obj.get("metadata") or {}
        effects = judge.predict(obj).effects if version in new.versions else [_gone(version)]
        report.tally.add(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), effects)
    report.doubts = [
        *(f"{each.path}: left to the API server: {each.reason}" for each in said.unchecked),
        *doubts(None, new, sorted(seen & new.versions.keys())),
    ]
    if others:
        report.notes.append(f"{others} of the objects are of another kind")
    if old is not None:
        note_unserved(report, old, new)
    note_apply(report)
    return report


def _gone(version: str) -> Effect:
    """The effects on an object whose version the new CRD lacks."""
    message = f"{version} is no version of the new CRD"
    return Effect(EffectKind.UNREADABLE, "apiVersion", version, message, message, "apiVersion")
