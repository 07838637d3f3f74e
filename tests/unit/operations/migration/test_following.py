"""A command that follows someone else's migration, while the API server has problems; in virtual time."""

from typing import Any, cast

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.migration.request import Request
from crdkeeper.operations.migration.standalone import Standalone
from tests import virtualtime
from tests.unit.builders import NAME, NOW, crd, migration, with_condition
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi

PATH = f"{OURS}/storagemigrations/m"


def done() -> StorageMigration:
    made = with_condition(migration(), "Succeeded", "True", "Migrated")
    made.status.completion_time = NOW
    return made


class Troubled(FakeApi):
    """Fails to return the migration for a while after it was listed; then it has ended."""

    def __init__(self, *troubles: Exception) -> None:
        super().__init__({f"{DEFINITIONS}/{NAME}": crd(), PATH: migration().to_object()})
        self.troubles = list(troubles)

    async def request(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        if path == PATH:
            if self.troubles:
                raise self.troubles.pop(0)
            self.objects[PATH] = done().to_object()
        return await super().request(method, path, *arguments, **more)


class Still(Troubled):
    """Nothing changes for 70 reads."""

    reads = 0

    async def request(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        self.reads += path == PATH
        if path == PATH and self.reads < 70:
            return await FakeApi.request(self, method, path, *arguments, **more)
        return await super().request(method, path, *arguments, **more)


def follow(api: FakeApi) -> tuple[StorageMigration | None, list[str]]:
    said: list[str] = []
    request = Request(migration().spec.resource, {})
    follower = Standalone(cast(Client, api), request, lambda _: None, said.append)
    virtualtime.run(follower.run())
    assert follower.followed
    return follower.migration, said


@pytest.mark.parametrize(
    "trouble",
    [ApiError(503, {"message": "away"}), ApiError(429, {"message": "busy"}), Unreachable("refused")],
    ids=["503", "429", "no answer"],
)
def test_an_api_server_in_trouble_is_waited_for(trouble: Exception) -> None:
    seen, said = follow(Troubled(*[trouble] * 30))
    assert seen is not None
    assert seen.status.completion_time is not None
    assert any("does not respond" in each for each in said)


def test_what_is_no_trouble_ends_it() -> None:
    with pytest.raises(ApiError, match="no rights"):
        follow(Troubled(ApiError(403, {"message": "no rights"})))


def test_an_operator_that_does_not_run_is_not_said_to() -> None:
    _, said = follow(Still())
    assert said == [
        "The operator has not begun StorageMigration m: following it.",
        "m has not moved for 60 s. Does the operator still run?",
        "If not, delete StorageMigration m, and run the same command again.",
    ]


def test_one_that_was_begun_is_said_to_be_running() -> None:
    api = Troubled()
    api.objects[PATH] = with_condition(migration(), "Resolved", "True", "Pinned").to_object()
    _, said = follow(api)
    assert said == ["The operator is already running StorageMigration m: following it."]
