"""Replicas of the webhook stop, die and get new certificates under load. The operator is not running.

CRDKEEPER_FAULT_SECONDS makes each test run for that long, instead of for some seconds.
"""

import asyncio
import base64
import os
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from crdkeeper.cluster.certificates.secrets import CA_SECRET, TLS_SECRET
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.controllers.versionconversion.servingcertificate import ServingCertificate
from crdkeeper.core.certificates.times import Times
from tests.certificates import Authority
from tests.cluster.conversion.rules import crontab_definition
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster
from tests.controlplane.ports import Ports
from tests.faults.balancer import Balancer, until_ready
from tests.faults.conversionload import VERSIONS, Background, Load
from tests.faults.webhookreplicas import Replica, write_rules
from tests.unit.webhook.processes.replica import alive

SECONDS: Final = float(os.environ.get("CRDKEEPER_FAULT_SECONDS", "0"))
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Scene:
    """A CRD whose API server reaches two replicas through a balancer, and the load on it."""

    def __init__(
        self, plane: Cluster, directory: Path, group: str, background: Background, processes: int = 1
    ) -> None:
        self.plane, self.group, self.background = plane, group, background
        self.name = f"crontabs.{group}"
        rules = {"rules": str(write_rules(directory, group)), "processes": str(processes)}
        # One ends when a Service has noticed, and the machine may have stood still meanwhile; the other when
        # all clients have left.
        self.replicas = [
            Replica(name, directory, rules, drain_seconds=seconds) for name, seconds in (("a", 30), ("b", 95))
        ]
        self._ports = Ports()
        self.balancer = Balancer(self._ports.take(), [each.backend for each in self.replicas])
        self.client = Client(Connection(plane.kubeconfig))
        self.load = Load(self.client, group)

    def serve(self, bundle: str) -> None:
        """Start the replicas, which have their certificates, and define the CRD."""
        for each in self.replicas:
            each.process.start()
        for each in self.replicas:
            each.process.wait_ready()
        run = self.background.run
        run(self.client.__aenter__())
        run(self.balancer.start())
        run(until_ready([each.backend for each in self.replicas]))
        run(self.apply(bundle))
        self.plane.kubectl.wait_established(f"crd/{self.name}")
        self.background.until(self._served)
        run(self.load.start())

    def _served(self) -> bool:
        run = self.background.run
        return all(run(self.client.send("GET", self.load.path(each))).code == 200 for each in VERSIONS)

    async def apply(self, bundle: str) -> None:
        """Have the CRD trust that bundle."""
        config = {
            "url": f"https://127.0.0.1:{self.balancer.port}/convert/{self.name}",
            "caBundle": base64.b64encode(bundle.encode()).decode(),
        }
        definition = crontab_definition(self.group, storage="v1beta1", client_config=config)
        path = f"{CRDS}/{self.name}?fieldManager=test&force=true"
        await self.client.request("PATCH", path, definition, content_type=APPLY_PATCH)

    def report(self) -> dict[str, Any]:
        """The results of the load."""
        return {
            "answered": self.load.answered,
            "repeated": self.load.repeated,
            "failed": len(self.load.failures),
            "cut": sum(each.backend.cut for each in self.replicas),
            "refused": sum(each.backend.refused for each in self.replicas),
            "nowhere": self.balancer.nowhere,
            "connections": self.balancer.connections,
        }

    def close(self) -> None:
        run = self.background.run
        with suppress(Exception):
            run(self.load.stop())
        self.plane.kubectl("delete", "crd", self.name, "--timeout=30s", check=False)
        run(self.balancer.close())
        run(self.client.__aexit__(None, None, None))
        for each in self.replicas:
            each.close()
        self._ports.close()


@pytest.fixture
def scene(installed: Cluster, tmp_path: Path, group: str) -> Iterator[Scene]:
    with Background() as background:
        scene = Scene(installed, tmp_path, group, background)
        try:
            yield scene
        finally:
            scene.close()


def serve_with_one_certificate(scene: Scene) -> None:
    authority = Authority()
    issued = authority.issue()
    for each in scene.replicas:
        each.volume.write({"tls.crt": issued.certificate, "tls.key": issued.key})
    scene.serve(authority.pem.decode())


