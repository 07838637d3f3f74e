"""Orphan where somebody refuses each change of the CRD, in virtual time."""

import asyncio
import copy
from typing import Any

import pytest

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.core.composer.fence import fencing, is_fenced
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, CRD, PATH, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import rest, with_policy
from tests.unit.controllers.compositeresourcedefinition.test_fencing import EMPTY, crd, writes_of_crd
from tests.unit.core.composition.documents import document

COMPOSED = [
    {"apiVersion": "platform.example.com/v1", "kind": "Other"},
    {"apiVersion": "platform.example.com/v0", "kind": "Database"},
]


def revisions(*composed: dict[str, str]) -> dict[str, Any]:
    """CompositionRevisions for these types."""
    items = [{"metadata": {}, "spec": {"compositeTypeRef": each}} for each in composed]
    return {"metadata": {"resourceVersion": "1"}, "items": items}


def frozen(code: int) -> ApiError:
    return ApiError(code, {"message": "CRDs are frozen until Monday"})


@pytest.mark.parametrize("code", [400, 403, 422])
def test_what_the_condition_recommends_ends_the_deletion(code: int) -> None:
    async def people(server: Server) -> None:
        async def policy(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise frozen(code)

        server.before = policy
        before = copy.deepcopy(crd(server))
        server.delete()
        await rest()
        assert "set spec.deletion to Cascade" in server.condition("Established")[2]
        assert "or to Orphan" in server.condition("Established")[2]
        server.make(document(deletion="Orphan"))
        await rest()
        assert PATH not in server.objects
        assert crd(server) == before
        (note,) = server.notes("CRDNotReleased")
        assert "CRDs are frozen until Monday" in note
        assert "annotation crdkeeper.dev/definition-uid" in note

    play(people, begin=EMPTY)


def test_one_that_cannot_end_either_is_not_recommended() -> None:
    def begin(server: Server) -> None:
        EMPTY(server)
        second = copy.deepcopy(crd(server)["spec"]["versions"][0]) | {"name": "v2"}
        server._patch_crd(fencing(crd(server)))
        crd(server)["spec"]["versions"].append(second)

    async def people(server: Server) -> None:
        async def policy(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise frozen(403)

        server.before = policy
        server.delete()
        await rest()
        message = server.condition("Established")[2]
        assert "CRDs are frozen until Monday" in message
        assert "set spec.deletion to Cascade" in message
        assert "Orphan" not in message

    play(people, begin=begin)


def test_a_closed_api_is_not_left_behind() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(1.0)
        assert is_fenced(crd(server))

        async def policy(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise frozen(403)

        server.before = policy
        server.make(document(deletion="Orphan"))
        await rest()
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert "CRDs are frozen until Monday" in message
        assert "remove the rule oldSelf.hasValue()" in message
        # As the message says.
        crd(server)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].pop("x-kubernetes-validations")
        server._wrote(CRD)
        await rest()
        assert PATH not in server.objects

    play(people, begin=EMPTY)


@pytest.mark.parametrize("error", [Unreachable("no answer"), ApiError(504, {"message": "gateway timeout"})])
def test_a_crd_that_a_delayed_request_may_delete_is_not_left_behind(error: ApiError | Unreachable) -> None:
    async def people(server: Server) -> None:
        async def trouble(method: str, path: str) -> None:
            if (method, path) == ("DELETE", CRD):
                raise error
            if (method, path) == ("PATCH", CRD):
                raise frozen(403)

        server.before = trouble
        server.delete()
        await asyncio.sleep(1.0)
        server.make(document(deletion="Orphan"))
        await rest()
        message = server.condition("Established")[2]
        assert "CRDs are frozen until Monday" in message
        assert "may still delete it" in message
        # As the message says.
        server._wrote(CRD)
        await rest()
        assert PATH not in server.objects
        assert CRD in server.objects

    play(people, begin=with_policy("Cascade", 0))


def test_a_deletion_that_was_refused_is_not_under_way() -> None:
    async def people(server: Server) -> None:
        async def policy(method: str, path: str) -> None:
            if path == CRD and method in ("PATCH", "DELETE"):
                raise frozen(403)

        server.before = policy
        server.delete()
        await asyncio.sleep(1.0)
        server.make(document(deletion="Orphan"))
        await rest()
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 0))


def test_the_event_waits_until_the_definition_goes() -> None:
    async def people(server: Server) -> None:
        async def trouble(method: str, path: str) -> None:
            if method == "PATCH" and path == CRD:
                raise frozen(403)
            if method == "PATCH" and path == PATH:
                raise ApiError(500, {"message": "later"})

        server.before = trouble
        server.delete()
        since = len(server.requests)
        await asyncio.sleep(120.0)
        assert "cannot remove the finalizer" in server.condition("Established")[2]
        assert server.notes("CRDNotReleased") == []
        assert len(writes_of_crd(server, since)) <= 120 / 15 + 6

    play(people, begin=with_policy("Orphan", 0))


def test_composites_that_were_never_composed_are_not_held() -> None:
    async def people(server: Server) -> None:
        async def denied(method: str, path: str) -> None:
            if path == ALL:
                raise ApiError(403, {"message": "databases is forbidden"})

        server.before = denied
        server.objects[REVISIONS] = revisions(COMPOSED[0])
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert DEFINITION_UID not in (server.objects[CRD]["metadata"].get("annotations") or {})

    play(people, begin=with_policy("Orphan", 0))


def test_composites_that_may_not_be_listed_any_more_are_not_left_held() -> None:
    async def people(server: Server) -> None:
        async def denied(method: str, path: str) -> None:
            if path == ALL:
                raise ApiError(403, {"message": "databases is forbidden"})

        server.before = denied
        server.objects[REVISIONS] = revisions(*COMPOSED)
        server.delete()
        await rest()
        assert DEFINITION_UID in server.objects[CRD]["metadata"]["annotations"]
        message = server.condition("Established")[2]
        assert "Let the composer list them: databases is forbidden" in message

        async def allowed(_: str, __: str) -> None:
            """No fault."""

        server.before = allowed
        await rest()
        assert PATH not in server.objects
        (composite,) = server.composites()
        assert composite["metadata"]["finalizers"] == []

    play(people, begin=with_policy("Orphan", 1, finalizers=[FINALIZER]))


def test_composites_are_not_listed_while_a_list_would_hang() -> None:
    async def people(server: Server) -> None:
        async def hang(method: str, path: str) -> None:
            if path == ALL:
                await asyncio.sleep(75.0)
                raise Unreachable("no answer")

        async def mended(_: str, __: str) -> None:
            """No fault."""

        server.before = hang
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(200.0)
        # All that may be of use, and the first one alone.
        lists = [path for _, path in server.requests[since:] if path.startswith(f"{ALL}?")]
        assert [each for each in lists if each.endswith(("=1", "=500"))] == [
            f"{ALL}?limit=500",
            f"{ALL}?limit=1",
        ]
        assert "no answer within 10 seconds" in server.condition("Established")[2]
        server.before = mended
        await rest()
        assert PATH not in server.objects

    play(people, begin=with_policy("Orphan", 1))
