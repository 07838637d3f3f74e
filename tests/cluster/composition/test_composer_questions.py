"""What becomes of objects where there is no obvious answer: nothing is lost, and the reason is told."""

from typing import Any

import pytest

from tests.cluster.composition.authoring import CRDS
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, entries, secret
from tests.cluster.composition.garbage import SECONDS
from tests.cluster.harness import eventually

Json = Any
HELD = "example.com/held"
ITEM = "${composite.metadata.name}-${which}"
EACH_NAME = [{"which": "${composite.spec.names}"}]


async def uid(composing: Composing, name: str) -> str:
    """What tells a ConfigMap from another one of its name."""
    return str((await composing.author.get(f"{CONFIG_MAPS}/{name}"))["metadata"]["uid"])


async def test_too_many_objects_are_refused_and_none_is_dropped(composing: Composing) -> None:
    await composing.compose(config_map("base"), config_map("item", called=ITEM, ForEach=EACH_NAME))
    await composing.create("orders", names=["a", "b"])
    await composing.ready("orders")
    few = ["orders-a", "orders-b", "orders-base"]
    uids = [await uid(composing, each) for each in few]
    many = [f"n{number}" for number in range(1, 1001)]
    await composing.create("orders", names=many)
    said = "1,000 objects: a composite has at most 1,000 in total"
    found = await composing.says("orders", "Synced", "False", "RenderingFailed", said)
    assert sorted(entries(found)) == few
    # These would fit, but not beside those that have to go first.
    await composing.create("orders", names=many[:999])
    said = "1,002 objects with those that have to go: at most 1,000 fit."
    found = await composing.says("orders", "Synced", "False", "TooManyObjects", said, seconds=180)
    assert [await uid(composing, each) for each in few] == uids
    assert await composing.data("orders-n1") is None
    await composing.create("orders", names=["b", "c"])
    await composing.ready("orders")
    await composing.gone("orders-a")
    assert await uid(composing, "orders-b") == uids[1]


