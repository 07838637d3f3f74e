"""Composites that stand for objects: created in order, kept, changed, and deleted in reverse."""

import asyncio
from typing import Any

from tests.cluster.composition.composing import CONFIG_MAPS, FINALIZER, Composing, config_map, entries
from tests.controlplane.cluster import Cluster

Json = Any


async def test_objects_are_created_in_order_and_the_status_lists_them(
    composing: Composing, plane: Cluster
) -> None:
    await composing.compose(
        config_map("second", first="${first.metadata.uid}"),
        config_map("first", engine="${composite.spec.engine}"),
        status={"address": "${first.metadata.name}.${composite.metadata.namespace}"},
    )
    await composing.create("orders")
    found = await composing.ready("orders")
    first = await composing.author.get(f"{CONFIG_MAPS}/orders-first")
    second = await composing.author.get(f"{CONFIG_MAPS}/orders-second")
    assert first["data"] == {"engine": "MySQL"}
    assert second["data"] == {"first": first["metadata"]["uid"]}
    assert int(first["metadata"]["resourceVersion"]) < int(second["metadata"]["resourceVersion"])
    (owner,) = first["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (found["metadata"]["uid"], True)
    assert found["status"]["address"] == "orders-first.default"
    listed = found["status"]["crdkeeper"]["resources"]
    assert [
        (each["name"], each["object"]["name"], each["object"]["uid"], each["ready"]) for each in listed
    ] == [
        ("first", "orders-first", first["metadata"]["uid"], True),
        ("second", "orders-second", second["metadata"]["uid"], True),
    ]
    assert found["status"]["crdkeeper"]["revision"] == f"{composing.designer.name('main')}-1"
    assert found["metadata"]["finalizers"] == [FINALIZER]
    shown = await asyncio.to_thread(plane.kubectl, "get", composing.definition.name, "orders")
    assert shown.splitlines()[1].split()[:-1] == [
        "orders",
        "True",
        "True",
        f"{composing.designer.name('main')}-1",
    ]


async def test_a_change_of_the_composite_and_of_the_composition_reaches_the_objects(
    composing: Composing,
) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.has("orders-settings", engine="MySQL")
    await composing.create("orders", engine="Postgres")
    await composing.has("orders-settings", engine="Postgres")
    await composing.compose(config_map("settings", kind="${composite.spec.engine}"), number=2)
    await composing.has("orders-settings", kind="Postgres")


async def test_a_renamed_resource_keeps_its_object_while_it_waits(composing: Composing) -> None:
    await composing.compose(config_map("first"), config_map("data", text="old"))
    await composing.create("orders")
    await composing.ready("orders")
    path = f"{CONFIG_MAPS}/orders-data"
    uid = (await composing.author.get(path))["metadata"]["uid"]
    renamed = config_map("database", called="orders-data", text="${first.data.text}")
    await composing.compose(config_map("first"), renamed, number=2)
    await composing.says("orders", "Ready", "False", "Creating", "database: waits for", "orders-data: it is")
    await composing.patch(f"{CONFIG_MAPS}/orders-first", {"data": {"text": "new"}})
    await composing.has("orders-data", text="new")
    await composing.ready("orders")
    assert (await composing.author.get(path))["metadata"]["uid"] == uid


async def test_a_field_of_the_status_that_has_no_value_is_told(composing: Composing) -> None:
    await composing.compose(config_map("first"), status={"address": "${composite.spec.names[1]}"})
    await composing.create("orders", names=["a"])
    await composing.says("orders", "Synced", "False", "StatusFailed", "status.address: ")
    await composing.has("orders-first")
    await composing.create("orders", names=["a", "b"])
    assert (await composing.ready("orders"))["status"]["address"] == "b"
    await composing.compose(config_map("first"), number=2, status={"address": "${first.data.text}"})
    waits = "Not yet in the status: status.address: waits for first.data"
    await composing.says("orders", "Synced", "True", "ReconcileSuccess", waits)


async def test_drift_is_put_back(composing: Composing) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.ready("orders")
    path = f"{CONFIG_MAPS}/orders-settings"
    await composing.patch(path, {"data": {"engine": "Oracle", "other": "theirs"}})
    await composing.has("orders-settings", engine="MySQL", other="theirs")
    uid = (await composing.author.get(path))["metadata"]["uid"]
    await composing.author.delete(path)
    await composing.has("orders-settings", engine="MySQL")
    assert (await composing.author.get(path))["metadata"]["uid"] != uid
    await composing.ready("orders")


async def test_what_a_composition_gives_up_is_removed(composing: Composing) -> None:
    each = {"ForEach": [{"which": "${composite.spec.names}"}], "IncludeWhen": ["${composite.spec.enabled}"]}
    await composing.compose(
        config_map("base"),
        config_map("item", called="${composite.metadata.name}-${which}", **each),
        config_map("old", base="${base.metadata.name}"),
    )
    await composing.create("orders", names=["a", "b"], enabled=True)
    await composing.ready("orders")
    await composing.has("orders-a")
    await composing.create("orders", names=["b", "c"], enabled=True)
    await composing.has("orders-c")
    await composing.gone("orders-a")
    await composing.has("orders-b")
    await composing.create("orders", names=["b", "c"], enabled=False)
    await composing.gone("orders-b")
    await composing.gone("orders-c")
    await composing.compose(config_map("base"), number=2)
    await composing.gone("orders-old")
    found = await composing.until("orders", lambda found: len(entries(found)) == 1)
    assert entries(found) == ["orders-base"]
    await composing.has("orders-base")


async def test_an_object_of_somebody_else_is_not_taken_over(composing: Composing) -> None:
    path = f"{CONFIG_MAPS}/orders-settings"
    await composing.author.put(
        path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-settings"}}
    )
    before = await composing.author.get(path)
    await composing.compose(
        config_map("settings", engine="MySQL"), config_map("other", of="${settings.metadata.name}")
    )
    await composing.create("orders")
    found = await composing.says("orders", "Synced", "False", "NotOurs", "ConfigMap default/orders-settings")
    assert await composing.author.get(path) == before
    # What refers to it waits, and nothing of it can be lost.
    assert await composing.data("orders-other") is None
    assert entries(found) == []
    await composing.create("orders", metadata={"annotations": {"crdkeeper.dev/adopt": "settings"}})
    await composing.ready("orders")
    await composing.has("orders-settings", engine="MySQL")
    assert (await composing.author.get(path))["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_field_that_is_new_in_the_composition_and_belongs_to_somebody_else(
    composing: Composing,
) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.ready("orders")
    path = f"{CONFIG_MAPS}/orders-settings"
    await composing.patch(path, {"data": {"tier": "gold"}}, manager="billing")
    await composing.compose(config_map("settings", engine="x", tier="silver"), number=2)
    await composing.says("orders", "Synced", "False", "Conflict", ".data.tier", "billing")
    await composing.has("orders-settings", engine="MySQL", tier="gold")
    await composing.compose(config_map("settings", engine="x", tier="silver", Conflicts="Force"), number=3)
    await composing.has("orders-settings", engine="x", tier="silver")
    await composing.ready("orders")


async def test_readiness_is_waited_for_and_told(composing: Composing) -> None:
    await composing.compose(
        config_map("first", ReadyWhen=["${has(first.data.done)}"]),
        config_map("second", of="${first.metadata.name}"),
    )
    await composing.create("orders")
    await composing.says(
        "orders", "Ready", "False", "Creating", "first: ConfigMap default/orders-first waits for first.data"
    )
    assert await composing.data("orders-second") is None
    await composing.patch(f"{CONFIG_MAPS}/orders-first", {"data": {"done": "yes"}})
    await composing.ready("orders")
    await composing.has("orders-second", of="orders-first")


async def test_a_paused_composite_does_not_change_even_if_it_is_deleted(composing: Composing) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.ready("orders")
    await composing.create(
        "orders", metadata={"annotations": {"crdkeeper.dev/paused": "true"}}, engine="Postgres"
    )
    await composing.says("orders", "Synced", "False", "ReconcilePaused")
    await composing.delete("orders")
    await composing.until("orders", lambda found: "deletionTimestamp" in found["metadata"])
    await composing.patch(f"{CONFIG_MAPS}/orders-settings", {"data": {"engine": "Oracle"}})
    await composing.says("orders", "Synced", "False", "ReconcilePaused")
    await composing.has("orders-settings", engine="Oracle")
    await composing.patch(composing.path("orders"), {"metadata": {"annotations": None}})
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-settings")


async def test_a_lost_status_is_rebuilt_and_a_forged_one_deletes_nothing(composing: Composing) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    before = await composing.ready("orders")
    theirs = await victims(composing, before["metadata"]["uid"])
    forged = []
    for each in theirs:
        at = {name: each["metadata"].get(name) for name in ("namespace", "name", "uid")}
        forged.append({"name": "settings", "object": {"apiVersion": "v1", "kind": each["kind"], **at}})
    lost = {"status": {"crdkeeper": {"resources": forged, "revision": None}}}
    path = f"{composing.path('orders')}/status"
    await composing.patch(path, lost, manager="tenant")
    await composing.patch(composing.path("orders"), {"metadata": {"labels": {"theirs": "y"}}})
    await composing.until("orders", lambda found: entries(found) == ["orders-settings"])
    await composing.patch(path, lost, manager="tenant")
    await composing.delete("orders")
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-settings")
    for each in theirs:
        space, name = each["metadata"]["namespace"], each["metadata"]["name"]
        place = f"/api/v1/namespaces/{space}/configmaps/{name}"
        assert (await composing.author.get(place))["metadata"] == each["metadata"]
        await composing.author.delete(place)


async def victims(composing: Composing, uid: str) -> list[Json]:
    """ConfigMaps that are not of the composite with this uid, whatever they say."""
    label = {"labels": {"crdkeeper.dev/composite-uid": uid, "crdkeeper.dev/resource": "settings"}}
    holder = await put_config_map(composing, "default", "holder")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "controller": True}
    controlled = {**label, "ownerReferences": [{**owner, "uid": holder["metadata"]["uid"]}]}
    return [
        await put_config_map(composing, "default", "plain"),
        await put_config_map(composing, "default", "labelled", **label),
        await put_config_map(composing, "default", "controlled", **controlled),
        await put_config_map(composing, "kube-public", "elsewhere", **label),
        holder,
    ]


async def put_config_map(composing: Composing, namespace: str, name: str, **metadata: Any) -> Json:
    """Create a ConfigMap."""
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return await composing.author.put(f"/api/v1/namespaces/{namespace}/configmaps/{name}", value)
