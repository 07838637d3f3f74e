"""In which order objects are deleted is known without a schema, and asked only of what no status lists."""

import asyncio
from typing import Any

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.controllers.composite import compiling
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER, RESOURCE_LABEL
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, OBJECTS

MANY = 3


def config_map(name: str, uid: str, **metadata: Any) -> dict[str, Any]:
    """An object of a composite, for the resource of its name."""
    labels = {COMPOSITE_LABEL: uid, RESOURCE_LABEL: name}
    owner = {"uid": uid, "controller": True}
    found = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**found, "ownerReferences": [owner], **metadata},
    }


def of(number: int, **data: str) -> dict[str, Any]:
    """A revision of ConfigMaps with these names and data."""
    found = revision(number)
    resources = [
        {"name": name, "template": {**config_map(name, ""), "metadata": {"name": name}, "data": {"a": each}}}
        for name, each in data.items()
    ]
    return {**found, "spec": {**found["spec"], "resources": resources}}


def test_a_deletion_that_waits_asks_for_no_revision(monkeypatch: Any) -> None:
    """So it leaves those in memory that other composites use."""

    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        held = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/held"]}
        server.objects[f"{MAPS}/a1"] = config_map("a1", composite["metadata"]["uid"], **held)
        at = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a1"}
        composite["status"] = {"crdkeeper": {"resources": [{"name": "a1", "object": at}]}}
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(60.0)
        assert server.composites()
        assert not [path for _, path in server.requests if path.startswith(f"{REVISIONS}/")]

    monkeypatch.setattr(compiling, "_MOST", 1)
    revisions = [of(number, **{f"a{number}": "x"}) for number in range(1, MANY + 1)]
    play(people, 1, *revisions, finalizers=[FINALIZER])


def test_what_no_status_lists_goes_in_order_although_nothing_can_be_compiled() -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        for each in "abc":
            server.objects[f"{MAPS}/{each}"] = config_map(each, composite["metadata"]["uid"])
        server.delete(CRD)
        await asyncio.sleep(60.0)
        assert not server.composites()
        gone = [path for method, path in server.requests if method == "DELETE" and path.startswith(MAPS)]
        assert [each.rpartition("/")[2] for each in gone] == ["c", "a", "b"]

    chain = of(1, a="${b.metadata.name}", b="x", c="${a.metadata.name}")
    play(people, 1, chain, finalizers=[FINALIZER])


def test_an_error_in_crdkeeper_holds_up_no_deletion(monkeypatch: Any, caplog: Any) -> None:
    text = "secret"

    def fails(*_: Any) -> None:
        raise RecursionError(text)

    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        server.objects[f"{MAPS}/a"] = config_map("a", composite["metadata"]["uid"])
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(60.0)
        assert not server.composites() and f"{MAPS}/a" not in server.objects

    monkeypatch.setattr(compiling, "compile_composition", fails)
    play(people, 1, of(1, a="x"), finalizers=[FINALIZER])
    assert "The CompositionRevision main-1 cannot be compiled: RecursionError" in caplog.text
    assert text not in caplog.text
