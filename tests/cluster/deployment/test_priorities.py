"""Which FlowSchema the API server applies to requests for a Lease: those that wait too long lose it."""

from pathlib import Path

import pytest
from yarl import URL

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import eventually
from tests.cluster.harness.installation import MANIFESTS, NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SCHEMA = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
UID = "X-Kubernetes-PF-FlowSchema-UID"


async def schema_of(account: Path, path: str) -> str:
    """The uid of the FlowSchema of a GET."""
    async with Client(Connection(account)) as client:
        connection = client.connection
        headers = {"Authorization": await connection.authorization() or ""}
        address = URL(connection.host + path, encoded=True)
        async with connection.session() as session, session.get(address, headers=headers) as response:
            return response.headers[UID]


@pytest.mark.parametrize(
    ("part", "account"), [("operator", SERVICE_ACCOUNT), ("composer", "crdkeeper-composer")]
)
async def test_a_lease_is_renewed_before_other_requests(installed: Cluster, part: str, account: str) -> None:
    if part == "composer":
        installed.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS / part}")
    kubeconfig = installed.service_account_kubeconfig(NAMESPACE, account)
    async with Client(Connection(installed.kubeconfig)) as admin:
        own = await admin.request("GET", f"{SCHEMA}/{account}-lease")
    uid = str(own["metadata"]["uid"])
    assert own["spec"]["priorityLevelConfiguration"]["name"] == "leader-election"

    async def applies() -> bool:
        return await schema_of(kubeconfig, f"{LEASES}/{account}") == uid

    await eventually(applies)
    assert await schema_of(kubeconfig, "/apis/crdkeeper.dev/v1alpha1/storagemigrations") != uid
