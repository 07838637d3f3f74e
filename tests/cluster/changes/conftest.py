"""Shared by tests of changes: an operator and a webhook with manifests/changes, and a CRD to change."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cluster.changes.scene import Scene, judging
from tests.cluster.harness import Admin, Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster


@pytest.fixture(scope="module")
def pod(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookPod]:
    """The webhook, with its policies from the cluster and its certificate from the operator."""
    pod = WebhookPod(installed, tmp_path_factory.mktemp("webhook"))
    yield pod
    pod.close()


@pytest.fixture(scope="module")
def operator(installed: Cluster, pod: WebhookPod) -> Iterator[Operator]:
    """An operator with that webhook, which has the rights for changes."""
    with judging(installed, pod) as operator:
        yield operator


@pytest.fixture
async def scene(admin: Admin, group: str, operator: Operator, pod: WebhookPod) -> AsyncIterator[Scene]:
    """A CRD that the webhook may read the objects of, and a policy for it."""
    scene = Scene(admin, group, pod)
    await scene.let_read()
    yield scene
    await scene.remove()
