"""Requests for a CRD that arrive when somebody has decided otherwise, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.plan import ComposerStep
from crdkeeper.core.composition.definition import OWNER
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import (
    CRD,
    OBJECTS,
    PATH,
    Server,
    composer,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_controller import rest, with_policy
from tests.unit.core.composition.documents import document

Json = Any
Fault = Callable[[str, str], Awaitable[None]]


async def nothing(_: str, __: str) -> None:
    """No fault."""


def decided(server: Server) -> Json:
    """What a request for the CRD names that is decided now."""
    return {key: server.objects[CRD]["metadata"][key] for key in ("uid", "resourceVersion")}


WRITES = {"Protect": "DELETE", "Orphan": "PATCH"}
"""What ends the deletion of a definition without composites."""


def until_write_of_crd(server: Server, policy: str, then: Fault) -> tuple[list[Json], asyncio.Event]:
    """Do something else instead of the first write of the CRD that ends a deletion.

    Returns what it named, and an event for when it was sent.
    """
    seen: list[Json] = []
    sent = asyncio.Event()

    async def fault(method: str, path: str) -> None:
        if (method, path) == (WRITES[policy], CRD) and not seen:
            seen.append(decided(server))
            sent.set()
            await then(method, path)

    server.before = fault
    return seen, sent


async def frozen(_: str, __: str) -> None:
    """Its process sends nothing any more."""
    await asyncio.Event().wait()


async def unanswered(method: str, path: str) -> None:
    """The request is still on its way when the client gives it up."""
    raise Unreachable(f"{method} {path}: timed out")


@pytest.mark.parametrize("policy", ["Protect", "Orphan"])
def test_of_a_composer_that_was_frozen(policy: str) -> None:
    async def main() -> None:
        server = Server(ClusterState())
        with_policy(policy, 0)(server)
        seen, _ = until_write_of_crd(server, policy, frozen)
        async with composer(server):
            server.delete()
            await rest()
        server.before = nothing
        server.make_composites(1)
        server.make(document(deletion="Protect"))
        async with composer(server):
            await rest()
            assert "1 composite" in server.condition("Established")[2]
            too_late(server, policy, seen)
            server.delete(next(each for each in server.objects if each.startswith(OBJECTS)))
            await rest()
        assert PATH not in server.objects
        assert CRD not in server.objects
        assert server.lost == []

    virtualtime.run(main())


@pytest.mark.parametrize("policy", ["Protect", "Orphan"])
def test_that_got_no_answer(policy: str) -> None:
    async def people(server: Server) -> None:
        seen, sent = until_write_of_crd(server, policy, unanswered)
        server.delete()
        await sent.wait()
        server.make_composites(1)
        server.make(document(deletion="Protect"))
        await rest()
        too_late(server, policy, seen)

    play(people, begin=with_policy(policy, 0))


def test_a_cascade_is_not_ended_by_a_delayed_release() -> None:
    async def people(server: Server) -> None:
        seen, sent = until_write_of_crd(server, "Orphan", unanswered)
        server.delete()
        await sent.wait()
        server.make(document(deletion="Cascade"))
        await rest()
        too_late(server, "Orphan", seen)

    play(people, begin=with_policy("Orphan", 2, finalizers=["example.com/held"]))


def test_a_crd_is_claimed_once() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await rest()
        before = server.objects[CRD]["metadata"]["resourceVersion"]
        server.make_composites(3)
        await asyncio.sleep(600.0)
        assert server.objects[CRD]["metadata"]["resourceVersion"] == before
        server.make(document(deletion="Orphan"))
        await rest()
        assert server.objects[CRD]["metadata"]["annotations"] == {}

    play(people, begin=with_policy("Protect", 1))


async def come_and_go(server: Server) -> None:
    """A tenant creates and deletes a composite each second, for two minutes."""
    for _ in range(120):
        server.make_composites(1)
        await asyncio.sleep(0.5)
        server.delete(next(each for each in server.objects if each.startswith(OBJECTS)))
        await asyncio.sleep(0.5)


@pytest.mark.parametrize("code", [403, 409, 500])
def test_a_tenant_cannot_have_the_crd_written_in_a_loop(code: int) -> None:
    """Whose deletion is denied, so that it is claimed again when a composite was created."""

    async def people(server: Server) -> None:
        async def deny(method: str, path: str) -> None:
            if (method, path) == ("DELETE", CRD):
                raise ApiError(code, {"message": "denied"})

        server.before = deny
        server.delete()
        await rest()
        since = len(server.requests)
        await come_and_go(server)
        writes = server.writes(since)
        assert writes.count(("DELETE", CRD)) <= 12
        assert writes.count(("PATCH", CRD)) <= 12
        server.before = nothing
        await asyncio.sleep(60.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Protect", 0))


@pytest.mark.parametrize(
    ("policy", "step", "code"),
    [
        ("Protect", "claim", 403),
        ("Protect", "claim", 409),
        ("Protect", "claim", 500),
        ("Orphan", "release", 409),
        ("Orphan", "release", 500),
    ],
)
def test_a_tenant_cannot_have_a_write_that_is_denied_sent_in_a_loop(
    policy: str, step: str, code: int
) -> None:
    async def people(server: Server) -> None:
        claim_fails(server, code)
        server.delete()
        await rest()
        since = len(server.requests)
        await come_and_go(server)
        assert 1 <= server.writes(since).count(("PATCH", CRD)) <= 12
        assert f"cannot {ComposerStep[f'{step.upper()}_CRD'].value}" in server.condition("Established")[2]

    play(people, begin=with_policy(policy, 1))


def claim_fails(server: Server, code: int) -> None:
    """An admission webhook for CRDs is away, or denies what the composer writes."""

    async def fail(method: str, path: str) -> None:
        if (method, path) == ("PATCH", CRD):
            raise ApiError(code, {"message": "the webhook says no"})

    server.before = fail


@pytest.mark.parametrize("code", [403, 409, 503])
def test_a_claim_that_fails_does_not_hide_what_a_person_has_to_do(code: int) -> None:
    async def people(server: Server) -> None:
        claim_fails(server, code)
        server.delete()
        await asyncio.sleep(60.0)
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert message.startswith("3 composites (default/a-")
        assert "spec.deletion is Protect" in message
        assert message.endswith("Besides, the composer cannot claim the CRD: the webhook says no")
        assert server.condition("Stalled")[0] == "True"
        server.before = nothing
        await asyncio.sleep(60.0)
        assert "Besides" not in server.condition("Established")[2]

    play(people, begin=with_policy("Protect", 3))


@pytest.mark.parametrize("code", [403, 409, 503])
def test_a_claim_that_fails_does_not_hold_up_a_cascade(code: int) -> None:
    async def people(server: Server) -> None:
        claim_fails(server, code)
        server.delete()
        await asyncio.sleep(60.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 3))


def too_late(server: Server, policy: str, seen: list[Json]) -> None:
    """The request that was decided by this policy arrives, and has no effect."""
    (named,) = seen
    arrive = {
        "Orphan": lambda: server._annotate_crd({**named, "annotations": {OWNER: None}}),
        "Protect": lambda: server._delete(CRD, named),
    }
    with pytest.raises(ApiError, match="resourceVersion has changed"):
        arrive[policy]()
