"""One process of a shared migration on an API server that fails or forgets, in virtual time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crdkeeper.api.meta import set_condition
from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.cluster.resources.shards import NotInstalled
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError, Client, Unreachable
from crdkeeper.core.migration.request import Request
from crdkeeper.core.migration.sharding import BEAT_SECONDS, Shard
from crdkeeper.operations.migration import sharing as sharing_module
from crdkeeper.operations.migration import sweep as sweep_module
from crdkeeper.operations.migration.sharing import Sharing
from tests import virtualtime
from tests.unit.builders import NOW, at_work, migration
from tests.unit.controllers.fakeapi import OURS, FakeApi
from tests.unit.operations.migration.scriptedobjects import Objects, error, sweep_of

PATH = f"{OURS}/storagemigrations/m"
PASSING = [ApiError(429, {}), ApiError(503, {}), Unreachable("no answer")]


class Server(FakeApi):
    """Stores `status.shards`, or prunes it as with a CRD that does not know it."""

    def __init__(self, *, prunes: bool = False, after_claim: list[Exception] | None = None) -> None:
        super().__init__({PATH: migration().to_object()})
        self.prunes = prunes
        self.after_claim = after_claim or []
        """What the next requests get as soon as the office is taken."""
        self.patched_at: list[float] = []
        self.looks = 0

    async def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "", **more: Any
    ) -> dict[str, Any]:
        if method != "PATCH":
            self.looks += 1
            return await super().request(method, path, body)
        self.patched_at.append(virtualtime.now())
        await super().request(method, path, {})
        status = self.objects[PATH].setdefault("status", {})
        if content_type == MERGE_PATCH:
            if not self.prunes:
                status["shards"] = body["status"]["shards"]
            return self.objects[PATH]
        where, key = _place(status["shards"], body[-1]["path"])
        found = where[key]
        if [each["value"] for each in body if each["path"].endswith("/term")] != [found["term"]]:
            raise ApiError(422, {"reason": "Invalid"})
        where[key] = body[-1]["value"]
        if key == "coordinator" and not found.get("holder"):
            self.failures += [("GET", PATH, each) for each in self.after_claim]
        return self.objects[PATH]


def _place(shards: dict[str, Any], path: str) -> tuple[Any, Any]:
    *_, last = path.split("/")
    return (shards, last) if last == "coordinator" else (shards["parts"], int(last))


class Office:
    """Stands for the run of the coordinator: ends like this, one after the other, after some seconds."""

    def __init__(self, *ends: bool | Exception, seconds: float = 1.0) -> None:
        self.ends = list(ends)
        self.seconds = seconds

    async def __call__(self, current: StorageMigration) -> bool:
        await asyncio.sleep(self.seconds)
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def run(server: Server, office: Callable[[StorageMigration], Any], *, parts: int = 3) -> list[str]:
    """Run one process to its end; returns what it said."""
    told: list[str] = []

    async def main() -> None:
        async with asyncio.timeout(600):
            await sharing(server, office, told, parts=parts).run()

    virtualtime.run(main())
    return told


def sharing(
    server: Server, office: Callable[[StorageMigration], Any], told: list[str], *, parts: int
) -> Sharing:
    """One process."""
    request = Request(GroupResource(group="example.com", resource="widgets"), {})
    return Sharing(
        cast(Client, server),
        request,
        Shard(0, parts),
        "me",
        lambda seen: None,
        told.append,
        office,
        migration(),
    )


def test_parts_that_the_api_server_prunes_end_the_command() -> None:
    server = Server(prunes=True)
    with pytest.raises(
        NotInstalled,
        match=r"older release\. Apply crds/crdkeeper\.dev_storagemigrations\.yaml of this release",
    ):
        run(server, Office(True))
    assert len(server.patched_at) == 1


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_an_error_that_passes_while_it_divides_is_no_end(error: Exception) -> None:
    server, office = Server(), Office(True)
    server.failures.append(("PATCH", PATH, error))
    told = run(server, office)
    assert not office.ends
    assert any("does not respond" in each for each in told)
    assert server.patched_at[1] - server.patched_at[0] >= 1


def test_an_error_that_does_not_pass_ends_the_command() -> None:
    server = Server()
    server.failures.append(("PATCH", PATH, ApiError(403, {"reason": "Forbidden"})))
    with pytest.raises(ApiError, match="Forbidden"):
        run(server, Office(True))


def test_who_cannot_divide_because_of_others_waits() -> None:
    server = Server()
    server.failures += [("PATCH", PATH, ApiError(409, {"reason": "Conflict"}))] * 5
    run(server, Office(True))
    assert min(after - before for before, after in pairwise(server.patched_at[:6])) >= 1


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_an_error_that_passes_in_the_office_is_no_end(error: Exception) -> None:
    server, office = Server(after_claim=[error]), Office(error, True)
    run(server, office)
    assert not office.ends
    assert server.objects[PATH]["status"]["shards"]["coordinator"].get("holder", "") == ""


def test_beats_of_several_do_not_stay_in_step() -> None:
    server = Server()
    run(server, Office(True, seconds=60.0))
    beats = server.patched_at[1:-2]
    between = [after - before for before, after in pairwise(beats)]
    assert 9 <= len(between) <= 16
    assert 0.79 * BEAT_SECONDS <= min(between) < max(between) <= 1.21 * BEAT_SECONDS


def set_up(server: Server, objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server at a pass that rewrites these objects, two a second."""
    made = at_work()
    set_condition(made.status.conditions, "Rewritten", "False", "Rewriting", "", generation=1, now=NOW)
    server.objects[PATH] = made.to_object()
    monkeypatch.setattr(sharing_module, "time", SimpleNamespace(monotonic=virtualtime.now))
    monkeypatch.setattr(sweep_module, "time", SimpleNamespace(monotonic=virtualtime.now))
    monkeypatch.setattr(
        sharing_module, "prepare_sweep", lambda *_, **__: sweep_of(objects, maxObjectsPerSecond=2)
    )


