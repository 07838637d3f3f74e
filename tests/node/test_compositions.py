"""The examples with real pods: they run, are scaled, stay available, and go in order."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from demo.terminal import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.node import pods, standins
from tests.node.cluster import NodeCluster
from tests.node.deployment import COMPOSER, Deployment, no_new_pods, until
from tests.node.metricsapi import MetricsApi

EXAMPLES: Final = ROOT / "examples"
READY: Final = "jsonpath={.status.conditions[?(@.type=='Ready')].message}"
RESTRICTED: Final = {
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
}
CONFINED: Final = {
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
ASK_SHOP: Final = "import urllib.request; print(urllib.request.urlopen('http://shop', timeout=60).status)"

Json = Any
Example = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture
def kubectl(nodes: NodeCluster) -> Kubectl:
    """The admin's."""
    return nodes.plane.kubectl


@pytest.fixture
def example(composer: Deployment, image: Path, tmp_path: Path) -> Example:
    """Applies an example as its README says, with its composites; all is removed, also after a failure."""
    standins.load(composer.cluster, image, tmp_path)
    return lambda folder: _applied(composer, folder)


@pytest.fixture
def disks(kubectl: Kubectl, tmp_path: Path) -> Iterator[list[Path]]:
    """Directories that both nodes have as volumes; nothing else provides volumes."""
    folders = [tmp_path / name for name in ("one", "two")]
    for each in folders:
        each.mkdir()
        each.chmod(0o777)
    volumes = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": each.name},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": str(each)},
            },
        }
        for each in folders
    ]
    pods.apply(kubectl, *volumes)
    yield folders
    kubectl("delete", "pvc", "--all", "--timeout=180s", check=False)
    kubectl("delete", "pv", *(each.name for each in folders), "--timeout=180s", check=False)
    kubectl("delete", "secret", "orders-password", "--ignore-not-found")


@contextmanager
def _applied(composer: Deployment, folder: Path) -> Iterator[None]:
    kubectl = composer.plane.kubectl
    api = [f"--filename={folder / each}.yaml" for each in ("role", "definition", "composition")]
    kubectl("apply", "--server-side", *api)
    try:
        definition = yaml.safe_load((folder / "definition.yaml").read_text())["metadata"]["name"]
        kubectl("wait", "--for=condition=Established", f"cxrd/{definition}", "--timeout=180s")
        kubectl.wait_established(f"crd/{definition}")
        kubectl("apply", "--server-side", f"--filename={folder / 'composites.yaml'}")
        yield
    finally:
        composer.delete_composites()
        kubectl("delete", *api, "--ignore-not-found")


def shown(kubectl: Kubectl, *words: str) -> Json:
    """What `kubectl get` finds."""
    return json.loads(kubectl("get", *words, "--output=json"))


def wait_ready(kubectl: Kubectl, *composites: str) -> None:
    """Returns when these composites (`kind/name`) are ready as they are now."""
    kubectl("wait", "--for=condition=Ready", *composites, "--timeout=180s")


def ready_pods(kubectl: Kubectl, instance: str) -> list[str]:
    """The names of an application's pods that are ready and stay."""
    found = shown(kubectl, "pods", f"--selector=app.kubernetes.io/instance={instance}")["items"]
    return [
        each["metadata"]["name"]
        for each in found
        if "deletionTimestamp" not in each["metadata"]
        and any(one["ready"] for one in each["status"].get("containerStatuses", ()))
    ]


