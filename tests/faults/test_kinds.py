"""The operator without its kinds: it reports what it waits for, and starts when they exist."""

from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from tests.cluster.harness import Admin, CustomKind, Operator, eventually, install, outdated
from tests.cluster.harness.admin import CRDS
from tests.controlplane.plane import ControlPlane
from tests.faults.replicas import LEASE, until_ended, until_leading
from tests.faults.scene import assert_all_stored_at

OBJECTS = 60
MIGRATIONS = "storagemigrations.crdkeeper.dev"
WAITING = (HTTPStatus.SERVICE_UNAVAILABLE, "waiting for the kinds of crdkeeper.dev to be installed")


@pytest.fixture
def stripped(breakable: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane from which the kinds may be removed."""
    yield breakable
    install(breakable)


async def test_kinds_come_and_go(
    stripped: ControlPlane, breakable_admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    admin = breakable_admin
    kind = await outdated(admin, CustomKind(group), OBJECTS)

    await uninstall(admin)
    operator = start_operator(stripped, wait=False)
    await until_waiting(operator)
    assert operator.probe("/healthz")[0] == HTTPStatus.OK

    install(stripped)
    await until_leading(operator)
    assert "The kinds of crdkeeper.dev are not installed: apply crds/." in operator.log_since()
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 15})
    await admin.wait_until_stored(kind, "v2", 20)

    # Removed while it runs, and the migration with them: it ends, and a kubelet restarts it.
    await uninstall(admin)
    assert await until_ended(operator) == 1
    assert "The watches ended, exiting for a fresh start: " in operator.log_since()
    assert (await admin.get(LEASE))["spec"]["holderIdentity"] == ""
    operator.start(wait=False)
    await until_waiting(operator)

    install(stripped)
    await until_leading(operator)
    await admin.migrate(group, kind)
    await assert_all_stored_at(admin, kind, OBJECTS)


async def uninstall(admin: Admin) -> None:
    """Deletes the CRD of StorageMigrations, and all of them with it."""
    path = f"{CRDS}/{MIGRATIONS}"
    await admin.delete(path)

    async def gone() -> bool:
        return await admin.find(path) is None

    await eventually(gone, otherwise=lambda: f"{MIGRATIONS} is still there")


async def until_waiting(operator: Operator) -> None:
    """Returns once it leads, and reports that it cannot start."""

    async def waits() -> bool:
        return operator.probe("/readyz") == WAITING

    await eventually(waits, otherwise=lambda: f"{operator.probe('/readyz')}")
