"""Deletions that others interfere with: garbage collection, finalizers, namesakes created again."""

import pytest

from tests.cluster.composition.authoring import OWNER, Author, Definition
from tests.cluster.composition.garbage import SECONDS, caught_up, owned_config_map
from tests.cluster.harness import Operator, eventually


@pytest.mark.timeout(600)
@pytest.mark.parametrize("propagation", ["Foreground", "Background", "Orphan"])
async def test_garbage_collection_takes_nothing_from_protect(
    author: Author, group: str, propagation: str
) -> None:
    held = Definition(group, "held")
    await author.apply(held)
    await author.ready(held)
    await author.make_composites(held, ["a"])
    crd = await author.get(held.crd)
    # One that shares the garbage collector's queue, so that its turn has come too. It blocks its owner:
    # for one that does not, the collector ends a foreground deletion before it looks at the dependent, or
    # after it.
    owner = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "name": held.name,
        "uid": (await author.get(held.path))["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    dependent = await owned_config_map(author, f"dependent-{propagation.lower()}", owner)
    await caught_up(author, f"last-{propagation.lower()}")

    await author.delete(held.path, propagationPolicy=propagation)
    await author.says(held, "Established", "1 composite")
    match propagation:
        case "Foreground":
            await author.gone(dependent, SECONDS)
        case "Orphan":

            async def orphaned() -> bool:
                return not (await author.get(dependent))["metadata"].get("ownerReferences")

            await eventually(orphaned, seconds=SECONDS)
    now = await author.get(held.crd)
    assert now["metadata"]["uid"] == crd["metadata"]["uid"]
    assert "deletionTimestamp" not in now["metadata"]
    assert await author.names(held) == ["a"]

    await author.delete(f"{held.objects}/a")
    await author.gone(held.path)
    await author.gone(held.crd)
    await author.delete(dependent)


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
