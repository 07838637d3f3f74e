"""Requests at a version that only one of two API servers has counted, behind a load balancer."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.operations.retirement.evidence import gather_evidence
from tests.cluster.builtins.balancing import balanced
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, Operator, eventually
from tests.cluster.harness.guarded import guarded
from tests.cluster.retirement.scene import (
    OLD,
    assert_retired,
    is_read_again,
    moved,
    permit,
    retire,
    until,
    until_ready,
    versions,
)
from tests.controlplane.fixtures import LOGS
from tests.controlplane.plane import ControlPlane

OTHER = 1
"""The index of the API server whose requests the first one does not count."""
BOTH = "Each of the 2 API servers counts for itself, since it started."
ONE = "1 of 2 API servers has answered. Requests at the others are not known."
LEASES = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    "?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver"
)


@pytest.fixture
async def admins(request: pytest.FixtureRequest, pair: ControlPlane) -> AsyncIterator[tuple[Admin, Admin]]:
    """The admin at each of the two, once both have identity Leases."""
    request.node.stash.setdefault(LOGS, []).append(pair.logs)
    async with guarded(pair) as admin, Admin(pair, server=OTHER) as other:

        async def known() -> bool:
            return len((await admin.get(LEASES))["items"]) == len(pair.api_servers)

        await eventually(known, otherwise=lambda: "not each API server has a Lease")
        yield admin, other


async def test_each_api_server_behind_a_balancer_is_asked(
    admins: tuple[Admin, Admin], pair: ControlPlane, tmp_path: Path, group: str
) -> None:
    admin, other = admins
    kind = await moved(admin, group, 1)
    await permit(admin, kind, metrics=True)
    crd = await admin.definition(kind)
    with balanced(pair, tmp_path) as kubeconfig:
        async with Client(Connection(kubeconfig)) as client:
            before = await gather_evidence(client, crd, OLD)
            for _ in range(3):
                await other.get(kind.path(version=OLD))
            after = await gather_evidence(client, crd, OLD)
    assert BOTH in after.unknown
    known = {(each.server, each.since): sum(each.counts.values()) for each in before.readers}
    grown = {
        each.server: sum(each.counts.values()) - known[each.server, each.since] for each in after.readers
    }
    addresses = [each.url.removeprefix("https://") for each in pair.api_servers]
    # Right after a change of the CRD, an API server answers with 429, and counts the next try, too.
    assert grown.keys() == set(addresses)
    assert grown[addresses[0]] == 0
    assert grown[addresses[OTHER]] >= 3

    # Without a balancer, only one of them can be asked.
    account = pair.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(account)) as client:
        alone = await gather_evidence(client, crd, OLD)
    assert [each.server for each in alone.readers] == addresses[:1]
    assert ONE in " ".join(alone.unknown)


@pytest.mark.skipif(
    not os.environ.get("CRDKEEPER_RETIREMENT_FAULTS"), reason="waits for the end of quiet periods"
)
async def test_a_reader_at_the_other_api_server_keeps_a_version(
    admins: tuple[Admin, Admin],
    pair: ControlPlane,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
    group: str,
) -> None:
    admin, other = admins
    addresses = {each.url.removeprefix("https://") for each in pair.api_servers}
    kind = await moved(admin, group, 3)
    await permit(admin, kind, metrics=True)

    async def read() -> None:
        while True:
            await other.client.send("GET", kind.path("db-00000", version=OLD))
            await asyncio.sleep(0.2)

    def read_at_both(each: VersionRetirement) -> bool:
        asked = {reader.server for reader in each.status.evidence.readers}
        return is_read_again(each) and asked == addresses

    with balanced(pair, tmp_path) as kubeconfig:
        start_operator(admin.cluster, flags={"kubeconfig": str(kubeconfig)})
        reading = asyncio.create_task(read())
        try:
            name = await retire(admin, kind, mode="Execute", quietPeriod="5s")
            await until(admin, name, read_at_both, "read after the end of a quiet period", seconds=120)
            assert not reading.done()
            assert (await versions(admin, kind))[OLD]["served"] is True
        finally:
            reading.cancel()
        await until_ready(admin, name, "True", "Removed", seconds=120)
        await assert_retired(admin, kind, 3)
