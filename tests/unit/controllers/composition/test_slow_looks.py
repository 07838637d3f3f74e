"""Compositions while a look at all composites takes long, in virtual time."""

import asyncio
import copy
from typing import Any

from crdkeeper.cluster.resources.compositions import COMPOSITIONS
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composition import collecting
from crdkeeper.controllers.composition.controller import Compositions
from tests.unit.controllers.composition.test_controller import COMPOSITES, Server, play
from tests.unit.core.revisions.revisions import composition

MANY = [f"many-{number}" for number in range(6)]
GUARDED = [f"guarded-{number}" for number in range(20)]


def put(server: Server, name: str, engine: str, generation: int = 1) -> None:
    """A user writes a Composition that keeps no old revision."""
    found = composition(engine, name)
    found["spec"]["revisionHistoryLimit"] = 0
    found["metadata"] |= {"uid": name, "generation": generation, "resourceVersion": "1"}
    before = server.objects.get(f"{COMPOSITIONS}/{name}", {})
    server.objects[f"{COMPOSITIONS}/{name}"] = {**found, "status": before.get("status", {})}


def outdate(server: Server, controller: Compositions, names: list[str]) -> None:
    """Users change these, so that each has a revision that nobody needs."""
    for each in names:
        put(server, each, "b", 2)
        controller.queue.add(each)


def slow_down(server: Server, *, guarded: bool = False) -> None:
    """Have each look take its time, and revisions that are `guarded` refused to be deleted."""
    request = server.request

    async def slow(method: str, path: str, body: Any = None, **more: Any) -> Any:
        if path.startswith(COMPOSITES):
            await asyncio.sleep(15.0)
        if guarded and method == "DELETE":
            raise ApiError(422, {"message": "they are guarded"})
        return await request(method, path, body, **more)

    server.request = slow  # type: ignore[method-assign]


def reasons(server: Server, names: list[str]) -> set[str]:
    """Of the condition Ready."""
    conditions = [
        each for name in names for each in server.objects[f"{COMPOSITIONS}/{name}"]["status"]["conditions"]
    ]
    return {each["reason"] for each in conditions if each["type"] == "Ready"}


async def puts_three(server: Server, controller: Compositions) -> None:
    """New Compositions have their first revisions although others are being looked at."""
    for name in ("late", "later", "latest"):
        put(server, name, "a")
        controller.queue.add(name)
        await asyncio.sleep(3.0)
        assert f"{name}-1" in server.revisions()
        assert reasons(server, [name]) == {"Current"}


def test_a_look_at_all_composites_holds_up_no_other_composition() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        slow_down(server)
        outdate(server, controller, MANY)
        await asyncio.sleep(5.0)
        put(server, "late", "a")
        controller.queue.add("late")
        await asyncio.sleep(5.0)
        assert "late-1" in server.revisions()
        await asyncio.sleep(300.0)
        assert server.revisions() == sorted(["late-1", *(f"{each}-2" for each in MANY)])

    def begin(server: Server) -> None:
        for each in MANY:
            put(server, each, "a")

    play(act, begin)


def test_revisions_that_cannot_be_deleted_hold_up_no_other_composition() -> None:
    left: dict[str, Any] = {}

    def begin(server: Server) -> None:
        for each in GUARDED:
            put(server, each, "a")

    async def act(server: Server, controller: Compositions) -> None:
        slow_down(server, guarded=True)
        outdate(server, controller, GUARDED)
        since = len(server.requests)
        await asyncio.sleep(310.0)
        # One after the other had its turn, and none was looked at in vain all the time.
        assert reasons(server, GUARDED) == {"RevisionsKept"}
        reads = sum(path.startswith(f"{COMPOSITIONS}/") for _, path in server.requests[since:])
        assert reads <= 6 * len(GUARDED)
        left.update(copy.deepcopy(server.objects))
        await puts_three(server, controller)
        await asyncio.sleep(300.0)
        looks = sum(path.startswith(COMPOSITES) for _, path in server.requests[since:])
        assert looks >= 38, "never long without one, while there are any due"

    play(act, begin)

    def again(server: Server) -> None:
        server.objects = left
        slow_down(server, guarded=True)

    async def after_a_restart(server: Server, controller: Compositions) -> None:
        await puts_three(server, controller)
        assert reasons(server, GUARDED) == {"RevisionsKept"}
        old = [path for method, path in server.requests if method == "PATCH" and "guarded" in path]
        assert old == [], "what was said before the restart stays until the first look"
        await asyncio.sleep(310.0)
        assert reasons(server, GUARDED) == {"RevisionsKept"}

    play(after_a_restart, again)


def test_one_that_cannot_be_read_does_not_hold_up_the_line() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        slow_down(server)
        outdate(server, controller, MANY)
        await asyncio.sleep(5.0)
        request = server.request

        async def denied(method: str, path: str, body: Any = None, **more: Any) -> Any:
            if path == f"{COMPOSITIONS}/{MANY[1]}":
                raise ApiError(500, {"message": "broken"})
            return await request(method, path, body, **more)

        server.request = denied  # type: ignore[method-assign]
        await asyncio.sleep(110.0)
        assert server.revisions() == sorted([f"{MANY[1]}-1", *(f"{each}-2" for each in MANY)])
        server.request = request  # type: ignore[method-assign]
        await asyncio.sleep(90.0)
        assert server.revisions() == [f"{each}-2" for each in MANY]

    def begin(server: Server) -> None:
        for each in MANY:
            put(server, each, "a")

    play(act, begin)


def test_compositions_that_come_later_than_they_were_called_have_their_looks() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        slow_down(server)
        request = server.request

        async def slow(method: str, path: str, body: Any = None, **more: Any) -> Any:
            if method == "GET" and path.startswith(f"{COMPOSITIONS}/"):
                await asyncio.sleep(11.0)
            return await request(method, path, body, **more)

        server.request = slow  # type: ignore[method-assign]
        outdate(server, controller, MANY[:3])
        await asyncio.sleep(180.0)
        assert server.revisions() == [f"{each}-2" for each in MANY[:3]]

    def begin(server: Server) -> None:
        for each in MANY[:3]:
            put(server, each, "a")

    play(act, begin)


def test_a_look_that_ends_in_an_error_is_followed_by_a_rest(monkeypatch: Any) -> None:
    async def unreadable(client: Client, name: str) -> Any:
        return {"spec": "of another release"}

    async def act(server: Server, controller: Compositions) -> None:
        slow_down(server)
        put(server, MANY[0], "b", 2)
        controller.queue.add(MANY[0])
        since = len(server.requests)
        await asyncio.sleep(310.0)
        looks = sum(path.startswith(COMPOSITES) for _, path in server.requests[since:])
        assert looks == 2

    monkeypatch.setattr(collecting, "get_composite_definition", unreadable)
    play(act, lambda server: put(server, MANY[0], "a"))
