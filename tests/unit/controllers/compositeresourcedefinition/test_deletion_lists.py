"""Cascade while the composites cannot all be listed or counted, in virtual time."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, OBJECTS, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import with_policy
from tests.unit.controllers.compositeresourcedefinition.test_deleting import deletions, denying, make, names
from tests.unit.core.composition.documents import document

BROKEN = {
    "no answer": Unreachable("connection reset by peer"),
    "400": ApiError(400, {"message": "cannot be converted"}),
    "500": ApiError(500, {"message": "cannot be converted"}),
}


def pages(server: Server, since: int) -> int:
    """How often a page of composites was read to delete them."""
    listed = [path for _, path in server.requests[since:] if path.startswith(f"{ALL}?limit=")]
    return sum("limit=500" not in path for path in listed)


@pytest.mark.parametrize("trouble", BROKEN)
def test_a_page_in_the_middle_that_cannot_be_read_is_no_hot_loop(trouble: str) -> None:
    async def people(server: Server) -> None:
        held = [each["metadata"]["name"] for each in server.composites()]

        async def broken(method: str, path: str) -> None:
            if path == ALL and "continue=" in server.requests[-1][1]:
                raise BROKEN[trouble]

        server.before = broken
        server.delete()
        await asyncio.sleep(120.0)
        since = len(server.requests)
        for number in range(300):
            # A tenant creates composites all the time, and each is an event.
            make(server, f"z-{number:04}")
            await asyncio.sleep(1.0)
        assert 1 <= pages(server, since) <= 20
        assert str(BROKEN[trouble]).rpartition(": ")[2] in server.condition("Established")[2]
        server.before = _none
        await asyncio.sleep(120.0)
        assert names(server) == held

    play(people, begin=with_policy("Cascade", 600, finalizers=["example.com/held"]))


def test_a_count_that_fails_now_and_then_does_not_send_a_deletion_back_to_the_beginning() -> None:
    async def people(server: Server) -> None:
        kept = names(server)[:480]
        denies = denying(server, kept, 1.0)
        counts = 0

        async def webhooks(method: str, path: str) -> None:
            nonlocal counts
            if path == ALL and "limit=500" in server.requests[-1][1]:
                counts += 1
                if counts % 3 == 0:
                    raise ApiError(503, {"message": "no endpoints"})
            await denies(method, path)

        server.before = webhooks
        server.delete()
        await asyncio.sleep(400.0)
        assert names(server) == kept

    play(people, begin=with_policy("Cascade", 700))


@pytest.mark.parametrize("by", [PATH, CRD], ids=["definition", "CRD"])
def test_many_that_wait_for_their_finalizers_are_looked_at_ever_more_seldom(by: str) -> None:
    async def people(server: Server) -> None:
        server.delete(by)
        await asyncio.sleep(300.0)
        since = len(server.requests)
        await asyncio.sleep(600.0)
        lists = sum(path.startswith(f"{ALL}?limit=") for _, path in server.requests[since:])
        assert lists <= 45
        assert len(deletions(server, since)) == 0

    play(people, begin=with_policy("Cascade", 700, finalizers=["example.com/held"]))


def test_those_who_create_composites_do_not_have_all_that_wait_listed_again_and_again() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(300.0)
        since = len(server.requests)
        for number in range(300):
            make(server, f"a-{number:04}", finalizers=["example.com/held"])
            await asyncio.sleep(1.0)
        # Each attempt has an effect, on those that are new.
        assert pages(server, since) <= 3 * 151
        since = len(server.requests)
        for number in range(300):
            server.forced_out(f"{OBJECTS}/a-{number:04}")
            await asyncio.sleep(1.0)
        assert pages(server, since) <= 2 * 40

    play(people, begin=with_policy("Cascade", 700, finalizers=["example.com/held"]))


def test_a_crd_whose_composites_nobody_deletes_is_looked_at_ever_more_seldom() -> None:
    """An admission webhook denies the deletions of the API server."""

    async def people(server: Server) -> None:
        for each in server.composites():
            each["metadata"]["finalizers"] = ["example.com/held"]
        server.delete(CRD)
        for each in server.composites():
            del each["metadata"]["deletionTimestamp"]
        await asyncio.sleep(300.0)
        since = len(server.requests)
        await asyncio.sleep(600.0)
        assert sum(path.startswith(f"{ALL}?limit=") for _, path in server.requests[since:]) <= 45

    play(people, begin=with_policy("Protect", 20))


def slow(server: Server, seconds: float) -> None:
    """A conversion webhook needs that long for each object of a page."""

    async def convert(method: str, path: str) -> None:
        if (method, path) == ("GET", ALL) and "limit=" in (query := server.requests[-1][1]):
            limit = int(query.partition("limit=")[2].partition("&")[0])
            await asyncio.sleep(seconds * min(limit, len(server.composites())))

    server.before = convert


def test_composites_that_are_converted_slowly_are_counted_and_deleted() -> None:
    async def people(server: Server) -> None:
        slow(server, 0.03)
        server.delete()
        await asyncio.sleep(120.0)
        assert server.condition("Established")[2].startswith("700 composites (default/a-")
        server.make(document(deletion="Cascade"))
        await asyncio.sleep(600.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=with_policy("Protect", 700))


async def _none(_: str, __: str) -> None:
    pass
