"""The order in which those that wait for a slot come, and what makes them wait no longer; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

from crdkeeper.operations.migration.waiting import in_turn
from tests import virtualtime
from tests.virtualtime import now


class Waiter:
    """One that waits for one of the slots, and has it for a second."""

    def __init__(self, slots: asyncio.Semaphore, outdated: Callable[[], Awaitable[bool]]) -> None:
        self.woken = asyncio.Event()
        self.looks = 0
        self._slots, self._outdated = slots, outdated
        self.task = asyncio.create_task(self._wait())

    async def _look(self) -> bool:
        self.looks += 1
        return await self._outdated()

    async def _wait(self) -> tuple[bool, float]:
        """Whether it had its turn, and when that was known."""
        async with in_turn(self._slots, self.woken, self._look) as has_turn:
            known = now()
            if has_turn:
                await asyncio.sleep(1.0)
            return has_turn, known


async def never() -> bool:
    return False


def test_who_is_woken_keeps_its_place() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        waiters = [Waiter(slots, never) for _ in range(4)]
        for _ in range(10):
            waiters[0].woken.set()
            await asyncio.sleep(0.1)
        slots.release()
        turns = [await each.task for each in waiters]
        assert turns == [(True, at) for at in (turns[0][1], *(turns[0][1] + each for each in (1, 2, 3)))]
        assert [each.looks for each in waiters] == [11, 1, 1, 1]
        assert not slots.locked()

    virtualtime.run(main())


def test_who_waits_behind_one_that_came_at_the_same_moment_looks_again_too() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        first, second = Waiter(slots, never), Waiter(slots, never)
        assert [await each.task for each in (first, second)] == [(True, 0.0), (True, 1.0)]
        assert (first.looks, second.looks) == (0, 1)

    virtualtime.run(main())


def test_what_is_outdated_waits_no_longer_and_has_no_slot() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()

        async def always() -> bool:
            return True

        first, second = Waiter(slots, always), Waiter(slots, never)
        await asyncio.sleep(5.0)
        first.woken.set()
        assert await first.task == (False, 5.0)
        slots.release()
        assert await second.task == (True, 5.0)
        assert not slots.locked()

    virtualtime.run(main())


def test_a_slot_that_comes_during_the_look_goes_to_the_next_one_if_it_is_outdated() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()

        async def look() -> bool:
            await asyncio.sleep(2.0)
            return True

        first, second = Waiter(slots, look), Waiter(slots, never)
        await asyncio.sleep(1.0)
        first.woken.set()
        await asyncio.sleep(1.0)
        slots.release()
        assert await first.task == (False, 3.0)
        assert await second.task == (True, 3.0)
        assert not slots.locked()

    virtualtime.run(main())


def test_what_changes_as_its_turn_comes_is_heeded_before_it_begins() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()

        async def always() -> bool:
            return True

        waiter = Waiter(slots, always)
        await asyncio.sleep(1.0)
        slots.release()
        waiter.woken.set()
        assert await waiter.task == (False, 1.0)
        assert not slots.locked()

    virtualtime.run(main())


def test_what_changes_during_a_look_is_looked_at_again() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        changed = False

        async def look() -> bool:
            found = changed
            await asyncio.sleep(1.0)
            return found

        waiter = Waiter(slots, look)
        await asyncio.sleep(0.0)
        waiter.woken.set()
        await asyncio.sleep(0.5)
        changed = True
        waiter.woken.set()
        assert await waiter.task == (False, 2.0)

    virtualtime.run(main())


def test_a_look_that_did_not_tell_is_repeated() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        answers = [False, True]

        async def look() -> bool:
            return answers.pop(0)

        waiter = Waiter(slots, look)
        await asyncio.sleep(0.0)
        waiter.woken.set()
        has_turn, known = await waiter.task
        assert not has_turn
        assert known <= 600.0

    virtualtime.run(main())


def test_who_is_cancelled_keeps_no_slot() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        first, second = Waiter(slots, never), Waiter(slots, never)
        await asyncio.sleep(1.0)
        slots.release()
        first.task.cancel()
        await asyncio.gather(first.task, return_exceptions=True)
        assert await second.task == (True, 1.0)
        assert not slots.locked()

    virtualtime.run(main())
