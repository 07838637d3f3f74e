"""A stage for each test of `crdkeeper rehearse`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.rehearsal.scene import CRDS
from tests.cluster.rehearsal.stage import Stage
from tests.controlplane.cluster import Cluster


@pytest.fixture
async def stage(
    plane: Cluster, shells: Callable[[Path], CommandLine], tmp_path: Path
) -> AsyncIterator[Stage]:
    async with Client(Connection(plane.kubeconfig)) as client:
        made = Stage(plane, client, shells(plane.kubeconfig), tmp_path)
        try:
            await made.set_up()
            yield made
        finally:
            for each in await made.shadows():
                await client.send("DELETE", f"{CRDS}/{each['metadata']['name']}")
            await made.scene.delete()
