"""metadata.managedFields: unchanged, or retargeted so that no entry names the old version any more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError
from tests.cluster.harness import Admin, CustomKind, Operator, condition, outdated

NAME = "db-00000"


async def entries(admin: Admin, kind: CustomKind) -> list[dict[str, Any]]:
    """metadata.managedFields of the first object."""
    found: list[dict[str, Any]] = (await admin.get(kind.path(NAME)))["metadata"]["managedFields"]
    return found


async def write(admin: Admin, kind: CustomKind, version: str, manager: str, patch: Mapping[str, Any]) -> None:
    """An update by another manager, at a given version."""
    path = f"{kind.path(NAME, version=version)}?fieldManager={manager}"
    await admin.client.request("PATCH", path, patch, content_type=MERGE_PATCH)


async def with_managers(admin: Admin, group: str) -> CustomKind:
    """A kind with one object: applied and updated at v1, its status written at v1, and updated at v2."""
    kind = CustomKind(group)
    flipped = await outdated(admin, kind, 1)
    await write(admin, kind, "v1", "scaler", {"spec": {"note": "by the scaler"}})
    status = f"{kind.path(NAME, version='v1')}/status?fieldManager=controller"
    await admin.client.request("PATCH", status, {"status": {"readyReplicas": 2}}, content_type=MERGE_PATCH)
    await write(admin, kind, "v2", "scaler", {"spec": {"replicas": 2}})
    # Everything written after the storage change is at v1 again, as if the change came last.
    stored = admin.etcd.get(kind.etcd_key(NAME))
    assert stored is not None
    admin.etcd.put(kind.etcd_key(NAME), {**stored, "apiVersion": f"{group}/v1"})
    return flipped


def managers(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """What identifies the entries, in a stable order."""
    return sorted(
        (
            each["manager"],
            each["operation"],
            each["apiVersion"].rpartition("/")[2],
            each.get("subresource", ""),
        )
        for each in found
    )


async def test_kept_entries_stay_as_they_are(admin: Admin, operator: Operator, group: str) -> None:
    kind = await with_managers(admin, group)
    before = await entries(admin, kind)
    assert managers(before) == [
        ("admin", "Apply", "v1", ""),
        ("controller", "Update", "v1", "status"),
        ("scaler", "Update", "v1", ""),
        ("scaler", "Update", "v2", ""),
    ]

    done = await admin.migrate(group, kind)

    assert await entries(admin, kind) == before
    assert admin.stored(kind) == {"v2": 1}
    # The message explains this to a person, and it is not a failure.
    found = condition(done, "ManagedFieldsCurrent")
    assert (found.status, found.reason) == ("False", "OldVersionNamed")
    assert f"names v1, for example of default/{NAME}" in found.message
    assert await admin.wait_for_event(group, "Normal", "OldVersionNamed") == found.message
    assert condition(done, "Ready").status == "True"
    # Its advice works, although nothing is stored at v1 any more.
    again = await admin.migrate(f"again-{group}", kind, managedFields="Retarget", verify="Full")
    assert {each[2] for each in managers(await entries(admin, kind))} == {"v2"}
    assert all(each.type != "ManagedFieldsCurrent" for each in again.status.conditions)


async def test_retargeted_entries_name_the_storage_version(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await with_managers(admin, group)
    before = await admin.get(kind.path(NAME))

    done = await admin.migrate(group, kind, managedFields="Retarget")

    assert all(each.type != "ManagedFieldsCurrent" for each in done.status.conditions)
    after = await admin.get(kind.path(NAME))
    found = after["metadata"]["managedFields"]
    assert managers(found) == [
        ("admin", "Apply", "v2", ""),
        ("controller", "Update", "v2", "status"),
        ("scaler", "Update", "v2", ""),
    ]
    owned = {each["manager"]: each["fieldsV1"] for each in found}
    assert owned["scaler"] == {"f:spec": {"f:note": {}, "f:replicas": {}}}
    assert owned["admin"] == fields_of(before, "admin")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert operator.requests(kind.name) == 1
    assert admin.stored(kind) == {"v2": 1}


def fields_of(found: Mapping[str, Any], manager: str) -> Any:
    """The fields that a manager with one entry owns."""
    (entry,) = (each for each in found["metadata"]["managedFields"] if each["manager"] == manager)
    return entry["fieldsV1"]


async def test_objects_can_be_applied_when_the_old_version_is_gone(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await with_managers(admin, group)
    await admin.migrate(group, kind, managedFields="Retarget")
    remaining = replace(kind, versions=tuple(each for each in kind.versions if each.name == "v2"))
    await admin.apply_definition(remaining)

    # Its old manager continues: what it no longer applies is removed, what it changes is changed.
    wanted = remaining.instance(NAME, engine="mysql")
    del wanted["spec"]["storage"]
    applied = await admin.apply(remaining.path(NAME), wanted)
    assert applied["spec"]["engine"] == "mysql"
    assert "storage" not in applied["spec"]
    assert applied["spec"]["note"] == "by the scaler"

    # And another manager's fields are still protected, by one entry for all of them.
    wanted["spec"] |= {"note": "mine", "replicas": 5}
    with pytest.raises(ApiError) as refused:
        await admin.apply(remaining.path(NAME), wanted)
    assert refused.value.reason == "Conflict"
    causes = refused.value.body["details"]["causes"]
    assert {each["field"] for each in causes} == {".spec.note", ".spec.replicas"}
    assert all('conflict with "scaler"' in each["message"] for each in causes)


async def test_kept_entries_break_an_apply_when_the_old_version_is_gone(
    admin: Admin, operator: Operator, group: str
) -> None:
    # Not our promise, but why Retarget exists: kubernetes#111937.
    kind = await with_managers(admin, group)
    await admin.migrate(group, kind)
    remaining = replace(kind, versions=tuple(each for each in kind.versions if each.name == "v2"))
    await admin.apply_definition(remaining)
    body = orjson.dumps(remaining.instance(NAME, engine="mysql"))
    path = f"{remaining.path(NAME)}?fieldManager=admin"
    answer = await admin.client.send("PATCH", path, content=body, content_type=APPLY_PATCH)
    assert answer.code == 500
    assert "request to convert CR to an invalid group/version" in answer.json()["message"]
