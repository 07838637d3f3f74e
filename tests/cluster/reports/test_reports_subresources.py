"""SubresourcesReady on a real API server: what it accepts in a CRD, and the resulting /scale."""

from collections.abc import Mapping
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import MERGE_PATCH
from crdkeeper.operations.retirement.evidence import gather_evidence
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.customkind import SPEC, STATUS
from tests.cluster.reports.live.scene import change, change_versions, let_read
from tests.cluster.reports.reports import condition_of, found, report_with
from tests.kstatus import status_of

CONDITION = {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}


def scaled(selector: str | None = ".status.selector", replicas: str = ".spec.replicas") -> dict[str, Any]:
    """Both subresources, with these paths."""
    scale = {"specReplicasPath": replicas, "statusReplicasPath": ".status.replicas"}
    return {"status": {}, "scale": {**scale, **({"labelSelectorPath": selector} if selector else {})}}


def schema(status: Mapping[str, Any] | None = None, *, default: bool = True) -> dict[str, Any]:
    """The harness' schema with these additional fields of status; replicas has a default or not."""
    replicas = {"type": "integer", **({"default": 1} if default else {})}
    properties = {
        "spec": {**SPEC, "properties": {**SPEC["properties"], "replicas": replicas}},
        "status": {**STATUS, "properties": {**STATUS["properties"], **(status or {})}},
    }
    return {"openAPIV3Schema": {"type": "object", "properties": properties}}


GOOD = {"replicas": {"type": "integer"}, "selector": {"type": "string"}}


async def test_paths_and_conditions(admin: Admin, operator: Operator, group: str) -> None:
    """The API server accepts all of these."""
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, SubresourcesReady="True/Declared")
    await let_read(admin, group)

    await change_versions(admin, kind, subresources=scaled(), schema=schema())
    report = await report_with(
        admin,
        kind.name,
        SubresourcesReady="False/ScalePathNotDeclared",
        Ready="True/Healthy",
    )
    assert status_of(found(admin, "defrep", kind.name)) == "Current"
    message = condition_of(report, "SubresourcesReady").message
    assert (
        "spec.versions[0].subresources.scale.statusReplicasPath: the schema has no .status.replicas"
        in message
    )

    wrong = {**GOOD, "selector": {"type": "object"}}
    await change_versions(admin, kind, schema=schema(wrong))
    report = await report_with(
        admin, kind.name, SubresourcesReady="False/ScalePathWrongType", Ready="True/Healthy"
    )
    message = condition_of(report, "SubresourcesReady").message
    assert ".status.selector must be of type string, but is of type object" in message

    malformed = {"conditions": {"type": "array", "items": {"type": "string"}}}
    await change_versions(admin, kind, schema=schema({**GOOD, **malformed}))
    await report_with(admin, kind.name, SubresourcesReady="True/ConditionsMalformed", Ready="True/Healthy")
    assert status_of(found(admin, "defrep", kind.name)) == "Current"

    good = {"conditions": {"type": "array", "items": CONDITION}}
    await change_versions(admin, kind, schema=schema({**GOOD, **good}))
    await report_with(admin, kind.name, SubresourcesReady="True/Declared", Ready="True/Healthy")

    await change_versions(admin, kind, subresources=scaled(None))
    await report_with(admin, kind.name, SubresourcesReady="True/SelectorMissing")
    await change_versions(admin, kind, subresources=None)
    await report_with(admin, kind.name, SubresourcesReady="True/NoneDeclared")


async def test_the_scale_of_an_object(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await change_versions(admin, kind, subresources=scaled(), schema=schema(GOOD, default=False))
    await report_with(admin, kind.name, SubresourcesReady="Unknown/NotPermitted", Ready="True/Healthy")
    await let_read(admin, group)
    await admin.create_objects(kind, 1)

    # Without a default, the object lacks replicas, which shows only when it is scaled.
    await change_versions(admin, kind, additionalPrinterColumns=[])
    report = await report_with(
        admin, kind.name, SubresourcesReady="True/ReplicasNotSet", Ready="True/Healthy"
    )
    message = condition_of(report, "SubresourcesReady").message
    assert "/scale of default/db-00000 cannot be read at v1" in message
    assert 'the spec replicas field ".spec.replicas" does not exist' in message
    assert status_of(found(admin, "defrep", kind.name)) == "Current"

    await change_versions(admin, kind, schema=schema(GOOD))
    await report_with(admin, kind.name, SubresourcesReady="True/ScaleRead", Ready="True/Healthy")


async def test_a_report_adds_no_requests_at_a_deprecated_version(
    admin: Admin, operator: Operator, group: str
) -> None:
    """A retirement would take them for a client's, and its quiet period would never end."""
    kind = CustomKind(group).storing("v2")
    await admin.apply_definition(kind)
    await let_read(admin, group)
    await admin.create_objects(kind, 1)
    crd = await admin.definition(kind)
    await admin.get(kind.path("db-00000", version="v1"))
    (before,) = (await gather_evidence(admin.client, crd, "v1")).readers
    for each in crd["spec"]["versions"]:
        each |= {"subresources": scaled(), "schema": schema(GOOD), "deprecated": each["name"] == "v1"}
    await change(admin, kind, {"versions": crd["spec"]["versions"]})

    report = await report_with(admin, kind.name, SubresourcesReady="True/ScaleRead")

    said = condition_of(report, "SubresourcesReady").message
    assert said == "/scale of default/db-00000 was read at v2."
    (after,) = (await gather_evidence(admin.client, await admin.definition(kind), "v1")).readers
    assert (before.counts, after.counts) == ({"GET": 1}, {"GET": 1})


async def test_a_path_of_the_wrong_type_fails_as_we_say(admin: Admin, group: str) -> None:
    """Why ScalePathWrongType is a failure: the API server rejects what the schema allows there."""
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    allowed = schema({"replicas": {"type": "integer"}, "selector": labels})
    await change_versions(admin, kind, subresources=scaled(), schema=allowed)
    await admin.create_objects(kind, 1)

    async def refused() -> bool:
        content = orjson.dumps({"status": {"selector": {"app": "db"}}})
        path = f"{kind.path('db-00000')}/status?dryRun=All"
        answer = await admin.client.send("PATCH", path, content=content, content_type=MERGE_PATCH)
        return answer.code == 422 and "accessor error" in answer.json()["message"]

    await eventually(refused, otherwise=lambda: "the API server takes it")
