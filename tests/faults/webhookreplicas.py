"""Replicas of `crdkeeper webhook` that serve the CronTabs from files, mounted like a kubelet does."""

import asyncio
import base64
import itertools
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import yaml

from crdkeeper.cluster.transport.client import ApiError, Client
from tests.cluster.conversion.rules import RULES, crontab_definition, rules_of
from tests.cluster.harness.preloaded import crdkeeper
from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers
from tests.faults.balancer import Backend
from tests.unit.webhook.processes.replica import children_in

_SYNC_SECONDS: Final = 0.2
GRACE: Final = 120.0


class Volume:
    """Files that change atomically, like a kubelet's: a link to a new directory replaces the previous one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._numbers = itertools.count()
        self._content: dict[str, bytes] = {}
        directory.mkdir(parents=True)

    def file(self, name: str) -> Path:
        return self.directory / name

    def write(self, content: Mapping[str, bytes]) -> None:
        """Replace all files by these."""
        if content == self._content:
            return
        self._content = dict(content)
        folder = self.directory / f"..{next(self._numbers)}"
        folder.mkdir()
        for name, each in content.items():
            (folder / name).write_bytes(each)
        link = self.directory / "..new"
        link.symlink_to(folder.name)
        link.replace(self.directory / "..data")
        for name in content:
            if not self.file(name).is_symlink():
                self.file(name).symlink_to(f"..data/{name}")

    def write_secret(self, secret: Mapping[str, Any]) -> None:
        """Store the data of that Secret."""
        self.write({name: base64.b64decode(each) for name, each in (secret.get("data") or {}).items()})


class Replica:
    """One replica, with its own ports."""

    def __init__(
        self, name: str, directory: Path, source: Mapping[str, str], *, drain_seconds: float
    ) -> None:
        """`source` are the flags for the source of the rules."""
        self._ports = Ports()
        self._held = False
        self.volume = Volume(directory / f"tls-{name}")
        self.backend = Backend(self._ports.take(), self._ports.take())
        self.process = crdkeeper(
            f"webhook-{name}",
            {
                **source,
                "tls-cert-file": str(self.volume.file("tls.crt")),
                "tls-private-key-file": str(self.volume.file("tls.key")),
                "listen": f"127.0.0.1:{self.backend.port}",
                "probe-port": str(self.backend.probe_port),
                "drain-seconds": str(drain_seconds),
            },
            arguments=("webhook",),
            directory=directory,
            ready=partial(answers, self.backend.probe_port, "/readyz"),
        )

    async def mount(self, client: Client, secret: str) -> None:
        """Keep the volume in sync with that Secret, like a kubelet, until cancelled."""
        while True:
            with suppress(ApiError):
                found = await client.request("GET", secret)
                if not self._held:
                    self.volume.write_secret(found)
            await asyncio.sleep(_SYNC_SECONDS)

    async def hold(self, content: Mapping[str, bytes]) -> None:
        """Keep these files in the volume until `release`. On the event loop of `mount`."""
        self._held = True
        self.volume.write(content)

    async def release(self) -> None:
        """Follow the Secret again."""
        self._held = False

    def children(self) -> dict[str, int]:
        """The ids of the processes by their names."""
        return children_in(self.process.log.read_text())

    def probe(self, path: str) -> bytes:
        """The answer of the port of the probes; empty without one."""
        try:
            with urlopen(f"http://127.0.0.1:{self.backend.probe_port}{path}", timeout=10) as answer:
                return bytes(answer.read())
        except OSError:
            return b""

    def stop(self) -> None:
        """SIGTERM, and a clean end: nothing had to be killed."""
        self.process.stop(GRACE)
        assert self.process.exit_status == 0, self.process.exit_status

    def close(self) -> None:
        if self.process.running:
            self.process.kill()
        self._ports.close()


def write_rules(directory: Path, group: str) -> Path:
    """A file with the rules and their CRD."""
    definition = crontab_definition(group, storage="v1", client_config={"url": "https://example.com/"})
    path = directory / "rules.yaml"
    documents = json.loads(json.dumps([definition, rules_of(group, RULES)]))  # without YAML's anchors
    path.write_text(yaml.safe_dump_all(documents))
    return path
