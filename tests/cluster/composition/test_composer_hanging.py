"""Webhooks that hang, or ask for long pauses, are a problem of their own definition only."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from crdkeeper.controllers.compositeresourcedefinition import controller
from tests.cluster.composition.authoring import Author, Definition, condition, spec_with, stay
from tests.cluster.conversion.test_conversion_retries import MARKER, Handler, Webhook
from tests.cluster.harness import each_of, eventually
from tests.cluster.harness.admission import WEBHOOKS
from tests.cluster.harness.operator import SHIPPED_LEASE
from tests.unit.core.composition.documents import schema, version

SLOW = controller._WORKERS + 4
SLOW_DELETIONS = 3
"""More than take turns at once."""


class HangingWebhook(Webhook):
    """Accepts requests, and never answers until it is released."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.RequestHandlerClass = _Hangs
        self.released = threading.Event()
        self.kinds: set[str] = set()
        """Whose composites were sent to it."""


class _Hangs(Handler):
    server: HangingWebhook

    def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.kinds.update(each["kind"] for each in review["request"]["objects"])
        self.server.released.wait(300.0)
        self.close_connection = True


class DeletionWebhook(HangingWebhook):
    """Denies each deletion and asks for a pause of five minutes; or hangs."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.RequestHandlerClass = _Denies
        self.hangs = False


class _Denies(Handler):
    server: DeletionWebhook

    def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        webhook = self.server
        webhook.requests += 1
        if webhook.hangs:
            webhook.released.wait(300.0)
            self.close_connection = True
            return
        later = {"code": 429, "message": "come again later", "details": {"retryAfterSeconds": 300}}
        answer = {"uid": review["request"]["uid"], "allowed": False, "status": later}
        self._answer(200, json.dumps({**review, "request": None, "response": answer}).encode(), {})


_Webhook = TypeVar("_Webhook", bound=HangingWebhook)


@contextmanager
def serving(webhook: _Webhook) -> Iterator[_Webhook]:
    """Until the end of the block."""
    with webhook:
        thread = threading.Thread(target=webhook.serve_forever)
        thread.start()
        try:
            yield webhook
        finally:
            webhook.released.set()
            webhook.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def lease() -> Mapping[str, str]:
    """Its renewals do not wait behind requests that hang, or it is lost with the times of the manifests."""
    return SHIPPED_LEASE


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[HangingWebhook]:
    with serving(HangingWebhook(tmp_path)) as webhook:
        yield webhook


@pytest.fixture
def deletion_webhook(tmp_path: Path) -> Iterator[DeletionWebhook]:
    with serving(DeletionWebhook(tmp_path)) as webhook:
        yield webhook


async def convert(author: Author, definition: Definition, conversion: Any) -> None:
    """Change how a CRD converts, which is no field of the composer's."""
    await author.client.request(
        "PATCH", definition.crd, {"spec": {"conversion": conversion}}, content_type=MERGE_PATCH
    )


async def seats_taken(author: Author) -> float:
    """How much of the API server's work for ServiceAccounts is under way, in its own unit."""
    answer = await author.client.send("GET", "/metrics", accept="*/*")
    lines = answer.content.decode().splitlines()
    named = "apiserver_flowcontrol_current_executing_seats{"
    found = [each for each in lines if each.startswith(named) and 'priority_level="workload-low"' in each]
    assert found
    return sum(float(each.rpartition(" ")[2]) for each in found)


async def lastingly_taken(author: Author) -> float:
    """What is not over within two seconds."""
    seen = []
    for _ in range(4):
        seen.append(await seats_taken(author))
        await asyncio.sleep(0.5)
    return min(seen)


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
        return webhook.kinds == {each.kind for each in slow}

    await eventually(all_hang)
    try:
        async with asyncio.timeout(100.0):
            healthy = Definition(group, "healthy")
            await author.apply(healthy)
            await author.ready(healthy)
            await author.apply(healthy, "more")
            await author.ready(healthy)

        async def is_said() -> bool:
            taken.append(await lastingly_taken(author))
            found = [condition(await author.get(each.path), "Established") for each in slow]
            return all(each[:2] == ("False", "NotListed") for each in found)

        taken: list[float] = []
        await eventually(is_said, every=1.0)
        # One list each, and what others do: no definition had a second one that hung with it.
        assert max(taken) < 10 * SLOW + 30, taken
    finally:
        # Or else the API server could delete none of them.
        await each_of(slow, lambda each: convert(author, each, {"strategy": "None", "webhook": None}))


