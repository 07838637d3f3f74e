"""Judgements are made once for each change, and rehearsals run beside other work."""

import asyncio
import copy
import gc
import tracemalloc
from typing import Any, cast

import orjson
import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition import judging
from crdkeeper.controllers.compositeresourcedefinition.judging import Judging
from crdkeeper.core.composer.update import Rehearsed, Rules, UpdateFacts
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.conversion.target import WebhookAddress, wanted_conversion
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.operations.rehearsal.prediction import predict
from tests.unit.controllers.fakeapi import FakeApi
from tests.unit.core.composer.test_plan import OURS, TIGHTER, crd
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
NAME = "databases.platform.example.com"
OBJECTS = "/apis/platform.example.com/v1/databases"
CONVERSION = f"/apis/crdkeeper.dev/v1alpha1/versionconversions/{NAME}"


class Scene:
    """A Judging with a fake API server that has one composite."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.api.objects[f"{OBJECTS}/a"] = {
            "apiVersion": "platform.example.com/v1",
            "kind": "Database",
            "metadata": {"name": "a", "namespace": "default", "uid": "1"},
            "spec": {"engine": "MySQL", "replicas": 1},
        }
        self.rehearsed: asyncio.Queue[str] = asyncio.Queue()
        self.judging = Judging(cast(Client, self.api), self.rehearsed.put_nowait)

    async def judge(self, value: Json, live: Json, composites: int | None = 1) -> UpdateFacts:
        definition = CompositeResourceDefinition.model_validate(value)
        _, facts = await self.judging.of(value, definition, live, composites, lambda *_: None)
        return facts

    async def until_rehearsed(self) -> None:
        async with asyncio.timeout(60):
            assert await self.rehearsed.get() == NAME


async def test_a_rehearsal_runs_beside_and_calls_back() -> None:
    scene = Scene()
    assert (await scene.judge(TIGHTER, crd())).rehearsal == Rehearsed()
    await scene.until_rehearsed()
    found = (await scene.judge(TIGHTER, crd())).rehearsal.report
    assert found is not None
    assert found.tally.affected[EffectKind.REFUSED] == 1
    assert scene.rehearsed.empty()


async def test_each_change_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, judged = Scene(), []

    def counted(value: Json) -> Any:
        judged.append(value["metadata"]["generation"])
        return accept(value)

    monkeypatch.setattr(judging, "accept", counted)
    value = document(metadata=OURS)
    for _ in range(3):
        await scene.judge(value, crd())
    changed = copy.deepcopy(value)
    changed["metadata"]["generation"] = 4
    await scene.judge(changed, crd())
    assert judged == [3, 4]
    assert scene.rehearsed.empty()


async def test_a_change_is_judged_again_once_it_is_known_where_the_rules_are_served() -> None:
    """The operator says it in the status, which is no new generation."""
    scene, here = Scene(), WebhookAddress("crdkeeper-system", "crdkeeper-webhook")
    resource = {"group": "platform.example.com", "resource": "databases"}
    status: Json = {"servedGeneration": 1}
    scene.api.objects[CONVERSION] = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": NAME, "uid": "3", "generation": 1},
        "spec": {"resource": resource, "hub": "v1", "spokes": [{"version": "v2"}]},
        "status": status,
    }
    tight = schema(
        {**SPEC, "properties": {**SPEC["properties"], "replicas": {"type": "integer", "maximum": 9}}}
    )
    before, after = (
        document(version(of=each), version("v2", each, referenceable=False), metadata=OURS)
        for each in (None, tight)
    )
    live = crd(before)
    live["spec"]["conversion"] = wanted_conversion(here, NAME, "PEM")

    async def rules() -> Rules:
        return (await scene.judge(after, live, composites=0)).update.rules

    assert (await rules()).errors
    status["clientConfig"] = WebhookAddress("former", "crdkeeper-webhook").client_config(NAME)
    assert await rules() == Rules(exist=True)
    status["clientConfig"] = here.client_config(NAME)
    found = await rules()
    assert found.before is not None
    assert found.after is not None


async def test_a_new_change_ends_the_rehearsal_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, begun, ended = Scene(), asyncio.Event(), asyncio.Event()

    async def the_first_never_ends(*of: Any) -> Any:
        if begun.is_set():
            return await predict(*of)
        begun.set()
        try:
            return await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(judging, "predict", the_first_never_ends)
    await scene.judge(TIGHTER, crd())
    await begun.wait()
    changed = copy.deepcopy(TIGHTER)
    changed["metadata"]["generation"] = 4
    assert (await scene.judge(changed, crd())).rehearsal.report is None
    await scene.until_rehearsed()
    assert ended.is_set()
    assert (await scene.judge(changed, crd())).rehearsal.report is not None
    assert scene.rehearsed.empty()


async def test_a_deletion_needs_no_judgement_and_reads_nothing_for_one() -> None:
    scene = Scene()
    scene.api.failures.append(("GET", CONVERSION, ApiError(500, {"message": "no"})))
    going = copy.deepcopy(TIGHTER)
    going["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert await scene.judge(going, crd()) == UpdateFacts()


async def test_what_the_last_attempt_cost_counts_although_the_composites_cannot_be_counted() -> None:
    scene = Scene()
    await scene.judge(TIGHTER, crd())
    await scene.until_rehearsed()
    assert (await scene.judge(TIGHTER, crd(), composites=None)).rehearsal == Rehearsed()
    assert (await scene.judge(TIGHTER, crd())).rehearsal.report is not None
    assert (await scene.judge(TIGHTER, crd(), composites=0)).rehearsal == Rehearsed()
    assert (await scene.judge(TIGHTER, crd())).rehearsal == Rehearsed()


async def test_what_is_nested_too_deep_for_most_programs_is_judged() -> None:
    text = b"[" * 2_000 + b"]" * 2_000
    field = loads(b'{"type": "array", "default": %s}' % text)
    value = document(version(of=schema({"type": "object", "properties": {"deep": field}})), metadata=OURS)
    definition = CompositeResourceDefinition.model_validate(value)
    accepted, _ = await Scene().judging.of(value, definition, None, 0, lambda *_: None)
    assert accepted.crd is not None
    made = accepted.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert dumps(made["properties"]["deep"]["default"]) == text


async def test_hardly_anything_is_kept_of_large_schemas() -> None:
    """A composer has 512 MiB for all definitions."""
    fields = {f"field{each}": {"type": "string", "description": f"{each} " * 20} for each in range(1000)}
    value = document(version(of=schema({"type": "object", "properties": fields})), metadata=OURS)
    size, scene = len(orjson.dumps(value)), Scene()

    async def judge(name: str) -> None:
        # As it comes from the API server: with strings of its own.
        found = orjson.loads(orjson.dumps(value))
        found["metadata"]["name"] = f"{name}.platform.example.com"
        found["spec"]["names"] = {"kind": name.capitalize(), "plural": name}
        live = crd(found)
        await scene.judging.of(
            found, CompositeResourceDefinition.model_validate(found), live, 0, lambda *_: None
        )

    await judge("first")
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(4):
            await judge(f"many{number}")
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 4 < size / 4
