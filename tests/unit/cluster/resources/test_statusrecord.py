"""The status of a migration while others write to the same object."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.statusrecord import StatusRecord
from crdkeeper.cluster.transport.client import ApiError, Client
from tests.unit.builders import migration
from tests.unit.controllers.fakeapi import OURS, FakeApi

PATH = f"{OURS}/storagemigrations/m"


class Shared(FakeApi):
    """The parts of the migration change between a read and the write that follows, so many times."""

    def __init__(self, conflicts: int) -> None:
        super().__init__({PATH: migration().to_object()})
        self.failures += [("PATCH", PATH, ApiError(409, {"reason": "Conflict"}))] * conflicts

    async def request(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        answer = await super().request(method, path, *arguments, **more)
        return {**self.objects[PATH], **answer}


def saved(api: Shared) -> bool:
    read = migration()
    return asyncio.run(StatusRecord(cast(Client, api), read).save(read))


def test_writes_of_others_to_the_parts_do_not_stop_it() -> None:
    api = Shared(conflicts=8)
    assert saved(api)
    assert not api.failures


def test_it_gives_up_if_they_never_end() -> None:
    with pytest.raises(ApiError, match="Conflict"):
        saved(Shared(conflicts=100))


def test_what_another_release_has_rewritten_is_left_to_it() -> None:
    api = Shared(conflicts=1)
    api.objects[PATH]["spec"]["mode"] = "Later"
    assert not saved(api)
