"""The number of composites in the status, in virtual time: whenever they come and go."""

import asyncio
import copy
from collections.abc import Awaitable, Callable

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from tests.unit.controllers.compositeresourcedefinition.scene import (
    ALL,
    CRD,
    OBJECTS,
    PATH,
    Server,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_applying import come_and_go
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    established,
    rest,
    with_policy,
)
from tests.unit.controllers.fakeapi import DEFINITIONS
from tests.unit.controllers.fakeapi import OURS as API


def test_composites_are_counted_as_they_come_and_go() -> None:
    async def people(server: Server) -> None:
        server.make()
        await asyncio.sleep(10.0)
        server.make_composites(3)
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["composites"] == 3
        for path in [each for each in server.objects if each.startswith(OBJECTS)][:2]:
            server.delete(path)
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["composites"] == 1

    play(people)


def test_those_that_come_while_the_status_is_written_are_counted_soon() -> None:
    async def people(server: Server) -> None:
        server.make()
        await asyncio.sleep(10.0)

        async def slow(method: str, path: str) -> None:
            if (method, path) == ("PATCH", f"{PATH}/status"):
                await asyncio.sleep(2.0)

        server.before = slow
        server.make_composites(1)
        await asyncio.sleep(2.15)
        # The status with one is still on its way, but not for long.
        server.make_composites(3)
        await asyncio.sleep(5.0)
        assert server.objects[PATH]["status"]["composites"] == len(server.composites())

    play(people)


def counts(server: Server, since: int) -> int:
    """The requests that count, as long as the watch that has begun goes on."""
    return sum(path in (f"{ALL}?limit=1", f"{ALL}?limit=500") for _, path in server.requests[since:])


def looks(server: Server, since: int) -> int:
    """The requests that find out whether another list would hang."""
    return sum(path.startswith(f"{ALL}?limit=1&fieldSelector=") for _, path in server.requests[since:])


@pytest.mark.parametrize("hangs", [True, False])
def test_a_count_that_fails_is_not_repeated_for_each_composite(hangs: bool) -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        since = len(server.requests)

        async def fail(method: str, path: str) -> None:
            if (method, path) == ("GET", ALL):
                if hangs:
                    await asyncio.sleep(75.0)
                    raise Unreachable("no answer")
                raise ApiError(500, {"message": "no endpoints"})

        server.before = fail
        await come_and_go(server, 300)
        # Every 60 seconds at the end, but sooner at first.
        assert counts(server, since) <= (2 if hangs else 12)
        assert 5 <= counts(server, since) + looks(server, since) <= 14
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "NotListed")
        assert ("no answer within 10 seconds" if hangs else "no endpoints") in message
        server.before = _none
        await asyncio.sleep(61.0)
        assert server.ready() == OURS

    play(people, begin=established)


def test_definitions_whose_composites_cannot_be_counted_hold_up_no_other() -> None:
    others = [f"other{each}s.platform.example.com" for each in range(12)]

    async def people(server: Server) -> None:
        hanging = 0

        async def hang(method: str, path: str) -> None:
            nonlocal hanging
            if method == "GET" and path.startswith("/apis/platform.example.com/v1/other"):
                hanging += 1
                await asyncio.sleep(75.0)
                raise Unreachable("no answer")

        await asyncio.sleep(10.0)
        server.before = hang
        for name in others:
            # Protect waits for composites that cannot be counted.
            found = copy.deepcopy(server.objects[PATH])
            found["metadata"] |= {"name": name, "deletionTimestamp": "2026-01-02T03:04:05Z"}
            server.objects[f"{API}/compositeresourcedefinitions/{name}"] = found
            crd = copy.deepcopy(server.objects[CRD])
            crd["metadata"]["name"] = name
            crd["spec"]["names"]["plural"] = name.partition(".")[0]
            server.objects[f"{DEFINITIONS}/{name}"] = crd
            seen = CompositeResourceDefinition.model_validate(found)
            server.state.saw(CompositeResourceDefinition, name, seen)
        await asyncio.sleep(1.0)
        assert hanging >= 4
        generation = server.make()["metadata"]["generation"]
        await asyncio.sleep(2.0)
        assert server.objects[PATH]["status"]["observedGeneration"] == generation

    play(people, begin=established)


def unconverted(server: Server, place: int, *, hangs: bool = False) -> Callable[[str, str], Awaitable[None]]:
    """A conversion webhook that fails for the composite at that place of a list, at once or in the end."""

    async def webhook(method: str, path: str) -> None:
        limit = server.requests[-1][1].partition("?limit=")[2].partition("&")[0]
        if (method, path) == ("GET", ALL) and limit and int(limit) > place:
            await asyncio.sleep(75.0 if hangs else 0.0)
            raise ApiError(500, {"message": "conversion webhook failed"})

    return webhook


async def conditions_of(server: Server, seconds: int) -> list[tuple[str, str, str]]:
    """What Ready says, each time it changes, while a tenant is at work."""
    found: list[tuple[str, str, str]] = []
    for number in range(seconds):
        if number % 10 == 0:
            server._announce(CRD)
        await asyncio.sleep(1.0)
        said = server.condition("Ready")
        if not found or found[-1] != said:
            found.append(said)
    return found


@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_one_composite_that_is_not_converted_does_not_make_the_state_alternate(place: int) -> None:
    async def people(server: Server) -> None:
        server.make_composites(6)
        server.before = unconverted(server, place)
        await rest()
        since = len(server.requests)
        said = await conditions_of(server, 900)
        assert len(said) == 1
        if place:
            assert said[0][:2] == OURS
            assert server.objects[PATH]["status"]["composites"] == 6
        else:
            assert said[0][:2] == ("False", "NotListed")
            assert "conversion webhook failed" in said[0][2]
        assert server.writes(since).count(("PATCH", f"{PATH}/status")) == 0

    play(people, begin=established)


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.parametrize("place", [0, 1, 2, 5, 20])
def test_nor_what_a_deletion_says(place: int, hangs: bool) -> None:
    async def people(server: Server) -> None:
        server.before = unconverted(server, place, hangs=hangs)
        server.delete()
        await rest()
        since = len(server.requests)
        (said,) = await conditions_of(server, 900)
        if place:
            assert said[2].startswith("30 composites (default/a-")
        else:
            assert ("no answer within 10 seconds" if hangs else "conversion webhook failed") in said[2]
        assert server.writes(since).count(("PATCH", f"{PATH}/status")) == 0
        server.before = _none
        await asyncio.sleep(301.0)
        assert " and 25 more)" in server.condition("Ready")[2]

    play(people, begin=with_policy("Protect", 30))


async def _none(_: str, __: str) -> None:
    pass


def test_what_was_too_large_once_is_not_begun_at_that_size_again() -> None:
    """A tenant's annotations; each pass would have the API server begin answers of a hundred megabytes."""

    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(30.0)
        since = len(server.requests)
        for _ in range(20):
            server.make_composites(1)
            await asyncio.sleep(1.0)
        listed = [path for _, path in server.requests[since:] if path.startswith(f"{ALL}?limit=")]
        sizes = [int(path.rpartition("=")[2]) for path in listed]
        assert sizes
        assert max(sizes) < 20
        assert server.objects[PATH]["status"]["composites"] == 120

    play(people, begin=with_policy("Protect", 100, annotations={"a": "x" * 250_000}))