async def test_a_namespace_in_deletion_is_not_fought(composing: Composing, group: str) -> None:
    author, space = composing.author, group.replace(".", "-")
    path = f"/api/v1/namespaces/{space}"
    await author.put(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    of_composite = f"/apis/{group}/v1/namespaces/{space}/things/orders"
    maps = f"{path}/configmaps"
    chain = [config_map("a"), config_map("b", of="${a.metadata.name}")]
    await composing.compose(*chain)
    await author.put(of_composite, composing.definition.composite("orders"))

    async def composed() -> bool:
        return await author.get(f"{maps}/orders-b") is not None

    await eventually(composed)
    # The namespace goes in no order: here, the first of the objects stays last.
    await composing.patch(f"{maps}/orders-a", {"metadata": {"finalizers": [HELD]}})
    await author.delete(path)
    await author.gone(f"{maps}/orders-b")

    async def told() -> bool:
        conditions = (await author.get(of_composite))["status"]["conditions"]
        ready = next(each for each in conditions if each["type"] == "Ready")
        return ready["reason"] == "Deleting" and "orders-a" in ready["message"] and HELD in ready["message"]

    await eventually(told)
    await composing.patch(f"{maps}/orders-a", {"metadata": {"finalizers": None}})
    await author.gone(of_composite)
    await author.gone(path)


async def test_a_deletion_in_the_foreground_leaves_nothing(composing: Composing) -> None:
    chain = [config_map("a"), config_map("b", of="${a.metadata.name}"), config_map("c", of="${b.data.of}")]
    await composing.compose(*chain)
    await composing.create("orders")
    await composing.ready("orders")
    await composing.patch(f"{CONFIG_MAPS}/orders-a", {"metadata": {"finalizers": [HELD]}})
    await composing.delete("orders", propagationPolicy="Foreground")
    # The garbage collector keeps no order, and nothing is created again.
    for each in ("orders-b", "orders-c"):
        await composing.gone(each)
    await composing.says("orders", "Ready", "False", "Deleting", "orders-a", HELD)
    assert [await composing.data(each) for each in ("orders-b", "orders-c")] == [None, None]
    await composing.patch(f"{CONFIG_MAPS}/orders-a", {"metadata": {"finalizers": None}})
    await composing.gone("orders-a")
    # The garbage collector's finalizer is the last one.
    await composing.author.gone(composing.path("orders"), seconds=SECONDS)


@pytest.mark.composes("configmaps", "secrets")
async def test_what_is_given_up_goes_although_others_wait(composing: Composing) -> None:
    # Of more than 63 characters, which no label can have.
    name = "main-" + "a" * 80
    await composing.compose(config_map("first"), secret(), which=name)
    await composing.create("orders")
    found = await composing.ready("orders")
    kind, owner = composing.definition.kind, found["metadata"]["uid"]
    live = await composing.author.get(f"{CONFIG_MAPS}/orders-first")
    # Without blockOwnerDeletion, by which a deletion in the foreground would wait for it.
    of = {"apiVersion": f"{composing.definition.group}/v1", "kind": kind, "name": "orders", "uid": owner}
    assert live["metadata"]["ownerReferences"] == [{**of, "controller": True}]
    later = config_map("later", text="${first.data.text}")
    await composing.compose(config_map("first"), later, which=name, number=2)
    await composing.author.gone("/api/v1/namespaces/default/secrets/orders")
    await composing.says("orders", "Ready", "False", "Creating", "later: waits for first.data")
    await composing.patch(f"{CONFIG_MAPS}/orders-first", {"data": {"text": "x"}})
    await composing.has("orders-later", text="x")
    found = await composing.ready("orders")
    assert found["status"]["crdkeeper"]["revision"] == f"{composing.designer.name(name)}-2"


async def test_what_refers_to_an_excluded_resource_is_excluded_unless_it_asks(composing: Composing) -> None:
    await composing.compose(
        config_map("cache", IncludeWhen=["${composite.spec.enabled}"], size="1"),
        config_map("client", cache="${cache.metadata.name}"),
        config_map("further", client="${client.data.cache}"),
        config_map("asks", cache="${cache.?metadata.?name.orValue('none')}"),
    )
    await composing.create("orders", enabled=False)
    assert entries(await composing.ready("orders")) == ["orders-asks"]
    await composing.has("orders-asks", cache="none")
    await composing.create("orders", enabled=True)
    await composing.has("orders-asks", cache="orders-cache")
    await composing.has("orders-further", client="orders-cache")
    names = entries(await composing.ready("orders"))
    assert sorted(names) == ["orders-asks", "orders-cache", "orders-client", "orders-further"]
    asks = await uid(composing, "orders-asks")
    await composing.create("orders", enabled=False)
    for each in ("orders-further", "orders-client", "orders-cache"):
        await composing.gone(each)
    await composing.has("orders-asks", cache="none")
    assert await uid(composing, "orders-asks") == asks


async def test_a_condition_that_cannot_be_computed_removes_nothing(composing: Composing) -> None:
    await composing.compose(
        config_map("switch"), config_map("lamp", IncludeWhen=["${switch.data.on == 'yes'}"])
    )
    await composing.create("orders")
    await composing.says("orders", "Ready", "False", "Creating", "lamp: includeWhen waits for switch.data")
    path = f"{CONFIG_MAPS}/orders-switch"
    await composing.patch(path, {"data": {"on": "yes"}})
    await composing.ready("orders")
    lamp = await uid(composing, "orders-lamp")
    # Somebody deletes what it depends on, which comes back without the value.
    await composing.author.delete(path)
    found = await composing.says("orders", "Ready", "False", "Creating", "lamp: includeWhen waits for switch")
    assert entries(found) == ["orders-switch", "orders-lamp"]
    assert await uid(composing, "orders-lamp") == lamp
    await composing.has("orders-switch")
    await composing.patch(path, {"data": {"on": "no"}})
    await composing.gone("orders-lamp")
    await composing.ready("orders")


async def test_values_that_are_none_are_omitted_and_removed(composing: Composing) -> None:
    data = {"zone": "${composite.spec.?zone}", "literal": "$${composite.spec.zone}", "fixed": "1"}
    await composing.compose(config_map("settings", **data))
    await composing.create("orders")
    await composing.has("orders-settings", literal="${composite.spec.zone}", fixed="1")
    await composing.create("orders", zone="b")
    await composing.has("orders-settings", literal="${composite.spec.zone}", fixed="1", zone="b")
    await composing.create("orders")
    await composing.has("orders-settings", literal="${composite.spec.zone}", fixed="1")
    await composing.ready("orders")


async def test_objects_of_one_name_are_refused_and_none_is_dropped(composing: Composing) -> None:
    item = config_map("item", called=ITEM, ForEach=EACH_NAME)
    await composing.compose(config_map("main", zone="${composite.spec.zone}"), item)
    await composing.create("orders", names=["a", "b"], zone="1")
    await composing.ready("orders")
    names = ["orders-a", "orders-b", "orders-main"]
    uids = [await uid(composing, each) for each in names]
    for given, zone, said in (
        (["a", "a"], "x", "two of its items are ConfigMap default/orders-a. Give each a name of its own"),
        # Neither of the two takes the object from the other, or changes it.
        (["b", "main"], "y", "is also ConfigMap default/orders-main. Give each a name of its own"),
    ):
        await composing.create("orders", names=given, zone=zone)
        await composing.says("orders", "Synced", "False", "RenderingFailed", said)
        assert [await uid(composing, each) for each in names] == uids
        assert await composing.data("orders-main") == {"zone": "x"}
    await composing.create("orders", names=["b"], zone="2")
    await composing.gone("orders-a")
    await composing.has("orders-main", zone="2")
    await composing.ready("orders")


def namespace() -> Json:
    """A resource of a kind that is in no namespace."""
    metadata = {"name": "${composite.metadata.name}"}
    return {"name": "space", "template": {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}}


async def test_another_namespace_and_kinds_without_one_are_refused(composing: Composing) -> None:
    designer, author = composing.designer, composing.author
    literal = config_map("settings")
    literal["template"]["metadata"]["namespace"] = "kube-public"
    for resource, said in (
        (literal, "a composite composes only in its own namespace"),
        (namespace(), "Namespace is cluster-scoped, but composites are in namespaces"),
    ):
        await designer.put("main", resource)
        await designer.says("main", "Valid", "False", "Invalid", said, judged="Failed")
    computed = config_map("settings")
    computed["template"]["metadata"]["namespace"] = "${composite.spec.zone}"
    await composing.compose(computed, config_map("other"))
    await composing.create("orders", zone="kube-public")
    said = "the namespace is kube-public, but a composite composes only in its own, default"
    await composing.says("orders", "Synced", "False", "RenderingFailed", said)
    await composing.has("orders-other")
    assert await author.get("/api/v1/namespaces/kube-public/configmaps/orders-settings") is None
    await composing.create("orders", zone="default")
    await composing.ready("orders")
    await composing.has("orders-settings")
    # What exists stays when another tenant's namespace is asked for.
    before = await uid(composing, "orders-settings")
    await composing.create("orders", zone="kube-public")
    await composing.says("orders", "Synced", "False", "RenderingFailed", said)
    assert await uid(composing, "orders-settings") == before


@pytest.mark.composes("configmaps", "*.later.{group}")
async def test_a_kind_that_turns_out_to_be_in_no_namespace_is_refused(
    composing: Composing, group: str
) -> None:
    later, metadata = f"later.{group}", {"name": "${composite.metadata.name}"}
    template = {"apiVersion": f"{later}/v1", "kind": "Later", "metadata": metadata}
    await composing.designer.put("main", {"name": "later", "template": template}, config_map("other"))
    await composing.designer.until("main", [1].__eq__)
    await composing.create("orders")
    await composing.says("orders", "Synced", "False", "KindMissing", "Later")
    await composing.has("orders-other")
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"kind": "Later", "plural": "laters"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"laters.{later}"},
        "spec": {"group": later, "scope": "Cluster", "names": names, "versions": [version]},
    }
    path = f"{CRDS}/laters.{later}"
    await composing.author.put(path, crd)
    try:
        said = "Later is cluster-scoped, but composites are in namespaces"
        await composing.says("orders", "Synced", "False", "RevisionUnusable", said)
        assert (await composing.author.get(f"/apis/{later}/v1/laters"))["items"] == []
        await composing.has("orders-other")
    finally:
        await composing.author.delete(path)
