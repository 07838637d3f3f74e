"""The number of composites in the status, in virtual time: whenever they come and go."""

import asyncio

from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS, PATH, Server, play


def test_composites_are_counted_as_they_come_and_go() -> None:
    async def people(server: Server) -> None:
        server.make()
        await asyncio.sleep(10.0)
        server.make_composites(3)
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["composites"] == 3
        for path in [each for each in server.objects if each.startswith(OBJECTS)][:2]:
            server.delete(path)
        await asyncio.sleep(1.0)
        assert server.objects[PATH]["status"]["composites"] == 1

    play(people)


def test_those_that_come_while_the_status_is_written_are_counted_soon() -> None:
    async def people(server: Server) -> None:
        server.make()
        await asyncio.sleep(10.0)

        async def slow(method: str, path: str) -> None:
            if (method, path) == ("PATCH", f"{PATH}/status"):
                await asyncio.sleep(2.0)

        server.before = slow
        server.make_composites(1)
        await asyncio.sleep(2.15)
        # The status with one is still on its way, but not for long.
        server.make_composites(3)
        await asyncio.sleep(5.0)
        assert server.objects[PATH]["status"]["composites"] == len(server.composites())

    play(people)
