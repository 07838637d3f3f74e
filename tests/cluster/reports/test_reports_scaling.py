"""ScalingReady on a real API server, with the controller of budgets.

What the controller of autoscalers says is written by the tests: tests/node has the real one.
"""

import json
from collections.abc import Mapping
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS
from tests.cluster.harness.customkind import Version
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.reports.live.scene import change_versions, let_read
from tests.cluster.reports.reports import REPORTS, condition_of, report_with, reported

pytestmark = pytest.mark.timeout(900)

LISTED_SECONDS: Final = 300.0
"""The longest that the operator keeps a list: 50 times what it took, which is long if the machine stopped."""
TYPE = "ScalingReady"
ROLE: dict[str, Any] = yaml.safe_load(Path(MANIFESTS, "samples", "scaling-reader-role.yaml").read_text())
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
REPLICAS = {"type": "integer", "default": 1, "maximum": 5}
SCHEMA = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {**OPEN, "properties": {"replicas": REPLICAS}}, "status": OPEN},
    }
}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
SCALED = {"status": {}, "scale": SCALE}
COLUMN = {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}


def v1_and(*others: str) -> tuple[Version, ...]:
    return (Version("v1", storage=True), *(Version(each) for each in others))


async def permit(admin: Admin) -> None:
    """Lets the operator see autoscalers, by the sample of the documentation; waits until it may."""
    path = f"{CLUSTER_ROLES}/{ROLE['metadata']['name']}"
    await admin.apply(path, ROLE)
    admin.cleans_up(path)
    account = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    wanted = [Right("list", each["apiGroups"][0], each["resources"][0]) for each in ROLE["rules"]]
    async with Client(Connection(account)) as operator:

        async def known() -> bool:
            return not await missing_rights(operator, wanted)

        await eventually(known, otherwise=lambda: "the sample role is not in force")


async def autoscaler(
    admin: Admin, kind: CustomKind, name: str, target: str, *, version: str = "v1", **spec: Any
) -> None:
    """A HorizontalPodAutoscaler."""
    reference = {"apiVersion": f"{kind.group}/{version}", "kind": kind.kind, "name": target}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 9, **spec},
    }
    await admin.create(HPAS, body)
    admin.cleans_up(f"{HPAS}/{name}")


async def pod(admin: Admin, name: str, labels: Mapping[str, str], owner: Mapping[str, Any]) -> None:
    """A pod without a node, controlled by an object."""
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [{**reference, "controller": True}]},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "registry.example.com/none:1"}],
        },
    }
    await admin.create(PODS, body)
    admin.cleans_up(f"{PODS}/{name}")


async def condition_in(admin: Admin, path: str, type_: str, reason: str) -> None:
    """Waits for what the object's controller says."""
    seen: list[Any] = []

    async def look() -> bool:
        found = (await admin.get(path)).get("status") or {}
        seen[:] = found.get("conditions") or []
        return any((each["type"], each["reason"]) == (type_, reason) for each in seen)

    await eventually(look, otherwise=lambda: f"{path} has {seen}")


async def told(
    admin: Admin, kind: CustomKind, status: str, text: str = "", *, seconds: float = 150.0
) -> None:
    """Waits for a report. Changes the CRD again and again, so that the operator asks everything again.

    Autoscalers are listed once for all CRDs, so that the first answers may be of a list made before: the
    seconds are those after it.
    """
    columns = cycle(([COLUMN], []))
    patience = count(4.0, 4.0)

    async def look() -> bool:
        await change_versions(admin, kind, additionalPrinterColumns=next(columns))
        generation = (await admin.definition(kind))["metadata"]["generation"]

        async def settled() -> bool:
            body = await admin.find(f"{REPORTS}/{kind.name}")
            if body is None:
                return False
            found = DefinitionReport.model_validate(body)
            seen[:] = [found]
            if found.status.definition_generation != generation or not reported(found, TYPE):
                return False
            return reported(found, TYPE) == status and text in condition_of(found, TYPE).message

        try:
            # Longer each time: on a busy machine, no change must outrun the answer to the one before.
            return await eventually(settled, seconds=next(patience))
        except AssertionError:
            return False

    seen: list[DefinitionReport] = []
    await eventually(look, seconds=LISTED_SECONDS + seconds, otherwise=lambda: f"{status} is not in {seen}")
    assert reported(seen[0], "Ready") == "True/Healthy"


