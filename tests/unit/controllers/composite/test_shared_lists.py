"""Many composites, of whose objects there is one list for all, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import RESOURCE_LABEL
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS

MANY = 50
ALL_MAPS = "/api/v1/configmaps"
MAP: Any = {
    "name": "a",
    "template": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${composite.metadata.name}"},
        "data": {"a": "b"},
    },
}
Fault = Callable[[str, str], Awaitable[None]]


def with_map() -> dict[str, Any]:
    found = revision()
    return {**found, "spec": {**found["spec"], "resources": [MAP]}}


def lists(server: ComposedServer, path: str) -> int:
    return sum(asked.startswith(f"{path}?limit") for _, asked in server.requests)


def maps(server: ComposedServer) -> int:
    return sum(path.startswith(f"{MAPS}/") for path in server.objects)


def slow(seconds: float) -> Fault:
    async def before(method: str, path: str) -> None:
        if (method, path) == ("GET", ALL_MAPS):
            await asyncio.sleep(seconds)

    return before


async def refused(_: str, path: str) -> None:
    if path == ALL_MAPS:
        raise ApiError(403, {"reason": "Forbidden", "message": "no"})


def left_by_another(server: ComposedServer) -> None:
    """Each composite has an object that its status does not list, and that it does not need any more."""
    for each in server.composites():
        metadata = each["metadata"]
        server.make_map(metadata["uid"], f"{metadata['name']}-old", {RESOURCE_LABEL: "old"})


def test_the_list_of_the_watch_is_waited_for_and_is_the_only_one() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        left_by_another(server)
        server.before = slow(10.0)
        await asyncio.sleep(9.0)
        assert maps(server) == MANY
        await asyncio.sleep(30.0)
        assert all(f"{MAPS}/{each['metadata']['name']}" in server.objects for each in server.composites())
        assert maps(server) == MANY
        assert lists(server, MAPS) == 0
        assert lists(server, ALL_MAPS) == 1

    play(people, MANY, with_map())


@pytest.mark.parametrize("fault", [slow(1e6), refused])
def test_without_it_there_is_one_for_all_composites_of_a_namespace(fault: Fault) -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        left_by_another(server)
        server.before = fault
        await asyncio.sleep(60.0)
        assert all(f"{MAPS}/{each['metadata']['name']}" in server.objects for each in server.composites())
        assert maps(server) == MANY
        assert 1 <= lists(server, MAPS) <= 5

    play(people, MANY, with_map())


def test_a_deletion_waits_for_the_list_and_takes_what_no_status_has() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        left_by_another(server)
        server.before = slow(10.0)
        for each in server.composites():
            server.delete(f"{OBJECTS}/{each['metadata']['name']}")
        await asyncio.sleep(9.0)
        assert len(server.composites()) == MANY
        await asyncio.sleep(60.0)
        assert not server.composites()
        assert not maps(server)
        assert lists(server, MAPS) == 0

    play(people, MANY, with_map(), finalizers=["crdkeeper.dev/objects"])
