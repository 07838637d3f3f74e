"""The operator's token becomes invalid: 401 for all its requests."""

from collections.abc import Callable, Iterator

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Admin,
    CustomKind,
    Operator,
    eventually,
    install,
    outdated,
)
from tests.controlplane.plane import ControlPlane
from tests.faults.replicas import HASTY, PATIENT, until_ended
from tests.faults.scene import assert_all_stored_at, rewritten

OBJECTS = 100
LIMITS = {"maxObjectsPerSecond": 1}
"""Slow enough to be in mid-run when the token is refused, which an API server caches for ten seconds."""
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{SERVICE_ACCOUNT}"


@pytest.fixture
def disowned(breakable: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane on which the operator's account may be deleted."""
    yield breakable
    install(breakable)


async def test_the_account_is_deleted(
    disowned: ControlPlane, breakable_admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    admin = breakable_admin
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(disowned, flags=HASTY)
    await admin.create_migration(group, kind, limits=LIMITS)
    await admin.wait_until_stored(kind, "v2", 3)

    await admin.delete(ACCOUNT)

    assert await until_ended(operator) == 1
    assert "The Lease could not be written: 401 Unauthorized" in operator.log_since()
    assert "Lost leadership" in operator.log_since()

    install(disowned)
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})
    start_operator(disowned)
    await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)


async def test_the_token_is_rotated(
    disowned: ControlPlane, breakable_admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    admin = breakable_admin
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    # Until there is a new token, which takes a busy machine a while, the Lease cannot be renewed.
    operator = start_operator(disowned, flags=PATIENT)
    pid = operator.pid
    await admin.create_migration(group, kind, limits=LIMITS)
    await admin.wait_until_stored(kind, "v2", 3)

    kubeconfig = disowned.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(kubeconfig)) as client:
        await admin.delete(ACCOUNT)
        install(disowned)
        # To the operator's own kubeconfig: it is read again when the old token is refused.
        assert disowned.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT) == kubeconfig

        async def refused() -> bool:
            return (await client.send("GET", "/api")).code == 401

        await eventually(refused, otherwise=lambda: "the old token is still good")
    assert rewritten(admin, kind) < OBJECTS
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})
    await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert operator.leading()
    assert operator.pid == pid
