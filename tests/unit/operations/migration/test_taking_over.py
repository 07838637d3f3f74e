"""A command that follows another process which may have died; in virtual time."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import Answer
from crdkeeper.operations.migration.standalone import Standalone, succeeded
from tests.unit.builders import NOW, migration, with_condition
from tests.unit.operations.migration.fleet import Fleet
from tests.unit.operations.migration.scene import play, refusal
from tests.virtualtime import now

NAME = "things.g0.example.com-cli"
FOLLOWS = f"Another process is already running StorageMigration {NAME}: following it."
RESUMES = f"Resuming StorageMigration {NAME}."
QUIET = [
    f"{NAME} has not moved for 60 s. Does another process still run?",
    "After 120 s, this process goes on in its place.",
    f"{NAME} has not moved for 120 s: going on in the place of another process.",
]


class Fenced(Fleet):
    """It has a migration that a process of a command has begun, and whose status only the next write of the
    version that was read changes. `late` is stored before the first of these is."""

    def __init__(self, late: StorageMigration | None) -> None:
        super().__init__(1)
        self.late = late
        begun = migration(NAME, managedBy=CLI, resource={"group": "g0.example.com", "resource": "things"})
        self.migrations[NAME] = begun.to_object()
        self.changed_at: list[float] = []
        self.write({})

    def write(self, status: dict[str, Any], **spec: Any) -> None:
        """Store this, by whomever."""
        made = self.migrations[NAME]
        made["metadata"]["resourceVersion"] = str(self._next())
        made["status"] = status
        made["spec"].update(spec)
        self.changed_at.append(now() if self.sent else 0.0)

    def _of_migration(self, method: str, name: str, body: dict[str, Any]) -> Any:
        if method != "PATCH":
            return super()._of_migration(method, name, body)
        if self.late is not None:
            self.write(self.late.to_object().get("status", {}))
            self.late = None
        if body["metadata"]["resourceVersion"] != self.migrations[NAME]["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict")
        if body["status"] != self.migrations[NAME]["status"]:
            self.write(body["status"])
        return super()._of_migration("GET", name, {})


def command(fleet: Fenced, said: list[str], apart: float = 0.0) -> Standalone:
    return Standalone(fleet, fleet.requests[0], lambda _: None, said.append, apart=apart)


def retrying() -> StorageMigration:
    """One that tries a refused object again after 1,000 seconds."""
    waiting = with_condition(migration(), "Rewritten", "False", "ObjectsRefused")
    waiting.status.progress.quarantined, waiting.status.quarantine.rounds = 1, 1
    waiting.status.quarantine.next_retry_time = NOW + timedelta(seconds=1000)
    return waiting


def test_what_a_dead_process_sent_last_is_not_followed_for_ever() -> None:
    fleet, said = Fenced(with_condition(migration(), "Resolved", "True", "Pinned")), list[str]()

    async def main() -> None:
        async with asyncio.timeout(600):
            await (work := command(fleet, said)).run()
        assert work.migration is not None
        assert succeeded(work.migration)
        assert not work.followed

    play(main)
    assert said == [RESUMES, FOLLOWS, *QUIET, RESUMES]
    assert fleet.definitions["things.g0.example.com"]["status"]["storedVersions"] == ["v2"]


def test_a_process_that_waits_until_it_tries_refused_objects_again_is_not_disturbed() -> None:
    fleet, said = Fenced(retrying()), list[str]()

    async def main() -> None:
        async with asyncio.timeout(3000):
            await command(fleet, said).run()

    play(main)
    assert said == [RESUMES, FOLLOWS, *QUIET, RESUMES]
    assert fleet.changed_at[1] < 1
    assert fleet.changed_at[2] > 1000 + 110


def test_where_looks_are_rare_the_other_process_has_time_for_its_next_attempt() -> None:
    fleet, said = Fenced(retrying()), list[str]()

    async def main() -> None:
        async with asyncio.timeout(3000):
            await command(fleet, said, apart=150.0).run()

    play(main)
    assert "going on in the place of another process" in said[-2]
    # Not before a process that looks as rarely would have made the attempt.
    assert fleet.changed_at[2] > 1000 + 3 * 150


def test_a_suspended_process_is_followed_until_it_should_go_on() -> None:
    suspended = with_condition(migration(), "Suspended", "True", "Suspended")
    fleet, said = Fenced(suspended), list[str]()
    fleet.write({}, suspend=True)

    async def main() -> None:
        running = asyncio.create_task(command(fleet, said).run())
        await asyncio.sleep(5000)
        assert said == [RESUMES, FOLLOWS]
        fleet.write(suspended.to_object()["status"], suspend=False)
        async with asyncio.timeout(600):
            await running

    play(main)
    assert said == [RESUMES, FOLLOWS, *QUIET, RESUMES]


def test_while_the_api_server_does_not_respond_no_process_is_taken_for_dead() -> None:
    fleet, said = Fenced(with_condition(migration(), "Resolved", "True", "Pinned")), list[str]()
    answer = fleet._answer

    def unavailable(method: str, address: str, body: dict[str, Any]) -> Any:
        if 50 < now() < 500:
            return refusal(503, "ServiceUnavailable")
        return answer(method, address, body)

    fleet._answer = unavailable  # type: ignore[method-assign]

    async def main() -> None:
        running = asyncio.create_task(command(fleet, said).run())
        await asyncio.sleep(600)
        assert QUIET[-1] not in said
        async with asyncio.timeout(600):
            await running

    play(main)
    assert said[-2:] == [QUIET[-1], RESUMES]


def test_the_later_of_two_that_live_does_not_take_over_again_as_soon() -> None:
    pinned = with_condition(migration(), "Resolved", "True", "Pinned")
    fleet, said = Fenced(pinned), list[str]()
    taken = list[float]()

    def say(text: str) -> None:
        said.append(text)
        if "in the place of" in text:
            taken.append(now())
            # The other one lives: it stores something just before this one does.
            fleet.late = with_condition(pinned.model_copy(deep=True), "Settled", "False", f"Beat{len(taken)}")

    async def main() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(2000):
                await Standalone(fleet, fleet.requests[0], lambda _: None, say).run()

    play(main)
    assert len(taken) == 4, said
    assert 240 < taken[1] - taken[0] < 250
    assert 960 < taken[3] - taken[2] < 970


def test_one_that_tries_again_and_again_is_not_disturbed() -> None:
    """As while a webhook is out of order: it stores the attempt, and its failure, every minute."""
    fleet, said = Fenced(with_condition(migration(), "Resolved", "True", "Pinned")), list[str]()

    async def main() -> None:
        running = asyncio.create_task(command(fleet, said).run())
        for attempt in range(30):
            await asyncio.sleep(75)
            made = with_condition(migration(), "Rewritten", "False", f"WebhookUnavailable{attempt}")
            fleet.write(made.to_object()["status"])
        assert not running.done()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    play(main)
    assert said == [RESUMES, FOLLOWS, *QUIET[:2]]


def test_of_two_that_live_and_wait_for_the_same_one_goes_on_and_the_other_one_follows() -> None:
    fleet, said = Fenced(None), (list[str](), list[str]())
    answer = fleet._answer

    def frozen(method: str, address: str, body: dict[str, Any]) -> Any:
        if address.endswith("/leases") and now() < 1000:
            spec = {"renewTime": NOW.isoformat(), "leaseDurationSeconds": 3600}
            metadata = {"name": "apiserver-a", "resourceVersion": "1"}
            return Answer(200, orjson.dumps({"items": [{"metadata": metadata, "spec": spec}]}))
        return answer(method, address, body)

    fleet._answer = frozen  # type: ignore[method-assign]

    async def main() -> None:
        first = asyncio.create_task(command(fleet, said[0]).run())
        await asyncio.sleep(100)
        second = asyncio.create_task(command(fleet, said[1]).run())
        changes = len(fleet.changed_at)
        await asyncio.sleep(800)
        assert len(fleet.changed_at) == changes
        async with asyncio.timeout(600):
            await asyncio.gather(first, second)

    play(main)
    assert sorted(said) == [[RESUMES], [RESUMES, FOLLOWS]]
    assert len(fleet.written) == len(fleet.objects["g0.example.com"])
