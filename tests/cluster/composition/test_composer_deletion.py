"""Deletions that others interfere with: garbage collection, finalizers, namesakes created again."""

import pytest

from tests.cluster.composition.authoring import OWNER, Author, Definition, Json
from tests.cluster.harness import Operator, eventually

GARBAGE_SECONDS = 90.0


@pytest.mark.parametrize("propagation", ["Foreground", "Background", "Orphan"])
async def test_garbage_collection_takes_nothing_from_protect(
    author: Author, group: str, propagation: str
) -> None:
    held = Definition(group, "held")
    await author.apply(held)
    await author.ready(held)
    await author.make_composites(held, ["a"])
    crd = await author.get(held.crd)
    # One that shares the garbage collector's queue, so that its turn has come too.
    owner = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "name": held.name,
        "uid": (await author.get(held.path))["metadata"]["uid"],
    }
    dependent = await _config_map(author, f"dependent-{propagation.lower()}", owner)
    # It hears of definitions and ConfigMaps by two watches, and orphans only what it knows. It deletes one
    # without an owner, so once that is gone it knows the one that was created before. That takes up to 30
    # seconds if kinds came or went.
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0"}
    await author.gone(await _config_map(author, f"last-{propagation.lower()}", nobody), GARBAGE_SECONDS)

    await author.delete(held.path, propagationPolicy=propagation)
    await author.says(held, "Established", "1 composite")
    match propagation:
        case "Foreground":
            await author.gone(dependent, GARBAGE_SECONDS)
        case "Orphan":

            async def orphaned() -> bool:
                return not (await author.get(dependent))["metadata"].get("ownerReferences")

            await eventually(orphaned, seconds=GARBAGE_SECONDS)
    now = await author.get(held.crd)
    assert now["metadata"]["uid"] == crd["metadata"]["uid"]
    assert "deletionTimestamp" not in now["metadata"]
    assert await author.names(held) == ["a"]

    await author.delete(f"{held.objects}/a")
    await author.gone(held.path)
    await author.gone(held.crd)
    await author.delete(dependent)


async def _config_map(author: Author, name: str, owner: Json) -> str:
    """The path of a new ConfigMap that has this owner."""
    path = "/api/v1/namespaces/default/configmaps"
    await author.client.request("POST", path, {"metadata": {"name": name, "ownerReferences": [owner]}})
    return f"{path}/{name}"


async def test_a_definition_that_is_created_again_after_its_finalizers_were_removed_by_force(
    author: Author, group: str, composer: Operator
) -> None:
    thing = Definition(group, "thing")
    first = await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    crd = await author.get(thing.crd)
    await author.delete(thing.path)
    await author.says(thing, "Established", "1 composite")
    await author.client.request(
        "PATCH", thing.path, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json"
    )
    await author.gone(thing.path)

    second = await author.apply(thing)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    await author.ready(thing, "False", "NotOurs")
    assert (await author.get(thing.crd))["metadata"]["uid"] == crd["metadata"]["uid"]
    assert await author.names(thing) == ["a"]
    await author.apply(thing, metadata={"annotations": {"crdkeeper.dev/adopt": "true"}})
    await author.ready(thing)
    now = (await author.get(thing.crd))["metadata"]
    assert (now["uid"], now["annotations"][OWNER]) == (crd["metadata"]["uid"], second["metadata"]["uid"])


async def test_a_crd_edited_or_deleted_behind_its_back(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    before = await author.get(thing.crd)

    version = before["spec"]["versions"][0]
    await author.client.request(
        "PATCH",
        thing.crd,
        {"spec": {"versions": [{**version, "served": False}]}},
        content_type="application/merge-patch+json",
    )

    async def served() -> bool:
        now = await author.get(thing.crd)
        return bool(now["spec"] == before["spec"])

    await eventually(served)
    await author.ready(thing)

    await author.delete(thing.crd)

    async def made_again() -> bool:
        now = await author.get(thing.crd)
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(made_again)
    await author.ready(thing)
