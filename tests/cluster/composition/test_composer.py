"""The composer under its own account: the life of a definition, and each way to delete it."""

from typing import Any

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from tests.cluster.composition.composerscene import (
    CRDS,
    NAME,
    OBJECTS,
    PATH,
    apply,
    conditions,
    database,
    delete,
    get,
    gone,
    ready,
)
from tests.cluster.harness import eventually
from tests.kstatus import status_of
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any


async def test_the_life_of_a_definition(client: Client, rights: None) -> None:
    await apply(client, document())
    found = await ready(client, "True", "WatchingCompositeResource")
    crd = await get(client, f"{CRDS}/{NAME}")
    assert crd["metadata"]["annotations"]["crdkeeper.dev/definition-uid"] == found["metadata"]["uid"]
    await client.request("POST", OBJECTS, database("a"))
    assert (await get(client, f"{OBJECTS}/a"))["status"] == {"observedGeneration": -1}

    # What a user changes behind its back is put back; what it does not own stays.
    crd["spec"]["names"]["categories"] = ["other"]
    crd["metadata"]["labels"] = {"mine": "yes"}
    crd.pop("status")
    crd["metadata"].pop("resourceVersion")
    await client.request(
        "PATCH",
        f"{CRDS}/{NAME}",
        {"spec": {"names": crd["spec"]["names"]}, "metadata": {"labels": {"mine": "yes"}}},
        content_type=MERGE_PATCH,
    )

    async def put_back() -> bool:
        now = await get(client, f"{CRDS}/{NAME}")
        categories, labels = now["spec"]["names"]["categories"], now["metadata"]["labels"]
        return bool(categories == ["composite"] and labels == {"mine": "yes"})

    await eventually(put_back)

    # A change that would refuse objects is refused, and the CRD stays.
    tighter = {
        **SPEC,
        "properties": {**SPEC["properties"], "engine": {"type": "string", "enum": ["Postgres"]}},
    }
    await apply(client, document(version(of=schema(tighter))))
    await ready(client, "False", "BreakingChanges")
    spec = (await get(client, f"{CRDS}/{NAME}"))["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]["spec"]
    assert spec["properties"]["engine"]["enum"] == ["Postgres", "MySQL"]
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")

    # Protect holds the deletion until there are no composites.
    await client.request("DELETE", f"{PATH}/{NAME}")
    await ready(client, "False", "TerminatingCompositeResource")
    assert await get(client, f"{OBJECTS}/a") is not None
    await client.request("DELETE", f"{OBJECTS}/a")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


async def test_without_the_right_to_list_composites(client: Client) -> None:
    await apply(client, document(deletion="Cascade"))
    found = await ready(client, "False", "RightMissing")
    assert "list databases.platform.example.com, watch" in conditions(found)["Established"]["message"]
    assert status_of(found) == "Failed"
    tighter = {**SPEC, "required": ["engine", "other"]}
    await apply(client, document(version(of=schema(tighter))))
    found = await ready(client, "False", "BreakingChanges")
    said = conditions(found)["Accepted"]["message"]
    assert "{apiGroups: [platform.example.com], resources: [databases], verbs: [list, watch]}" in said
    await apply(client, document(deletion="Orphan"))
    await ready(client, "False", "RightMissing")
    await delete(client, f"{PATH}/{NAME}")
    assert "annotations" not in (await get(client, f"{CRDS}/{NAME}"))["metadata"]

    # Not taken over, unless asked for.
    await apply(client, document())
    await ready(client, "False", "NotOurs")
    await delete(client, f"{PATH}/{NAME}")
    await apply(
        client, document(metadata={"annotations": {"crdkeeper.dev/adopt": "true"}}, deletion="Orphan")
    )
    await ready(client, "False", "RightMissing")
    await delete(client, f"{PATH}/{NAME}")
    await delete(client, f"{CRDS}/{NAME}")


async def test_cascade(client: Client, rights: None) -> None:
    await apply(client, document(deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(20):
        await client.request("POST", OBJECTS, database(f"a-{number}"))
    await client.request("DELETE", f"{PATH}/{NAME}")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


async def test_what_the_api_server_would_refuse_is_a_condition(client: Client, rights: None) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    await apply(client, document(version("v2")))
    found = await ready(client, "False", "VersionStored")
    said = conditions(found)["Accepted"]["message"]
    assert "status.storedVersions still has v1" in said
    await delete(client, f"{PATH}/{NAME}")
