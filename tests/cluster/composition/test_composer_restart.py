"""A composer that starts where composites are as they should be: it looks at each, and writes nothing."""

import asyncio

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import all_of, composing_of, config_map, rights_on, secret
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import FaultProxy

COMPOSITES = 12


def service() -> object:
    """A resource for whose fields the API server has many defaults."""
    template = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "${composite.metadata.name}"},
        "spec": {"clusterIP": "None", "selector": {"app": "${settings.metadata.name}"}},
    }
    return {"name": "front", "template": template}


async def test_a_restart_writes_nothing(
    proxied: Operator, proxied_author: Author, proxy: FaultProxy, group: str
) -> None:
    core = all_of("", "configmaps", "secrets", "services")
    async with (
        rights_on(proxied_author, f"compose-{group}", all_of(group), core),
        composing_of(proxied_author, group) as composing,
    ):
        await composing.define()
        await composing.compose(config_map("settings", zone="a"), secret(), service())
        names = [f"orders-{number}" for number in range(COMPOSITES)]
        for name in names:
            await composing.create(name)
        for name in names:
            await composing.ready(name)
        # What its own writes lead to is over by then.
        await proxy.until_quiet()
        before = await proxied_author.get(composing.definition.crd)
        proxied.stop()
        since = len(proxy.requests)
        proxied.start()
        paths = {composing.path(name) for name in names}

        async def looked() -> bool:
            return paths <= {each.path for each in proxy.requests[since:] if each.method == "GET"}

        await eventually(looked)
        await asyncio.sleep(3.0)
        assert [str(each) for each in proxy.writes(since)] == []
        assert await proxied_author.get(composing.definition.crd) == before
