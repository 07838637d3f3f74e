"""The objects of strangers, and forged ones, take little memory."""

import asyncio
import gc
from collections.abc import Collection, Mapping
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from weakref import ref

import pytest

from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Client, TooLarge
from crdkeeper.controllers.composite.accounts import Actor
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.reconciling import CompositePass
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, Composite
from crdkeeper.core.templates.namespaces import Identity
from tests.unit.core.templates.compositions import DATABASE

COMPOSITE = Composite.of({**DATABASE, "metadata": {**DATABASE["metadata"], "uid": "u1"}})
MANY = 200
LARGE = 1 << 20
ALIVE: set[int] = set()


class Data(dict[str, str]):
    """Large data, which is counted for as long as it is in memory."""

    def __init__(self, size: int) -> None:
        super().__init__(text="x" * size)
        ALIVE.add(id(self))

    def __del__(self) -> None:
        ALIVE.discard(id(self))


class Api:
    """An API server with ConfigMaps that have the composite's label, of this size."""

    def __init__(self, size: int, ours: range) -> None:
        self.size = size
        self.ours = ours
        self.most_alive = 0
        self.most_sent = 0
        """Bytes, of what was sent at once."""
        self._sent = 0

    async def request(
        self, _: str, path: str, *, accept: str = "", most: int | None = None
    ) -> Mapping[str, Any]:
        if path == "/api/v1":
            verbs = ["get", "patch"]
            kind = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": verbs}
            return {"resources": [kind]}
        query = parse_qs(urlsplit(path).query)
        first, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        numbers = range(first, min(MANY, first + limit))
        if most is not None and len(numbers) * self.size > most:
            raise TooLarge("too large")
        await self._send(len(numbers) * self.size)
        items = [self._item(each) for each in numbers]
        self.most_alive = max(self.most_alive, len(ALIVE))
        return {"items": items, "metadata": {"continue": str(numbers.stop) if numbers.stop < MANY else ""}}

    async def _send(self, size: int) -> None:
        self._sent += size
        self.most_sent = max(self.most_sent, self._sent)
        await asyncio.sleep(0.0)
        self._sent -= size

    def _item(self, number: int) -> dict[str, Any]:
        uid = "u1" if number in self.ours else "somebody"
        owner = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": uid, "controller": True}
        metadata = {
            "name": f"a{number}",
            "namespace": "shop",
            "uid": str(number),
            "resourceVersion": "1",
            "labels": {COMPOSITE_LABEL: "u1"},
            "ownerReferences": [owner],
        }
        return {"metadata": metadata, "data": Data(self.size)}


async def gathered(api: Api, room: ObjectMemory, listed: Collection[Identity] | None = None) -> Gathering:
    client = cast(Client, api)
    gathering = Gathering(
        client, KindPaths(client, tuple), COMPOSITE, {}, room.share("a"), KnownRights(client)
    )
    gathering.listed = listed
    await gathering.read([("v1", "ConfigMap")])
    return gathering


async def test_what_strangers_label_is_dropped_page_by_page() -> None:
    api = Api(LARGE, range(150, 151))
    gathering = await gathered(api, ObjectMemory())
    assert [each.name for each in gathering.found.objects] == ["a150"]
    assert not gathering.found.unreadable
    assert api.most_alive <= 20


async def test_more_than_there_is_room_for_is_told_and_not_kept() -> None:
    api = Api(LARGE, range(MANY))
    gathering = await gathered(api, ObjectMemory())
    verdict = gathering.found.unreadable["", "ConfigMap"]
    assert verdict.reason is reasons.FAILED
    assert "the composite's objects take more than 96 MiB" in verdict.message
    assert not gathering.found.objects
    assert api.most_alive <= 110


async def test_what_others_may_have_made_takes_no_room_from_what_the_status_lists() -> None:
    api, listed = Api(LARGE, range(MANY)), Identity("", "ConfigMap", "shop", "a150")
    gathering = await gathered(api, ObjectMemory(), {listed})
    assert [each.name for each in gathering.found.objects] == ["a0", "a1", "a2", "a150"]
    assert not gathering.found.unreadable
    assert gathering.left_out
    assert api.most_alive <= 20


