"""Whatever the API server answers to any request of a run, the work is completed in the end."""

import asyncio

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import Answer
from tests.unit.builders import condition_of, migration
from tests.unit.operations.migration.scene import (
    UNREACHABLE,
    About,
    Cluster,
    Process,
    Trouble,
    assert_migrated,
    finish,
    play,
    refusal,
)

ABOUT: tuple[About, ...] = (
    *("definition", "revision", "trim"),
    *("list", "look", "rewrite"),
    *("get", "save"),
    *("rights", "leases", "others"),
)
TROUBLES: dict[str, Trouble] = {
    "no answer": UNREACHABLE,
    "403": refusal(403, "Forbidden", 'User "me" cannot do resource "widgets"'),
    "404": refusal(404, "NotFound"),
    "409": refusal(409, "Conflict"),
    "410": refusal(410, "Expired"),
    "422": refusal(422, "Invalid"),
    "429": refusal(429, "TooManyRequests"),
    "500": refusal(500, "InternalError", "etcdserver: leader changed"),
    "503": refusal(503, "ServiceUnavailable"),
    "a proxy": Answer(502, b"<html>Bad Gateway</html>"),
}
FOR_GOOD = {("definition", "404")}
"""Answers after which there is nothing left to do, once the work has begun."""


def slowly(seconds: int = 20) -> StorageMigration:
    """A migration whose pass over ten objects takes that long."""
    return migration(settleSeconds=1, limits={"maxObjectsPerSecond": max(1, 10 // seconds)})


@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_trouble_is_got_over(about: About, trouble: str, nth: int) -> None:
    async def main() -> None:
        cluster = Cluster(made=slowly())
        # An object is written now and then, so that it is also read again.
        cluster.happens = lambda what, number: (
            cluster.touch("w7") if (what, number) == ("rewrite", 3) else None
        )
        # More often than the client retries by itself.
        cluster.troubles[about].extend([None] * (nth - 1) + [TROUBLES[trouble]] * 5)
        process = Process(cluster)
        done = await process.end()
        if (about, trouble) in FOR_GOOD and nth > 1:
            assert condition_of(done, "Succeeded") == ("False", "DefinitionDeleted")
        else:
            assert_migrated(cluster)
        assert done.status.restarts == 0

    play(main)


@pytest.mark.parametrize("about", ["list", "rewrite", "save", "trim"])
@pytest.mark.parametrize("trouble", ["403", "422", "500"])
def test_who_does_not_wait_for_what_lasts_is_left_in_peace(about: About, trouble: str) -> None:
    """A command ends; what may pass by itself is tried for as long as it takes."""

    async def main() -> bool:
        cluster = Cluster(made=slowly())
        # There is only one trim.
        before = [] if about == "trim" else [None] * 2
        cluster.troubles[about].extend(before + [TROUBLES[trouble]] * 10_000)
        process = Process(cluster, patience=lambda hold: not hold.lasting)
        try:
            await process.end(600.0)
        except TimeoutError:
            return False
        return True

    # An object that is refused is no trouble of the run: it is in quarantine.
    assert play(main) is (trouble != "500" and (about, trouble) != ("rewrite", "422"))


class TestCheckpoints:
    """The status cannot be saved while a pass is in progress."""

    @pytest.mark.parametrize("trouble", ["no answer", "409", "422", "500", "503"])
    def test_for_a_while(self, trouble: str) -> None:
        async def main() -> None:
            cluster = Cluster(objects=40, made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.troubles["save"].extend([TROUBLES[trouble]] * 10_000)
            before = cluster.requests["rewrite"]
            await asyncio.sleep(20.0)
            assert cluster.requests["rewrite"] - before > 15
            cluster.troubles["save"].clear()
            await process.end()
            assert_migrated(cluster)
            # The pass was not interrupted: each page of 4 objects was listed once in each of two passes.
            assert cluster.requests["list"] == 1 + 2 * 10
            assert process.reasons.count("Rewriting") == 2

        play(main)

    def test_for_too_long(self) -> None:
        async def main() -> None:
            cluster = Cluster(objects=200, made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.troubles["save"].extend([TROUBLES["503"]] * 100_000)
            await asyncio.sleep(75.0)
            written = cluster.requests["rewrite"]
            await asyncio.sleep(75.0)
            assert cluster.requests["rewrite"] == written < 200
            cluster.troubles["save"].clear()
            await process.end()
            assert_migrated(cluster)

        play(main)

    def test_answers_that_are_lost(self) -> None:
        async def main() -> None:
            cluster = Cluster(objects=40, made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.lost["save"] = 3
            await process.end()
            assert_migrated(cluster)
            assert cluster.requests["list"] == 1 + 2 * 10

        play(main)

    def test_others_who_write_to_the_migration_all_the_time_do_not_hold_it_up(self) -> None:
        async def main() -> None:
            cluster = Cluster(objects=40, made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.happens = lambda about, nth: cluster.annotate() if about == "save" and nth % 4 else None
            await process.end()
            assert_migrated(cluster)

        play(main)


def test_what_changed_is_announced_when_it_is_saved() -> None:
    async def main() -> None:
        cluster = Cluster()
        process = Process(cluster)
        cluster.happens = lambda about, nth: (
            cluster.troubles["save"].extend([TROUBLES["503"]] * 4) if (about, nth) == ("list", 1) else None
        )
        await process.end()
        assert_migrated(cluster)
        assert process.reasons.count("Settled") == 1

    play(main)


def test_the_work_goes_on_when_nothing_answers_for_an_hour() -> None:
    async def main() -> None:
        cluster = Cluster(made=slowly())
        process = Process(cluster)
        await process.until("Rewritten", "Rewriting")
        for about in ABOUT:
            cluster.troubles[about].extend([UNREACHABLE] * 100_000)
        await asyncio.sleep(3600.0)
        assert cluster.requests.total() < 3000
        cluster.troubles.clear()
        await process.end(seconds=90.0)
        assert_migrated(cluster)

    play(main)


def test_refusals_of_the_status_alone_end_with_the_object() -> None:
    async def main() -> None:
        cluster = Cluster(made=slowly())
        process = Process(cluster)
        await process.until("Rewritten", "Rewriting")
        cluster.migration = {**(cluster.migration or {}), "metadata": {"name": "m", "uid": "another"}}
        async with asyncio.timeout(10.0):
            await process.task
        assert cluster.requests["rewrite"] < 10

    play(main)


def test_the_first_request_of_all_may_fail() -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.troubles["save"].extend([UNREACHABLE] * 3)
        await finish(cluster)
        assert_migrated(cluster)

    play(main)
