"""Rules decide what everyone reads from a CRD: who may write them."""

import json
from typing import Any

from tests.cluster.conversion.rules import RULES, rules_of
from tests.cluster.conversion.scene import Scene, until
from tests.controlplane.cluster import Cluster

RBAC = "rbac.authorization.k8s.io/v1"


def test_rules_are_written_by_those_who_may_change_the_crd(installed: Cluster, group: str) -> None:
    scene = Scene(installed, group)
    author = installed.service_account_kubeconfig("default", "default")
    rules = json.dumps(rules_of(scene.group, RULES))

    def said() -> str:
        create = ("create", "--validate=false", "--dry-run=server", "--filename=-")
        return installed.kubectl(*create, input=rules, kubeconfig=author, check=False)

    assert "cannot create resource" in said()
    scene.apply(binding("crdkeeper-conversion-admin"))
    try:
        until(lambda: f"decide what everybody reads of {scene.name}" in said(), said)
        metadata = {"name": f"own-{scene.group}"}
        may_patch = {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": [scene.name],
        }
        role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata}
        scene.apply(role | {"rules": [may_patch | {"verbs": ["patch"]}]}, binding(metadata["name"]))
        until(lambda: "created" in said(), said)
    finally:
        roles = ("crdkeeper-conversion-admin", f"own-{scene.group}")
        bindings = [f"clusterrolebinding/test-{each}" for each in roles]
        installed.kubectl("delete", f"clusterrole/own-{scene.group}", *bindings, "--ignore-not-found")
        scene.remove()


def binding(role: str) -> dict[str, Any]:
    """Grants a role to an account that has no other."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test-{role}"},
        "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
