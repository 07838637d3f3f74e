"""Composites of one tenant behind an admission webhook that hangs, beside those of another one."""

from collections.abc import Iterator

import pytest

from crdkeeper.controllers.composite import controller
from crdkeeper.core.conversion.nesting import dumps
from tests.cluster.composition.authoring import condition
from tests.cluster.composition.composing import (
    FINALIZER,
    Composing,
    config_map,
)
from tests.cluster.harness import each_of, eventually
from tests.cluster.harness.admission import WEBHOOKS, silent_port

COMPOSITES = controller._WORKERS + 8
"""More than there are workers."""
OBJECTS = 8
WEBHOOK_SECONDS = 10
LONGEST_REST = 180.0


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

        at_work: list[int] = []

        async def begun() -> int:
            found = (await author.get(composing.definition.objects))["items"]
            held = [each for each in found if FINALIZER in each["metadata"].get("finalizers", ())]
            # A pass ends when its requests have hung for long, and says so; then others are begun.
            at_work.append(sum(condition(each, "Synced")[1] != "Failed" for each in held))
            return len(held)

        async def under_way() -> bool:
            return await begun() >= 4

        await eventually(under_way)
        await author.put(quick, {**composing.definition.composite("quick"), "spec": {"engine": "MySQL"}})

        async def is_composed() -> bool:
            await begun()
            conditions = ((await author.get(quick)).get("status") or {}).get("conditions") or ()
            return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

        await eventually(is_composed)
        # They did not have all workers: of those that hang, only a few are at work at once.
        assert 0 < max(at_work) < controller._WORKERS
    finally:
        await author.delete(guard)
        await author.delete(quick)
        await each_of(names, composing.delete)
    await author.gone(quick)
    for each in names:
        await author.gone(composing.path(each), seconds=LONGEST_REST)
    await author.delete(f"/api/v1/namespaces/{other}")
