"""The controller of composites at work on an API server, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.composite.controller import Composites
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.nesting import dumps, loads
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, NAME, PATH, Server

API_VERSION = "platform.example.com/v1"
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
    """Accepts the status of composites, too."""

    async def send(self, method: str, path: str, *, content: bytes = b"{}", **_: Any) -> Answer:
        """Like `Client.send`."""
        return Answer(200, dumps(await self.request(method, path, loads(content))))


def revision(number: int = 1) -> dict[str, Any]:
    """A CompositionRevision for the composites."""
    return {
        "metadata": {"name": f"main-{number}", "uid": f"r{number}", "resourceVersion": "1"},
        "spec": {
            "compositionRef": {"name": "main"},
            "compositeTypeRef": {"apiVersion": API_VERSION, "kind": "Database"},
            "revision": number,
            "resources": [],
        },
    }


def play(
    people: Callable[[Server], Awaitable[None]], composites: int, *revisions: Any, **metadata: Any
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
        controller = Composites(cast(Client, server), server.state, identity="me")
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
