"""What the revision keeps when a composite is deleted stays also if the revision cannot be compiled then."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER, PAUSED, RESOURCE_LABEL
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, OBJECTS

GROUP = "/apis/things.example.com/v1"
WIDGET = {"apiVersion": "things.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}


def config_map(data: str = "x") -> dict[str, Any]:
    """The template of a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": data}}


def keeping(number: int, *more: dict[str, Any], data: str = "x") -> dict[str, Any]:
    """A revision that keeps a ConfigMap, with more resources."""
    found = revision(number)
    kept = {"name": "kept", "template": config_map(data), "deletion": "Orphan"}
    return {**found, "spec": {**found["spec"], "resources": [kept, *more]}}


def deleting() -> dict[str, Any]:
    """The revision before: it deletes the ConfigMap."""
    found = revision(1)
    return {**found, "spec": {**found["spec"], "resources": [{"name": "kept", "template": config_map()}]}}


def make_object(server: ComposedServer, composite: Any) -> None:
    """The ConfigMap as the revision before has made it."""
    uid = composite["metadata"]["uid"]
    server.objects[f"{MAPS}/kept"] = {
        **config_map(),
        "metadata": {
            "name": "kept",
            "namespace": "default",
            "uid": "m",
            "resourceVersion": "1",
            "labels": {COMPOSITE_LABEL: uid, RESOURCE_LABEL: "kept"},
            "ownerReferences": [{"uid": uid, "controller": True}],
        },
    }


def terminate(server: ComposedServer) -> None:
    """Somebody deletes the CRD, and the API server all composites."""
    server.delete(CRD)


def fail(server: ComposedServer) -> None:
    """One API does not answer, and the composite is deleted."""

    async def trouble(_: str, path: str) -> None:
        if path == GROUP:
            raise ApiError(503, {"message": "no endpoints"})

    server.before = trouble
    delete(server)


def delete(server: ComposedServer) -> None:
    """The composite is deleted."""
    (composite,) = server.composites()
    server.delete(f"{OBJECTS}/{composite['metadata']['name']}")


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "the status is lost"])
@pytest.mark.parametrize(
    ("trouble", "newest"),
    [
        (terminate, keeping(2)),
        (fail, keeping(2, {"name": "w", "template": WIDGET})),
        (delete, keeping(2, data="${there_is_none}")),
    ],
    ids=["the CRD is being deleted", "an API fails", "it is not valid"],
)
def test_it_stays(trouble: Callable[[ComposedServer], None], newest: Any, listed: bool) -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        make_object(server, composite)
        at = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "kept"}
        entries = [{"name": "kept", "object": at}] if listed else []
        composite["status"] = {"crdkeeper": {"revision": "main-1", "resources": entries}}
        trouble(server)
        # No pass has followed the newest revision before the deletion.
        (composite,) = server.composites()
        del composite["metadata"]["annotations"]
        await asyncio.sleep(60.0)
        kept = server.objects[f"{MAPS}/kept"]["metadata"]
        # Of a kind that cannot be read, a composite whose status is lost may have objects.
        waits = trouble is fail and not listed
        assert (len(server.composites()), bool(kept["ownerReferences"])) == (waits, waits)

    play(people, 1, deleting(), newest, finalizers=[FINALIZER], annotations={PAUSED: "true"})
