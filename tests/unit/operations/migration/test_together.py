"""Several migrations by one command: their time, and what they ask of the API server; in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.meta import Condition, find_condition
from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.cluster.transport.client import Answer
from crdkeeper.core.migration.request import Request
from crdkeeper.operations.migration.standalone import Standalone, UnknownResource, succeeded
from crdkeeper.operations.migration.together import Attempt, Together
from tests.unit.operations.migration.fleet import MIGRATIONS, Fleet, migrate
from tests.unit.operations.migration.scene import play


def ended_well(attempt: Attempt) -> bool:
    migration = attempt.work.migration
    return attempt.trouble is None and migration is not None and succeeded(migration)


def condition(migration: StorageMigration, type_: str) -> Condition:
    found = find_condition(migration.status.conditions, type_)
    assert found is not None
    return found


def test_all_settle_in_the_time_of_one() -> None:
    _, alone = migrate(Fleet(1))
    fleet = Fleet(20)

    attempts, seconds = migrate(fleet)

    assert all(map(ended_well, attempts))
    assert all(each["status"]["storedVersions"] == ["v2"] for each in fleet.definitions.values())
    assert 65 < alone < seconds < alone + 25


def test_one_is_written_after_the_other() -> None:
    fleet = Fleet(8, objects=40)
    migrate(fleet)
    assert len(fleet.written) >= 8 * 40
    assert fleet.beside == {(each,) for each in fleet.groups}


def test_what_waits_for_others_says_so() -> None:
    fleet = Fleet(3, objects=40)
    told = set()

    def watch(migration: StorageMigration) -> None:
        reason = condition(migration, "Succeeded").reason
        told.add(reason)
        if reason in ("Rewriting", "Verifying"):
            assert fleet.writing <= {migration.spec.resource.group}

    attempts, _ = migrate(fleet, watch=watch)

    assert all(map(ended_well, attempts))
    assert {"Queued", "Rewriting", "Verifying"} <= told


def test_many_are_looked_at_no_more_often_than_a_few() -> None:
    def rate(number: int) -> float:
        """Requests per second while all wait."""
        fleet = Fleet(number, objects=1)
        attempts, _ = migrate(fleet)
        assert all(map(ended_well, attempts))
        return sum(30 <= at < 60 for at, _, _ in fleet.sent) / 30

    few, many = rate(20), rate(60)

    assert few > 80
    assert many < 1.1 * few


def test_existing_migrations_are_listed_once_for_all() -> None:
    fleet = Fleet(12, objects=1)
    attempts, _ = migrate(fleet)
    assert all(map(ended_well, attempts))
    assert sum(method == "GET" and path == MIGRATIONS for _, method, path in fleet.sent) == 1


def test_what_was_created_since_they_were_listed_is_found() -> None:
    """The other process has the name, and has begun."""
    fleet = Fleet(2)
    body = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "StorageMigration"}
    spec = {"resource": {"group": fleet.groups[1], "resource": "things"}, "managedBy": "crdkeeper.dev/cli"}
    name = f"things.{fleet.groups[1]}-cli"
    taken = {**body, "metadata": {"name": name, "uid": "theirs", "resourceVersion": "1"}, "spec": spec}
    listed = fleet._of_migration

    def then_created(method: str, path: str, sent: dict[str, object]) -> object:
        answer = listed(method, path, sent)
        if not path and method == "GET":
            fleet.migrations.setdefault(name, taken)
        return answer

    fleet._of_migration = then_created  # type: ignore[method-assign,assignment]

    attempts, _ = migrate(fleet)

    assert all(map(ended_well, attempts))
    assert fleet.migrations.keys() == {f"things.{each}-cli" for each in fleet.groups}
    second = attempts[1].work.migration
    assert second is not None
    assert second.metadata.uid == "theirs"


@pytest.mark.parametrize("number", [1, 3])
def test_what_another_release_has_written_is_left_alone(number: int) -> None:
    fleet = Fleet(number)
    name, resource = f"things.{fleet.groups[0]}-cli", {"group": fleet.groups[0], "resource": "things"}
    fleet.migrations[name] = {"metadata": {"name": name}, "spec": {"resource": resource, "mode": "Later"}}

    attempts, _ = migrate(fleet)

    assert all(map(ended_well, attempts))
    assert (f"{name}-2" in fleet.migrations, "status" in fleet.migrations[name]) == (True, False)
    assert [each.work.unread for each in attempts] == [{name}] * number


@pytest.mark.parametrize("trouble", ["forbidden", "unknown"])
def test_the_trouble_of_one_does_not_stop_the_others(trouble: str) -> None:
    fleet = Fleet(3)
    requests = fleet.requests
    if trouble == "forbidden":
        fleet.refused.add(fleet.groups[1])
    else:
        requests[1] = Request(GroupResource(group="nowhere.example.net", resource="things"), {})

    attempts, _ = migrate(fleet, requests)

    assert [ended_well(each) for each in attempts] == [True, False, True]
    assert [each.ended for each in attempts] == [True] * 3
    error = attempts[1].trouble
    assert (isinstance(error, UnknownResource)) == (trouble == "unknown")
    assert ("403" in str(error)) == (trouble == "forbidden")


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_what_nobody_expects_of_one_does_not_stop_the_others(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(3)
    run = Standalone.run

    async def runs(work: Standalone) -> None:
        if work.request.resource.group == fleet.groups[1]:
            raise error("a surprise")
        await run(work)

    monkeypatch.setattr(Standalone, "run", runs)
    attempts, _ = migrate(fleet)

    assert [ended_well(each) for each in attempts] == [True, False, True]
    assert isinstance(attempts[1].trouble, error)


SLOWLY = {"limits": {"max_objects_per_second": 10}}


class SlowToSave(Fleet):
    """The status of what is written takes longer to save than that of what waits."""

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        if method == "PATCH" and any(f"/things.{each}-cli/status" in path for each in self.written[-1:]):
            await asyncio.sleep(0.2)
        return await super().send(method, path, **options)


@pytest.mark.parametrize("number", [1, 4])
def test_a_stop_saves_what_was_done(number: int) -> None:
    fleet = SlowToSave(number, objects=200)
    requests = [Request(each.resource, SLOWLY) for each in fleet.requests]
    begun = asyncio.Event()

    def watch(migration: StorageMigration) -> None:
        if len(fleet.written) >= 40:
            begun.set()

    async def main() -> int:
        together = Together(fleet, requests, watch, lambda request, text: None, lambda attempt: None)
        running = asyncio.create_task(together.run())
        await begun.wait()
        await asyncio.sleep(1)  # after a checkpoint, and before the next one
        done = len(fleet.written)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return done

    done = play(main)

    (group,) = set(fleet.written)
    saved = StorageMigration.model_validate(fleet.migrations[f"things.{group}-cli"])
    assert done - 2 <= saved.status.progress.rewritten <= done


def test_one_that_writes_beside_many_stops_when_it_is_suspended() -> None:
    fleet = Fleet(1, objects=400)
    begun, suspended = asyncio.Event(), asyncio.Event()

    def watch(migration: StorageMigration) -> None:
        if len(fleet.written) >= 40:
            begun.set()
        if condition(migration, "Succeeded").reason == "Suspended":
            suspended.set()

    request = Request(fleet.requests[0].resource, SLOWLY)
    work = Standalone(fleet, request, watch, lambda text: None, apart=200.0)

    async def main() -> None:
        running = asyncio.create_task(work.run())
        await begun.wait()
        stored = next(iter(fleet.migrations.values()))
        stored["spec"]["suspend"] = True
        stored["metadata"]["generation"] += 1
        async with asyncio.timeout(1000):
            await suspended.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(main)

    assert len(fleet.written) < 100
