"""Composites that are deleted: their objects go in reverse order, whatever happens to Compositions."""

import asyncio
from typing import Any

import pytest

from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    config_map,
)
from tests.cluster.composition.garbage import SECONDS, caught_up, owned_config_map
from tests.cluster.harness import Operator

Json = Any
HELD = "example.com/held"
PAUSED = "crdkeeper.dev/paused"
pytestmark = pytest.mark.composes("configmaps", defined=False)


async def pause(composing: Composing, value: str | None) -> None:
    """Pause a composite, or do not any more."""
    await composing.patch(composing.path("orders"), {"metadata": {"annotations": {PAUSED: value}}})


def chain() -> list[Json]:
    """Three ConfigMaps, each of which refers to the one before."""
    return [
        config_map("a"),
        config_map("b", of="${a.metadata.name}"),
        config_map("c", of="${b.metadata.name}"),
    ]


async def hold(composing: Composing, name: str) -> None:
    """Let the deletion of a ConfigMap wait."""
    await composing.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"finalizers": [HELD]}})


async def let_go(composing: Composing, name: str) -> None:
    """Let a ConfigMap go."""
    await composing.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"finalizers": None}})


async def going(composing: Composing, *names: str) -> list[bool]:
    """Whether each ConfigMap exists and is not being deleted."""
    found = [await composing.author.get(f"{CONFIG_MAPS}/{each}") for each in names]
    return [each is not None and "deletionTimestamp" not in each["metadata"] for each in found]


async def test_objects_go_in_reverse_order_without_the_composition(composing: Composing) -> None:
    await composing.define()
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.ready("orders")
    for each in ("orders-c", "orders-b"):
        await hold(composing, each)
    await composing.designer.delete("main")
    await composing.delete("orders")
    await composing.says("orders", "Ready", "False", "Deleting", "orders-c", HELD)
    assert await going(composing, "orders-a", "orders-b", "orders-c") == [True, True, False]
    await let_go(composing, "orders-c")
    await composing.says("orders", "Ready", "False", "Deleting", "orders-b", HELD)
    assert await going(composing, "orders-a") == [True]
    await let_go(composing, "orders-b")
    await composing.author.gone(composing.path("orders"))
    for each in ("orders-a", "orders-b", "orders-c"):
        assert await composing.data(each) is None


async def test_an_orphan_stays_and_belongs_to_nobody(composing: Composing) -> None:
    await composing.define()
    await composing.compose(config_map("kept", Deletion="Orphan"), config_map("gone"))
    await composing.create("orders")
    await composing.ready("orders")
    await composing.delete("orders")
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-gone")
    kept = (await composing.author.get(f"{CONFIG_MAPS}/orders-kept"))["metadata"]
    assert not {"labels", "annotations", "ownerReferences"} & kept.keys()
    await composing.author.delete(f"{CONFIG_MAPS}/orders-kept")


async def test_an_orphan_stays_although_the_garbage_collector_deletes(composing: Composing) -> None:
    await composing.define()
    await composing.compose(config_map("kept", Deletion="Orphan"), config_map("gone"))
    await composing.create("orders")
    made = await composing.ready("orders")
    kept = (await composing.author.get(f"{CONFIG_MAPS}/orders-kept"))["metadata"]
    # Paused, so that nobody but the garbage collector acts until all is as it leaves it.
    await pause(composing, "true")
    # The collector ends a deletion in the foreground when nothing blocks it, perhaps before it looks at
    # objects that do not.
    owner = {
        **{key: made[key] for key in ("apiVersion", "kind")},
        **{key: made["metadata"][key] for key in ("name", "uid")},
        "blockOwnerDeletion": True,
    }
    blocks = await owned_config_map(composing.author, "orders-blocks", owner)
    await composing.patch(blocks, {"metadata": {"finalizers": [HELD]}})
    await caught_up(composing.author, "orders-last")
    await composing.delete("orders", propagationPolicy="Foreground")
    await composing.author.gone(f"{CONFIG_MAPS}/orders-gone", seconds=SECONDS)
    await asyncio.sleep(1.0)
    await composing.author.unhold(blocks)
    await composing.author.gone(blocks, seconds=SECONDS)
    await pause(composing, None)
    await composing.author.gone(composing.path("orders"), seconds=SECONDS)
    left = (await composing.author.get(f"{CONFIG_MAPS}/orders-kept"))["metadata"]
    assert left["uid"] == kept["uid"] and not {"labels", "annotations", "ownerReferences"} & left.keys()
    await composing.author.delete(f"{CONFIG_MAPS}/orders-kept")


async def test_an_orphan_stays_although_the_status_was_lost(composing: Composing, composer: Operator) -> None:
    await composing.define()
    await composing.compose(config_map("kept", Deletion="Orphan"), config_map("gone"))
    await composing.create("orders")
    await composing.ready("orders")
    composer.kill()
    await composing.patch(f"{composing.path('orders')}/status", {"status": None})
    await composing.delete("orders")
    composer.start()
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-gone")
    assert await composing.data("orders-kept") == {}
    await composing.author.delete(f"{CONFIG_MAPS}/orders-kept")


async def test_an_orphan_stays_although_it_was_never_marked(composing: Composing) -> None:
    await composing.define()
    await composing.compose(config_map("kept"), config_map("gone"))
    await composing.create("orders")
    await composing.ready("orders")
    await pause(composing, "true")
    await composing.compose(config_map("kept", Deletion="Orphan"), config_map("gone"), number=2)
    await composing.delete("orders")
    await pause(composing, None)
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-gone")
    kept = (await composing.author.get(f"{CONFIG_MAPS}/orders-kept"))["metadata"]
    assert not {"labels", "annotations", "ownerReferences"} & kept.keys()
    await composing.author.delete(f"{CONFIG_MAPS}/orders-kept")


