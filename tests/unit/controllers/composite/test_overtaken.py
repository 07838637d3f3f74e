"""What others do to a composite while a pass is under way, in virtual time: it is never lost."""

import asyncio
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import PAUSED
from tests.unit.controllers.composite.scene import (
    API_VERSION,
    MAPS,
    OTHER_VERSION,
    ComposedServer,
    play,
    revision,
)
from tests.unit.controllers.compositeresourcedefinition.scene import GOING, OBJECTS

MAP: Any = {
    "name": "a",
    "template": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "orders"},
        "data": {"engine": "${composite.spec.engine}"},
    },
}


def with_map(api_version: str = API_VERSION) -> dict[str, Any]:
    found = revision()
    of = {"apiVersion": api_version, "kind": "Database"}
    return {**found, "spec": {**found["spec"], "compositeTypeRef": of, "resources": [MAP]}}


def said(composite: Any) -> tuple[str, int]:
    """Why it is in order or not, and of which generation that is true."""
    (found,) = (each for each in composite["status"]["conditions"] if each["type"] == "Synced")
    return found["reason"], composite["status"]["observedGeneration"]


def change(server: ComposedServer, path: str, what: str) -> None:
    """Do something to a composite, as a user does."""
    composite = server.objects[path]
    match what:
        case "spec":
            composite["spec"] = {"engine": "MySQL"}
            composite["metadata"]["generation"] += 1
        case "pause":
            composite["metadata"]["annotations"] = {PAUSED: "true"}
        case "deletion":
            composite["metadata"]["deletionTimestamp"] = GOING
            composite["metadata"]["generation"] += 1
    server._wrote(path)


@pytest.mark.parametrize("what", ["spec", "pause", "deletion"])
def test_what_happens_just_before_the_status_is_written_is_seen_to(what: str) -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        composite["spec"] = {"engine": "Postgres"}
        path = f"{OBJECTS}/{composite['metadata']['name']}"
        told: list[tuple[str, int]] = []

        async def before(method: str, asked: str) -> None:
            if asked == f"{path}/status" and f"{MAPS}/orders" in server.objects and not told:
                told.append(("", 0))
                change(server, path, what)

        async def after(method: str, asked: str) -> None:
            if asked == f"{path}/status" and told:
                told.append(said(server.objects[path]))

        server.before, server.after = before, after
        await asyncio.sleep(10.0)
        # What was found out holds all the same, and is not all.
        assert told[:2] == [("", 0), ("ReconcileSuccess", 1)]
        match what:
            case "spec":
                assert server.objects[f"{MAPS}/orders"]["data"] == {"engine": "MySQL"}
                assert said(server.objects[path]) == ("ReconcileSuccess", 2)
            case "pause":
                assert said(server.objects[path]) == ("ReconcilePaused", 1)
            case "deletion":
                assert not server.composites() and f"{MAPS}/orders" not in server.objects

    play(people, 1, with_map(), generation=1)


@pytest.mark.parametrize("what", ["pause", "deletion"])
@pytest.mark.parametrize(
    ("api_version", "pinned"), [(API_VERSION, True), (OTHER_VERSION, True), (OTHER_VERSION, False)]
)
def test_what_was_decided_is_not_done_to_what_a_composite_is_since(
    what: str, api_version: str, *, pinned: bool
) -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        policy = {"crdkeeper": {"compositionUpdatePolicy": "Manual"}} if pinned else {}
        composite["spec"] = {"engine": "Postgres", **policy}
        path = f"{OBJECTS}/{composite['metadata']['name']}"
        done: list[str] = []

        async def after(method: str, asked: str) -> None:
            if (method, asked) == ("PATCH" if pinned else "GET", path) and not done:
                done.append(asked)
                change(server, path, what)

        server.after = after
        await asyncio.sleep(10.0)
        assert done
        assert f"{MAPS}/orders" not in server.objects
        assert server.objects[path]["metadata"]["finalizers"] == ["example.com/other"]
        assert "status" not in server.objects[path]
        # The composite is looked at as what it is: nothing is said of one that has nothing.
        before = len(server.requests)
        await asyncio.sleep(60.0)
        assert ("GET", path) not in server.requests[before:]

    play(people, 1, with_map(api_version), generation=1, finalizers=["example.com/other"])


def test_of_one_that_goes_while_an_object_of_it_is_being_refused_nothing_is_kept() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        composite["spec"] = {"engine": "Postgres"}
        applied: list[str] = []

        async def refused(method: str, path: str) -> None:
            if method == "PATCH" and path.startswith(MAPS):
                applied.append(path)
                await asyncio.sleep(5.0)
                raise ApiError(422, {"message": "no"})

        server.before = refused
        await asyncio.sleep(4.0)
        assert len(applied) == 1
        del server.objects[f"{OBJECTS}/{composite['metadata']['name']}"]
        await asyncio.sleep(60.0)
        failures = server.controller._looks.failures
        assert (failures._known, failures._settled, failures._unread) == ({}, {}, {})

    play(people, 1, with_map())
