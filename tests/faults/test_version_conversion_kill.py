"""kill -9 of the operator while it rolls out new rules: reads never fail, and it completes."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene
from tests.cluster.harness import Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster

KILLS = max(2, int(os.environ.get("CRDKEEPER_KILLS", "8")) // 2)
LONGEST = 4.0
"""Seconds from the start of an operator to its kill: a rollout of rules takes about that long."""
SEPARATORS = ":/"


@pytest.fixture
def pod(installed: Cluster, tmp_path: Path) -> Iterator[WebhookPod]:
    pod = WebhookPod(installed, tmp_path, processes=2)
    yield pod
    pod.close()


@pytest.fixture
def operator(installed: Cluster, pod: WebhookPod) -> Iterator[Operator]:
    operator = Operator(installed, identity="conversions", flags={"webhook-url": pod.url})
    yield operator
    operator.close()


def rules(separator: str) -> dict[str, list[dict[str, Any]]]:
    join = {**RULES["v1alpha1"][1]["join"], "template": f"{{host}}{separator}{{port}}"}
    return {**RULES, "v1alpha1": [RULES["v1alpha1"][0], {"spoke": "spec.hostPort", "join": join}, *_REST]}


_REST = RULES["v1alpha1"][2:]


def test_an_operator_that_is_killed_anywhere(
    installed: Cluster, group: str, operator: Operator, pod: WebhookPod
) -> None:
    scene = Scene(installed, group)
    chance = random.Random(os.environ.get("CRDKEEPER_SEED", group))
    allowed = [{**V1ALPHA1, "hostPort": f"localhost{each}1234"} for each in SEPARATORS]
    try:
        scene.create("v1", "mine", V1)
        scene.convert(rules(SEPARATORS[0]))
        operator.start()
        pod.start()
        scene.ready()
        for i in range(KILLS):
            operator.kill()
            scene.convert(rules(SEPARATORS[(i + 1) % 2]))
            operator.start(wait=False)
            end = time.monotonic() + chance.uniform(0, LONGEST)
            while time.monotonic() < end:
                assert scene.spec("v1alpha1", "mine") in allowed
        operator.kill()
        operator.start()
        scene.ready()
        assert scene.spec("v1alpha1", "mine") == allowed[KILLS % 2]
    finally:
        scene.remove()
