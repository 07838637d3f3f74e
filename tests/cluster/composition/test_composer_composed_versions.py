"""Versions of composites that are composed: a version stays while their composition depends on it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import Composing, all_of, config_map, rights_on
from tests.unit.core.composition.documents import version

Json = Any
ALLOW = "Or set spec.breakingChanges to Allow."


@pytest.fixture
async def composing(author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps."""
    async with rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        yield (composing := Composing(author, group))
        await composing.clean_up()


def going(**old: Any) -> list[Json]:
    """Two versions that are alike, of which v1 goes."""
    return [version("v1", referenceable=False, deprecated=True, **old), version("v2")]


async def test_a_version_by_which_composites_are_composed_stays(
    composing: Composing, observer: Observer, group: str
) -> None:
    author, thing, designer = composing.author, composing.definition, composing.designer
    await author.apply(thing, versions=going())
    await author.ready(thing)
    await composing.compose(config_map("a", zone="old"))
    # Without composites, nobody is composed by it.
    await author.apply(thing, versions=going(served=False))
    await author.ready(thing)
    await author.apply(thing, versions=going())
    await author.ready(thing)

    old, new = designer.name("main"), designer.name("new")
    await composing.create("follows")
    await composing.create("stays", crdkeeper={"compositionRef": {"name": old}})
    for name in ("follows", "stays"):
        await composing.ready(name)
    live = await author.get(thing.crd)
    await author.apply(thing, versions=going(served=False))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionInUse",
        "2 composites composed at v1 would have no CompositionRevision any more "
        f"(Composition {old}: 2 composites by {old}-1). ",
        f"create one whose spec.compositeTypeRef.apiVersion is {group}/v2",
        ALLOW,
        judged="Failed",
    )
    # What is refused changes nothing for the composites.
    await composing.create("follows", engine="Postgres")
    await composing.ready("follows")

    await designer.put("new", config_map("a", zone="new"), version="v2")
    await designer.ready("new")
    moved = {"defaultCompositionRef": {"name": new}}
    await author.apply(thing, versions=going(served=False), **moved)
    await composing.has("follows-a", zone="new")
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionInUse",
        "1 composite composed at v1 would have no CompositionRevision any more "
        f"(Composition {old}: 1 composite by {old}-1). ",
        ALLOW,
        judged="Failed",
        seconds=60,
    )
    assert (await author.get(thing.crd))["spec"] == live["spec"]
    await composing.create("stays", crdkeeper={"compositionRef": {"name": new}})
    await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current", seconds=60)
    await author.gone(f"{thing.objects}/stays")
    thing.objects = thing.objects.replace("/v1/", "/v2/")
    for name in ("follows", "stays"):
        await composing.ready(name)
        await composing.has(f"{name}-a", zone="new")
