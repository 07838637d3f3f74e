"""`published_schemas` and the API server publish the same for a CRD, in OpenAPI v2 and v3.

The CRDs are really created, in their own groups. CRDKEEPER_PUBLISHED sets how many random schemas are
published, and a fifth as many variants of CRDs; CRDKEEPER_CORPUS names a directory of CRDs to publish as
well, CRDKEEPER_SEED selects others.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.publishing.components import published_schemas
from crdkeeper.apiserver.definitions.publishing.implied import OpenAPI
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.agreement import CRDS
from tests.cluster.definitions.lint.variants import Crd
from tests.cluster.definitions.publishing.agreement import differences
from tests.cluster.definitions.publishing.definitions import (
    accepted_variants,
    all_of_the_corpus,
    in_group,
    with_random_schemas,
)
from tests.cluster.definitions.publishing.explaining import printed_for, said_of
from tests.cluster.harness.waiting import eventually
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import Kubectl

COUNT = int(os.environ.get("CRDKEEPER_PUBLISHED", "100"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
AT_ONCE = 4
AT_A_TIME = 40
SHOWN = 40
TIMEOUT_SECONDS = 600 + 2 * COUNT
SECONDS = 120.0

Schemas = dict[str, Any]


@asynccontextmanager
async def _created(client: Client, crds: Sequence[Crd]) -> AsyncIterator[None]:
    async def work(queue: Iterator[Crd], method: str) -> None:
        for crd in queue:
            if method == "POST":
                await client.request("POST", CRDS, crd)
            else:
                await client.send("DELETE", f"{CRDS}/{crd['metadata']['name']}")

    async def all_of(method: str) -> None:
        queue = iter(crds)
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work(queue, method))

    try:
        await all_of("POST")
        yield
    finally:
        await all_of("DELETE")


async def _published(client: Client, crds: Sequence[Crd]) -> dict[OpenAPI, Schemas]:
    """The server's documents for these, once they are complete."""
    versions = [
        (crd["spec"]["group"], each["name"])
        for crd in crds
        for each in crd["spec"]["versions"]
        if each.get("served")
    ]
    v3: Schemas = {}
    for group, version in versions:

        async def look(path: str = f"/openapi/v3/apis/{group}/{version}") -> Schemas | None:
            answer = await client.send("GET", path)
            return answer.json()["components"]["schemas"] if answer.code == 200 else None

        v3 |= await eventually(look, seconds=SECONDS)
    v2: Schemas = {}
    prefixes = [".".join((*reversed(group.split(".")), version, "")) for group, version in versions]

    async def complete() -> bool:
        v2.clear()
        v2.update((await client.request("GET", "/openapi/v2"))["definitions"])
        return all(any(name.startswith(each) for name in v2) for each in prefixes)

    await eventually(complete, seconds=SECONDS, otherwise=lambda: "v2 is not complete")
    return {OpenAPI.V2: v2, OpenAPI.V3: v3}


def _compared(crds: Sequence[Crd], published: dict[OpenAPI, Schemas]) -> tuple[int, list[str]]:
    """How many schemas were compared, and which ones differ."""
    count, wrong = 0, []
    for crd in crds:
        group = ".".join(reversed(crd["spec"]["group"].split(".")))
        for openapi, theirs in published.items():
            ours: Schemas = {}
            for version in crd["spec"]["versions"]:
                ours |= published_schemas(crd, version["name"], openapi)
            names = {name for name in theirs if name.startswith(f"{group}.")}
            for name in sorted(names | ours.keys()):
                count += 1
                found = list(differences(ours.get(name), theirs.get(name)))
                if found:
                    shown = "\n  ".join(found[:5])
                    wrong.append(f"{openapi.name} {crd['metadata']['name']} {name}:\n  {shown}")
    return count, wrong


def _explained_otherwise(kubectl: Kubectl, crds: Sequence[Crd]) -> list[str]:
    """The kinds for which `kubectl explain` shows other fields than predicted."""
    wrong = []
    for crd in crds:
        version = next(each["name"] for each in crd["spec"]["versions"] if each.get("served"))
        ours, theirs = said_of(crd, version), printed_for(kubectl, crd, version)
        if ours != theirs:
            unlike = sorted(map(str, set(ours or ()) ^ set(theirs or ())))[:5]
            wrong.append(f"kubectl explain {crd['metadata']['name']}: {unlike or 'only one fails'}")
    return wrong


async def _agree(cluster: Cluster, client: Client, crds: Sequence[Crd]) -> None:
    run = uuid.uuid4().hex[:6]
    own = [in_group(crd, i, run) for i, crd in enumerate(crds)]
    count, wrong = 0, []
    for at in range(0, len(own), AT_A_TIME):
        some = own[at : at + AT_A_TIME]
        async with _created(client, some):
            compared, differing = _compared(some, await _published(client, some))
            unlike = await asyncio.to_thread(_explained_otherwise, cluster.kubectl, some)
        count += compared
        wrong += [*differing, *unlike]
    print(f"{len(own)} CRDs: {count} schemas published, {len(wrong)} of them other than said")
    assert not wrong, "\n".join(wrong[:SHOWN])
    assert count >= 4 * len(own)


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_random_schemas(plane: Cluster) -> None:
    async with Client(Connection(plane.kubeconfig)) as client:
        crds = await with_random_schemas(client, COUNT, SEED)
        properties = sum(
            len(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
            for each in crds
        )
        print(f"{properties} random schemas, each published in v2 and v3")
        assert properties > COUNT / 2
        await _agree(plane, client, crds)


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_variants_of_crds(plane: Cluster) -> None:
    async with Client(Connection(plane.kubeconfig)) as client:
        await _agree(plane, client, await accepted_variants(client, COUNT // 5, SEED))


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_real_crds(plane: Cluster) -> None:
    crds = all_of_the_corpus()
    if not crds:
        pytest.skip("CRDKEEPER_CORPUS names no folder of CRDs")
    async with Client(Connection(plane.kubeconfig)) as client:
        await _agree(plane, client, crds)
