"""Many migrations that wait, in virtual time: what the operator asks of the API server for them."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import Answer, Unreachable
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.storagemigration.controller import StorageMigrations
from tests.unit.builders import migration
from tests.unit.operations.migration.fleet import CRDS, MIGRATIONS, Fleet
from tests.unit.operations.migration.scene import play, refusal
from tests.virtualtime import now


async def begin(fleet: Fleet, **spec: Any) -> None:
    """A migration of each CRD is created, and the operator works on them until cancelled."""
    state = ClusterState()
    controller = StorageMigrations(fleet, state, OperatorMetrics(), identity="me")
    for group in fleet.groups:
        resource = {"group": group, "resource": "things"}
        made = migration(resource=resource, **spec).to_object()
        made["metadata"].update(name=group, uid=group, resourceVersion="1")
        fleet.migrations[group] = made
        state.saw_migration(group, StorageMigration.model_validate(made))
    await controller.run()


def operate(fleet: Fleet, seconds: float, **spec: Any) -> None:
    """The operator works for so long."""

    async def main() -> None:
        working = asyncio.create_task(begin(fleet, **spec))
        await asyncio.sleep(seconds)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    play(main)


@pytest.mark.parametrize("wait", ["settling", "forbidden"])
def test_many_are_looked_at_no_more_often_than_a_few(wait: str) -> None:
    def rate(number: int) -> float:
        """Requests per second, once they have waited for some time."""
        fleet = Fleet(number)
        if wait == "forbidden":
            fleet.refused.update(fleet.groups)
        operate(fleet, 90.0, settleSeconds=600)
        return sum(60 <= at < 90 for at, _, _ in fleet.sent) / 30

    few, many = (20, 60) if wait == "settling" else (100, 250)
    assert rate(many) < 1.2 * rate(few)


@pytest.mark.parametrize("wait", ["suspended", "forbidden"])
def test_what_only_waits_is_not_written_again(wait: str) -> None:
    fleet = Fleet(1)
    if wait == "forbidden":
        fleet.refused.update(fleet.groups)
    operate(fleet, 600.0, suspend=wait == "suspended")
    saves = sum(method == "PATCH" and path.startswith(MIGRATIONS) for _, method, path in fleet.sent)
    assert 1 <= saves <= 3
    assert len(fleet.sent) > 60


def test_a_status_of_which_the_answer_got_lost_does_not_stay() -> None:
    """It tells of a moment without answers; what is told afterwards is the same as before."""

    class Outage(Fleet):
        async def send(self, method: str, path: str, **more: Any) -> Answer:
            answer = await super().send(method, path, **more)
            saves = method == "PATCH" and path.startswith(MIGRATIONS)
            if (saves or path.startswith(CRDS)) and 400 <= now() < 470:
                raise Unreachable("reset")
            return refusal(400, "BadRequest", "No.") if path.startswith(CRDS) else answer

    fleet = Outage(1)
    seen: list[str] = []

    async def main() -> None:
        working = asyncio.create_task(begin(fleet))
        for at in (399.0, 469.0, 699.0):
            await asyncio.sleep(at - now())
            conditions = fleet.migrations[fleet.groups[0]]["status"]["conditions"]
            seen.append(next(each["reason"] for each in conditions if each["type"] == "Succeeded"))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    play(main)
    assert seen == ["APIServerRefused", "APIServerUnavailable", "APIServerRefused"]


def test_one_that_settles_does_so_as_fast_beside_many_that_may_not_begin() -> None:
    def written(number: int) -> float:
        """When the objects of the last one were written, which is the only one that may begin."""
        fleet = Fleet(number)
        *refused, group = fleet.groups
        fleet.refused.update(refused)
        operate(fleet, 60.0, settleSeconds=5)
        return max(at for at, _, path in fleet.sent if f"/{group}/v2/things/" in path)

    assert written(300) < written(1) + 5.0
