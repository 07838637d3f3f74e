"""Crossplane's Compositions of patches and transforms, and what their imports render."""

from typing import Any

from crdkeeper.core.importing.note import ImportedComposition
from crdkeeper.core.importing.pipeline import imported
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from tests.unit.core.templates.compositions import DATABASE, SERVER, in_files, rendered

Json = Any
BASE: Json = {"apiVersion": "example.com/v1", "kind": "Server", "spec": {}}
INPUT: Json = {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"}


_TEXT: Json = {"type": "string"}
_CONDITION: Json = {"type": "object", "properties": {"type": _TEXT, "status": _TEXT}}
_SERVER: Json = SERVER
_STATUS: Json = {
    "type": "object",
    "properties": {
        **_SERVER["properties"]["status"]["properties"],
        "conditions": {"type": "array", "items": _CONDITION},
    },
}
KINDS: KnownKinds = {
    ("example.com/v1", "Server"): TargetKind(
        {**_SERVER, "properties": {**_SERVER["properties"], "status": _STATUS}}, True
    )
}


def composition(*resources: Json, sets: Json = None, **spec: Json) -> Json:
    """One whose pipeline has one step."""
    given = {**INPUT, "resources": list(resources), **({"patchSets": sets} if sets else {})}
    step = {"step": "one", "functionRef": {"name": "function-patch-and-transform"}, "input": given}
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "databases", "labels": {"tier": "gold"}},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.com/v1", "kind": "Database"},
            "mode": "Pipeline",
            "pipeline": [step],
            **spec,
        },
    }


def server(*patches: Json, base: Json = None, name: str = "server", **fields: Json) -> Json:
    return {"name": name, "base": {**BASE, "spec": base or {}}, "patches": list(patches), **fields}


def notes(found: ImportedComposition) -> list[str]:
    return [f"{each.path}: {each.message}" for each in found.notes if each.remedy]


def made(*resources: Json, given: Json = DATABASE, observed: Json = (), **fields: Json) -> Json:
    """The rendering of an import without decisions."""
    found = imported(composition(*resources, **fields))
    assert notes(found) == []
    spec = found.composition["spec"]
    return rendered(
        *spec["resources"],
        given=given,
        observed=in_files(*observed),
        status=spec.get("status", {}),
        kinds=KINDS,
    )


def fields_of(*patches: Json, base: Json = None, given: Json = DATABASE, **more: Json) -> Json:
    (one,) = made(server(*patches, base=base), given=given, **more).objects
    return one.get("spec", {})


def patch(source: str, target: str, *transforms: Json, **fields: Json) -> Json:
    of = {"fromFieldPath": source, "toFieldPath": target, **fields}
    return {**of, **({"transforms": list(transforms)} if transforms else {})}


def text(**of: Json) -> Json:
    return {"type": "string", "string": of}
