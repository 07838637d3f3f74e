"""The controller of composites at work on an API server, in virtual time."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import orjson

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.composite.controller import Composites
from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from crdkeeper.core.conversion.nesting import dumps, loads
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, NAME, OBJECTS, PATH, Server
from tests.unit.core.composition.documents import version

MAPS = "/api/v1/namespaces/default/configmaps"
CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}]}
API_VERSION = "platform.example.com/v1"
OTHER_VERSION = "platform.example.com/v2"
MADE = {
    "metadata": {"name": NAME},
    "spec": {
        "group": "platform.example.com",
        "scope": "Namespaced",
        "names": {"plural": "databases", "kind": "Database"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


class ComposedServer(Server):
    """Takes what is applied, too, and tells what happens to composites."""

    controller: Composites
    """At work on this server."""

    def serve_maps(self) -> None:
        """Serve ConfigMaps, and a composite API with schemas at two versions; it is stored at the first."""
        versions = [{**version(each), "served": True, "storage": each == "v1"} for each in ("v1", "v2")]
        self.objects[CRD]["spec"]["versions"] = versions
        self._wrote(CRD)
        of = {"group": "", "version": "v1", "kind": "ConfigMap"}
        marks = {"x-kubernetes-group-version-kind": of}
        schemas = {"ConfigMap": {"type": "object", "x-kubernetes-group-version-kind": [of]}}
        paths = {"/api/v1/namespaces/{namespace}/configmaps": {"post": marks}}
        self.objects |= {
            "/api/v1": CORE,
            "/openapi/v3": {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}},
            "/openapi/v3/api/v1": {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}},
        }

    def make_map(self, uid: str, name: str, labels: Mapping[str, str] | None = None, **metadata: Any) -> Any:
        """A ConfigMap that says itself that it is the composite's; returned to be changed."""
        self.objects[f"{MAPS}/{name}"] = made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "resourceVersion": "1",
                "labels": {COMPOSITE_LABEL: uid, **(labels or {})},
                "ownerReferences": [{"uid": uid, "controller": True}],
                **metadata,
            },
        }
        return made

    async def send(self, method: str, path: str, *, content: bytes = b"{}", **_: Any) -> Answer:
        """Like `Client.send`."""
        return Answer(200, dumps(await self.request(method, path, loads(content))))

    def _answer(self, method: str, path: str, query: Any, body: Any) -> Any:
        if method == "GET" and path.endswith("/configmaps") and path not in self.objects:
            items = [each for key, each in self.objects.items() if key.startswith(f"{MAPS}/")]
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if method == "PATCH" and path.startswith(f"{MAPS}/"):
            return self._apply_map(path, body)
        stored = path.replace("/v2/namespaces/", "/v1/namespaces/")
        if stored != path:
            return {**self._answer(method, stored, query, body), "apiVersion": OTHER_VERSION}
        if method == "PATCH" and path.startswith(OBJECTS) and "spec" in body:
            self._checked(path, body["metadata"])["spec"].update(body["spec"])
            self._wrote(path)
            return self.objects[path]
        return super()._answer(method, path, query, body)

    def _apply_map(self, path: str, body: Any) -> Any:
        metadata = body["metadata"]
        if path in self.objects:
            self._checked(path, metadata)
        uid = metadata.get("uid") or f"m{next(self.numbers)}"
        self.objects[path] = {**body, "metadata": {**metadata, "uid": uid}}
        self._wrote(path)
        return self.objects[path]

    async def lines(
        self, path: str, *, begun: Callable[[], None] | None, **more: Any
    ) -> AsyncIterator[bytes]:
        """Like `Client.lines`."""
        if path.partition("?")[0] != ALL:
            async for each in super().lines(path, begun=begun, **more):
                yield each
        await self.before("GET", ALL)
        if begun is not None:
            begun()
        known = self._seen()
        while True:
            await asyncio.sleep(0.1)
            now = self._seen()
            for uid in known.keys() | now.keys():
                if known.get(uid) != now.get(uid):
                    type_ = "MODIFIED" if uid in now else "DELETED"
                    found = {"metadata": now.get(uid) or known[uid]}
                    yield orjson.dumps({"type": type_, "object": found})
            known = now

    def _seen(self) -> dict[str, Any]:
        return {each["metadata"]["uid"]: copy.deepcopy(each["metadata"]) for each in self.composites()}


def revision(number: int = 1) -> dict[str, Any]:
    """A CompositionRevision for the composites."""
    return {
        "metadata": {"name": f"main-{number}", "uid": f"r{number}", "resourceVersion": str(1 + number)},
        "spec": {
            "compositionRef": {"name": "main"},
            "compositeTypeRef": {"apiVersion": API_VERSION, "kind": "Database"},
            "revision": number,
            "resources": [],
        },
    }


def play(
    people: Callable[[ComposedServer], Awaitable[None]], composites: int, *revisions: Any, **metadata: Any
) -> None:
    """There are a definition, composites and revisions; people do something, and the controller works."""

    async def main() -> None:
        server = ComposedServer(ClusterState())
        made = server.make()
        definition_uid = made["metadata"]["uid"]
        server.make_crd(MADE, annotations={DEFINITION_UID: definition_uid})
        server.make_composites(composites, **metadata)
        for each in server.composites():
            each |= {"apiVersion": API_VERSION, "kind": "Database"}
        server.objects[REVISIONS] = {"metadata": {"resourceVersion": "1"}, "items": list(revisions)}
        for each in revisions:
            server.objects[f"{REVISIONS}/{each['metadata']['name']}"] = each
        metrics = OperatorMetrics()
        composing = ComposingMetrics(metrics.registry, metrics.composer_writes)
        controller = Composites(cast(Client, server), server.state, composing, identity="me")
        server.controller = controller
        for path in (PATH, CRD):
            server._announce(path)
        task = asyncio.create_task(controller.run())
        try:
            await people(server)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, BaseExceptionGroup):
                await task

    virtualtime.run(main())
