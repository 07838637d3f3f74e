"""Clusters as pytest fixtures: one for the whole session, and further ones for tests that need their own.

Load it with `pytest_plugins = ["tests.controlplane.fixtures"]` in `tests/conftest.py`.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.external import ExternalCluster
from tests.controlplane.plane import ControlPlane

EXTERNAL = "CRDKEEPER_TEST_KUBECONFIG"

# For a test: the log directories of the control planes that it started.
LOGS = pytest.StashKey[list[Path]]()


@pytest.fixture(scope="session")
def control_plane_binaries(request: pytest.FixtureRequest) -> None:
    """Builds the programs visibly: a first build takes minutes, which must not look like a hang."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with ExitStack() as stack:
        if capture is not None:
            stack.enter_context(capture.global_and_fixture_disabled())
        binaries.find()


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The session's cluster. Tests share it, so they use their own names and stop none of its programs."""
    directory = tmp_path_factory.mktemp("plane")
    external = os.environ.get(EXTERNAL)
    if external:
        yield ExternalCluster(Path(external), directory)
        return
    request.getfixturevalue("control_plane_binaries")
    with ControlPlane(directory) as own:
        yield own


@pytest.fixture
def start_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., ControlPlane]]:
    """Starts control planes for one test: `start_plane(api_servers=2)` has ControlPlane's arguments."""
    if os.environ.get(EXTERNAL):
        pytest.skip(f"this test starts a control plane of its own: not done with {EXTERNAL}")
    request.getfixturevalue("control_plane_binaries")
    with ExitStack() as planes:

        def start(**arguments: Any) -> ControlPlane:
            own = ControlPlane(tmp_path_factory.mktemp("plane"), **arguments)
            request.node.stash.setdefault(LOGS, []).append(own.logs)
            return planes.enter_context(own)

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the log directories of its control planes to the report of a failed test."""
    report = yield
    if report.failed:
        shared = getattr(item, "funcargs", {}).get("plane")
        logs = [*([shared.logs] if isinstance(shared, ControlPlane) else []), *item.stash.get(LOGS, [])]
        if logs:
            report.sections.append(("control plane logs", "\n".join(map(str, logs))))
    return report
