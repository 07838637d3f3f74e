"""When an assessor is crowded, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.definitionreport.assessor import Assessor
from tests import virtualtime
from tests.unit.core.diagnosis.builders import live_crd


class Api:
    """Has every CRD that is asked for."""

    async def send(self, *_: Any) -> Answer:
        await asyncio.sleep(0.01)
        return Answer(200, orjson.dumps(live_crd()))


def play(people: Callable[[Assessor, list[str]], Awaitable[None]]) -> None:
    async def main() -> None:
        assessed: list[str] = []
        assessor = Assessor(cast(Client, Api()), assessed.append)
        running = asyncio.create_task(assessor.queue.run())
        await people(assessor, assessed)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assessor.close()

    virtualtime.run(main())


def test_it_is_crowded_until_all_of_many_are_assessed_and_it_was_calm() -> None:
    async def people(assessor: Assessor, assessed: list[str]) -> None:
        await asyncio.sleep(10.0)
        for number in range(100):
            assessor.order(str(number))
        while len(assessed) < 100:
            assert assessor.is_crowded()
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.1)
        assert not assessor.is_crowded()

    play(people)


def test_a_few_at_a_time_are_no_crowd() -> None:
    async def people(assessor: Assessor, assessed: list[str]) -> None:
        for number in range(100):
            await asyncio.sleep(1.2 if number % 10 == 0 else 0.01)
            assessor.order(str(number))
            assert not assessor.is_crowded()
        await asyncio.sleep(1.0)
        assert len(assessed) == 100

    play(people)


def test_what_is_verified_in_the_background_is_no_crowd() -> None:
    async def people(assessor: Assessor, assessed: list[str]) -> None:
        for number in range(100):
            await asyncio.sleep(0.25)
            assessor.verify(str(number))
            assert not assessor.is_crowded()
        await asyncio.sleep(1.0)
        assert len(assessed) == 100

    play(people)
