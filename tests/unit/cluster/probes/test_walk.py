"""Which objects a walk lists."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from crdkeeper.cluster.probes import census
from crdkeeper.cluster.probes.census import Walk
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.hunglists import hung
from crdkeeper.core.diagnosis.deletion import BlockerTally
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.finalizers.listing import HeldList
from tests.unit.builders import NOW, definition
from tests.unit.cluster.largeobjects import KIB, MIB, LargeObjects
from tests.unit.cluster.transport.localserver import client_of, failure, json


async def test_a_walk_waits_until_a_list_does_not_hang(tmp_path: Path) -> None:
    walk = Walk(definition(), lambda: HeldList(NOW))
    not_ready = failure(429, "TooManyRequests", "storage is (re)initializing")
    async with client_of(tmp_path, not_ready, json({"metadata": {}})) as (server, client):
        hung(client, "/apis/example.com/v2/widgets", "no answer")
        await walk.step(client)
        assert walk.failure == Failure(ProbeTrouble.SILENT, 0, "no answer")
        await walk.step(client)
        assert walk.complete
    assert ["fieldSelector" in path for _, path in server.seen] == [True, True, False]


@pytest.mark.parametrize(("namespace", "within"), [("", ""), ("s", "/namespaces/s")])
def test_a_walk_stays_in_its_namespace(namespace: str, within: str) -> None:
    requested = []

    class Lists:
        hung_lists: ClassVar[dict[str, tuple[str, float]]] = {}

        async def request(self, _: str, path: str, **__: Any) -> dict[str, Any]:
            requested.append(path.partition("?")[0])
            return {"metadata": {"continue": "x" * (len(requested) == 1)}}

    walk = Walk(definition(), lambda: HeldList(NOW), namespace=namespace)
    while not asyncio.run(walk.step(cast(Client, Lists()))):
        pass
    assert requested == [f"/apis/example.com/v2{within}/widgets"] * 2


async def test_large_objects_come_in_small_pages_and_each_one_counts() -> None:
    client = LargeObjects(*[KIB] * 250, *[250 * KIB] * 50, 5 * MIB, *[KIB] * 250)
    walk = Walk(definition(), BlockerTally)
    while not await walk.step(client):
        assert walk.failure is None
    assert (walk.failure, walk.tally.objects) == (None, 551)
    assert client.largest <= METADATA_BYTES
    assert client.limits[0] == client.limits[-1] == census.PAGE
