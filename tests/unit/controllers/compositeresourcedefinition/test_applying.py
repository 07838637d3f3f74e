"""How often the CRD is applied, in virtual time: whenever it may differ, and otherwise never."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composer.fence import fencing, is_fenced
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, OBJECTS, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    established,
    fields,
    rest,
)

Json = Any


async def come_and_go(server: Server, seconds: int) -> None:
    """A tenant creates and deletes a composite, over and over again."""
    for _ in range(seconds):
        server.make_composites(1)
        await asyncio.sleep(0.5)
        for path in [each for each in server.objects if each.startswith(OBJECTS)]:
            server.delete(path)
        await asyncio.sleep(0.5)


def applies(server: Server, since: int = 0) -> int:
    return server.writes(since).count(("PATCH", CRD))


def test_composites_that_come_and_go_lead_to_no_apply() -> None:
    async def people(server: Server) -> None:
        await rest()
        since = len(server.requests)
        await come_and_go(server, 60)
        assert applies(server, since) == 0
        server.make(TWO)
        await rest()
        assert "more" in fields(server)

    play(people, begin=established)


def test_whoever_writes_the_crd_it_is_applied_once() -> None:
    """Also if its spec is the same: somebody may have become the manager of its fields."""

    async def people(server: Server) -> None:
        await rest()
        for _ in range(3):
            since = len(server.requests)
            server._wrote(CRD)
            await rest()
            assert applies(server, since) == 1

    play(people, begin=established)


def test_who_only_manages_its_fields_does_not_overwrite_the_crd() -> None:
    async def people(server: Server) -> None:
        await rest()
        apply = server._apply_crd

        def apply_and_change_managers(path: str, body: Json, *, force: bool) -> Json:
            found = apply(path, body, force=force)
            server._wrote(path)
            return found

        server._apply_crd = apply_and_change_managers  # type: ignore[method-assign]
        for _ in range(5):
            since = len(server.requests)
            server._wrote(CRD)
            await rest()
            assert applies(server, since) == 1
            assert server.ready() == OURS

    play(people, begin=established)


@pytest.mark.parametrize("code", [403, 422, 503])
def test_an_apply_that_fails_is_not_repeated_for_each_composite(code: int) -> None:
    async def people(server: Server) -> None:
        await rest()

        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise ApiError(code, {"message": "no"})

        server.before = refuse
        server.make(TWO)
        since = len(server.requests)
        await come_and_go(server, 120)
        # After 0.5, 1, 2, 4, 8, and then each 15 seconds.
        assert 5 <= applies(server, since) <= 14
        server.before = _none
        await rest()
        assert server.ready() == OURS
        assert "more" in fields(server)

    play(people, begin=established)


def closed(server: Server) -> None:
    """The API refuses new composites, as after a backup."""
    server._patch_crd(fencing(server.objects[CRD]))


def unheld(server: Server) -> None:
    """Somebody has removed the composer's finalizer."""
    server.objects[PATH]["metadata"]["finalizers"] = []


@pytest.mark.parametrize("before", [closed, unheld])
def test_a_definition_is_not_ready_before_its_crd_is_applied(before: Callable[[Server], None]) -> None:
    """Although another step comes first, which succeeds."""

    async def people(server: Server) -> None:
        await rest()
        old = server.objects[PATH]["metadata"]["generation"]

        async def hang(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD) and not is_fenced(server.objects[CRD]):
                await asyncio.sleep(20.0)

        server.before = hang
        before(server)
        generation = server.make(TWO)["metadata"]["generation"]
        for _ in range(50):
            await asyncio.sleep(0.1)
            assert "more" not in fields(server)
            assert server.objects[PATH]["status"]["observedGeneration"] == old
        assert not is_fenced(server.objects[CRD])
        assert server.held()
        await rest()
        assert "more" in fields(server)
        assert server.ready() == OURS
        assert server.objects[PATH]["status"]["observedGeneration"] == generation

    play(people, begin=established)


async def _none(_: str, __: str) -> None:
    pass
