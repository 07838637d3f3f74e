"""A watch on objects that has to begin again, in virtual time: what it missed is looked at."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.news import UNKNOWN
from crdkeeper.controllers.composite.watching import ObjectWatches
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from tests import virtualtime

KIND = ("v1", "ConfigMap")
CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}]}


def config_map(composite: str) -> dict[str, Any]:
    labels = {COMPOSITE_LABEL: composite}
    return {"metadata": {"name": composite, "uid": composite, "resourceVersion": "1", "labels": labels}}


class Server:
    """Lists ConfigMaps; each watch on them ends because it is too old, the first with what it was given."""

    def __init__(self, *composites: str) -> None:
        self.items = [config_map(each) for each in composites]
        self.lists = 0
        self.fails = 0
        self.broken = 0

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Any:
        if path == "/api/v1":
            return CORE
        self.lists += 1
        if self.fails:
            self.fails -= 1
            raise ApiError(503, {"message": "not now"})
        if self.broken:
            self.broken -= 1
            return {"kind": "List", "metadata": {}}
        return {"metadata": {"resourceVersion": "1"}, "items": self.items}

    async def lines(
        self, path: str, *, begun: Callable[[], None] | None = None, **_: Any
    ) -> AsyncIterator[bytes]:
        if begun is not None:
            begun()
        await asyncio.sleep(10.0)
        raise ApiError(410, {"message": "too old resource version"})
        yield b""


def seen_after(server: Server, change: Callable[[], object]) -> list[tuple[str, bool]]:
    """The composites whose objects are told about once the watch began again; whether that is news."""
    seen: list[tuple[str, bool]] = []

    async def main() -> None:
        client = cast(Client, server)
        paths, rights = KindPaths(client, tuple), KnownRights(client)
        watches = ObjectWatches(
            client, paths, rights, lambda uid, token: seen.append((uid, token == UNKNOWN))
        )
        async with asyncio.TaskGroup() as group:
            watches.begin(group)
            await watches.keep(frozenset((KIND,)))
            await asyncio.sleep(5.0)
            assert [uid for uid, _ in seen] == ["a", "b"]
            seen.clear()
            change()
            await asyncio.sleep(12.0)
            watches.drop(frozenset())

    virtualtime.run(main())
    return seen


def test_a_composite_whose_objects_have_all_gone_is_looked_at() -> None:
    server = Server("a", "b")
    seen = seen_after(server, lambda: server.items.pop())
    assert ("b", True) in seen


def test_so_is_one_of_which_others_are_left() -> None:
    server = Server("a", "b")
    assert ("a", True) in seen_after(server, lambda: None)


def test_a_list_that_failed_forgets_nothing() -> None:
    server = Server("a", "b")

    def change() -> None:
        server.items.pop()
        server.fails = 1

    assert ("b", True) in seen_after(server, change)
    assert server.lists > 2


def test_an_answer_that_is_no_list_ends_nothing() -> None:
    server = Server("a", "b")

    def change() -> None:
        server.broken = 1

    assert ("a", True) in seen_after(server, change)
    assert not server.broken
