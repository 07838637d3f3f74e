"""Composites of one tenant behind an admission webhook that hangs, beside those of another one."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from crdkeeper.core.conversion.nesting import dumps
from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import (
    FINALIZER,
    Composing,
    all_of,
    config_map,
    rights_on,
)
from tests.cluster.harness import each_of, eventually
from tests.cluster.harness.admission import WEBHOOKS, silent_port

COMPOSITES = 24
"""More than there are workers."""
OBJECTS = 8
WEBHOOK_SECONDS = 10
LONGEST_REST = 180.0


@pytest.fixture
async def composing(author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps."""
    async with rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(author, group)
        await composing.define()
        yield composing
        await composing.clean_up()


@pytest.fixture
def port() -> Iterator[int]:
    """Where nobody answers."""
    with silent_port() as port:
        yield port


async def test_a_tenant_whose_webhook_hangs_does_not_hold_up_another(
    composing: Composing, group: str, port: int
) -> None:
    author, guard, other = composing.author, f"{WEBHOOKS}/guard.{group}", group.replace(".", "-")
    await composing.compose(*(config_map(f"part{each}") for each in range(OBJECTS)))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    await author.put(f"/api/v1/namespaces/{other}", namespace)
    mine = "object.metadata.namespace == 'default' && object.metadata.name.startsWith('slow')"
    rule = {"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}
    hook = {
        "name": f"guard.{group}",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/validate"},
        "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
        "matchConditions": [{"name": "slow", "expression": mine}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": WEBHOOK_SECONDS,
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"guard.{group}"},
        "webhooks": [hook],
    }
    await author.put(guard, configuration)
    names = [f"slow{each:02}" for each in range(COMPOSITES)]
    quick = f"/apis/{group}/v1/namespaces/{other}/things/quick"
    try:

        async def in_force() -> bool:
            value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}}
            path = "/api/v1/namespaces/default/configmaps?dryRun=All"
            answer = await author.client.send("POST", path, content=dumps(value))
            return answer.code >= 500

        await eventually(in_force)
        await each_of(names, composing.create)

        async def under_way() -> bool:
            found = [await author.get(composing.path(each)) for each in names]
            return sum(FINALIZER in each["metadata"].get("finalizers", ()) for each in found) >= 4

        await eventually(under_way)
        await asyncio.sleep(1.0)
        await author.put(quick, {**composing.definition.composite("quick"), "spec": {"engine": "MySQL"}})

        async def is_composed() -> bool:
            conditions = ((await author.get(quick)).get("status") or {}).get("conditions") or ()
            return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

        await eventually(is_composed, seconds=12.0)
    finally:
        await author.delete(guard)
        await author.delete(quick)
        await each_of(names, composing.delete)
    await author.gone(quick)
    for each in names:
        await author.gone(composing.path(each), seconds=LONGEST_REST)
    await author.delete(f"/api/v1/namespaces/{other}")
