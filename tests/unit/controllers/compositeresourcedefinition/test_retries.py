"""When the composer looks again after an error, in virtual time."""

import asyncio

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    established,
    fields,
    rest,
)
from tests.unit.core.composition.documents import document


def test_a_status_that_met_a_conflict_is_written_soon() -> None:
    async def people(server: Server) -> None:
        conflicts = iter([ApiError(409, {"message": "the object has been modified"})])

        async def contended(method: str, path: str) -> None:
            if path == f"{PATH}/status" and (error := next(conflicts, None)):
                raise error

        await rest()
        server.before = contended
        # Only the status follows: no event of the CRD leads to another look.
        generation = server.make(document(deletion="Cascade"))["metadata"]["generation"]
        await rest()
        assert server.objects[PATH]["status"]["observedGeneration"] == generation

    play(people, begin=established)


def test_a_message_that_varies_does_not_end_the_backoff() -> None:
    """Each attempt writes another status, which is an event of the definition."""

    async def people(server: Server) -> None:
        attempts = 0

        async def broken(method: str, path: str) -> None:
            nonlocal attempts
            if (method, path) == ("PATCH", CRD) and attempts < 100:
                attempts += 1
                raise ApiError(503, {"message": f"attempt {attempts}", "reason": "ServiceUnavailable"})

        server.before = broken
        server.make()
        await rest()
        assert 2 < attempts < 25

    play(people)


def test_a_field_that_another_program_forces_is_not_fought_over_for_ever() -> None:
    async def people(server: Server) -> None:
        await rest()
        loop = asyncio.get_running_loop()
        put_back: list[float] = []
        due = False

        async def rival(method: str, path: str) -> None:
            nonlocal due
            if path == CRD and server.objects[CRD]["spec"]["names"]["categories"] and not due:
                due = True
                put_back.append(loop.time())
                loop.call_later(0.01, overwrite)

        def overwrite() -> None:
            nonlocal due
            due = False
            server.objects[CRD]["spec"]["names"]["categories"] = []
            server._wrote(CRD)

        server.after = rival
        began = loop.time()
        overwrite()
        await asyncio.sleep(10.0)
        assert len(put_back) == 3
        assert server.condition("Accepted")[:2] == ("False", "Overwritten")
        assert server.condition("Stalled")[0] == "True"
        await asyncio.sleep(600.0)
        assert put_back[-1] > began + 300.0
        assert len(put_back) < 12
        assert server.ready() == ("False", "Overwritten")

        # What the user wants now is not put off.
        server.make(TWO)
        await asyncio.sleep(1.0)
        assert "more" in fields(server)
        server.after = _nothing
        await asyncio.sleep(150.0)
        assert server.ready() == OURS
        assert server.objects[CRD]["spec"]["names"]["categories"]

    play(people, begin=established)


async def _nothing(_: str, __: str) -> None:
    pass


def test_a_crd_that_is_overwritten_is_still_made_again_at_once() -> None:
    async def people(server: Server) -> None:
        await rest()
        for _ in range(4):
            server.objects[CRD]["spec"]["names"]["categories"] = []
            server._wrote(CRD)
            await asyncio.sleep(1.0)
        assert server.ready() == ("False", "Overwritten")
        server.delete(CRD)
        await asyncio.sleep(1.0)
        assert server.objects[CRD]["spec"]["names"]["categories"]

    play(people, begin=established)
