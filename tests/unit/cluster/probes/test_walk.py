"""Which objects a walk lists."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.cluster.probes.census import Walk
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.finalizers.listing import HeldList
from tests.unit.builders import NOW, definition


@pytest.mark.parametrize(("namespace", "within"), [("", ""), ("s", "/namespaces/s")])
def test_a_walk_stays_in_its_namespace(namespace: str, within: str) -> None:
    requested = []

    class Lists:
        async def request(self, _: str, path: str, **__: Any) -> dict[str, Any]:
            requested.append(path.partition("?")[0])
            return {"metadata": {"continue": "x" * (len(requested) == 1)}}

    walk = Walk(definition(), lambda: HeldList(NOW), namespace=namespace)
    while not asyncio.run(walk.step(cast(Client, Lists()))):
        pass
    assert requested == [f"/apis/example.com/v2{within}/widgets"] * 2
