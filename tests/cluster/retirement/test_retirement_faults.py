"""A retirement whose operator is killed at any instant, or whose changes others cross or refuse."""

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import BINDINGS, frozen_definition, until_changeable
from tests.cluster.retirement.scene import (
    NEW,
    OLD,
    RETIREMENTS,
    assert_retired,
    listed,
    moved,
    permit,
    retire,
    standing,
    until_ready,
    versions,
)
from tests.controlplane.cluster import Cluster

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "8"))


@pytest.mark.timeout(120 + 20 * KILLS)
async def test_kills_at_random_instants(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = int(os.environ.get("CRDKEEPER_SEED") or random.SystemRandom().randrange(2**32))
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    kind = await moved(admin, group)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute")
    operator = start_operator(installed)
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0, 1))
        operator.kill()
        await assert_sound(admin, kind)
        operator.start()
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 20)


async def assert_sound(admin: Admin, kind: CustomKind) -> None:
    """The steps were taken in order, and everything can be read."""
    found, crd = await versions(admin, kind), await admin.definition(kind)
    assert found[NEW]["served"]
    assert found[NEW]["storage"]
    old = found.get(OLD)
    if old is None:
        assert crd["status"]["storedVersions"] == [NEW]
        assert admin.stored(kind) == {NEW: 20}
    else:
        assert old["served"] or old.get("deprecated")
        # It is migrated for the retirement only once nobody can write at it.
        assert not old["served"] or crd["status"]["storedVersions"] == [OLD, NEW]
    assert len((await listed(admin, kind))["items"]) == 20


async def test_another_client_that_writes_the_crd_all_the_time(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)

    async def write() -> None:
        number = 0
        while True:
            number += 1
            await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"written": str(number)}}})
            await asyncio.sleep(0.5)

    writer = asyncio.create_task(write())
    try:
        name = await retire(admin, kind, mode="Execute")
        await until_ready(admin, name, "True", "Removed")
        assert not writer.done()
    finally:
        writer.cancel()
        with suppress(asyncio.CancelledError):
            await writer
    await assert_retired(admin, kind, 3)


async def test_a_policy_that_refuses_the_change_is_quoted(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    policy = await frozen_definition(admin, kind.name, "versions are frozen until the audit")
    name = await retire(admin, kind, mode="Execute")
    found = await until_ready(admin, name, "False", "Refused")
    assert "versions are frozen until the audit" in standing(found, "Ready").message
    assert standing(found, "Stalled").status == "True"
    # It asks again after half a minute: nothing is written meanwhile, not even a status.
    await asyncio.sleep(2)
    now = await admin.get(f"{RETIREMENTS}/{name}")
    assert now["metadata"]["resourceVersion"] == found.metadata.resource_version

    await admin.delete(f"{BINDINGS}/{policy}")
    await until_changeable(admin, kind.name)
    # Whoever changes the retirement does not wait for that.
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"quietPeriod": "2s"}})
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)
