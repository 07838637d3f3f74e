"""A CRD, its objects and a StorageMigration on a fake API server, and runs of the real MigrationRun on them.

The fake answers at `Client.send`, below the client's own retries. It implements what a migration relies on:
growing revisions, writes that change nothing, preconditions. A test decides which request gets another
answer, and what happens at which request.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs

import orjson
import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.statusrecord import StatusRecord
from crdkeeper.cluster.transport.client import Answer, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.record import Announcement
from crdkeeper.operations.migration import run as run_module
from crdkeeper.operations.migration import sweep as sweep_module
from crdkeeper.operations.migration.run import MigrationRun, Patience
from tests import virtualtime
from tests.unit.builders import NAME, NOW, crd, migration
from tests.virtualtime import now

About = Literal[
    "definition",
    "revision",
    "trim",
    "list",
    "look",
    "rewrite",
    "get",
    "save",
    "rights",
    "leases",
    "others",
    "older",
    "discovery",
    "event",
    "delete",
]
"""The subject of a request: the CRD (its metadata alone), objects, the migration itself, other things."""
Trouble = Answer | Exception
UNREACHABLE = Unreachable("connection reset by peer")

_DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
_MIGRATION = "/apis/crdkeeper.dev/v1alpha1/storagemigrations/"
_EVENTS = "/apis/events.k8s.io/"
_OBJECTS = "/apis/example.com/"
_OTHERS = "/apis/storagemigration.k8s.io"
_OLDER = "/apis/migration.k8s.io"
_REQUEST_SECONDS = 0.01
PAGE = 4
"""Objects that it lists at once, whatever is asked for."""
_T = TypeVar("_T")


def refusal(code: int, reason: str = "", message: str = "", **details: str) -> Answer:
    """A metav1.Status."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message or f"It is {code}."}
    return Answer(code, orjson.dumps(body | ({"details": details} if details else {})))