@pytest.mark.parametrize("reference", ["main", "none"])
async def test_a_status_that_says_orphan_keeps_nothing_alone(composing: Composing, reference: str) -> None:
    await composing.define()
    await composing.compose(config_map("forged"), config_map("gone"))
    await composing.create("orders")
    ready = await composing.ready("orders")
    await pause(composing, "true")
    if reference == "none":
        chosen = {"crdkeeper": {"compositionRef": {"name": "there-is-none"}}}
        await composing.patch(composing.path("orders"), {"spec": chosen})
    await composing.says("orders", "Synced", "False", "ReconcilePaused")
    resources = [{**each, "deletion": "Orphan"} for each in ready["status"]["crdkeeper"]["resources"]]
    forged = {"status": {"crdkeeper": {"resources": resources[:1]}}}
    await composing.patch(f"{composing.path('orders')}/status", forged)
    await composing.delete("orders")
    await pause(composing, None)
    if reference == "none":
        said = "orders-forged is listed with deletion: Orphan, but"
        await composing.says("orders", "Synced", "False", "NoRevision", said)
        assert await composing.data("orders-forged") == {}
        await composing.author.delete(f"{CONFIG_MAPS}/orders-forged")
    await composing.author.gone(composing.path("orders"))
    await composing.gone("orders-gone")
    assert await composing.data("orders-forged") is None


async def test_kubectl_delete_with_cascade_orphan_leaves_the_objects(composing: Composing) -> None:
    await composing.define()
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.ready("orders")
    # It leaves only what it knows: an owner that it does not know of yet would stay, and take the object.
    await caught_up(composing.author, "orders-first")
    await composing.delete("orders", propagationPolicy="Orphan")
    await composing.author.gone(composing.path("orders"), seconds=SECONDS)
    await composing.create("orders", metadata={"annotations": {"crdkeeper.dev/adopt": "a"}})
    await composing.says("orders", "Synced", "False", "NotOurs", "orders-b")
    adopted = (await composing.author.get(f"{CONFIG_MAPS}/orders-a"))["metadata"]
    assert len(adopted["ownerReferences"]) == 1
    await caught_up(composing.author, "orders-last")
    await composing.delete("orders", propagationPolicy="Orphan")
    await composing.author.gone(composing.path("orders"), seconds=SECONDS)
    for each in ("orders-a", "orders-b", "orders-c"):
        kept = (await composing.author.get(f"{CONFIG_MAPS}/{each}"))["metadata"]
        assert "ownerReferences" not in kept
        await composing.author.delete(f"{CONFIG_MAPS}/{each}")


async def test_cascade_waits_for_the_order_of_each_composite(composing: Composing) -> None:
    await composing.define(deletion="Cascade")
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.ready("orders")
    await hold(composing, "orders-c")
    await composing.author.delete(composing.definition.path)
    await composing.says("orders", "Ready", "False", "Deleting", "orders-c", HELD)
    await composing.author.says(composing.definition, "Established", "default/orders", FINALIZER)
    assert await going(composing, "orders-a", "orders-b") == [True, True]
    await let_go(composing, "orders-c")
    await composing.author.gone(composing.definition.path)
    await composing.author.gone(composing.definition.crd)
    for each in ("orders-a", "orders-b", "orders-c"):
        await composing.gone(each)


async def test_protect_composes_until_the_last_composite_is_deleted(composing: Composing) -> None:
    await composing.define()
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.ready("orders")
    await composing.author.delete(composing.definition.path)
    await composing.author.says(composing.definition, "Established", "1 composite")
    await composing.author.delete(f"{CONFIG_MAPS}/orders-c")
    await composing.has("orders-c", of="orders-b")
    await composing.delete("orders")
    await composing.author.gone(composing.definition.crd)
    await composing.gone("orders-a")


async def test_orphan_leaves_composites_that_nobody_holds(composing: Composing) -> None:
    await composing.define(deletion="Orphan")
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.create("bills")
    await composing.ready("orders")
    await composing.ready("bills")
    await composing.author.delete(composing.definition.path)
    await composing.author.gone(composing.definition.path)
    for each in ("orders", "bills"):
        left = await composing.author.get(composing.path(each))
        assert not left["metadata"].get("finalizers")
        assert await going(composing, f"{each}-a", f"{each}-b", f"{each}-c") == [True] * 3
        for which in "abc":
            await composing.author.delete(f"{CONFIG_MAPS}/{each}-{which}")


async def test_a_finalizer_that_was_taken_off_comes_back(composing: Composing) -> None:
    await composing.define()
    await composing.compose(*chain())
    await composing.create("orders")
    await composing.ready("orders")
    # As kubectl replace does with a manifest that does not have it.
    await composing.patch(composing.path("orders"), {"metadata": {"finalizers": None}})
    await composing.until("orders", lambda found: FINALIZER in found["metadata"].get("finalizers", ()))


@pytest.mark.parametrize("restarted", [False, True], ids=["known", "after a restart"])
async def test_what_waits_for_the_composer_goes_also_without_any_revision(
    composing: Composing, composer: Operator, restarted: bool
) -> None:
    await composing.define(deletion="Cascade")
    await composing.compose(*chain())
    await composing.create("left")
    await composing.ready("left")
    await composing.designer.clean_up()
    if restarted:
        composer.kill()
        composer.start()
    await composing.author.delete(composing.definition.path)
    await composing.author.gone(composing.definition.crd)
    for each in ("left-a", "left-b", "left-c"):
        assert await composing.data(each) is None
