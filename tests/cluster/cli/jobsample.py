"""The sample Job, adapted to another kind: its account with exactly its permissions, and its command."""

from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, Admin, CustomKind, eventually

SAMPLE = Path(__file__).parents[3] / "manifests/samples/job.yaml"
SHARDED = SAMPLE.with_name("sharded-job.yaml")
_OTHERS = "storagemigration.k8s.io"
_COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}


def documents(kind: CustomKind, sample: Path = SAMPLE) -> list[dict[str, Any]]:
    """The sample with that kind in place of cert-manager's certificates, with its own names."""
    text = sample.read_text(encoding="utf-8")
    text = text.replace("migrate-certificates", f"migrate-{kind.group.partition('.')[0]}")
    text = text.replace("certificates", kind.plural).replace("cert-manager.io", kind.group)
    return list(yaml.safe_load_all(text))


def arguments(kind: CustomKind) -> list[str]:
    """The command of the Job, without `crdkeeper`."""
    (job,) = (each for each in documents(kind) if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


async def account(
    admin: Admin,
    kind: CustomKind,
    *,
    blind: bool = False,
    sample: Path = SAMPLE,
) -> Path:
    """Applies everything but the Job; returns the account's kubeconfig.

    With `blind`, it may not see StorageVersionMigrations.
    """
    name = ""
    for each in documents(kind, sample):
        if each["kind"] == "Job":
            continue
        if blind and "rules" in each:
            each["rules"] = [rule for rule in each["rules"] if _OTHERS not in rule["apiGroups"]]
        collection = _COLLECTIONS[each["kind"]].format(namespace=each["metadata"].get("namespace"))
        await admin.create(collection, each)
        name = each["metadata"]["name"] if each["kind"] == "ServiceAccount" else name
    kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, name)
    await until_granted(kubeconfig, kind)
    return kubeconfig


async def until_granted(kubeconfig: Path, kind: CustomKind) -> None:
    """Returns when the API server of the kubeconfig knows the account's rights."""
    async with Client(Connection(kubeconfig)) as client:

        async def granted() -> bool:
            answer = await client.send(
                "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?limit=1"
            )
            wanted = [Right("get", "apiextensions.k8s.io", "customresourcedefinitions", name=kind.name)]
            return answer.code == 200 and not await missing_rights(client, wanted)

        await eventually(granted, otherwise=lambda: "the Job's account has not got its rights")