def work(
    server: Server, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], list[str]]:
    """Have one process work on the only part, with these objects. The part at the end, and what it said."""
    set_up(server, objects, monkeypatch)

    async def office(current: StorageMigration) -> bool:
        while not server.objects[PATH]["status"]["shards"]["parts"][0].get("done"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return True

    told = run(server, office, parts=1)
    return server.objects[PATH]["status"]["shards"]["parts"][0], told


NAMES = " ".join(f"w{number}" for number in range(40))


def test_a_part_counts_what_was_written_until_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawn = error(403, {"message": 'User "me" cannot patch resource "widgets"'})
    objects = Objects(
        NAMES, answer=lambda name, attempt: withdrawn if name == "w18" and attempt == 1 else None
    )
    part, told = work(Server(), objects, monkeypatch)
    assert any("was given up" in each for each in told)
    assert (part["rewritten"], part["scanned"]) == (40, 40)
    assert sum(objects.attempts.values()) == 41


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_a_part_that_is_done_stays_done(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although its last write fails at first: else it would be listed again, and counted as current."""
    server, objects, store = Server(), Objects(NAMES), Server.request
    errors = [error] * 3

    async def request(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if method == "PATCH" and isinstance(body, list) and body[-1]["value"].get("done") and errors:
            raise errors.pop()
        return await store(server, method, path, body, **more)

    monkeypatch.setattr(server, "request", request)
    part, told = work(server, objects, monkeypatch)
    assert not errors
    assert not any("no sign of life" in each for each in told)
    assert (part["rewritten"], part["scanned"]) == (40, 40)


def test_a_part_counts_what_was_written_during_its_last_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    server, objects, store = Server(), Objects(NAMES), Server.request

    async def request(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        part = body[-1]["value"] if isinstance(body, list) else {}
        if part.get("rewritten") and not part.get("done"):
            await asyncio.sleep(20.0)
            assert sum(objects.attempts.values()) == 40
        return await store(server, method, path, body, **more)

    monkeypatch.setattr(server, "request", request)
    part, _ = work(server, objects, monkeypatch)
    assert (part["rewritten"], part["scanned"]) == (40, 40)


def test_a_claim_whose_answer_was_lost_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the client has repeated it, which fails then: its term was the one before."""
    server, objects, store = Server(), Objects(NAMES), Server.request
    errors: list[Exception] = [Unreachable("no answer"), ApiError(422, {"reason": "Invalid"})] * 2

    async def request(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        stored = await store(server, method, path, body, **more)
        if method == "PATCH" and isinstance(body, list) and body[-1]["value"].get("holder") and errors:
            raise errors.pop()
        return stored

    monkeypatch.setattr(server, "request", request)
    part, told = work(server, objects, monkeypatch)
    assert not errors
    assert (part["rewritten"], part["scanned"]) == (40, 40)
    assert not any("no sign of life" in each for each in told)
    assert server.patched_at[4] - server.patched_at[0] < 14


def test_a_late_beat_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    server, objects, store = Server(), Objects(NAMES), Server.request
    set_up(server, objects, monkeypatch)
    late: list[Any] = []

    async def request(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        part = body[-1]["value"] if isinstance(body, list) else {}
        if part.get("rewritten") and part.get("holder"):
            late.append((method, path, body, more))
            await asyncio.sleep(900)
        return await store(server, method, path, body, **more)

    monkeypatch.setattr(server, "request", request)

    async def main() -> None:
        running = asyncio.create_task(sharing(server, Office(True, seconds=900), [], parts=1).run())
        while not late:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ((method, path, body, more),) = late
        with pytest.raises(ApiError, match="422"):
            await store(server, method, path, body, **more)

    virtualtime.run(main())
    (part,) = server.objects[PATH]["status"]["shards"]["parts"]
    assert not part.get("holder")


def test_a_signal_while_a_suspended_part_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    server, objects = Server(), Objects(NAMES)
    set_up(server, objects, monkeypatch)
    objects.seconds = 1.9

    async def main() -> None:
        running = asyncio.create_task(sharing(server, Office(True, seconds=900), [], parts=1).run())
        await asyncio.sleep(9.0)
        server.objects[PATH].setdefault("spec", {})["suspend"] = True
        looks = server.looks
        while server.looks == looks:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    virtualtime.run(main())
    shards = server.objects[PATH]["status"]["shards"]
    (part,) = shards["parts"]
    assert part["rewritten"] == sum(objects.attempts.values()) > 8
    assert [each.get("holder", "") for each in (part, shards["coordinator"])] == ["", ""]
