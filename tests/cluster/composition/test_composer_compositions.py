"""Compositions in a cluster: checked by its schemas, and copied into CompositionRevisions."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import CRDS, Author, Definition
from tests.cluster.composition.designing import COMPOSITIONS, REVISIONS, Designer, settings
from tests.controlplane.cluster import Cluster

Json = Any
HASH = "crdkeeper.dev/composition-hash"
COMPOSITION = "crdkeeper.dev/composition"


@pytest.fixture
async def designer(author: Author, group: str) -> AsyncIterator[Designer]:
    """A user who writes Compositions, for a definition that is served."""
    definition = Definition(group, "thing")
    await author.apply(definition)
    await author.ready(definition)
    designer = Designer(author, definition)
    yield designer
    await designer.clean_up()


async def test_a_composition_gets_a_revision(designer: Designer, plane: Cluster) -> None:
    made = await designer.put("small", settings(engine="${composite.spec.engine}"), labels={"tier": "gold"})
    found = await designer.ready("small")
    (revision,) = await designer.revisions("small")
    name = designer.name("small")
    assert revision["metadata"]["name"] == f"{name}-1"
    labels = revision["metadata"]["labels"]
    assert labels == {"tier": "gold", COMPOSITION: name, HASH: labels[HASH]}
    assert "ownerReferences" not in revision["metadata"]
    assert revision["spec"] == {**made["spec"], "compositionRef": {"name": name}, "revision": 1}
    assert found["spec"] == made["spec"]
    row = (await asyncio.to_thread(plane.kubectl, "get", "comp", name)).splitlines()[1].split()
    assert row[:5] == [name, "Thing", "True", "Current", "1"]


async def test_each_change_gets_a_number_and_old_content_a_new_one(designer: Designer) -> None:
    for number, engine in enumerate(("a", "b", "a"), 1):
        await designer.put("small", settings(engine=engine))
        await designer.ready("small", number)
    first, second, third = await designer.revisions("small")
    assert first["spec"]["resources"] == third["spec"]["resources"] != second["spec"]["resources"]
    hashes = [each["metadata"]["labels"][HASH] for each in (first, second, third)]
    assert hashes[0] == hashes[2] != hashes[1]
    # Labels are content, too: composites select revisions by them.
    await designer.put("small", settings(engine="a"), labels={"channel": "stable"})
    await designer.until("small", [1, 2, 3, 4].__eq__)
    # How many are kept is not.
    await designer.put("small", settings(engine="a"), labels={"channel": "stable"}, revisionHistoryLimit=9)
    await designer.ready("small", 4)
    assert len(await designer.revisions("small")) == 4


async def test_an_invalid_change_keeps_the_revision_until_it_is_mended(designer: Designer) -> None:
    await designer.put("small", settings(engine="${composite.spec.engine}"))
    await designer.ready("small")
    await designer.put("small", settings(engine="${composite.spec.enginee}"))
    said = (
        "spec.resources[0].template.data.engine: column 17: undefined field 'enginee'. Did you mean engine?"
    )
    await designer.says("small", "Valid", "False", "Invalid", said, judged="Failed")
    found = await designer.says("small", "Ready", "False", "Invalid", said, judged="Failed")
    assert found["status"]["revision"] == 1
    assert [each["spec"]["revision"] for each in await designer.revisions("small")] == [1]
    await designer.put("small", settings(engine="${composite.spec.engine + '!'}"))
    await designer.ready("small", 2)


async def test_a_change_of_the_definition_is_heard(designer: Designer) -> None:
    await designer.put("small", settings(engine="${composite.spec.zone}"))
    said = "undefined field 'zone'"
    await designer.says("small", "Valid", "False", "Invalid", said, judged="Failed")
    await designer.author.apply(designer.definition, "zone")
    await designer.ready("small")
    await designer.author.apply(designer.definition, breakingChanges="Allow")
    found = await designer.says("small", "Valid", "False", "Invalid", said, judged="Failed")
    assert found["status"]["revision"] == 1


async def test_a_definition_that_is_missing_is_waited_for(author: Author, group: str) -> None:
    definition = Definition(group, "thing")
    designer = Designer(author, definition)
    try:
        await designer.put("small", settings(engine="a"))
        said = f"No CompositeResourceDefinition serves Thing of {group}/v1."
        await designer.says("small", "Valid", "Unknown", "DefinitionMissing", said, judged="InProgress")
        assert await designer.revisions("small") == []
        await author.apply(definition)
        await designer.ready("small")
    finally:
        await designer.clean_up()


def gadgets(group: str, field: str) -> Json:
    """The CRD of a kind that Compositions can use, whose spec has this field."""
    spec = {"type": "object", "properties": {field: {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


async def test_a_kind_that_is_missing_is_waited_for_and_checked_later(designer: Designer) -> None:
    group = f"gadgets.{designer.definition.group}"
    gadget = {
        "name": "gadget",
        "template": {
            "apiVersion": f"{group}/v1",
            "kind": "Gadget",
            "metadata": {"name": "a"},
            "spec": {"size": "${composite.spec.engine}"},
        },
    }
    await designer.put("small", settings(engine="a"), gadget)
    said = f"Gadget of {group}/v1 is not served."
    await designer.says("small", "Valid", "True", "KindMissing", said, judged="InProgress")
    await designer.says("small", "Ready", "False", "KindMissing", said, judged="InProgress")
    # Composites get the rest meanwhile.
    assert len(await designer.revisions("small")) == 1
    path = f"{CRDS}/gadgets.{group}"
    try:
        await designer.author.put(path, gadgets(group, "width"))
        said = "spec.resources[1].template.spec.size: "
        await designer.says("small", "Valid", "False", "Invalid", said, judged="Failed")
        await designer.author.put(path, gadgets(group, "size"))
        await designer.ready("small")
    finally:
        await designer.author.delete(path)
    await designer.says("small", "Ready", "False", "KindMissing", judged="InProgress")


async def test_old_revisions_go_but_not_those_in_use(designer: Designer) -> None:
    author, definition = designer.author, designer.definition
    await designer.put("small", settings(engine="1"), revisionHistoryLimit=1)
    await designer.ready("small")
    pinned = definition.composite("pinned")
    pinned["spec"]["crdkeeper"] = {"compositionRevisionRef": {"name": f"{designer.name('small')}-1"}}
    await author.put(f"{definition.objects}/pinned", pinned)
    for number in range(2, 5):
        await designer.put("small", settings(engine=f"{number}"), revisionHistoryLimit=1)
        await designer.ready("small", number)
    await designer.until("small", [1, 3, 4].__eq__)
    await designer.delete("small")
    await designer.until("small", [1].__eq__)
    # Numbers go on, so that no name ever means other content.
    await designer.put("small", settings(engine="new"))
    _, newest = await designer.until("small", lambda numbers: len(numbers) == 2)
    # The composer may not have heard yet that the others are gone.
    assert newest["spec"]["revision"] in (2, 5)
    await designer.ready("small", newest["spec"]["revision"])


async def test_numbers_go_on_although_somebody_deletes_all_revisions(designer: Designer) -> None:
    await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    await designer.put("small", settings(engine="${composite.spec.enginee}"))
    await designer.says("small", "Valid", "False", "Invalid", judged="Failed")
    await designer.author.delete(f"{REVISIONS}/{designer.name('small')}-1")
    await designer.until("small", [].__eq__)
    # The composer has seen that none is left.
    await asyncio.sleep(1.0)
    await designer.says("small", "Valid", "False", "Invalid", judged="Failed", revision=1)
    await designer.put("small", settings(engine="b"))
    await designer.ready("small", 2)


async def test_what_others_do_to_revisions_changes_no_content(designer: Designer) -> None:
    author = designer.author
    await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    (first,) = await designer.revisions("small")
    path = f"{REVISIONS}/{first['metadata']['name']}"
    forged = {"metadata": {"labels": {HASH: "0", "channel": "stable"}}}
    await author.client.request("PATCH", path, forged, content_type=MERGE_PATCH)
    _, second = await designer.until("small", [1, 2].__eq__)
    assert second["spec"]["resources"] == first["spec"]["resources"]
    assert second["metadata"]["labels"] == first["metadata"]["labels"]
    # Its number is known to have been used once it is in the status.
    await designer.ready("small", 2)
    await author.delete(f"{REVISIONS}/{second['metadata']['name']}")
    # The first one has another hash; the second one's number is not used again.
    await designer.until("small", [1, 3].__eq__)
    await designer.ready("small", 3)


async def test_a_name_that_is_taken_is_passed(designer: Designer) -> None:
    made = await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    foreign: Json = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositionRevision",
        "metadata": {"name": f"{designer.name('small')}-2"},
        "spec": {**made["spec"], "compositionRef": {"name": designer.name("other")}, "revision": 7},
    }
    await designer.author.client.request("POST", REVISIONS, foreign)
    try:
        await designer.put("small", settings(engine="b"))
        await designer.ready("small", 3)
        assert [each["spec"]["revision"] for each in await designer.revisions("small")] == [1, 3]
    finally:
        await designer.author.delete(f"{REVISIONS}/{foreign['metadata']['name']}")


async def test_a_status_that_somebody_else_writes_is_put_back(designer: Designer) -> None:
    await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    path = f"{COMPOSITIONS}/{designer.name('small')}"
    forged = {"status": {"conditions": [], "revision": 0}}
    await designer.author.client.request("PATCH", f"{path}/status", forged, content_type=MERGE_PATCH)
    await designer.ready("small")
