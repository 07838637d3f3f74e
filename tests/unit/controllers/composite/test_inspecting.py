"""A person who traces a composite is told the rule that is missing."""

from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.compiling import Compiled
from crdkeeper.controllers.composite.inspecting import Inspection
from crdkeeper.core.composites.tree import traced
from tests.unit.core.templates.compositions import DATABASE, compiled

DATABASES = ServedKind("example.com/v1", "Database", "databases", namespaced=True)
ZONES = {"apiVersion": "example.com/v1", "kind": "Server", "name": "zones", "namespace": "platform"}
FORBIDDEN = (
    'servers.example.com "zones" is forbidden: User "ada" cannot get resource "servers" in API group '
    '"example.com" in the namespace "platform"'
)


class Api:
    """An API server with Servers that nobody may read."""

    async def request(self, _: str, path: str, *__: Any, **___: Any) -> Any:
        if path == "/apis/example.com/v1":
            verbs = ["get", "list", "patch"]
            servers = {"name": "servers", "kind": "Server", "namespaced": True, "verbs": verbs}
            return {"resources": [servers]}
        raise ApiError(403, {"message": FORBIDDEN, "reason": "Forbidden"})


async def test_the_rule_for_what_an_external_ref_reads_is_told() -> None:
    composition = compiled({"name": "zones", "externalRef": ZONES})
    revision = Compiled("main-1", composition, cast(Any, None), frozenset())
    value = {**DATABASE, "metadata": {**DATABASE["metadata"], "uid": "u1", "generation": 1}}
    outcome = await Inspection(cast(Client, Api()))._outcome(DATABASES, value, revision, [])
    (zones,) = traced(value, "main", outcome, ()).resources
    (found,) = zones.objects
    assert (found.state, found.name) == ("Unknown", "zones")
    rule = '{apiGroups: ["example.com"], resources: [servers], verbs: [get]}'
    assert found.message == f"Server platform/zones: {FORBIDDEN}. You need the rule {rule}"
