"""When the composer looks again after an error, in virtual time."""

import asyncio

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, OBJECTS, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    established,
    fields,
    rest,
    with_policy,
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


def test_a_webhook_for_crds_that_hangs_is_asked_again_soon_after_it_was_mended() -> None:
    async def people(server: Server) -> None:
        await rest()

        async def hang(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                await asyncio.sleep(30.0)
                raise ApiError(500, {"message": "failed calling webhook: context deadline exceeded"})

        server.before = hang
        server.make(TWO)
        await asyncio.sleep(130.0)
        assert server.ready() == ("False", "Failed")
        server.before = _nothing
        await asyncio.sleep(70.0)
        assert "more" in fields(server)
        assert server.ready() == OURS

    play(people, begin=established)


def test_a_write_that_gets_no_answer_leaves_the_worker_to_others() -> None:
    async def people(server: Server) -> None:
        async def hang(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                await asyncio.sleep(900.0)

        server.before = hang
        server.make()
        await asyncio.sleep(60.0)
        assert server.ready() == ("False", "Failed")
        assert "cannot apply the CRD: no answer within 40 seconds" in server.condition("Ready")[2]

    play(people)


async def unlisted(method: str, path: str) -> None:
    """A conversion webhook that fails."""
    if path == ALL:
        raise ApiError(500, {"message": "conversion webhook failed"})


def test_composites_are_counted_as_soon_as_their_watch_can_list_them() -> None:
    async def people(server: Server) -> None:
        server.before = unlisted
        server.make()
        await asyncio.sleep(200.0)
        assert server.ready() == ("False", "NotListed")
        listed = asyncio.Event()

        async def mended(method: str, path: str) -> None:
            if server.requests[-1][1] == f"{ALL}?limit=1":
                listed.set()

        server.before = mended
        await asyncio.wait_for(listed.wait(), 31.0)
        await asyncio.sleep(1.0)
        assert server.ready() == OURS

    play(people)


def test_composites_are_counted_for_who_edits_the_definition() -> None:
    async def people(server: Server) -> None:
        server.before = unlisted
        server.make()
        await asyncio.sleep(183.0)
        assert server.ready() == ("False", "NotListed")
        server.before = _nothing
        server.make(TWO)
        await asyncio.sleep(1.0)
        assert server.ready() == OURS

    play(people)


def test_one_conflict_is_no_race_that_never_ends() -> None:
    """However many events come while the composer must not send the request again."""

    async def people(server: Server) -> None:
        await rest()
        conflicts = iter([ApiError(409, {"message": "the object has been modified"})])

        async def contended(method: str, path: str) -> None:
            if (method, path) == ("DELETE", CRD) and (error := next(conflicts, None)):
                raise error

        server.before = contended
        server.delete()
        for _ in range(20):
            await asyncio.sleep(0.02)
            server._announce(CRD)
            assert "cannot delete the CRD" not in server.condition("Established")[2]
        await asyncio.sleep(2.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 0))


def test_a_claim_that_is_always_in_conflict_holds_up_no_deletion() -> None:
    def ends(fault: bool) -> float:
        took = 0.0

        async def people(server: Server) -> None:
            nonlocal took
            await rest()

            async def webhooks(method: str, path: str) -> None:
                if fault and (method, path) == ("PATCH", CRD):
                    raise ApiError(409, {"message": "the object has been modified"})
                if method == "DELETE" and path.startswith(OBJECTS):
                    await asyncio.sleep(0.5)

            server.before = webhooks
            loop = asyncio.get_running_loop()
            began = loop.time()
            server.delete()
            for _ in range(3_000):
                if PATH not in server.objects:
                    break
                await asyncio.sleep(0.1)
            took = loop.time() - began

        play(people, begin=with_policy("Cascade", 500))
        return took

    assert ends(fault=True) < ends(fault=False) + 1.0