def evict(kubectl: Kubectl, pod: str) -> str:
    """Asks for an eviction, as `kubectl drain` does; returns the API server's answer."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"},
    }
    path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
    return kubectl("create", f"--raw={path}", "--filename=-", input=json.dumps(eviction), check=False)


@contextmanager
def held(kubectl: Kubectl, pod: str) -> Iterator[None]:
    """A Pod stays, although it is deleted, until the end."""

    def hold(*finalizers: str) -> None:
        wanted = json.dumps({"metadata": {"finalizers": [*finalizers]}})
        kubectl("patch", "pod", pod, "--type=merge", f"--patch={wanted}")

    hold("example.org/hold")
    try:
        yield
    finally:
        hold()


def test_a_web_application_runs_and_stays_available(example: Example, kubectl: Kubectl) -> None:
    with example(EXAMPLES / "web-application"):
        wait_ready(kubectl, "webapp/shop", "webapp/search")
        assert pods.run(kubectl, "customer", f"{pods.ASKS}print(status('http://shop'))").strip() == "200"

        # Who scales the composite gets pods; who scales its Deployment does not.
        kubectl("scale", "webapp", "shop", "--replicas=3")
        until(lambda: len(ready_pods(kubectl, "shop")) == 3, 120)
        kubectl("scale", "deployment", "shop", "--replicas=1")
        until(lambda: shown(kubectl, "deployment", "shop")["spec"]["replicas"] == 3, 120)

        def settled() -> bool:
            # Each from what is so now: 3 was true before, too.
            deployment = shown(kubectl, "deployment", "shop")
            seen = deployment["status"].get("observedGeneration") == deployment["metadata"]["generation"]
            replicas = shown(kubectl, "webapp", "shop")["status"].get("replicas")
            numbers = (len(ready_pods(kubectl, "shop")), deployment["status"].get("readyReplicas"), replicas)
            return seen and numbers == (3, 3, 3)

        until(settled, 120)
        wait_ready(kubectl, "webapp/shop")

        def allowed() -> bool:
            budget = shown(kubectl, "pdb", "shop")["status"]
            return (budget["expectedPods"], budget["disruptionsAllowed"]) == (3, 1)

        until(allowed, 120)
        first, second, _ = ready_pods(kubectl, "shop")
        with no_new_pods(kubectl):
            assert '"status":"Success"' in evict(kubectl, first)
            assert "would violate the pod's disruption budget" in evict(kubectl, second)
        until(lambda: len({*ready_pods(kubectl, "shop")} - {first}) == 3, 120)

        # An image that cannot be had: the composite says which object waits, and the old pods serve.
        def use(image: str) -> None:
            kubectl("patch", "webapp", "shop", "--type=merge", f'--patch={{"spec":{{"image":"{image}"}}}}')

        def said() -> str:
            return kubectl("get", "webapp", "shop", f"--output={READY}")

        use("registry.example.com/missing:1")
        until(lambda: "Deployment default/shop: 1 of 3 replicas are updated" in said(), 120, said)
        assert pods.run(kubectl, "customer", ASK_SHOP).strip() == "200"
        use("registry.example.com/shop:1")
        wait_ready(kubectl, "webapp/shop")


def test_load_scales_a_composite(example: Example, kubectl: Kubectl, nodes: NodeCluster) -> None:
    """The HorizontalPodAutoscaler of the example writes the composite's replicas, and nobody else does."""
    with MetricsApi(nodes, millicores=16) as metrics, example(EXAMPLES / "web-application"):
        wait_ready(kubectl, "webapp/search")
        wanted = "jsonpath={.spec.replicas}"
        assert kubectl("get", "webapp", "search", f"--output={wanted}") == "2"
        metrics.millicores = 32  # of 10 that each requests, 8 are aimed at
        until(lambda: kubectl("get", "webapp", "search", f"--output={wanted}") == "4", 240)
        until(lambda: len(ready_pods(kubectl, "search")) == 4, 120)
        wait_ready(kubectl, "webapp/search")
        assert kubectl("get", "deployment", "search", f"--output={wanted}") == "4"
        conditions = shown(kubectl, "hpa", "search")["status"]["conditions"]
        said = {each["type"]: each["status"] for each in conditions}
        assert (said["AbleToScale"], said["ScalingActive"]) == ("True", "True")


def test_a_database_is_dumped_and_its_dumps_outlive_it(
    example: Example, kubectl: Kubectl, disks: list[Path]
) -> None:
    with example(EXAMPLES / "database"):
        # The Pod waits for the Secret that the user has promised, and the composite says so.
        until(
            lambda: "StatefulSet default/orders-db" in kubectl("get", "db", "orders", f"--output={READY}"),
            120,
        )
        kubectl("create", "secret", "generic", "orders-password", "--from-literal=password=secret")
        wait_ready(kubectl, "db/orders")
        assert (
            kubectl("get", "db", "orders", "--output=jsonpath={.status.address}")
            == "orders-db.default.svc:5432"
        )

        every_minute = {"spec": {"backup": {"schedule": "* * * * *"}}}
        kubectl("patch", "db", "orders", "--type=merge", f"--patch={json.dumps(every_minute)}")
        until(lambda: kubectl("get", "db", "orders", "--output=jsonpath={.status.lastBackupTime}"), 240)
        contents = sorted(file.read_text() for disk in disks for file in disk.glob("**/*") if file.is_file())
        assert len(contents) >= 2
        assert len(set(contents)) == 1, "the dump is not what the database has"

        # Objects go in the background: the composite does not wait for the Pod of its StatefulSet.
        with held(kubectl, "orders-db-0"):
            kubectl("delete", "db", "orders", "--timeout=180s")
            gone = shown(kubectl, "service,statefulset,cronjob", "--selector=crdkeeper.dev/composite-uid")
            assert gone["items"] == []
            until(lambda: "deletionTimestamp" in shown(kubectl, "pod", "orders-db-0")["metadata"], 120)
        kubectl("wait", "--for=delete", "pod/orders-db-0", "--timeout=180s")
        claims = {each["metadata"]["name"]: each for each in shown(kubectl, "pvc")["items"]}
        assert claims.keys() == {"orders-dumps", "data-orders-db-0"}  # the latter stays with any StatefulSet
        assert "ownerReferences" not in claims["orders-dumps"]["metadata"]
        assert claims["orders-dumps"]["status"]["phase"] == "Bound"


