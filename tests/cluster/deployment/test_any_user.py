"""Pods run with user ids unknown to any image: 65532 from the Dockerfile, a random one on OpenShift."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.conversion.scene import until
from tests.cluster.harness import Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster
from tests.controlplane.processes import LAUNCH

USERS = [65532, 1000680000]
"""The user id in the Dockerfile, and one like those that OpenShift assigns."""


def launched(user: int, *command: str) -> subprocess.CompletedProcess[str]:
    """A command's output for a user that does not exist, without any environment."""
    arguments = [sys.executable, "-I", "-S", str(LAUNCH), "--user", str(user), "--", *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(autouse=True, params=USERS)
def user(request: pytest.FixtureRequest) -> int:
    """A user id that has no entry in /etc/passwd."""
    number: int = request.param
    found = launched(number, sys.executable, "-c", "import os; print(os.getuid(), dict(os.environ))")
    if "user namespace" in found.stderr:
        pytest.skip(found.stderr.strip())
    assert found.stdout.split()[0] == str(number), found.stderr
    assert "HOME" not in found.stdout
    return number


def test_the_operator_works(installed: Cluster, start_operator: Callable[..., Operator], user: int) -> None:
    operator = start_operator(installed, identity=f"user-{user}", user=user)
    assert Path(f"/proc/{operator.pid}/environ").read_bytes() == b""
    until(operator.leading)


def test_the_webhook_works(installed: Cluster, tmp_path: Path, user: int) -> None:
    pod = WebhookPod(installed, tmp_path, user=user)
    try:
        pod.start()
        assert Path(f"/proc/{pod.process.pid}/environ").read_bytes() == b""
    finally:
        pod.close()


def test_a_command_without_a_kubeconfig_says_so(user: int) -> None:
    found = launched(user, sys.executable, "-m", "crdkeeper", "migrate", "databases.example.com")
    assert "Traceback" not in found.stderr
    assert "No cluster configured: there is no" in found.stderr
    assert found.returncode == os.EX_USAGE or found.returncode == 1
