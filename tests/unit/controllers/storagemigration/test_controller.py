"""What the operator does about its StorageMigrations on each event: which run starts, and until when."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.storagemigration.controller import StorageMigrations
from tests.unit.builders import NAME, NOW, condition_of, migration, with_condition
from tests.unit.core.diagnosis.builders import seen
from tests.unit.operations.migration.scene import (
    UNREACHABLE,
    About,
    Cluster,
    assert_migrated,
    play,
    refusal,
)

DENIAL = 'admission webhook "w.example.com" denied the request: no'
SLOWLY: dict[str, Any] = {"limits": {"maxObjectsPerSecond": 1}, "settleSeconds": 1}


class Operator:
    """The controller on a cluster, with an arbitrarily late watch."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.state = ClusterState()
        self.metrics = OperatorMetrics()
        self.controller = StorageMigrations(cluster, self.state, self.metrics, identity="me")
        self._queue = asyncio.create_task(self.controller.queue.run())

    def watch(self) -> None:
        """The watch shows the stored migration, or that it is gone."""
        self.state.saw_migration("m", self.cluster.stored if self.cluster.migration else None)

    async def watch_all_the_time(self) -> None:
        while True:
            self.watch()
            await asyncio.sleep(0.5)

    async def stop(self) -> None:
        """Like the loss of leadership, or the end of the pod."""
        self._queue.cancel()
        await asyncio.gather(self._queue, return_exceptions=True)
        await self.controller.stop()

    async def until(self, holds: Callable[[], bool], seconds: float = 600.0) -> None:
        async with asyncio.timeout(seconds):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.05)

    @property
    def rewritten(self) -> int:
        return self.cluster.requests["rewrite"]

    def ended(self) -> bool:
        return self.cluster.stored.status.completion_time is not None

    def ready(self) -> list[str]:
        """The reason of the condition Ready, once there is one."""
        return [each.reason for each in self.cluster.stored.status.conditions if each.type == "Ready"]

    def counted(self, state: str) -> float | None:
        return self.metrics.registry.get_sample_value("crdkeeper_migrations", {"state": state})


def operate(story: Callable[[Operator], Awaitable[None]], **cluster: Any) -> None:
    """The events of one operator, until its end."""

    async def main() -> None:
        operator = Operator(Cluster(**cluster))
        try:
            await story(operator)
        finally:
            await operator.stop()

    play(main)


def finished(reason: str = "Migrated", **spec: Any) -> StorageMigration:
    made = with_condition(migration(**spec), "Succeeded", "True" if reason == "Migrated" else "False", reason)
    made.status.observed_generation = made.metadata.generation
    made.status.completion_time = NOW
    return made


