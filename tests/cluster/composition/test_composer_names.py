"""The composer and names that its definition does not have: those of others, and of an adopted CRD."""

import asyncio
from typing import Any

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, Client
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.composition.definition import OWNER
from tests.cluster.composition.composerscene import (
    CRDS,
    NAME,
    OBJECTS,
    PATH,
    apply,
    database,
    delete,
    get,
    gone,
    ready,
)
from tests.cluster.harness import eventually
from tests.unit.core.composition.documents import document

Json = Any
CRD = f"{CRDS}/{NAME}"
DEFINITION = f"{PATH}/{NAME}"
REST_SECONDS = 25.0
"""Longer than a rehearsal counts, and than the composer waits after a write of the status."""


async def short_names(client: Client) -> Json:
    """Those of the CRD."""
    return (await get(client, CRD))["spec"]["names"].get("shortNames")


async def without_short_names(client: Client) -> bool:
    return not await short_names(client)


async def at_rest(client: Client) -> None:
    """Nothing is written for some time."""
    await asyncio.sleep(3.0)
    before = [await get(client, each) for each in (CRD, DEFINITION)]
    await asyncio.sleep(REST_SECONDS)
    assert [await get(client, each) for each in (CRD, DEFINITION)] == before


async def test_a_short_name_that_somebody_adds_is_removed_and_all_is_quiet(
    client: Client, rights: None
) -> None:
    await apply(client, document(deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    await client.request("POST", OBJECTS, database("a"))
    # One who changes it, and one who becomes its manager.
    names = {"spec": {"names": {"shortNames": ["dbx"]}}}
    await client.request("PATCH", CRD, names, content_type=MERGE_PATCH)
    await eventually(lambda: without_short_names(client))
    await at_rest(client)
    await ready(client, "True", "WatchingCompositeResource")
    await delete(client, DEFINITION)
    await gone(client, DEFINITION)


async def test_an_adopted_crd_loses_the_short_names_and_labels_that_its_definition_gives_up(
    client: Client, rights: None
) -> None:
    adopts = {"annotations": {"crdkeeper.dev/adopt": "true"}}
    names = {"kind": "Database", "plural": "databases", "shortNames": ["dbx"]}
    texts = {"labels": {"team": "a", "tier": "b"}, "annotations": {"example.com/page": "c"}}
    made = accept(document(names=names)).crd
    assert made is not None
    made["metadata"] |= {**texts, "labels": {**texts["labels"], "theirs": "d"}}
    await client.request("PATCH", f"{CRD}?fieldManager=kubectl", made, content_type=APPLY_PATCH)
    adopting = document(metadata=adopts, names=names, deletion="Cascade")
    adopting["spec"]["metadata"] = texts
    await apply(client, adopting)
    await ready(client, "True", "WatchingCompositeResource")
    assert await short_names(client) == ["dbx"]
    fewer = document(metadata=adopts, deletion="Cascade")
    fewer["spec"]["metadata"] = {"labels": {"tier": "b"}}
    await apply(client, fewer)
    await eventually(lambda: without_short_names(client))
    metadata = (await get(client, CRD))["metadata"]
    assert metadata["labels"] == {"tier": "b", "theirs": "d"}
    assert set(metadata["annotations"]) == {OWNER}
    await at_rest(client)
    await delete(client, DEFINITION)
    await gone(client, DEFINITION)
