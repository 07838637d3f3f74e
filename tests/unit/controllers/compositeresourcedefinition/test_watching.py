"""Watches of composites, in virtual time: they come and go, and are refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import orjson

from crdkeeper.cluster.transport.client import METADATA_ONLY, ApiError, Client, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.due import Dues
from crdkeeper.controllers.compositeresourcedefinition.watching import CompositeWatches
from tests import virtualtime

Json = Any
ALL = "/apis/platform.example.com/v1/databases"
FORBIDDEN = ApiError(403, {"message": "cannot watch", "reason": "Forbidden"})


class Api:
    """Serves one collection."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Json] = asyncio.Queue()
        self.lists = self.open = 0
        self.begun: list[str] = []
        self.hung_lists: dict[str, tuple[str, float]] = {}
        self.refusal: dict[str, Exception] = {}
        """Of each request `list` or `watch`."""

    async def request(self, method: str, path: str, **_: Any) -> Json:
        assert (method, path) == ("GET", f"{ALL}?limit=1")
        self.lists += 1
        if error := self.refusal.get("list"):
            raise error
        return {"metadata": {"resourceVersion": "50"}, "items": []}

    async def lines(
        self, path: str, *, accept: str, begun: Callable[[], None], **_: Any
    ) -> AsyncIterator[bytes]:
        assert accept == METADATA_ONLY
        if error := self.refusal.get("watch"):
            raise error
        self.begun.append(path.rpartition("=")[2])
        begun()
        self.open += 1
        try:
            while True:
                event = await self.events.get()
                if isinstance(event, Exception):
                    raise event
                yield orjson.dumps(event)
        finally:
            self.open -= 1

    def happens(self, type_: str, version: int) -> None:
        self.events.put_nowait(
            {"type": type_, "object": {"metadata": {"name": "a", "resourceVersion": str(version)}}}
        )


Story = Callable[[Api, CompositeWatches, list[str]], Awaitable[None]]


def play(story: Story) -> None:
    """`story` gets the names of changed definitions in a list that grows."""

    async def main() -> None:
        api, changed = Api(), list[str]()
        watches = CompositeWatches(cast(Client, api), changed.append, Dues())
        async with asyncio.TaskGroup() as group:
            watches.begin(group)
            await story(api, watches, changed)
            for name in ("a", "b"):
                watches.stop(name)
        assert api.open == 0

    virtualtime.run(main())


def test_what_comes_and_goes_is_reported() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(1.0)
        assert (api.begun, api.lists, changed) == (["40"], 0, [])
        for type_ in ("ADDED", "MODIFIED", "BOOKMARK", "DELETED"):
            api.happens(type_, 41)
        await asyncio.sleep(1.0)
        assert changed == ["a", "a"]

    play(story)


def test_the_same_collection_is_watched_once() -> None:
    async def story(api: Api, watches: CompositeWatches, _: list[str]) -> None:
        for _each in range(3):
            watches.keep("a", "1-2", ALL, "40")
            await asyncio.sleep(1.0)
        assert api.begun == ["40"]

    play(story)


def test_another_version_is_watched_instead() -> None:
    async def story(api: Api, watches: CompositeWatches, _: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(1.0)
        watches.keep("a", "1-2", ALL.replace("v1", "v2"), "45")
        await asyncio.sleep(1.0)
        assert (api.begun, api.open) == (["40", "45"], 1)

    play(story)


def test_the_composites_of_another_crd_of_that_name_are_watched_instead() -> None:
    async def story(api: Api, watches: CompositeWatches, _: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(1.0)
        watches.keep("a", "3-4", ALL, "45")
        await asyncio.sleep(1.0)
        assert (api.begun, api.open) == (["40", "45"], 1)

    play(story)


def test_an_expired_watch_begins_with_a_list() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        api.events.put_nowait(ApiError(410, {"message": "expired"}))
        await asyncio.sleep(1.0)
        assert (api.begun, changed) == (["40", "50"], ["a"])

    play(story)


def test_a_missing_right_is_reported_once_and_asked_for_again() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        api.refusal["watch"] = FORBIDDEN
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(21.0)
        assert changed == ["a"]
        assert "cannot watch" in watches.refused("a")
        assert api.lists == 4
        del api.refusal["watch"]
        await asyncio.sleep(5.0)
        assert changed == ["a", "a"]
        assert watches.refused("a") == ""

    play(story)


def test_without_the_right_to_list_it_waits_for_it() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        api.refusal["list"] = FORBIDDEN
        watches.keep("a", "1-2", ALL, "")
        await asyncio.sleep(11.0)
        assert changed == ["a"]
        del api.refusal["list"]
        await asyncio.sleep(5.0)
        assert changed == ["a", "a"]
        assert (api.begun, watches.refused("a")) == (["50"], "")

    play(story)


def test_an_api_server_that_is_away_is_asked_less_and_less_often() -> None:
    async def story(api: Api, watches: CompositeWatches, _: list[str]) -> None:
        api.refusal["list"] = Unreachable("connection refused")
        watches.keep("a", "1-2", ALL, "")
        await asyncio.sleep(300.0)
        assert api.lists < 20
        api.refusal.clear()
        await asyncio.sleep(31.0)
        assert api.begun == ["50"]

    play(story)


def test_a_watch_ends_with_its_definition_and_no_other_does() -> None:
    async def story(api: Api, watches: CompositeWatches, _: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        watches.keep("b", "1-2", ALL, "40")
        await asyncio.sleep(1.0)
        watches.stop("a")
        await asyncio.sleep(1.0)
        assert api.open == 1

    play(story)


def test_a_watch_that_the_api_server_does_not_serve_for_long_is_reported() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(1.0)
        api.refusal["watch"] = ApiError(429, {"message": "storage is (re)initializing: a"})
        api.events.put_nowait(Unreachable("ended"))
        await asyncio.sleep(8.0)
        assert (watches.failing("a"), changed) == ("", [])
        await asyncio.sleep(30.0)
        assert "storage is (re)initializing: a" in watches.failing("a")
        api.refusal["watch"] = ApiError(500, {"message": "b"})
        await asyncio.sleep(300.0)
        assert "storage is (re)initializing: a" in watches.failing("a")
        assert 8 <= len(changed) <= 12, "they have to be counted"
        api.refusal.clear()
        await asyncio.sleep(31.0)
        assert watches.failing("a") == ""

    play(story)


def test_an_api_server_that_is_away_is_no_problem_of_one_watch() -> None:
    async def story(api: Api, watches: CompositeWatches, changed: list[str]) -> None:
        api.refusal["watch"] = Unreachable("connection refused")
        watches.keep("a", "1-2", ALL, "40")
        await asyncio.sleep(300.0)
        assert (watches.failing("a"), changed) == ("", [])

    play(story)
