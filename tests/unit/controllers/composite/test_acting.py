"""Requests for the objects of one composite."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, configuration
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.templates.namespaces import Identity
from tests.unit.controllers.fakeapi import FakeApi

API = "example.com/v1"


def composite(namespace: str) -> Composite:
    """A composite in a namespace, or in none."""
    return Composite(API, "Database", namespace, "orders", "u1", 1, (), False, False, frozenset())


def servers(*, namespaced: bool) -> FakeApi:
    """A cluster that has servers, and no way to change them."""
    kind: Mapping[str, Any] = {
        "name": "servers",
        "kind": "Server",
        "namespaced": namespaced,
        "verbs": ["get", "patch"],
    }
    base = f"/apis/{API}/{'namespaces/shop/' if namespaced else ''}servers"
    theirs = {"apiVersion": API, "kind": "Server", "metadata": {"name": "orders", "uid": "theirs"}}
    empty = {"items": [], "metadata": {"resourceVersion": "1"}}
    return FakeApi({f"/apis/{API}": {"resources": [kind]}, base: empty, f"{base}/orders": theirs})


@pytest.mark.parametrize(
    ("namespaced", "space", "said"),
    [(False, "shop", "in no namespace"), (True, "", "in a namespace")],
    ids=["of the cluster", "of a namespace"],
)
async def test_objects_are_neither_read_nor_changed_in_another_scope(
    namespaced: bool, space: str, said: str
) -> None:
    api = servers(namespaced=namespaced)
    client = cast(Client, api)
    gathering = Gathering(
        client, KindPaths(client, tuple), composite(space), {}, ObjectMemory().share(), KnownRights(client)
    )
    await gathering.read([(API, "Server")])
    identity = Identity("example.com", "Server", space, "orders")
    await gathering.look([identity])
    assert gathering.found.knows(identity) and not gathering.found.strangers
    acting = Acting(client, composite(space), gathering, Failures(), {}, lambda: False)
    value = {"apiVersion": API, "kind": "Server", "metadata": {"name": "orders"}}
    made = configuration(value, composite(space), "a", orphan=False)
    # A client that can send nothing else would fail here.
    await acting.apply([Apply(Entry(identity, API, "a"), made, None, False, False)])
    assert api.requests == [] and acting.failed[identity].reason is reasons.FAILED
    assert said in acting.failed[identity].message
