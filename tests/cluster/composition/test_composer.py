"""The composer under its own account: the life of a definition, and each way to delete it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import Operator, eventually, install
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATH = "/apis/crdkeeper.dev/v1alpha1/compositeresourcedefinitions"
NAME = "databases.platform.example.com"
OBJECTS = "/apis/platform.example.com/v1/namespaces/default/databases"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture(scope="module")
def composer(plane: Cluster) -> Iterator[Operator]:
    """The composer at work, installed by its manifests."""
    install(plane)
    install(plane, MANIFESTS / "composer")
    operator = Operator(plane, identity="composer", account="crdkeeper-composer", command=("compose", "run"))
    operator.start()
    yield operator
    operator.close()


@pytest.fixture
async def client(composer: Operator, plane: Cluster) -> AsyncIterator[Client]:
    """An admin."""
    async with Client(Connection(plane.kubeconfig)) as client:
        yield client


async def get(client: Client, path: str) -> Json:
    try:
        return await client.request("GET", path)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


async def ready(client: Client, status: str, reason: str) -> Json:
    """The definition once its Ready says so for its generation."""
    last: list[Json] = []

    async def look() -> Json:
        found = await get(client, f"{PATH}/{NAME}")
        last[:] = [found]
        if found is None or found["status"].get("observedGeneration") != found["metadata"]["generation"]:
            return None
        conditions = {each["type"]: each for each in found["status"]["conditions"]}
        said = conditions["Ready"]
        return found if (said["status"], said["reason"]) == (status, reason) else None

    return await eventually(look, otherwise=lambda: f"not {status} {reason}: {last}")


async def apply(client: Client, value: Json) -> None:
    """As a user does: server-side, so that the composer's status is in nobody's way."""
    path = f"{PATH}/{value['metadata']['name']}?fieldManager=user&force=true"
    await client.request("PATCH", path, value, content_type=APPLY_PATCH)


async def gone(client: Client, path: str) -> None:
    async def look() -> bool:
        return await get(client, path) is None

    await eventually(look)


async def delete(client: Client, path: str) -> None:
    await client.request("DELETE", path)
    await gone(client, path)


@pytest.fixture
async def rights(client: Client) -> AsyncIterator[None]:
    """The composer may list and delete composites of the group."""
    role = {
        "metadata": {"name": "composer-test", "labels": {"rbac.crdkeeper.dev/aggregate-to-composer": "true"}},
        "rules": [{"apiGroups": ["*"], "resources": ["databases"], "verbs": ["list", "delete"]}],
    }
    await client.request("POST", ROLES, role)

    async def aggregated() -> bool:
        return bool((await get(client, f"{ROLES}/crdkeeper-composites")).get("rules"))

    await eventually(aggregated)
    yield
    await client.request("DELETE", f"{ROLES}/composer-test")


async def test_the_life_of_a_definition(client: Client, rights: None) -> None:
    await apply(client, document())
    found = await ready(client, "True", "WatchingCompositeResource")
    crd = await get(client, f"{CRDS}/{NAME}")
    assert crd["metadata"]["annotations"]["crdkeeper.dev/definition-uid"] == found["metadata"]["uid"]
    await client.request(
        "POST",
        OBJECTS,
        {
            "apiVersion": "platform.example.com/v1",
            "kind": "Database",
            "metadata": {"name": "a"},
            "spec": {"engine": "MySQL"},
        },
    )
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
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    tighter = {**SPEC, "required": ["engine", "other"]}
    await apply(client, document(version(of=schema(tighter))))
    found = await ready(client, "False", "BreakingChanges")
    said = next(each["message"] for each in found["status"]["conditions"] if each["type"] == "Accepted")
    assert "{apiGroups: [platform.example.com], resources: [databases], verbs: [list, delete]}" in said
    await apply(client, document(deletion="Orphan"))
    await ready(client, "True", "WatchingCompositeResource")
    await delete(client, f"{PATH}/{NAME}")
    assert "annotations" not in (await get(client, f"{CRDS}/{NAME}"))["metadata"]

    # Not taken over, unless asked for.
    await apply(client, document())
    await ready(client, "False", "NotOurs")
    await delete(client, f"{PATH}/{NAME}")
    await apply(
        client, document(metadata={"annotations": {"crdkeeper.dev/adopt": "true"}}, deletion="Orphan")
    )
    await ready(client, "True", "WatchingCompositeResource")
    await delete(client, f"{PATH}/{NAME}")
    await delete(client, f"{CRDS}/{NAME}")


async def test_cascade(client: Client, rights: None) -> None:
    await apply(client, document(deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(20):
        await client.request(
            "POST",
            OBJECTS,
            {
                "apiVersion": "platform.example.com/v1",
                "kind": "Database",
                "metadata": {"name": f"a-{number}"},
                "spec": {"engine": "MySQL"},
            },
        )
    await client.request("DELETE", f"{PATH}/{NAME}")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


async def test_what_the_api_server_refuses_is_a_condition(client: Client, rights: None) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    await apply(client, document(version("v2")))
    found = await ready(client, "False", "Invalid")
    said = next(each["message"] for each in found["status"]["conditions"] if each["type"] == "Accepted")
    assert "v1 was previously a storage version" in said
    await delete(client, f"{PATH}/{NAME}")


async def test_a_hundred_definitions_at_once(client: Client, rights: None) -> None:
    names = [f"databases.g{number}.example.com" for number in range(100)]

    async def make(name: str) -> None:
        value = document(metadata={"name": name}, group=name.partition(".")[2])
        await client.request("POST", PATH, value)

    await asyncio.gather(*map(make, names))

    async def served() -> bool:
        items = (await client.request("GET", PATH))["items"]
        ready = [
            each["metadata"]["name"]
            for each in items
            for condition in each["status"].get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        ]
        return sorted(ready) == sorted(names)

    await eventually(served, seconds=120)
    for name in names:
        await client.request("DELETE", f"{PATH}/{name}")
    for name in names:
        await gone(client, f"{PATH}/{name}")
        await gone(client, f"{CRDS}/{name}")
