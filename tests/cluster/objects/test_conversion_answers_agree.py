"""`taken` and the API server make the same of a webhook's answer: the same refusal, or the same object.

An object is read at a version that it is not stored in, through a webhook that answers what was drawn, for
schemas of all kinds. CRDKEEPER_ANSWERS says how many answers, CRDKEEPER_CORPUS names a folder of CRDs whose
schemas to use beside our own, CRDKEEPER_SEED makes others.
"""

import asyncio
import base64
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.apiserver.objects.conversionanswer import RefusedAnswer, taken
from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import definition, version
from tests.cluster.harness.waiting import eventually
from tests.cluster.objects.answering import Answering, AnsweringWebhook, answering_webhook, answerings
from tests.cluster.objects.resource import CRDS, Resource
from tests.cluster.objects.schemas import schemas
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_ANSWERS", "300"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
SCHEMAS = 40
PER_CRD = 500
AT_ONCE = 4
SHOWN = 15
TIMEOUT_SECONDS = 300 + COUNT // 5

_REVISION = re.compile(r".* object not decodable revision=[0-9]+: ", re.DOTALL)
"""What the server says before it says why an object cannot be read."""

Json = Any
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _compiled(properties: dict[str, Json]) -> ObjectSchema:
    report = Report()
    decoded = SCHEMA.decode(_schema(properties), root("schema"), report)
    assert decoded is not ABSENT and not report.violations, report
    return ObjectSchema.of(decoded)


def _schema(properties: dict[str, Json]) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def _definition(group: str, properties: dict[str, Json], webhook: AnsweringWebhook) -> Json:
    client = {"url": webhook.url, "caBundle": base64.b64encode(webhook.ca).decode()}
    return definition(
        version("v1", _OPEN),
        version("v2", _schema(properties)),
        group=group,
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        },
    )


def _disagreement(schema: ObjectSchema, asked: Json, answer: Json, said: Answer) -> str | None:
    """Where we and the server differ."""
    (original,) = asked["objects"]
    body = json.loads(said.content)
    message = _REVISION.sub("", body.get("message", ""))
    try:
        found = schema.converted(taken(answer, original, asked["desiredAPIVersion"], asked["uid"]))
    except RefusedAnswer as refused:
        text = str(refused)
        same_words = message.startswith(text) if text.endswith(" ") else message == text
        return None if said.code == 500 and same_words else f"we refuse: {text[:500]}"
    assert not found.unchecked, found
    if found.violations:
        paths = [str(each.path) for each in found.violations]
        fits = said.code == 500 and any(message.startswith(f"{each}: ") for each in paths)
        return None if fits else f"we refuse: {paths}"
    if said.code == 200:
        del body["metadata"]["resourceVersion"]
    return None if same(stored(found.object), stored(body)) else f"we show {json.dumps(found.object)[:1500]}"


async def _compared(
    client: Client, webhook: AnsweringWebhook, path: str, schema: ObjectSchema, cases: Sequence[Answering]
) -> tuple[int, list[str]]:
    """How many were refused by the server, and what differs."""
    refused, wrong = 0, []

    async def work(name: str, queue: Iterator[Answering]) -> None:
        nonlocal refused
        for case in queue:
            webhook.answers[name] = case
            said = await client.send("GET", f"{path.replace('/v1/', '/v2/')}/{name}")
            asked = webhook.asked.pop(name)
            refused += said.code != 200
            different = _disagreement(schema, asked, case(asked), said)
            if different is not None:
                answer = json.dumps(case(asked))[:1500]
                wrong.append(f"{different}\n  the server {said.code} {said.content[:1500]!r}\n  of {answer}")

    queue = iter(cases)
    async with asyncio.TaskGroup() as group:
        for i in range(AT_ONCE):
            group.create_task(work(f"object-{i}", queue))
    return refused, wrong


async def _agree(client: Client, webhook: AnsweringWebhook, count: int, number: int) -> tuple[int, list[str]]:
    group = f"answers-{uuid.uuid4().hex[:8]}.example.com"
    resource = Resource(client, group)
    await resource.select(drawn(schemas(), SCHEMAS, SEED + number))
    crd = _definition(group, resource.properties, webhook)
    await client.request("POST", CRDS, crd)
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    try:

        async def served() -> bool:
            return (await client.send("GET", f"{path}?limit=1")).code == 200

        await eventually(served)
        for i in range(AT_ONCE):
            metadata = {"name": f"object-{i}", "labels": {"a": "b"}, "annotations": {"old": "1"}}
            body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": {}}
            await client.request("POST", path, body)
        cases = drawn(answerings(resource.properties), count, SEED + number)
        return await _compared(client, webhook, path, _compiled(resource.properties), cases)
    finally:
        # Not by the webhook, which cannot answer all that deleting the objects would ask.
        await client.request(
            "PATCH",
            f"{CRDS}/{crd['metadata']['name']}",
            {"spec": {"conversion": {"strategy": "None", "webhook": None}}},
            content_type="application/merge-patch+json",
        )
        await client.send("DELETE", f"{CRDS}/{crd['metadata']['name']}")


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_the_same_is_refused_and_shown(plane: Cluster, tmp_path: Path) -> None:
    refused, wrong = 0, []
    async with answering_webhook(tmp_path) as webhook, Client(Connection(plane.kubeconfig)) as client:
        for number, at in enumerate(range(0, COUNT, PER_CRD)):
            some, different = await _agree(client, webhook, min(PER_CRD, COUNT - at), number)
            refused += some
            wrong += different
    print(f"{COUNT} answers: {refused} refused, {len(wrong)} of all otherwise than said")
    assert not wrong, "\n".join(wrong[:SHOWN])
    assert COUNT * 0.2 < refused < COUNT * 0.8
