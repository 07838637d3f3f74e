"""Control planes for the fault tests to break."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.harness import install
from tests.controlplane.fixtures import EXTERNAL
from tests.controlplane.plane import ControlPlane


@contextmanager
def own_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, *, api_servers: int = 1
) -> Iterator[ControlPlane]:
    """A control plane with crdkeeper installed that a fixture may keep for longer than one test."""
    if os.environ.get(EXTERNAL):
        pytest.skip(f"this test breaks its control plane: not done with {EXTERNAL}")
    request.getfixturevalue("control_plane_binaries")
    with ControlPlane(tmp_path_factory.mktemp("breakable"), api_servers=api_servers) as plane:
        install(plane)
        yield plane
