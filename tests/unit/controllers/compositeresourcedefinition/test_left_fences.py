"""APIs that refuse new composites although nobody waits for a deletion any more, in virtual time."""

import asyncio
import copy
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composer.fence import fencing, is_fenced, is_partly_fenced
from crdkeeper.core.composition.definition import OWNER
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    INVALID,
    OURS,
    established,
    foreign,
    rest,
    with_policy,
)
from tests.unit.controllers.compositeresourcedefinition.test_fencing import crd, writes_of_crd
from tests.unit.core.composition.documents import document, schema, version

Json = Any
EMPTY = with_policy("Protect", 0)


def close(server: Server) -> None:
    """The API refuses new composites."""
    server._patch_crd(fencing(crd(server)))


async def refuse_crds(method: str, path: str) -> None:
    """A policy that lets nobody change the CRD."""
    if (method, path) == ("PATCH", CRD):
        raise ApiError(403, {"message": "the webhook says no"})


async def nothing(_: str, __: str) -> None:
    """No fault any more."""


def test_a_definition_whose_finalizer_is_removed_leaves_an_open_api() -> None:
    async def people(server: Server) -> None:
        before = copy.deepcopy(crd(server)["spec"])
        server.delete()
        await asyncio.sleep(1.0)
        assert is_fenced(crd(server))
        server.forced_out()
        await asyncio.sleep(1.0)
        assert crd(server)["spec"] == before
        since = len(server.requests)
        await asyncio.sleep(600.0)
        assert writes_of_crd(server, since) == []

    play(people, begin=EMPTY)


def test_one_that_another_finalizer_holds_leaves_an_open_api() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(1.0)
        server.objects[PATH]["metadata"]["finalizers"] = ["example.com/other"]
        server._wrote(PATH)
        await rest()
        assert not is_partly_fenced(crd(server))
        assert "deletionTimestamp" not in crd(server)["metadata"]

    play(people, begin=EMPTY)


def test_one_that_no_composer_has_seen_go_leaves_an_open_api() -> None:
    def begin(server: Server) -> None:
        EMPTY(server)
        close(server)
        del server.objects[PATH]

    async def people(server: Server) -> None:
        await asyncio.sleep(1.0)
        assert not is_partly_fenced(crd(server))

    play(people, begin=begin)


def test_a_crd_that_belongs_to_no_definition_is_not_written() -> None:
    def begin(server: Server) -> None:
        foreign(server)
        close(server)

    async def people(server: Server) -> None:
        await rest()
        assert OWNER not in crd(server)["metadata"].get("annotations", {})
        assert server.writes() == []

    play(people, begin=begin)


def test_one_of_somebody_else_that_cannot_be_opened_holds_up_no_deletion() -> None:
    def begin(server: Server) -> None:
        EMPTY(server)
        crd(server)["metadata"]["annotations"][OWNER] = "another"
        close(server)

    async def people(server: Server) -> None:
        server.before = refuse_crds
        server.delete()
        await asyncio.sleep(1.0)
        assert PATH not in server.objects
        assert is_fenced(crd(server))

        server.before = nothing
        await asyncio.sleep(60.0)
        assert not is_partly_fenced(crd(server)), "nobody else would open it"
        assert "deletionTimestamp" not in crd(server)["metadata"]

    play(people, begin=begin)


def test_a_definition_that_is_made_in_this_moment_keeps_its_crd() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(1.0)
        value = copy.deepcopy(server.objects[PATH])

        async def made_again(method: str, path: str) -> None:
            if (method, path) == ("GET", CRD) and PATH not in server.objects:
                server.objects[PATH] = value

        server.before = made_again
        since = len(server.requests)
        server.forced_out()
        await asyncio.sleep(0.1)
        assert writes_of_crd(server, since) == []

    play(people, begin=EMPTY)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [(document(), ("True", "Accepted")), (INVALID, ("False", "Invalid"))],
    ids=["right", "refused"],
)
def test_the_api_of_a_definition_that_stays_is_opened_whatever_is_refused(
    value: Json, accepted: tuple[str, str]
) -> None:
    """As after a backup that was made during a deletion."""

    def begin(server: Server) -> None:
        established(server)
        close(server)
        server.make(value)

    async def people(server: Server) -> None:
        await asyncio.sleep(1.0)
        assert not is_partly_fenced(crd(server))
        await rest()
        assert server.condition("Accepted")[:2] == accepted

    play(people, begin=begin)


def test_one_that_cannot_be_opened_says_so() -> None:
    async def people(server: Server) -> None:
        server.before = refuse_crds
        close(server)
        await rest()
        assert server.ready() == ("False", "Refused")
        assert "cannot let the API take composites again: the webhook" in server.condition("Ready")[2]

    play(people, begin=established)


def test_others_who_close_the_api_again_are_not_fought_without_pauses() -> None:
    async def people(server: Server) -> None:
        await rest()
        since = len(server.requests)
        for _ in range(600):
            await asyncio.sleep(1.0)
            if not is_fenced(crd(server)):
                close(server)
        assert len(writes_of_crd(server, since)) <= 24, "each is opened, and then applied"
        assert server.condition("Accepted")[:2] == ("False", "Overwritten")
        await asyncio.sleep(150.0)
        assert server.ready() == OURS
        assert not is_partly_fenced(crd(server))

    play(people, begin=established)


def left(server: Server) -> None:
    """A CRD whose definition is gone."""
    EMPTY(server)
    del server.objects[PATH]


def test_nor_if_the_definition_is_gone() -> None:
    async def people(server: Server) -> None:
        for _ in range(600):
            await asyncio.sleep(1.0)
            if not is_fenced(crd(server)):
                close(server)
        assert 5 <= len(writes_of_crd(server)) <= 12
        assert server.events == ["APIOpened", "APIClosedAgain"]
        assert "changed again and again by" in server.notes("APIClosedAgain")[0]
        await asyncio.sleep(150.0)
        assert not is_partly_fenced(crd(server))

    play(people, begin=left)


def test_one_that_is_gone_and_cannot_be_opened_is_tried_again_with_pauses() -> None:
    def begin(server: Server) -> None:
        left(server)
        close(server)
        server.before = refuse_crds

    async def people(server: Server) -> None:
        for _ in range(120):
            await asyncio.sleep(1.0)
            server._announce(CRD)
        assert 5 <= len(writes_of_crd(server)) <= 15
        assert server.events == ["APINotOpened"]
        assert "the webhook says no" in server.notes("APINotOpened")[0]
        server.before = nothing
        await rest()
        assert not is_partly_fenced(crd(server))
        assert server.events == ["APINotOpened", "APIOpened"]

    play(people, begin=begin)


def test_another_crd_of_that_name_is_another_matter() -> None:
    async def people(server: Server) -> None:
        for _ in range(5):
            close(server)
            await asyncio.sleep(0.5)
        assert is_fenced(crd(server))
        again = copy.deepcopy(crd(server))
        server.forced_out(CRD)
        server.make_crd(again)
        await asyncio.sleep(0.5)
        assert not is_partly_fenced(crd(server))

    play(people, begin=left)


def test_a_definition_that_has_the_rule_itself_keeps_it() -> None:
    async def people(server: Server) -> None:
        rules = fencing(crd(server))[0]["value"]
        server.make(document(version(of=schema(**{"x-kubernetes-validations": rules}))))
        await rest()
        assert is_fenced(crd(server))
        since = len(server.requests)
        await asyncio.sleep(60.0)
        assert writes_of_crd(server, since) == []

    play(people, begin=established)
