"""What is known of a composite's objects when not everything can be asked for."""

from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.templates.namespaces import Identity

COMPOSITE: Any = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "u1"}}


async def test_a_kind_that_was_not_asked_for_is_looked_up_once() -> None:
    gathering = Gathering(
        cast(Any, None),
        cast(Any, None),
        Composite.of(COMPOSITE),
        {},
        cast(Any, None),
        KnownRights(cast(Any, None)),
    )
    forged = Identity("example.com", "Forged", "default", "x")
    await gathering.look([forged])
    assert gathering.found.knows(forged)


class Aggregated:
    """An API whose objects have no resourceVersion."""

    async def request(self, _: str, path: str, **__: Any) -> Any:
        if path == "/apis/example.com/v1":
            return {"resources": [{"name": "zones", "kind": "Zone", "namespaced": False, "verbs": ["patch"]}]}
        return {"apiVersion": "example.com/v1", "kind": "Zone", "metadata": {"name": "a"}}


async def test_what_an_external_ref_reads_need_not_have_a_resource_version() -> None:
    client = cast(Client, Aggregated())
    share, rights = ObjectMemory().share("tenant"), KnownRights(client)
    gathering = Gathering(client, KindPaths(client, tuple), Composite.of(COMPOSITE), {}, share, rights)
    zone = Identity("example.com", "Zone", "", "a")
    assert await gathering.look_external({zone: "example.com/v1"})
    assert zone in gathering.found.external
    assert [*gathering.external.values()] == [""]