def test_what_others_may_have_made_has_the_room_that_is_left() -> None:
    room = ObjectMemory()
    first, second, third = (room.share("a") for _ in range(3))
    doubtful = {"metadata": {"uid": "doubtful"}, "data": "x" * (3 << 20)}
    assert first.add_doubtful(doubtful)
    assert not first.add_doubtful(doubtful)
    second.add({"metadata": {"uid": "large"}, "data": "x" * (90 << 20)})
    assert not third.add_doubtful(doubtful)
    first.end()
    assert third.add_doubtful(doubtful)


async def test_many_objects_as_they_usually_are_have_room() -> None:
    gathering = await gathered(Api(64 << 10, range(MANY)), ObjectMemory())
    assert len(gathering.found.objects) == MANY


def test_composites_share_what_is_not_free_until_they_end() -> None:
    room = ObjectMemory()
    first, second, third = (room.share(each) for each in "abc")
    large = {"metadata": {"uid": "large"}, "data": "x" * (90 << 20)}
    small = [{"metadata": {"uid": str(each)}, "data": "x" * (1 << 20)} for each in range(3)]
    first.add(large)
    with pytest.raises(TooLarge, match="other composites"):
        second.add(large)
    second.add(small[0])
    for each in small:
        third.add(each)
    first.end()
    second.add(large)


def test_one_tenant_leaves_room_for_others() -> None:
    room = ObjectMemory()
    large = {"metadata": {"uid": "large"}, "data": "x" * (60 << 20)}
    first, second, other = room.share("a"), room.share("a"), room.share("b")
    first.add(large)
    with pytest.raises(TooLarge, match="other composites"):
        second.add(large)
    other.add({**large, "data": "x" * (30 << 20)})
    first.end()
    second.add(large)


def test_texts_are_no_fields() -> None:
    share = ObjectMemory().share("a")
    share.add({"metadata": {"uid": "a"}, "data": {"addresses": "fe80::1:2:3:4 " * 70_000}})


async def test_one_large_object_is_read_at_a_time() -> None:
    api, room = Api(2 << 20, range(0)), ObjectMemory()
    await asyncio.gather(*(gathered(api, room) for _ in range(20)))
    assert api.most_sent == 2 << 20


def test_small_values_take_more_than_their_text() -> None:
    share = ObjectMemory().share("a")
    with pytest.raises(TooLarge, match="96 MiB"):
        share.add({"metadata": {"uid": "a"}, "data": {f"{each}": "" for each in range(700_000)}})


def test_an_object_that_is_read_again_counts_once() -> None:
    share = ObjectMemory().share("a")
    for _ in range(5):
        share.add({"metadata": {"uid": "a"}, "data": "x" * (30 << 20)})
    share.add({"metadata": {"uid": "b"}, "data": "x" * (30 << 20)})
    with pytest.raises(TooLarge):
        share.add({"metadata": {"uid": "c"}, "data": "x" * (60 << 20)})


async def test_a_pass_that_has_ended_leaves_no_objects_in_memory() -> None:
    client = cast(Client, Api(LARGE, range(MANY)))
    served, failures, share = KindPaths(client, tuple), Failures(), ObjectMemory().share("a")
    kind = ServedKind(DATABASE["apiVersion"], DATABASE["kind"], "databases", namespaced=True)
    value = {**DATABASE, "metadata": {**DATABASE["metadata"], "uid": "u1"}}
    actor = Actor(client, KnownRights(client))
    gc.disable()
    try:
        report = PassReport()
        work = CompositePass(client, served, failures, share, actor, kind, kind, value, report)
        await work._gathering.read([("v1", "ConfigMap")])
        gathering = ref(work._gathering)
        del work
        assert gathering() is None
    finally:
        gc.enable()
