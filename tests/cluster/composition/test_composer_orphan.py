"""Orphan where a policy refuses each change of the CRD, on the API server."""

from tests.cluster.composition.authoring import CRDS, OWNER, Author, Definition
from tests.cluster.composition.test_composer_fence import create, fenced, kept
from tests.cluster.composition.test_composer_refusals import crd_of_other, policy
from tests.cluster.harness import eventually

FROZEN = "CRDs are frozen until Monday"
UPDATES = "UPDATE", "customresourcedefinitions"


async def told(author: Author, thing: Definition) -> list[str]:
    """What Events say of CRDs that were left as they are."""
    path = f"/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3D{thing.name}"
    about = (await author.get(path))["items"]
    return [each["note"] for each in about if each["reason"] == "CRDNotReleased"]


async def test_what_the_condition_recommends_ends_the_deletion(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.put(f"{CRDS}/probes.{group}", crd_of_other(group, "probe"))
    await author.apply(thing)
    await author.ready(thing)
    before = await author.get(thing.crd)
    async with policy(author, group, *UPDATES):
        await author.delete(thing.path)
        await author.says(thing, "Established", FROZEN, "set spec.deletion to Cascade", "or to Orphan")
        await author.apply(thing, deletion="Orphan")
        await author.gone(thing.path)
        # There is no condition any more that could say it.
        (note,) = await eventually(lambda: told(author, thing))
        assert FROZEN in note
        assert await author.get(thing.crd) == before
        assert (await create(author, thing, "a"))[0] == 201
    # What it has left is adopted like any other.
    await author.apply(thing, metadata={"annotations": {"crdkeeper.dev/adopt": "true"}})
    made = await author.ready(thing)
    crd = await author.get(thing.crd)
    assert crd["metadata"]["annotations"][OWNER] == made["metadata"]["uid"]
    assert await author.names(thing) == ["a"]


async def test_a_closed_api_stays_with_its_definition(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    async with kept(author, thing):
        await author.delete(thing.path)
        await fenced(author, thing)
        await author.says(thing, "Established", "cannot delete the CRD", FROZEN)
        # Before the CRD may be deleted, or the composer would delete it first.
        async with policy(author, group, *UPDATES):
            await author.apply(thing, deletion="Orphan")
            await author.says(thing, "Established", FROZEN, "remove the rule oldSelf.hasValue()")
    await author.gone(thing.path)
    await author.make_composites(thing, ["a"])
