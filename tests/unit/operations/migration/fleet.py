"""Many CRDs that need a migration on a fake API server, which counts what it is asked; in virtual time.

Like `scene`, the fake answers at `Client.send`. It has one API server, whose Lease is renewed every ten
seconds.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson

from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.request import Request
from crdkeeper.operations.migration.together import Attempt, Together
from tests.unit.builders import NOW, crd
from tests.unit.operations.migration.scene import play, refusal
from tests.virtualtime import now

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MIGRATIONS = "/apis/crdkeeper.dev/v1alpha1/storagemigrations"
_WRITE_SECONDS = 0.05


class Fleet(Client):
    """The fake API server, with as many CRDs `things.gN.example.com`, each with `objects` objects."""

    def __init__(self, number: int, objects: int = 2) -> None:
        super().__init__(Connection())
        self.groups = [f"g{each}.example.com" for each in range(number)]
        self.definitions = {f"things.{group}": _definition(group) for group in self.groups}
        self.objects = {group: {f"t{each}": 10 for each in range(objects)} for group in self.groups}
        self.migrations: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        """The groups of which nothing may be read."""
        self.revision = 1000
        self.sent: list[tuple[float, str, str]] = []
        """Time, method and path of each request."""
        self.written: list[str] = []
        """The group of each write of an object, in order of their beginnings."""
        self.writing: set[str] = set()
        self.beside: set[tuple[str, ...]] = set()
        """Groups whose objects were written at the same time."""

    @property
    def requests(self) -> list[Request]:
        """To migrate all of them."""
        return [Request(GroupResource(group=each, resource="things"), {}) for each in self.groups]

    def now(self) -> datetime:
        return NOW + timedelta(seconds=now())

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
    ) -> Answer:
        address = path.partition("?")[0]
        self.sent.append((now(), method, address))
        await asyncio.sleep(0.005)
        body = orjson.loads(content) if content else {}
        if "/things/" in address:
            return await self._write(address.split("/")[2], address.rpartition("/")[2])
        return self._answer(method, address, body)

    async def _write(self, group: str, name: str) -> Answer:
        self.written.append(group)
        self.writing.add(group)
        self.beside.add(tuple(sorted(self.writing)))
        await asyncio.sleep(_WRITE_SECONDS)
        self.writing.discard(group)
        if self.objects[group][name] < 1000:
            self.objects[group][name] = self._next()
        return _json(self._metadata(group, name))

    def _answer(self, method: str, address: str, body: dict[str, Any]) -> Answer:
        name = address.rpartition("/")[2]
        if address.startswith(CRDS):
            return self._of_definition(method, address.removeprefix(f"{CRDS}/").partition("/")[0], body)
        if address.startswith(MIGRATIONS):
            return self._of_migration(method, address.removeprefix(MIGRATIONS).strip("/"), body)
        if name == "things":
            group = address.split("/")[2]
            items = [self._metadata(group, each) for each in self.objects[group]]
            return _json({"metadata": {"resourceVersion": str(self._next())}, "items": items})
        if name == "leases":
            spec = {"renewTime": self.now().isoformat(), "leaseDurationSeconds": 3600}
            renewed = {"name": "apiserver-a", "resourceVersion": str(500 + int(now() / 10))}
            return _json({"items": [{"metadata": renewed, "spec": spec}]})
        if name == "selfsubjectaccessreviews":
            return _json({"status": {"allowed": True}})
        if name in self.refused:
            return refusal(403, "Forbidden", "You may not.")
        if address in ("/api", "/apis"):
            return _json({"items": []})
        return refusal(404, message="404 page not found")

    def _of_definition(self, method: str, name: str, body: dict[str, Any]) -> Answer:
        found = self.definitions.get(name)
        if name.partition(".")[2] in self.refused:
            return refusal(403, "Forbidden", "You may not.")
        if found is not None and method == "PATCH":
            found["status"]["storedVersions"] = body["status"]["storedVersions"]
        return _json(found) if found is not None else refusal(404, "NotFound", name=name)

    def _of_migration(self, method: str, name: str, body: dict[str, Any]) -> Answer:
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.migrations:
                return refusal(409, "AlreadyExists")
            self.migrations[name] = {**body, "metadata": {**body["metadata"], "uid": name, "generation": 1}}
        elif not name:
            return _json({"metadata": {}, "items": list(self.migrations.values())})
        name = name.partition("/")[0]
        if name not in self.migrations:
            return refusal(404, "NotFound", name=name)
        made = self.migrations[name]
        if method in ("PATCH", "POST"):
            made["metadata"]["resourceVersion"] = str(self._next())
            made["status"] = body.get("status", {})
        return _json(made)

    def _metadata(self, group: str, name: str) -> dict[str, Any]:
        metadata = {"name": name, "resourceVersion": str(self.objects[group][name])}
        return {"kind": "PartialObjectMetadata", "metadata": metadata}

    def _next(self) -> int:
        self.revision += 1
        return self.revision


def migrate(
    fleet: Fleet,
    requests: Sequence[Request] | None = None,
    *,
    watch: Callable[[StorageMigration], None] = lambda migration: None,
) -> tuple[list[Attempt], float]:
    """Migrate these, or all; returns how it ended, and the seconds that it took."""

    async def main() -> tuple[list[Attempt], float]:
        together = Together(
            fleet, requests or fleet.requests, watch, lambda request, text: None, lambda attempt: None
        )
        await together.run()
        return together.attempts, now()

    return play(main)


def _definition(group: str) -> dict[str, Any]:
    made = crd(name=f"things.{group}", uid=group)
    made["spec"].update(group=group, names={"plural": "things", "kind": "Thing"})
    return made


def _json(body: Any) -> Answer:
    return Answer(200, orjson.dumps(body))