@pytest.mark.parametrize("hangs", [True, False], ids=["hanging", "asking for a long pause"])
async def test_other_composites_go_while_deletions_are_slow(
    author: Author, deletion_webhook: DeletionWebhook, group: str, hangs: bool
) -> None:
    slow = [Definition(group, f"slow{each}") for each in range(SLOW_DELETIONS)]
    healthy = Definition(group, "healthy")
    composites = [f"a{each:02}" for each in range(60)]

    async def make(each: Definition) -> None:
        await author.apply(each, deletion="Cascade")
        await author.ready(each)
        await author.make_composites(each, composites)

    await each_of((*slow, healthy), make)
    guard = f"{WEBHOOKS}/guard.{group}"
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"]}
    hook = {
        "name": f"guard.{group}",
        "clientConfig": deletion_webhook.client_config,
        "rules": [{**rule, "resources": [each.plural for each in slow]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"guard.{group}"},
        "webhooks": [hook],
    }
    await author.put(guard, configuration)
    trial = f"{slow[0].objects}/a00?dryRun=All"

    async def in_force() -> bool:
        answer = await author.client.send("DELETE", trial)
        return answer.code == 429 and answer.retry_after == 300

    async def over() -> bool:
        # The composer may have deleted it by then.
        return (await author.client.send("DELETE", trial)).code in (200, 404)

    try:
        await eventually(in_force)
        deletion_webhook.hangs, before = hangs, deletion_webhook.requests
        for each in slow:
            await author.delete(each.path)

        async def under_way() -> bool:
            return deletion_webhook.requests >= before + 16

        await eventually(under_way)
        await author.delete(healthy.path)
        await author.gone(healthy.path)
        await author.gone(healthy.crd)
        for each in slow:
            said = "failed calling webhook" if hangs else "come again later"
            await author.says(each, "Established", "default/a", said)
            assert await author.names(each) == composites
    finally:
        await author.delete(guard)
        deletion_webhook.released.set()
    await eventually(over)
    for each in slow:
        # One goes by itself: that leads to another attempt.
        await author.delete(f"{each.objects}/a00")
    for each in slow:
        await author.gone(each.path)


@pytest.fixture
def failing_webhook(tmp_path: Path) -> Iterator[Webhook]:
    """Fails whenever the composite called marked is in a list."""
    with Webhook(tmp_path) as webhook:
        webhook.failures, webhook.status = sys.maxsize, 500
        thread = threading.Thread(target=webhook.serve_forever)
        thread.start()
        try:
            yield webhook
        finally:
            webhook.shutdown()
            thread.join()


async def test_one_composite_that_is_not_converted_does_not_make_the_state_alternate(
    author: Author, failing_webhook: Webhook, group: str
) -> None:
    thing = Definition(group, "thing")
    of = schema(spec_with())
    both = [version("v1", of, referenceable=False), version("v2", of)]
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a", MARKER, "z"])
    await author.put(thing.path, thing.document(versions=both, breakingChanges="Allow"))
    await author.ready(thing)
    failing = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": failing_webhook.client_config},
    }
    await convert(author, thing, failing)
    listed = f"/apis/{group}/v2/{thing.plural}?limit="

    async def in_force() -> bool:
        codes = [(await author.client.send("GET", f"{listed}{limit}")).code for limit in (1, 5)]
        return codes == [200, 500]

    await eventually(in_force)
    try:
        await author.ready(thing, "False", "NotListed")

        async def counted() -> bool:
            return bool((await author.get(thing.path))["status"]["composites"] == 3)

        await eventually(counted)
        await stay(author, thing.path, seconds=40.0)
        found = await author.get(thing.path)
        *said, message = condition(found, "Ready")
        assert said == ["False", "NotListed"]
        assert f"/default/{MARKER}" in message
        assert "conversion webhook" in message
        assert found["status"]["composites"] == 3
    finally:
        await convert(author, thing, {"strategy": "None", "webhook": None})
    await author.ready(thing)
