"""What the composer cannot change for now is said without a pause, and costs nothing: with composites."""

import asyncio

import orjson

from crdkeeper.cluster.transport.client import APPLY_PATCH
from tests.cluster.composition.authoring import Author, Definition, Json, condition, spec_with, stay
from tests.cluster.composition.test_composer_says_why import guard
from tests.cluster.harness import eventually
from tests.unit.core.composition.documents import schema, version

CONVERSIONS = "/apis/crdkeeper.dev/v1alpha1/versionconversions"
STEADY_SECONDS = 20.0
"""Longer than a rehearsal counts, and than the composer rests between looks at a refused definition."""


async def test_a_state_that_lasts_does_not_flap(author: Author, group: str) -> None:
    await asyncio.gather(_is_overwritten(author, group), _waits_for_its_conversion(author, group))


async def _is_overwritten(author: Author, group: str) -> None:
    """Another program forces what would have to be tried on the composites."""
    thing = Definition(group, "fought")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    names: Json = {"metadata": {"name": thing.name}, "spec": {"names": {"shortNames": ["rv"]}}}
    names |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}

    async def rival() -> None:
        path = f"{thing.crd}?fieldManager=rival&force=true"
        while True:
            await author.client.request("PATCH", path, names, content_type=APPLY_PATCH)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(rival())
    try:
        await author.ready(thing, "False", "Overwritten")
        said = set[tuple[str, str]]()
        for _ in range(int(4 * STEADY_SECONDS)):
            said.add(condition(await author.get(thing.path), "Ready")[:2])
            await asyncio.sleep(0.25)
        assert said == {("False", "Overwritten")}
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _waits_for_its_conversion(author: Author, group: str) -> None:
    """The composites are to be stored in a new version, which nothing converts: no operator is running."""
    thing = Definition(group, "pending")
    await author.apply(thing, versions=[version("v1", schema(spec_with("size")))])
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    rules = [{"hub": "spec.big", "aside": True}, {"spoke": "spec.size", "aside": True}]
    conversion = f"{CONVERSIONS}/{thing.name}"
    await author.put(
        conversion,
        {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "VersionConversion",
            "metadata": {"name": thing.name},
            "spec": {
                "resource": {"group": thing.group, "resource": thing.plural},
                "hub": "v2",
                "spokes": [{"version": "v1", "rules": rules}],
            },
        },
    )
    one = version("v1", schema(spec_with("size")), referenceable=False)
    await author.apply(thing, versions=[one, version("v2", schema(spec_with("big")))])
    await author.ready(thing, "Unknown", "ConversionPending")
    await stay(author, thing.path, thing.crd, seconds=STEADY_SECONDS)
    await author.delete(conversion)


async def _until_denied(author: Author, thing: Definition, said: str) -> None:
    """Returns once nobody may change the CRD."""

    async def denied() -> bool:
        path = f"{thing.crd}?fieldManager=probe&dryRun=All"
        crd: Json = {"metadata": {"name": thing.name, "labels": {"probe": "a"}}}
        crd |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        answer = await author.client.send("PATCH", path, content=orjson.dumps(crd), content_type=APPLY_PATCH)
        return said in str(answer.json().get("message"))

    await eventually(denied)


async def test_a_claim_that_is_denied_holds_up_nothing(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    async with guard(author, group, "denying", "UPDATE") as said:
        await _until_denied(author, thing, said)
        await author.delete(thing.path)
        message = await author.says(
            thing, "Established", "Besides, the composer cannot claim the CRD: ", said
        )
        assert message.startswith("1 composite (default/a); spec.deletion is Protect: ")
        # Nor the deletion of the composites, once it is wanted.
        await author.apply(thing, deletion="Cascade")
        await author.gone(f"{thing.objects}/a")
        await author.gone(thing.path)


async def test_protect_says_what_else_there_is_if_the_crd_may_not_be_changed(
    author: Author, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    async with guard(author, group, "denying", "UPDATE") as said:
        await _until_denied(author, thing, said)
        await author.delete(thing.path)
        refusal = "cannot let the API refuse new composites: "
        await author.says(thing, "Established", refusal, said, "set spec.deletion to Cascade", "or to Orphan")
        await author.apply(thing, deletion="Cascade")
        await author.gone(thing.path)
        await author.gone(thing.crd)
