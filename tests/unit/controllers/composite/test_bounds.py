"""The requests of one pass end in time, in virtual time."""

import asyncio
from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.appliednote import APPLIED
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.templates.namespaces import Identity
from tests import virtualtime
from tests.unit.core.templates.compositions import DATABASE

PASS_SECONDS = 20.0
WEBHOOK_SECONDS = 10.0
MANY = 1_000


class Slow:
    """An API server behind an admission webhook that takes long for each object."""

    def __init__(self) -> None:
        self.writes = 0

    async def send(self, _: str, __: str, *, content: bytes, **___: Any) -> Answer:
        await self._write()
        value = loads(content)
        value["metadata"] |= {"uid": value["metadata"]["name"], "resourceVersion": "1"}
        return Answer(201, dumps(value))

    async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
        await self._write()
        return {"kind": "Status"}

    async def _write(self) -> None:
        self.writes += 1
        await asyncio.sleep(WEBHOOK_SECONDS)


def config_map(number: int) -> dict[str, Any]:
    name = f"orders-{number}"
    metadata = {"name": name, "namespace": "shop", "annotations": {APPLIED: "a"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def entry(number: int) -> Entry:
    return Entry(Identity("", "ConfigMap", "shop", f"orders-{number}"), "v1", "settings")


async def acting_on(server: Slow) -> Acting:
    client = cast(Client, server)
    loop = asyncio.get_running_loop()
    metadata = {**DATABASE["metadata"], "uid": "u1"}
    composite = Composite.of({**DATABASE, "metadata": metadata})
    gathering = Gathering(
        client, KindPaths(client, tuple), composite, {}, ObjectMemory().share("a"), KnownRights(client)
    )
    gathering._kinds["", "ConfigMap"] = ServedKind("v1", "ConfigMap", "configmaps", namespaced=True)
    for number in range(MANY):
        live = config_map(number)
        live["metadata"] |= {"uid": str(number), "resourceVersion": "1"}
        gathering.found.objects[entry(number).identity] = live
    return Acting(client, composite, gathering, Failures(), lambda: loop.time() > PASS_SECONDS, PassReport())


def test_a_wave_behind_a_slow_webhook_ends_with_the_pass() -> None:
    async def main() -> None:
        server = Slow()
        acting = await acting_on(server)
        await acting.apply(
            Apply(entry(each), config_map(each), None, force=False, recreate=False) for each in range(MANY)
        )
        assert asyncio.get_running_loop().time() <= PASS_SECONDS + WEBHOOK_SECONDS
        assert 0 < server.writes < 20
        assert not acting.failed

    virtualtime.run(main())


def test_so_do_removals() -> None:
    async def main() -> None:
        server = Slow()
        acting = await acting_on(server)
        await acting.remove([entry(each) for each in range(MANY)])
        assert asyncio.get_running_loop().time() <= PASS_SECONDS + WEBHOOK_SECONDS
        assert 0 < server.writes < 20
        assert len(acting._gathering.found.objects) == MANY - server.writes

    virtualtime.run(main())
