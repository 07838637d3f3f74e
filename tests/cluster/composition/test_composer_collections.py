"""Objects of several lists that come and go, renames, adoption in all its refusals, and the status' types."""

from typing import Any

import pytest

from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, entries

Json = Any
LIST = {"type": "array", "items": {"type": "string"}}
OUTLIVES = "crdkeeper.dev/outlives"
ADOPT = {"annotations": {"crdkeeper.dev/adopt": "settings,nothing"}}


async def identities(composing: Composing, *names: str) -> dict[str, tuple[str, str]]:
    """Uid and resourceVersion of these ConfigMaps."""
    found = {each: (await composing.author.get(f"{CONFIG_MAPS}/{each}"))["metadata"] for each in names}
    return {name: (each["uid"], each["resourceVersion"]) for name, each in found.items()}


@pytest.mark.composes("configmaps", defined=False)
async def test_the_combinations_of_several_lists_grow_and_shrink(composing: Composing) -> None:
    await composing.define(more={"sizes": LIST})
    lists = [{"which": "${composite.spec.names}"}, {"size": "${composite.spec.sizes}"}]
    called = "${composite.metadata.name}-${which}-${size}"
    await composing.compose(
        config_map("item", called=called, ForEach=lists, size="${size}"),
        config_map(
            "all", of="${item.map(each, each.metadata.name).join(' ')}", number="${string(size(item))}"
        ),
    )
    await composing.create("orders", names=["a", "b"], sizes=["1", "2"])
    names = [f"orders-{each}" for each in ("a-1", "a-2", "b-1", "b-2")]
    await composing.has("orders-all", of=" ".join(names), number="4")
    assert entries(await composing.ready("orders")) == [*names, "orders-all"]
    before = await identities(composing, *names)
    # The order of the lists decides nothing but the order.
    await composing.create("orders", names=["b", "a"], sizes=["2", "1"])
    await composing.has("orders-all", of=" ".join(reversed(names)), number="4")
    await composing.ready("orders")
    assert await identities(composing, *names) == before
    await composing.create("orders", names=["b", "c"], sizes=["1"])
    await composing.has("orders-all", of="orders-b-1 orders-c-1", number="2")
    for each in ("a-1", "a-2", "b-2"):
        await composing.gone(f"orders-{each}")
    await composing.ready("orders")
    assert (await identities(composing, "orders-b-1"))["orders-b-1"] == before["orders-b-1"]
    # One empty list: no combination, which is no error.
    await composing.create("orders", names=["b", "c"], sizes=[])
    await composing.has("orders-all", of="", number="0")
    assert entries(await composing.ready("orders")) == ["orders-all"]
    await composing.create("orders", names=["b"], sizes=["3"])
    await composing.has("orders-b-3", size="3")
    await composing.ready("orders")


async def test_what_is_renamed_or_divided_keeps_what_stays(composing: Composing) -> None:
    each = {"ForEach": [{"which": "${composite.spec.names}"}]}
    item = config_map("item", called="${composite.metadata.name}-${which}", **each)
    await composing.compose(config_map("first"), item)
    await composing.create("orders", names=["a", "b"])
    await composing.ready("orders")
    names = ("orders-a", "orders-b", "orders-first")
    before = await identities(composing, *names)
    # Another name of the resource; one of its objects becomes a resource of its own.
    renamed = config_map(
        "part",
        called="${composite.metadata.name}-${which}",
        ForEach=[{"which": "${composite.spec.names.filter(each, each != 'a')}"}],
    )
    alone = config_map("alone", called="${composite.metadata.name}-a", of="${part[0].metadata.name}")
    await composing.compose(config_map("first"), renamed, alone, number=2)
    await composing.has("orders-a", of="orders-b")
    listed = {"orders-first": "first", "orders-b": "part", "orders-a": "alone"}

    def lists_them(found: Json) -> bool:
        resources = found["status"]["crdkeeper"]["resources"]
        return {each["object"]["name"]: each["name"] for each in resources} == listed

    await composing.until("orders", lists_them)
    await composing.ready("orders")
    after = await identities(composing, *names)
    assert {key: uid for key, (uid, _) in after.items()} == {key: uid for key, (uid, _) in before.items()}
    # Another name of an object: the new one is there before the old one goes.
    moved = config_map("first", called="${composite.metadata.name}-moved")
    await composing.compose(moved, renamed, alone, number=3)
    await composing.gone("orders-first")
    await composing.has("orders-moved")
    await composing.ready("orders")
    assert await identities(composing, "orders-b") == {"orders-b": after["orders-b"]}


async def put(composing: Composing, name: str, data: Json = None, **metadata: Any) -> Json:
    """A ConfigMap of somebody else."""
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return await composing.author.put(
        f"{CONFIG_MAPS}/{name}", value if data is None else {**value, "data": data}
    )


