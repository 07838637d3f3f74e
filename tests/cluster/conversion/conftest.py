"""Shared by tests of conversion: a webhook with rules from files, and an operator with a webhook."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conversion.rules import SPECS, ConversionWebhook
from tests.cluster.conversion.scene import Scene
from tests.cluster.harness import Operator
from tests.cluster.harness.crontabs import CronTabs
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster


@pytest.fixture
def specs() -> Mapping[str, Any]:
    """The fields of each version of the CRD at the beginning of a test."""
    return SPECS


@pytest.fixture
def webhook(tmp_path: Path, group: str, specs: Mapping[str, Any]) -> Iterator[ConversionWebhook]:
    """The conversion webhook, with its rules from files."""
    webhook = ConversionWebhook(tmp_path, group, specs=specs)
    try:
        webhook.start()
        yield webhook
    finally:
        webhook.close()


@pytest.fixture
def crontabs(installed: Cluster, group: str, webhook: ConversionWebhook) -> Iterator[CronTabs]:
    """A CRD that this webhook converts."""
    crontabs = CronTabs(installed, group, webhook)
    yield crontabs
    crontabs.remove()


@pytest.fixture(scope="module")
def pod(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookPod]:
    """The conversion webhook, with its rules and its certificate from the operator."""
    pod = WebhookPod(installed, tmp_path_factory.mktemp("webhook"))
    yield pod
    pod.close()


@pytest.fixture(scope="module")
def operator(installed: Cluster, pod: WebhookPod) -> Iterator[Operator]:
    """An operator with that webhook; it creates the certificate that the webhook waits for."""
    operator = Operator(installed, flags={"webhook-url": pod.url})
    try:  # one that is left would keep the Lease from those of other modules
        operator.start()
        pod.start()
        yield operator
    finally:
        operator.close()


@pytest.fixture
def scene(installed: Cluster, group: str, operator: Operator) -> Iterator[Scene]:
    """A CRD without conversion, which that operator may convert."""
    scene = Scene(installed, group)
    yield scene
    scene.remove()
