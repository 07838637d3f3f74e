"""Cascade with composites that nobody may delete, slow webhooks, and other policies, in virtual time."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.deleting import CompositeDeletions
from crdkeeper.controllers.compositeresourcedefinition.due import Dues
from crdkeeper.core.composition.acceptance import accept
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import (
    CRD,
    OBJECTS,
    PATH,
    Server,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_controller import rest, with_policy
from tests.unit.core.composition.documents import document

Json = Any
DENIED = ApiError(400, {"message": "admission webhook denied the request", "reason": "BadRequest"})


def names(server: Server) -> list[str]:
    """The composites that exist."""
    return [each["metadata"]["name"] for each in server.composites()]


def deletions(server: Server, since: int = 0) -> list[str]:
    """The composites that were to be deleted, one for each request."""
    return [
        path for method, path in server.requests[since:] if method == "DELETE" and path.startswith(OBJECTS)
    ]


def make(server: Server, name: str, **metadata: Any) -> Json:
    """Create a composite of that name."""
    before = set(server.objects)
    server.make_composites(1, name=name, **metadata)
    (made,) = set(server.objects) - before
    server.objects[f"{OBJECTS}/{name}"] = server.objects.pop(made)
    return server.objects[f"{OBJECTS}/{name}"]


def denying(
    server: Server, kept: Iterable[str], seconds: float = 0.0
) -> Callable[[str, str], Awaitable[None]]:
    """A webhook that denies the deletion of these composites, after a time."""
    paths = {f"{OBJECTS}/{each}" for each in kept}

    async def webhook(method: str, path: str) -> None:
        if method == "DELETE" and path in paths:
            await asyncio.sleep(seconds)
            raise DENIED

    return webhook


@pytest.mark.parametrize("seconds", [0.0, 10.0], ids=["at once", "slowly"])
def test_composites_that_may_not_be_deleted_do_not_hold_up_those_behind(seconds: float) -> None:
    async def people(server: Server) -> None:
        kept = names(server)[:60]
        server.before = denying(server, kept, seconds)
        server.delete()
        await asyncio.sleep(300.0)
        assert names(server) == kept
        assert "denied the request" in server.condition("Established")[2]
        server.before = denying(server, ())
        await asyncio.sleep(600.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=with_policy("Cascade", 700))


def test_what_nobody_can_delete_is_tried_ever_more_seldom() -> None:
    async def people(server: Server) -> None:
        server.before = denying(server, names(server))
        server.delete()
        await asyncio.sleep(3_600.0)
        # Each was tried once at first, and then again after 15, 30, … 300 seconds.
        assert 10 * 20 < len(deletions(server)) < 17 * 20
        since = len(server.requests)
        await asyncio.sleep(600.0)
        assert 20 <= len(deletions(server, since)) <= 3 * 20

    play(people, begin=with_policy("Cascade", 20))


def test_a_composite_that_goes_leads_to_another_attempt() -> None:
    """A webhook may deny the deletion of one as long as another exists."""

    async def people(server: Server) -> None:
        kept = names(server)
        last = make(server, "z-last", finalizers=["example.com/held"])
        server.before = denying(server, kept)
        server.delete()
        await asyncio.sleep(400.0)
        assert names(server) == [*kept, "z-last"]
        server.before = denying(server, ())
        last["metadata"]["finalizers"] = []
        server._collect(f"{OBJECTS}/z-last")
        await asyncio.sleep(20.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 20))


@pytest.mark.parametrize("policy", ["Protect", "Orphan"])
def test_a_policy_that_changes_stops_the_deletion(policy: str) -> None:
    async def people(server: Server) -> None:
        async def slow(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(OBJECTS):
                await asyncio.sleep(0.01)

        server.before = slow
        server.delete()
        await asyncio.sleep(1.0)
        before = len(deletions(server))
        assert 50 < before < 850
        server.make(document(deletion=policy))
        await rest()
        assert len(deletions(server)) - before <= 50
        assert len(names(server)) >= 900 - before - 50
        assert (PATH in server.objects) == (policy == "Protect")
        assert CRD in server.objects

    play(people, begin=with_policy("Cascade", 900))


def test_a_definition_made_again_stops_the_deletion() -> None:
    async def people(server: Server) -> None:
        async def slow(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(OBJECTS):
                await asyncio.sleep(0.01)

        server.before = slow
        server.delete()
        await asyncio.sleep(1.0)
        before = len(deletions(server))
        assert 50 < before < 850
        server.forced_out()
        server.make(document(deletion="Cascade"))
        await rest()
        assert len(deletions(server)) - before <= 50
        assert server.ready() == ("False", "NotOurs")

    play(people, begin=with_policy("Cascade", 900))


def test_a_composite_that_is_written_meanwhile_is_deleted_too() -> None:
    async def people(server: Server) -> None:
        written: set[str] = set()

        async def writing(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(OBJECTS) and path not in written:
                written.add(path)
                server._wrote(path)

        server.before = writing
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=with_policy("Cascade", 30))


def test_one_that_is_made_again_under_its_name_is_not_deleted_by_a_request_for_the_first() -> None:
    async def people(server: Server) -> None:
        (path,) = [each for each in server.objects if each.startswith(OBJECTS)]
        made: list[str] = []

        async def another(method: str, there: str) -> None:
            if (method, there) == ("DELETE", path) and not made:
                server.forced_out(path)
                made.append(make(server, path.rpartition("/")[2])["metadata"]["uid"])
                # The user has decided otherwise, too.
                server.make(document(deletion="Orphan"))

        server.before = another
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert [each["metadata"]["uid"] for each in server.composites()] == made

    play(people, begin=with_policy("Cascade", 1))


def test_the_metadata_of_composites_takes_no_more_memory_than_there_is_room_for() -> None:
    """Annotations have up to 256 KiB, and a tenant makes composites until the composer is out of memory."""

    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        server.delete()
        await asyncio.sleep(120.0)
        assert PATH not in server.objects
        assert server.lost == []
        assert 1 << 20 < server.largest <= 4 << 20

    def begin(server: Server) -> None:
        with_policy("Cascade", 500)(server)
        for each in server.composites()[100:200]:
            each["metadata"]["annotations"] = {"note": "x" * 200_000}

    play(people, begin=begin)


class Crowd:
    """An API server with many definitions, each with composites whose deletion takes long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.composites = {f"things{each}": {f"a{number}" for number in range(64)} for each in range(20)}
        self.tried: dict[str, int] = dict.fromkeys(self.composites, 0)

    def of(self, plural: str) -> tuple[CompositeResourceDefinition, Json]:
        """A definition and its CRD."""
        value = document(deletion="Cascade")
        value["spec"]["names"] |= {"plural": plural}
        value["metadata"] |= {"name": f"{plural}.platform.example.com", "uid": plural}
        definition = CompositeResourceDefinition.model_validate(value)
        made = accept(value).crd
        assert made is not None
        return definition, {**made, "metadata": {**made["metadata"], "uid": plural}}

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Json:
        """Like `Client.request`."""
        path = path.partition("?")[0]
        if "/compositeresourcedefinitions/" in path:
            plural = path.rpartition("/")[2].partition(".")[0]
            return self.of(plural)[0].to_object()
        if method == "DELETE":
            plural, name = path.split("/")[-2:]
            self.tried[plural] += 1
            await asyncio.sleep(self.seconds)
            self.composites[plural].discard(name)
            return {}
        found = sorted(self.composites[path.rpartition("/")[2]])
        items = [
            {"metadata": {"name": each, "namespace": "default", "uid": each, "resourceVersion": "1"}}
            for each in found
        ]
        return {"metadata": {}, "items": items}


