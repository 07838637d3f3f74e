"""An API server for the composer's unit tests, at the level of the client's `request`.

It does what the composer relies on: preconditions, finalizers, and CRDs that take their objects with them.
"""
# Long because it is one API server: its requests act on the same objects.

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, cast
from urllib.parse import parse_qs

import orjson

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, ApiError, Client, TooLarge
from crdkeeper.controllers.compositeresourcedefinition.controller import CompositeDefinitions
from crdkeeper.controllers.compositeresourcedefinition.metrics import CompositeMetrics
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.plan import FINALIZER
from crdkeeper.core.diagnosis.facts import seen_definition
from tests import virtualtime
from tests.unit.builders import NOW
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS
from tests.unit.core.composition.documents import document
from tests.unit.jsonpatch import patched

Json = Any
NAME = "databases.platform.example.com"
PATH = f"{OURS}/compositeresourcedefinitions/{NAME}"
CRD = f"{DEFINITIONS}/{NAME}"
ALL = "/apis/platform.example.com/v1/databases"
OBJECTS = "/apis/platform.example.com/v1/namespaces/default/databases"
COMPOSITIONS = f"{OURS}/compositions"
GOING = "2026-01-02T03:04:05Z"
DEFAULTS = {"scope": "Namespaced", "deletion": "Protect", "breakingChanges": "Refuse"}

Fault = Callable[[str, str], Awaitable[None]]
"""Called with the method and the path of a request before it has an effect; may raise."""


async def _none(_: str, __: str) -> None:
    """No fault."""


