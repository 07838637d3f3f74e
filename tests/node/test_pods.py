"""All pods become ready without a restart, with the manifests' settings and on stricter clusters."""

import json
from collections.abc import Iterator

import pytest

from tests.controlplane.kubectl import KubectlError
from tests.node import pods
from tests.node.deployment import DEPLOYMENTS, REPLICAS, Deployment

UID = 1_000_650_000  # as OpenShift assigns them: no image knows it


def test_all_pods_are_ready_without_a_restart(deployment: Deployment) -> None:
    for name in DEPLOYMENTS:
        found = deployment.pods(name)
        assert [(each.ready, each.restarts) for each in found] == [(True, 0)] * REPLICAS
        assert {each.node for each in found} == {"node-0", "node-1"}


@pytest.fixture
def any_user(deployment: Deployment) -> Iterator[None]:
    """Both Deployments with a user id unknown to the image."""
    security = {"runAsUser": UID, "runAsGroup": UID, "fsGroup": UID}
    patch = json.dumps({"spec": {"template": {"spec": {"securityContext": security}}}})
    for each in DEPLOYMENTS:
        deployment.kubectl("patch", "deployment", each, "--patch", patch)
    yield
    nothing = json.dumps({"spec": {"template": {"spec": {"securityContext": dict.fromkeys(security)}}}})
    for each in DEPLOYMENTS:
        deployment.kubectl("patch", "deployment", each, "--patch", nothing)
    deployment.wait_ready()


@pytest.mark.usefixtures("any_user")
def test_any_user_id_will_do(deployment: Deployment) -> None:
    deployment.wait_ready()
    for name in DEPLOYMENTS:
        for pod in deployment.pods(name):
            assert pod.restarts == 0
            said = deployment.kubectl("exec", pod.name, "--", "python", "-c", "import os; print(os.getuid())")
            assert int(said) == UID


def test_the_namespace_admits_restricted_pods_only(deployment: Deployment) -> None:
    """So the pods above are restricted, if the API server enforces it: it rejects one that is not."""
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted:latest"'):
        deployment.kubectl("run", "root", f"--image={pods.IMAGE}")
