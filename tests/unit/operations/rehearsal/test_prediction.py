"""What an update would do to live objects: what is new about it, within limits."""

import asyncio
import copy
import threading
from typing import Any, cast

import pytest

from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.operations.rehearsal import prediction
from crdkeeper.operations.rehearsal.prediction import predict
from tests.unit.controllers.fakeapi import FakeApi

Json = Any
OBJECTS = "/apis/example.com/v1/widgets"


def definition(**size: Json) -> Json:
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "string", **size}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
        "status": {"storedVersions": ["v1"]},
    }


def api(*sizes: str) -> Client:
    fake = FakeApi()
    for number, size in enumerate(sizes):
        name = f"w-{number}"
        fake.objects[f"{OBJECTS}/{name}"] = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"size": size},
        }
    return cast(Client, fake)


def counts(live: Json, document: Json, *sizes: str, **limit: Any) -> dict[EffectKind, int]:
    before = copy.deepcopy((live, document))
    report = asyncio.run(predict(api(*sizes), live, document, None, None, **limit))
    assert (live, document) == before
    assert report.tally.objects == len(sizes)
    return report.tally.affected


def test_objects_that_the_update_refuses_are_counted() -> None:
    found = counts(definition(), definition(enum=["s", "m"]), "s", "l", "xl")
    assert found[EffectKind.REFUSED] == 2


def test_objects_that_are_refused_already_are_not_hurt() -> None:
    live, document = definition(enum=["s"]), definition(enum=["s"], description="In letters.")
    assert counts(live, document, "s", "xl") == {}


def test_a_turn_ends_with_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that is replaced cancels its rehearsal, but no thread: two would take twice the memory."""
    begun, go_on, judged = threading.Event(), threading.Event(), prediction._effects

    def slow(*of: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return judged(*of)

    monkeypatch.setattr(prediction, "_effects", slow)

    async def story() -> None:
        turn = asyncio.Lock()
        update = definition(), definition(enum=["s"]), None, None, None, turn
        task = asyncio.create_task(predict(api("s"), *update))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert turn.locked()
        go_on.set()
        async with asyncio.timeout(60):
            report = await predict(api("s", "l"), *update)
        assert report.tally.affected[EffectKind.REFUSED] == 1
        assert not turn.locked()

    asyncio.run(story())


def test_what_exceeds_the_limit_is_not_predicted() -> None:
    slow = definition(pattern="^([a-c]{0,500})*d?$")
    found = counts(definition(), slow, *["a" * 3000] * 20, allowance=SharedAllowance(20_000_000))
    assert 0 < found[EffectKind.INDETERMINATE] < 20
