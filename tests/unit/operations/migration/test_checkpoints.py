"""How much a process that is killed has done since it saved its progress."""

import asyncio
import copy
from contextlib import suppress

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from tests.unit.builders import migration
from tests.unit.operations.migration.scene import (
    PAGE,
    About,
    Cluster,
    Process,
    assert_migrated,
    finish,
    play,
)


def slowly() -> StorageMigration:
    """A migration with some saves on each of its three pages."""
    return migration(settleSeconds=5, limits={"maxObjectsPerSecond": 4, "maxConcurrency": 1})


def test_a_killed_process_has_written_little_that_the_next_one_lists_again() -> None:
    async def main() -> None:
        cluster = Cluster(
            objects=40,
            made=migration(settleSeconds=5, limits={"maxObjectsPerSecond": 4, "maxConcurrency": 1}),
        )
        most = 0

        def look(about: About, nth: int) -> None:
            nonlocal most
            sweep = cluster.stored.status.sweep
            if about == "rewrite" and sweep is not None:
                most = max(most, nth - 1 - int(sweep.continue_token or 0))

        cluster.happens = look
        await finish(cluster)
        assert cluster.requests["rewrite"] == 40
        assert most < 2 * PAGE

    play(main)


def saves_of_a_run() -> int:
    async def main() -> int:
        cluster = Cluster(made=slowly())
        await finish(cluster)
        return cluster.requests["save"]

    return play(main)


@pytest.mark.parametrize("nth", range(1, saves_of_a_run() + 1))
def test_a_process_that_is_killed_at_any_save_has_each_object_counted_once(nth: int) -> None:
    async def main() -> None:
        cluster = Cluster(made=slowly())
        process = Process(cluster)
        reached = asyncio.Event()
        cluster.happens = lambda about, number: reached.set() if (about, number) == ("save", nth) else None
        await reached.wait()
        stored = copy.deepcopy(cluster.migration)
        process.task.cancel()
        with suppress(asyncio.CancelledError):
            await process.task
        cluster.migration = stored
        done = await finish(cluster)
        assert_migrated(cluster)
        progress, sweep = done.status.progress, done.status.sweep
        assert sweep is not None
        assert (progress.rewritten + progress.current, progress.total, sweep.scanned) == (10, 10, 10)

    play(main)
