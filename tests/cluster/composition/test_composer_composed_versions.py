"""Versions of composites that are composed: a version stays while their composition depends on it."""

from typing import Any

import pytest
import yaml

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import opted_in, spec_with
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.harness import Operator
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import schema, version

Json = Any
OURS = "/apis/crdkeeper.dev/v1alpha1"
QUICK = {"settleSeconds": 0, "apiServerLeases": "Ignore"}
ALLOW = "Or set spec.breakingChanges to Allow."
pytestmark = pytest.mark.composes("configmaps", defined=False)


def going(**old: Any) -> list[Json]:
    """Two versions that are alike, of which v1 goes."""
    return [version("v1", referenceable=False, deprecated=True, **old), version("v2")]


async def test_a_version_by_which_composites_are_composed_stays(
    composing: Composing, observer: Observer, group: str
) -> None:
    author, thing, designer = composing.author, composing.definition, composing.designer
    await author.apply(thing, versions=going())
    await author.ready(thing)
    await composing.compose(config_map("a", zone="old"))
    # Without composites, nobody is composed by it.
    await author.apply(thing, versions=going(served=False))
    await author.ready(thing)
    await author.apply(thing, versions=going())
    await author.ready(thing)

    old, new = designer.name("main"), designer.name("new")
    await composing.create("follows")
    await composing.create("stays", crdkeeper={"compositionRef": {"name": old}})
    for name in ("follows", "stays"):
        await composing.ready(name)
    live = await author.get(thing.crd)
    await author.apply(thing, versions=going(served=False))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionInUse",
        "2 composites composed at v1 would have no CompositionRevision any more "
        f"(Composition {old}: 2 composites by {old}-1). ",
        f"create one whose spec.compositeTypeRef.apiVersion is {group}/v2",
        ALLOW,
        judged="Failed",
    )
    # What is refused changes nothing for the composites.
    await composing.create("follows", engine="Postgres")
    await composing.ready("follows")

    await designer.put("new", config_map("a", zone="new"), version="v2")
    await designer.ready("new")
    moved = {"defaultCompositionRef": {"name": new}}
    await author.apply(thing, versions=going(served=False), **moved)
    await composing.has("follows-a", zone="new")
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionInUse",
        "1 composite composed at v1 would have no CompositionRevision any more "
        f"(Composition {old}: 1 composite by {old}-1). ",
        ALLOW,
        judged="Failed",
    )
    assert (await author.get(thing.crd))["spec"] == live["spec"]
    await composing.create("stays", crdkeeper={"compositionRef": {"name": new}})
    await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")
    await author.gone(f"{thing.objects}/stays")
    thing.objects = thing.objects.replace("/v1/", "/v2/")
    for name in ("follows", "stays"):
        await composing.ready(name)
        await composing.has(f"{name}-a", zone="new")


def unlike(storage: str, **old: Any) -> list[Json]:
    """Two versions, of which v2 has a field more."""
    status = {"type": "object", "properties": {"address": {"type": "string"}}}
    return [
        version("v1", schema(spec_with("zone"), status), referenceable=storage == "v1", **old),
        version("v2", schema(spec_with("zone", "size"), status), referenceable=storage == "v2"),
    ]


async def test_the_life_of_composites_that_are_composed(
    composing: Composing, observer: Observer, keeper: Operator, plane: Cluster, group: str
) -> None:
    author, thing, designer = composing.author, composing.definition, composing.designer
    old, new = designer.name("main"), designer.name("new")
    chosen = {"defaultCompositionRef": {"name": old}}
    await author.apply(thing, versions=unlike("v1")[:1], **chosen)
    await composing.compose(config_map("a", engine="${composite.spec.engine}"))
    await composing.create("early")
    await composing.ready("early")
    made = await author.get(f"{CONFIG_MAPS}/early-a")

    await author.apply(thing, versions=unlike("v1"), **chosen)
    message = await observer.sees(thing, "Accepted", "False", "ConversionMissing", judged="Failed")
    proposed = yaml.safe_load(message.partition("such as ")[2].partition(" Or set ")[0])
    async with opted_in(author, thing, "reader", "rewriter", "converter"):
        await author.put(f"{OURS}/versionconversions/{thing.name}", proposed)
        await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")
        await author.apply(thing, versions=unlike("v2"), **chosen)
        await observer.sees(thing, "StorageCurrent", "False", "Migrating", judged="Current")
        (migration,) = [
            each
            for each in (await author.get(f"{OURS}/storagemigrations"))["items"]
            if each["spec"]["resource"]["group"] == group
        ]
        path = f"{OURS}/storagemigrations/{migration['metadata']['name']}"
        await author.client.request("PATCH", path, {"spec": QUICK}, content_type=MERGE_PATCH)
        await observer.sees(thing, "StorageCurrent", "True", "Current", judged="Current")

        # One that came when all were migrated, at the new version; its Composition is for the old one.
        composite: Json = {
            "apiVersion": f"{group}/v2",
            "kind": thing.kind,
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {"engine": "MySQL", "size": "large"},
        }
        plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(composite))
        await composing.ready("late")

        await designer.put("new", config_map("a", engine="${composite.spec.engine}"), version="v2")
        await designer.ready("new")
        chosen = {"defaultCompositionRef": {"name": new}}
        await author.apply(thing, versions=unlike("v2", deprecated=True), **chosen)
        await author.ready(thing)
        await author.apply(thing, versions=unlike("v2", deprecated=True, served=False), **chosen)
        await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")
        await author.apply(thing, versions=unlike("v2")[1:], **chosen)
        await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")
        left = [each["name"] for each in (await author.get(thing.crd))["spec"]["versions"]]
        assert left == ["v2"]

        thing.objects = thing.objects.replace("/v1/", "/v2/")
        for name in ("early", "late"):
            found = await composing.ready(name)
            assert found["status"]["crdkeeper"]["revision"] == f"{new}-1"
        assert (await author.get(f"{CONFIG_MAPS}/early-a"))["metadata"]["uid"] == made["metadata"]["uid"]
        for name in ("early", "late"):
            composite["metadata"]["name"] = name
            composite["spec"]["engine"] = "Postgres"
            plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(composite))
            await composing.has(f"{name}-a", engine="Postgres")
            await composing.delete(name)
        for name in ("early", "late"):
            await author.gone(composing.path(name))
            assert await composing.data(f"{name}-a") is None
        await author.delete(thing.path)
        await author.gone(thing.crd)
        await author.delete(f"{OURS}/versionconversions/{thing.name}")
