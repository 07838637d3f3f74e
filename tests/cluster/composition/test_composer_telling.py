"""What the composer tells of composites besides their statuses: metrics and Events."""

import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, all_of, config_map, rights_on
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.waiting import settled

Json = Any
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
async def composing(author: Author, group: str) -> AsyncIterator[Composing]:
    """A definition, and the composer may do with its composites and with ConfigMaps what it needs."""
    async with rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(author, group)
        await composing.define()
        yield composing
        await composing.clean_up()


async def wrote(composer: Operator, what: str, number: int) -> None:
    """Returns once the composer has counted so many changes, which it does at the end of a pass."""

    async def counted() -> bool:
        return composer.metric("crdkeeper_composer_writes_total", what=what) == number

    await eventually(counted)


async def test_metrics_show_what_is_composed_and_what_waits(composer: Operator, composing: Composing) -> None:
    definition = composing.definition.name
    await composing.compose(
        config_map("settings", engine="${composite.spec.engine}"),
        config_map("more", ReadyWhen=["${more.data.go == 'Postgres'}"], go="${composite.spec.engine}"),
    )
    began = time.time()
    await composing.create("orders")
    await composing.says("orders", "Ready", "False", "Creating")

    def waits(condition: str) -> float:
        name = "crdkeeper_composite_waits_since_timestamp_seconds"
        return composer.metric(name, definition=definition, condition=condition)

    async def counted() -> bool:
        return waits("Ready") > 0

    await eventually(counted)
    # Conditions have whole seconds.
    assert began - 1 <= waits("Ready") <= time.time() and waits("Synced") == 0
    # A time that somebody else writes into the status changes nothing, nor does it end the work.
    since, passes = waits("Ready"), composer.metric("crdkeeper_composite_passes_total", result="synced")
    forged = (await composing.author.get(composing.path("orders")))["status"]["conditions"]
    for each in forged:
        each["lastTransitionTime"] = "0001-01-01T00:00:00+14:00"
    await composing.patch(f"{composing.path('orders')}/status", {"status": {"conditions": forged}}, "tenant")

    async def looked_again() -> bool:
        return composer.metric("crdkeeper_composite_passes_total", result="synced") > passes

    await eventually(looked_again)
    assert waits("Ready") == since
    assert composer.metric("crdkeeper_composite_pending_objects", kind="ConfigMap") == 1
    assert composer.metric("crdkeeper_composite_conditions", condition="Ready", reason="Creating") == 1
    await wrote(composer, "object-created", 2)
    await wrote(composer, "composite-finalizer", 1)
    await composing.create("orders", engine="Postgres")
    await composing.ready("orders")

    async def nothing_waits() -> bool:
        return waits("Ready") == 0

    await eventually(nothing_waits)
    await wrote(composer, "object-applied", 2)
    for phase in ("gather", "plan", "apply"):
        assert composer.metric("crdkeeper_composite_pass_seconds_count", phase=phase) > 0
    written = await settled(lambda: composer.metric("crdkeeper_composer_writes_total"))
    passes = composer.metric("crdkeeper_composite_passes_total", result="synced")
    await composing.patch(composing.path("orders"), {"metadata": {"labels": {"theirs": "x"}}})

    async def looked() -> bool:
        return composer.metric("crdkeeper_composite_passes_total", result="synced") > passes

    await eventually(looked)
    assert composer.metric("crdkeeper_composer_writes_total") == written
    await composing.delete("orders")
    await composing.author.gone(composing.path("orders"))

    async def forgotten() -> bool:
        return composer.metric("crdkeeper_composite_conditions") == 0

    await eventually(forgotten)
    await wrote(composer, "object-deleted", 2)


async def test_events_tell_what_becomes_of_a_composite(author: Author, composing: Composing) -> None:
    await composing.compose(
        config_map("settings", engine="${composite.spec.engine}"),
        config_map("more", engine="${composite.spec.engine}"),
    )
    taken = await author.put(
        f"{CONFIG_MAPS}/orders-more",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-more"}},
    )
    made = await composing.create("orders")
    await composing.says("orders", "Synced", "False", "NotOurs")

    async def told(*wanted: tuple[str, str, str]) -> None:
        """Exactly these Events, by type, reason and a part of the note, at last; in any order."""
        last: list[Json] = []

        async def look() -> bool:
            path = f"{EVENTS}?fieldSelector=regarding.uid%3D{made['metadata']['uid']}"
            items = (await author.get(path))["items"]
            last[:] = [(each["type"], each["reason"], each["note"]) for each in items]
            return len(last) == len(wanted) and all(
                any(each[:2] == found[:2] and each[2] in found[2] for found in last) for each in wanted
            )

        await eventually(look, otherwise=lambda: f"{last}")

    begun = [
        ("Normal", "ObjectsCreated", "ConfigMap default/orders-settings"),
        ("Warning", "NotOurs", "orders-more exists already"),
    ]
    await told(*begun)
    await author.delete(f"{CONFIG_MAPS}/{taken['metadata']['name']}")
    await composing.ready("orders")
    mended = [
        *begun,
        ("Normal", "ReconcileSuccess", "as the Composition says"),
        ("Normal", "ObjectsCreated", "ConfigMap default/orders-more"),
        ("Normal", "Available", "All objects are ready."),
    ]
    await told(*mended)
    await composing.delete("orders")
    await author.gone(composing.path("orders"))
    await told(*mended, ("Normal", "ObjectsDeleted", "ConfigMap default/orders-settings"))
