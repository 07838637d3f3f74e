"""What is known of all objects of a kind follows the list and the watch, whatever else is seen and when."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers import collection
from crdkeeper.controllers.collection import SeenCollection

Json = dict[str, Any]
Seen = Callable[[str, Json], Awaitable[None]]


def box(version: int, size: int) -> Json:
    """An object as the API server shows it."""
    return {"metadata": {"name": "box", "resourceVersion": str(version)}, "spec": {"size": size}}


class Boxes:
    """A collection of them, and what its watch calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: list[tuple[int | None, int | None]] = []
        self.known = SeenCollection[int](
            Client.__new__(Client),
            "/boxes",
            lambda found: int(found["spec"]["size"]),
            lambda _, before, now: self.changes.append((before, now)),
        )
        self._seen: list[Seen] = []

        async def follow(_client: Client, _path: str, _load: object, saw: Seen) -> None:
            self._seen.append(saw)

        monkeypatch.setattr(collection, "follow", follow)

    async def tell(self, type_: str, found: Json) -> None:
        """An event of the watch."""
        await self.known.follow()
        await self._seen[-1](type_, found)


async def test_it_knows_an_object_before_the_watch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = Boxes(monkeypatch)
    boxes.known.saw(box(2, size=1))
    assert boxes.known.all() == {"box": 1}
    await boxes.tell("ADDED", box(2, size=1))
    assert boxes.changes == [(None, 1)]


async def test_what_was_deleted_before_the_answer_to_its_creation_stays_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = Boxes(monkeypatch)
    await boxes.tell("ADDED", box(2, size=1))
    await boxes.tell("DELETED", box(3, size=1))
    boxes.known.saw(box(2, size=1))
    assert boxes.known.all() == {}


async def test_what_was_changed_before_the_answer_to_its_creation_stays_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = Boxes(monkeypatch)
    await boxes.tell("ADDED", box(2, size=1))
    await boxes.tell("MODIFIED", box(4, size=5))
    boxes.known.saw(box(2, size=1))
    assert boxes.known.all() == {"box": 5}
