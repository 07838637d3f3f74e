"""A composer with nothing to do for a composite: it looks, and writes nothing."""

import asyncio

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, all_of, config_map, rights_on
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy


async def test_what_others_add_leads_to_a_look_and_to_no_write(
    proxied_author: Author, proxy: FaultProxy, group: str
) -> None:
    async with rights_on(proxied_author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(proxied_author, group)
        await composing.define()
        await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
        await composing.create("orders")
        await composing.ready("orders")
        # What its own writes lead to is over by then.
        await asyncio.sleep(2.0)
        for path in (f"{CONFIG_MAPS}/orders-settings", composing.path("orders")):
            since = len(proxy.requests)
            await composing.patch(path, {"metadata": {"labels": {"theirs": "x"}}})

            async def looked(since: int = since) -> bool:
                asked = [each.path for each in proxy.requests[since:] if each.method == "GET"]
                return composing.path("orders") in asked

            await eventually(looked)
            await asyncio.sleep(1.0)
            assert [str(each) for each in proxy.writes(since)] == []
        await composing.clean_up()
