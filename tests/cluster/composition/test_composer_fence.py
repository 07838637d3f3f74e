"""The rule by which the API of a definition in deletion refuses new composites, on the API server."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.resources.composites import patch_crd
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError
from crdkeeper.core.composer.fence import fencing, is_fenced, is_partly_fenced
from tests.cluster.composition.authoring import (
    ACCOUNT,
    CLOSED,
    CRDS,
    Author,
    Definition,
    Json,
    condition,
    spec_with,
)
from tests.cluster.composition.test_composer_refusals import crd_of_other, policy
from tests.cluster.conversion.test_conversion_retries import Handler, Webhook
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.admission import WEBHOOKS
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import schema, version
from tests.unit.jsonpatch import patched

NULLS = {"type": "string", "nullable": True, "default": None}
RULES = [
    {"rule": "self.spec.engine != 'None'", "message": "no engine"},
    {"rule": "has(self.spec.engine)", "fieldPath": ".spec.engine", "reason": "FieldValueRequired"},
]


async def fenced(author: Author, thing: Definition) -> Json:
    """The CRD once its API refuses new composites."""

    async def look() -> Json:
        found = await author.get(thing.crd)
        assert found is not None, "the CRD is gone"
        return found if is_fenced(found) else None

    return await eventually(look)


@asynccontextmanager
async def kept(author: Author, thing: Definition) -> AsyncIterator[None]:
    """Nobody may delete the CRD until the end of the block, which no dry run shows.

    Else it is gone some seconds after its API is closed: too soon for a test on a busy machine.
    """
    await author.put(f"{CRDS}/probes.{thing.group}", crd_of_other(thing.group, "probe"))
    async with policy(author, thing.group, "DELETE", "customresourcedefinitions", unless="request.dryRun"):
        yield


@pytest.fixture
def patient(
    composer: Operator, plane: Cluster, start_operator: Callable[..., Operator]
) -> Iterator[Operator]:
    """In place of the composer, one that deletes no API in the time of a test, but waits with it closed."""
    composer.stop()
    patient = start_operator(
        plane,
        identity="composer",
        account=ACCOUNT,
        command=("compose", "run"),
        flags={"settle-seconds": "300"},
    )
    yield patient
    patient.stop()
    composer.start()


async def create(author: Author, thing: Definition, name: str, *, dry: bool = False) -> tuple[int, str]:
    """As a user does; the code and the message of the answer."""
    # Not by POST: the API server answers that with a delay of two seconds when a kind is new.
    path = f"{thing.objects}/{name}?fieldManager=user{'&dryRun=All' if dry else ''}"
    content = orjson.dumps(thing.composite(name))
    answer = await author.client.send("PATCH", path, content=content, content_type=APPLY_PATCH)
    return answer.code, str(answer.json().get("message") or "")


async def until_refused(author: Author, thing: Definition) -> None:
    """Returns once the API server has heard of the rule, and says so to whoever creates a composite."""

    async def look() -> bool:
        # Until then, one that is created would hold up the deletion.
        code, message = await create(author, thing, "refused", dry=True)
        return code == 422 and f"the CompositeResourceDefinition {thing.name} {CLOSED}" in message

    await eventually(look)


async def test_the_crd_of_a_deletion_that_becomes_an_orphan_is_as_before(
    author: Author, patient: Operator, group: str
) -> None:
    thing = Definition(group, "thing")
    first = schema({**spec_with(), "properties": {**spec_with()["properties"], "note": NULLS}})
    both = [
        version("v1", {**first, "x-kubernetes-validations": RULES}),
        version("v2", first, referenceable=False, deprecated=True, deprecationWarning="use v1"),
    ]
    await author.put(thing.path, thing.document(versions=both))
    await author.ready(thing)
    before = await author.get(thing.crd)

    await author.delete(thing.path)
    after = await fenced(author, thing)
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    await author.says(thing, "Established", "There are no composites", "takes no new ones")
    await author.put(thing.path, thing.document(versions=both, deletion="Orphan"))
    await author.gone(thing.path)
    crd = await author.get(thing.crd)
    assert crd["spec"] == before["spec"]
    await author.make_composites(thing, ["a"])


async def left_fenced(author: Author, thing: Definition) -> Json:
    """The CRD as it was before its definition lost the finalizer in the middle of its deletion."""
    await author.apply(thing)
    await author.ready(thing)
    before = await author.get(thing.crd)
    async with kept(author, thing):
        await author.delete(thing.path)
        await fenced(author, thing)
        body = {"metadata": {"finalizers": None}}
        await author.client.request("PATCH", thing.path, body, content_type=MERGE_PATCH)
        await author.gone(thing.path)
    return before


async def test_a_definition_that_is_made_again_opens_its_api(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    before = await left_fenced(author, thing)
    await author.apply(thing, metadata={"annotations": {"crdkeeper.dev/adopt": "true"}})
    await author.ready(thing)
    crd = await author.get(thing.crd)
    assert crd["metadata"]["uid"] == before["metadata"]["uid"]
    assert crd["spec"] == before["spec"]
    await author.make_composites(thing, ["a"])


async def test_an_api_takes_composites_again_when_its_definition_is_gone(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    before = await left_fenced(author, thing)

    async def created() -> bool:
        return (await create(author, thing, "a"))[0] == 201

    await eventually(created)
    assert (await author.get(thing.crd))["spec"] == before["spec"]


async def test_a_composer_that_is_killed_leaves_the_api_closed(
    author: Author, composer: Operator, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    async with kept(author, thing):
        await author.delete(thing.path)
        await fenced(author, thing)
        composer.kill()
        try:
            await until_refused(author, thing)
            assert await author.get(thing.path) is not None
        finally:
            composer.start()
    await author.gone(thing.path)
    await author.gone(thing.crd)


async def test_a_patch_of_another_state_changes_nothing(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    crd = await author.get(thing.crd)
    await author.apply(thing, "more")
    await author.ready(thing)
    with pytest.raises(ApiError) as refused:
        await patch_crd(author.client, crd, fencing(crd))
    assert refused.value.code == 409, refused.value.message
    assert not is_partly_fenced(await author.get(thing.crd))


async def test_who_changes_the_conversion_does_not_hold_up_the_deletion(author: Author, group: str) -> None:
    """As two programs do that inject their own caBundle each, one right after the other."""
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    changes = 0

    async def inject(program: str) -> None:
        nonlocal changes
        with suppress(ApiError):
            while True:
                config = {"url": f"https://{program}.example.com/{changes}"}
                webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
                body = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
                await author.client.request("PATCH", thing.crd, body, content_type=MERGE_PATCH)
                changes += 1
                await asyncio.sleep(1.0)

    async def injected() -> bool:
        return changes > 2

    async with asyncio.TaskGroup() as programs:
        async with kept(author, thing):
            await author.delete(thing.path)
            await fenced(author, thing)
            for program in ("a", "b"):
                programs.create_task(inject(program))
            await eventually(injected)
        await author.gone(thing.path)
        await author.gone(thing.crd)


class HoldingWebhook(Webhook):
    """Allows what it is asked for, once it is released."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.RequestHandlerClass = _Holds
        self.asked = threading.Event()
        self.released = threading.Event()


