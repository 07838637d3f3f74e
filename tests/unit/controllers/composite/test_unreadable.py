"""What cannot be read for the moment is looked at again soon, in virtual time."""

import asyncio

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision

ZONES = "/api/v1/namespaces/platform/configmaps/zones"


def test_an_object_of_somebody_else_does_not_delay_it() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    resources = [
        {"name": "zones", "externalRef": {**kind, "name": "zones", "namespace": "platform"}},
        {"name": "theirs", "template": {**kind, "metadata": {"name": "theirs"}}},
        {"name": "a", "template": {**kind, "metadata": {"name": "${zones.metadata.name}"}}},
    ]

    async def people(server: ComposedServer) -> None:
        async def trouble(_: str, path: str) -> None:
            if path == ZONES and fails:
                raise ApiError(503, {"message": "etcd has no leader"})

        fails, server.before = True, trouble
        server.serve_maps()
        metadata = {"resourceVersion": "1", "uid": "u"}
        server.objects[ZONES] = {**kind, "metadata": {**metadata, "name": "zones", "namespace": "platform"}}
        theirs = {**metadata, "name": "theirs", "namespace": "default"}
        server.objects[f"{MAPS}/theirs"] = {**kind, "metadata": theirs}
        # By now looks at what is not the composite's are a minute apart.
        await asyncio.sleep(300.0)
        (composite,) = server.composites()
        said = {each["type"]: each["reason"] for each in composite["status"]["conditions"]}
        assert said["Synced"] == "NotOurs"
        fails = False
        await asyncio.sleep(6.0)
        assert f"{MAPS}/zones" in server.objects

    found = revision()
    play(people, 1, {**found, "spec": {**found["spec"], "resources": resources}})
