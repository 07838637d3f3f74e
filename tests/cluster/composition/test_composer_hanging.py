"""A conversion webhook that hangs is a problem of its own definition only."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import Author, Definition, condition, spec_with
from tests.cluster.conversion.test_conversion_retries import Handler, Webhook
from tests.cluster.harness import each_of, eventually
from tests.unit.core.composition.documents import schema, version

SLOW = 8
"""More than the composer has ever had workers."""


class HangingWebhook(Webhook):
    """Accepts requests, and never answers until it is released."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.RequestHandlerClass = _Hangs
        self.released = threading.Event()


class _Hangs(Handler):
    server: HangingWebhook

    def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
        self.server.requests += 1
        self.server.released.wait(90.0)
        self.close_connection = True


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[HangingWebhook]:
    with HangingWebhook(tmp_path) as webhook:
        thread = threading.Thread(target=webhook.serve_forever)
        thread.start()
        yield webhook
        webhook.released.set()
        webhook.shutdown()
        thread.join()


async def convert(author: Author, definition: Definition, conversion: Any) -> None:
    """Change how a CRD converts, which is no field of the composer's."""
    await author.client.request(
        "PATCH", definition.crd, {"spec": {"conversion": conversion}}, content_type=MERGE_PATCH
    )


async def test_others_are_served_while_webhooks_hang(
    author: Author, webhook: HangingWebhook, group: str
) -> None:
    slow = [Definition(group, f"slow{each}") for each in range(SLOW)]
    hanging = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config},
    }
    of = schema(spec_with())
    both = [version("v1", of, referenceable=False), version("v2", of)]

    async def hang(each: Definition) -> None:
        await author.apply(each)
        await author.ready(each)
        await author.make_composites(each, ["a"])
        await author.put(each.path, each.document(versions=both))
        await author.says(each, "StorageCurrent", "stored in v1")
        await convert(author, each, hanging)

    await each_of(slow, hang)

    async def all_hang() -> bool:
        return webhook.requests >= SLOW

    await eventually(all_hang)
    try:
        async with asyncio.timeout(15.0):
            healthy = Definition(group, "healthy")
            await author.apply(healthy)
            await author.ready(healthy)
            await author.apply(healthy, "more")
            await author.ready(healthy)

        async def is_said() -> bool:
            found = [condition(await author.get(each.path), "Established") for each in slow]
            return all(each[:2] == ("False", "NotListed") for each in found)

        await eventually(is_said, seconds=60.0)
    finally:
        for each in slow:
            await convert(author, each, {"strategy": "None", "webhook": None})
    for each in slow:
        await author.ready(each, seconds=90.0)
