"""Composites of which the composer may not read or write one."""

import asyncio

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.composite.scene import MADE, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import NAME, OBJECTS, Server


def reads(server: Server) -> int:
    return sum(method == "GET" and path.startswith(f"{OBJECTS}/") for method, path in server.requests)


def reviews(server: Server) -> int:
    return sum(path.endswith("/selfsubjectaccessreviews") for _, path in server.requests)


def deny(server: Server) -> None:
    async def denied(method: str, path: str) -> None:
        if path.startswith(f"{OBJECTS}/"):
            raise ApiError(403, {"message": "databases is forbidden"})

    server.before = denied


def test_without_rights_no_composite_is_asked_for_again_and_again() -> None:
    async def people(server: Server) -> None:
        server.missing = {"get", "patch"}
        heard: list[str] = []
        server.state.listen(lambda kind, name: heard.append(name) if kind == "composing" else None)
        deny(server)
        await asyncio.sleep(60.0)
        # One for each worker, before the first one was denied.
        assert 0 < reads(server) <= 16
        assert 0 < reviews(server) <= 3 * (60 / 15 + 1)
        assert len(server.notes("CompositesNotComposed")) == 1
        assert heard == [NAME]
        assert server.state.uncomposed[NAME].reason.name == "RightMissing"
        server.missing.clear()
        before = reads(server)
        await asyncio.sleep(18.0)
        assert reads(server) - before >= 300
        # The rights are there, but something else denies it: at first of some, then of all.
        assert heard == [NAME] * 4
        assert server.state.uncomposed[NAME].reason.name == "CompositesNotComposed"

    play(people, 300, revision())


def test_a_policy_against_one_composite_holds_up_no_other() -> None:
    async def people(server: Server) -> None:
        deny(server)
        await asyncio.sleep(50.0)
        # All again each time, although each is denied: the composer has the rights.
        assert reads(server) >= 3 * 30
        assert reviews(server) <= 3 * 5

    play(people, 30, revision())


def test_a_definition_that_goes_during_a_review_and_comes_again() -> None:
    async def people(server: Server) -> None:
        server.missing = {"get", "patch"}

        async def denied_slowly(_: str, path: str) -> None:
            if path.endswith("/selfsubjectaccessreviews"):
                await asyncio.sleep(1.0)
            elif path.startswith(f"{OBJECTS}/"):
                raise ApiError(403, {"message": "databases is forbidden"})

        server.before = denied_slowly
        await asyncio.sleep(2.0)
        assert reviews(server) and NAME not in server.state.uncomposed
        server.forced_out()
        await asyncio.sleep(20.0)
        server.missing.clear()
        deny(server)
        made = server.make()
        server.make_crd(MADE, annotations={DEFINITION_UID: made["metadata"]["uid"]})
        before = reads(server)
        await asyncio.sleep(60.0)
        assert reads(server) - before >= 3

    play(people, 1, revision())
