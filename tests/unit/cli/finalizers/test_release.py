"""What `crdkeeper finalizers --release` says that it has done."""

import asyncio
from typing import Any, Self

import pytest

from crdkeeper.cli.finalizers import command
from crdkeeper.cluster.resources.finalizers import Freed, Freeing
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.finalizers.listing import HeldList
from tests.unit.builders import NOW, definition

NAMED = "example.com/cleanup"


class NoClient:
    """Nothing is sent."""

    def __init__(self, connection: Connection) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass


def held_object(name: str) -> Held:
    return Held("default", name, name, "1", NOW, (NAMED,), "", None)


def test_who_was_freed_by_others_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"a": Freeing.RELEASED, "b": Freeing.GONE, "c": Freeing.CHANGED, "d": Freeing.GONE}

    async def release(_: Any, __: Any, object_: Held, *___: Any, **____: Any) -> Freed:
        return Freed(answers[object_.name])

    monkeypatch.setattr(command, "Client", NoClient)
    monkeypatch.setattr(command, "release", release)
    listed = HeldList(NOW)
    listed.objects = [held_object(each) for each in answers]
    listed.total = len(answers)
    found = command._Found(definition(), listed, NOW)
    left = asyncio.run(command._release(Connection(), found, listed.objects, NAMED, ""))
    printed = capsys.readouterr()
    assert printed.out == f"Released {NAMED} from 1 object; 1 left.\n"
    assert printed.err.splitlines() == [
        "default/b: already gone",
        "default/c: kept, somebody has just written it",
        "default/d: already gone",
    ]
    assert left == 1
