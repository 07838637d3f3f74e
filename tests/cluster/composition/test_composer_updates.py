"""Updates of a definition, with the operator beside the composer: versions, conversion, and storage."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from tests.cluster.composition.composerscene import (
    CRDS,
    NAME,
    PATH,
    ROLES,
    apply,
    conditions,
    database,
    delete,
    get,
    gone,
    has,
    ready,
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.retirement.scene import retire, standing, until, until_ready
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
GROUP = "platform.example.com"
OURS = "/apis/crdkeeper.dev/v1alpha1"
POLICY = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "DefinitionPolicy"}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
OLD = schema(SPEC, STATUS)
NEW = schema({**SPEC, "properties": {**SPEC["properties"], "size": {"type": "string"}}}, STATUS)
"""Of v2, which has a field more."""
SCALE = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}


@pytest.fixture
async def opted_in(client: Client, keeper: Operator, rights: None) -> AsyncIterator[None]:
    """The operator may read, rewrite and convert composites."""
    of_group = {"apiGroups": [GROUP], "resources": ["*"]}
    crd = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
    rules = {
        "reader": {**of_group, "verbs": ["get", "list"]},
        "rewriter": {**of_group, "verbs": ["get", "list", "patch"]},
        "converter": {**crd, "resourceNames": [NAME], "verbs": ["patch"]},
    }
    for name, rule in rules.items():
        label = {f"rbac.crdkeeper.dev/aggregate-to-{name}": "true"}
        role = {"metadata": {"name": f"updates-{name}", "labels": label}, "rules": [rule]}
        await client.request("POST", ROLES, role)
    yield
    for name in rules:
        await client.request("DELETE", f"{ROLES}/updates-{name}")


def objects(at: str = "v1") -> str:
    return f"/apis/{GROUP}/{at}/namespaces/default/databases"


async def create(client: Client, name: str, at: str = "v1", **fields: Any) -> None:
    value = database(name)
    value["apiVersion"] = f"{GROUP}/{at}"
    value["spec"] |= fields

    async def served() -> bool:
        answer = await client.send("GET", f"{objects(at)}?limit=1")
        return answer.code == 200

    await eventually(served)
    await client.request("POST", objects(at), value)


async def accepted(client: Client, reason: str, status: str = "False") -> str:
    """The message of Accepted, once it has that reason."""
    found = await has(client, "Accepted", status, reason)
    return str(conditions(found)["Accepted"]["message"])


def both(*, storage: str = "v2", v1: Json = None, v2: Json = None, **spec: Any) -> Json:
    """The definition with both versions."""
    old = version("v1", OLD, **{"referenceable": storage == "v1", **(v1 or {})})
    return document(old, version("v2", NEW, **{"referenceable": storage == "v2", **(v2 or {})}), **spec)


async def test_the_life_of_an_api(client: Client, plane: Cluster, opted_in: None) -> None:
    await apply(client, document(version("v1", OLD)))
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(3):
        await create(client, f"a-{number}")

    # A second version that differs: refused, with a VersionConversion that would do.
    await apply(client, both(storage="v1"))
    message = await accepted(client, "ConversionMissing")
    assert "v1 and v2: spec.size: only v2 has the field" in message
    assert [each["name"] for each in (await get(client, f"{CRDS}/{NAME}"))["spec"]["versions"]] == ["v1"]
    proposed = yaml.safe_load(message.partition("such as ")[2].partition(" Or set ")[0])
    await client.request("POST", f"{OURS}/versionconversions", proposed)
    await has(client, "Accepted", "True", "Accepted")
    crd = await get(client, f"{CRDS}/{NAME}")
    # Never served without conversion: with the version the webhook was there, too.
    assert crd["spec"]["conversion"]["strategy"] == "Webhook"
    assert [each["served"] for each in crd["spec"]["versions"]] == [True, True]
    await create(client, "big", "v2", size="large")
    assert "size" not in (await get(client, f"{objects()}/big"))["spec"]
    assert (await get(client, f"{objects('v2')}/big"))["spec"]["size"] == "large"

    # The referenceable version moves, and the composites with it.
    await apply(client, both())
    await has(client, "Accepted", "True", "Accepted")
    await has(client, "StorageCurrent", "False", "Migrating")
    (name,) = await migrations(client)
    path = f"{OURS}/storagemigrations/{name}"
    migration = await get(client, path)
    # It does not end before it is to be seen that it has not.
    await client.request("PATCH", path, {"spec": {"settleSeconds": 3600}}, content_type=MERGE_PATCH)
    definition = await get(client, f"{PATH}/{NAME}")
    assert migration["metadata"]["ownerReferences"][0]["uid"] == definition["metadata"]["uid"]
    await apply(client, document(version("v2", NEW)))
    assert "status.storedVersions still has v1" in await accepted(client, "VersionStored")
    await apply(client, both())
    quick = {"spec": {"settleSeconds": 0, "apiServerLeases": "Ignore"}}
    await client.request("PATCH", path, quick, content_type=MERGE_PATCH)
    await has(client, "StorageCurrent", "True", "Current")
    assert dict(plane.etcd.stored_versions(GROUP, "databases")) == {f"{GROUP}/v2": 4}
    assert (await get(client, f"{CRDS}/{NAME}"))["status"]["storedVersions"] == ["v2"]
    assert await migrations(client) == {name}

    # The old version goes in steps, of which each client is warned.
    await apply(client, document(version("v2", NEW)))
    assert "v1 is served: set deprecated: true" in await accepted(client, "VersionInUse")
    await apply(client, both(v1={"served": False}))
    assert "v1 is not deprecated" in await accepted(client, "VersionInUse")
    await apply(client, both(v1={"deprecated": True, "deprecationWarning": "use v2 of Database"}))
    await has(client, "Accepted", "True", "Accepted")

    async def warned() -> bool:
        command = [*plane.kubectl.command, "get", f"databases.v1.{GROUP}", "a-0"]
        said = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        return "Warning: use v2 of Database" in said.stderr

    await eventually(warned)
    await apply(client, both(v1={"deprecated": True, "served": False}))
    await has(client, "Accepted", "True", "Accepted")
    await gone(client, f"{objects()}/a-0")
    await apply(client, document(version("v2", NEW)))
    await has(client, "Accepted", "True", "Accepted")
    assert [each["name"] for each in (await get(client, f"{CRDS}/{NAME}"))["spec"]["versions"]] == ["v2"]

    # What is not immutable.
    names = {"kind": "Database", "plural": "databases", "shortNames": ["dbs"]}
    await apply(client, document(version("v2", NEW, subresources=SCALE), names=names))
    await has(client, "Accepted", "True", "Accepted")

    async def found() -> bool:
        answer = plane.kubectl("get", "dbs", "-o", "name", check=False)
        return bool(answer.count("/") == 4)

    await eventually(found)
    plane.kubectl("scale", "dbs/a-0", "--replicas=5")
    assert (await get(client, f"{objects('v2')}/a-0"))["spec"]["replicas"] == 5

    await client.request("DELETE", f"{PATH}/{NAME}")
    await ready(client, "False", "TerminatingCompositeResource")
    for name in ("a-0", "a-1", "a-2", "big"):
        await delete(client, f"{objects('v2')}/{name}")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")
    await unused(client)


async def test_composites_that_a_change_would_hurt_are_named(client: Client, rights: None) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(7):
        await create(client, f"a-{number}")
    tighter = {**SPEC, "properties": {**SPEC["properties"], "engine": {"type": "string", "maxLength": 3}}}
    await apply(client, document(version(of=schema(tighter))))
    message = await accepted(client, "BreakingChanges")
    first = ", ".join(f"default/a-{number}" for number in range(5))
    assert (
        f"Tried on 7 composites: 7 ({first} and 2 more): spec.engine: refused if it is created again"
        in message
    )
    assert "Too long: may not be more than 3" in message
    await apply(client, document(version(of=schema(tighter)), breakingChanges="Allow", deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    await delete(client, f"{PATH}/{NAME}")


async def test_a_migration_of_a_policy_is_enough(client: Client, opted_in: None) -> None:
    template = {"settleSeconds": 0, "apiServerLeases": "Ignore"}
    spec = {"groups": [GROUP], "storageMigration": {"mode": "Automatic", "template": template}}
    policy = f"{OURS}/definitionpolicies"
    await client.request("POST", policy, {"metadata": {"name": "updates"}, "spec": spec, **POLICY})
    old, new = version("v1", referenceable=False), version("v2")
    await apply(client, document(version("v1"), {**new, "referenceable": False}, deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    await create(client, "a")
    before = await migrations(client)
    await apply(client, document(old, new, deletion="Cascade"))

    async def added() -> set[str]:
        return await migrations(client) - before

    # That of the policy may be over before the composer looks again.
    (made,) = await eventually(added)
    quick = {"spec": template}
    await client.request("PATCH", f"{OURS}/storagemigrations/{made}", quick, content_type=MERGE_PATCH)

    async def trimmed() -> bool:
        return bool((await get(client, f"{CRDS}/{NAME}"))["status"]["storedVersions"] == ["v2"])

    await eventually(trimmed)
    await has(client, "StorageCurrent", "True", "Current")
    assert await added() == {made}
    await client.request("DELETE", f"{policy}/updates")
    await delete(client, f"{PATH}/{NAME}")


async def test_a_version_is_retired_in_its_definition(client: Client, plane: Cluster, opted_in: None) -> None:
    old, new = version("v1", referenceable=False), version("v2")
    await apply(client, document(old, new, deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    await create(client, "a")
    async with Admin(plane) as admin:
        retired = await retire(admin, CustomKind(GROUP), version="v1", mode="Execute", quietPeriod="0s")
        found = await until_ready(admin, retired, "False", "CompositeResourceDefinition")
        said = standing(found, "Ready").message
        assert "Deprecated is held: The composer makes this CRD" in said
        assert "Change v1 in the CompositeResourceDefinition of the same name" in said
        old |= {"deprecated": True}
        await apply(client, document(old, new, deletion="Cascade"))
        await until(admin, retired, lambda each: standing(each, "Unused").status == "True", "unused")
        found = await until_ready(admin, retired, "False", "CompositeResourceDefinition")
        assert "NotServed is held: " in standing(found, "Ready").message
        await apply(client, document(old | {"served": False}, new, deletion="Cascade"))
        # Only the migration of the composites is nothing that a definition says.
        await until(admin, retired, lambda each: standing(each, "Migrated").status == "True", "migrated")
        found = await until_ready(admin, retired, "False", "CompositeResourceDefinition")
        assert "Removed is held: " in standing(found, "Ready").message
        entries = (await get(client, f"{objects('v2')}/a"))["metadata"]["managedFields"]
        assert {each["apiVersion"] for each in entries} == {f"{GROUP}/v2"}
        await apply(client, document(new, deletion="Cascade"))
        await until_ready(admin, retired, "True", "Removed")
        await admin.clean_up()
    await delete(client, f"{PATH}/{NAME}")


async def migrations(client: Client) -> set[str]:
    """The names of the StorageMigrations of the API; those of others are collected some time later."""
    found = (await client.request("GET", f"{OURS}/storagemigrations"))["items"]
    return {each["metadata"]["name"] for each in found if each["spec"]["resource"]["group"] == GROUP}


async def unused(client: Client) -> None:
    """Delete the VersionConversion, once it is needed no more."""
    path = f"{OURS}/versionconversions/{NAME}"

    async def free() -> bool:
        found = conditions(await get(client, path)).get("InUse", {})
        return bool(found.get("status") == "False")

    await eventually(free)
    await delete(client, path)
