"""`make demo-composites` with everything as pods: the same chapters, with the same checks."""

from collections.abc import Iterator

import pytest
from pykube.http import HTTPClient

from demo import compositestory
from demo.stage import Stage, terminal
from demo.terminal import ROOT
from tests.controlplane import binaries
from tests.node.deployment import COMPOSER, DEPLOYMENTS, REPLICAS, Deployment


@pytest.fixture
def stage(composer: Deployment, scripts: HTTPClient) -> Iterator[Stage]:
    """The cluster with all pods ready; whatever the story leaves if it fails is removed."""
    plane = composer.plane
    yield Stage(plane, terminal(plane, binaries.find().kubectl.parent), scripts)
    composer.delete_composites()
    plane.kubectl("delete", "vconv", "--all", "--timeout=30s")
    plane.kubectl("delete", f"--filename={ROOT / compositestory.FILES / 'roles.yaml'}", "--ignore-not-found")


def test_the_story_of_composites(stage: Stage, composer: Deployment) -> None:
    compositestory.tell(stage)
    for name in (*DEPLOYMENTS, COMPOSER):
        assert [(each.ready, each.restarts) for each in composer.pods(name)] == [(True, 0)] * REPLICAS
