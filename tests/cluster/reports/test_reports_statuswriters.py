"""StatusWritersReady on a real API server: a status subresource that is missing, and one that came later."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from crdkeeper.api.meta import format_time
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.reports.live.scene import change_versions, let_read
from tests.cluster.reports.reports import condition_of, report_with

TYPE = "StatusWritersReady"
COLUMN = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}}


@dataclass(frozen=True, slots=True)
class Manager:
    """Somebody who writes to the objects of a kind."""

    admin: Admin
    kind: CustomKind
    name: str

    async def write(self, name: str, patch: Mapping[str, Any], subresource: str = "") -> dict[str, Any]:
        path = f"{self.kind.path(name)}{subresource}?fieldManager={self.name}"
        return await self.admin.client.request("PATCH", path, patch, content_type=MERGE_PATCH)


async def made_earlier(admin: Admin, path: str, by: timedelta) -> None:
    """Lets all managers have written an object so much earlier.

    The API server drops a change of nothing but times, so that they also get other names.
    """
    entries = (await admin.get(path))["metadata"]["managedFields"]
    for each in entries:
        each["manager"] += "-earlier"
        each["time"] = format_time(datetime.fromisoformat(each["time"]) - by)
    await admin.merge(path, {"metadata": {"managedFields": entries}})


async def serve(
    admin: Admin, kind: CustomKind, subresources: Mapping[str, Any] | None, **fields: Any
) -> None:
    """Changes the subresources in the CRD; returns when the API server treats a status accordingly."""
    await change_versions(admin, kind, subresources=subresources, **fields)
    probe = orjson.dumps({**kind.instance("probe"), "status": {"phase": "Tried"}})
    path = f"{kind.path('probe')}?fieldManager=probe&dryRun=All"

    async def served() -> bool:
        answer = await admin.client.send("PATCH", path, content=probe, content_type=APPLY_PATCH)
        return answer.code < 300 and ("status" in answer.json()) != ("status" in (subresources or {}))

    await eventually(served, otherwise=lambda: f"{kind.name} is not served with {subresources}")


def observed(generation: int) -> dict[str, Any]:
    return {"status": {"observedGeneration": generation}}


async def test_a_status_through_the_main_resource(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    controller, user = Manager(admin, kind, "controller"), Manager(admin, kind, "user")
    await admin.apply_definition(kind)
    await serve(admin, kind, None, schema=SCHEMA)
    await admin.create_objects(kind, 2)
    await report_with(admin, kind.name, StatusWritersReady="Unknown/NotPermitted", Ready="True/Healthy")
    await let_read(admin, group)

    # Without the subresource, what observes a generation makes another one.
    found = await controller.write("db-00000", observed(1))
    assert found["metadata"]["generation"] == 2
    await change_versions(admin, kind, additionalPrinterColumns=[])
    report = await report_with(
        admin, kind.name, StatusWritersReady="False/NoStatusSubresource", Ready="True/Healthy"
    )
    message = condition_of(report, TYPE).message
    assert "There is no status subresource at v1, v2. The status of 1 of 2 objects" in message
    assert 'Written by "controller" at v1 (Update, for example default/db-00000)' in message

    # The subresource comes later, and the controller goes on as before: nobody tells it.
    await serve(admin, kind, {"status": {}})
    await report_with(admin, kind.name, StatusWritersReady="True/WrittenBeforeSubresource")
    await user.write("db-00000", {"spec": {"note": "changed"}})
    found = await controller.write("db-00000", {**observed(3), "metadata": {"labels": {"seen": "3"}}})
    assert found["status"] == {"observedGeneration": 1}

    # Of an operator that was killed, the next one tells what was found meanwhile. That was an hour ago.
    operator.kill()
    await made_earlier(admin, f"{CRDS}/{kind.name}", timedelta(hours=1))
    await made_earlier(admin, kind.path("db-00000"), timedelta(minutes=30))
    operator.start()
    report = await report_with(
        admin, kind.name, StatusWritersReady="False/StatusWritesIgnored", Ready="True/Healthy"
    )
    assert "The status of 1 of 2 objects has not followed spec." in condition_of(report, TYPE).message

    await controller.write("db-00000", observed(3), "/status")
    await change_versions(admin, kind, additionalPrinterColumns=[COLUMN])
    await report_with(admin, kind.name, StatusWritersReady="True/StatusWritten")


async def test_a_status_without_conditions(admin: Admin, operator: Operator, group: str) -> None:
    """A controller that only counts and selects pods, as /scale needs it, and somebody's manifest."""
    kind = CustomKind(group)
    controller, applier = Manager(admin, kind, "controller"), Manager(admin, kind, "applier")
    await let_read(admin, group)
    await admin.apply_definition(kind)
    await serve(admin, kind, None, schema=SCHEMA)
    await admin.create_objects(kind, 2)
    await applier.write("db-00001", {"spec": {"note": "applied"}, "status": {"phase": "Ready"}})
    await change_versions(admin, kind, additionalPrinterColumns=[])
    report = await report_with(admin, kind.name, StatusWritersReady="True/StatusWritten")
    assert "managedFields of all objects show none of these as written only through the main resource" in (
        condition_of(report, TYPE).message
    )

    counted = {"status": {"replicas": 1, "selector": "app=db", "phase": "Ready"}}
    await controller.write("db-00000", counted)
    await change_versions(admin, kind, additionalPrinterColumns=[COLUMN])
    report = await report_with(admin, kind.name, StatusWritersReady="False/NoStatusSubresource")
    written = 'Written by "controller" at v1 (Update, for example default/db-00000)'
    said = f"The status of 1 of 2 objects was written through the main resource. {written}"
    assert said in condition_of(report, TYPE).message

    await serve(admin, kind, {"status": {}})
    report = await report_with(admin, kind.name, StatusWritersReady="True/WrittenBeforeSubresource")
    assert written in condition_of(report, TYPE).message
    await controller.write("db-00000", {"status": {"replicas": 2}}, "/status")
    await change_versions(admin, kind, additionalPrinterColumns=[])
    await report_with(admin, kind.name, StatusWritersReady="True/StatusWritten")


async def test_fields_of_scale_in_a_manifest(admin: Admin, operator: Operator, group: str) -> None:
    """A controller that creates the objects itself owns their spec, too, but nobody else keeps these."""
    kind = CustomKind(group)
    creator = Manager(admin, kind, "creator")
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.pods.replicas"}
    await let_read(admin, group)
    await admin.apply_definition(kind)
    await serve(admin, kind, {"scale": scale}, schema=SCHEMA)
    await admin.create_objects(kind, 1)
    await creator.write("db-00000", {"spec": {"replicas": 1}, "status": {"pods": {"replicas": 1}}})
    await change_versions(admin, kind, additionalPrinterColumns=[])
    await report_with(admin, kind.name, StatusWritersReady="False/NoStatusSubresource")
    await change_versions(admin, kind, subresources={"scale": scale, "status": {}})
    await report_with(admin, kind.name, StatusWritersReady="True/WrittenBeforeSubresource")
