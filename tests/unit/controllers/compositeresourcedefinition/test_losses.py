"""Somebody deletes the CRD, and with it all composites: the composer says how many were lost, once."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.state import ClusterState
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import (
    CRD,
    OBJECTS,
    PATH,
    Server,
    composer,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_controller import OURS, established, rest

HOLD = {"finalizers": ["example.com/hold"]}


def losses(server: Server) -> tuple[int, int]:
    """How many composites there are, and how many were lost."""
    status = server.objects[PATH]["status"]
    return status["composites"], status["lostComposites"]


def let_go(server: Server) -> None:
    """The finalizers of all composites are removed."""
    for path in [path for path in server.objects if server.objects[path]["metadata"].get("finalizers")]:
        if path != PATH:
            server.objects[path]["metadata"]["finalizers"] = []
            server._collect(path)


def test_a_crd_that_somebody_deletes() -> None:
    async def people(server: Server) -> None:
        server.make_composites(3)
        await rest()
        assert losses(server) == (3, 0)
        server.delete(CRD)
        await rest()
        assert server.ready() == OURS
        assert losses(server) == (0, 3)
        assert server.notes("CompositesLost") == [
            "3 composites were deleted with the CRD, which crdkeeper did not delete, and with them the "
            "objects that they had, but for those with deletion: Orphan."
        ]
        server.make_composites(1)
        await asyncio.sleep(400.0)
        server.delete(CRD)
        await rest()
        assert losses(server) == (0, 4)
        assert len(server.notes("CompositesLost")) == 2

    play(people, begin=established)


def test_while_the_crd_is_being_deleted_the_number_stays() -> None:
    async def people(server: Server) -> None:
        server.make_composites(2)
        server.make_composites(1, **HOLD)
        await rest()
        server.delete(CRD)
        await rest()
        assert len(server.composites()) == 1
        assert losses(server) == (3, 0)
        assert server.condition("Established")[:2] == ("False", "TerminatingCompositeResource")
        assert server.notes("CompositesLost") == []
        let_go(server)
        await rest()
        assert losses(server) == (0, 3)

    play(people, begin=established)


def test_a_loss_is_reported_once_also_if_the_status_cannot_be_written() -> None:
    async def people(server: Server) -> None:
        server.make_composites(3)
        await rest()

        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("PATCH", f"{PATH}/status"):
                raise ApiError(409, {"message": "the object has been modified", "reason": "Conflict"})

        server.before = refuse
        server.delete(CRD)
        await asyncio.sleep(300.0)
        server.before = _none
        await asyncio.sleep(61.0)
        assert losses(server) == (0, 3)
        assert len(server.notes("CompositesLost")) == 1

    play(people, begin=established)


async def _none(_: str, __: str) -> None:
    """No fault."""


def test_composites_that_people_delete_are_not_lost() -> None:
    async def people(server: Server) -> None:
        server.make_composites(2)
        await rest()
        server.delete(next(each for each in server.objects if each.startswith(OBJECTS)))
        await rest()
        assert losses(server) == (1, 0)
        assert server.notes("CompositesLost") == []

    play(people, begin=established)


@pytest.mark.parametrize("policy", ["Protect", "Cascade"])
def test_a_crd_that_somebody_deletes_while_the_definition_is_being_deleted(policy: str) -> None:
    async def people(server: Server) -> None:
        value = server.objects[PATH]
        value["spec"]["deletion"] = policy
        server.make_composites(1, **HOLD)
        await rest()
        server.delete()
        await rest()
        server.delete(CRD)
        await rest()
        let_go(server)
        await rest()
        assert PATH not in server.objects and CRD not in server.objects
        assert server.notes("CompositesLost") == []

    play(people, begin=established)


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_killed_at_each_request(answered: bool) -> None:
    kills = 0
    while kill_at_request(kills + 1, answered):
        kills += 1
    assert kills >= 4


def kill_at_request(number: int, answered: bool) -> bool:
    """Whether there was a request of that number, at which the composer died. Its successor finishes."""
    died = False

    async def main() -> None:
        nonlocal died
        server = Server(ClusterState())
        established(server)
        server.make_composites(2)
        async with composer(server):
            await rest()
        requests, dead = 0, asyncio.Event()

        async def die(_: str, __: str) -> None:
            nonlocal requests
            requests += 1
            if requests >= number:
                dead.set()
                await asyncio.Event().wait()

        async def live(_: str, __: str) -> None:
            pass

        if answered:
            server.after = die
        else:
            server.before = die
        async with composer(server):
            server.delete(CRD)
            await rest()
            died = dead.is_set()
        server.before = server.after = live
        async with composer(server):
            await rest()
        assert server.ready() == OURS
        assert losses(server) == (0, 2)
        # Twice if the composer died between the Event and the status.
        assert 1 <= len(server.notes("CompositesLost")) <= 2

    virtualtime.run(main())
    return died


def test_a_crd_of_others_that_goes_is_no_loss() -> None:
    async def people(server: Server) -> None:
        server.make_composites(2)
        await rest()
        # The definition releases it, as it does with deletion: Orphan, and another one finds it.
        crd = server.objects[CRD]
        crd["metadata"]["annotations"] = {}
        server._wrote(CRD)
        await rest()
        assert server.ready() == ("False", "NotOurs")
        server.delete(CRD)
        await rest()
        assert server.ready() == OURS
        assert losses(server) == (0, 0)

    play(people, begin=established)
