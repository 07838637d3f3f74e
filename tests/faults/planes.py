"""Control planes for the fault tests to break, and an admin whose every trim is checked."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.cluster.harness import Admin, TrimGuard, install
from tests.controlplane.cluster import Cluster
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


@asynccontextmanager
async def guarded(cluster: Cluster) -> AsyncIterator[Admin]:
    """An admin, with a check of each trim of a CRD that it applies; cleans up after success.

    Its migrations settle for a second, unlike those of `tests.cluster`: here others write while the CRD
    changes.
    """
    with TrimGuard(cluster.etcd) as guard:
        async with Admin(cluster, on_definition=guard.add) as admin:
            yield admin
            try:
                guard.check()
            finally:
                await admin.clean_up()
