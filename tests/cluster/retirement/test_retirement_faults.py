"""A retirement whose operator is killed at any instant, or whose changes others cross or refuse."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.versionretirement import DEPRECATED, MIGRATED, NOT_SERVED, REMOVED, VersionRetirement
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
    retirement,
    standing,
    until_ready,
    versions,
    written_all_the_time,
)
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "8"))


@pytest.mark.timeout(300 + 20 * KILLS)
async def test_kills_at_random_instants(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    operator = start_operator(installed)
    killed: Counter[str] = Counter()
    retired = 0
    while killed.total() < KILLS:
        # One retirement is over before many kills: the others would hit an idle operator.
        kind = await moved(admin, f"r{retired}.{group}")
        await permit(admin, kind)
        name = await retire(admin, kind, mode="Execute")
        while killed.total() < KILLS and not is_over(await retirement(admin, name)):
            await asyncio.sleep(dice.uniform(0, 1))
            if dice.random() < 0.5:
                noted = {"metadata": {"annotations": {"noted": str(killed.total())}}}
                await admin.merge(f"{CRDS}/{kind.name}", noted)
            operator.kill()
            killed[await assert_sound(admin, kind)] += 1
            operator.start()
        await until_ready(admin, name, "True", "Removed")
        await assert_retired(admin, kind, 20)
        retired += 1
    print(f"{retired} retirements, {killed.total()} kills, by state of the CRD: {dict(killed)}")


def is_over(found: VersionRetirement) -> bool:
    """Whether its version is removed."""
    removed = find_condition(found.status.conditions, REMOVED)
    return removed is not None and removed.status == "True"


async def assert_sound(admin: Admin, kind: CustomKind) -> str:
    """The steps were taken in order, and everything can be read. Returns the last one in the CRD."""
    found, crd = await versions(admin, kind), await admin.definition(kind)
    assert found[NEW]["served"]
    assert found[NEW]["storage"]
    assert len((await listed(admin, kind))["items"]) == 20
    old = found.get(OLD)
    if old is None:
        assert crd["status"]["storedVersions"] == [NEW]
        assert admin.stored(kind) == {NEW: 20}
        return REMOVED
    if not old["served"]:
        return NOT_SERVED if OLD in crd["status"]["storedVersions"] else MIGRATED
    # It is migrated for the retirement only once nobody can write at it.
    assert crd["status"]["storedVersions"] == [OLD, NEW]
    return DEPRECATED if old.get("deprecated") else "-"


async def test_another_client_that_writes_the_crd_all_the_time(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    async with written_all_the_time(admin, kind, 0.5):
        name = await retire(admin, kind, mode="Execute")
        await until_ready(admin, name, "True", "Removed")
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