async def test_rights_that_are_missing(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await change_versions(admin, kind, subresources=SCALED, schema=SCHEMA)
    rule = 'resources: ["horizontalpodautoscalers"], verbs: ["list"]'
    await told(admin, kind, "Unknown/NotPermitted", rule)
    await permit(admin)
    await told(admin, kind, "True/NotUsed")

    await admin.create_objects(kind, 1)
    await autoscaler(admin, kind, group.partition(".")[0], "db-00000")
    rule = f'resources: ["{kind.plural}/scale"], verbs: ["get"]'
    await told(admin, kind, "Unknown/NotPermitted", rule)


async def test_autoscalers(admin: Admin, operator: Operator, group: str, shell: CommandLine) -> None:
    """Each fault in turn, as the autoscaler's controller finds it, too."""
    kind = CustomKind(group, versions=v1_and("v2"))
    name = group.partition(".")[0]
    hpa = f"{HPAS}/{name}"
    await permit(admin)
    await let_read(admin, group)
    await admin.apply_definition(kind)
    await change_versions(admin, kind, subresources={"status": {}}, schema=SCHEMA)
    await admin.create_objects(kind, 1)
    await autoscaler(admin, kind, name, "db-00000")
    said = f"HorizontalPodAutoscaler default/{name}: "
    await told(admin, kind, "False/ScaleMissing", f"{said}no served version has a scale subresource.")

    # At the version that it names, but not at the one that the API server prefers.
    versions = (await admin.definition(kind))["spec"]["versions"]
    next(each for each in versions if each["name"] == "v1")["subresources"] = SCALED
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": versions}})
    await told(admin, kind, "False/ScaleMissing", "prefers, v2, has no scale subresource (v1 has)")

    await change_versions(admin, kind, subresources=SCALED)
    await told(admin, kind, "False/SelectorMissing", said)

    async def status(**fields: Any) -> None:
        await admin.merge(f"{kind.path('db-00000')}/status", {"status": fields})

    await status(replicas=2, selector=f"app={name}")
    await told(admin, kind, "False/NoPodsSelected", "/scale counts 2 pods, but its selector selects none")
    await status(selector="app in (")
    await told(admin, kind, "False/SelectorInvalid", said)
    await status(selector=f"app={name}")
    await pod(admin, name, {"app": name}, await admin.get(kind.path("db-00000")))
    await told(admin, kind, "True/Working", "1 HorizontalPodAutoscaler can scale objects of the kind.")

    # Of an operator that was killed, the next one tells what was found meanwhile.
    operator.kill()
    refused = {
        "type": "AbleToScale",
        "status": "False",
        "reason": "FailedUpdateScale",
        "message": "\x1b[2J: 7 > 5",
    }
    await admin.merge(
        f"{hpa}/status", {"status": {"currentReplicas": 1, "desiredReplicas": 7, "conditions": [refused]}}
    )
    operator.start()
    report = await report_with(admin, kind.name, ScalingReady="False/ScaleRefused", Ready="True/Healthy")
    assert f"{said}\\x1b[2J: 7 > 5." in condition_of(report, TYPE).message
    shown = await shell.run("status", kind.name)
    assert f"{kind.name}: ScalingReady is False, ScaleRefused: {said}" in shown.stderr
    (record,) = json.loads((await shell.run("status", kind.name, "-o", "json")).stdout)["items"]
    assert [(each["type"], each["reason"]) for each in record["findings"]] == [(TYPE, "ScaleRefused")]
    await admin.delete(kind.path("db-00000"))
    await told(admin, kind, "False/TargetMissing", said)


async def test_budgets(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group, versions=v1_and("v2"))
    name = group.partition(".")[0]
    await permit(admin)
    await let_read(admin, group)
    await admin.apply_definition(kind)
    await change_versions(admin, kind, subresources={"status": {}}, schema=SCHEMA)
    await admin.create_objects(kind, 1)
    await pod(admin, name, {"app": name}, await admin.get(kind.path("db-00000", version="v1")))
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [name]}]}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": selector},
    }
    await admin.create(PDBS, body)
    admin.cleans_up(f"{PDBS}/{name}")
    budget = f"{PDBS}/{name}"
    said = f"PodDisruptionBudget default/{name}: "
    await condition_in(admin, budget, "DisruptionAllowed", "SyncFailed")
    await told(admin, kind, "False/BudgetFails", f"{said}no served version has a scale subresource.")

    # The version of the pod's ownerReference goes, and with it what the budget can count.
    versions = (await admin.definition(kind))["spec"]["versions"]
    for each in versions:
        each.update(served=each["name"] == "v2", subresources=SCALED)
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": versions}})
    await told(admin, kind, "False/BudgetFails", "ownerReferences of its pods name v1, which is not served")
