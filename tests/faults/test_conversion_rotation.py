"""The operator rotates its own CA at normal speed, while it is killed and replicas are stopped, under load.

That takes a quarter of an hour with the times of real clusters: only with CRDKEEPER_FAULT_SECONDS=900 or
more. test_conversion_under_load.py does the same with shorter times.
"""

import asyncio
import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crdkeeper.cluster.certificates.issuing import certificates_in, fingerprint
from crdkeeper.cluster.certificates.secrets import CA_SECRET, TLS_SECRET
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import Scene, until
from tests.cluster.harness import NAMESPACE, Operator
from tests.controlplane.cluster import Cluster
from tests.controlplane.ports import Ports
from tests.faults.balancer import Balancer
from tests.faults.conversionload import Background, Load
from tests.faults.webhookreplicas import Replica

SECONDS: Final = float(os.environ.get("CRDKEEPER_FAULT_SECONDS", "0"))
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEAST: Final = 900

pytestmark = [
    pytest.mark.skipif(
        LEAST > SECONDS, reason=f"takes a quarter of an hour: CRDKEEPER_FAULT_SECONDS={LEAST}"
    ),
    pytest.mark.timeout(2 * SECONDS + 300),
]


@pytest.fixture
def scene(installed: Cluster, group: str) -> Iterator[Scene]:
    scene = Scene(installed, group)
    yield scene
    scene.remove()


def trusted(scene: Scene) -> list[str]:
    """The CAs in the CRD's caBundle."""
    config = scene.conversion()["webhook"]["clientConfig"]
    return [fingerprint(each) for each in certificates_in(base64.b64decode(config["caBundle"]))]


def test_the_operator_changes_its_authority_and_no_request_fails(scene: Scene, tmp_path: Path) -> None:
    plane, ports, random = scene.plane, Ports(), Random(1)
    account = plane.service_account_kubeconfig(NAMESPACE, "crdkeeper-webhook")
    replicas = [
        Replica(each, tmp_path, {"kubeconfig": str(account)}, drain_seconds=95) for each in ("a", "b")
    ]
    balancer = Balancer(ports.take(), [each.backend for each in replicas])
    operator = Operator(plane, flags={"webhook-url": f"https://127.0.0.1:{balancer.port}"})
    client = Client(Connection(plane.kubeconfig))
    load = Load(client, scene.group)
    with Background() as background:
        run = background.run
        run(client.__aenter__())
        run(balancer.start())
        for each in replicas:
            mounting = each.mount(client, f"{SECRETS}/{TLS_SECRET}")
            asyncio.run_coroutine_threadsafe(mounting, background.loop)
        try:
            operator.start()
            scene.convert(RULES)
            until(lambda: all(each.volume.file("tls.key").exists() for each in replicas))
            for each in replicas:
                each.process.start()
            scene.ready()
            (old,) = trusted(scene)
            run(load.start())
            run(client.request("DELETE", f"{SECRETS}/{CA_SECRET}"))
            kills, seen = 0, [[old]]
            end = time.monotonic() + 2 * SECONDS
            while not (len(seen[-1]) == 1 and seen[-1] != [old]):
                assert time.monotonic() < end, seen
                if random.random() < 0.5:
                    operator.kill()
                    operator.start()
                    kills += 1
                else:
                    replica = random.choice(replicas)
                    replica.stop()
                    replica.process.start()
                    background.until(lambda replica=replica: replica.backend.ready)  # type: ignore[misc]
                pause = time.monotonic() + random.uniform(5, 150)
                while time.monotonic() < pause:
                    if (now := trusted(scene)) != seen[-1]:
                        seen.append(now)
                    time.sleep(0.5)
            run(load.stop())
            print(json.dumps({"answered": load.answered, "kills": kills, "bundles": seen}))
            assert load.failures == []
            assert [len(each) for each in seen] == [1, 2, 1]
        finally:
            operator.close()
            for each in replicas:
                each.close()
            run(balancer.close())
            run(client.__aexit__(None, None, None))
            ports.close()
