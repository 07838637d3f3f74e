"""Composites that follow revisions by their labels: a canary, its promotion, and the way back."""

from collections.abc import AsyncIterator
from typing import Any

import orjson

from tests.cluster.composition.authoring import condition
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, used
from tests.cluster.composition.designing import REVISIONS

Json = Any


def channels(*names: str) -> Json:
    """Settings of a composite that follows revisions with one of these values of a label."""
    expression = {"key": "channel", "operator": "In", "values": list(names)}
    return {"compositionRevisionSelector": {"matchExpressions": [expression]}}


async def release(composing: Composing, number: int, channel: str, **data: str) -> None:
    """Apply the Composition with this label, which is also content."""
    resources = config_map("settings", **data), config_map("data")
    await composing.compose(*resources, number=number, labels={"channel": channel})


async def label(composing: Composing, number: int, channel: str) -> None:
    """Change the label of a revision, as one promotes it or takes it back."""
    path = f"{REVISIONS}/{composing.designer.name('main')}-{number}"
    await composing.patch(path, {"metadata": {"labels": {"channel": channel}}})


async def test_a_canary_is_promoted_to_all_and_the_next_one_is_taken_back(composing: Composing) -> None:
    await release(composing, 1, "stable", version="1")
    await composing.create("all", crdkeeper=channels("stable"))
    await composing.create("few", crdkeeper=channels("stable", "canary"))
    for each in ("all", "few"):
        await composing.runs_by(each, 1)
    kept = await composing.author.get(f"{CONFIG_MAPS}/few-data")

    await release(composing, 2, "canary", version="2")
    await composing.runs_by("few", 2)
    await composing.has("few-settings", version="2")
    await composing.runs_by("all", 1)
    await composing.has("all-settings", version="1")

    await label(composing, 2, "stable")
    await composing.runs_by("all", 2)
    await composing.has("all-settings", version="2")

    await release(composing, 3, "canary", version="3")
    await composing.runs_by("few", 3)
    await composing.has("few-settings", version="3")
    await label(composing, 3, "broken")
    await composing.runs_by("few", 2)
    await composing.has("few-settings", version="2")
    await composing.runs_by("all", 2)
    # What is the same in all of them was never touched; a label makes no revision.
    assert await composing.author.get(f"{CONFIG_MAPS}/few-data") == kept
    assert [each["spec"]["revision"] for each in await composing.designer.revisions("main")] == [1, 2, 3]


async def test_the_definition_chooses_for_those_that_do_not(composing: Composing) -> None:
    selector = {"defaultCompositionRevisionSelector": {"matchLabels": {"channel": "stable"}}}
    await composing.define(**selector)
    await release(composing, 1, "canary", version="1")
    await composing.create("follows")
    await composing.create("chooses", crdkeeper=channels("canary"))
    await composing.runs_by("chooses", 1)
    said = f"No CompositionRevision of {composing.designer.name('main')} has the labels of the selector."
    await composing.says("follows", "Synced", "False", "NoRevision", said)
    # Labels alone are a new revision, and no reason to write what it makes.
    await release(composing, 2, "stable", version="1")
    await composing.runs_by("follows", 2)
    await composing.runs_by("chooses", 1)
    before = await composing.author.get(f"{CONFIG_MAPS}/follows-settings")
    # Whoever changes the definition moves all that follow it.
    await composing.define(defaultCompositionRevisionSelector={"matchLabels": {"channel": "canary"}})
    await composing.runs_by("follows", 1)
    assert await composing.author.get(f"{CONFIG_MAPS}/follows-settings") == before


async def test_a_composite_is_not_ready_by_a_revision_before_its_objects_are_as_that_says(
    composing: Composing,
) -> None:
    await release(composing, 1, "stable", version="1")
    await composing.create("any")
    await composing.runs_by("any", 1)
    since = (await composing.author.get(composing.path("any")))["metadata"]["resourceVersion"]
    more = config_map("more", of="${settings.metadata.name}")
    await composing.compose(config_map("settings", version="2"), config_map("data"), more, number=2)
    await composing.has("any-more", of="any-settings")
    last = await composing.ready("any")

    states = [each async for each in _states(composing, "any", since, last["metadata"]["resourceVersion"])]
    named = [each for each in states if used(each).endswith("-2")]
    assert condition(named[0], "Ready")[:2] == ("False", "NotSynced")
    made = [
        int((await composing.author.get(f"{CONFIG_MAPS}/any-{each}"))["metadata"]["resourceVersion"])
        for each in ("settings", "more")
    ]
    for each in named:
        if condition(each, "Ready")[0] == "True":
            assert int(each["metadata"]["resourceVersion"]) > max(made)


async def _states(composing: Composing, name: str, since: str, until: str) -> AsyncIterator[Json]:
    """All that a composite has been after a version of it, up to another one."""
    selected = f"fieldSelector=metadata.name%3D{name}"
    path = f"{composing.definition.objects}?watch=true&{selected}&resourceVersion={since}"
    async for line in composing.author.client.lines(path):
        found = orjson.loads(line)["object"]
        yield found
        if found["metadata"]["resourceVersion"] == until:
            return
