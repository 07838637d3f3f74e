"""The composer and what its definition does not have: names and labels of others, and of an adopted CRD."""

import asyncio

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.composition.definition import OWNER
from tests.cluster.composition.authoring import CRDS, WORKING, Author, Definition, Json, condition, stay
from tests.cluster.harness import eventually

REST_SECONDS = 20.0
"""Longer than a rehearsal counts, and than the composer waits after a write of the status."""


async def short_names(author: Author, thing: Definition) -> Json:
    """Those of the CRD."""
    return (await author.get(thing.crd))["spec"]["names"].get("shortNames")


async def without_short_names(author: Author, thing: Definition) -> None:
    """Returns when the CRD has none."""

    async def look() -> bool:
        return not await short_names(author, thing)

    await eventually(look)


async def take_a_short_name(author: Author, thing: Definition) -> None:
    """Somebody adds one that the definition does not have, which is removed again."""
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    names = {"spec": {"names": {"shortNames": ["dbx"]}}}
    await author.client.request("PATCH", thing.crd, names, content_type=MERGE_PATCH)
    await without_short_names(author, thing)


async def adopt_and_give_up(author: Author, thing: Definition) -> None:
    """A definition adopts a CRD, and then gives up short names, labels and annotations of it."""
    adopts = {"annotations": {"crdkeeper.dev/adopt": "true"}}
    names = {"kind": thing.kind, "plural": thing.plural, "shortNames": ["dby"]}
    shared = {"shared": "e"}
    texts = {"labels": {"team": "a", "tier": "b", **shared}, "annotations": {"example.com/page": "c"}}
    made = accept(thing.document(names=names)).crd
    assert made is not None
    made["metadata"] |= {**texts, "labels": {**texts["labels"], "theirs": "d"}}
    # One who becomes the manager of them, too, and one who goes on to apply a label.
    await author.client.request("POST", f"{CRDS}?fieldManager=kubectl", made)
    theirs = {key: made[key] for key in ("apiVersion", "kind")}
    theirs["metadata"] = {"name": thing.name, "labels": shared}
    await author.client.request("PATCH", f"{thing.crd}?fieldManager=flux", theirs, content_type=APPLY_PATCH)
    adopting = thing.document(metadata=adopts, names=names, deletion="Cascade")
    adopting["spec"]["metadata"] = texts
    await author.put(thing.path, adopting)
    await author.ready(thing)
    assert await short_names(author, thing) == ["dby"]
    fewer = thing.document(metadata=adopts, deletion="Cascade")
    fewer["spec"]["metadata"] = {"labels": {"tier": "b"}}
    await author.put(thing.path, fewer)
    await without_short_names(author, thing)

    async def given_up() -> bool:
        metadata = (await author.get(thing.crd))["metadata"]
        same = metadata["labels"] == {"tier": "b", "theirs": "d", **shared}
        return same and set(metadata["annotations"]) == {OWNER}

    await eventually(given_up)


async def label_again_and_again(author: Author, thing: Definition) -> None:
    """Somebody applies labels, with pauses long enough that the composer looks after each."""
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    for number in range(5):
        crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        metadata = {"name": thing.name, "labels": {"example.com/number": str(number)}}
        path = f"{thing.crd}?fieldManager=another"
        await author.client.request("PATCH", path, {**crd, "metadata": metadata}, content_type=APPLY_PATCH)
        await asyncio.sleep(1.5)
        assert condition(await author.get(thing.path), "Ready")[:2] == WORKING


async def test_what_a_definition_does_not_have_is_removed_and_all_is_quiet(
    author: Author, group: str
) -> None:
    taken, adopted, labelled = (Definition(group, each) for each in ("taken", "adopted", "labelled"))
    await take_a_short_name(author, taken)
    await adopt_and_give_up(author, adopted)
    await label_again_and_again(author, labelled)
    paths = [path for each in (taken, adopted, labelled) for path in (each.crd, each.path)]
    await stay(author, *paths, seconds=REST_SECONDS)
    for each in (taken, adopted, labelled):
        await author.ready(each)
        await author.delete(each.path)
    for each in (taken, adopted, labelled):
        await author.gone(each.path)
        await author.gone(each.crd)
