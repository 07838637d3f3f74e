"""One API server: it stores at the version that it believes to be the storage version.

It learns of a change of the CRD through its watch, within `Physics.lag` seconds while it is awake. A request
continues with what the server knew when it began, for up to `Physics.request_timeout` seconds. A frozen
server does nothing at all; when it wakes, requests over their time limit are aborted, and all others, and new
ones, are served before its watch has caught up. Reads are consistent: they read etcd.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import parse_qs

import orjson

from crdkeeper.cluster.transport.client import Answer
from tests.property.simulation.etcd import VERSIONS, Etcd, Key, Stored
from tests.virtualtime import now

GROUP, PLURAL = "example.com", "things"
CRD = f"{PLURAL}.{GROUP}"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
_MIGRATIONS = "/apis/crdkeeper.dev/v1alpha1/storagemigrations"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_OTHER_MIGRATORS = ("/apis/storagemigration.k8s.io", "/apis/migration.k8s.io")
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Physics:
    """The simulation's constants, in seconds.

    The protocol relies on two things: lag + request_timeout < settle, and that a running server keeps running
    for at least `lag` seconds.
    """

    lag: float = 2.0
    wake_lag: float = 0.5
    request_timeout: float = 16.0
    settle: int = 20
    lease_period: float = 10.0
    page: int = 3
    """Objects per page at most, whatever a client requests."""
    writers: bool = True
    """Whether anyone but the operators writes in the background."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How the API server refuses to write an object."""

    code: int
    reason: str
    message: str
    kind: str = ""
    """If set, the answer has details that name an object of this kind, with the name of the refused one."""


def error(code: int, reason: str, message: str, **more: Any) -> Answer:
    """A metav1.Status."""
    return _json(code, {"kind": "Status", "code": code, "reason": reason, "message": message, **more})


def timestamp(seconds: float) -> str:
    """As metav1.Time: whole seconds, rounded down."""
    return (EPOCH + timedelta(seconds=int(seconds))).isoformat()


