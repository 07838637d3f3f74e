"""A deletion behind a slow webhook says what is left, in virtual time."""

import asyncio
from typing import Any

from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER, RESOURCE_LABEL
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS, Server

MAPS = "/api/v1/namespaces/default/configmaps"
CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}]}
MANY = 12
WEBHOOK_SECONDS = 15.0
"""Four at once: a pass ends with eight deleted, and a second one with all."""


def config_map(number: int, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"a-{number}",
            "namespace": "default",
            "uid": f"m{number}",
            "resourceVersion": "1",
            "labels": {COMPOSITE_LABEL: uid, RESOURCE_LABEL: "a"},
            "ownerReferences": [{"uid": uid, "controller": True}],
        },
    }


def listed(number: int) -> dict[str, Any]:
    at = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": f"a-{number}"}
    return {"name": "a", "wave": 0, "deletion": "Delete", "ready": True, "object": at}


def test_what_is_left_is_told_after_each_pass() -> None:
    async def people(server: Server) -> None:
        (composite,) = server.composites()
        items = [config_map(each, composite["metadata"]["uid"]) for each in range(MANY)]
        server.objects["/api/v1"] = CORE
        server.objects[MAPS] = {"metadata": {"resourceVersion": "1"}, "items": items}

        async def slow(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(MAPS):
                await asyncio.sleep(WEBHOOK_SECONDS)

        async def gone(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(MAPS):
                items[:] = [each for each in items if f"{MAPS}/{each['metadata']['name']}" != path]

        server.before, server.after = slow, gone
        for each in items:
            server.objects[f"{MAPS}/{each['metadata']['name']}"] = each
        ready = {"type": "Ready", "status": "True", "reason": "Available", "message": ""}
        composite["status"] = {
            "conditions": [ready],
            "crdkeeper": {"resources": [listed(each) for each in range(MANY)]},
        }
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(2 * WEBHOOK_SECONDS + 2.0)
        (composite,) = server.composites()
        (ready,) = (each for each in composite["status"]["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "Deleting")
        assert len(composite["status"]["crdkeeper"]["resources"]) == MANY - 8
        await asyncio.sleep(300.0)
        assert not server.composites()

    play(people, 1, revision(), finalizers=[FINALIZER])
