"""Watches of what externalRefs read, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import orjson

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.external import ExternalObject, ExternalWatches
from crdkeeper.core.templates.namespaces import Identity
from tests import virtualtime

CONFIG_MAP = ServedKind("v1", "ConfigMap", "configmaps", namespaced=True)


def named(name: str) -> ExternalObject:
    return CONFIG_MAP, Identity("", "ConfigMap", "platform", name)


class Server:
    """An API server of which one object may be watched, unless that is denied."""

    def __init__(self) -> None:
        self.version = ""
        self.denied = False
        self.answers: list[dict[str, Any]] = []
        """The next ones to a list, from the last."""
        self.watches = 0
        self.requests = 0
        self.changed: list[str] = []
        self.asked: list[float] = []
        """In how many seconds to read again."""
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.requests += 1
        if self.denied:
            raise ApiError(403, {"message": "no"})
        items = [{"metadata": {"name": "zones", "resourceVersion": self.version}}] if self.version else []
        return self.answers.pop() if self.answers else {"metadata": {"resourceVersion": "1"}, "items": items}

    async def lines(self, path: str, *, begun: Callable[[], None], **_: Any) -> AsyncIterator[bytes]:
        assert "fieldSelector=metadata.name%3D" in path
        self.watches += 1
        begun()
        try:
            while not self.denied:
                yield orjson.dumps(await self.events.get())
            raise ApiError(403, {"message": "no"})
        finally:
            self.watches -= 1

    def ask(self, key: str, seconds: float) -> None:
        self.changed.append(key)
        self.asked.append(seconds)

    def change(self, type_: str, version: str) -> None:
        self.version = "" if type_ == "DELETED" else version
        self.events.put_nowait({"type": type_, "object": {"metadata": {"resourceVersion": version}}})


def play(people: Callable[[Server, ExternalWatches, list[str]], Awaitable[None]]) -> None:
    async def main() -> None:
        server = Server()
        changed = server.changed
        watches = ExternalWatches(cast(Client, server), server.ask)
        async with asyncio.TaskGroup() as group:
            watches.begin(group)
            await people(server, watches, changed)
            for each in [*watches._read]:
                watches.forget(each)
        assert server.watches == 0

    virtualtime.run(main())


def test_who_has_read_something_else_reads_again() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        zones = named("zones")
        assert not watches.keep("a", {zones: ""})
        await asyncio.sleep(1.0)
        assert watches.keep("a", {zones: ""}) and watches.keep("b", {zones: ""})
        assert server.watches == 1 and not changed
        server.change("ADDED", "7")
        await asyncio.sleep(1.0)
        assert sorted(changed) == ["a", "b"]
        changed.clear()
        assert watches.keep("a", {zones: "7"}) and not changed
        # It was read before the change was seen.
        assert watches.keep("late", {zones: ""}) and changed == ["late"]
        # Or the watch is behind, for as long as it hangs.
        assert server.asked == [0.02, 0.02, 1.0]
        changed.clear()
        server.change("DELETED", "8")
        await asyncio.sleep(1.0)
        assert changed == ["a"]

    play(people)


def test_a_watch_ends_when_nobody_reads_the_object() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        watches.keep("a", {named("zones"): ""})
        watches.keep("b", {named("zones"): ""})
        await asyncio.sleep(1.0)
        watches.keep("a", {})
        await asyncio.sleep(1.0)
        assert server.watches == 1
        watches.forget("b")
        await asyncio.sleep(1.0)
        assert server.watches == 0 and not watches._watched

    play(people)


def test_an_answer_that_is_no_list_ends_nothing() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        server.answers = [
            {},
            {"metadata": {}, "items": []},
            {"metadata": {"resourceVersion": "1"}, "items": 7},
        ]
        server.answers += [{"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {}}]}]
        watches.keep("a", {named("zones"): ""})
        await asyncio.sleep(1.0)
        assert not watches.keep("a", {named("zones"): ""})
        await asyncio.sleep(20.0)
        assert not server.answers
        assert watches.keep("a", {named("zones"): ""})

    play(people)


def test_there_are_so_many_watches_and_no_more() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        for number in range(300):
            watches.keep(f"c{number}", {named(f"z{number}"): ""})
        await asyncio.sleep(1.0)
        assert server.watches == 200
        assert watches.keep("c199", {named("z199"): ""})
        assert not watches.keep("c200", {named("z200"): ""})

    play(people)


def test_without_the_right_to_watch_composites_are_looked_at() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        watches.keep("a", {named("zones"): ""})
        await asyncio.sleep(1.0)
        assert watches.keep("a", {named("zones"): ""})
        server.denied = True
        server.change("MODIFIED", "9")
        await asyncio.sleep(1.0)
        assert "a" in changed
        assert not watches.keep("a", {named("zones"): "9"})

    play(people)


def place(tenant: str, number: int) -> str:
    return f"things.example.com\n{tenant}\n{number}"


def test_no_tenant_takes_all_watches() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        for number in range(300):
            watches.keep(place("greedy", number), {named(f"g{number}"): ""})
        await asyncio.sleep(1.0)
        assert server.watches == 100
        for number in range(50):
            watches.keep(place("other", number), {named(f"o{number}"): ""})
        await asyncio.sleep(1.0)
        assert server.watches == 120
        for number in range(5):
            watches.forget(place("other", number))
        for number in range(50, 100):
            watches.keep(place("other", number), {named(f"o{number}"): ""})
        await asyncio.sleep(1.0)
        assert server.watches == 120

    play(people)


def test_a_watch_is_the_place_of_who_still_reads_the_object() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        for number in range(100):
            watches.keep(place("greedy", number), {named(f"g{number}"): ""})
        for number in range(20):
            for tenant in ("first", "second"):
                watches.keep(place(tenant, number), {named(f"o{number}"): ""})
        for number in range(20):
            watches.forget(place("first", number))
        await asyncio.sleep(1.0)
        assert server.watches == 120
        watches.keep(place("second", 20), {named("o20"): ""})
        watches.keep(place("first", 20), {named("o21"): ""})
        await asyncio.sleep(1.0)
        assert named("o20") not in watches._watched and named("o21") in watches._watched

    play(people)


def test_what_may_not_be_watched_takes_no_place_and_is_tried_again_later() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        server.denied = True
        for number in range(100):
            watches.keep(place("denied", number), {named(f"d{number}"): ""})
        await asyncio.sleep(20.0)
        assert not watches._watched and not watches._places
        requests = server.requests
        server.denied = False
        for _ in range(18):
            assert not watches.keep(place("denied", 0), {named("d0"): ""})
            await asyncio.sleep(15.0)
        assert server.requests == requests
        await asyncio.sleep(30.0)
        watches.keep(place("denied", 0), {named("d0"): ""})
        await asyncio.sleep(1.0)
        assert watches.keep(place("denied", 0), {named("d0"): ""})

    play(people)


def test_a_right_that_is_given_at_the_same_time_is_not_too_late() -> None:
    async def people(server: Server, watches: ExternalWatches, changed: list[str]) -> None:
        server.denied = True
        watches.keep("a", {named("zones"): ""})
        await asyncio.sleep(3.0)
        server.denied = False
        await asyncio.sleep(5.0)
        assert watches.keep("a", {named("zones"): ""})

    play(people)
