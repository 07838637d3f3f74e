"""A pass over objects that tenants make as large as they can."""

import asyncio
import gc
from typing import Any

import orjson
import pytest

from crdkeeper.api.storagemigration import MigrationLimits
from crdkeeper.cluster.resources.objects import Endpoint, Page
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES
from crdkeeper.cluster.transport.client import Answer, TooLarge
from crdkeeper.core.migration.evidence import ObjectRef
from crdkeeper.core.migration.protocol import SweepType
from crdkeeper.operations.migration.sweep import Sweep
from tests.unit.builders import migration
from tests.unit.cluster.largeobjects import KIB, MIB, LargeObjects
from tests.unit.operations.migration.scene import Cluster, Process, assert_migrated, play, refusal

TOO_LARGE = TooLarge("the response is larger than 4 MiB")


def sweep_of(
    client: LargeObjects, retarget_to: tuple[str, str] | None = None, type_: SweepType = "Rewrite"
) -> Sweep:
    return Sweep(
        client,
        Endpoint("example.com", "v2", "widgets"),
        type_,
        MigrationLimits(),
        separator=500,
        retarget_to=retarget_to,
        observer=lambda outcome, code, seconds: None,
    )


async def test_each_is_written_and_no_answer_is_large() -> None:
    client = LargeObjects(*[KIB] * 700, *[200 * KIB] * 60, 5 * MIB, *[KIB] * 700)
    sweep = sweep_of(client)
    await sweep.run(None)
    assert sorted(client.written) == sorted(f"w{number}" for number in range(1_461))
    assert (sweep.tally.rewritten, sweep.tally.total) == (1_461, 1_461)
    assert client.largest <= METADATA_BYTES


async def test_few_large_managed_fields_wait_to_be_written() -> None:
    client = LargeObjects(*[100 * KIB] * 300, *[KIB] * 300, managed=True)
    await sweep_of(client, ("example.com", "v2")).run(None)
    assert sorted(client.written) == sorted(f"w{number}" for number in range(600))
    assert 0 < client.most_ahead <= 2 * METADATA_BYTES


class Weighed(LargeObjects):
    """Counts the bytes of managedFields in memory while a page is requested."""

    most_kept = 0

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        if method == "PATCH":
            await asyncio.sleep(0.01)
        elif "?limit=" in path:
            refs = [each for each in gc.get_objects() if isinstance(each, ObjectRef)]
            self.most_kept = max(self.most_kept, sum(len(each.managed_fields or b"") for each in refs))
        return await super().send(method, path, **options)


def test_writers_that_wait_keep_no_large_managed_fields() -> None:
    async def main() -> None:
        client = Weighed(*[20 * KIB] * 600, *[500 * KIB] * 80, managed=True)
        await sweep_of(client, ("example.com", "v2")).run(None)
        assert len(client.written) == 680
        assert 0 < client.most_kept <= 2 * METADATA_BYTES

    play(main)


class WithoutWebhook(Weighed):
    """No write gets through."""

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        if method == "PATCH":
            await asyncio.sleep(0.01)
            return refusal(500, message='failed calling webhook "w.example.com": failed to call webhook: EOF')
        if "?limit=" not in path:
            # The list that has this object alone.
            listed, _, name = path.rpartition("/")
            alone = await LargeObjects.send(self, method, f"{listed}?limit=1&continue={name[1:]}", **options)
            return Answer(200, orjson.dumps(alone.json()["items"][0]))
        return await super().send(method, path, **options)


def test_a_plan_keeps_no_large_managed_fields_of_what_it_tries_again() -> None:
    async def main() -> None:
        client = WithoutWebhook(*[100 * KIB] * 300, *[KIB] * 600, managed=True)
        sweep = sweep_of(client, ("example.com", "v2"), "Plan")
        await sweep.run(None)
        assert (sweep.tally.scanned, sweep.tally.refused_count) == (900, 900)
        assert 0 < client.most_kept <= 2 * METADATA_BYTES

    play(main)


class Watched(LargeObjects):
    """Counts the pages that are in memory while the next one is requested."""

    kept = 0

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        if method == "GET":
            self.kept += sum(isinstance(each, Page) for each in gc.get_objects())
        return await super().send(method, path, **options)


async def test_a_page_is_gone_when_the_next_one_comes() -> None:
    client = Watched(*[KIB] * 1_200)
    await sweep_of(client).run(None)
    assert (len(client.answers), client.kept) == (3, 0)


@pytest.mark.parametrize("limits", [1, 3, 5])
def test_a_page_that_is_too_large_interrupts_no_migration(limits: int) -> None:
    """With as many limits: the last one is a single object."""

    async def main() -> None:
        cluster = Cluster(made=migration(settleSeconds=5))
        cluster.troubles["list"].extend([None, *[TOO_LARGE] * limits])
        process = Process(cluster)
        await process.end()
        assert_migrated(cluster)
        assert "APIServerUnavailable" not in process.reasons

    play(main)


def test_a_single_object_without_any_room_holds_the_migration_until_there_is() -> None:
    async def main() -> None:
        cluster = Cluster(made=migration(settleSeconds=5))
        cluster.troubles["list"].extend([None, *[TOO_LARGE] * 6])
        process = Process(cluster)
        held = await process.until("Succeeded", "APIServerUnavailable")
        assert "larger than 4 MiB" in str(held.status.conditions)
        await process.end()
        assert_migrated(cluster)

    play(main)
