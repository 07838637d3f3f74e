"""Composites that are in no namespace, and what they compose in several; composites that are scaled."""

import asyncio
from typing import Any

import pytest

from tests.cluster.composition.authoring import spec_with
from tests.cluster.composition.composing import Composing, config_map, entries
from tests.cluster.harness import eventually
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import schema, version

Json = Any
HELD = "example.com/held"
NAMESPACES = "/api/v1/namespaces"


def space() -> Json:
    """A resource: the namespace of a tenant, whose name is that of the composite."""
    template = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "${composite.metadata.name}"},
    }
    ready = ["${space.status.phase == 'Active'}"]
    return {"name": "space", "template": template, "readyWhen": ready}


def inside(resource: Json, namespace: str = "${space.metadata.name}") -> Json:
    """The resource in a namespace."""
    resource["template"]["metadata"]["namespace"] = namespace
    return resource


def tenant(group: str) -> str:
    """A name for a composite and its namespace that no other test has."""
    return group.replace(".", "-")


async def make_namespace(composing: Composing, name: str) -> None:
    """Create a namespace."""
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await composing.author.put(f"{NAMESPACES}/{name}", value)


@pytest.mark.composes("configmaps", "namespaces", "resourcequotas", defined=False)
async def test_the_life_of_a_tenant(composing: Composing, group: str) -> None:
    await composing.define(scope="Cluster")
    author, name = composing.author, tenant(group)
    quota = {
        "name": "quota",
        "template": {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "tenant"},
            "spec": {"hard": {"pods": "${composite.spec.zone}"}},
        },
    }
    member = config_map("member", called="member-${who}", ForEach=[{"who": "${composite.spec.names}"}])
    status = {"address": "${space.metadata.name}"}
    await composing.compose(space(), inside(quota), inside(member), status=status)
    await composing.create(name, names=["ada", "grace"], zone="4")
    found = await composing.ready(name)
    assert found["status"]["address"] == name
    assert entries(found) == [name, "member-ada", "member-grace", "tenant"]
    here = f"{NAMESPACES}/{name}"
    maps, of_quota = f"{here}/configmaps", f"{here}/resourcequotas/tenant"
    (owner,) = (await author.get(here))["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (found["metadata"]["uid"], True)

    # A change, and one that is put back.
    await composing.create(name, names=["grace", "edsger"], zone="8")
    await author.gone(f"{maps}/member-ada")

    async def pods() -> bool:
        return bool((await author.get(of_quota))["spec"]["hard"] == {"pods": "8"})

    await eventually(pods)
    await composing.ready(name)
    await composing.patch(of_quota, {"spec": {"hard": {"pods": "99"}}})
    await eventually(pods)
    await author.delete(f"{maps}/member-edsger")

    async def back() -> bool:
        found = await author.get(f"{maps}/member-edsger")
        return found is not None and "deletionTimestamp" not in found["metadata"]

    await eventually(back)

    # What is in the namespace goes before it.
    await composing.patch(f"{maps}/member-grace", {"metadata": {"finalizers": [HELD]}})
    await composing.delete(name)
    await composing.says(name, "Ready", "False", "Deleting", "member-grace", HELD)
    await author.gone(of_quota)
    assert "deletionTimestamp" not in (await author.get(here))["metadata"]
    await composing.patch(f"{maps}/member-grace", {"metadata": {"finalizers": None}})
    await author.gone(composing.path(name))
    assert await author.get(here) is None


@pytest.mark.composes("configmaps", defined=False)
async def test_objects_in_several_namespaces_are_adopted_and_move(composing: Composing, group: str) -> None:
    await composing.define(scope="Cluster")
    author, name = composing.author, tenant(group)
    spaces = [f"{name}-{each}" for each in ("a", "b", "c")]
    for each in spaces:
        await make_namespace(composing, each)
    paths = [f"{NAMESPACES}/{each}/configmaps/settings" for each in spaces]
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    for each in paths[:2]:
        await author.put(each, theirs)
    before = [await author.get(each) for each in paths[:2]]
    item = config_map("item", called="settings", ForEach=[{"where": "${composite.spec.names}"}])
    await composing.compose(inside(item, "${where}"))
    await composing.create(name, names=spaces)
    await composing.says(name, "Synced", "False", "NotOurs", f"ConfigMap {spaces[0]}/settings exists already")

    async def composed() -> bool:
        return await author.get(paths[2]) is not None

    # The others of the resource are not held up by those that are not the composite's.
    await eventually(composed)
    assert [await author.get(each) for each in paths[:2]] == before
    await composing.create(name, metadata={"annotations": {"crdkeeper.dev/adopt": "item"}}, names=spaces)
    found = await composing.ready(name)
    resources = found["status"]["crdkeeper"]["resources"]
    assert [each["object"]["namespace"] for each in resources] == spaces
    after = [await author.get(each) for each in paths[:2]]
    assert [each["metadata"]["uid"] for each in after] == [each["metadata"]["uid"] for each in before]

    # A second composite gets nothing of the first one.
    other = f"{name}-other"
    await composing.create(other, metadata={"annotations": {"crdkeeper.dev/adopt": "item"}}, names=spaces[:1])
    await composing.says(other, "Synced", "False", "NotOurs", f"belongs to Thing {name}")
    await composing.create(name, names=spaces[1:])
    # No event tells the second one that the object is gone.
    await composing.says(other, "Ready", "True", "Available", seconds=180)
    (owner,) = (await author.get(paths[0]))["metadata"]["ownerReferences"]
    assert owner["name"] == other
    for each in (name, other):
        await composing.delete(each)
    for each in paths:
        await author.gone(each)
    for each in spaces:
        await author.delete(f"{NAMESPACES}/{each}")


@pytest.mark.composes("deployments.apps", defined=False)
async def test_a_composite_is_scaled(composing: Composing, plane: Cluster, group: str) -> None:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    status = {"replicas": {"type": "integer"}, "selector": {"type": "string"}}
    of = schema(spec_with(), {"type": "object", "properties": status})
    author, name = composing.author, tenant(group)
    await author.apply(composing.definition, versions=[version(of=of, subresources={"scale": scale})])
    await author.ready(composing.definition)
    labels = {"app": "${composite.metadata.name}"}
    pod = {"containers": [{"name": "main", "image": "registry.example.com/none"}]}
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "${composite.metadata.name}"},
        "spec": {
            "replicas": "${composite.spec.replicas}",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    mapped = {
        "replicas": "${server.?status.?replicas.orValue(0)}",
        "selector": "app=${composite.metadata.name}",
    }
    await composing.compose({"name": "server", "template": template}, status=mapped)
    await composing.create(name)
    deployment = f"/apis/apps/v1/namespaces/default/deployments/{name}"

    async def scaled(replicas: int, generation: int = 1) -> None:
        last: list[Json] = []

        async def deployed() -> bool:
            found = await author.get(deployment)
            last[:] = [found]
            # What its controller says of an earlier generation says nothing of this one.
            return (
                found is not None
                and found["metadata"]["generation"] >= generation
                and found["spec"]["replicas"] == replicas
                and found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
                and found["status"].get("replicas") == replicas
            )

        async def said() -> bool:
            found = await author.get(f"{composing.path(name)}/scale")
            last[:] = [found]
            status = {"replicas": replicas, "selector": f"app={name}"}
            return bool((found["spec"], found.get("status")) == ({"replicas": replicas}, status))

        await eventually(deployed, otherwise=lambda: f"not scaled: {last}")
        await eventually(said, otherwise=lambda: f"not said: {last}")

    await scaled(1)
    kind = f"things.{group}"
    await asyncio.to_thread(plane.kubectl, "scale", kind, name, "--replicas=3")
    await scaled(3)
    # Somebody who scales the object itself is put back.
    generation = (await author.get(deployment))["metadata"]["generation"]
    await composing.patch(deployment, {"spec": {"replicas": 5}})
    await scaled(3, generation + 2)
    await asyncio.to_thread(plane.kubectl, "scale", kind, name, "--replicas=2", "--current-replicas=3")
    await scaled(2)
