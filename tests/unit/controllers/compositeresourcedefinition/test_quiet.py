"""A composer that can do no more writes nothing, reads nothing, and keeps what it said, in virtual time."""

import asyncio
from typing import Any

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, OBJECTS, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    established,
    rest,
)
from tests.unit.controllers.fakeapi import OURS as API
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
CONVERSION = f"{API}/versionconversions/databases.platform.example.com"
STATUS = ("PATCH", f"{PATH}/status")
HARMLESS = document(
    version(of=schema({**SPEC, "properties": {**SPEC["properties"], "engine": {"type": "string"}}}))
)
"""Readers may see engines that they do not know, but no composite is hurt."""


def with_composites(server: Server) -> None:
    """The definition with its CRD and three composites."""
    established(server)
    server.make_composites(3, kind="Database")
    for each in server.composites():
        each |= {"apiVersion": "platform.example.com/v1", "kind": "Database", "spec": {"engine": "MySQL"}}


def reads(server: Server, since: int) -> int:
    """How often all composites were read for a rehearsal."""
    return sum(path == f"{ALL}?limit=50" for _, path in server.requests[since:])


def test_its_own_writes_of_the_status_lead_to_no_other_look() -> None:
    async def people(server: Server) -> None:
        server.make_composites(1)
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["composites"] == 1
        since = len(server.requests)
        await asyncio.sleep(250.0)
        assert server.requests[since:] == []
        # But those of others do.
        server.objects[PATH]["status"] = {**server.objects[PATH]["status"], "composites": 7}
        server._wrote(PATH)
        await rest()
        assert server.objects[PATH]["status"]["composites"] == 1

    play(people, begin=established)


def test_a_composition_wakes_those_whom_it_is_for_and_who_name_it() -> None:
    of = {"apiVersion": "platform.example.com/v1", "kind": "Cache"}

    async def people(server: Server) -> None:
        server.make(document(defaultCompositionRef={"name": "small"}))
        await rest()
        since = len(server.requests)
        for name, kind, wakes in (("big", "Cache", 0), ("small", "Cache", 1), ("big", "Database", 1)):
            made = {"name": name, "resourceVersion": str(next(server.numbers))}
            server.compositions.put_nowait(
                {"metadata": made, "spec": {"compositeTypeRef": {**of, "kind": kind}}}
            )
            await rest()
            looks = sum(each == ("GET", PATH) for each in server.requests[since:])
            assert looks == wakes, (name, kind)
            since = len(server.requests)

    play(people)


def test_a_short_name_that_somebody_adds_is_removed() -> None:
    async def people(server: Server) -> None:
        await rest()
        server.objects[CRD]["spec"]["names"]["shortNames"] = ["db"]
        server.objects[CRD]["metadata"]["generation"] += 1
        server._wrote(CRD)
        await rest()
        assert not server.objects[CRD]["spec"]["names"].get("shortNames")
        since = len(server.requests)
        await asyncio.sleep(120.0)
        assert server.writes(since) == []
        assert server.ready() == OURS

    play(people, begin=with_composites)


def test_versions_that_wait_for_a_conversion_say_only_that() -> None:
    async def people(server: Server) -> None:
        server.objects[CONVERSION] = {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "VersionConversion",
            "metadata": {"name": "databases.platform.example.com", "uid": "c", "generation": 1},
            "spec": {
                "resource": {"group": "platform.example.com", "resource": "databases"},
                "hub": "v2",
                "spokes": [
                    {
                        "version": "v1",
                        "rules": [{"hub": "spec.big", "aside": True}, {"spoke": "spec.size", "aside": True}],
                    }
                ],
            },
        }
        one, two = (
            schema({**SPEC, "properties": {**SPEC["properties"], name: {"type": "string"}}})
            for name in ("size", "big")
        )
        server.make(document(version("v1", one, referenceable=False), version("v2", two)))
        await rest()
        assert server.condition("Accepted")[:2] == ("Unknown", "ConversionPending")
        since = len(server.requests)
        await asyncio.sleep(600.0)
        assert server.writes(since) == []
        assert reads(server, since) == 0

    play(people, begin=with_composites)


async def no_apply(method: str, path: str) -> None:
    """As a policy that denies it."""
    if (method, path) == ("PATCH", CRD):
        raise ApiError(403, {"message": "denied by a policy"})


def test_an_apply_that_is_refused_stays_refused_while_it_is_tried_again() -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = no_apply
        server.make(HARMLESS)
        await rest()
        assert server.ready() == ("False", "Refused")
        since = len(server.requests)
        await asyncio.sleep(600.0)
        assert server.writes(since).count(STATUS) == 0
        assert server.events == ["Refused"]

    play(people, begin=with_composites)


def test_a_tenant_cannot_have_a_change_that_is_refused_tried_more_often_than_it_is_applied() -> None:
    async def people(server: Server) -> None:
        await rest()
        server.before = no_apply
        server.make(HARMLESS)
        await rest()
        since = len(server.requests)
        for _ in range(300):
            server.make_composites(1)
            await asyncio.sleep(1.0)
            server.delete(next(each for each in server.objects if each.startswith(OBJECTS)))
        attempts = server.writes(since).count(("PATCH", CRD))
        assert 10 <= attempts <= 20
        assert reads(server, since) <= attempts + 1, (reads(server, since), attempts)

    play(people, begin=with_composites)


def test_a_crd_with_composites_that_is_fought_over_stays_overwritten() -> None:
    async def people(server: Server) -> None:
        await rest()
        loop = asyncio.get_running_loop()
        due = False

        async def rival(method: str, path: str) -> None:
            nonlocal due
            if (method, path) == ("PATCH", CRD) and not due:
                due = True
                loop.call_later(0.01, overwrite)

        def overwrite() -> None:
            nonlocal due
            due = False
            of = server.objects[CRD]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            of["properties"]["spec"]["properties"]["engine"]["enum"] = ["MySQL"]
            server.objects[CRD]["metadata"]["generation"] += 1
            server._wrote(CRD)

        server.after = rival
        overwrite()
        await asyncio.sleep(60.0)
        assert server.ready() == ("False", "Overwritten")
        said = len(server.events)
        since = len(server.requests)
        for _ in range(900):
            await asyncio.sleep(1.0)
            assert server.ready() == ("False", "Overwritten")
        assert len(server.events) == said
        assert 6 <= server.writes(since).count(("PATCH", CRD)) <= 12
        assert reads(server, since) <= 12

    play(people, begin=with_composites)