class _Holds(Handler):
    server: HoldingWebhook

    def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.set()
        self.server.released.wait(25.0)
        response = {"uid": review["request"]["uid"], "allowed": True}
        self._answer(200, json.dumps({**review, "request": None, "response": response}).encode(), {})


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[HoldingWebhook]:
    with HoldingWebhook(tmp_path) as webhook:
        thread = threading.Thread(target=webhook.serve_forever)
        thread.start()
        yield webhook
        webhook.released.set()
        webhook.shutdown()
        thread.join()


def holding(webhook: HoldingWebhook, thing: Definition) -> Json:
    """Asks the webhook about one composite."""
    rule = {"apiGroups": [thing.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"hold.{thing.group}"},
        "webhooks": [
            {
                "name": f"hold.{thing.group}",
                "clientConfig": webhook.client_config,
                "rules": [rule],
                "matchConditions": [
                    {"name": "held", "expression": "object.metadata.name.startsWith('held')"}
                ],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 30,
            }
        ],
    }


async def test_a_create_that_a_webhook_holds_is_kept(
    author: Author, webhook: HoldingWebhook, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    path = f"{WEBHOOKS}/hold.{group}"
    await author.put(path, holding(webhook, thing))
    tries: list[asyncio.Task[Any]] = []
    async with kept(author, thing):
        try:

            async def asked() -> bool:
                # Until the API server has heard of the webhook.
                tries.append(asyncio.create_task(create(author, thing, f"held{len(tries)}")))
                await asyncio.sleep(0.5)
                return webhook.asked.is_set()

            await eventually(asked)
            held = {f"held{number}": each for number, each in enumerate(tries) if not each.done()}
            for number in range(len(tries)):
                if f"held{number}" not in held:
                    await author.delete(f"{thing.objects}/held{number}")

            await author.delete(thing.path)
            await fenced(author, thing)
            await until_refused(author, thing)
            webhook.released.set()
            assert [await each for each in held.values()] == [(201, "")] * len(held)
        finally:
            webhook.released.set()
            await author.delete(path)
        first = min(held)
        await author.says(thing, "Established", f"default/{first}", "The API takes no new ones.")
    crd = await author.get(thing.crd)
    # Whoever has one can use it, and nobody gets another.
    body = {"spec": {"engine": "Postgres"}}
    await author.client.request("PATCH", f"{thing.objects}/{first}", body, content_type=MERGE_PATCH)
    await author.client.request(
        "PATCH",
        f"{thing.objects}/{first}/status",
        {"status": {"observedGeneration": 2}},
        content_type=MERGE_PATCH,
    )
    await until_refused(author, thing)
    for name in held:
        await author.delete(f"{thing.objects}/{name}")
    await author.gone(thing.path)
    assert (await author.get(thing.crd) or crd)["metadata"]["generation"] == crd["metadata"]["generation"]


async def close(author: Author, closed: Json) -> None:
    """As a GitOps tool does that applies a backup of the CRD."""
    path = f"{CRDS}/{closed['metadata']['name']}?fieldManager=gitops&force=true"
    await author.client.request("PATCH", path, closed, content_type=APPLY_PATCH)


async def backup_of(author: Author, thing: Definition) -> Json:
    """The CRD as it was while its API was closed."""
    await author.apply(thing)
    await author.ready(thing)
    crd = patched(found := await author.get(thing.crd), fencing(found))
    return {
        **{key: crd[key] for key in ("apiVersion", "kind", "spec")},
        "metadata": {key: crd["metadata"][key] for key in ("name", "annotations")},
    }


async def closed_again_and_again(
    author: Author, thing: Definition, backup: Json, named: Callable[[], Awaitable[bool]]
) -> None:
    """Close the API until the composer names who does it: it pauses then, before it opens the API."""

    async def opened_or_named() -> bool:
        return not is_partly_fenced(await author.get(thing.crd)) or await named()

    for _ in range(10):
        await close(author, backup)
        await eventually(opened_or_named)
        if await named():
            return
        # Until it is applied, too.
        await asyncio.sleep(1.0)
    raise AssertionError("it is opened without pauses")


async def test_who_closes_an_api_again_and_again_is_named(author: Author, group: str) -> None:
    thing = Definition(group, "thing")

    async def named() -> bool:
        *said, message = condition(await author.get(thing.path), "Ready")
        texts = ("spec.versions", "changed again and again by gitops")
        return said == ["False", "Overwritten"] and all(each in message for each in texts)

    await closed_again_and_again(author, thing, await backup_of(author, thing), named)


async def test_who_closes_one_without_a_definition_is_named(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    backup = await backup_of(author, thing)
    await author.apply(thing, deletion="Orphan")
    await author.delete(thing.path)
    await author.gone(thing.path)

    async def named() -> bool:
        query = f"fieldSelector=regarding.name%3D{thing.name},reason%3DAPIClosedAgain"
        found = await author.get(f"/apis/events.k8s.io/v1/namespaces/default/events?{query}")
        notes = [each["note"] for each in found["items"]]
        return any("spec.versions" in note and "by gitops" in note for note in notes)

    await closed_again_and_again(author, thing, backup, named)
