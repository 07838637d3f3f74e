"""`make demo-composites` with everything as pods: the same chapters, with the same checks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pykube.http import HTTPClient

from demo import composingstory, compositestory
from demo.stage import Stage, terminal
from demo.terminal import ROOT
from tests.controlplane import binaries
from tests.node import standins
from tests.node.deployment import COMPOSER, DEPLOYMENTS, REPLICAS, Deployment


@pytest.fixture
def stage(composer: Deployment, scripts: HTTPClient, image: Path, tmp_path: Path) -> Iterator[Stage]:
    """The cluster with all pods ready; whatever the story leaves if it fails is removed."""
    plane = composer.plane
    standins.load(composer.cluster, image, tmp_path)
    yield Stage(plane, terminal(plane, binaries.find().kubectl.parent), scripts)
    free = '--patch={"metadata":{"finalizers":null}}'
    plane.kubectl("patch", "deployment", "orders", "--type=merge", free, check=False)
    composer.delete_composites()
    plane.kubectl("delete", "compositions", "--all", "--timeout=180s")
    plane.kubectl("delete", "vconv", "--all", "--timeout=180s")
    plane.kubectl("delete", f"--filename={ROOT / composingstory.FILES / 'roles.yaml'}", "--ignore-not-found")


def test_the_story_of_composites(stage: Stage, composer: Deployment) -> None:
    compositestory.tell(stage)
    for name in (*DEPLOYMENTS, COMPOSER):
        assert [(each.ready, each.restarts) for each in composer.pods(name)] == [(True, 0)] * REPLICAS