@pytest.mark.parametrize("what", ["GET", "DELETE"])
def test_a_turn_ends_in_time_whatever_hangs(what: str) -> None:
    async def main() -> None:
        crowd = Crowd(0.0)
        deletions = CompositeDeletions(crowd, Dues(), lambda _: None)  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        request = crowd.request

        async def hang(method: str, path: str, *of: Any, **more: Any) -> Json:
            if method == what and "/things" in path:
                await asyncio.sleep(900.0)
            return await request(method, path, *of, **more)

        crowd.request = hang  # type: ignore[method-assign]
        with pytest.raises(Unreachable, match=r"no answer .*within .0 seconds"):
            await deletions.delete(*crowd.of("things0"))
        assert loop.time() <= 35.0

    virtualtime.run(main())


def test_a_webhook_that_asks_for_long_pauses_gets_short_ones() -> None:
    """It answers for a composite with 429, which the API server hands on with Retry-After."""
    throttled = ApiError(429, {"message": "later", "reason": "TooManyRequests"})

    async def people(server: Server) -> None:
        kept = names(server)[:60]

        async def webhook(method: str, path: str) -> None:
            if method == "DELETE" and path.rpartition("/")[2] in kept:
                raise throttled

        server.before = webhook
        server.delete()
        await asyncio.sleep(30.0)
        assert names(server) == kept
        assert "later" in server.condition("Established")[2]
        # Eight at once, with a second between them.
        assert len([each for each in deletions(server) if each.rpartition("/")[2] in kept]) <= 8 * 31

    play(people, begin=with_policy("Cascade", 700))


