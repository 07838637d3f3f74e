"""The evidence of a version's use, from a real API server: who writes it, who reads it, what would break."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from crdkeeper.cluster.transport.client import JSON_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.retirement.changes import changed
from crdkeeper.operations.retirement.evidence import gather_evidence, gather_holds
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.admin import CRDS, OURS
from tests.cluster.retirement.scene import install_composite_kinds
from tests.controlplane.cluster import Cluster

DEPRECATED = ", some of them while it was deprecated"


async def test_writers_are_those_of_the_version_by_namespace(admin: Admin, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 3, version="v1", engine="postgres")
    await admin.create_objects(kind, 2, version="v1", engine="postgres", namespace="kube-public")
    await admin.create_objects(kind, 2, version="v2", prefix="new", engine="postgres")
    path = kind.path("db-00001", version="v1")
    await admin.merge(f"{path}?fieldManager=team-tool", {"spec": {"replicas": 7}})

    found = await gather_evidence(admin.client, await admin.definition(kind), "v1")

    assert (found.objects, found.counted, found.complete, found.failure) == (5, 7, True, "")
    assert {(each.manager, each.operation, each.namespace, each.objects) for each in found.writers} == {
        ("admin", "Apply", "default", 3),
        ("admin", "Apply", "kube-public", 2),
        ("team-tool", "Update", "default", 1),
    }
    entries = (await admin.get(path))["metadata"]["managedFields"]
    (written,) = (each["time"] for each in entries if each["manager"] == "team-tool")
    (last,) = (each.last for each in found.writers if each.manager == "team-tool")
    assert last == found.newest
    assert f"{last:%Y-%m-%dT%H:%M:%SZ}" == written
    (owner,) = found.owners
    assert owner.manager == "admin"
    assert found.holds == ()


async def test_a_forged_time_to_come_is_a_use_until_its_entry_is_taken_away(admin: Admin, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 1, version="v1", engine="postgres")
    path = kind.path("db-00000", version="v1")
    entries = (await admin.get(path))["metadata"]["managedFields"]
    forged = [each | {"manager": "forger", "time": "9999-12-31T23:59:59Z"} for each in entries]
    await admin.merge(path, {"metadata": {"managedFields": forged}})
    before = admin.client.now()

    found = await gather_evidence(admin.client, await admin.definition(kind), "v1")

    ahead = "9999-12-31T23:59:59Z of default/db-00000"
    (forger,) = (each for each in found.writers if each.manager == "forger")
    assert (forger.ahead, forger.last) == (ahead, found.newest)
    assert found.newest is not None
    assert abs(found.newest - before).total_seconds() < 60
    # As documented.
    await admin.merge(path, {"metadata": {"managedFields": [{}]}})
    left = await gather_evidence(admin.client, await admin.definition(kind), "v1")
    assert (left.newest, left.writers) == (None, ())


async def test_requests_at_a_version_show_as_more_than_before(admin: Admin, group: str) -> None:
    kind = CustomKind(group, versions=CustomKind(group).storing("v2").versions)
    await admin.apply_definition(kind)
    await admin.get(kind.path(version="v1"))
    crd = await admin.definition(kind)
    (before,) = (await gather_evidence(admin.client, crd, "v1")).readers
    # Our own look is at the storage version, and adds nothing.
    (again,) = (await gather_evidence(admin.client, crd, "v1")).readers
    assert again == before

    await admin.get(kind.path(version="v1"))
    (after,) = (await gather_evidence(admin.client, crd, "v1")).readers
    # Right after a change of the CRD, an API server answers with 429, and counts the next try, too.
    assert after.counts == {"LIST": before.counts["LIST"] + 1}
    assert before.since == after.since

    watching = asyncio.create_task(_watch(admin.client, kind.path(version="v1")))
    try:

        async def shows() -> bool:
            found = (await gather_evidence(admin.client, crd, "v1")).readers
            return "1 open watch" in found[0].what

        await eventually(shows, otherwise=lambda: "the open watch does not show")
        assert DEPRECATED not in (await gather_evidence(admin.client, crd, "v1")).readers[0].what
        # Once it is deprecated, the next request sets apiserver_requested_deprecated_apis.
        deprecate = changed(crd, "v1", "Deprecated")
        await admin.client.request("PATCH", f"{CRDS}/{kind.name}", deprecate, content_type=JSON_PATCH)

        async def told() -> bool:
            # Right after a change of the CRD, the API server answers with 429.
            await admin.client.send("GET", kind.path(version="v1"))
            found = (await gather_evidence(admin.client, crd, "v1")).readers
            return "x LIST" in found[0].what and found[0].what.endswith(DEPRECATED)

        await eventually(told, otherwise=lambda: "requests at the deprecated version do not show")
    finally:
        watching.cancel()


async def _watch(client: Client, path: str) -> None:
    """Until cancelled. Without bookmarks, what is silent for long would be given up."""
    async for _ in client.lines(f"{path}?watch=true&allowWatchBookmarks=true"):
        pass


async def test_what_names_the_version_holds(admin: Admin, installed: Cluster, group: str) -> None:
    install_composite_kinds(installed)
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    crd = await admin.definition(kind)
    for name, version in (("old", "v1"), ("new", "v2")):
        await admin.create(
            f"{OURS}/compositions",
            {
                "apiVersion": "crdkeeper.dev/v1alpha1",
                "kind": "Composition",
                "metadata": {"name": f"{name}.{group}"},
                "spec": {
                    "compositeTypeRef": {"apiVersion": f"{group}/{version}", "kind": kind.kind},
                    "resources": [
                        {
                            "name": "settings",
                            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
                        }
                    ],
                },
            },
        )
    (held,) = await gather_holds(admin.client, crd, "v1")
    assert (held.step, held.reason, held.name) == ("NotServed", "Composition", f"old.{group}")


@pytest.fixture
async def nobody(installed: Cluster, admin: Admin) -> AsyncIterator[Client]:
    """A client whose account has no rights but those that every account has."""
    installed.kubectl("create", "serviceaccount", "evidence-nobody")
    try:
        kubeconfig = installed.service_account_kubeconfig("default", "evidence-nobody")
        async with Client(Connection(kubeconfig)) as client:
            yield client
    finally:
        installed.kubectl("delete", "serviceaccount", "evidence-nobody", check=False)


async def test_missing_rights_are_named_with_their_rules(admin: Admin, nobody: Client, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 1, version="v1", engine="postgres")

    found = await gather_evidence(nobody, await admin.definition(kind), "v1")

    assert not found.complete
    assert f'apiGroups: ["{group}"], resources: ["databases"' in found.failure
    assert any('nonResourceURLs: ["/metrics"]' in each for each in found.unknown)
    assert {(each.step, each.reason) for each in found.holds} == {
        ("Removed", "NotPermitted"),
        ("NotServed", "NotPermitted"),
    }
