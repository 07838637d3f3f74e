"""One look at the objects of a CRD, and how much of them it reads."""

import asyncio
from datetime import datetime
from typing import Any, cast

from crdkeeper.api.finalizerrelease import FinalizerRule
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.finalizers.standing import finalizers_standing
from crdkeeper.core.finalizers.tally import HeldLook, read_rules
from crdkeeper.operations.finalizers.looking import look_for_held
from crdkeeper.operations.finalizers.memory import Memory
from tests.unit.builders import NOW, definition, later

MANY = 450
RULE = FinalizerRule.model_validate({"name": "a.com/b", "releaseAfter": "1s", "when": "has(object.spec)"})
RULES, _ = read_rules([RULE])


class Cluster:
    """Objects in deletion, and what is requested."""

    def __init__(self, objects: int) -> None:
        self.objects = [
            {
                "metadata": {
                    "namespace": "s",
                    "name": f"n{at:04d}",
                    "uid": f"u{at}",
                    "resourceVersion": "1",
                    "deletionTimestamp": later(-100).isoformat(),
                    "finalizers": ["a.com/b"],
                }
            }
            for at in range(objects)
        ]
        self.requested: list[str] = []
        self.hung_lists: dict[str, tuple[str, float]] = {}
        self.time = NOW

    def now(self) -> datetime:
        return self.time

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        path = path.partition("?")[0]
        if method == "POST":
            return {"status": {"allowed": True}}
        self.requested.append(path)
        if path.endswith("/widgets"):
            return {"metadata": {}, "items": self.objects}
        return next(each for each in self.objects if path.endswith(f"/{each['metadata']['name']}"))


def look(api: Cluster, memory: Memory) -> HeldLook:
    async def turn() -> None:
        pass

    return asyncio.run(look_for_held(cast(Client, api), definition(), RULES, memory, turn))


def after_a_look(api: Cluster) -> Memory:
    """What is remembered once the objects were watched for long enough."""
    memory = Memory(lambda: 0.0)
    assert look(api, memory).counts[0].waiting == MANY
    api.time = later(1)
    api.requested.clear()
    return memory


def read(api: Cluster) -> list[str]:
    found = [each.rpartition("/")[2] for each in api.requested if not each.endswith("/widgets")]
    api.requested.clear()
    return found


def test_a_look_reads_only_some_objects_for_their_condition() -> None:
    api = Cluster(MANY)
    memory = after_a_look(api)
    first = look(api, memory)
    assert (len(read(api)), first.unasked) == (200, 250)
    standing = finalizers_standing([RULE], [first], [])
    assert "250 for which `when` is evaluated in one of the next looks." in standing.message
    second, third = look(api, memory), look(api, memory)
    assert len(set(read(api))) == 250
    assert (second.unasked, third.unasked, third.counts[0].unmet) == (50, 0, MANY)
    look(api, memory)
    assert read(api) == []


def test_each_has_its_turn_if_nothing_can_be_remembered() -> None:
    api = Cluster(MANY)
    memory = after_a_look(api)
    memory.recall = lambda *_: None  # type: ignore[method-assign]
    seen = set[str]()
    for _ in range(3):
        look(api, memory)
        seen |= {*read(api)}
    assert len(seen) == MANY
