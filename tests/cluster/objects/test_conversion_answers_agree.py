"""`taken` and the API server handle a webhook's answer alike: the same refusal, or the same object.

Objects are read at a version in which they are not stored, or written at it, through a webhook with random
answers, for schemas of all kinds. CRDKEEPER_ANSWERS sets how many answers, CRDKEEPER_CORPUS names a directory
of CRDs whose schemas to use besides our own, CRDKEEPER_SEED selects others.
"""

import asyncio
import base64
import json
import os
import re
import uuid
from collections.abc import Iterator
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
from crdkeeper.cluster.transport.client import MERGE_PATCH, Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import definition, version
from tests.cluster.harness.waiting import eventually
from tests.cluster.objects.answering import (
    Answering,
    AnsweringWebhook,
    answering_webhook,
    answerings,
    only_to,
)
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
"""What precedes the server's reason why an object cannot be read."""

_UID = re.compile(r'expected response\.uid="[-0-9a-f]*"')
"""The server may send the request twice."""

Json = Any
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _compiled(properties: dict[str, Json]) -> ObjectSchema:
    report = Report()
    decoded = SCHEMA.decode(_schema(properties), root("schema"), report)
    assert decoded is not ABSENT and not report.violations, report
    return ObjectSchema.of(decoded)


def _schema(properties: dict[str, Json]) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def _disagreement(schema: ObjectSchema, asked: Json, answer: Json, said: Answer) -> str | None:
    """Where we and the server differ."""
    (original,) = asked["objects"]
    body = json.loads(said.content)
    message = _UID.sub("uid", _REVISION.sub("", body.get("message", "")))
    try:
        found = schema.converted(taken(answer, original, asked["desiredAPIVersion"], asked["uid"]))
    except RefusedAnswer as refused:
        text = _UID.sub("uid", str(refused))
        same_words = message.startswith(text) if text.endswith(" ") else message == text
        return None if said.code == 500 and same_words else f"we refuse: {text[:500]}"
    assert not found.unchecked, found
    if found.violations:
        paths = [str(each.path) for each in found.violations]
        fits = said.code == 500 and any(message.startswith(f"{each}: ") for each in paths)
        return None if fits else f"we refuse: {paths}"
    if said.code == 200:
        body["metadata"].pop("resourceVersion", None)
    return None if same(stored(found.object), stored(body)) else f"we show {json.dumps(found.object)[:1500]}"


class _Trip:
    """Objects that go through the webhook to `target`; the other version accepts everything."""

    def __init__(self, cluster: Cluster, client: Client, webhook: AnsweringWebhook, target: str) -> None:
        self._cluster = cluster
        self._client = client
        self._webhook = webhook
        self._group = f"answers-{uuid.uuid4().hex[:8]}.example.com"
        self._target = target
        self.refused = 0
        self.wrong: list[str] = []

    async def compare(self, count: int, number: int) -> None:
        """Counts what the server refused, and records differences."""
        resource = Resource(self._client, self._group)
        await resource.select(drawn(schemas(), SCHEMAS, SEED + number))
        crd = self._definition(_schema(resource.properties))
        name = crd["metadata"]["name"]
        await self._client.request("POST", CRDS, crd)
        try:
            await eventually(self._served)
            cases = iter(drawn(answerings(resource.properties), count, SEED + number))
            schema = _compiled(resource.properties)
            async with asyncio.TaskGroup() as group:
                for i in range(AT_ONCE):
                    group.create_task(self._work(f"object-{i}.{self._group}", cases, schema))
        finally:
            # Not by the webhook, which cannot answer all requests of a deletion.
            none = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            await self._client.request("PATCH", f"{CRDS}/{name}", none, content_type=MERGE_PATCH)
            await self._client.send("DELETE", f"{CRDS}/{name}")

    def _definition(self, schema: Json) -> Json:
        client = {"url": self._webhook.url, "caBundle": base64.b64encode(self._webhook.ca).decode()}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        versions = (version(each, schema if each == self._target else _OPEN) for each in ("v1", "v2"))
        return definition(
            *versions, group=self._group, conversion={"strategy": "Webhook", "webhook": webhook}
        )

    def _path(self, version: str) -> str:
        return f"/apis/{self._group}/{version}/namespaces/default/widgets"

    async def _served(self) -> bool:
        return (await self._client.send("GET", f"{self._path('v1')}?limit=1")).code == 200

    async def _create(self, name: str, version: str) -> Answer:
        metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"old": "1"}}
        body = {"apiVersion": f"{self._group}/{version}", "kind": "Widget", "metadata": metadata, "spec": {}}
        return await self._client.send("POST", self._path(version), content=json.dumps(body).encode())

    async def _work(self, name: str, cases: Iterator[Answering], schema: ObjectSchema) -> None:
        if self._target == "v2":
            assert (await self._create(name, "v1")).code == 201
        for case in cases:
            self._webhook.answers[name] = only_to(self._target, case)
            wanted = (name, f"{self._group}/{self._target}")
            self._webhook.asked.pop(wanted, None)
            said = await (self._read(name) if self._target == "v2" else self._write(name))
            asked = self._webhook.asked.pop(wanted)
            self.refused += said.code == 500
            different = _disagreement(schema, asked, case(asked), said)
            if different is not None:
                answer = json.dumps(case(asked))[:1500]
                server = f"the server {said.code} {said.content[:1500]!r}"
                self.wrong.append(f"{different}\n  {server}\n  of {answer}")

    async def _read(self, name: str) -> Answer:
        return await self._client.send("GET", f"{self._path('v2')}/{name}")

    async def _write(self, name: str) -> Answer:
        """The response to a creation, or what was stored."""
        said = await self._create(name, "v2")
        if said.code != 201:
            return said
        key = f"/registry/{self._group}/widgets/default/{name}"
        content = self._cluster.etcd.raw(key)
        assert content is not None
        self._cluster.etcd.delete(key)
        return Answer(200, content)


async def _agree(cluster: Cluster, directory: Path, target: str) -> None:
    refused, wrong = 0, []
    async with answering_webhook(directory) as webhook, Client(Connection(cluster.kubeconfig)) as client:
        for number, at in enumerate(range(0, COUNT, PER_CRD)):
            trip = _Trip(cluster, client, webhook, target)
            await trip.compare(min(PER_CRD, COUNT - at), number)
            refused += trip.refused
            wrong += trip.wrong
    print(f"{COUNT} answers: {refused} refused, {len(wrong)} of all otherwise than said")
    assert not wrong, "\n".join(wrong[:SHOWN])
    assert COUNT * 0.2 < refused < COUNT * 0.8


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_objects_that_are_read(plane: Cluster, tmp_path: Path) -> None:
    await _agree(plane, tmp_path, "v2")


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_objects_that_are_written(plane: Cluster, tmp_path: Path) -> None:
    await _agree(plane, tmp_path, "v1")
