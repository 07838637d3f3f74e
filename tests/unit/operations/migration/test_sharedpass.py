"""The coordinator's view of a pass that other processes carry out, in virtual time."""

from typing import Any, cast

import pytest

from crdkeeper.api.storagemigration import MigrationPart, MigrationShards, MigrationSweep, StorageMigration
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.migration.sharding import name_of_pass
from crdkeeper.operations.migration.sharedpass import SharedPass, shared_pass
from crdkeeper.operations.migration.sweep import RESOURCE_VERSIONS_RESET, Interrupted
from tests import virtualtime
from tests.unit.builders import migration
from tests.unit.controllers.fakeapi import OURS, FakeApi

PATH = f"{OURS}/storagemigrations/m"


class Shards(FakeApi):
    """Returns a migration with the next of these parts at each look, then always with the last."""

    def __init__(self, *looks: list[MigrationPart]) -> None:
        super().__init__({})
        self.looks = list(looks)

    async def request(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        assert path == PATH
        parts = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        self.objects[PATH] = shared(parts).to_object()
        return await super().request(method, path, *arguments, **more)


def shared(parts: list[MigrationPart]) -> StorageMigration:
    made = migration()
    made.status.shards = MigrationShards(parts=parts)
    made.status.settled_resource_version = "42"
    made.status.sweep = MigrationSweep(type="Rewrite", rewritten_before=3)
    return made


WORK = name_of_pass(shared([MigrationPart()]).status)
DONE = MigrationPart(sweep=WORK, term=1, done=True, scanned=4, rewritten=4, total=9)
BUSY = MigrationPart(sweep=WORK, term=1, holder="a", rewritten=2, concurrency=5, total=9)


def run(*looks: list[MigrationPart]) -> SharedPass:
    found = shared_pass(cast(Client, Shards(*looks)), shared(looks[0]), "Rewrite")
    assert found is not None
    work, before = found
    assert (before.progress.rewritten, before.scanned) == (3, 0)
    virtualtime.run(work.run(None))
    return work


def given_up(trouble: str) -> MigrationPart:
    return BUSY.model_copy(update={"holder": "", "trouble": trouble, "term": 2})


def test_it_ends_when_all_parts_are_done() -> None:
    work = run([BUSY, DONE], [BUSY, DONE], [DONE, DONE])
    assert (work.tally.rewritten, work.tally.scanned, work.tally.total) == (8, 8, 8)
    assert work.checkpoint() == (None, 8)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("WebhookUnavailable: 25 objects in a row", "PartsStopped"),
        # What was written before may have the resourceVersions of what is written from now on.
        (f"{RESOURCE_VERSIONS_RESET}: they went backwards", RESOURCE_VERSIONS_RESET),
    ],
)
def test_it_stops_when_nobody_can_go_on(trouble: str, reason: str) -> None:
    with pytest.raises(Interrupted) as caught:
        run([BUSY, DONE], [BUSY, DONE], [given_up(trouble), DONE])
    assert caught.value.reason == reason


@pytest.mark.parametrize("parts", [[DONE], [DONE, DONE, DONE]])
def test_another_number_of_parts_is_no_end_of_the_pass(parts: list[MigrationPart]) -> None:
    with pytest.raises(Interrupted, match="PartsChanged"):
        run([BUSY, DONE], parts)