def test_slow_deletions_take_turns_and_leave_workers_for_others() -> None:
    async def main() -> None:
        crowd = Crowd(10.0)
        calls = {f"{each}.platform.example.com": asyncio.Event() for each in crowd.composites}
        deletions = CompositeDeletions(crowd, Dues(), lambda name: calls[name].set())  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        at_work = most = 0
        longest = 0.0

        async def one(plural: str) -> None:
            nonlocal at_work, most, longest
            while crowd.composites[plural]:
                at_work += 1
                most, began = max(most, at_work), loop.time()
                await deletions.delete(*crowd.of(plural))
                at_work -= 1
                longest = max(longest, loop.time() - began)
                name = f"{plural}.platform.example.com"
                with suppress(TimeoutError):
                    await asyncio.wait_for(calls[name].wait(), deletions.pause(name))
                calls[name].clear()

        tasks = [asyncio.create_task(one(each)) for each in crowd.composites]
        await asyncio.sleep(150.0)
        assert most <= 2 + 1, "a worker waits for its turn"
        assert longest <= 10.0, "a pass begins requests for too long"
        assert all(crowd.tried.values()), "a definition never gets its turn"
        for each in tasks:
            each.cancel()

    virtualtime.run(main())


@pytest.mark.parametrize("policy", ["Cascade", "Protect"])
def test_nothing_is_lost_of_a_crd_that_nobody_may_delete(policy: str) -> None:
    """A DefinitionPolicy protects it: neither its composites go, nor is its API closed."""
    number = 20 if policy == "Cascade" else 0

    async def people(server: Server) -> None:
        async def protect(method: str, path: str) -> None:
            if (method, path) == ("DELETE", CRD):
                raise ApiError(403, {"message": "DefinitionPolicy p protects it", "reason": "Forbidden"})

        server.before, usual = protect, server.before
        before = copy.deepcopy(server.objects[CRD]["spec"])
        server.delete()
        await asyncio.sleep(600.0)
        assert deletions(server) == []
        assert len(server.composites()) == number
        assert server.objects[CRD]["spec"] == before
        status, _, message = server.condition("Established")
        assert status == "False"
        assert "cannot delete the CRD, as a dry run shows: DefinitionPolicy p protects it" in message
        assert server.condition("Stalled")[0] == "True"
        assert set(server.dry_runs) == {("DELETE", CRD)}
        assert 600 / 15 <= len(server.dry_runs) <= 600 / 15 + 6, "with pauses"
        server.before = usual
        await asyncio.sleep(40.0)
        assert PATH not in server.objects
        assert CRD not in server.objects

    play(people, begin=with_policy(policy, number))


def test_whether_the_crd_may_be_deleted_is_asked_once() -> None:
    async def people(server: Server) -> None:
        server.before = denying(server, names(server))
        server.delete()
        await asyncio.sleep(3_600.0)
        assert server.dry_runs == [("DELETE", CRD)]

    play(people, begin=with_policy("Cascade", 20))