class Server:
    """One process. `refusal` says whether admission refuses to write an object."""

    def __init__(
        self,
        name: str,
        etcd: Etcd,
        physics: Physics,
        random: Random,
        refusal: Callable[[Key], Refusal | None],
        snapshots: dict[int, dict[Key, int]],
    ) -> None:
        self.name = name
        self.view = etcd.definition
        self._etcd = etcd
        self._physics = physics
        self._random = random
        self._refusal = refusal
        self._snapshots = snapshots
        self._awake = asyncio.Event()
        self._awake.set()
        self._wakes = 0
        self._awake_since = now()

    @property
    def frozen(self) -> bool:
        return not self._awake.is_set()

    async def freeze(self) -> bool:
        """Stop, once it has run for long enough; False if it is already frozen."""
        left = self._awake_since + self._physics.lag - now()
        if left > 0:
            await asyncio.sleep(left)
            return await self.freeze()
        if self.frozen:
            return False
        self._etcd.note(f"{self.name} freezes")
        self._awake.clear()
        return True

    def wake(self) -> None:
        if self.frozen:
            self._etcd.note(f"{self.name} wakes")
            self._wakes += 1
            self._awake_since = now()
            self._awake.set()

    async def watch(self) -> None:
        """Follow the CRD, with a delay."""
        while True:
            if self.view is self._etcd.definition:
                await self._etcd.changed.wait()
            wakes = self._wakes
            await self._pause(self._random.uniform(0, self._physics.lag))
            while wakes != self._wakes:
                wakes = self._wakes
                await self._pause(self._random.uniform(0, self._physics.wake_lag))
            self.view = self._etcd.definition

    async def renew_lease(self) -> None:
        """Renew the Lease: at startup, then periodically."""
        self._etcd.renew(self.name)
        await self._pause(self._random.uniform(0, self._physics.lease_period))
        while True:
            self._etcd.renew(self.name)
            await self._pause(self._physics.lease_period)

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await asyncio.sleep(seconds)
        if self.frozen:
            await self._awake.wait()

    async def handle(self, method: str, path: str, content: bytes | None, seconds: float) -> Answer:
        """Answer one of our requests, which takes `seconds` here."""
        await self._pause(0)
        address, _, query = path.partition("?")
        body = orjson.loads(content) if content else {}
        if f"/{PLURAL}" in address and address.startswith(f"/apis/{GROUP}/"):
            return await self._custom_resource(method, address, parse_qs(query), body, seconds)
        await self._pause(seconds)
        if address.startswith("/apis/" + GROUP):
            return self._discover(address.removeprefix("/apis/" + GROUP))
        if address == _LEASES:
            return _json(200, {"items": [self._lease(each) for each in self._etcd.leases]})
        if address.startswith(DEFINITION):
            return self._read_definition() if method == "GET" else self._trim(body)
        if address in _OTHER_MIGRATORS:
            return Answer(404, b"404 page not found\n")
        assert address.startswith(_MIGRATIONS), address
        return self._migration(method, address.removeprefix(_MIGRATIONS).lstrip("/"), body)

    def _discover(self, version: str) -> Answer:
        if self.view is None:
            return Answer(404, b"404 page not found\n")
        if version:
            thing = {"name": PLURAL, "kind": "Thing", "namespaced": True, "storageVersionHash": "hash"}
            return _json(200, {"resources": [thing]})
        versions = [{"version": each} for each in VERSIONS]
        return _json(200, {"versions": versions, "preferredVersion": versions[-1]})

    def _lease(self, server: str) -> dict[str, Any]:
        revision, renewed = self._etcd.leases[server]
        return {
            "metadata": {"name": server, "resourceVersion": str(revision)},
            "spec": {"renewTime": timestamp(renewed), "leaseDurationSeconds": 3600},
        }

    def _read_definition(self) -> Answer:
        seen = self._etcd.definition
        if seen is None:
            return error(404, "NotFound", f'customresourcedefinitions "{CRD}" not found')
        metadata: dict[str, Any] = {
            "name": CRD,
            "uid": seen.uid,
            "resourceVersion": str(seen.revision),
            "generation": seen.generation,
            "managedFields": [{"manager": "owner", "operation": "Update", "time": timestamp(seen.changed)}],
        }
        if seen.terminating:
            metadata["deletionTimestamp"] = timestamp(seen.changed)
        versions = [{"name": each, "served": True, "storage": each == seen.storage} for each in VERSIONS]
        return _json(
            200,
            {
                "metadata": metadata,
                "spec": {
                    "group": GROUP,
                    "scope": "Namespaced",
                    "names": {"plural": PLURAL, "kind": "Thing"},
                    "versions": versions,
                },
                "status": {
                    "storedVersions": seen.stored,
                    "conditions": [{"type": "Established", "status": "True"}],
                },
            },
        )

    def _trim(self, body: Mapping[str, Any]) -> Answer:
        current, wanted = self._etcd.definition, body["metadata"]
        if current is None:
            return error(404, "NotFound", f'customresourcedefinitions "{CRD}" not found')
        actual = {"uid": current.uid, "resourceVersion": str(current.revision)}
        if any(wanted.get(each, value) != value for each, value in actual.items()):
            return error(409, "Conflict", "the object has been modified")
        keep = body["status"]["storedVersions"]
        if current.storage not in keep:
            return error(422, "Invalid", "status.storedVersions: must have the storage version")
        self._etcd.trim(keep, ours=True)
        return self._read_definition()

    def _migration(self, method: str, name: str, body: dict[str, Any]) -> Answer:
        stored, name = self._etcd.migrations, name.removesuffix("/status")
        if method == "GET" and not name:
            return _json(200, {"metadata": {}, "items": list(stored.values())})
        if method == "POST":
            name = body["metadata"]["name"]
            if name in stored:
                return error(409, "AlreadyExists", f'storagemigrations "{name}" already exists')
            body["metadata"] |= {"uid": self._etcd.next_uid(), "generation": 1}
            stored[name] = self._versioned(body)
            return _json(201, stored[name])
        if name not in stored:
            return error(404, "NotFound", f'storagemigrations "{name}" not found')
        if method == "PATCH":
            wanted, current = body["metadata"], stored[name]["metadata"]
            if any(wanted.get(each, current[each]) != current[each] for each in ("uid", "resourceVersion")):
                return error(409, "Conflict", "the object has been modified")
            if stored[name].get("status") != body["status"]:
                stored[name] = self._versioned({**stored[name], "status": body["status"]})
                self._reported(body["status"])
        return _json(200, stored[name])

    def _versioned(self, body: dict[str, Any]) -> dict[str, Any]:
        version = str(self._etcd.next_revision())
        return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}

    def _reported(self, status: Mapping[str, Any]) -> None:
        for each in status["conditions"]:
            if (each["type"], each["status"], each["reason"]) == ("Succeeded", "True", "Migrated"):
                self._etcd.proved(status["target"]["uid"], status["target"]["generation"])

    async def _custom_resource(
        self,
        method: str,
        address: str,
        query: Mapping[str, list[str]],
        body: Mapping[str, Any],
        seconds: float,
    ) -> Answer:
        if self.view is None:
            return Answer(404, b"404 page not found\n")
        *_, namespace, _, name = ("", *address.split("/"))
        if address.endswith(f"/{PLURAL}"):
            await self._pause(seconds)
            return self._list(query.get("continue", [""])[0], int(query["limit"][0]))
        key = (namespace, name)
        if method == "PATCH":
            return await self.write(key, "rewrite", seconds, expected=body["metadata"]["resourceVersion"])
        await self._pause(seconds)
        found = self._etcd.objects.get(key)
        return _not_found(key) if found is None else _json(200, _object(key, found.revision))

    def _list(self, token: str, limit: int) -> Answer:
        revision, _, after = token.partition("~") if token else (str(self._etcd.revision), "", "")
        if not token or revision == "now":
            revision = str(self._etcd.revision)
            listed = {key: each.revision for key, each in self._etcd.objects.items()}
        elif int(revision) in self._snapshots:
            listed = self._snapshots[int(revision)]
        else:
            offered = {"metadata": {"continue": f"now~{after}"}} if self._random.random() < 0.5 else {}
            return error(410, "Expired", "The provided continue parameter is too old", **offered)
        rest = sorted((key for key in listed if "/".join(key) > after), key="/".join)
        shown = rest[: min(limit, self._physics.page)]
        metadata: dict[str, Any] = {"resourceVersion": revision}
        if len(shown) < len(rest):
            self._snapshots[int(revision)] = listed
            metadata["continue"] = f"{revision}~{'/'.join(shown[-1])}"
            metadata["remainingItemCount"] = len(rest) - len(shown)
        items = [_object(key, listed[key]) for key in shown]
        return _json(200, {"metadata": metadata, "items": items})

    async def write(self, key: Key, verb: str, seconds: float, *, expected: str = "") -> Answer:
        """Create, update, rewrite or delete an object in `seconds`, with the knowledge at the beginning."""
        await self._pause(0)
        view, began = self.view, now()
        if view is None:
            return Answer(404, b"404 page not found\n")
        await self._pause(seconds)
        if now() - began > self._physics.request_timeout:
            return error(504, "Timeout", "Timeout: request did not complete within requested timeout")
        old, refusal = self._etcd.objects.get(key), self._refusal(key)
        if (verb == "create") != (old is None):
            return _not_found(key) if old is None else error(409, "AlreadyExists", "already exists")
        if expected and old is not None and expected != str(old.revision):
            return error(409, "Conflict", "the object has been modified; please apply your changes")
        if refusal is not None and verb != "delete":
            details = {"kind": refusal.kind, "name": key[1]} if refusal.kind else None
            return error(refusal.code, refusal.reason, refusal.message, details=details)
        if verb == "create" and view.terminating:
            return error(405, "MethodNotAllowed", "create not allowed while definition is terminating")
        if verb == "delete":
            self._etcd.delete(key)
            return _json(200, {})
        return _json(200, _object(key, self._store(key, verb, view.storage, old).revision))

    def _store(self, key: Key, verb: str, version: str, old: Stored | None) -> Stored:
        content = 0 if old is None else old.content + (verb == "update")
        if old is not None and (old.version, old.content) == (version, content):
            return old
        return self._etcd.put(key, version, content, f"{verb} through {self.name}")


def _json(code: int, body: Any) -> Answer:
    return Answer(code, orjson.dumps(body))


def _object(key: Key, revision: int) -> dict[str, Any]:
    metadata = {"namespace": key[0], "name": key[1], "resourceVersion": str(revision)}
    return {"kind": "PartialObjectMetadata", "metadata": metadata}


def _not_found(key: Key) -> Answer:
    details = {"name": key[1], "group": GROUP, "kind": PLURAL}
    return error(404, "NotFound", f'{PLURAL}.{GROUP} "{key[1]}" not found', details=details)
