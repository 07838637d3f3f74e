"""When the composer looks again after an error, in virtual time."""

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import established, rest
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
