"""Rights to compose that the composer lacks, as the condition Offered says while they come and go."""

import asyncio

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composer.reasons import RIGHT_MISSING_TO_COMPOSE
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.controllers.compositeresourcedefinition.scene import NAME, Server, play

SMALL = {
    "metadata": {"name": "small", "resourceVersion": "1"},
    "spec": {"compositeTypeRef": {"apiVersion": "platform.example.com/v1", "kind": "Database"}},
    "status": {"revision": 1},
}
OFFERED = ("True", "OnlyOne")
DENIED = ("False", "RightMissing")


def reviews(server: Server) -> int:
    return sum(path.endswith("/selfsubjectaccessreviews") for _, path in server.requests)


async def offer(server: Server) -> None:
    server.make()
    await asyncio.sleep(5.0)
    assert server.condition("Offered")[:2] == ("False", "NoComposition")
    assert not reviews(server)
    server.compositions.put_nowait(SMALL)
    await asyncio.sleep(5.0)


def test_it_is_said_without_a_composite_and_until_the_right_comes() -> None:
    async def people(server: Server) -> None:
        server.missing = {"patch"}
        await offer(server)
        status, reason, message = server.condition("Offered")
        assert (status, reason) == DENIED
        assert f"(patch {NAME}, patch {NAME}/status)" in message
        assert "resources: [databases, databases/status], verbs: [get, list, watch, patch]}" in message
        assert server.ready()[0] == "True"
        writes = len(server.writes()) - reviews(server)
        await asyncio.sleep(120.0)
        assert len(server.writes()) - reviews(server) == writes
        assert reviews(server) <= 3 * 10
        server.missing.clear()
        await asyncio.sleep(16.0)
        assert server.condition("Offered")[:2] == OFFERED

    play(people)


def test_a_right_that_goes_is_noticed_when_a_composite_is_denied() -> None:
    async def people(server: Server) -> None:
        await offer(server)
        assert server.condition("Offered")[:2] == OFFERED
        before = reviews(server)
        server.missing = {"get"}
        await asyncio.sleep(30.0)
        assert reviews(server) == before
        server.state.saw_composing(NAME, Verdict(RIGHT_MISSING_TO_COMPOSE, "denied"))
        await asyncio.sleep(1.0)
        assert server.condition("Offered")[:2] == DENIED
        # The other way round, without the pause.
        server.missing.clear()
        server.state.saw_composing(NAME, None)
        await asyncio.sleep(1.0)
        assert server.condition("Offered")[:2] == OFFERED

    play(people)


def test_what_was_found_out_of_composites_is_said_also_without_a_composition() -> None:
    async def people(server: Server) -> None:
        server.make()
        await asyncio.sleep(5.0)
        for name in (NAME, ""):
            server.state.saw_composing(name, Verdict(RIGHT_MISSING_TO_COMPOSE, "denied"))
            await asyncio.sleep(1.0)
            assert server.condition("Offered") == (*DENIED, "denied")
            assert server.ready()[0] == "True"
            server.state.saw_composing(name, None)
            await asyncio.sleep(1.0)
            assert server.condition("Offered")[:2] == ("False", "NoComposition")

    play(people)


def test_a_review_that_fails_changes_nothing() -> None:
    async def people(server: Server) -> None:
        server.missing = {"get"}
        await offer(server)
        assert server.condition("Offered")[:2] == DENIED

        async def fail(_: str, path: str) -> None:
            if path.endswith("/selfsubjectaccessreviews"):
                raise ApiError(500, {"message": "etcdserver: leader changed"})

        server.before = fail
        before = len(server.writes())
        await asyncio.sleep(60.0)
        assert server.condition("Offered")[:2] == DENIED
        assert all(path.endswith("/selfsubjectaccessreviews") for _, path in server.writes(0)[before:])

    play(people)
