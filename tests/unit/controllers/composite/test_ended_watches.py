"""Watches on composites that end, in virtual time: nothing is kept of composites that go meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.composite.scene import ComposedServer, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, OBJECTS, Server


def kept(server: ComposedServer) -> list[set[str]]:
    """The uids of composites, and their names by all that is kept of each."""
    controller = server.controller
    news = controller._news
    kept = controller._uids, controller._rests, news._due, news._heard, news._known, controller._looks._listed
    return [{*controller._keys}, *({key.rpartition("\n")[2] for key in each} for each in kept)]


def change_crd(server: Server, **status: Any) -> None:
    """The CRD has another version or status."""
    crd = server.objects[CRD]
    if not status:
        crd["spec"]["versions"] = [{"name": "v2", "served": True, "storage": True}]
    for each in crd["status"]["conditions"]:
        each["status"] = status.get(each["type"], each["status"])
    crd["metadata"]["generation"] += 1
    server._wrote(CRD)


def not_established(server: Server) -> None:
    """For some seconds the API server serves no composites."""
    change_crd(server, Established="False")


def another_version(server: Server) -> None:
    """Composites are watched at another version."""
    change_crd(server)


@pytest.mark.parametrize("end", [not_established, another_version])
def test_a_composite_that_goes_while_none_are_watched_is_forgotten(end: Callable[[Server], None]) -> None:
    async def people(server: ComposedServer) -> None:
        await asyncio.sleep(10.0)
        first, second = (each["metadata"] for each in server.composites())
        assert all({first["name"], first["uid"]} & each for each in kept(server)[:2])
        listed = False

        async def trouble(method: str, path: str) -> None:
            if method == "GET" and path in (ALL, ALL.replace("/v1/", "/v2/")) and not listed:
                raise ApiError(503, {"message": "not now"})

        server.before = trouble
        end(server)
        await asyncio.sleep(1.0)
        del server.objects[f"{OBJECTS}/{first['name']}"]
        await asyncio.sleep(10.0)
        assert server.controller._uids
        listed = True
        change_crd(server, Established="True")
        await asyncio.sleep(70.0)
        assert not any({first["name"], first["uid"]} & each for each in kept(server))
        assert all({second["name"], second["uid"]} & each for each in kept(server)[:2])

    play(people, 2, revision())


@pytest.mark.parametrize("again", [True, False])
def test_composites_are_forgotten_with_their_crd(again: bool) -> None:
    async def people(server: ComposedServer) -> None:
        await asyncio.sleep(10.0)
        assert len(kept(server)[0]) == 3
        crd = server.objects[CRD]
        for each in server.composites():
            del server.objects[f"{OBJECTS}/{each['metadata']['name']}"]
        if again:
            crd["metadata"]["uid"] = "another"
            server._wrote(CRD)
        else:
            server.forced_out(CRD)
        assert not any(kept(server))
        await asyncio.sleep(70.0)
        assert not any(kept(server))

    play(people, 3, revision(), finalizers=[FINALIZER])


def test_a_pass_that_ends_later_leaves_nothing() -> None:
    async def people(server: ComposedServer) -> None:
        async def slow(method: str, path: str) -> None:
            if path.startswith(OBJECTS + "/"):
                await asyncio.sleep(5.0)

        server.before = slow
        for each in server.composites():
            made = {"apiVersion": "example.com/v1", "kind": "Other", "namespace": "default", "name": "a"}
            each["status"] = {"crdkeeper": {"resources": [{"name": "a", "object": made}]}}
        await asyncio.sleep(2.0)
        server.forced_out(CRD)
        assert not any(kept(server))
        await asyncio.sleep(5.0)
        assert kept(server)[-1]
        await asyncio.sleep(60.0)
        assert not any(kept(server))

    play(people, 1, revision())
