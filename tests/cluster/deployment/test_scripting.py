"""The client for scripts on a real API server, with an account that has only the permissions of users."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pykube.http import HTTPClient

from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.scripting import ConditionFailed, Deleted, StorageMigration, connect, report_of
from crdkeeper.scripting.kinds import MigrationOptions
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.harness.admission import deny_updates

SECONDS = 120.0
NAMESPACE = "default"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
AT_ONCE: MigrationOptions = {
    "settle_seconds": 0,  # with one API server and no other writer there is nothing to settle
    "api_server_leases": "Ignore",
    "limits": {"max_concurrency": 4},
    "retry": {"limit": 0},
}


@pytest.fixture
async def api(admin: Admin, group: str) -> AsyncIterator[HTTPClient]:
    """A client of a ServiceAccount with the ClusterRoles that the manifests offer to users."""
    # Not of the name of another test's: the API server may know that one a little longer than it exists, and
    # then refuses the token of its successor.
    account = f"script-{group}"
    await admin.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": account}})
    for role in ("crdkeeper-view", "crdkeeper-edit"):
        await admin.create(
            BINDINGS,
            {
                "metadata": {"name": f"{account}-{role}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
            },
        )
    kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, account)
    rights = [Right(verb, GROUP, StorageMigration.endpoint) for verb in ("list", "watch", "create")]
    async with Client(Connection(kubeconfig)) as script:

        async def permitted() -> bool:
            return not await missing_rights(script, rights)

        await eventually(permitted)
    client = connect(kubeconfig)
    yield client
    client.session.close()


async def test_a_migration_is_created_and_waited_for(
    admin: Admin, operator: Operator, group: str, api: HTTPClient
) -> None:
    kind = await outdated(admin, CustomKind(group), 30)
    migration = StorageMigration.for_(kind.name, api=api, **AT_ONCE)
    admin.cleans_up(f"{MIGRATIONS}/{kind.name}")

    def script() -> None:
        migration.create().wait("Ready", timeout=SECONDS)

    await asyncio.to_thread(script)

    assert admin.stored(kind) == {"v2": 30}
    assert migration.ready
    assert (migration.status.progress.rewritten, migration.status.progress.percent) == (30, 100)
    assert migration.spec.limits.max_concurrency == 4
    trimmed = migration.condition("Trimmed")
    assert trimmed is not None
    assert trimmed.reason == "Trimmed"


async def test_a_migration_that_ends_without_success_says_why(
    admin: Admin, operator: Operator, group: str, api: HTTPClient
) -> None:
    kind = await outdated(admin, CustomKind(group), 3)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00001'", example="db-00001")
    migration = StorageMigration.for_(kind.name, api=api, **AT_ONCE)
    admin.cleans_up(f"{MIGRATIONS}/{kind.name}")

    def script() -> None:
        migration.create().wait("Succeeded", timeout=SECONDS)

    with pytest.raises(ConditionFailed) as raised:
        await asyncio.to_thread(script)

    assert raised.value.reason == "RetriesExhausted"
    assert [each.name for each in migration.status.quarantine.objects] == ["db-00001"]


async def test_a_migration_that_is_deleted_is_not_waited_for(
    admin: Admin, operator: Operator, group: str, api: HTTPClient
) -> None:
    # It waits for its CRD, which is never created.
    migration = StorageMigration.for_(f"things.{group}", api=api)
    waiting = asyncio.create_task(asyncio.to_thread(migration.create().wait, timeout=SECONDS))
    await admin.wait_for_condition(migration.name, "Resolved", "False", "ResourceNotFound")
    await admin.delete_migration(migration.name)
    with pytest.raises(Deleted):
        await waiting


async def test_a_report_follows_its_crd(
    admin: Admin, operator: Operator, group: str, api: HTTPClient
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    first = await asyncio.to_thread(report_of, kind.name, api=api, timeout=SECONDS)
    assert first.status.stored_versions == ["v1"]
    await admin.apply_definition(kind.storing("v2"))
    generation = (await admin.definition(kind))["metadata"]["generation"]
    second = await asyncio.to_thread(report_of, kind.name, api=api, generation=generation, timeout=SECONDS)
    assert (second.status.storage_version, second.status.stored_versions) == ("v2", ["v1", "v2"])
    outdated_storage = second.condition("StorageCurrent")
    assert outdated_storage is not None
    assert outdated_storage.status == "False"
