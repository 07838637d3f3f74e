"""Others change the operator's Lease: a deleted one is taken again, a lost one ends the operator."""

from collections.abc import Callable

from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.controlplane.cluster import Cluster
from tests.faults.replicas import LEASE, until_ended
from tests.faults.scene import assert_all_stored_at

OBJECTS = 60


async def test_deleted_by_somebody(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(installed)
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 15})
    await admin.wait_until_stored(kind, "v2", 20)
    pid = operator.pid

    await admin.delete(LEASE)

    async def taken_again() -> bool:
        lease = await admin.find(LEASE)
        return lease is not None and lease["spec"]["holderIdentity"] == operator.identity

    await eventually(taken_again, otherwise=lambda: "the Lease was not taken again")
    await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert operator.leading()
    assert operator.pid == pid


async def test_taken_by_somebody(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(installed)
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 15})
    await admin.wait_until_stored(kind, "v2", 20)

    await admin.merge(LEASE, {"spec": {"holderIdentity": "intruder", "leaseDurationSeconds": 1}})

    assert await until_ended(operator) == 1
    assert "intruder holds the Lease instead of operator" in operator.log_since()
    operator.start()  # as a kubelet does
    await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)
