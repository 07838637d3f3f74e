"""A deletion reads no objects that a watch shows: it deletes just that state of them, or looks again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS

MANY = 3


def chain(*stays: int) -> dict[str, Any]:
    """A revision with ConfigMaps each of which refers to the one before; those with these numbers stay."""
    resources = []
    for number in range(MANY):
        before = f"${{r{number - 1}.metadata.name}}" if number else "none"
        template = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"a-{number}"},
            "data": {"a": before},
        }
        deletion = {"deletion": "Orphan"} if number in stays else {}
        resources.append({"name": f"r{number}", "template": template, **deletion})
    found = revision()
    return {**found, "spec": {**found["spec"], "resources": resources}}


def asked(server: ComposedServer) -> list[str]:
    """The requests for single ConfigMaps, in order."""
    of = [(method, path.partition("?")[0]) for method, path in server.requests]
    return [f"{method} {path.rpartition('/')[2]}" for method, path in of if path.startswith(f"{MAPS}/")]


def deletion(
    then: Callable[[ComposedServer], Awaitable[None]],
    meanwhile: Callable[[ComposedServer], None] = lambda _: None,
    *stays: int,
) -> None:
    """A composite with objects is deleted; `meanwhile` things happen that the watch does not show."""

    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        (composite,) = server.composites()
        await asyncio.sleep(60.0)
        assert all(f"{MAPS}/a-{number}" in server.objects for number in range(MANY))
        meanwhile(server)
        server.requests.clear()
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(1.0)
        await then(server)

    play(people, 1, chain(*stays), generation=1)


def test_what_a_watch_shows_is_deleted_in_order_without_a_read() -> None:
    async def then(server: ComposedServer) -> None:
        assert asked(server) == ["DELETE a-2", "DELETE a-1", "DELETE a-0"]
        assert not server.composites()

    deletion(then)


def test_what_has_changed_since_is_read_first() -> None:
    def change(server: ComposedServer) -> None:
        server.objects[f"{MAPS}/a-1"]["metadata"]["resourceVersion"] = "0"

    async def then(server: ComposedServer) -> None:
        assert asked(server) == ["DELETE a-2", "DELETE a-1", "GET a-1", "DELETE a-1", "DELETE a-0"]
        assert not server.composites()

    deletion(then, change)


@pytest.mark.parametrize("whose", ["replaced", "given away"])
def test_what_is_not_the_composites_any_more_stays(whose: str) -> None:
    def change(server: ComposedServer) -> None:
        metadata = server.objects[f"{MAPS}/a-1"]["metadata"]
        metadata |= {"uid": "new"} if whose == "replaced" else {"resourceVersion": "0"}
        metadata["ownerReferences"] = []

    async def then(server: ComposedServer) -> None:
        assert asked(server) == ["DELETE a-2", "DELETE a-1", "GET a-1", "DELETE a-0"]
        assert f"{MAPS}/a-1" in server.objects
        assert not server.composites()

    deletion(then, change)


def test_what_stays_is_read_and_released() -> None:
    async def then(server: ComposedServer) -> None:
        assert asked(server)[:3] == ["GET a-1", "DELETE a-2", "PATCH a-1"]
        assert "DELETE a-1" not in asked(server)
        assert f"{MAPS}/a-0" not in server.objects

    deletion(then, lambda _: None, 1)


def test_what_was_gone_already_is_not_looked_up() -> None:
    def change(server: ComposedServer) -> None:
        del server.objects[f"{MAPS}/a-1"]

    async def then(server: ComposedServer) -> None:
        assert asked(server) == ["DELETE a-2", "DELETE a-1", "DELETE a-0"]
        assert not server.composites()

    deletion(then, change)


def test_a_kind_that_is_not_served_any_more_is_not_taken_to_be_empty() -> None:
    def change(server: ComposedServer) -> None:
        async def unserved(_: str, path: str) -> None:
            if path.startswith(f"{MAPS}/"):
                raise ApiError(404, {"message": "404 page not found"})

        server.before = unserved

    async def then(server: ComposedServer) -> None:
        assert asked(server)[:2] == ["DELETE a-2", "GET a-2"]
        assert len([each for each in server.objects if each.startswith(f"{MAPS}/")]) == MANY
        (composite,) = server.composites()
        assert composite["metadata"]["finalizers"] == [FINALIZER]

    deletion(then, change)


def test_a_refusal_is_told_and_not_tried_again_at_once() -> None:
    def change(server: ComposedServer) -> None:
        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("DELETE", f"{MAPS}/a-1"):
                raise ApiError(422, {"message": "a-1 is kept by a policy", "reason": "Invalid"})

        server.before = refuse

    async def then(server: ComposedServer) -> None:
        assert asked(server)[:4] == ["DELETE a-2", "DELETE a-1", "GET a-1", "DELETE a-1"]
        (composite,) = server.composites()
        (ready,) = (each for each in composite["status"]["conditions"] if each["type"] == "Ready")
        assert "a-1 is kept by a policy" in ready["message"]
        assert [each["object"]["name"] for each in composite["status"]["crdkeeper"]["resources"]] == [
            "a-0",
            "a-1",
        ]
        # The status says of what is left more than a watch shows.
        assert asked(server)[4] == "GET a-0"
        await asyncio.sleep(60.0)
        assert asked(server).count("DELETE a-1") < 12
        assert "DELETE a-0" not in asked(server)

    deletion(then, change)
