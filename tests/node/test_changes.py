"""Pods judge changes of CRDs; no change fails because of them, whatever happens to them.

The API server asks them through their Service, and gives a dead one two seconds before the change passes.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.cluster.changes.ruled import DROPPED, RuledScene
from tests.cluster.changes.scene import CHANGES, without
from tests.cluster.conversion.scene import V1, Scene
from tests.cluster.harness.customkind import SPEC, CustomKind
from tests.controlplane.kubectl import Kubectl
from tests.node.cluster import NodeCluster
from tests.node.deployment import REPLICAS, WEBHOOK, Deployment, Pod, until

SECONDS: Final = 300
GROUP: Final = "node-changes.example.com"
KIND: Final = CustomKind(GROUP)
HARMFUL: Final = KIND.changed("v1", spec=without("note"))
HARM: Final = "2 of 5 Database objects would lose spec.note at v1, v2, such as default/noted-0"
REFUSED: Final = f"DefinitionPolicy {GROUP} refuses it (spec.changes): {HARM}"
APPLIES: Final = 20
"""At least, for each way to kill the pods."""
RULED: Final = "node-ruled.example.com"
ROLE: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "test-changes", "labels": {"rbac.crdkeeper.dev/aggregate-to-changes": "true"}},
    "rules": [{"apiGroups": [GROUP, RULED], "resources": ["*"], "verbs": ["list"]}],
}


def policy(group: str, mode: str) -> dict[str, Any]:
    """A policy that judges changes of a group's CRDs."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": group},
        "spec": {"groups": [group], "changes": mode, "storageMigration": {"mode": "Disabled"}},
    }


pytestmark = pytest.mark.timeout(900)


class Judged:
    """A CRD with objects, and a policy that judges its changes."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.kubectl: Kubectl = deployment.plane.kubectl

    def put(self, *objects: dict[str, Any]) -> None:
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "--filename=-", input=content)

    def change(self, kind: CustomKind, *flags: str) -> str:
        """What `kubectl apply` says of a changed CRD, warnings and errors included."""
        command = ("apply", "--server-side", *flags, "--filename=-")
        return self.kubectl(*command, input=json.dumps(kind.to_object()), check=False)

    def until_said(self, text: str) -> str:
        """What a dry run of the harmful change says, once it has that text: it may lack the time before."""
        said = ""

        def found() -> bool:
            nonlocal said
            said = self.change(HARMFUL, "--dry-run=server")
            return text in said

        until(found, SECONDS, lambda: said)
        return said

    def until_in_force(self, status: str, text: str) -> None:
        """Return once the condition of the policy's present generation has that status and text."""
        found: dict[str, Any] = {}

        def reported() -> bool:
            nonlocal found
            found = json.loads(self.kubectl("get", "defpol", GROUP, "--output=json"))
            return any(
                (each["type"], each["status"]) == ("ChangesJudged", status)
                and each["observedGeneration"] == found["metadata"]["generation"]
                and text in each["message"]
                for each in found.get("status", {}).get("conditions", ())
            )

        until(reported, SECONDS, lambda: json.dumps(found.get("status")))

    def judge(self, mode: str) -> None:
        self.kubectl("patch", "defpol", GROUP, "--type=merge", f'--patch={{"spec":{{"changes":"{mode}"}}}}')
        self.until_in_force("True", "The webhook warns of changes")

    def pods(self) -> list[Pod]:
        return self.deployment.pods(WEBHOOK)

    def until_ready(self, wanted: Callable[[Pod], bool]) -> None:
        """Return once all replicas are ready, and are as wanted."""

        def ready() -> bool:
            now = self.pods()
            return len(now) == REPLICAS and all(each.ready and wanted(each) for each in now)

        until(ready, SECONDS, lambda: str(self.pods()))

    def remove(self) -> None:
        """Leave nothing that judges or is judged, and no pod whose container was killed."""
        names = [each.name for each in self.pods() if each.restarts]
        for command in (
            ("defpol", GROUP, RULED),
            ("crd", KIND.name, "--timeout=180s"),
            ("clusterrole", "test-changes"),
            (f"--kustomize={CHANGES}",),
        ):
            self.kubectl("delete", *command, "--ignore-not-found")
        self.deployment.replace(*names)


