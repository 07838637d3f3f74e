"""A CRD that somebody else deletes, with its composites, or edits: what is lost is counted and reported."""

import asyncio
import copy

from tests.cluster.composition.authoring import Author, Definition, Json, condition
from tests.cluster.composition.composing import CONFIG_MAPS, all_of, composing_of, config_map, rights_on
from tests.cluster.harness import Operator, eventually

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
HOLD = "example.com/hold"
WITHOUT_US = "which crdkeeper did not delete, and with"
HAD = "had, but for those with deletion: Orphan."


async def notes(author: Author, thing: Definition) -> list[str]:
    """What Events on the definition say about losses, oldest first."""
    found = (await author.get(f"{EVENTS}?fieldSelector=regarding.name%3D{thing.name}"))["items"]
    about = [each for each in found if each["reason"] == "CompositesLost"]
    return [each["note"] for each in sorted(about, key=lambda each: each["eventTime"])]


async def counted(author: Author, thing: Definition, number: int) -> None:
    """Returns once the status says that there are so many composites."""

    async def look() -> bool:
        return bool((await author.get(thing.path))["status"]["composites"] == number)

    await eventually(look, otherwise=lambda: f"{number} are not counted")


async def reported(author: Author, thing: Definition, number: int, said: list[str]) -> None:
    """Returns once status and Events tell of these losses; the status of the CRD before may be Ready, too."""

    seen: Json = {}

    async def look() -> bool:
        seen["lost"] = (await author.get(thing.path))["status"].get("lostComposites")
        seen["notes"] = await notes(author, thing)
        return bool(seen == {"lost": number, "notes": said})

    await eventually(look, otherwise=lambda: f"{number} are not reported as lost: {seen}")


async def made_again(author: Author, thing: Definition, before: Json) -> None:
    """Returns once the definition has another CRD that works."""

    async def look() -> bool:
        found = await author.get(thing.crd)
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(look, otherwise=lambda: "the CRD was not made again")
    await author.ready(thing)


async def test_a_crd_deleted_with_its_composites(author: Author, composer: Operator, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a", "b"])
    await author.make_composites(thing, ["held"], finalizers=[HOLD])

    await counted(author, thing, 3)
    before = await author.get(thing.crd)

    await author.delete(thing.crd)
    await author.ready(thing, "False", "CRDTerminating")
    said = await author.says(thing, "Established", "The CRD is being deleted", "1 composite left", HOLD)
    found = await author.get(thing.path)
    assert condition(found, "Established")[:2] == ("False", "TerminatingCompositeResource"), said
    assert found["status"]["composites"] == 3, "what goes with the CRD, until it is gone"
    assert not await notes(author, thing)

    # Nobody is there when the last one goes.
    composer.kill()
    try:
        await author.client.request(
            "PATCH",
            f"{thing.objects}/held",
            {"metadata": {"finalizers": None}},
            content_type="application/merge-patch+json",
        )
        await author.gone(thing.crd)
    finally:
        composer.start()
    await made_again(author, thing, before)
    await counted(author, thing, 0)
    lost = [f"3 composites were deleted with the CRD, {WITHOUT_US} them the objects that they {HAD}"]
    await reported(author, thing, 3, lost)

    # Those of the new one are counted again, and what is deleted one by one is no loss.
    await author.make_composites(thing, ["a", "b"])
    await counted(author, thing, 2)
    await author.delete(f"{thing.objects}/b")
    await counted(author, thing, 1)
    before = await author.get(thing.crd)
    await author.delete(thing.crd)
    await made_again(author, thing, before)
    lost.append(f"1 composite was deleted with the CRD, {WITHOUT_US} it the objects that it {HAD}")
    await reported(author, thing, 4, lost)


async def test_a_crd_edited_with_its_composites(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, "note")
    await author.ready(thing)
    await author.make_composites(thing, ["a", "b"])
    before = await author.get(thing.crd)
    spec = spec_of(before)

    async def put_back() -> bool:
        return bool((await author.get(thing.crd))["spec"] == before["spec"])

    await counted(author, thing, 2)
    # A field that is gone would be lost with the next write of a composite.
    await edit(
        author, thing, before, {key: each for key, each in spec["properties"].items() if key != "note"}
    )
    await eventually(put_back)
    assert (await author.ready(thing))["status"]["lostComposites"] == 0
    await counted(author, thing, 2)

    # What somebody has allowed is used by now, perhaps: to forbid it again is a breaking change.
    engine = {"type": "string"}
    assert spec["properties"]["engine"] != engine
    await edit(author, thing, await author.get(thing.crd), {**spec["properties"], "engine": engine})
    await author.ready(thing, "False", "BreakingChanges")
    await author.says(thing, "Accepted", "spec.engine", "2 composites")
    await author.apply(thing, "note", breakingChanges="Allow")
    await eventually(put_back)
    await author.ready(thing)
    assert await author.names(thing) == ["a", "b"]


def spec_of(crd: Json) -> Json:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


async def edit(author: Author, thing: Definition, crd: Json, properties: Json) -> None:
    """Somebody replaces the fields of spec in the CRD."""
    versions = copy.deepcopy(crd["spec"]["versions"])
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = properties
    await author.client.request(
        "PATCH", thing.crd, {"spec": {"versions": versions}}, content_type="application/merge-patch+json"
    )


async def test_objects_go_with_the_crd_unless_the_composites_are_paused(author: Author, group: str) -> None:
    async with (
        rights_on(author, f"more-{group}", all_of(group), all_of("", "configmaps")),
        composing_of(author, group) as composing,
    ):
        await composing.define()
        await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
        await composing.create("lost")
        await composing.create("saved")
        for each in ("lost", "saved"):
            await composing.ready(each)
        paused = {"metadata": {"annotations": {"crdkeeper.dev/paused": "true"}}}
        await composing.patch(composing.path("saved"), paused)
        await composing.says("saved", "Synced", "False", "ReconcilePaused")
        await counted(author, composing.definition, 2)
        await author.delete(composing.definition.crd)
        await composing.gone("lost-settings")
        await author.gone(composing.path("lost"))
        await asyncio.sleep(3.0)
        await composing.has("saved-settings", engine="MySQL")
        # What is left can be kept for good.
        uid = (await author.get(composing.path("saved")))["metadata"]["uid"]
        mark = {"metadata": {"annotations": {"crdkeeper.dev/outlives": uid}}}
        await composing.patch(f"{CONFIG_MAPS}/saved-settings", mark)
        on = {"metadata": {"annotations": {"crdkeeper.dev/paused": None}}}
        await composing.patch(composing.path("saved"), on)
        said = [f"2 composites were deleted with the CRD, {WITHOUT_US} them the objects that they {HAD}"]
        await reported(author, composing.definition, 2, said)
        await composing.has("saved-settings", engine="MySQL")
        await author.ready(composing.definition)
        await author.delete(f"{CONFIG_MAPS}/saved-settings")
