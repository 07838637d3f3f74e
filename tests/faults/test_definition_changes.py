"""The CRD changes while its migration runs: earlier evidence proves nothing afterwards."""

import asyncio
import os
import random
from collections.abc import Callable

import pytest

from crdkeeper.cluster.resources.definitions import get_definition, trim_stored_versions
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, Operator, outdated
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.faults.policies import trims_denied
from tests.faults.replicas import PATIENT
from tests.faults.scene import assert_all_stored_at, message_of, phase

ROUNDS = int(os.environ.get("CRDKEEPER_FLIPS", "3"))
OBJECTS = 40
SLOWLY = {"maxObjectsPerSecond": 20}


@pytest.fixture
def operator(installed: Cluster, start_operator: Callable[..., Operator]) -> Operator:
    """One that keeps its Lease through a pause, however long the test takes meanwhile."""
    return start_operator(installed, flags=PATIENT)


@pytest.mark.timeout(300 + 40 * ROUNDS)
async def test_flipped_back_and_forth_at_random_instants(
    admin: Admin, operator: Operator, group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_FLIPS={ROUNDS}")
    dice = random.Random(seed)
    old = CustomKind(group)
    await admin.apply_definition(old)
    names = await admin.create_objects(old, OBJECTS)
    await admin.opt_in(group)
    for round_ in range(ROUNDS):
        new = old.storing("v2" if old.storage_version == "v1" else "v1")
        await admin.apply_definition(new)
        name = f"{group.partition('.')[0]}-{round_}"
        await admin.create_migration(name, new, limits=SLOWLY, verify=dice.choice(["Remaining", "Full"]))
        await asyncio.sleep(dice.uniform(0.0, 4.0))
        reached = phase(await admin.migration(name))

        unseen = dice.random() < 0.5
        if unseen:
            operator.pause()
        await admin.apply_definition(old)
        # What is written now is stored at the old version, and is newer than everything rewritten.
        for each in dice.sample(names, 3):
            await admin.merge(old.path(each), {"spec": {"note": f"round {round_}"}})
        await asyncio.sleep(dice.uniform(0.0, 0.5))
        await admin.apply_definition(new)
        operator.resume()

        migration = await admin.wait_for_condition(name, "Succeeded", "True")
        print(f"round {round_}: {reached}, {unseen=}, {migration.status.restarts} restarts")
        target, now = migration.status.target, await admin.definition(new)
        assert target is not None
        if target.generation != now["metadata"]["generation"]:
            await admin.migrate(f"{name}-again", new)  # it was over before the CRD changed for the last time
        await assert_all_stored_at(admin, new, OBJECTS)
        old = new


async def test_flipped_back_and_forth_unseen_between_the_proof_and_the_trim(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    async with trims_denied(admin, kind):
        await admin.create_migration(group, kind)
        await admin.wait_for_migration(
            group,
            lambda each: phase(each) == "proved" and "stopped by a test" in message_of(each, "Succeeded"),
            "denied the trim",
        )
        operator.pause()  # when it looks again, all names are the same: only the generation differs
        await admin.apply_definition(kind.storing("v1"))
        await admin.merge(kind.path("db-00000"), {"spec": {"note": "old again"}})
        await admin.create_objects(kind, 1, prefix="late")
        await admin.apply_definition(kind)
    operator.resume()

    migration = await admin.wait_for_condition(group, "Succeeded", "True")

    assert migration.status.restarts > 0
    await admin.wait_for_event(group, "Warning", "TargetChanged")
    await assert_all_stored_at(admin, kind, OBJECTS + 1)


async def test_the_trim_itself_is_bound_to_what_was_read(
    admin: Admin, installed: Cluster, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 1)
    account = installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(account)) as client:
        read = await get_definition(client, kind.name)
        assert read is not None
        await admin.apply_definition(kind.storing("v1"))
        await admin.apply_definition(kind)

        with pytest.raises(ApiError, match="the object has been modified") as refused:
            await trim_stored_versions(client, read, [read.storage_version])

    assert refused.value.code == 409
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