@dataclass
class Server:
    """The objects by path, and what happened to them."""

    state: ClusterState
    objects: dict[str, Json] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """All, as method and path with query, but those that are for a dry run."""
    dry_runs: list[tuple[str, str]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """The verbs to which the composer has no right, as an access review says."""
    lost: list[str] = field(default_factory=list)
    """Composites that were deleted together with their CRD."""
    posted: list[Json] = field(default_factory=list)
    """What was created, Events above all."""
    before: Fault = _none
    after: Fault = _none
    """Like `before`, once a request has had its effect: its answer gets lost."""
    events: list[str] = field(default_factory=list)
    """The reasons of the Events."""
    largest: int = 0
    """The bytes of the largest list of composites that was read to its end."""
    compositions: "asyncio.Queue[Json]" = field(default_factory=asyncio.Queue)
    """Those that somebody has just created."""
    hung_lists: dict[str, tuple[str, float]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def now(self) -> datetime:
        return NOW

    # What the composer calls

    async def request(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
        **__: Any,
    ) -> Json:
        """Like `Client.request`."""
        (self.dry_runs if "dryRun" in (body or ()) else self.requests).append((method, path))
        path, _, query = path.partition("?")
        if "/events.k8s.io/" in path and body is not None:
            self.events.append(body["reason"])
        await (self._fill_cache(path) if "fieldSelector" in query else self.before(method, path))
        answer = copy.deepcopy(self._answer(method, path, parse_qs(query), copy.deepcopy(body or {})))
        await self.after(method, path)
        if accept == METADATA_ONLY_LIST:
            answer["items"] = [{"metadata": each["metadata"]} for each in answer["items"]]
        if path == ALL:
            size = len(orjson.dumps(answer))
            if most is not None and size > most:
                raise TooLarge("the response is larger than there is room for")
            self.largest = max(self.largest, size)
        return answer

    async def lines(self, path: str, *, begun: Callable[[], None] | None, **_: Any) -> AsyncIterator[bytes]:
        """Like `Client.lines`: which composites and Compositions come, and which composites go."""
        self.requests.append(("GET", path))
        await self.before("GET", path := path.partition("?")[0])
        if begun is not None:
            begun()
        while path == COMPOSITIONS:
            yield orjson.dumps({"type": "ADDED", "object": await self.compositions.get()})
        known = self._names()
        while True:
            await asyncio.sleep(0.1)
            now = self._names()
            for type_, names in (("ADDED", now - known), ("DELETED", known - now)):
                for name in names if path == ALL else ():
                    found = {"metadata": {"name": name, "resourceVersion": "2"}}
                    yield orjson.dumps({"type": type_, "object": found})
            known = now

    async def _fill_cache(self, path: str) -> None:
        """Refuse a list that only the cache serves, if any other would hang."""
        try:
            async with asyncio.timeout(0.1):
                await self.before("GET", path)
        except TimeoutError:
            raise ApiError(429, {"message": "storage is (re)initializing"}) from None

    def _names(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.composites()}

    def _answer(self, method: str, path: str, query: Json, body: Json) -> Json:
        match method:
            case "GET" if path in (ALL, ALL.replace("/v1/", "/v2/")):
                return self._listed(int(query["limit"][0]), int(query.get("continue", ["0"])[0]))
            case "GET" if path == COMPOSITIONS:
                return {"metadata": {"resourceVersion": "1"}, "items": []}
            case "GET":
                return self._found(path)
            case "POST" if path.endswith("/selfsubjectaccessreviews"):
                verb = body["spec"]["resourceAttributes"]["verb"]
                return {**body, "status": {"allowed": verb not in self.missing}}
            case "POST":
                self.posted.append(body)
                return body
            case "DELETE":
                delete = self._checked if "dryRun" in body else self._delete
                return delete(path, body.get("preconditions") or {})
            case _ if path == CRD and isinstance(body, list):
                return self._patch_crd(body)
            case _ if path.endswith("/status"):
                return self._put_status(path.removesuffix("/status"), body)
            case _ if path.startswith(DEFINITIONS) and "spec" not in body:
                return self._annotate_crd(body["metadata"], path)
            case _ if path == CRD:
                return self._apply_crd(path, body, force=query.get("force") == ["true"])
            case _:
                return self._set_finalizers(path, body)

    def _found(self, path: str) -> Json:
        if path not in self.objects:
            raise ApiError(404, {"message": "not found", "reason": "NotFound"})
        return self.objects[path]

    def _listed(self, limit: int, start: int) -> Json:
        self._found(CRD)
        rest = len(found := self.composites()) - start - limit
        more = {"continue": str(start + limit), "remainingItemCount": rest} if rest > 0 else {}
        return {"metadata": {"resourceVersion": "1", **more}, "items": found[start : start + limit]}

    def _set_finalizers(self, path: str, body: Json) -> Json:
        found = self._checked(path, body["metadata"])
        found["metadata"]["finalizers"] = body["metadata"]["finalizers"]
        self._wrote(path)
        self._collect(path)
        return found

    def _put_status(self, path: str, body: Json) -> Json:
        found = self._checked(path, body["metadata"])
        if found.get("status") != body["status"]:
            found["status"] = body["status"]
            self._wrote(path)
        return found

    def _apply_crd(self, path: str, body: Json, *, force: bool) -> Json:
        metadata = body["metadata"]
        if path not in self.objects:
            if metadata.get("uid") or metadata.get("resourceVersion"):
                raise ApiError(409, {"message": "uid mismatch", "reason": "Conflict"})
            self.make_crd(body)
            return self.objects[path]
        found = self._checked(path, metadata)
        if not force and found["spec"] != body["spec"]:
            raise ApiError(409, {"message": "conflict with another manager", "reason": "Conflict"})
        kept = "ownerReferences", "labels", "annotations"
        texts = {key: metadata[key] for key in kept if key in metadata}
        spec = {**body["spec"], "names": _names_of(found["spec"], body["spec"])}
        wanted = {**found, "spec": spec, "metadata": {**found["metadata"], **texts}}
        if wanted != found:
            self.objects[path] = wanted
            if spec != found["spec"]:
                wanted["metadata"]["generation"] = found["metadata"].get("generation", 0) + 1
            self._wrote(path)
        return self.objects[path]

    def _annotate_crd(self, metadata: Json, path: str = CRD) -> Json:
        found = self._checked(path, metadata)
        annotations = {**found["metadata"].get("annotations", {}), **metadata["annotations"]}
        kept = {key: each for key, each in annotations.items() if each is not None}
        found["metadata"]["annotations"] = kept
        self._wrote(path)
        return found

    def _patch_crd(self, operations: Json) -> Json:
        wanted = patched(self._found(CRD), operations)
        found = self._checked(CRD, wanted["metadata"])
        found |= {"spec": wanted["spec"], "metadata": {**found["metadata"], "generation": next(self.numbers)}}
        self._wrote(CRD)
        return found

    def _delete(self, path: str, preconditions: Json) -> Json:
        found = self._checked(path, preconditions)
        found["metadata"].setdefault("deletionTimestamp", GOING)
        self._wrote(path)
        self._collect(path)
        return self.objects.get(path, {"kind": "Status"})

    def _checked(self, path: str, wanted: Json) -> Json:
        """The object, if it is the wanted one. Raises ApiError."""
        found = self._found(path)
        for key in ("uid", "resourceVersion"):
            if wanted.get(key) and wanted[key] != found["metadata"][key]:
                raise ApiError(409, {"message": f"{key} has changed", "reason": "Conflict"})
        return found

    def _wrote(self, path: str) -> None:
        self.objects[path]["metadata"]["resourceVersion"] = str(next(self.numbers))
        self._announce(path)

    def _collect(self, path: str) -> None:
        """Remove the object if it is being deleted and nothing holds it."""
        metadata = self.objects[path]["metadata"]
        if "deletionTimestamp" not in metadata:
            return
        if path == CRD:
            for each in [each for each in self.objects if each.startswith(OBJECTS)]:
                self.lost.extend({each} - set(self.lost))
                self.objects[each]["metadata"].setdefault("deletionTimestamp", GOING)
                if not self.objects[each]["metadata"].get("finalizers"):
                    del self.objects[each]
            if self.composites():
                return
        if metadata.get("finalizers"):
            return
        del self.objects[path]
        self._announce(path)
        if path.startswith(OBJECTS) and "deletionTimestamp" in self.objects.get(CRD, {}).get("metadata", {}):
            self._collect(CRD)

    def _announce(self, path: str) -> None:
        found = copy.deepcopy(self.objects.get(path))
        if path == PATH:
            seen = CompositeResourceDefinition.model_validate(found) if found else None
            self.state.saw(CompositeResourceDefinition, NAME, seen)
        elif path == CRD:
            self.state.saw_definition(NAME, seen_definition(found) if found else None)

    # What people do

    def make(self, value: Json = None, **metadata: Any) -> Json:
        """Create or replace the definition."""
        value = copy.deepcopy(document() if value is None else value)
        value["spec"] = {**DEFAULTS, **value["spec"]}
        old = self.objects.get(PATH, {"metadata": {"uid": f"u{next(self.numbers)}", "generation": 0}})
        generation = old["metadata"]["generation"] + 1
        value["metadata"] = {**old["metadata"], **value["metadata"], **metadata, "generation": generation}
        value["status"] = old.get("status", {"observedGeneration": -1})
        self.objects[PATH] = value
        self._wrote(PATH)
        return value

    def make_crd(self, body: Json, **metadata: Any) -> None:
        """Create a CRD, which is served at once."""
        made = copy.deepcopy(body)
        made["metadata"] |= {"uid": f"u{next(self.numbers)}", "generation": 1, **metadata}
        served = "NamesAccepted", "Established"
        conditions = [{"type": each, "status": "True", "reason": "R"} for each in served]
        made["status"] = {"storedVersions": ["v1"], "conditions": conditions}
        self.objects[CRD] = made
        self._wrote(CRD)

    def make_composites(self, number: int, **metadata: Any) -> None:
        """Create composites."""
        for _ in range(number):
            which = next(self.numbers)
            self.objects[f"{OBJECTS}/a-{which:05}"] = {
                "metadata": {
                    "name": f"a-{which:05}",
                    "namespace": "default",
                    "uid": f"u{which}",
                    "resourceVersion": str(which),
                    **metadata,
                }
            }

    def delete(self, path: str = PATH) -> None:
        """Delete an object as a user does."""
        self._delete(path, {})

    def forced_out(self, path: str = PATH) -> None:
        """An object disappears, whatever holds it."""
        del self.objects[path]
        self._announce(path)

    # What came of it

    def composites(self) -> list[Json]:
        """Those that exist, by name."""
        return [self.objects[each] for each in sorted(self.objects) if each.startswith(OBJECTS)]

    def condition(self, type_: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition of the definition."""
        for each in self.objects[PATH]["status"].get("conditions", ()):
            if each["type"] == type_:
                return each["status"], each["reason"], each["message"]
        return "", "", ""

    def ready(self) -> tuple[str, str]:
        """Status and reason of Ready."""
        return self.condition("Ready")[:2]

    def held(self) -> bool:
        """Whether the composer holds the definition."""
        return FINALIZER in self.objects[PATH]["metadata"].get("finalizers", ())

    def notes(self, reason: str) -> list[str]:
        """What Events with that reason say."""
        return [each["note"] for each in self.posted if each.get("reason") == reason]

    def writes(self, since: int = 0) -> list[tuple[str, str]]:
        """All requests but reads and Events, from the one of that number on, without queries."""
        return [
            (method, path.partition("?")[0])
            for method, path in self.requests[since:]
            if method != "GET" and "/events.k8s.io/" not in path
        ]


def _names_of(live: Json, applied: Json) -> Json:
    """The names after an apply: what it does not have stays, and empty lists are not stored."""
    names = {**live["names"], **applied["names"]}
    return {key: each for key, each in names.items() if each != []}


def play(
    people: Callable[[Server], Awaitable[None]], *, begin: Callable[[Server], None] | None = None
) -> None:
    """The composer at work on an API server that has what `begin` puts there, and what people do."""

    async def main() -> None:
        state = ClusterState()
        server = Server(state)
        if begin is not None:
            begin(server)
        async with composer(server):
            await people(server)

    virtualtime.run(main())


class composer:  # noqa: N801 - used like a function
    """The controller at work, until the end of the block or until it is killed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "composer":
        metrics = OperatorMetrics()
        controller = CompositeDefinitions(
            cast(Client, self._server),
            self._server.state,
            CompositeMetrics(metrics.registry, metrics.composer_writes),
            identity="me",
            settle=5.0,
        )
        self._task = asyncio.create_task(controller.run())
        for path in (PATH, CRD):
            if path in self._server.objects:
                self._server._announce(path)
        return self

    async def kill(self) -> None:
        """End it at once, between two requests."""
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError, BaseExceptionGroup):
            await self._task
        self._server.state._listeners.clear()

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
