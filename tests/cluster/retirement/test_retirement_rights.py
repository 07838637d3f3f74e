"""What the operator's account may change for a retirement, and who may ask for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import JSON_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.retirement.scene import NEW, OLD, moved, permit
from tests.controlplane.cluster import Cluster

OTHERWISE = "deprecates versions, stops serving them, and removes those neither served nor stored"
SCHEMA = "schema/openAPIV3Schema/properties/spec/properties"
ATTACKS: dict[str, list[dict[str, Any]]] = {
    "a schema that prunes": [{"op": "remove", "path": f"{{old}}/{SCHEMA}/note"}],
    "a schema that prunes, of the version that stays": [{"op": "remove", "path": f"{{new}}/{SCHEMA}/note"}],
    "another storage version": [
        {"op": "replace", "path": "{old}/storage", "value": True},
        {"op": "replace", "path": "{new}/storage", "value": False},
    ],
    "a version served again": [{"op": "replace", "path": "{unserved}/served", "value": True}],
    "a version no longer deprecated": [{"op": "replace", "path": "{unserved}/deprecated", "value": False}],
    "columns": [{"op": "replace", "path": "{new}/additionalPrinterColumns", "value": []}],
    "a subresource removed": [{"op": "remove", "path": "{new}/subresources"}],
    "a new version": [
        {
            "op": "add",
            "path": "/spec/versions/-",
            "value": {
                "name": "v9",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            },
        }
    ],
}


@pytest.fixture
async def account(installed: Cluster) -> AsyncIterator[Client]:
    """A client with the operator's account."""
    kubeconfig = installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(kubeconfig)) as client:
        yield client


async def said(client: Client, kind: CustomKind, operations: list[dict[str, Any]]) -> str:
    """The answer to a JSON patch of the CRD, as a dry run; empty if it is accepted."""
    answer = await client.send(
        "PATCH",
        f"{CRDS}/{kind.name}?dryRun=All",
        content=json.dumps(operations).encode(),
        content_type=JSON_PATCH,
    )
    return "" if answer.code == 200 else str(answer.json()["message"])


async def test_it_changes_nothing_else_of_versions(admin: Admin, account: Client, group: str) -> None:
    kind = await moved(admin, group, 0)
    third = {**(await admin.definition(kind))["spec"]["versions"][0], "name": "v1beta1"}
    third |= {"served": False, "storage": False, "deprecated": True}
    path = f"{CRDS}/{kind.name}"
    add = [{"op": "add", "path": "/spec/versions/-", "value": third}]
    await admin.client.request("PATCH", path, add, content_type=JSON_PATCH)
    # As if it had been stored once.
    stored = [{"op": "add", "path": "/status/storedVersions/-", "value": "v1beta1"}]
    await admin.client.request("PATCH", f"{path}/status", stored, content_type=JSON_PATCH)
    names = [each["name"] for each in (await admin.definition(kind))["spec"]["versions"]]
    places = {"old": OLD, "new": NEW, "unserved": "v1beta1"}
    places = {key: f"/spec/versions/{names.index(name)}" for key, name in places.items()}

    stop = [{"op": "replace", "path": f"{places['old']}/served", "value": False}]
    assert 'cannot patch resource "customresourcedefinitions"' in await said(account, kind, stop)
    await permit(admin, kind)

    async def allowed() -> bool:
        return not await said(account, kind, stop)

    # An admission policy may still know the former rights.
    await eventually(allowed, otherwise=lambda: "what a retirement does is refused")
    deprecate = [{"op": "add", "path": f"{places['old']}/deprecated", "value": True}]
    assert await said(account, kind, deprecate) == ""
    for what, operations in ATTACKS.items():
        attack = [{**each, "path": each["path"].format(**places)} for each in operations]
        assert OTHERWISE in await said(account, kind, attack), what

    stored_version = [{"op": "remove", "path": places["unserved"]}]
    assert "ensures no data remains persisted in v1beta1" in await said(account, kind, stored_version)
    trim = [{"op": "replace", "path": "/status/storedVersions", "value": [NEW]}]
    await admin.client.request("PATCH", f"{path}/status", trim, content_type=JSON_PATCH)
    assert OTHERWISE in await said(account, kind, [{"op": "remove", "path": places["old"]}])
    assert await said(account, kind, stored_version) == ""


@pytest.fixture
def author(installed: Cluster) -> Any:
    """A kubeconfig of an account that may write VersionRetirements and no CRD."""
    installed.kubectl("create", "serviceaccount", "retirement-author")
    role = ("--clusterrole=crdkeeper-retirement-admin", "--serviceaccount=default:retirement-author")
    installed.kubectl("create", "clusterrolebinding", "retirement-author", *role)
    yield installed.service_account_kubeconfig("default", "retirement-author")
    installed.kubectl("delete", "clusterrolebinding/retirement-author", "serviceaccount/retirement-author")


def test_only_who_may_change_the_crd_has_it_changed(installed: Cluster, author: Any) -> None:
    def answer(mode: str) -> str:
        body = {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "VersionRetirement",
            "metadata": {"name": "by-an-author"},
            "spec": {
                "resource": {"group": "retirement-authors.example.com", "resource": "dbs"},
                "version": "v1",
                "mode": mode,
            },
        }
        create = ("create", "--dry-run=server", "--filename=-")
        return installed.kubectl(*create, input=json.dumps(body), kubeconfig=author, check=False)

    async def known() -> bool:
        return "created" in answer("Guide")

    asyncio.run(eventually(known, otherwise=lambda: answer("Guide")))
    assert "whoever writes it needs permission to patch that CRD" in answer("Execute")