class Chance:
    """Selects the next replica, each at least once, and the number of answers until then."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._random = Random(seed)
        self._end = time.monotonic() + SECONDS
        self.count = 0

    def __iter__(self) -> Iterator[Replica]:
        load, replicas = self._scene.load, self._scene.replicas
        while self.count < len(replicas) or time.monotonic() < self._end:
            target = load.answered + self._random.randrange(20, 200)
            until(self._scene, lambda target=target: load.answered >= target)  # type: ignore[misc]
            yield replicas[self.count] if self.count < len(replicas) else self._random.choice(replicas)
            self.count += 1


def until(scene: Scene, holds: Callable[[], bool], seconds: float = 120.0) -> None:
    scene.background.until(holds, seconds)


def test_replicas_that_are_stopped_at_random_fail_no_request(scene: Scene) -> None:
    serve_with_one_certificate(scene)
    for replica in (chance := Chance(scene, 1)):
        replica.stop()
        replica.process.start()
        until(scene, partial(getattr, replica.backend, "ready"))
    scene.background.run(scene.load.stop())
    print(chance.count, "stops:", scene.report())
    assert scene.load.failures == []


def test_replicas_that_are_killed_at_random_fail_only_what_they_were_at(scene: Scene) -> None:
    """Go's HTTP client never repeats a POST that may have been read, and neither does the API server."""
    serve_with_one_certificate(scene)
    for replica in (chance := Chance(scene, 2)):
        replica.process.kill()
        until(scene, lambda backend=replica.backend: not backend.ready)  # type: ignore[misc]
        replica.process.start()
        until(scene, partial(getattr, replica.backend, "ready"))
    scene.background.run(scene.load.stop())
    report = scene.report()
    print(chance.count, "kills:", report)
    for failure in scene.load.failures:
        assert "conversion webhook for" in failure.message, failure
    assert report["failed"] <= report["cut"] + report["refused"], scene.load.failures


@pytest.fixture
def several(installed: Cluster, tmp_path: Path, group: str) -> Iterator[Scene]:
    """Replicas of two processes."""
    with Background() as background:
        scene = Scene(installed, tmp_path, group, background, processes=2)
        try:
            yield scene
        finally:
            scene.close()


def test_processes_of_a_replica_that_are_killed_fail_only_what_they_were_at(several: Scene) -> None:
    serve_with_one_certificate(several)
    load, replica = several.load, several.replicas[0]

    def more(answers: int = 100) -> None:
        target = load.answered + answers
        until(several, lambda: load.answered >= target)

    def complete() -> bool:
        return b"2 of 2 processes" in replica.probe("/readyz")

    until(several, complete)
    for name in ("keeper", "server 0", "server 1"):
        more()
        before = replica.children()
        os.kill(before[name], signal.SIGKILL)
        until(several, lambda name=name, before=before: replica.children()[name] != before[name])  # type: ignore[misc]
        until(several, complete)
        after = replica.children()
        assert {each for each in after if after[each] != before[each]} == {name}
        more()
        if name == "keeper":
            assert load.failures == [], "conversions go on without it"
    children = replica.children().values()
    replica.process.kill()
    until(several, lambda: not any(map(alive, children)))
    replica.process.start()
    until(several, complete)
    more()
    several.background.run(load.stop())
    report = several.report()
    print("kills:", report)
    for failure in load.failures:
        assert "conversion webhook for" in failure.message, failure
    assert report["failed"] <= report["cut"] + report["refused"], load.failures


TIMES: Final = Times(settle=timedelta(seconds=4), spread=timedelta(seconds=16), look=timedelta(seconds=5))


