"""One process of a shared migration on an API server that fails or forgets, in virtual time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.cluster.resources.shards import NotInstalled
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError, Client, Unreachable
from crdkeeper.core.migration.request import Request
from crdkeeper.core.migration.sharding import BEAT_SECONDS, Shard
from crdkeeper.operations.migration.sharing import Sharing
from tests import virtualtime
from tests.unit.builders import migration
from tests.unit.controllers.fakeapi import OURS, FakeApi

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

    async def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "", **more: Any
    ) -> dict[str, Any]:
        if method != "PATCH":
            return await super().request(method, path, body)
        self.patched_at.append(virtualtime.now())
        await super().request(method, path, {})
        status = self.objects[PATH].setdefault("status", {})
        if content_type == MERGE_PATCH:
            if not self.prunes:
                status["shards"] = body["status"]["shards"]
            return self.objects[PATH]
        found = status["shards"]["coordinator"]
        assert [each["value"] for each in body if each["path"].endswith("/term")] == [found["term"]]
        begun = not found.get("holder")
        status["shards"]["coordinator"] = body[-1]["value"]
        if begun:
            self.failures += [("GET", PATH, each) for each in self.after_claim]
        return self.objects[PATH]


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


def run(server: Server, office: Callable[[StorageMigration], Any]) -> list[str]:
    """Run one process to its end; returns what it said."""
    told: list[str] = []
    request = Request(GroupResource(group="example.com", resource="widgets"), {})
    sharing = Sharing(
        cast(Client, server), request, Shard(0, 3), "me", lambda seen: None, told.append, office, migration()
    )

    async def main() -> None:
        async with asyncio.timeout(600):
            await sharing.run()

    virtualtime.run(main())
    return told


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
