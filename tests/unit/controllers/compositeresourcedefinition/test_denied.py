"""Writes that somebody denies while a tenant creates and deletes composites in a loop, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_applying import come_and_go, unheld
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    established,
    fields,
    rest,
    with_policy,
)

STATUS = f"{PATH}/status"
SECONDS = 120
ERRORS: list[ApiError | Unreachable] = [
    ApiError(403, {"message": "the policy says no"}),
    ApiError(422, {"message": "the policy says no"}),
    ApiError(500, {"message": "the webhook is away"}),
    Unreachable("no answer"),
]


def denying(method: str, path: str, error: ApiError | Unreachable) -> Callable[[str, str], Awaitable[None]]:
    async def deny(sent: str, to: str) -> None:
        if (sent, to) == (method, path):
            raise error

    return deny


async def nothing(_: str, __: str) -> None:
    """Nobody denies anything any more."""


@pytest.mark.parametrize("error", ERRORS)
def test_a_status_is_not_sent_for_each_composite(error: ApiError | Unreachable) -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = denying("PATCH", STATUS, error)
        since = len(server.requests)
        await come_and_go(server, SECONDS)
        # After 0.5, 1, 2, 4, 8, and then each 15 seconds.
        assert 5 <= server.writes(since).count(("PATCH", STATUS)) <= 15
        server.before = nothing
        server.make_composites(2)
        await rest()
        assert server.objects[PATH]["status"]["composites"] == 2

    play(people, begin=established)


def test_who_edits_the_definition_has_its_status_at_once() -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = denying("PATCH", STATUS, ERRORS[0])
        await come_and_go(server, SECONDS)
        server.before = nothing
        generation = server.make(TWO)["metadata"]["generation"]
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["observedGeneration"] == generation

    play(people, begin=established)


def test_a_status_that_cannot_be_written_holds_up_no_crd() -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = denying("PATCH", STATUS, ERRORS[0])
        await come_and_go(server, SECONDS)
        server.make(TWO)
        await asyncio.sleep(1.0)
        assert "more" in fields(server)

    play(people, begin=established)


@pytest.mark.parametrize("error", ERRORS)
def test_a_finalizer_is_not_sent_for_each_composite(error: ApiError | Unreachable) -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = denying("PATCH", PATH, error)
        unheld(server)
        server.make(TWO)
        since = len(server.requests)
        await come_and_go(server, SECONDS)
        assert 5 <= server.writes(since).count(("PATCH", PATH)) <= 15
        server.before = nothing
        await rest()
        assert server.held()
        assert server.ready() == OURS

    play(people, begin=established)


def test_nor_is_its_removal() -> None:
    async def people(server: Server) -> None:
        server.before = denying("PATCH", PATH, ERRORS[0])
        since = len(server.requests)
        server.delete()
        for _ in range(SECONDS):
            await asyncio.sleep(1.0)
            server._announce(CRD)
        assert "the policy says no" in server.condition("Established")[2]
        assert 5 <= server.writes(since).count(("PATCH", PATH)) <= 15
        server.before = nothing
        await rest()
        assert PATH not in server.objects

    play(people, begin=with_policy("Orphan", 0))


@pytest.mark.parametrize("error", ERRORS[:2])
def test_rights_are_not_reviewed_for_each_composite(error: ApiError | Unreachable) -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = denying("PATCH", CRD, error)
        server.make(TWO)
        await rest()
        since = len(server.requests)
        await come_and_go(server, SECONDS)
        reviews = [path for method, path in server.requests[since:] if path.endswith("accessreviews")]
        # Two rights, each 4 seconds, if anybody asks.
        assert len(reviews) <= 2 * SECONDS / 4 + 2

    play(people, begin=established)
