"""A CRD from v1beta1 times, put into etcd as in old clusters: the current API server refuses to create one.

Its schema is not structural and unknown fields are preserved. The API server still serves it, reports so in
one flat condition, and neither prunes nor defaults.
"""

import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import APPLY_PATCH
from crdkeeper.core.diagnosis.structure import structure
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.reports.reports import condition_of, report_with

VALIDATION = {
    "openAPIV3Schema": {
        "properties": {
            "metadata": {"properties": {"name": {"type": "string"}, "labels": {"type": "object"}}},
            "spec": {
                "properties": {
                    "engine": {"type": "string", "pattern": "^[a-z]+$"},
                    "ports": {"type": "array", "items": {"properties": {"port": {"type": "integer"}}}},
                    "limits": {"type": "object", "oneOf": [{"type": "object", "required": ["cpu"]}]},
                },
            },
            "status": {"type": "object"},
        },
    }
}
VIOLATIONS = {
    "spec.preserveUnknownFields",
    "spec.versions[0].schema.openAPIV3Schema.type",
    "spec.versions[0].schema.openAPIV3Schema.properties[metadata]",
    "spec.versions[0].schema.openAPIV3Schema.properties[metadata].type",
    "spec.versions[0].schema.openAPIV3Schema.properties[spec].type",
    "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[ports].items.type",
    "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[limits].oneOf[0].type",
}


def as_old_clusters_hold_it(kind: CustomKind) -> dict[str, Any]:
    """The storage form: v1beta1, one schema for all versions, established long ago."""
    names = {"plural": kind.plural, "singular": "database", "kind": kind.kind, "listKind": f"{kind.kind}List"}
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "lastTransitionTime": "2019-01-01T00:00:00Z"}
        for type_, reason in (
            ("NamesAccepted", "NoConflicts"),
            ("Established", "InitialNamesAccepted"),
        )
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.name,
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": "2019-01-01T00:00:00Z",
        },
        "spec": {
            "group": kind.group,
            "version": "v1",
            "versions": [{"name": "v1", "served": True, "storage": True}],
            "scope": "Namespaced",
            "names": names,
            "validation": VALIDATION,
            "subresources": {"status": {}},
            "conversion": {"strategy": "None"},
            "preserveUnknownFields": True,
        },
        "status": {"conditions": conditions, "acceptedNames": names, "storedVersions": ["v1"]},
    }


def condition(crd: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    found = [each for each in crd["status"]["conditions"] if each["type"] == type_]
    return found[0] if found else None


async def test_a_definition_from_the_v1beta1_days(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    admin.etcd.put(kind.definition_key, as_old_clusters_hold_it(kind))
    admin.cleans_up(f"{CRDS}/{kind.name}")

    async def reported() -> Mapping[str, Any] | None:
        return condition(await admin.definition(kind), "NonStructuralSchema")

    server = await eventually(reported, otherwise=lambda: "the API server says nothing of the schema")
    crd = await admin.definition(kind)
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1"
    assert crd["spec"]["preserveUnknownFields"] is True
    assert (server["status"], server["reason"]) == ("True", "Violations")

    # The server joins all in one string; here each has its path, with none more or less than the server's.
    found = structure(crd)
    first, *others = server["message"].removeprefix("[").removesuffix("]").split(", spec.")
    assert sorted(found.shown) == sorted([first, *(f"spec.{each}" for each in others)])
    assert found.violations == 8
    assert {line.partition(": ")[0] for line in found.shown} == VIOLATIONS

    report = await report_with(
        admin, kind.name, NonStructuralSchema="True/Violations", Ready="False/Violations"
    )
    message = condition_of(report, "NonStructuralSchema").message
    assert message.startswith("8 violations: ")
    assert all(path in message for path in VIOLATIONS)

    await keeps_what_it_does_not_know(admin, kind)
    await repair(admin, kind)

    async def clear() -> bool:
        return condition(await admin.definition(kind), "NonStructuralSchema") is None

    await eventually(clear, otherwise=lambda: "the API server still says so")
    await report_with(
        admin,
        kind.name,
        NonStructuralSchema="False/Structural",
        Established="True/Established",
        Ready="True/Healthy",
    )


async def keeps_what_it_does_not_know(admin: Admin, kind: CustomKind) -> None:
    """The meaning of the condition: an unknown field is not pruned."""

    async def created() -> Any:
        body = orjson.dumps(kind.instance("db", unknown={"deep": 1}))
        path = f"{kind.path('db')}?fieldManager=admin"
        answer = await admin.client.send("PATCH", path, content=body, content_type=APPLY_PATCH)
        return answer.json() if answer.code < 300 else None

    stored = await eventually(created, otherwise=lambda: "it is not served")
    assert stored["spec"]["unknown"] == {"deep": 1}


async def repair(admin: Admin, kind: CustomKind) -> None:
    """A structural schema that from now on prunes what was preserved so far."""
    spec = {"preserveUnknownFields": False, "versions": [kind.versions[0].to_object()]}
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": spec})
