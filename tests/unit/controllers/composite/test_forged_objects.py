"""Objects that others make look like a composite's hold up nothing of it, in virtual time."""

import asyncio
from typing import Any

from crdkeeper.api.composite import MOST_RESOURCES
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play
from tests.unit.controllers.composite.test_shared_lists import maps, with_map


def forge(server: ComposedServer, number: int, data: str = "", **metadata: Any) -> None:
    """Whoever knows the uid of a composite can make these: in its namespace, or if it has none, in any."""
    (composite,) = server.composites()
    uid = composite["metadata"]["uid"]
    for each in range(number):
        server.make_map(uid, f"forged-{each}", **metadata)["data"] = {"a": data}


def composed(server: ComposedServer) -> None:
    """Checks that the composite has its object, and that its status lists only that."""
    (composite,) = server.composites()
    name = composite["metadata"]["name"]
    assert server.objects[f"{MAPS}/{name}"]["data"] == {"a": "b"}
    assert [each["object"]["name"] for each in composite["status"]["crdkeeper"]["resources"]] == [name]
    assert ("Synced", "ReconcileSuccess") in [
        (each["type"], each["reason"]) for each in composite["status"]["conditions"]
    ]
    assert composite["metadata"]["finalizers"] == [FINALIZER]


def test_more_than_the_status_can_list() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        forge(server, MOST_RESOURCES + 1, finalizers=["example.com/held"])
        await asyncio.sleep(60.0)
        composed(server)
        assert maps(server) == MOST_RESOURCES + 2

    play(people, 1, with_map())


def test_more_than_there_is_memory_for() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        forge(server, 97, "x" * (1 << 20))
        await asyncio.sleep(60.0)
        composed(server)
        # They go a few at a time.
        assert 1 < maps(server) < 98

    play(people, 1, with_map())