async def test_what_is_not_adopted(composing: Composing) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    owner = await put(composing, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await put(composing, "controlled-settings", ownerReferences=[{**reference, "controller": True}])
    await put(composing, "left-settings", annotations={OUTLIVES: "another"})
    await put(composing, "unnamed-settings")
    for name, said in (
        ("controlled", "exists already, and belongs to ConfigMap owner"),
        ("left", f"It can be adopted once it has no annotation {OUTLIVES}"),
        ("unnamed", "exists already, and is not the composite's"),
    ):
        other = {"annotations": {"crdkeeper.dev/adopt": "setting"}}
        before = await composing.author.get(f"{CONFIG_MAPS}/{name}-settings")
        await composing.create(name, metadata=other if name == "unnamed" else ADOPT)
        await composing.says(name, "Synced", "False", "NotOurs", f"ConfigMap default/{name}-settings", said)
        # Neither changed, nor deleted with the composite.
        await composing.delete(name)
        await composing.author.gone(composing.path(name))
        assert await composing.author.get(f"{CONFIG_MAPS}/{name}-settings") == before
    # An owner that is no controller forbids nothing, and stays.
    await put(composing, "owned-settings", ownerReferences=[reference])
    await composing.create("owned", metadata=ADOPT)
    await composing.ready("owned")
    found = await composing.author.get(f"{CONFIG_MAPS}/owned-settings")
    assert sorted(each["name"] for each in found["metadata"]["ownerReferences"]) == ["owned", "owner"]
    await composing.author.delete(f"{CONFIG_MAPS}/owner")
    for each in ("left", "unnamed"):
        await composing.author.delete(f"{CONFIG_MAPS}/{each}-settings")


async def test_an_adopted_object_with_other_values_is_a_conflict_unless_forced(composing: Composing) -> None:
    await put(composing, "orders-settings", {"engine": "Oracle", "theirs": "yes"})
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders", metadata=ADOPT)
    await composing.says("orders", "Synced", "False", "Conflict", ".data.engine belongs to user")
    await composing.has("orders-settings", engine="Oracle", theirs="yes")
    # It is not the composite's yet: whoever gives up keeps it.
    await composing.delete("orders")
    await composing.author.gone(composing.path("orders"))
    await composing.has("orders-settings", engine="Oracle", theirs="yes")
    await composing.compose(config_map("settings", engine="Postgres", Conflicts="Force"), number=2)
    await composing.create("orders", metadata=ADOPT)
    await composing.has("orders-settings", engine="Postgres", theirs="yes")
    await composing.ready("orders")
    # A field that the Composition gives up goes; those of others stay.
    await composing.compose(config_map("settings", Conflicts="Force"), number=3)
    await composing.has("orders-settings", theirs="yes")


@pytest.mark.composes("configmaps", defined=False)
async def test_a_field_of_the_status_has_to_fit_its_schema(composing: Composing) -> None:
    status = {
        "phase": {"type": "string", "enum": ["On", "Off"]},
        "count": {"type": "integer", "maximum": 9},
        "short": {"type": "string", "maxLength": 3},
    }
    await composing.define(status=status)
    designer = composing.designer
    await designer.put("main", config_map("first"), status={"count": "${composite.spec.engine}"})
    said = "spec.status.count: "
    await designer.says("main", "Valid", "False", "Invalid", said, judged="Failed")
    await designer.put("main", config_map("first"), status={"nothing": "${composite.spec.engine}"})
    await designer.says("main", "Valid", "False", "Invalid", "spec.status", "nothing", judged="Failed")
    await composing.compose(
        config_map("first", number="${composite.spec.?zone.orValue('1')}"),
        status={
            "phase": "${composite.spec.?enabled.orValue(false) ? 'On' : 'Off'}",
            "count": "${int(first.data.number)}",
            "short": "${composite.spec.?zone}",
            "address": "${first.metadata.name}",
        },
    )
    await composing.create("orders")
    assert mapped(await composing.ready("orders")) == {"phase": "Off", "count": 1, "address": "orders-first"}
    await composing.create("orders", zone="7", enabled=True)
    await composing.until("orders", lambda found: mapped(found).get("count") == 7)
    found = await composing.ready("orders")
    assert mapped(found) == {"phase": "On", "count": 7, "short": "7", "address": "orders-first"}
    # Neither a value that is none nor one that is too large keeps the rest from being written.
    for zone, path, said in (
        ("x1", "status.count: ", ""),
        ("4096", "status.count: ", "the API server would refuse it"),
        ("four", "status.", "the API server would refuse it"),
    ):
        await composing.create("orders", zone=zone, enabled=False)
        await composing.has("orders-first", number=zone)
        found = await composing.says("orders", "Synced", "False", "StatusFailed", path, said)
        assert mapped(found)["phase"] == "Off"
        assert mapped(found)["count"] == 7
    await composing.create("orders", zone="8")
    await composing.until("orders", lambda found: mapped(found).get("count") == 8)
    await composing.create("orders")
    await composing.until("orders", lambda found: "short" not in mapped(found))
    assert mapped(await composing.ready("orders"))["count"] == 1


def mapped(found: Json) -> Json:
    """The fields of the status that the Composition maps."""
    ours = ("conditions", "observedGeneration", "crdkeeper")
    return {name: each for name, each in (found.get("status") or {}).items() if name not in ours}
