"""Which StorageMigrations the composer reads, and when."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.migrations import known_migrations
from crdkeeper.controllers.state import ClusterState
from tests.unit.core.composer.test_storage import DEFINITION, live, migration

Json = Any
UNREADABLE = {"metadata": {"name": "broken"}, "spec": {"resource": "databases"}}


class Api:
    """StorageMigrations in pages of one."""

    def __init__(self, *stored: Json, error: ApiError | None = None) -> None:
        self.stored = stored
        self.requests: list[str] = []
        self._error = error

    async def request(self, method: str, path: str, **_: Any) -> Json:
        self.requests.append(path)
        if self._error is not None:
            raise self._error
        start = int(path.partition("continue=")[2] or 0)
        more = {"continue": str(start + 1)} if start + 1 < len(self.stored) else {}
        return {"metadata": more, "items": self.stored[start : start + 1]}


def stored(name: str, resource: str = "databases") -> Json:
    return migration(name, resource).to_object()


def known(api: Api, crd: Json = None, *seen: str, done: bool = False) -> list[str] | None:
    state = ClusterState()
    for name in seen:
        state.saw_migration(name, migration(name, done=done))
    state.saw_migration("elsewhere", migration("elsewhere", "caches"))
    crd = live("v1", "v2") if crd is None else crd
    found = asyncio.run(known_migrations(cast(Client, api), state, DEFINITION, crd))
    return [each.metadata.name for each in found] if found is not None else None


def test_those_of_the_crd_are_read_whatever_else_is_stored() -> None:
    api = Api(UNREADABLE, stored("other", "caches"), stored("a"), stored("b"))
    assert known(api) == ["a", "b"]
    assert len(api.requests) == 4
    assert all("limit=" in each for each in api.requests)


def test_nothing_is_read_while_one_is_at_work() -> None:
    api = Api()
    assert known(api, None, "a") == ["a"]
    assert api.requests == []


def test_they_are_read_before_another_one_is_created() -> None:
    api = Api(stored("b"))
    assert known(api, None, "a", done=True) == ["b"]


def test_nothing_is_read_without_need() -> None:
    api = Api(stored("a"))
    assert known(api, live("v2")) == []
    assert api.requests == []


@pytest.mark.parametrize("code", [403, 404])
def test_a_missing_right_or_kind_is_known(code: int) -> None:
    assert known(Api(error=ApiError(code, {"message": "no"}))) is None
