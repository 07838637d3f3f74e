"""Objects that are changed again and again: the composer slows down, and says who does it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, all_of, config_map, rights_on
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.waiting import TIMEOUT_SECONDS

Json = Any
SETTINGS = f"{CONFIG_MAPS}/orders-settings"


@pytest.fixture
async def composing(author: Author, group: str) -> AsyncIterator[Composing]:
    """A definition with a Composition of one ConfigMap, and a composite."""
    async with rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(author, group)
        await composing.define()
        fields = {"engine": "${composite.spec.engine}", "on": "${string(composite.spec.enabled)}"}
        await composing.compose(config_map("settings", **fields))
        await composing.create("orders", enabled=False)
        await composing.ready("orders")
        yield composing
        await composing.clean_up()


@asynccontextmanager
async def again_and_again(act: Callable[[int], Awaitable[object]]) -> AsyncIterator[None]:
    """Do something all the time, whatever becomes of it."""

    async def run() -> None:
        for number in count():
            try:
                await act(number)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
            await asyncio.sleep(0.1)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError)


class Writes:
    """The composer's writes of objects since the beginning of a test."""

    def __init__(self, composer: Operator, what: str) -> None:
        self._composer = composer
        self._what = f"object-{what}"
        self._before = self._total()
        self._began = time.monotonic()

    def _total(self) -> float:
        return self._composer.metric("crdkeeper_composer_writes_total", what=self._what)

    async def number(self, number: int) -> None:
        """Return once there were so many."""

        async def counted() -> bool:
            return self._total() - self._before >= number

        await eventually(counted, otherwise=lambda: f"{self._total() - self._before:.0f} of {number}")

    def are_few(self, at_once: int, pause: float) -> None:
        """Checks that there were no more than so many, and one after each of the pauses, which double."""
        most, written, left = at_once, self._total() - self._before, time.monotonic() - self._began
        while left >= pause:
            most, left, pause = most + 1, left - pause, 2 * pause
        assert written <= most


def applied_at(found: Json) -> datetime:
    """When the composer wrote an object last, in the API server's whole seconds."""
    (own,) = (each for each in found["metadata"]["managedFields"] if each["manager"] == FIELD_MANAGER)
    return datetime.fromisoformat(own["time"])


async def first_with(composing: Composing, since: Json, holds: Callable[[Json], bool]) -> Json:
    """A ConfigMap as it was when its data were first so, however late that is seen here."""
    metadata = since["metadata"]
    path = (
        f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={metadata['resourceVersion']}"
        f"&fieldSelector=metadata.name%3D{metadata['name']}"
    )
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async for line in composing.author.client.lines(path):
            event = orjson.loads(line)
            assert event["type"] in ("MODIFIED", "BOOKMARK"), line
            if event["type"] == "MODIFIED" and holds(event["object"]["data"]):
                return event["object"]
    raise AssertionError("the watch ended")


async def test_a_rival_is_named_and_holds_up_neither_its_composite_nor_others(
    composer: Operator, composing: Composing
) -> None:
    applied = Writes(composer, "applied")

    async def fight(number: int) -> None:
        await composing.patch(SETTINGS, {"data": {"engine": f"rival {number}"}}, "rival")

    async with again_and_again(fight):
        said = "ConfigMap default/orders-settings (data.engine) is changed again and again by rival."
        await composing.says("orders", "Responsive", "False", "Overwritten", said)
        await composing.says("orders", "Synced", "False", "SlowedDown", said)
        await composing.create("others", enabled=False)
        await composing.ready("others")
        # Three at once, and one after 15 seconds. Without pauses, there would be some in each second.
        await applied.number(4)
        applied.are_few(3, 15.0)
        # A pause of 30 seconds begins. What a user wants is not what the rival fights about.
        paused = await composing.author.get(SETTINGS)
        await composing.create("orders", enabled=True)
        changed = await first_with(composing, paused, lambda data: data["on"] == "true")
        assert applied_at(changed) - applied_at(paused) < timedelta(seconds=30)
        await first_with(composing, changed, lambda data: data["engine"].startswith("rival"))
    # What was changed is put back, but only what was so for long is quiet.
    await composing.says("orders", "Synced", "True", "ReconcileSuccess", seconds=180.0)
    await composing.has("orders-settings", engine="MySQL", on="true")
    await composing.says("orders", "Responsive", "False", "Overwritten")


async def test_an_object_that_somebody_deletes_all_the_time(composer: Operator, composing: Composing) -> None:
    # By then, the composer has seen that its status lists the ConfigMap: else, it has not vanished for it.
    await composing.patch(composing.path("orders"), {"spec": {"enabled": True}})
    await composing.has("orders-settings", engine="MySQL", on="true")
    created = Writes(composer, "created")
    async with again_and_again(lambda _: composing.author.delete(SETTINGS)):
        said = "ConfigMap default/orders-settings is deleted again and again."
        await composing.says("orders", "Responsive", "False", "Vanishing", said)
        await created.number(3)
        await asyncio.sleep(5.0)
        created.are_few(3, 15.0)
    await composing.says("orders", "Ready", "True", "Available", seconds=180.0)
    await composing.has("orders-settings", engine="MySQL", on="true")


async def test_a_composite_that_changes_all_the_time(composer: Operator, composing: Composing) -> None:
    applied = Writes(composer, "applied")

    async def change(number: int) -> None:
        await composing.patch(composing.path("orders"), {"spec": {"enabled": number % 2 == 0}}, "gitops")

    def told(found: Json) -> bool:
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any("because gitops changes the composite" in each["message"] for each in conditions)

    async with again_and_again(change):
        await composing.until("orders", told, seconds=180.0)
        await applied.number(20)
        await asyncio.sleep(3.0)
        applied.are_few(20, 5.0)
    # The last change comes in the end.
    wanted = (await composing.author.get(composing.path("orders")))["spec"]["enabled"]
    await composing.has("orders-settings", engine="MySQL", on=str(wanted).lower())
