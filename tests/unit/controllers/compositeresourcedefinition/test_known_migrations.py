"""Which StorageMigrations the composer reads, and when."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.due import Dues
from crdkeeper.controllers.compositeresourcedefinition.migrations import Migrations, known_migrations
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.plan import Gathered
from crdkeeper.core.composer.update import UpdateFacts
from crdkeeper.core.composition.acceptance import Acceptance
from tests.unit.core.composer.test_storage import DEFINITION, live, migration

Json = Any
UNREADABLE = {"metadata": {"name": "broken"}, "spec": {"resource": "databases"}}


class Api:
    """StorageMigrations in pages of one."""

    def __init__(self, *stored: Json, error: ApiError | None = None) -> None:
        self.stored = stored
        self.requests: list[str] = []
        self._error = error

    async def request(self, method: str, path: str, body: Json = None, **_: Any) -> Json:
        self.requests.append(f"{method} {path}")
        if self._error is not None:
            raise self._error
        if method == "POST":
            return body
        start = int(path.partition("continue=")[2] or 0)
        more = {"continue": str(start + 1)} if start + 1 < len(self.stored) else {}
        return {"metadata": more, "items": list(self.stored[start : start + 1])}

    @property
    def created(self) -> bool:
        """Whether one was created, at the end."""
        assert not any(each.startswith("POST") for each in self.requests[:-1])
        return bool(self.requests) and self.requests[-1].startswith("POST")


def stored(name: str, resource: str = "databases") -> Json:
    return migration(name, resource).to_object()


def known(api: Api, crd: Json = None, *seen: str, done: bool = False) -> list[str] | None:
    """Those that are known after the one that is needed was created."""
    state = ClusterState()
    for name in seen:
        state.saw_migration(name, migration(name, done=done))
    state.saw_migration("elsewhere", migration("elsewhere", "caches"))
    crd = live("v1", "v2") if crd is None else crd
    facts = UpdateFacts(migrations=known_migrations(state, DEFINITION, crd))
    gathered = Gathered(DEFINITION, Acceptance(None, ()), crd, 0, facts=facts)
    after, _ = asyncio.run(Migrations(cast(Client, api), Dues()).create(gathered))
    found = after.facts.migrations
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
    assert not api.created


def test_one_is_created_if_there_is_none() -> None:
    api = Api(stored("other", "caches"))
    assert len(known(api) or ()) == 1
    assert api.created


def test_nothing_is_read_without_need() -> None:
    api = Api(stored("a"))
    assert known(api, live("v2")) == []
    assert api.requests == []


@pytest.mark.parametrize("code", [403, 404])
def test_a_missing_right_or_kind_is_known(code: int) -> None:
    api = Api(error=ApiError(code, {"message": "no"}))
    assert known(api) is None
    assert not api.created
