"""A command whose migration another release writes, so that this one cannot read it; in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.meta import CLI, OPERATOR
from crdkeeper.cluster.resources.kinds import OfAnotherRelease
from crdkeeper.operations.migration.standalone import succeeded
from tests.unit.operations.migration.scene import play
from tests.unit.operations.migration.test_taking_over import NAME, RESUMES, Fenced, command


def rewrite(fleet: Fenced, **spec: Any) -> None:
    fleet.write(fleet.migrations[NAME]["status"], **spec)


@pytest.mark.parametrize("manager", [CLI, OPERATOR], ids=["it runs it", "it follows it"])
def test_the_error_names_it(manager: str) -> None:
    fleet = Fenced(None)
    rewrite(fleet, managedBy=manager)

    async def main() -> None:
        running = asyncio.create_task(command(fleet, []).run())
        await asyncio.sleep(30)
        rewrite(fleet, mode="Later")
        async with asyncio.timeout(60):
            await running

    with pytest.raises(OfAnotherRelease) as raised:
        play(main)
    assert str(raised.value) == f"StorageMigration {NAME} is of another release, and this one cannot read it"
    assert fleet.written == []


def test_a_change_counts_as_soon_as_it_can_be_read() -> None:
    """Nothing is stored meanwhile: while it is suspended, it looks every 10 seconds."""
    fleet, said = Fenced(None), list[str]()
    rewrite(fleet, suspend=True)

    async def main() -> None:
        work = command(fleet, said)
        running = asyncio.create_task(work.run())
        await asyncio.sleep(3)
        rewrite(fleet, mode="Later")
        await asyncio.sleep(2.5)
        fleet.migrations[NAME]["metadata"]["generation"] += 1
        rewrite(fleet, mode="Execute", suspend=False)
        async with asyncio.timeout(600):
            await running
        assert work.migration is not None
        assert succeeded(work.migration)

    play(main)
    assert said == [RESUMES]
