"""Clients of other teams that write while a migration runs, and what they remember of it.

Each counts what the API server has acknowledged: at the end every acknowledged write must be present.
"""

import asyncio
import random
from collections import Counter
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import APPLY_PATCH, Answer
from tests.cluster.harness import Admin, CustomKind, Version

COUNTERS = {
    "type": "object",
    "properties": {
        "engine": {"type": "string"},
        "total": {"type": "integer", "default": 0},
        "applied": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "x-kubernetes-preserve-unknown-fields": True,
}
"""A schema with one counter for all clients and one for each."""
GUEST = "guest-"
"""Prefix of the names of temporary objects."""


def counting(group: str) -> CustomKind:
    """A kind whose objects count."""
    return CustomKind(
        group, versions=(Version("v1", storage=True, spec=COUNTERS), Version("v2", spec=COUNTERS))
    )


class Writers:
    """Clients that change, create and delete objects of a kind at both of its versions, until stopped.

    They change the objects called `names`, and only create and delete others.
    """

    def __init__(self, admin: Admin, kind: CustomKind, names: list[str], *, seed: int) -> None:
        self._admin = admin
        self._kind = kind
        self._names = names
        self._dice = random.Random(seed)
        self._over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.updates: Counter[str] = Counter()
        """Acknowledged increments of `total`, by object."""
        self.applies: Counter[tuple[str, str]] = Counter()
        """Acknowledged increments of a client's own counter, by object and client."""
        self.present: set[str] = set()
        """Objects that were created and not deleted again."""

    def start(self) -> None:
        """Starts all clients."""
        work = [
            *(self._update() for _ in range(3)),
            *(self._apply(f"client-{number}") for number in range(3)),
            *(self._come_and_go(f"{GUEST}{number}") for number in range(2)),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    async def stop(self) -> None:
        """Lets each finish its last write; raises their exceptions."""
        self._over.set()
        await asyncio.gather(*self._tasks)

    async def check(self) -> None:
        """Fails if an acknowledged write is lost, or if anyone else has changed a spec."""
        listed = await self._admin.get(self._kind.path())
        found = {each["metadata"]["name"]: each for each in listed["items"]}
        assert {each for each in found if each.startswith(GUEST)} == self.present
        for name in found.keys() - self.present:
            spec = found[name]["spec"]
            applied = {client: n for (each, client), n in self.applies.items() if each == name}
            assert spec["total"] == self.updates[name], f"{name} lost updates"
            assert spec.get("applied", {}) == applied, f"{name} lost applied fields"
            writes = self.updates[name] + sum(applied.values())
            assert found[name]["metadata"]["generation"] == 1 + writes, f"{name} was changed by others"

    async def _update(self) -> None:
        """GET, then PUT with the resourceVersion that was read, like a controller."""
        while not self._over.is_set():
            name = self._dice.choice(self._names)
            path = self._path(name)
            body = await self._admin.get(path)
            body["spec"]["total"] += 1
            answer = await self._send("PUT", path, body)
            if answer.code == 200:
                self.updates[name] += 1

    async def _apply(self, client: str) -> None:
        """Server-side apply of its own field, alternating between the versions."""
        while not self._over.is_set():
            name = self._dice.choice(self._names)
            version = self._dice.choice(("v1", "v2"))
            body = {
                "apiVersion": self._kind.api_version(version),
                "kind": self._kind.kind,
                "spec": {"applied": {client: self.applies[name, client] + 1}},
            }
            path = f"{self._path(name, version)}?fieldManager={client}"
            answer = await self._send("PATCH", path, body, content_type=APPLY_PATCH)
            if answer.code == 200:
                self.applies[name, client] += 1

    async def _come_and_go(self, prefix: str) -> None:
        """Creates objects and deletes about every second one of them."""
        number = 0
        while not self._over.is_set():
            name, number = f"{prefix}-{number}", number + 1
            version = self._dice.choice(("v1", "v2"))
            body = self._kind.instance(name, version=version)
            answer = await self._send("POST", self._kind.path(version=version), body)
            if answer.code == 201:
                self.present.add(name)
            if self.present and self._dice.random() < 0.5:
                victim = self._dice.choice(sorted(each for each in self.present if each.startswith(prefix)))
                if (await self._send("DELETE", self._path(victim))).code == 200:
                    self.present.discard(victim)

    def _path(self, name: str, version: str | None = None) -> str:
        return self._kind.path(name, version=version or self._dice.choice(("v1", "v2")))

    async def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """One request. A conflict or a 429, as after a change of the CRD, does not count as a write."""
        content = None if body is None else orjson.dumps(body)
        answer = await self._admin.client.send(method, path, content=content, content_type=content_type)
        refused = answer.code == 409 or answer.retry_after is not None
        assert answer.code < 300 or refused, f"{method} {path}: {answer}"
        return answer
