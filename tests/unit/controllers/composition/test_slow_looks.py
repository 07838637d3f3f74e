"""Compositions while a look at all composites takes long, in virtual time."""

import asyncio
from typing import Any

from crdkeeper.cluster.resources.compositions import COMPOSITIONS
from crdkeeper.controllers.composition.controller import Compositions
from tests.unit.controllers.composition.test_controller import COMPOSITES, Server, play
from tests.unit.core.revisions.revisions import composition

MANY = [f"many-{number}" for number in range(6)]


def put(server: Server, name: str, engine: str, generation: int = 1) -> None:
    """A user writes a Composition that keeps no old revision."""
    found = composition(engine, name)
    found["spec"]["revisionHistoryLimit"] = 0
    found["metadata"] |= {"uid": name, "generation": generation, "resourceVersion": "1"}
    before = server.objects.get(f"{COMPOSITIONS}/{name}", {})
    server.objects[f"{COMPOSITIONS}/{name}"] = {**found, "status": before.get("status", {})}


def test_a_look_at_all_composites_holds_up_no_other_composition() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        request = server.request

        async def slow(method: str, path: str, body: Any = None, **more: Any) -> Any:
            if path.startswith(COMPOSITES):
                await asyncio.sleep(15.0)
            return await request(method, path, body, **more)

        server.request = slow  # type: ignore[method-assign]
        for each in MANY:
            put(server, each, "b", 2)
            controller.queue.add(each)
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
