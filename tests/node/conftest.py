"""Fixtures of tests on real nodes: one cluster of two nodes for the session, with crdkeeper's image on both.

They are skipped if the machine cannot run nodes. With CRDKEEPER_NODE=required they fail instead: CI must not
pass because it lost a package.
"""

import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest
from pykube.http import HTTPClient

from crdkeeper.scripting import connect
from tests.cluster.conftest import group
from tests.cluster.harness import Admin
from tests.cluster.harness.guarded import guarded
from tests.controlplane.build import BuildFailed
from tests.node import images, programs, requirements
from tests.node.cluster import NodeCluster
from tests.node.deployment import Deployment

__all__ = ["group"]

REQUIRED = "CRDKEEPER_NODE"
NODES = 2


def _impossible(reason: str) -> NoReturn:
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{REQUIRED}=required, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def node_programs(request: pytest.FixtureRequest) -> None:
    """Builds the programs visibly, if this machine can use them: the first time takes minutes."""
    reason = requirements.lacking()
    if reason:
        _impossible(reason)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with ExitStack() as stack:
        if capture is not None:
            stack.enter_context(capture.global_and_fixture_disabled())
        try:
            programs.find()
            images.pause()
        except BuildFailed as error:
            _impossible(str(error))


@pytest.fixture(scope="session")
def image(node_programs: None) -> Path:
    """The OCI archive with crdkeeper's image."""
    try:
        return images.crdkeeper()
    except BuildFailed as error:
        _impossible(str(error))


@pytest.fixture(scope="session")
def session_nodes(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    """The session's cluster, from outside its network: see `nodes`."""
    with NodeCluster(tmp_path_factory.mktemp("nodes"), nodes=NODES, archives=(image,)) as cluster:
        yield cluster


@pytest.fixture
def nodes(session_nodes: NodeCluster) -> Iterator[NodeCluster]:
    """The session's cluster; the test, and everything it starts, runs in its network."""
    with session_nodes.network():
        yield session_nodes


@pytest.fixture
def deployment(nodes: NodeCluster) -> Deployment:
    """crdkeeper installed from its manifests on the session's cluster, with all pods ready."""
    deployment = Deployment(nodes)
    deployment.apply()
    return deployment


@pytest.fixture
def composer(deployment: Deployment) -> Iterator[Deployment]:
    """The composer beside it, from its manifests, with all pods ready; uninstalled at the end."""
    deployment.apply_composer()
    yield deployment
    deployment.delete_composer()


@pytest.fixture
def scripts(deployment: Deployment) -> Iterator[HTTPClient]:
    """The cluster for the client for scripts."""
    api = connect(deployment.plane.kubeconfig)
    yield api
    api.session.close()


@pytest.fixture
async def admin(deployment: Deployment) -> AsyncIterator[Admin]:
    """The admin of the session's cluster. Checks every trim of a CRD that it applies."""
    async with guarded(deployment.plane) as admin:
        yield admin


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the location of the logs, and the state of its cluster's pods, to the report of a failed test."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("session_nodes")
    if report.failed and isinstance(cluster, NodeCluster):
        report.sections.append(("logs of the cluster", str(cluster.logs)))
        with cluster.network():
            shown = cluster.plane.kubectl("get", "pods,events", "--all-namespaces", "-o", "wide", check=False)
        report.sections.append(("pods and events", shown[-20_000:]))
    return report
