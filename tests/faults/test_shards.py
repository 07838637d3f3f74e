"""Processes that share a migration (`crdkeeper migrate --shards`), killed and paused at random instants."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.core.migration.sharding import DEAD_SECONDS, part_of
from tests.cluster.cli import jobsample
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.cli.migrations import QUICK
from tests.cluster.harness import Admin, CustomKind, condition, outdated
from tests.dice import drawn_seed
from tests.faults.scene import assert_all_stored_at, assert_each_written_once, rewritten, write_counts
from tests.faults.shardcrew import SHARDS, Crew

KILLS = int(os.environ.get("CRDKEEPER_SHARD_KILLS", "0"))
OBJECTS = 150


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[list[CommandLine]]:
    shells: list[CommandLine] = []
    yield shells
    for each in shells:
        each.close()


async def crew_for(
    admin: Admin, group: str, shells: list[CommandLine], directory: Path, *options: str
) -> tuple[Crew, CustomKind]:
    kind = await outdated(admin, CustomKind(group), OBJECTS, opt_in=False)
    shells.append(CommandLine(await jobsample.account(admin, kind), directory))
    return Crew(shells[-1], kind, *QUICK, *options), kind


async def test_each_shard_rewrites_its_part(
    admin: Admin, group: str, shell: list[CommandLine], tmp_path: Path
) -> None:
    crew, kind = await crew_for(admin, group, shell, tmp_path, "--max-objects-per-second=60")
    before = write_counts(admin, kind)
    for index in range(SHARDS):
        crew.start(index)

    await crew.end(120)

    await assert_all_stored_at(admin, kind, OBJECTS)
    assert_each_written_once(admin, kind, since=before)
    made = await admin.migration(crew.name)
    assert condition(made, "Succeeded").reason == "Migrated"
    progress = made.status.progress
    counted, said = (progress.rewritten, progress.current, progress.total), [each.stderr for each in crew.all]
    assert counted == (OBJECTS, 0, OBJECTS), said
    sizes = [0] * SHARDS
    for key in before:
        namespace, name = key.split("/")[-2:]
        sizes[part_of(namespace, name, SHARDS)] += 1
    assert made.status.shards is not None
    assert [each.rewritten for each in made.status.shards.parts] == sizes, said
    assert sum("coordinates the migration" in each.stderr for each in crew.all) == 1

    late = await crew.start(0).done()
    assert late.exit_code == 0, late.stderr
    assert await admin.migration(crew.name) == made


async def test_one_is_killed_and_one_is_paused(
    admin: Admin, group: str, shell: list[CommandLine], tmp_path: Path
) -> None:
    """The third does all that is left; the paused one does no harm when it wakes."""
    dice = dice_of_test()
    crew, kind = await crew_for(admin, group, shell, tmp_path)
    # So slow that much is left however late the test looks. In the object, so that the pace can be changed.
    await admin.create_migration(crew.name, kind, managedBy=CLI, limits={"maxObjectsPerSecond": 3})
    for index in range(SHARDS):
        crew.start(index)
    await crew.under_way(admin)
    await asyncio.sleep(dice.uniform(0, 2))
    dice.shuffle(crew.alive)
    paused, killed, last = crew.alive
    paused.signal(signal.SIGSTOP)
    killed.kill()
    assert rewritten(admin, kind) < OBJECTS
    await admin.patch_migration(crew.name, limits={"maxObjectsPerSecond": 1000})

    done = await last.done(seconds=6 * DEAD_SECONDS)

    assert done.exit_code == 0, done.stderr
    assert "shows no sign of life" in done.stderr
    await assert_all_stored_at(admin, kind, OBJECTS)
    counts, made = write_counts(admin, kind), await admin.migration(crew.name)
    paused.signal(signal.SIGCONT)
    woken = await paused.done()
    assert woken.exit_code == 0, woken.stderr
    # Its queue is full of objects that it knows as they were before: none is written again.
    assert write_counts(admin, kind) == counts
    now = await admin.migration(crew.name)
    assert now.status.conditions == made.status.conditions


@pytest.mark.skipif(not KILLS, reason="only with CRDKEEPER_SHARD_KILLS")
@pytest.mark.timeout(300 + 30 * KILLS)
async def test_kills_at_random_instants(
    admin: Admin, group: str, shell: list[CommandLine], tmp_path: Path
) -> None:
    dice = dice_of_test()
    crew, kind = await crew_for(
        admin, group, shell, tmp_path, f"--max-objects-per-second={max(3, 60 // KILLS)}"
    )
    for index in range(SHARDS):
        crew.start(index)
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0, 10))
        index = dice.randrange(SHARDS)
        crew.alive.pop(dice.randrange(len(crew.alive))).kill()
        if len(crew.alive) < 2 or dice.random() < 0.7:
            crew.start(index)

    await crew.end(120 + OBJECTS)

    await assert_all_stored_at(admin, kind, OBJECTS)
    made = await admin.migration(crew.name)
    assert condition(made, "Succeeded").status == "True"
    assert made.status.progress.total == OBJECTS


def dice_of_test() -> random.Random:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_SHARD_KILLS={KILLS}")
    return random.Random(seed)
