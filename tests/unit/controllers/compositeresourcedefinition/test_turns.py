"""Many Cascades at once, which wait for their turns without work for the composer, in virtual time."""

import asyncio
import copy
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, GOING, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import established
from tests.unit.controllers.fakeapi import DEFINITIONS
from tests.unit.controllers.fakeapi import OURS as API

Json = Any
NUMBER = 60
SLOW_SECONDS = 3.0
"""The webhook that denies the deletion of a composite takes as long."""


def other(number: int) -> str:
    return f"/apis/platform.example.com/v1/other{number}s"


def announce(server: Server, name: str) -> None:
    """Send an event of a definition."""
    seen = CompositeResourceDefinition.model_validate(
        copy.deepcopy(server.objects[f"{API}/compositeresourcedefinitions/{name}"])
    )
    server.state.saw(CompositeResourceDefinition, name, seen)


def name_of(number: int) -> str:
    return f"other{number}s.platform.example.com"


def delete_many(server: Server) -> None:
    """So many definitions are deleted, each with one composite that nobody may delete."""
    for number in range(NUMBER):
        name, plural = name_of(number), f"other{number}s"
        found = copy.deepcopy(server.objects[PATH])
        uid = f"d{number}"
        found["metadata"] |= {"name": name, "uid": uid, "deletionTimestamp": GOING}
        found["spec"]["deletion"] = "Cascade"
        server.objects[f"{API}/compositeresourcedefinitions/{name}"] = found
        crd = copy.deepcopy(server.objects[CRD])
        crd["metadata"] |= {"name": name, "uid": f"c{number}"}
        crd["metadata"]["annotations"] = {"crdkeeper.dev/definition-uid": uid}
        crd["spec"]["names"]["plural"] = plural
        server.objects[f"{DEFINITIONS}/{name}"] = crd
        composite = {"name": "a", "namespace": "default", "uid": f"a{number}", "resourceVersion": "1"}
        server.objects[other(number)] = {
            "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": composite}],
        }
        announce(server, name)


def looks(server: Server, since: int) -> int:
    """How often the composites of a definition were counted."""
    return sum("?limit=500" in path for _, path in server.requests[since:])


async def deny(method: str, path: str) -> None:
    """A webhook that takes long to deny each deletion."""
    if method == "DELETE" and "/namespaces/default/other" in path:
        await asyncio.sleep(SLOW_SECONDS)
        raise ApiError(403, {"message": "denied"})


def test_those_that_wait_are_hardly_looked_at_and_each_gets_its_turn() -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        server.before = deny
        since = len(server.requests)
        delete_many(server)
        await asyncio.sleep(NUMBER * SLOW_SECONDS / 2 + 10.0)
        tried = [path for method, path in server.requests[since:] if method == "DELETE"]
        assert len(set(tried)) == NUMBER, "no time is lost between turns"
        # Twice a second, besides one before and one after each turn.
        assert looks(server, since) <= 2 * 100 + 3 * NUMBER

    play(people, begin=established)


def test_one_that_waits_hears_that_it_is_wanted_no_more() -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        server.before = deny
        delete_many(server)
        await asyncio.sleep(5.0)
        last = f"{API}/compositeresourcedefinitions/{name_of(NUMBER - 1)}"
        server.objects[last]["spec"]["deletion"] = "Orphan"
        server.objects[last]["metadata"]["generation"] += 1
        announce(server, name_of(NUMBER - 1))
        await asyncio.sleep(0.5)
        crd = server.objects[f"{DEFINITIONS}/{name_of(NUMBER - 1)}"]
        patched = [path.partition("?")[0] for method, path in server.requests if method == "PATCH"]
        assert f"{DEFINITIONS}/{name_of(NUMBER - 1)}" in patched, crd

    play(people, begin=established)


def test_one_whose_composites_take_long_to_count_gets_its_turn_too() -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)

        async def slow(method: str, path: str) -> None:
            if (method, path) == ("GET", other(7)):
                await asyncio.sleep(6.0)
            await deny(method, path)

        server.before = slow
        since = len(server.requests)
        delete_many(server)
        await asyncio.sleep(NUMBER * SLOW_SECONDS / 2 + 40.0)
        tried = {path for method, path in server.requests[since:] if method == "DELETE"}
        assert any("/other7s/" in path for path in tried)
        assert len(tried) == NUMBER

    play(people, begin=established)


def test_one_that_does_not_ask_for_a_turn_leaves_it_to_others() -> None:
    """Its composites cannot be counted any more when it is called."""

    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        server.before = deny
        since = len(server.requests)
        delete_many(server)
        await asyncio.sleep(1.0)

        async def broken(method: str, path: str) -> None:
            if method == "GET" and path in [other(each) for each in range(10, 30)]:
                raise ApiError(500, {"message": "no endpoints"})
            await deny(method, path)

        server.before = broken
        await asyncio.sleep(NUMBER * SLOW_SECONDS / 2 + 10.0)
        tried = {path for method, path in server.requests[since:] if method == "DELETE"}
        assert len(tried) >= NUMBER - 20, "no time is lost between turns"

    play(people, begin=established)