class Cluster(Client):
    """The fake API server, and the client of everything that runs on it."""

    def __init__(self, *, objects: int = 10, made: StorageMigration | None = None, **changes: Any) -> None:
        super().__init__(Connection())
        self.revision = 1000
        self.definition: dict[str, Any] | None = crd(**changes)
        self.objects = {f"w{number}": ("v1", 10 + number) for number in range(objects)}
        """The version in which each object is stored, and its resourceVersion."""
        self.managers: dict[str, list[dict[str, Any]]] = {}
        """metadata.managedFields of objects that have any."""
        self.others: list[dict[str, Any]] = []
        """StorageVersionMigrations of kube-controller-manager."""
        self.older: list[dict[str, Any]] | None = None
        """Those of kube-storage-version-migrator; None if it is not installed."""
        self.troubles: defaultdict[About, deque[Trouble | None]] = defaultdict(deque)
        """What the next requests get instead of an answer; None lets one through."""
        self.lost: Counter[About] = Counter()
        """How many answers of the next requests get lost; the requests are executed."""
        self.happens: Callable[[About, int], None] = lambda about, nth: None
        """Called before the n-th request (from 1) about something is answered."""
        self.requests: Counter[About] = Counter()
        self.events: list[tuple[str, str]] = []
        """Type and reason of the Events that were sent."""
        self.migration: dict[str, Any] | None = (made or migration(settleSeconds=5)).to_object()
        self._write_migration({})

    def now(self) -> datetime:
        return NOW + timedelta(seconds=now())

    @property
    def stored(self) -> StorageMigration:
        """The migration as it is stored."""
        assert self.migration is not None
        return StorageMigration.model_validate(self.migration)

    @property
    def stored_versions(self) -> list[str]:
        assert self.definition is not None
        found: list[str] = self.definition["status"]["storedVersions"]
        return found

    def change_definition(self, **changes: Any) -> None:
        """Change the CRD's spec, or re-create it with another uid."""
        generation = self.definition["metadata"]["generation"] + 1 if self.definition else 1
        self.definition = crd(**{"generation": generation, "resourceVersion": self._next(), **changes})

    def change_spec(self, **spec: Any) -> StorageMigration:
        """Edit the migration; returns its new state."""
        assert self.migration is not None
        metadata = {**self.migration["metadata"], "generation": self.migration["metadata"]["generation"] + 1}
        self._write_migration({"metadata": metadata, "spec": {**self.migration["spec"], **spec}})
        return self.stored

    def annotate(self) -> None:
        """Write something to the migration that does not concern its run."""
        self._write_migration({})

    def touch(self, name: str) -> None:
        """Write an object at the storage version."""
        self.objects[name] = ("v2", int(self._next()))

    def _write_migration(self, fields: dict[str, Any]) -> None:
        assert self.migration is not None
        self.migration = {**self.migration, **fields}
        self.migration["metadata"] = {**self.migration["metadata"], "resourceVersion": self._next()}

    def _next(self) -> str:
        self.revision += 1
        return str(self.revision)

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
        address, _, query = path.partition("?")
        about = _about(method, address, accept)
        self.requests[about] += 1
        self.happens(about, self.requests[about])
        await asyncio.sleep(_REQUEST_SECONDS)
        if (troubles := self.troubles[about]) and (trouble := troubles.popleft()) is not None:
            if isinstance(trouble, Exception):
                raise trouble
            return trouble
        answer = self._answer(about, address, parse_qs(query), orjson.loads(content) if content else {})
        if self.lost[about]:
            self.lost[about] -= 1
            raise UNREACHABLE
        return answer

    def _answer(self, about: About, address: str, query: dict[str, list[str]], body: Any) -> Answer:
        name = address.rpartition("/")[2]
        match about:
            case "definition" | "revision":
                return _json(self.definition) if self.definition else refusal(404, "NotFound")
            case "list":
                return self._list(int(query.get("continue", ["0"])[0]))
            case "look":
                return self._object(name) if name in self.objects else refusal(404, "NotFound", name=name)
            case "rewrite":
                return self._rewrite(name, body["metadata"]["resourceVersion"], dry_run="dryRun" in query)
            case "get":
                return _json(self.migration) if self.migration else refusal(404, "NotFound")
            case "save":
                return self._save(body)
            case "trim":
                return self._trim(body)
            case "discovery":
                return refusal(404, message="404 page not found")
            case "event":
                self.events.append((body["type"], body["reason"]))
                return _json(body)
            case "delete":
                return self._delete(body)
            case "rights":
                return _json({"status": {"allowed": True}})
            case "leases":
                return _json({"items": []})
            case "others":
                version = {"groupVersion": "storagemigration.k8s.io/v1"}
                return _json({"preferredVersion": version, "metadata": {}, "items": self.others})
            case "older":
                if self.older is None:
                    return refusal(404, message="404 page not found")
                version = {"groupVersion": "migration.k8s.io/v1alpha1"}
                return _json({"preferredVersion": version, "metadata": {}, "items": self.older})

    def _delete(self, body: dict[str, Any]) -> Answer:
        if self.migration is None or self.migration["metadata"]["uid"] != body["preconditions"]["uid"]:
            return refusal(409, "Conflict")
        self.migration = None
        return _json({})

    def _list(self, start: int) -> Answer:
        names = sorted(self.objects)
        shown = names[start : start + PAGE]
        more = {"continue": str(start + PAGE)} if start + PAGE < len(names) else {}
        left = len(names) - start - len(shown)
        metadata = {"resourceVersion": str(self.revision), "remainingItemCount": left, **more}
        return _json({"metadata": metadata, "items": [self._metadata(each) for each in shown]})

    def _metadata(self, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "resourceVersion": str(self.objects[name][1])}
        if name in self.managers:
            metadata["managedFields"] = self.managers[name]
        return {"kind": "PartialObjectMetadata", "metadata": metadata}

    def _object(self, name: str) -> Answer:
        return _json(self._metadata(name))

    def _rewrite(self, name: str, expected: str, *, dry_run: bool) -> Answer:
        if name not in self.objects:
            return refusal(404, "NotFound", name=name)
        version, revision = self.objects[name]
        if str(revision) != expected:
            return refusal(409, "Conflict")
        assert self.definition is not None
        storage = next(each["name"] for each in self.definition["spec"]["versions"] if each["storage"])
        if version != storage and not dry_run:
            self.objects[name] = (storage, int(self._next()))
        return self._object(name)

    def _save(self, body: dict[str, Any]) -> Answer:
        if self.migration is None:
            return refusal(404, "NotFound")
        wanted, found = body["metadata"], self.migration["metadata"]
        if any(wanted[each] != found[each] for each in ("uid", "resourceVersion")):
            return refusal(409, "Conflict")
        self._write_migration({"status": body["status"]})
        return _json(self.migration)

    def _trim(self, body: dict[str, Any]) -> Answer:
        if self.definition is None:
            return refusal(404, "NotFound")
        found = self.definition["metadata"]
        if any(found[each] != value for each, value in body["metadata"].items()):
            return refusal(409, "Conflict")
        self.definition["metadata"] = {**found, "resourceVersion": self._next()}
        self.definition["status"]["storedVersions"] = body["status"]["storedVersions"]
        return _json(self.definition)


