"""A cluster in virtual time that runs the real `ServingCertificate`, with API servers and kubelets.

Everything is as slow as `Times` allows: an API server sees a CRD's change up to `settle` later, a replica
serves a new certificate up to `spread` later. Each API server must always trust each replica.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

from cryptography import x509

from crdkeeper.cluster.certificates.issuing import anchor_of, certificates_in, fingerprint, key_fits
from crdkeeper.cluster.certificates.secrets import CA_SECRET, LABEL, OURS, TLS_SECRET
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.versionconversion.servingcertificate import ServingCertificate
from crdkeeper.core.certificates.times import Times
from tests import virtualtime

NAMES = ("webhook.ns.svc",)
TIMES = Times(
    authority=timedelta(hours=10),
    serving=timedelta(hours=2),
    settle=timedelta(seconds=60),
    spread=timedelta(seconds=600),
    look=timedelta(seconds=300),
)
SETTLE, SPREAD = TIMES.settle.total_seconds(), TIMES.spread.total_seconds()
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return BEGIN + timedelta(seconds=virtualtime.now())


class Untrusted(AssertionError):
    """An API server would have refused a replica."""


@dataclass
class Secrets:
    """The API for the Secrets, with resourceVersions, refusals, and lost answers."""

    random: Random
    faulty: float = 0.0
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    _version: int = 0

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **_: Any
    ) -> dict[str, Any]:
        await asyncio.sleep(self.random.uniform(0, 1))
        self._fault(lost=False)
        answer = self._answer(method, path.partition("?")[0].rpartition("/")[2], body)
        self._fault(lost=True)
        await asyncio.sleep(self.random.uniform(0, 1))
        return answer

    def now(self) -> datetime:
        return now()

    def _fault(self, *, lost: bool) -> None:
        if self.random.random() < self.faulty:
            raise Unreachable("lost") if lost else ApiError(self.random.choice((403, 409, 500)), {})

    def _answer(self, method: str, name: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        if method == "GET":
            if name not in self.objects:
                raise ApiError(404, {})
            return self.objects[name]
        assert body is not None
        name = body["metadata"]["name"]
        if method == "POST" and name in self.objects:
            raise ApiError(409, {})
        if method == "PUT":
            if name not in self.objects:
                raise ApiError(404, {})
            version = self.objects[name]["metadata"]["resourceVersion"]
            if body["metadata"]["resourceVersion"] != version:
                raise ApiError(409, {})
        self._version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self._version)}
        self.objects[name] = {**body, "metadata": metadata}
        self.writes.append(name)
        return self.objects[name]

    def data(self, name: str, key: str) -> bytes:
        held = self.objects.get(name, {}).get("data") or {}
        return base64.b64decode(held.get(key, ""))

    def damage(self, name: str, keys: Mapping[str, bytes]) -> None:
        """Write garbage to a Secret."""
        if name in self.objects:
            held = self.objects[name]
            data = held["data"] | {key: base64.b64encode(value).decode() for key, value in keys.items()}
            self._version += 1
            metadata = {**held["metadata"], "resourceVersion": str(self._version)}
            self.objects[name] = {**held, "metadata": metadata, "data": data}


class World:
    """The cluster. `served` and `anchors` collect the certificates that replicas served, and their CAs."""

    def __init__(self, seed: int, *, faulty: float = 0.0) -> None:
        self.random = Random(seed)
        self.secrets = Secrets(self.random, faulty)
        self.definitions: dict[str, str | None] = {"a": None, "b": None}
        self.api_servers: list[dict[str, str]] = [{}, {}]
        self.replicas: list[x509.Certificate | None] = [None, None]
        self.served: set[str] = set()
        self.anchors: set[str] = set()
        self.checks = 0
        self._seen_at: dict[tuple[int, str], float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._known: dict[tuple[str, str], bool] = {}

    def start(self) -> None:
        self._tasks += [asyncio.create_task(self._kubelet(number)) for number in range(len(self.replicas))]
        self._tasks.append(asyncio.create_task(self._minutes()))

    async def stop(self) -> None:
        self.raise_if_untrusted()
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def raise_if_untrusted(self) -> None:
        """Raises Untrusted if that ever happened."""
        for each in self._tasks:
            if each.done():
                each.result()

    def apply(self, name: str, bundle: str) -> None:
        """Give a CRD this caBundle, which each API server sees later, but in order."""
        self.definitions[name] = bundle
        loop = asyncio.get_running_loop()
        for number in range(len(self.api_servers)):
            lag = self.random.choice((0.0, self.random.uniform(0, SETTLE - 1), SETTLE - 1))
            at = max(loop.time() + lag, self._seen_at.get((number, name), 0.0))
            self._seen_at[number, name] = at
            loop.call_at(at, self._saw, number, name, bundle)

    def _saw(self, number: int, name: str, bundle: str) -> None:
        self.api_servers[number][name] = bundle

    async def _kubelet(self, number: int) -> None:
        # Just before a change it may have read the old one, slowly, and the next read is slow again.
        while True:
            await asyncio.sleep(self.random.uniform(0, SPREAD * 0.5))
            pem, key = self.secrets.data(TLS_SECRET, "tls.crt"), self.secrets.data(TLS_SECRET, "tls.key")
            await asyncio.sleep(self.random.uniform(0, SPREAD * 0.24))
            found = certificates_in(pem)
            if found and key_fits(found[0], key):  # otherwise the webhook keeps the one it has
                self.replicas[number] = found[0]
                self.served.add(fingerprint(found[0]))

    async def _minutes(self) -> None:
        while True:
            await asyncio.sleep(5)
            self.check()

    def check(self) -> None:
        """Check that every API server trusts every replica for every CRD that it converts."""
        for server in self.api_servers:
            for name, bundle in server.items():
                for certificate in self.replicas:
                    if certificate is not None:
                        self.checks += 1
                        if not self._trusts(certificate, bundle):
                            raise Untrusted(f"at {virtualtime.now():.0f} s for {name}")

    def _trusts(self, certificate: x509.Certificate, bundle: str) -> bool:
        key = (fingerprint(certificate), bundle)
        if key not in self._known:
            anchor = anchor_of(certificate, [], certificates_in(bundle.encode()))
            self._known[key] = anchor is not None
            if anchor is not None:
                self.anchors.add(fingerprint(anchor))
        good = certificate.not_valid_before_utc <= now() < certificate.not_valid_after_utc
        return good and self._known[key]


class Leader:
    """One operator process: the certificates' controller, and one that writes the bundle to the CRDs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._changed = asyncio.Event()
        self.certificate = ServingCertificate(
            cast(Client, world.secrets),
            namespace="ns",
            names=NAMES,
            on_bundle=self._changed.set,
            trusted=self._trusted,
            times=TIMES,
        )
        self._tasks = [
            asyncio.create_task(self.certificate.run()),
            asyncio.create_task(self._bring()),
        ]

    def _trusted(self, bundle: str) -> bool:
        return all(each == bundle for each in self.world.definitions.values())

    async def _bring(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for name in self.world.definitions:
                await asyncio.sleep(self.world.random.uniform(0, 30))
                bundle = self.certificate.bundle
                if bundle is not None and self.world.definitions[name] != bundle:
                    self.world.apply(name, bundle)
                    self.certificate.wake()

    async def kill(self) -> None:
        for each in self._tasks:
            each.cancel()
        for each in self._tasks:
            with suppress(asyncio.CancelledError):
                await each


def foreign(data: Mapping[str, bytes], *, ours: bool = False) -> dict[str, Any]:
    """A Secret that someone else created."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {
            "name": TLS_SECRET,
            "resourceVersion": "0",
            "labels": {LABEL: OURS} if ours else {},
        },
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


DAMAGE: dict[str, Callable[[Secrets], object]] = {
    "CA deleted": lambda secrets: secrets.objects.pop(CA_SECRET, None),
    "CA key lost": lambda secrets: secrets.damage(CA_SECRET, {"ca.key": b"junk"}),
    "CA garbled": lambda secrets: secrets.damage(CA_SECRET, {"ca.crt": b"-----BEGIN CERTIFICATE-----\nx"}),
    "serving deleted": lambda secrets: secrets.objects.pop(TLS_SECRET, None),
    "serving key lost": lambda secrets: secrets.damage(TLS_SECRET, {"tls.key": b""}),
    "serving garbled": lambda secrets: secrets.damage(TLS_SECRET, {"tls.crt": b"junk"}),
    "bundle emptied": lambda secrets: secrets.damage(TLS_SECRET, {"ca.crt": b""}),
    "bundle with junk": lambda secrets: secrets.damage(
        TLS_SECRET, {"ca.crt": b"# mine\n" + secrets.data(TLS_SECRET, "ca.crt") + b"junk"}
    ),
}
