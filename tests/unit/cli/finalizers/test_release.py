"""What `crdkeeper finalizers --release` says that it has done."""

import asyncio
from typing import Any, Self

import pytest

from crdkeeper.cli.finalizers import command
from crdkeeper.cluster.resources.finalizers import Freed, Freeing
from crdkeeper.cluster.transport.client import ApiError, Unreachable
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


class NoPacer:
    def __init__(self, _: float) -> None:
        pass

    async def turn(self) -> None:
        pass


def held_object(name: str) -> Held:
    return Held("default", name, name, "1", NOW, (NAMED,), "", None)


def run(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, Freeing | Exception],
    waited: list[float] | None = None,
) -> int:
    """Release the finalizer of these objects; returns how many still have it."""

    async def release(
        _: Any, __: Any, object_: Held, *___: Any, otherwise: dict[str, Any], **____: Any
    ) -> Freed:
        assert (otherwise["kind"], otherwise["uid"]) == ("CustomResourceDefinition", definition().uid)
        answer = answers[object_.name]
        if isinstance(answer, Exception):
            raise answer
        return Freed(answer)

    async def sleep(seconds: float) -> None:
        if waited is not None and seconds:
            waited.append(seconds)

    monkeypatch.setattr(command, "Client", NoClient)
    monkeypatch.setattr(command, "release", release)
    monkeypatch.setattr(command, "Pacer", NoPacer)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    listed = HeldList(NOW)
    listed.objects = [held_object(each) for each in answers]
    listed.total = len(answers)
    found = command._Found(definition(), listed, NOW)
    return asyncio.run(command._release(Connection(), found, listed.objects, NAMED, ""))


def test_who_was_freed_by_others_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = run(
        monkeypatch,
        {"a": Freeing.RELEASED, "b": Freeing.GONE, "c": Freeing.CHANGED, "d": Freeing.GONE},
    )
    printed = capsys.readouterr()
    assert printed.out == f"Released {NAMED} from 1 object; 1 left.\n"
    assert printed.err.splitlines() == [
        "default/b: already gone",
        "default/c: kept, somebody has just written it",
        "default/d: already gone",
    ]
    assert left == 1


def test_objects_that_fail_keep_no_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited = list[float]()
    left = run(
        monkeypatch,
        {
            "a": ApiError(504, {"reason": "Timeout", "message": "request did not complete"}),
            "b": ApiError(429, {"message": "too many requests"}, 7.0),
            "c": Freeing.RELEASED,
            "d": Unreachable("PATCH d: reset"),
            "e": Unreachable("PATCH e: reset"),
            "f": Freeing.RELEASED,
        },
        waited,
    )
    printed = capsys.readouterr()
    assert (left, printed.out) == (4, f"Released {NAMED} from 2 objects; 4 left.\n")
    assert printed.err.splitlines() == [
        "default/a: failed: 504 Timeout: request did not complete",
        "default/b: failed: 429 : too many requests",
        "default/d: failed: PATCH d: reset",
        "default/e: failed: PATCH e: reset",
    ]
    assert waited == [7.0]


@pytest.mark.parametrize(
    ("error", "tried"), [(Unreachable("no answer"), 3), (ApiError(500, {}), 3), (ApiError(400, {}), 1)]
)
def test_what_fails_for_all_ends_it(
    error: Exception, tried: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(error)):
        run(monkeypatch, {"a": Freeing.RELEASED, **dict.fromkeys("bcdef", error)})
    printed = capsys.readouterr()
    assert printed.out == f"Released {NAMED} from 1 object; 5 left.\n"
    assert len(printed.err.splitlines()) == tried - 1
