"""Which events of definitions and CRDs let composites be looked at, in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.core.diagnosis.facts import seen_definition
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, OBJECTS, PATH, Server

COMPOSITES = 5
WIDGET = {"name": "a", "template": {"apiVersion": "things.example.com/v1", "kind": "Widget"}}
READ = {"name": "a", "externalRef": {"apiVersion": "things.example.com/v1", "kind": "Widget"}}
TWO = (revision(1), {**revision(1), "metadata": {"name": "other-1", "uid": "o1", "resourceVersion": "1"}})
"""Of two Compositions: composites choose none, and rest."""
TWO[1]["spec"] = {**TWO[1]["spec"], "compositionRef": {"name": "other"}}


def two(*resources: Any) -> list[Any]:
    return [TWO[0], {**TWO[1], "spec": {**TWO[1]["spec"], "resources": list(resources)}}]


def looks(server: Server) -> int:
    """How often a composite was read."""
    return sum(method == "GET" and path.startswith(f"{OBJECTS}/") for method, path in server.requests)


async def looks_after(server: Server) -> int:
    before = looks(server)
    await asyncio.sleep(10.0)
    return looks(server) - before


def crd(server: Server, group: str = "things.example.com", **metadata: Any) -> None:
    """The composer sees a CRD of Widgets."""
    name = f"widgets.{group}"
    version = str(next(server.numbers))
    value = {
        "metadata": {"name": name, "uid": "w", "resourceVersion": version, "generation": 1, **metadata},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    server.state.saw_definition(name, seen_definition(value))


def test_only_what_matters_of_a_definition_lets_its_composites_be_looked_at() -> None:
    async def people(server: Server) -> None:
        assert await looks_after(server) == COMPOSITES
        server.objects[PATH]["status"]["composites"] = 7
        server._wrote(PATH)
        assert await looks_after(server) == 0
        server.objects[PATH]["metadata"]["generation"] += 1
        server._wrote(PATH)
        assert await looks_after(server) == COMPOSITES
        server.objects[PATH]["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        server._wrote(PATH)
        assert await looks_after(server) == COMPOSITES

    play(people, COMPOSITES, *two())


def test_only_what_matters_of_their_crd_does() -> None:
    async def people(server: Server) -> None:
        assert await looks_after(server) == COMPOSITES
        server.objects[CRD]["status"]["storedVersions"] = ["v1", "v2"]
        server.objects[CRD]["metadata"]["labels"] = {"a": "b"}
        server._wrote(CRD)
        assert await looks_after(server) == 0
        server.objects[CRD]["metadata"]["generation"] += 1
        server._wrote(CRD)
        assert await looks_after(server) == COMPOSITES

    play(people, COMPOSITES, *two())


@pytest.mark.parametrize("resource", [WIDGET, READ])
def test_the_crd_of_a_composed_kind_does(resource: Any) -> None:
    async def people(server: Server) -> None:
        assert await looks_after(server) == COMPOSITES
        crd(server, "others.example.com")
        assert await looks_after(server) == 0
        crd(server)
        assert await looks_after(server) == COMPOSITES
        crd(server, labels={"a": "b"})
        assert await looks_after(server) == 0
        crd(server, generation=2)
        assert await looks_after(server) == COMPOSITES
        server.state.saw_definition("widgets.things.example.com", None)
        assert await looks_after(server) == COMPOSITES

    play(people, COMPOSITES, *two(resource))


def test_the_crd_of_a_kind_that_only_the_inventory_of_one_lists_does() -> None:
    async def people(server: Server) -> None:
        listed = {
            "name": "a",
            "wave": 0,
            "deletion": "Delete",
            "ready": True,
            "object": {"apiVersion": "things.example.com/v1", "kind": "Widget", "name": "w"},
        }
        listed["object"] |= {"namespace": "default", "uid": "w1"}  # type: ignore[operator]
        server.composites()[0]["status"] = {"crdkeeper": {"resources": [listed]}}
        assert await looks_after(server) == COMPOSITES
        crd(server)
        assert await looks_after(server) == 1

    play(people, COMPOSITES, *two())
