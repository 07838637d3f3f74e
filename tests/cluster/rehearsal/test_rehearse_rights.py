"""The permissions that `crdkeeper rehearse` needs, and its output without them."""

import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cluster.resources.access import missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.rehearsal.shadow import GROUP
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import Conversions, rehearse
from crdkeeper.operations.rights import TO_ADD, NotPermitted
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import eventually
from tests.cluster.harness.accounts import rights_of
from tests.cluster.rehearsal.stage import MAIL, NUMBER, Json, Stage, crd, undecided


def rules_of(group: str) -> list[Json]:
    """The permissions in docs/rehearsal.md."""
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
    """A ServiceAccount's kubeconfig, and a function that grants it permissions."""
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

        async def said(use: ShadowUse) -> str:
            try:
                await rehearse(client, new, Conversions(), use=use)
            except (NotPermitted, ApiError) as error:
                return str(error)
            return "nothing"

        async def rules_to_add(use: ShadowUse) -> str:
            return (await said(use)).partition(f"{TO_ADD}\n")[2]

        async def works(use: ShadowUse) -> bool:
            return await said(use) == "nothing"

        rights = rights_of(rules_of(stage.group))

        async def revoked() -> bool:
            return await missing_rights(client, rights) == rights

        for use in ShadowUse:
            await grant([])
            # Else a rehearsal may still be granted some of them, and tell only the others.
            await eventually(revoked)
            added = await eventually(partial(rules_to_add, use))
            assert await stage.shadows() == []
            assert (GROUP in added) == (use is ShadowUse.ALWAYS)
            await grant(yaml.safe_load(added))
            await eventually(partial(works, use))
        await grant(rules_of(stage.group))
        await eventually(partial(works, ShadowUse.ALWAYS))


async def test_who_may_make_no_shadow_is_told_which_objects_are_left_open(
    stage: Stage, shells: Callable[[Path], CommandLine]
) -> None:
    await stage.scene.create(crd(stage.group), [undecided(stage.group)])
    async with account(stage) as (kubeconfig, grant):
        await grant(
            [
                {**rules_of(stage.group)[0], "verbs": ["get", "update"]},
                rules_of(stage.group)[2],
            ]
        )
        shell = shells(kubeconfig)

        async def done() -> Any:
            found = await shell.run(
                "rehearse", "-f", stage.file("new.yaml", crd(stage.group, MAIL)), "-o", "json"
            )
            return found if found.stdout else None

        found = await eventually(done)
        (report,) = json.loads(found.stdout)["items"]
        assert (report["objects"], report["objectsByServer"]) == (NUMBER + 1, 0)
        assert report["affected"] == {"Refused": NUMBER, "Indeterminate": 1}
        (doubt,) = report["doubts"]
        assert "the API server was not asked: not permitted: create customresourcedefinitions" in doubt