class TestEvents:
    def test_one_that_is_new_is_run_and_announced(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(operator.ended)
            assert_migrated(operator.cluster)
            assert [reason for _, reason in operator.cluster.events] == [
                *("Pinned", "Settling", "Settled", "AllWritten", "NothingLeft", "Trimmed", "Migrated")
            ]

        operate(story)

    def test_an_event_for_each_of_its_checkpoints_starts_no_second_run(self) -> None:
        async def story(operator: Operator) -> None:
            watch = asyncio.create_task(operator.watch_all_the_time())
            await operator.until(operator.ended)
            watch.cancel()
            assert_migrated(operator.cluster)
            assert operator.rewritten == 10
            assert operator.cluster.requests["trim"] == 1

        operate(story, made=migration(**SLOWLY))

    def test_a_changed_spec_reaches_its_run(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(lambda: operator.rewritten > 2)
            operator.cluster.change_spec(suspend=True)
            operator.watch()
            await operator.until(
                lambda: condition_of(operator.cluster.stored, "Ready")[1] == "Suspended", 5.0
            )
            operator.watch()
            assert operator.counted("suspended") == 1.0
            written = operator.rewritten
            await asyncio.sleep(100.0)
            assert operator.rewritten == written
            operator.cluster.change_spec(suspend=False, limits={})
            operator.watch()
            await operator.until(operator.ended, 5.0)
            assert_migrated(operator.cluster)

        operate(story, made=migration(**SLOWLY))

    def test_a_changed_crd_wakes_its_run(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(lambda: operator.rewritten > 2)
            operator.cluster.change_definition()
            operator.state.saw_definition(NAME, seen())
            await operator.until(lambda: operator.cluster.stored.status.restarts == 1, 0.5)

        operate(story, made=migration(**SLOWLY))

    def test_a_deleted_one_is_not_gone_on_with(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(lambda: operator.rewritten > 2)
            operator.cluster.migration = None
            operator.watch()
            await asyncio.sleep(0.5)
            written = operator.rewritten
            await asyncio.sleep(100.0)
            assert operator.rewritten == written
            assert operator.cluster.stored_versions == ["v1", "v2"]

        operate(story, made=migration(**SLOWLY))

    def test_one_that_was_deleted_and_created_is_another(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(lambda: operator.rewritten > 2)
            fresh = migration(settleSeconds=1).to_object()
            fresh["metadata"] |= {"uid": "another", "resourceVersion": "5000"}
            operator.cluster.migration = fresh
            operator.watch()
            await operator.until(operator.ended)
            assert_migrated(operator.cluster)
            assert operator.cluster.stored.metadata.uid == "another"
            progress = operator.cluster.stored.status.progress
            assert 0 < progress.current < progress.total == 10

        operate(story, made=migration(**SLOWLY))

    def test_what_the_command_line_runs_is_left_to_it(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await asyncio.sleep(100.0)
            assert operator.cluster.requests.total() == 0

        operate(story, made=migration(managedBy=CLI))

    def test_a_watch_that_lags_behind_does_not_run_it_again(self) -> None:
        async def story(operator: Operator) -> None:
            old = operator.cluster.stored
            operator.watch()
            await operator.until(operator.ended)
            requests = operator.cluster.requests["save"]
            operator.state.saw_migration("m", old)
            await asyncio.sleep(100.0)
            assert operator.cluster.requests["save"] == requests

        operate(story)


class TestTheEnd:
    @pytest.mark.parametrize(("reason", "runs"), [("Migrated", False), ("RetriesExhausted", True)])
    def test_a_changed_spec_revives_what_has_failed(self, reason: str, runs: bool) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await asyncio.sleep(100.0)
            assert operator.rewritten == 0
            operator.cluster.change_spec(limits={"maxConcurrency": 2})
            operator.watch()
            await asyncio.sleep(100.0)
            assert operator.rewritten == (10 if runs else 0)

        operate(story, made=finished(reason))

    def test_the_ttl_counts_from_success(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await asyncio.sleep(59.0)
            assert operator.cluster.migration is not None
            await asyncio.sleep(2.0)
            assert operator.cluster.migration is None

        operate(story, made=finished(ttlSecondsAfterFinished=60))

    @pytest.mark.parametrize("spec", [{}, {"ttlSecondsAfterFinished": 60}], ids=["no TTL", "failed"])
    def test_others_stay(self, spec: dict[str, Any]) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await asyncio.sleep(1000.0)
            assert operator.cluster.migration is not None

        operate(story, made=finished("RetriesExhausted" if spec else "Migrated", **spec))


class TestTrouble:
    @pytest.mark.parametrize("about", ["get", "save", "event"])
    @pytest.mark.parametrize(
        "trouble",
        [UNREACHABLE, refusal(403, "Forbidden"), refusal(429, "TooManyRequests"), refusal(500), refusal(503)],
        ids=["no answer", "403", "429", "500", "503"],
    )
    def test_it_is_got_over(self, about: About, trouble: Any) -> None:
        async def story(operator: Operator) -> None:
            operator.cluster.troubles[about].extend([trouble] * 6)
            operator.watch()
            await operator.until(operator.ended)
            assert_migrated(operator.cluster)

        operate(story)

    def test_a_run_that_breaks_off_starts_again(self) -> None:
        async def story(operator: Operator) -> None:
            operator.cluster.troubles["list"].append(ValueError("a defect of ours"))
            operator.watch()
            await operator.until(operator.ended)
            assert_migrated(operator.cluster)

        operate(story)

    def test_what_was_done_is_saved_when_leadership_is_lost(self) -> None:
        async def story(operator: Operator) -> None:
            operator.watch()
            await operator.until(lambda: operator.rewritten == 5)
            await operator.stop()
            written = operator.rewritten
            assert operator.cluster.stored.status.progress.rewritten >= written - 1
            await asyncio.sleep(100.0)
            assert operator.rewritten == written
            successor = Operator(operator.cluster)
            successor.watch()
            await successor.until(successor.ended)
            await successor.stop()
            assert_migrated(operator.cluster)
            assert operator.cluster.stored.status.restarts == 0

        operate(story, made=migration(**SLOWLY))


def test_migrations_are_counted_by_state() -> None:
    async def story(operator: Operator) -> None:
        operator.watch()
        assert operator.counted("pending") == 1.0
        await operator.until(lambda: operator.rewritten > 2)
        operator.watch()
        assert (operator.counted("pending"), operator.counted("running")) == (0.0, 1.0)
        await operator.until(operator.ended)
        operator.watch()
        assert (operator.counted("running"), operator.counted("succeeded")) == (0.0, 1.0)
        operator.state.saw_migration("m", None)
        assert operator.counted("succeeded") == 0.0

    operate(story, made=migration(**SLOWLY))
