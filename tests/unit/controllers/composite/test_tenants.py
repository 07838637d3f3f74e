"""All composites in a namespace count as one tenant's, of whatever APIs they are."""

import asyncio
from typing import Any, cast

from crdkeeper.cluster.transport.client import Client, TooLarge
from crdkeeper.controllers.composite.controller import Composites
from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.composite.room import Share
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from tests import virtualtime

LARGE = {"metadata": {"uid": "large"}, "data": "x" * (50 << 20)}


class Passes:
    """Passes of which each takes a second, over composites with a large object."""

    def __init__(self, *keys: str) -> None:
        self.begun: list[str] = []
        self.had_no_room: list[str] = []
        metrics = OperatorMetrics()
        composing = ComposingMetrics(metrics.registry, metrics.composer_writes)
        controller = Composites(cast(Client, None), ClusterState(), composing, identity="me")
        controller._looks = cast(Any, self)

        async def main() -> None:
            for each in keys:
                controller._uids[each] = each
                controller._news.hear(each, 1)
            await asyncio.gather(*map(controller._reconcile, keys))

        virtualtime.run(main())

    async def look(self, key: str, share: Share, _: Any) -> None:
        """Like `Looks.look`."""
        self.begun.append(key)
        try:
            share.add(LARGE)
        except TooLarge:
            self.had_no_room.append(key)
        await asyncio.sleep(1.0)


def test_apis_in_one_namespace_share_its_workers_and_its_memory() -> None:
    keys = [f"{api}.example.com\nshop\n{number}" for api in "abc" for number in range(2)]
    passes = Passes(*keys, "a.example.com\nother\n0")
    assert passes.begun == [*keys[:4], "a.example.com\nother\n0"]
    # The other namespace has what the first one leaves.
    assert passes.had_no_room == keys[1:4]


def test_cluster_scoped_composites_are_of_one_tenant_for_each_api() -> None:
    keys = [f"{api}.example.com\n\n{number}" for api in "ab" for number in range(5)]
    passes = Passes(*keys)
    assert passes.begun == [*keys[:4], *keys[5:9]]
    assert passes.had_no_room == [*keys[1:4], *keys[6:9]]
