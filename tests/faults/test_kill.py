"""kill -9 of the operator, at any point: its successor loses nothing and repeats nothing."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from crdkeeper.api.storagemigration import MigrationTarget, StorageMigration
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.harness.admin import MIGRATIONS, condition
from tests.cluster.harness.admission import denied
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.faults.policies import trims_denied
from tests.faults.scene import PHASES, assert_all_stored_at, phase, write_counts

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "8"))
OBJECTS = 40
SLOWLY = {"maxObjectsPerSecond": 15}
"""More than a second for a pass, so that kills can hit it."""

StartOperator = Callable[..., Operator]


class Ledger:
    """What must always be true for a migration, however often its operator was killed."""

    def __init__(self, admin: Admin, kind: CustomKind, name: str) -> None:
        self._admin = admin
        self._kind = kind
        self._name = name
        self._before = write_counts(admin, kind)
        self._target: MigrationTarget | None = None
        self._settled: str | None = None

    async def check(self) -> StorageMigration:
        """Fails if the target or S has changed, or an object was written twice; returns the migration."""
        migration = await self._admin.migration(self._name)
        status = migration.status
        assert status.restarts == 0
        if self._target is not None:
            assert status.target == self._target
        if self._settled is not None:
            assert status.settled_resource_version == self._settled
        self._target, self._settled = status.target, status.settled_resource_version
        written = self.written()
        assert set(written.values()) <= {0, 1}, "an object was rewritten again"
        if any(written.values()):
            assert self._settled is not None, "an object was rewritten before it was settled"
        return migration

    def written(self) -> dict[str, int]:
        """How often each object was written since the beginning, by its key."""
        return {
            key: count - self._before[key] for key, count in write_counts(self._admin, self._kind).items()
        }

    async def check_end(self) -> None:
        """Fails unless each object was written exactly once, and everything is proved."""
        migration = await self.check()
        progress = migration.status.progress
        assert condition(migration, "Succeeded").status == "True"
        assert progress.rewritten + progress.current == progress.total == OBJECTS
        assert set(self.written().values()) == {1}
        await assert_all_stored_at(self._admin, self._kind, OBJECTS)


@pytest.mark.timeout(300 + 20 * KILLS)
async def test_kills_at_random_instants(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, OBJECTS)
    await admin.opt_in(group)
    operator = start_operator(installed, wait=False)
    kills, migrations = Counter[str](), 0
    while kills.total() < KILLS:
        kind = kind.storing("v2" if kind.storage_version == "v1" else "v1")
        await admin.apply_definition(kind)
        migrations += 1
        name = f"{group.partition('.')[0]}-{migrations}"
        verify = dice.choice(["Remaining", "Full"])
        ledger = Ledger(admin, kind, name)
        await admin.create_migration(name, kind, limits=SLOWLY, verify=verify)
        while kills.total() < KILLS:
            if not operator.running:
                operator.start(wait=dice.random() > 0.1)
            if await succeeds_within(admin, name, dice.uniform(0.0, 3.0)):
                break
            operator.kill()
            kills[phase(await ledger.check())] += 1
        if not operator.running:
            operator.start()
        await admin.wait_for_condition(name, "Succeeded", "True")
        await ledger.check_end()
    print(f"{kills.total()} kills over {migrations} migrations: {dict(kills)}")
    assert "Traceback" not in operator.log_since()


async def test_killed_in_each_phase(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(installed)
    ledger = Ledger(admin, kind, group)
    async with trims_denied(admin, kind):
        await admin.create_migration(group, kind, limits=SLOWLY, verify="Full")
        for where in PHASES[:-1]:
            if not operator.running:
                operator.start(wait=False)
            await until_phase(admin, group, where)
            operator.kill()
            await ledger.check()

    operator.start()
    await admin.wait_for_condition(group, "Succeeded", "True")
    await ledger.check_end()


async def test_killed_between_the_trim_and_its_record(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(installed)
    ledger = Ledger(admin, kind, group)
    async with records_of_a_trim_denied(admin, group):
        await admin.create_migration(group, kind)

        async def is_trimmed() -> bool:
            return await admin.stored_versions_of(kind) == ["v2"]

        await eventually(is_trimmed)
        operator.kill()
        assert condition(await ledger.check(), "Trimmed").status != "True"

    operator.start()
    await admin.wait_for_condition(group, "Succeeded", "True")
    await ledger.check_end()


async def until_phase(admin: Admin, name: str, where: str) -> None:
    """Returns once a migration has reached that phase or a later one."""
    reached = PHASES[PHASES.index(where) :]
    await admin.wait_for_migration(name, lambda each: phase(each) in reached, f"at {where}")


async def succeeds_within(admin: Admin, name: str, seconds: float) -> bool:
    """Whether a migration succeeds in that time; returns as soon as it does."""
    deadline = time.monotonic() + seconds
    while phase(await admin.migration(name)) != "over":
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


@asynccontextmanager
async def records_of_a_trim_denied(admin: Admin, name: str) -> AsyncIterator[None]:
    """Denies recording that a StorageMigration with that name has trimmed."""
    # For the dry run: one that no operator changes.
    other = f"{name}-other"
    await admin.create_migration(other, ("", "pods"), managedBy="nobody")
    now = "2025-01-01T00:00:00Z"
    trimmed = {
        "type": "Trimmed",
        "status": "True",
        "reason": "Trimmed",
        "message": "",
        "lastTransitionTime": now,
    }
    async with denied(
        admin,
        name,
        group="crdkeeper.dev",
        resource="storagemigrations/status",
        when=f"object.metadata.name.startsWith('{name}') && "
        "object.status.conditions.exists(each, each.type == 'Trimmed' && each.status == 'True')",
        such_as=(f"{MIGRATIONS}/{other}/status", {"status": {"conditions": [trimmed]}}),
    ):
        yield