def test_a_tenant_is_limited_and_goes_with_its_pods(
    example: Example, kubectl: Kubectl, composer: Deployment
) -> None:
    space = "--namespace=tenant-payments"

    def may(user: str, *words: str) -> bool:
        return kubectl("auth", "can-i", *words, space, f"--as={user}", check=False).startswith("yes")

    with example(EXAMPLES / "tenant"):
        wait_ready(kubectl, "tenant/payments")
        assert shown(kubectl, "networkpolicy", "tenant", space)["spec"]["policyTypes"] == ["Ingress"]

        def permitted(*words: str) -> list[bool]:
            return [may(each, *words) for each in ("ada", "grace", "alan")]

        # Roles count a little after they were made.
        until(lambda: permitted("create", "pods") == [True, True, False], 120)
        until(lambda: permitted("create", "rolebindings") == [True, False, False], 120)
        leaves = [{"op": "remove", "path": "/spec/members/1"}]
        kubectl("patch", "tenant", "payments", "--type=json", f"--patch={json.dumps(leaves)}")
        until(lambda: not may("grace", "create", "pods"), 120)

        def said() -> str:
            return kubectl("get", "tenant", "payments", f"--output={READY}")

        def start(name: str, memory: str, **metadata: Any) -> str:
            pod = pods.manifest(name, "import time; time.sleep(600)", **RESTRICTED)
            pod["metadata"] |= metadata
            pod["spec"]["containers"][0] |= CONFINED
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m", "memory": memory}}
            return kubectl("apply", space, "--filename=-", input=json.dumps(pod), check=False)

        # A controller has to count what is used before the quota admits a pod.
        refused = ""

        def exceeds() -> bool:
            nonlocal refused
            refused = start("large", "17Gi")
            return "exceeded quota: tenant" in refused

        until(exceeds, 120, lambda: refused)
        start("small", "16Mi", finalizers=["example.org/hold"])
        kubectl("wait", "pod/small", space, "--for=condition=Ready", "--timeout=180s")
        assert "exceeded quota: tenant" in start("large", "16Gi")

        # The members' rights go first, then the namespace, which waits for the pod.
        kubectl("delete", "tenant", "payments", "--wait=false")
        try:
            until(lambda: "Namespace tenant-payments" in said(), 120, said)
            until(lambda: not may("ada", "create", "pods"), 120)
            until(lambda: "deletionTimestamp" in shown(kubectl, "pod", "small", space)["metadata"], 120)
            assert shown(kubectl, "rolebinding,resourcequota", space)["items"] == []
            # Another pod of the composer goes on.
            lease = ("get", "lease", COMPOSER, "--output=jsonpath={.spec.holderIdentity}")
            composer.kubectl("delete", "pod", composer.kubectl(*lease), "--wait=false")
        finally:
            free = json.dumps({"metadata": {"finalizers": None}})
            kubectl("patch", "pod", "small", space, "--type=merge", f"--patch={free}")
        kubectl("wait", "--for=delete", "tenant/payments", "--timeout=180s")
        assert "NotFound" in kubectl("get", "namespace", "tenant-payments", check=False)


def test_a_budget_counts_the_pods_of_a_composite_by_its_scale(example: Example, kubectl: Kubectl) -> None:
    with example(Path(__file__).with_name("crew")):
        wait_ready(kubectl, "crew/night")

        def counted() -> tuple[int, int]:
            budget = shown(kubectl, "pdb", "night").get("status", {})
            return budget.get("expectedPods"), budget.get("disruptionsAllowed")

        # A budget with maxUnavailable asks the controller of the pods for their number.
        # kube-controller-manager looks for new kinds every thirty seconds, and again for what it
        # could not count after pauses that double.
        until(lambda: counted() == (3, 1), 150, lambda: str(counted()))
        kubectl("scale", "crew", "night", "--replicas=5")
        until(lambda: counted() == (5, 1), 120, lambda: str(counted()))
        with no_new_pods(kubectl):
            assert '"status":"Success"' in evict(kubectl, "night-0")
            assert "would violate the pod's disruption budget" in evict(kubectl, "night-1")
        until(lambda: len(ready_pods(kubectl, "night")) == 5, 120)
        wait_ready(kubectl, "crew/night")
        kubectl("scale", "crew", "night", "--replicas=2")
        until(lambda: sorted(ready_pods(kubectl, "night")) == ["night-0", "night-1"], 120)
