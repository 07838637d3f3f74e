"""Fixtures for the kinds of the composer: installed on the session's cluster, and left there."""

from collections.abc import AsyncIterator

import pytest

from crdkeeper.api.kinds import COMPOSITE_KINDS
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.cluster import Cluster


@pytest.fixture(scope="session")
def composite_kinds(plane: Cluster) -> Cluster:
    """The cluster with the kinds."""
    plane.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS.parent / 'crds' / 'composer'}")
    plane.kubectl.wait_established(*(f"crd/{kind.plural}.{GROUP}" for kind in COMPOSITE_KINDS))
    return plane


@pytest.fixture
async def kinds_client(composite_kinds: Cluster) -> AsyncIterator[Client]:
    """An admin's client of it."""
    async with Client(Connection(composite_kinds.kubeconfig)) as client:
        yield client
