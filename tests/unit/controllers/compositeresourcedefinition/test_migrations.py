"""The StorageMigration of a definition that nobody lets the composer create, in virtual time."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from tests.unit.controllers.compositeresourcedefinition.scene import PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_applying import come_and_go
from tests.unit.controllers.compositeresourcedefinition.test_controller import OURS, established
from tests.unit.controllers.fakeapi import OURS as API
from tests.unit.core.composition.documents import document, version

MIGRATIONS = f"{API}/storagemigrations"
MOVED = document(version("v1", referenceable=False), version("v2"))


def installed(server: Server) -> None:
    established(server)
    server.objects[MIGRATIONS] = {"metadata": {"resourceVersion": "1"}, "items": []}


@pytest.mark.parametrize(
    "error",
    [
        ApiError(400, {"message": 'admission webhook "w" denied the request: not on Fridays'}),
        ApiError(403, {"message": "denied: not on Fridays"}),
        ApiError(409, {"message": "denied: not on Fridays"}),
        ApiError(422, {"message": "ValidatingAdmissionPolicy 'p' denied request: not on Fridays"}),
        ApiError(500, {"message": 'failed calling webhook "w": not on Fridays'}),
        Unreachable("not on Fridays"),
    ],
)
def test_a_refused_migration_is_reported_and_tried_again(error: Exception) -> None:
    async def people(server: Server) -> None:
        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("POST", MIGRATIONS):
                raise error

        server.before = refuse
        generation = server.make(MOVED)["metadata"]["generation"]
        await asyncio.sleep(120.0)
        assert server.objects[PATH]["status"]["observedGeneration"] == generation
        assert server.ready() == OURS
        status, reason, message = server.condition("StorageCurrent")
        assert (status, reason) == ("False", "MigrationsUnavailable")
        assert "not on Fridays" in message
        tries = server.writes().count(("POST", MIGRATIONS))
        assert 4 <= tries <= 20

        server.before = _none
        await asyncio.sleep(61.0)
        assert server.writes().count(("POST", MIGRATIONS)) > tries
        assert server.condition("StorageCurrent")[1] == "Migrating"

    play(people, begin=installed)


def test_one_that_somebody_else_has_created_meanwhile_is_enough() -> None:
    async def people(server: Server) -> None:
        async def another(method: str, path: str) -> None:
            if (method, path) == ("POST", MIGRATIONS) and not server.objects[MIGRATIONS]["items"]:
                server.objects[MIGRATIONS]["items"].append(made)
                raise ApiError(409, {"message": "exists", "reason": "AlreadyExists"})

        made = {
            "metadata": {"name": "m"},
            "spec": {"resource": {"group": "platform.example.com", "resource": "databases"}},
        }
        server.before = another
        server.make(MOVED)
        await asyncio.sleep(5.0)
        assert server.condition("StorageCurrent")[1] == "Migrating"
        assert server.writes().count(("POST", MIGRATIONS)) == 1

    play(people, begin=installed)


def test_a_tenant_cannot_have_all_migrations_listed_while_none_can_be_created() -> None:
    async def people(server: Server) -> None:
        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("POST", MIGRATIONS):
                raise ApiError(403, {"message": "denied: not on Fridays"})

        server.before = refuse
        server.make(MOVED)
        await asyncio.sleep(60.0)
        since = len(server.requests)
        await come_and_go(server, 300)
        lists = sum(path.startswith(f"{MIGRATIONS}?") for _, path in server.requests[since:])
        assert 2 <= lists <= 12
        assert "not on Fridays" in server.condition("StorageCurrent")[2]

    play(people, begin=installed)


async def _none(_: str, __: str) -> None:
    pass
