"""How often a composite is looked at that waits for a right, in virtual time."""

import asyncio

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS, Server

GROUP = "/apis/things.example.com/v1"
SERVED = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["patch"]}]}
WIDGETS = f"{GROUP}/namespaces/default/widgets"
WIDGET = {"apiVersion": "things.example.com/v1", "kind": "Widget", "namespace": "default", "name": "w"}


def test_a_right_that_is_missing_for_long_is_tried_less_and_less() -> None:
    async def people(server: Server) -> None:
        async def trouble(_: str, path: str) -> None:
            if path.startswith(WIDGETS) and "list" in server.missing:
                raise ApiError(403, {"message": "not you"})

        server.before, server.missing = trouble, {"list"}
        server.objects[GROUP] = SERVED
        (composite,) = server.composites()
        listed = {
            "name": "a",
            "wave": 0,
            "deletion": "Delete",
            "ready": True,
            "object": {**WIDGET, "uid": "w"},
        }
        composite["status"] = {"crdkeeper": {"resources": [listed]}}
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(300.0)
        tried = sum(path.startswith(WIDGETS) for _, path in server.requests)
        assert 5 <= tried <= 10
        (composite,) = server.composites()
        found = {each["type"]: each for each in composite["status"]["conditions"]}
        assert found["Synced"]["reason"] == "RightMissing"
        server.missing = set()
        server.objects[WIDGETS] = {"metadata": {"resourceVersion": "1"}, "items": []}
        await asyncio.sleep(62.0)
        assert not server.composites()

    play(people, 1, revision(), finalizers=[FINALIZER])
