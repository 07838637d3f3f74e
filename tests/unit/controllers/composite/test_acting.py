"""Requests for the objects of one composite."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, configuration
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.diagnosis.verdict import Reason
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
        client, KindPaths(client, tuple), composite(space), {}, ObjectMemory().share("a"), KnownRights(client)
    )
    await gathering.read([(API, "Server")])
    identity = Identity("example.com", "Server", space, "orders")
    await gathering.look([identity])
    assert gathering.found.knows(identity) and not gathering.found.strangers
    acting = Acting(client, composite(space), gathering, Failures(), lambda: False, PassReport())
    value = {"apiVersion": API, "kind": "Server", "metadata": {"name": "orders"}}
    made = configuration(value, composite(space), "a", orphan=False)
    # A client that can send nothing else would fail here.
    await acting.apply([Apply(Entry(identity, API, "a"), made, None, False, False)])
    assert api.requests == [] and acting.failed[identity].reason is reasons.FAILED
    assert said in acting.failed[identity].message


class Refusing:
    """An API server that refuses what it gets."""

    def __init__(self) -> None:
        self.sent = 0

    async def send(self, *_: Any, **__: Any) -> Answer:
        self.sent += 1
        return Answer(422, b'{"reason": "Invalid", "message": "no"}')


def server_of(version: str, *managers: Mapping[str, Any]) -> dict[str, Any]:
    """A server as it was read."""
    metadata = {
        "name": "orders",
        "namespace": "shop",
        "uid": "s1",
        "generation": 1,
        "resourceVersion": version,
        "managedFields": list(managers),
    }
    return {"apiVersion": API, "kind": "Server", "metadata": metadata}


async def test_what_is_refused_is_not_sent_again_because_the_status_changes() -> None:
    refusing = Refusing()
    client, failures = cast(Client, refusing), Failures()
    of = composite("shop")
    identity = Identity("example.com", "Server", "shop", "orders")

    async def apply(live: Mapping[str, Any]) -> Reason:
        share = ObjectMemory().share("a")
        gathering = Gathering(client, KindPaths(client, tuple), of, {}, share, KnownRights(client))
        gathering._kinds["example.com", "Server"] = ServedKind(API, "Server", "servers", namespaced=True)
        acting = Acting(client, of, gathering, failures, lambda: False, PassReport())
        made = configuration(server_of(""), of, "a", orphan=False)
        await acting.apply([Apply(Entry(identity, API, "a"), made, live, False, False)])
        return acting.failed[identity].reason

    def heartbeat(at: str) -> Mapping[str, Any]:
        return {
            "manager": "x",
            "operation": "Update",
            "subresource": "status",
            "time": at,
            "fieldsV1": {at: {}},
        }

    for number in range(5):
        assert await apply(server_of(str(number), heartbeat(f"f:{number}"))) is reasons.REFUSED
    assert refusing.sent == 1
    theirs = {"manager": "y", "operation": "Update", "fieldsV1": {"f:spec": {}}}
    assert await apply(server_of("7", theirs)) is reasons.REFUSED
    assert refusing.sent == 2