class Process:
    """One run, as the operator would start it for what is stored."""

    def __init__(self, cluster: Cluster, *, patience: Patience = lambda hold: True) -> None:
        self.cluster = cluster
        self.announced: list[Announcement] = []
        stored = cluster.stored
        self.run = MigrationRun(
            cluster,
            stored,
            save=StatusRecord(cluster, stored).save,
            announce=self._announce,
            observer=lambda outcome, code, seconds: None,
            slots=asyncio.Semaphore(1),
            patience=patience,
        )
        self.task = asyncio.create_task(self.run.run())

    async def _announce(self, _: StorageMigration, announcements: Sequence[Announcement]) -> None:
        self.announced += announcements

    @property
    def reasons(self) -> list[str]:
        """The reasons that were announced, in order."""
        return [each.reason for each in self.announced]

    async def end(self, seconds: float = 3600.0) -> StorageMigration:
        """Wait for the run to end; returns the stored migration."""
        async with asyncio.timeout(seconds):
            await self.task
        return self.cluster.stored

    async def until(self, type_: str, reason: str, seconds: float = 3600.0) -> StorageMigration:
        """The stored migration, as soon as a condition has that reason."""
        async with asyncio.timeout(seconds):
            while True:
                found = find_condition(self.cluster.stored.status.conditions, type_)
                if found is not None and found.reason == reason:
                    return self.cluster.stored
                assert not self.task.done(), f"it ended without {type_} {reason}"
                await asyncio.sleep(0.05)


def play(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a test in virtual time."""
    with pytest.MonkeyPatch.context() as patch:
        clock = SimpleNamespace(monotonic=now)
        patch.setattr(run_module, "time", clock)
        patch.setattr(sweep_module, "time", clock)
        return virtualtime.run(main())


async def finish(cluster: Cluster) -> StorageMigration:
    """Complete the migration with a new process."""
    return await Process(cluster).end()


def assert_migrated(cluster: Cluster) -> None:
    """All objects are stored at v2, and both the CRD and each condition of the status say so."""
    assert {version for version, _ in cluster.objects.values()} <= {"v2"}
    assert cluster.stored_versions == ["v2"]
    status = cluster.stored.status
    reported = {each.type: each.status for each in status.conditions if each.type != "Suspended"}
    assert reported == dict.fromkeys(reported, "True"), status.conditions
    assert {
        "Resolved",
        "Settled",
        "Rewritten",
        "Verified",
        "Trimmed",
        "Succeeded",
        "Ready",
    } <= reported.keys()
    assert status.completion_time is not None
    assert status.quarantine.objects == []


def _about(method: str, address: str, accept: str) -> About:
    if address.startswith(_DEFINITION):
        if method == "PATCH":
            return "trim"
        return "revision" if "PartialObjectMetadata" in accept else "definition"
    if address.startswith(_EVENTS):
        return "event"
    if address.startswith(_MIGRATION):
        if method == "DELETE":
            return "delete"
        return "save" if method == "PATCH" else "get"
    if address == "/apis/example.com":
        return "discovery"
    if address.startswith(_OBJECTS):
        if method == "PATCH":
            return "rewrite"
        return "list" if address.endswith("/widgets") else "look"
    if address.startswith(_OTHERS):
        return "others"
    if address.startswith(_OLDER):
        return "older"
    return "rights" if "selfsubjectaccessreviews" in address else "leases"


def _json(body: Any) -> Answer:
    return Answer(200, orjson.dumps(body))
