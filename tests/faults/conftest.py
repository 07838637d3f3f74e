"""Fixtures of the fault tests: those of `tests.cluster`, and a control plane whose programs may fail."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cluster.conftest import (
    group,
    installed,
    module_operator,
    operator,
    preloading,
    pytest_runtest_makereport,
    start_operator,
)
from tests.cluster.harness import Admin
from tests.cluster.harness.guarded import guarded
from tests.controlplane.cluster import Cluster
from tests.controlplane.fixtures import LOGS
from tests.controlplane.plane import ControlPlane
from tests.faults.planes import own_plane

__all__ = [
    "admin",
    "breakable",
    "breakable_admin",
    "breakable_plane",
    "group",
    "installed",
    "module_operator",
    "operator",
    "preloading",
    "pytest_runtest_makereport",
    "start_operator",
]


@pytest.fixture
async def admin(installed: Cluster) -> AsyncIterator[Admin]:
    """The admin of the session's cluster. Checks every trim of a CRD that it applies."""
    async with guarded(installed) as admin:
        yield admin


@pytest.fixture(scope="session")
def breakable_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One control plane with crdkeeper installed for all tests that break one."""
    with own_plane(request, tmp_path_factory) as plane:
        yield plane


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of two API servers with crdkeeper installed; who pauses one resumes it."""
    with own_plane(request, tmp_path_factory, api_servers=2) as plane:
        yield plane


@pytest.fixture
def breakable(request: pytest.FixtureRequest, breakable_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane whose programs a test may pause, kill and restart; repaired for the next test."""
    plane = breakable_plane
    request.node.stash.setdefault(LOGS, []).append(plane.logs)
    servers = [each.pid for each in plane.api_servers]
    yield plane
    for process in (plane.etcd_process, *plane.api_servers):
        if process.running:
            process.resume()
        else:
            process.start()
        process.wait_ready()
    if plane.controller_manager and servers != [each.pid for each in plane.api_servers]:
        plane.controller_manager.restart()  # by itself it waits half a minute before it tries again


@pytest.fixture
async def breakable_admin(breakable: ControlPlane) -> AsyncIterator[Admin]:
    """The admin of that control plane. Checks every trim of a CRD that it applies."""
    async with guarded(breakable) as admin:
        yield admin
