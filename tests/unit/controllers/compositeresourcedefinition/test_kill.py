"""kill -9 at each request: before it has its effect, and after it before its answer arrives."""

import asyncio

import pytest

from crdkeeper.controllers.state import ClusterState
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, PATH, Server, composer
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    established,
    with_policy,
)


async def _nothing(_: str, __: str) -> None:
    pass


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("policy", ["create", "change", "Protect", "protected", "Cascade", "Orphan"])
def test_killed_at_each_request(policy: str, answered: bool) -> None:
    kills = 0
    while kill_at_request(policy, kills + 1, answered):
        kills += 1
    assert kills >= 4


def kill_at_request(policy: str, number: int, answered: bool) -> bool:
    """Whether there was a request of that number, at which the composer died. Its successor finishes."""
    died = False

    async def people(server: Server) -> None:
        nonlocal died
        requests = 0
        dead = asyncio.Event()

        async def die(_: str, __: str) -> None:
            nonlocal requests
            requests += 1
            if requests >= number:
                dead.set()
                await asyncio.Event().wait()

        if answered:
            server.after = die
        else:
            server.before = die
        async with composer(server):
            match policy:
                case "create":
                    server.make()
                case "change":
                    server.make(TWO)
                case _:
                    server.delete()
            await asyncio.sleep(20.0)
            died = dead.is_set()
        server.before = server.after = _nothing
        async with composer(server):
            await asyncio.sleep(60.0)
            check_end(server, policy)

    async def main() -> None:
        server = Server(ClusterState())
        if policy == "change":
            established(server)
        elif policy == "protected":
            with_policy("Protect", 2)(server)
        elif policy != "create":
            with_policy(policy, 2 if policy != "Protect" else 0)(server)
        await people(server)

    virtualtime.run(main())
    return died


def check_end(server: Server, policy: str) -> None:
    assert server.lost == []
    if policy in ("create", "change"):
        assert server.ready() == OURS
        assert server.held()
        return
    if policy == "protected":
        assert "2 composites" in server.condition("Established")[2]
        assert "deletionTimestamp" not in server.objects[CRD]["metadata"]
        assert len(server.composites()) == 2
        return
    assert PATH not in server.objects
    assert (CRD in server.objects) == (policy == "Orphan")
    assert len(server.composites()) == (2 if policy == "Orphan" else 0)
