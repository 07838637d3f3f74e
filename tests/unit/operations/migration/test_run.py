"""A migration's run: its course, what people do meanwhile, and a process that ends at any moment."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from tests.unit.builders import condition_of, migration
from tests.unit.operations.migration.scene import (
    About,
    Cluster,
    Process,
    assert_migrated,
    finish,
    play,
    refusal,
)

DENIAL = 'admission webhook "w.example.com" denied the request: no'


def slowly(**spec: Any) -> StorageMigration:
    """A migration slow enough for others to observe while it runs."""
    return migration(settleSeconds=5, limits={"maxObjectsPerSecond": 1}, **spec)


def test_the_course_of_a_run() -> None:
    async def main() -> None:
        cluster = Cluster()
        process = Process(cluster)
        done = await process.end()
        assert_migrated(cluster)
        assert process.reasons == [
            *("Pinned", "Pinned", "Settling", "Settling", "Allowed", "Settled"),
            *("Rewriting", "Rewriting", "AllWritten", "Verifying", "Verifying", "NothingLeft"),
            *("Trimmed", "Migrated"),
        ]
        assert (done.status.progress.rewritten, done.status.progress.percent) == (10, 100)
        assert (cluster.requests["rewrite"], cluster.requests["trim"]) == (10, 1)

    play(main)


def test_what_is_current_is_left_alone() -> None:
    async def main() -> None:
        cluster = Cluster(stored=("v2",))
        done = await finish(cluster)
        assert condition_of(done, "Succeeded") == ("True", "AlreadyCurrent")
        assert cluster.requests["rewrite"] == cluster.requests["trim"] == 0

    play(main)


def test_a_plan_tries_and_writes_nothing_of_the_crd() -> None:
    async def main() -> None:
        cluster = Cluster(made=migration(mode="Plan"))
        done = await finish(cluster)
        assert condition_of(done, "Succeeded") == ("True", "PlanClean")
        assert cluster.requests["trim"] == cluster.requests["others"] == 0

    play(main)


class TestPeople:
    def test_suspend_and_go_on(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            await asyncio.sleep(3.0)
            process.run.update(cluster.change_spec(suspend=True))
            held = await process.until("Suspended", "Suspended", seconds=3.0)
            assert 0 < held.status.progress.rewritten < 10
            written = cluster.requests["rewrite"]
            await asyncio.sleep(60.0)
            assert cluster.requests["rewrite"] == written
            process.run.update(cluster.change_spec(suspend=False))
            await process.end()
            assert_migrated(cluster)
            assert condition_of(cluster.stored, "Suspended") == ("False", "Resumed")
            assert process.reasons.count("Suspended") == 2

        play(main)

    def test_other_limits_hold_at_once(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            process.run.update(cluster.change_spec(limits={}))
            await process.end(seconds=5.0)
            assert_migrated(cluster)

        play(main)

    def test_deleted_in_mid_run(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.migration = None
            async with asyncio.timeout(5.0):
                await process.task
            written = cluster.requests["rewrite"]
            await asyncio.sleep(60.0)
            assert cluster.requests["rewrite"] == written < 10
            assert cluster.stored_versions == ["v1", "v2"]

        play(main)

    def test_run_by_somebody_else_meanwhile(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            theirs = Process(cluster)
            async with asyncio.timeout(10.0):
                await asyncio.wait({process.task, theirs.task}, return_when=asyncio.FIRST_COMPLETED)
            assert process.task.done() != theirs.task.done()
            await (theirs if process.task.done() else process).end()
            assert_migrated(cluster)

        play(main)


class TestDefinition:
    def test_changed_in_mid_run(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.change_definition()
            process.run.wake()
            await process.until("Resolved", "TargetChanged", seconds=1.0)
            done = await process.end()
            assert_migrated(cluster)
            assert done.status.restarts == 1
            assert process.reasons.count("TargetChanged") == 2

        play(main)

    @pytest.mark.parametrize("at", ["rewrite", "trim"])
    def test_deleted(self, at: About) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())

            def happens(about: About, nth: int) -> None:
                if (about, nth) == (at, 1):
                    cluster.definition = None
                    cluster.troubles["rewrite"].append(refusal(404, message="404 page not found"))

            cluster.happens = happens
            done = await finish(cluster)
            assert condition_of(done, "Resolved") == ("False", "DefinitionDeleted")
            assert condition_of(done, "Stalled") == ("True", "DefinitionDeleted")

        play(main)

    def test_created_again(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            process = Process(cluster)
            await process.until("Rewritten", "Rewriting")
            cluster.change_definition(uid="u2", generation=1)
            done = await process.end()
            assert_migrated(cluster)
            assert (done.status.target and done.status.target.uid, done.status.restarts) == ("u2", 1)

        play(main)

    def test_changed_between_the_last_look_and_the_trim(self) -> None:
        async def main() -> None:
            cluster = Cluster()
            cluster.happens = lambda about, nth: (
                cluster.change_definition() if (about, nth) == ("trim", 1) else None
            )
            done = await finish(cluster)
            assert_migrated(cluster)
            assert (done.status.restarts, cluster.requests["trim"]) == (1, 2)

        play(main)


def test_refused_objects_are_tried_again_until_they_are_written() -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.troubles["rewrite"].extend([refusal(403, "Forbidden", DENIAL)] * 2)
        process = Process(cluster)
        refused = await process.until("Rewritten", "ObjectsRefused")
        assert len(refused.status.quarantine.objects) == 2
        assert condition_of(refused, "Reconciling") == ("True", "ObjectsRefused")
        done = await process.end()
        assert_migrated(cluster)
        assert (done.status.quarantine.rounds, cluster.requests["rewrite"]) == (1, 12)

    play(main)


def test_another_migrator_that_begins_in_mid_run_is_waited_for() -> None:
    async def main() -> None:
        cluster = Cluster(objects=60, made=slowly())
        resource = {"group": "example.com", "resource": "widgets"}
        process = Process(cluster)
        await process.until("Rewritten", "Rewriting")
        cluster.others.append({"metadata": {"name": "svm"}, "spec": {"resource": resource}})
        held = await process.until("Rewritten", "AnotherMigrator", seconds=15.0)
        assert held.status.progress.rewritten > 0
        written = cluster.requests["rewrite"]
        await asyncio.sleep(600.0)
        assert cluster.requests["rewrite"] == written < 60
        cluster.others.clear()
        await process.end()
        assert_migrated(cluster)
        assert process.reasons.count("AnotherMigrator") == 2

    play(main)


def test_the_migrator_outside_the_control_plane_is_waited_for() -> None:
    async def main() -> None:
        cluster = Cluster()
        resource = {"group": "example.com", "version": "v1", "resource": "widgets"}
        cluster.older = [{"metadata": {"name": "svm"}, "spec": {"resource": resource}}]
        process = Process(cluster)
        held = await process.until("Settled", "AnotherMigrator")
        found = find_condition(held.status.conditions, "Settled")
        assert found is not None
        assert "StorageVersionMigration svm (migration.k8s.io) is migrating" in found.message
        cluster.older[0]["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
        await process.end()
        assert_migrated(cluster)

    play(main)


def test_the_migrator_outside_the_control_plane_need_not_be_seen() -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.older = []

        def happens(about: str, nth: int) -> None:
            # Its group is found, but its objects may not be listed.
            if about == "older":
                cluster.troubles["older"].append(refusal(403, "Forbidden") if nth % 2 == 0 else None)

        cluster.happens = happens
        done = await finish(cluster)
        assert_migrated(cluster)
        found = find_condition(done.status.conditions, "Permitted")
        assert found is not None
        assert "list storageversionmigrations.migration.k8s.io is not permitted" in found.message
        assert "storagemigration.k8s.io" not in found.message

    play(main)


def test_a_retry_round_stops_when_another_migrator_begins() -> None:
    async def main() -> None:
        cluster = Cluster(objects=60, made=slowly())
        cluster.troubles["rewrite"].extend([refusal(403, "Forbidden", DENIAL)] * 60)
        resource = {"group": "example.com", "resource": "widgets"}
        process = Process(cluster)
        await process.until("Rewritten", "ObjectsRefused")
        retrying = asyncio.Event()

        def happens(*_: object) -> None:
            if cluster.requests["rewrite"] == 65:
                retrying.set()

        cluster.happens = happens
        await retrying.wait()
        cluster.others.append({"metadata": {"name": "svm"}, "spec": {"resource": resource}})
        held = await process.until("Rewritten", "AnotherMigrator", seconds=15.0)
        written = cluster.requests["rewrite"]
        assert 65 <= written < 120
        assert (held.status.progress.quarantined, held.status.quarantine.rounds) == (60, 0)
        await asyncio.sleep(600.0)
        assert cluster.requests["rewrite"] == written
        cluster.others.clear()
        await process.end()
        assert_migrated(cluster)

    play(main)


class TestManagedFields:
    """Whether a hint says that an object's managedFields name a version about to be removed."""

    @pytest.mark.parametrize(
        ("version", "hint"),
        [("example.com/v1", True), ("example.com/v2", False), ("example.com/v3", False), ("v1", False)],
    )
    def test_only_of_a_version_that_goes(self, version: str, hint: bool) -> None:
        async def main() -> None:
            cluster = Cluster()
            entry = {"manager": "flux", "operation": "Apply", "apiVersion": version}
            cluster.managers = {"w5": [{"manager": "status", "apiVersion": "example.com/v2"}, entry]}
            process = Process(cluster)
            done = await process.end()
            found = find_condition(done.status.conditions, "ManagedFieldsCurrent")
            assert process.reasons.count("OldVersionNamed") == hint
            assert (found is not None) == hint
            assert condition_of(done, "Ready") == ("True", "Migrated")
            if found is not None:
                assert (found.status, found.reason) == ("False", "OldVersionNamed")
                assert "names v1, for example of w5 (manager flux)" in found.message
                # Those who ran the command see it, too.
                assert "managedFields: Retarget and verify: Full" in found.message
                assert "`crdkeeper migrate`: --managed-fields retarget --verify full" in found.message

        play(main)

    @pytest.mark.parametrize(("served", "warning"), [(True, False), (False, True)])
    def test_it_is_a_warning_once_the_version_is_not_served(self, served: bool, warning: bool) -> None:
        async def main() -> None:
            cluster = Cluster()
            assert cluster.definition is not None
            cluster.definition["spec"]["versions"][0]["served"] = served
            assert cluster.definition["spec"]["versions"][0]["name"] == "v1"
            cluster.managers = {"w5": [{"manager": "flux", "apiVersion": "example.com/v1"}]}
            process = Process(cluster)
            done = await process.end()
            (reported,) = (each for each in process.announced if each.reason == "OldVersionNamed")
            assert reported.warning is warning
            assert ("while v1 is served" in reported.message) is served
            assert condition_of(done, "Ready") == ("True", "Migrated")

        play(main)

    def test_it_survives_a_process(self) -> None:
        async def main() -> None:
            cluster = Cluster(objects=40)
            cluster.managers = {"w0": [{"manager": "flux", "apiVersion": "example.com/v1"}]}
            process = Process(cluster)

            def happens(*_: object) -> None:
                # In the second pass, on its last page.
                if cluster.requests["list"] == 1 + 10 + 10:
                    process.task.cancel()

            cluster.happens = happens
            with pytest.raises(asyncio.CancelledError):
                await process.end()
            done = await finish(cluster)
            assert condition_of(done, "ManagedFieldsCurrent") == ("False", "OldVersionNamed")

        play(main)

    def test_it_goes_when_the_entry_has_gone(self) -> None:
        async def main() -> None:
            cluster = Cluster(made=slowly())
            cluster.managers = {"w0": [{"manager": "flux", "apiVersion": "example.com/v1"}]}

            def happens(about: About, nth: int) -> None:
                if (about, nth) == ("trim", 1):
                    cluster.change_definition()
                    cluster.managers.clear()

            cluster.happens = happens
            process = Process(cluster)
            await process.end()
            assert process.reasons.count("OldVersionNamed") == 1
            assert_migrated(cluster)

        play(main)


def requests_of_a_run() -> int:
    async def main() -> int:
        cluster = Cluster()
        await finish(cluster)
        return cluster.requests.total()

    return play(main)


@pytest.mark.parametrize("nth", range(1, requests_of_a_run() + 1))
def test_a_process_that_ends_at_any_request_is_carried_on(nth: int) -> None:
    async def main() -> None:
        cluster = Cluster()
        process = Process(cluster)

        def happens(*_: object) -> None:
            if cluster.requests.total() == nth:
                process.task.cancel()

        cluster.happens = happens
        with pytest.raises(asyncio.CancelledError):
            await process.end()
        await finish(cluster)
        assert_migrated(cluster)
        progress = cluster.stored.status.progress
        assert progress.rewritten + progress.current == 10
        assert find_condition(cluster.stored.status.conditions, "Reconciling") is None
        # A clean stop saves the progress: nothing is written twice, at most checked again.
        assert cluster.requests["rewrite"] <= 10 + 4

    play(main)
