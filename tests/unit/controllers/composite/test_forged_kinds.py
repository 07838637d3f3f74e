"""Kinds that only a status names, in virtual time."""

import asyncio
from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER, RESOURCE_LABEL
from tests import virtualtime
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS, Server

PODS = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["patch"]}
CONFIG_MAPS = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}
MAPS = "/api/v1/namespaces/default/configmaps"
EMPTY: Any = {"metadata": {"resourceVersion": "1"}, "items": []}


def listed(kind: str) -> dict[str, Any]:
    at = {"apiVersion": "v1", "kind": kind, "namespace": "default", "name": "a"}
    return {"name": "a", "wave": 0, "deletion": "Delete", "ready": True, "object": at}


def watches(server: Server, plural: str) -> int:
    """How often a watch of these objects was begun."""
    return sum(path.startswith(f"/api/v1/{plural}?limit") for _, path in server.requests)


def test_only_kinds_of_objects_that_exist_are_watched_and_only_for_as_long() -> None:
    async def people(server: Server) -> None:
        (composite,) = server.composites()
        uid = composite["metadata"]["uid"]
        metadata = {
            "name": "a",
            "namespace": "default",
            "uid": "m",
            "resourceVersion": "1",
            "finalizers": ["example.com/held"],
            "labels": {COMPOSITE_LABEL: uid, RESOURCE_LABEL: "a"},
            "ownerReferences": [{"uid": uid, "controller": True}],
        }
        live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        maps = {**EMPTY, "items": [live]}
        server.objects |= {
            "/api/v1": {"resources": [PODS, CONFIG_MAPS]},
            MAPS: maps,
            f"{MAPS}/a": live,
            "/api/v1/configmaps": maps,
            "/api/v1/namespaces/default/pods": EMPTY,
            "/api/v1/pods": EMPTY,
        }
        composite["status"] = {"crdkeeper": {"resources": [listed("Pod"), listed("ConfigMap")]}}
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(5.0)
        assert watches(server, "configmaps") == 1
        assert not watches(server, "pods")

        def ended() -> bool:
            names = [each.get_coro().__qualname__ for each in asyncio.all_tasks()]  # type: ignore[union-attr]
            return not any("ObjectWatches" in each for each in names)

        await asyncio.sleep(120.0)
        assert not ended()
        maps["items"] = []
        del server.objects[f"{MAPS}/a"]
        await asyncio.sleep(120.0)
        assert not server.composites()
        assert ended()

    play(people, 1, revision(), finalizers=[FINALIZER])


def test_kinds_that_do_not_exist_are_not_remembered_without_end() -> None:
    class Nothing:
        async def request(self, *_: Any, **__: Any) -> Any:
            return {"resources": []}

    async def main() -> None:
        paths = KindPaths(cast(Client, Nothing()))
        for number in range(2_000):
            assert await paths.find(f"g{number}.example.com/v1", "Forged") is None
        assert len(paths._known) == 1_000

    virtualtime.run(main())
