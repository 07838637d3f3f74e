"""A stage for each test of `crdkeeper rehearse`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.rehearsal.shadow import GROUP
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness.admission import closed_port
from tests.cluster.harness.waiting import eventually
from tests.cluster.rehearsal.scene import CRDS
from tests.cluster.rehearsal.stage import Stage, widgets
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


@pytest.fixture
async def waiting(stage: Stage) -> AsyncIterator[None]:
    """Rehearsals wait as long as they have a shadow: a webhook is down that would have to admit its objects.

    Otherwise one may be over before a test has seen its shadow, or has sent it a signal.
    """
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    name = f"waiting.{stage.group}"
    rule = {
        "apiGroups": [GROUP, stage.group],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["*"],
    }
    with closed_port() as port:
        webhook = {
            "name": name,
            "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
            "rules": [rule],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        await stage.client.request("POST", path, {"metadata": {"name": name}, "webhooks": [webhook]})
        widget = {**widgets(stage.group)[0], "metadata": {"name": "another"}}
        there = f"/apis/{stage.group}/v1/namespaces/default/widgets?dryRun=All"

        async def in_effect() -> bool:
            answer = await stage.client.send("POST", there, content=orjson.dumps(widget))
            return name in answer.content.decode()

        try:
            await eventually(in_effect, otherwise=lambda: f"{name} is not called")
            yield
        finally:
            await stage.client.send("DELETE", f"{path}/{name}")
