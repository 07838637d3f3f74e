"""Which FlowSchemas the API server applies: requests for a Lease must not wait, migrations may have to."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from yarl import URL

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.installation import MANIFESTS, NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
OURS = "/apis/crdkeeper.dev/v1alpha1/storagemigrations"
SCHEMA = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
UID = "X-Kubernetes-PF-FlowSchema-UID"
MIGRATIONS = "crdkeeper-migrations"
JOB = "migrate-certificates"
CRD = f"{CRDS}/no.example.com"
PATCHED = (f"{CRD}/status", "/apis/apps/v1/namespaces/default/deployments/no")
MENDED = (CRD, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/no")
"""With a CA bundle, for one: what hangs may wait for that."""


async def schema_of(account: Path, path: str, method: str = "GET") -> str:
    """The uid of the FlowSchema of a request."""
    async with Client(Connection(account)) as client:
        connection = client.connection
        headers = {"Authorization": await connection.authorization() or "", "Content-Type": MERGE_PATCH}
        address = URL(connection.host + path, encoded=True)
        body = b"{}" if method == "PATCH" else None
        async with (
            connection.session() as session,
            session.request(method, address, headers=headers, data=body) as response,
        ):
            return response.headers[UID]


async def uid_of(cluster: Cluster, schema: str) -> str:
    async with Client(Connection(cluster.kubeconfig)) as admin:
        return str((await admin.request("GET", f"{SCHEMA}/{schema}"))["metadata"]["uid"])


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
    assert await schema_of(kubeconfig, OURS) != uid


@pytest.fixture
def share(installed: Cluster) -> Iterator[Cluster]:
    """The cluster, whose API server has a priority level for migrations."""
    part = f"--kustomize={MANIFESTS / 'priority'}"
    installed.kubectl("apply", "--server-side", part)
    yield installed
    installed.kubectl("delete", "--ignore-not-found", part)


async def test_migrations_have_a_share_of_their_own(share: Cluster) -> None:
    operator = share.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    share.kubectl("create", "--filename=-", input=account_of_the_sample_job())
    try:
        job = share.service_account_kubeconfig(NAMESPACE, JOB)
        migrations, records = (
            await uid_of(share, MIGRATIONS),
            await uid_of(share, "crdkeeper-operator-records"),
        )

        lease = await uid_of(share, f"{SERVICE_ACCOUNT}-lease")
        wanted = {
            **{(account, path, "PATCH"): migrations for account in (operator, job) for path in PATCHED},
            **{(account, "/apis/apps/v1/deployments", "GET"): migrations for account in (operator, job)},
            (operator, CRDS, "GET"): migrations,
            (job, CRD, "PATCH"): migrations,
            **{(operator, path, "PATCH"): records for path in MENDED},
            (operator, OURS, "GET"): records,
            **{(account, f"{OURS}/no/status", "PATCH"): records for account in (operator, job)},
            (operator, f"{LEASES}/{SERVICE_ACCOUNT}", "GET"): lease,
        }
        found: dict[tuple[Path, str, str], str] = {}

        async def applied() -> bool:
            # The API server takes the FlowSchemas over one by one.
            found.update({each: await schema_of(*each) for each in wanted})
            return found == wanted

        await eventually(
            applied,
            otherwise=lambda: (
                f"other FlowSchemas: {[each for each in wanted if found[each] != wanted[each]]}"
            ),
        )
        others = await schema_of(share.service_account_kubeconfig("default", "default"), PATCHED[0], "PATCH")
        assert others not in (migrations, records, lease)
    finally:
        share.kubectl("delete", f"--namespace={NAMESPACE}", "serviceaccount", JOB)


def account_of_the_sample_job() -> str:
    documents = (MANIFESTS / "samples/job.yaml").read_text(encoding="utf-8").split("\n---\n")
    (found,) = (each for each in documents if "\nkind: ServiceAccount\n" in each)
    assert f"  name: {JOB}\n" in found
    return found


async def test_each_write_of_a_migration_takes_from_that_share(
    share: Cluster, admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 200)
    operator_account = share.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    schema = await uid_of(share, MIGRATIONS)

    async def applies() -> bool:
        return await schema_of(operator_account, CRDS) == schema

    await eventually(applies, otherwise=lambda: "the API server does not look at the FlowSchema")
    before = await dispatched(admin)

    await admin.migrate(group, kind)

    assert await dispatched(admin) - before > 200
    assert admin.stored(kind) == {"v2": 200}
    seats = {
        level: await metric(admin, "nominal_limit_seats", level) for level in (MIGRATIONS, "workload-low")
    }
    assert 0 < seats[MIGRATIONS] < seats["workload-low"] / 4
    # It borrows nothing from others, whatever waits.
    assert await metric(admin, "upper_limit_seats", MIGRATIONS) == seats[MIGRATIONS]


async def dispatched(admin: Admin) -> float:
    """How many requests the API server has executed within the level of migrations."""
    return await metric(admin, "dispatched_requests_total", MIGRATIONS)


async def metric(admin: Admin, name: str, level: str) -> float:
    """The sum of a metric of a priority level."""
    text = (await admin.client.send("GET", "/metrics")).content.decode()
    pattern = rf'^apiserver_flowcontrol_{name}\{{[^}}]*priority_level="{level}"[^}}]*\}} (\S+)$'
    return sum(map(float, re.findall(pattern, text, re.MULTILINE)))
