"""The largest objects that etcd stores are converted within the worker's time and memory, with notes."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.core.conversion.bundle import packed
from crdkeeper.core.conversion.notes import PREFIX, with_note
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.webhook.conversion.converting import Converting
from crdkeeper.webhook.conversion.worker import Worker
from crdkeeper.webhook.http.types import Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.rules.rulebook import RuleBook, Served
from tests.unit.webhook.conversion.working import working

GROUP = "example.com"
ETCD_BYTES = 1536 * 1024
STRING = {"type": "string"}
BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def schema(containers: dict[str, Any]) -> dict[str, Any]:
    fields = {"containers": containers, "free": {"x-kubernetes-preserve-unknown-fields": True}}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def served() -> Served:
    container = {"type": "object", "properties": {"name": STRING, "memory": STRING}}
    small = {"type": "object", "properties": {"image": STRING}}
    schemas = {
        "v1": schema({"type": "array", "items": {**container, "required": ["name"]}, **BY_NAME}),
        "v2": schema({"type": "object", "additionalProperties": small}),
    }
    each = [{"hub": "memory", "aside": True}, {"spoke": "image", "aside": True}]
    rule = {"hub": "spec.containers", "spoke": "spec.containers", "key": "name", "each": each}
    spec = VersionConversion.model_validate(
        {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "VersionConversion",
            "metadata": {"name": f"crontabs.{GROUP}"},
            "spec": {
                "resource": {"group": GROUP, "resource": "crontabs"},
                "hub": "v1",
                "spokes": [{"version": "v2", "rules": [rule]}],
            },
        }
    ).spec
    made = compile_conversion(spec, schemas)
    assert isinstance(made, Conversion), made
    return Served(made, "digest", packed(spec, schemas))


SERVED = served()


def review(value: dict[str, Any], version: str) -> bytes:
    request = {"uid": "7", "desiredAPIVersion": f"{GROUP}/{version}", "objects": [value]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return orjson.dumps({**kind, "request": request})


def at(version: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "default", **metadata}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "CronTab", "metadata": metadata, "spec": spec}


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker()
    async with working(made.run()):
        yield made


async def converted(worker: Worker, value: dict[str, Any], version: str) -> dict[str, Any]:
    reply = await worker.convert(SERVED, review(value, version), "10.0.0.1")
    assert not reply.error
    made: dict[str, Any] = orjson.loads(reply.content)["response"]["convertedObjects"][0]
    return made


async def test_an_object_of_which_every_item_has_something_aside(worker: Worker) -> None:
    items = [{"name": f"{i:x}", "memory": "1"} for i in range(52_000)]
    value = at("v1", {"containers": items})
    assert 1_400_000 < len(orjson.dumps(value)) < ETCD_BYTES
    there = await converted(worker, value, "v2")
    assert len(there["spec"]["containers"]) == len(items)
    assert await converted(worker, there, "v1") == value


def note(*entries: str) -> str:
    return f'{{"fields":[{",".join(entries)}]}}'


HOSTILE = {
    "small entries": note(*['{"at":["a"]}'] * 300_000),
    "places that are not there": note(
        *(f'{{"at":["spec","containers",["{i:x}"],"memory"],"was":"1"}}' for i in range(120_000))
    ),
    "fields that are not there": note(
        *(f'{{"at":["spec","containers",["{i:x}"],"{i:x}"],"was":"1"}}' for i in range(120_000))
    ),
    "lists": note('{"at":["spec","free"],"was":[' + "[]," * 490_000 + "[]]}"),
    "deep": note('{"at":["spec","free"],"was":' + "[" * 450_000 + "]" * 450_000 + "}"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_what_somebody_has_put_aside_by_hand(worker: Worker, text: str) -> None:
    full = {"full": "x" * (256 * 1024 - 4)}
    value = with_note(at("v2", {"free": None}, annotations=full), "v1", text)
    assert len(orjson.dumps(value)) < ETCD_BYTES
    made = await converted(worker, value, "v1")
    assert not [each for each in made["metadata"].get("labels", {}) if PREFIX in each]


async def test_packed_notes_are_read_by_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = RuleBook(())
    rules.conversions[f"crontabs.{GROUP}"] = SERVED
    worker = Worker()
    converting = Converting(rules, WebhookMetrics(), worker)
    monkeypatch.setattr(converting._limit, "run", pytest.fail)
    value = at("v2", {}, labels={f"v1.{PREFIX}0": "xAAAAx"})
    async with working(worker.run()):
        coming = converting.answer(f"crontabs.{GROUP}", review(value, "v1"), "10.0.0.1")
        assert not isinstance(coming, Response)
        assert (await coming).status == 200
