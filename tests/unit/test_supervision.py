"""Tasks that must not end, in virtual time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from crdkeeper.supervision import TaskEnded, supervise
from tests import virtualtime


class Story:
    """A task that runs, one that ends after a second, and the reported failure."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.cancelled = False

    async def works(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled = True

    def play(self, ends: Coroutine[Any, Any, object]) -> None:
        virtualtime.run(supervise({"works": self.works(), "ends": ends}, self.reported.append))


async def fails() -> None:
    await asyncio.sleep(1.0)
    raise ValueError("no credentials")


async def returns() -> None:
    await asyncio.sleep(1.0)


async def cancels_itself() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        (fails, "ends: ValueError('no credentials')"),
        (returns, "ends: it returned"),
        (cancels_itself, "ends: it was cancelled"),
    ],
)
def test_the_first_that_ends_ends_all(ends: Any, says: str) -> None:
    story = Story()
    with pytest.raises(TaskEnded) as error:
        story.play(ends())
    assert str(error.value) == says
    assert story.reported == [says]
    assert story.cancelled


def test_its_error_is_the_cause() -> None:
    with pytest.raises(TaskEnded) as error:
        Story().play(fails())
    assert isinstance(error.value.__cause__, ValueError)


def test_a_task_group_is_named_by_what_ended_it() -> None:
    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails())

    story = Story()
    with pytest.raises(TaskEnded):
        story.play(group())
    assert "no credentials" in story.reported[0]


def test_told_to_stop_it_ends_all_and_tells_nobody() -> None:
    story = Story()

    async def main() -> None:
        supervised = asyncio.create_task(supervise({"works": story.works()}, story.reported.append))
        await asyncio.sleep(1.0)
        supervised.cancel()
        with pytest.raises(asyncio.CancelledError):
            await supervised

    virtualtime.run(main())
    assert (story.reported, story.cancelled) == ([], True)
