"""What `crdkeeper rehearse` needs, and what it says when that is missing."""

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.rehearsal.shadow import GROUP
from crdkeeper.operations.rehearsal.run import Conversions, NotPermitted, rehearse
from tests.cluster.harness import eventually
from tests.cluster.rehearsal.stage import Json, Stage, crd


def rules_of(group: str) -> list[Json]:
    """The rights as docs/rehearsal.md has them."""
    return [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["get", "list", "create", "delete", "update"],
        },
        {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create"]},
        {"apiGroups": [group], "resources": ["widgets"], "verbs": ["get", "list"]},
    ]


@asynccontextmanager
async def account(stage: Stage) -> AsyncIterator[tuple[Path, Callable[[Sequence[Json]], Any]]]:
    """A ServiceAccount's kubeconfig, and a way to give it rights."""
    name = f"rehearser-{uuid.uuid4().hex[:8]}"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await stage.client.request("POST", accounts, {"metadata": {"name": name}})
    await stage.client.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": []})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await stage.client.request("POST", f"{rbac}/clusterrolebindings", binding)

    async def grant(rules: Sequence[Json]) -> None:
        role = await stage.client.request("GET", f"{rbac}/clusterroles/{name}")
        await stage.client.request("PUT", f"{rbac}/clusterroles/{name}", {**role, "rules": list(rules)})

    try:
        yield stage.plane.service_account_kubeconfig("default", name), grant
    finally:
        for path in (f"{rbac}/clusterrolebindings", f"{rbac}/clusterroles", accounts):
            await stage.client.send("DELETE", f"{path}/{name}")


async def test_missing_rights_are_told_before_the_work_with_the_rules_to_add(stage: Stage) -> None:
    new = crd(stage.group)
    async with account(stage) as (kubeconfig, grant), Client(Connection(kubeconfig)) as client:

        async def said() -> str:
            try:
                await rehearse(client, new, Conversions())
            except (NotPermitted, ApiError) as error:
                return str(error)
            return "nothing"

        async def rules_to_add() -> str:
            return (await said()).partition("Add these rules to a ClusterRole of this account:\n")[2]

        async def works() -> bool:
            return await said() == "nothing"

        added = await eventually(rules_to_add)
        assert await stage.shadows() == []
        await grant(yaml.safe_load(added))
        await eventually(works)
        await grant(rules_of(stage.group))
        await eventually(works)