class Authorities:
    """Only the operator's certificate controller, and the volumes of the replicas."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        account = scene.plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
        self._client = Client(Connection(account))
        self._admin = Client(Connection(scene.plane.kubeconfig))
        self._changed = asyncio.Event()
        self._applied: list[tuple[float, str]] = []
        self.bundles: list[str] = []
        self.handshakes = 0
        self.refusals: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self._client.__aenter__()
        await self._admin.__aenter__()
        await self.forget()
        self.certificate = ServingCertificate(
            self._client,
            namespace=NAMESPACE,
            names=["127.0.0.1"],
            on_bundle=self._changed.set,
            trusted=lambda bundle: bundle == self._bundle(time.monotonic()),
            times=TIMES,
        )
        self._tasks = [
            asyncio.create_task(each)
            for each in (
                self.certificate.run(),
                self._bring(),
                *(each.mount(self._admin, f"{SECRETS}/{TLS_SECRET}") for each in self._scene.replicas),
                *map(self._shake_hands, self._scene.replicas),
            )
        ]

    def _bundle(self, at: float) -> str:
        """The CRD's bundle at that time."""
        return next((bundle for since, bundle in reversed(self._applied) if since <= at), "")

    async def _bring(self) -> None:
        """Like the controller for VersionConversions."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if bundle := self.certificate.bundle:
                if self.bundles:
                    await self._scene.apply(bundle)
                self.bundles.append(bundle)
                self._applied.append((time.monotonic(), bundle))
                self.certificate.wake()

    async def _shake_hands(self, replica: Replica) -> None:
        """New connections all the time, as from API servers that saw the CRD just now, or a while ago."""
        while True:
            await asyncio.sleep(0.05)
            if not replica.backend.ready:
                continue
            now = time.monotonic()
            for bundle in {self._bundle(now), self._bundle(now - 0.8 * TIMES.settle.total_seconds())} - {""}:
                context = verifying(ca_data=bundle)
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", replica.backend.port, ssl=context)
                except OSError as error:
                    # An attempt that took long may have been made with a bundle that is of the past by now.
                    now = time.monotonic()
                    if bundle in (self._bundle(now), self._bundle(now - 0.8 * TIMES.settle.total_seconds())):
                        self.refusals.append(f"{replica.process.name}: {error}")
                else:
                    self.handshakes += 1
                    writer.transport.abort()

    async def merge(self, name: str, data: dict[str, str]) -> None:
        await self._admin.request("PATCH", f"{SECRETS}/{name}", {"data": data}, content_type=MERGE_PATCH)

    async def forget(self, *names: str) -> None:
        for name in names or (CA_SECRET, TLS_SECRET):
            with suppress(ApiError):
                await self._admin.request("DELETE", f"{SECRETS}/{name}")

    async def close(self) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.forget()
        await self._client.__aexit__(None, None, None)
        await self._admin.__aexit__(None, None, None)


@pytest.fixture
def authorities(scene: Scene) -> Iterator[Authorities]:
    authorities = Authorities(scene)
    run = scene.background.run
    run(authorities.start())
    yield authorities
    run(authorities.close())


def served(scene: Scene) -> set[str]:
    """The certificates that the replicas present to new connections."""
    return {ssl.get_server_certificate(("127.0.0.1", each.backend.port)) for each in scene.replicas}


def refused(replica: Replica) -> int:
    """How often it reported that it cannot use the files of a new certificate."""
    return replica.process.log.read_text().count("new certificate cannot be used")


def test_certificates_change_and_no_request_fails(scene: Scene, authorities: Authorities) -> None:
    until(scene, lambda: all(each.volume.file("tls.crt").exists() for each in scene.replicas))
    scene.serve(authorities.bundles[0])
    run = scene.background.run
    end = time.monotonic() + SECONDS
    rotations = 0
    while not rotations or time.monotonic() < end:
        # A new CA: it enters the bundle, signs, and the old one is dropped.
        (before,) = served(scene)
        seen = len(authorities.bundles)
        run(authorities.forget(CA_SECRET))
        until(scene, lambda seen=seen: len(authorities.bundles) >= seen + 2)  # type: ignore[misc]
        both, new = authorities.bundles[seen:]
        assert (both.count("BEGIN"), both.startswith(new), new.count("BEGIN")) == (2, True, 1)
        until(scene, lambda before=before: before not in served(scene))  # type: ignore[misc]
        # The replicas get mismatched files, and then a new certificate from the same CA.
        (before,) = served(scene)
        junk = Authority().issue()
        for each in scene.replicas:
            run(each.hold({"tls.crt": junk.certificate, "tls.key": Authority().issue().key}))
        until(scene, lambda n=rotations + 1: all(refused(each) >= n for each in scene.replicas))  # type: ignore[misc]
        least = authorities.handshakes + 20
        until(scene, lambda least=least: authorities.handshakes >= least)  # type: ignore[misc]
        for each in scene.replicas:
            run(each.release())
        run(authorities.merge(TLS_SECRET, {"tls.key": base64.b64encode(junk.key).decode()}))
        until(scene, lambda before=before: before not in served(scene))  # type: ignore[misc]
        until(scene, lambda: len(served(scene)) == 1)
        rotations += 1
    run(scene.load.stop())
    print(rotations, "rotations:", scene.report(), authorities.handshakes)
    assert scene.load.failures == []
    assert authorities.refusals == []
    assert authorities.handshakes > 50
    assert authorities.certificate.problem == ""