@pytest.fixture(scope="module")
def judged(session_nodes: NodeCluster) -> Iterator[Judged]:
    with session_nodes.network():
        deployment = Deployment(session_nodes)
        deployment.apply()
        judged = Judged(deployment)
        judged.put(KIND.to_object())
        judged.kubectl.wait_established(f"crd/{KIND.name}")
        noted = [KIND.instance(f"noted-{number}", note="by hand") for number in range(2)]
        judged.put(*noted, *(KIND.instance(f"plain-{number}") for number in range(3)))
    yield judged
    with session_nodes.network():
        judged.remove()


def test_pods_warn_of_a_change_and_refuse_it(judged: Judged, nodes: NodeCluster) -> None:
    judged.put(policy(GROUP, "Warn"))
    judged.until_in_force("False", "`kubectl apply --server-side -k manifests/changes` grants")
    judged.kubectl("apply", "--server-side", f"--kustomize={CHANGES}")
    judged.put(ROLE)
    judged.until_in_force("True", "The webhook warns of changes")
    said = judged.until_said(f"Warning: {HARM}")
    assert "serverside-applied" in said
    judged.judge("Deny")
    said = judged.until_said(REFUSED)
    assert "serverside-applied" not in said


async def test_rules_count_where_a_crd_names_our_service(judged: Judged, nodes: NodeCluster) -> None:
    scene = Scene(judged.deployment.plane, RULED)
    try:
        scene.create("v1", "a", V1)
        scene.convert(DROPPED)
        scene.ready()
        judged.put(policy(RULED, "Deny"))
        ruled = RuledScene(scene)
        await ruled.until_refused()
        ours = scene.conversion()["webhook"]["clientConfig"]
        scene.convert_at(**ours | {"service": {**ours["service"], "namespace": "former"}})
        await ruled.until_harmless()
        scene.convert_at(**ours)
        await ruled.until_refused()
    finally:
        scene.remove()


def containers(judged: Judged) -> None:
    """kill -9 of all processes in all pods; their kubelets start them again."""
    restarts = {each.uid: each.restarts for each in judged.pods()}
    for pod in judged.pods():
        judged.deployment.kill(pod)
    judged.until_ready(lambda pod: pod.restarts > restarts[pod.uid])


def pods(judged: Judged) -> None:
    """Deleted without a grace period: one, and after that all at once."""
    for number in (1, REPLICAS):
        killed = judged.pods()[:number]
        uids = {each.uid for each in killed}
        names = [each.name for each in killed]
        judged.deployment.kubectl("delete", "pod", *names, "--wait=false", "--grace-period=0", "--force")
        judged.until_ready(lambda pod, uids=uids: pod.uid not in uids)  # type: ignore[misc]


@pytest.mark.parametrize("kill", [containers, pods])
def test_no_change_fails(
    judged: Judged, nodes: NodeCluster, capsys: pytest.CaptureFixture[str], kill: Callable[[Judged], None]
) -> None:
    judged.judge("Deny")
    judged.until_said(REFUSED)
    number = passed = 0
    longest = 0.0
    with ThreadPoolExecutor(1) as pool:  # its thread is in this one's network
        killing = pool.submit(kill, judged)
        while number < APPLIES or not killing.done():
            number += 1
            began = time.monotonic()
            described = {**SPEC, "description": f"{kill.__name__}, {number}"}
            said = judged.change(KIND.changed("v1", spec=described))
            longest = max(longest, time.monotonic() - began)
            assert "serverside-applied" in said, said
            # Refused, or passed because the webhook is dead: nothing else may happen.
            said = judged.change(HARMFUL, "--dry-run=server")
            assert "serverside-applied" in said or REFUSED in said, said
            passed += "serverside-applied" in said
        killing.result()
    judged.until_said(REFUSED)
    judged.until_in_force("True", "refuses those that harm live objects")
    sizes = ", ".join(f"{judged.deployment.memory(each) >> 20} MiB" for each in judged.pods())
    with capsys.disabled():
        print(
            f"\n{kill.__name__} killed: {number} changes applied, in {longest:.1f} s at most; "
            f"{number - passed} of {number} harmful ones refused; the pods use {sizes}"
        )
