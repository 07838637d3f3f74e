"""What comes between the last composite and the deletion of its CRD, in virtual time."""

import asyncio
import copy
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.fence import is_fenced, is_partly_fenced
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import (
    CRD,
    OBJECTS,
    PATH,
    Server,
    composer,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_controller import OURS, rest, with_policy
from tests.unit.core.composition.documents import document

Json = Any
EMPTY = with_policy("Protect", 0)


def crd(server: Server) -> Json:
    return server.objects[CRD]


def rewrite(server: Server, versions: Json) -> None:
    """Somebody replaces the versions of the CRD."""
    crd(server)["spec"]["versions"] = copy.deepcopy(versions)
    crd(server)["metadata"]["generation"] += 1
    server._wrote(CRD)


def one(server: Server) -> str:
    return next(each for each in server.objects if each.startswith(OBJECTS))


def writes_of_crd(server: Server, since: int = 0) -> list[str]:
    return [method for method, path in server.writes(since) if path == CRD]


def test_the_api_refuses_new_composites_before_it_is_deleted() -> None:
    async def people(server: Server) -> None:
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(0.5)
        assert is_fenced(crd(server))
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert "The API takes no new ones" in message
        assert server.condition("Reconciling")[0] == "True"
        await asyncio.sleep(4.0)
        assert "deletionTimestamp" not in crd(server)["metadata"]
        await asyncio.sleep(2.0)
        assert PATH not in server.objects
        assert CRD not in server.objects
        assert writes_of_crd(server, since) == ["PATCH", "DELETE"]

    play(people, begin=EMPTY)


@pytest.mark.parametrize("seconds", [0.1, 2.0, 4.9])
def test_a_composite_of_a_request_from_before_stays(seconds: float) -> None:
    async def people(server: Server) -> None:
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(seconds)
        server.make_composites(1)
        await rest()
        message = server.condition("Established")[2]
        assert message.startswith("1 composite (default/a-")
        assert message.endswith("The API takes no new ones.")
        assert server.condition("Stalled")[0] == "True"
        await asyncio.sleep(600.0)
        assert writes_of_crd(server, since) == ["PATCH", "PATCH"], "a fence, and a claim"
        server.delete(one(server))
        await asyncio.sleep(3.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=EMPTY)


def test_a_tenant_does_not_decide_how_often_the_crd_is_written() -> None:
    """Who creates and deletes composites as fast as the API lets them."""

    async def people(server: Server) -> None:
        since = len(server.requests)
        server.delete()
        refused = 0
        while CRD in server.objects:
            if is_fenced(crd(server)):
                refused += 1
            else:
                server.make_composites(1)
            await asyncio.sleep(0.3)
            while server.composites():
                server.delete(one(server))
                await asyncio.sleep(0.3)
        await rest()
        assert refused
        assert server.lost == []
        assert len(writes_of_crd(server, since)) <= 3, "a claim, a fence, the deletion"

    play(people, begin=with_policy("Protect", 2))


def test_an_api_server_that_cannot_have_the_rule_is_named_with_the_remedy() -> None:
    field = "spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations[0].rule"
    said = "compilation failed: ERROR: <input>:1:8: undefined field 'hasValue'"
    body = {"message": f"it is invalid: {field}: {said}", "details": {"causes": [{"field": field}]}}

    async def people(server: Server) -> None:
        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD) and "deletionTimestamp" in server.objects[PATH]["metadata"]:
                raise ApiError(422, body)

        server.before = refuse
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(300.0)
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert "cannot let the API refuse new composites" in message
        assert "Kubernetes 1.30 and later" in message
        assert "set spec.deletion to Cascade" in message
        assert server.condition("Stalled")[0] == "True"
        assert len(writes_of_crd(server, since)) <= 300 / 15 + 6, "with pauses"
        server.make(document(deletion="Cascade"))
        await rest()
        assert PATH not in server.objects
        assert CRD not in server.objects

    play(people, begin=EMPTY)


def test_a_composer_that_finds_a_fence_lets_it_settle() -> None:
    async def main() -> None:
        server = Server(ClusterState())
        EMPTY(server)
        async with composer(server) as first:
            server.delete()
            await asyncio.sleep(4.0)
            await first.kill()
        assert is_fenced(crd(server))
        await asyncio.sleep(3600.0)
        async with composer(server):
            await asyncio.sleep(4.0)
            server.make_composites(1)
            await rest()
            assert "1 composite" in server.condition("Established")[2]
            server.delete(one(server))
            await rest()
            assert PATH not in server.objects
        assert server.lost == []

    virtualtime.run(main())


def test_a_fence_that_others_take_off_is_put_up_again_with_pauses() -> None:
    async def people(server: Server) -> None:
        before = copy.deepcopy(crd(server)["spec"]["versions"])
        since = len(server.requests)
        server.delete()
        for _ in range(600):
            await asyncio.sleep(1.0)
            if is_partly_fenced(crd(server)):
                rewrite(server, before)
        assert "deletionTimestamp" not in crd(server)["metadata"]
        assert len(writes_of_crd(server, since)) <= 12
        assert "changed again and again" in server.condition("Established")[2]
        server.make_composites(1)
        await rest()
        assert "1 composite" in server.condition("Established")[2]
        server.delete(one(server))
        await asyncio.sleep(200.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=EMPTY)


def test_one_that_was_taken_off_for_a_moment_settles_again() -> None:
    async def people(server: Server) -> None:
        before = copy.deepcopy(crd(server)["spec"]["versions"])
        server.delete()
        await asyncio.sleep(3.0)
        fenced = crd(server)["spec"]["versions"]
        rewrite(server, before)
        rewrite(server, fenced)
        await asyncio.sleep(4.0)
        server.make_composites(1)
        await rest()
        assert "1 composite" in server.condition("Established")[2]
        assert server.lost == []

    play(people, begin=EMPTY)


def test_orphan_leaves_the_crd_without_it() -> None:
    async def people(server: Server) -> None:
        before = copy.deepcopy(crd(server)["spec"])
        server.delete()
        await asyncio.sleep(1.0)
        assert is_fenced(crd(server))
        server.make(document(deletion="Orphan"))
        await rest()
        assert PATH not in server.objects
        assert crd(server)["spec"] == before
        assert crd(server)["metadata"]["annotations"] == {}

    play(people, begin=EMPTY)


def test_cascade_does_not_wait_for_it() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(1.0)
        server.make_composites(1)
        server.make(document(deletion="Cascade"))
        await asyncio.sleep(3.0)
        assert PATH not in server.objects
        assert CRD not in server.objects

    play(people, begin=EMPTY)


def test_a_definition_that_is_made_again_takes_it_off() -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(1.0)
        server.forced_out()
        server.make()
        await rest()
        assert server.ready() == ("False", "NotOurs")
        assert not is_partly_fenced(crd(server))
        server.make(document(metadata={"annotations": {"crdkeeper.dev/adopt": "true"}}))
        await rest()
        assert server.ready() == OURS

    play(people, begin=EMPTY)


@pytest.mark.parametrize("code", [403, 409, 422, 503])
def test_one_that_cannot_be_put_up_is_said_and_tried_again_with_pauses(code: int) -> None:
    async def people(server: Server) -> None:
        async def fail(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise ApiError(code, {"message": "the webhook says no"})

        server.before = fail
        since = len(server.requests)
        server.delete()
        for _ in range(60):
            server.make_composites(1)
            await asyncio.sleep(0.5)
            server.delete(one(server))
            await asyncio.sleep(0.5)
        await rest()
        said = server.condition("Established")[2]
        assert "cannot let the API refuse new composites: the webhook" in said
        assert "set spec.deletion to Cascade" in said
        assert "or to Orphan" in said
        assert len(writes_of_crd(server, since)) <= 20
        assert "deletionTimestamp" not in crd(server)["metadata"]

        async def none(_: str, __: str) -> None:
            pass

        server.before = none
        await asyncio.sleep(60.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=EMPTY)


def test_one_that_cannot_be_put_up_does_not_hold_up_a_cascade() -> None:
    async def people(server: Server) -> None:
        async def fail(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise ApiError(403, {"message": "no"})

        server.before = fail
        server.delete()
        await rest()
        server.make(document(deletion="Cascade"))
        await rest()
        assert PATH not in server.objects

    play(people, begin=EMPTY)


def test_an_api_that_was_never_served_needs_none() -> None:
    async def people(server: Server) -> None:
        for each in crd(server)["status"]["conditions"]:
            each["status"] = "False"
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(1.0)
        assert PATH not in server.objects
        assert writes_of_crd(server, since) == ["DELETE"]

    play(people, begin=EMPTY)


def test_composites_count_before_the_api_is_established() -> None:
    async def people(server: Server) -> None:
        crd(server)["status"]["conditions"][1]["status"] = "False"
        server.make_composites(1)
        server.delete()
        await rest()
        assert "1 composite" in server.condition("Established")[2]
        assert server.lost == []

    play(people, begin=EMPTY)


def test_whoever_edits_the_definition_does_not_wait_for_the_pause() -> None:
    async def people(server: Server) -> None:
        async def fail(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD):
                raise ApiError(403, {"message": "no"})

        async def none(_: str, __: str) -> None:
            pass

        server.before = fail
        server.delete()
        await asyncio.sleep(120.0)
        since = len(server.requests)
        server.before = none
        server.make(document(deletion="Protect", metadata={"labels": {"a": "b"}}))
        await asyncio.sleep(0.1)
        assert is_fenced(crd(server))
        assert writes_of_crd(server, since) == ["PATCH"]

    play(people, begin=EMPTY)


def rewrite_conversion(server: Server, times: int = 1) -> None:
    """Somebody changes what has nothing to do with the fence."""
    for number in range(times):
        crd(server)["spec"]["conversion"] = {"strategy": "None", "number": number}
        crd(server)["metadata"]["generation"] += 1
    server._wrote(CRD)


def set_by(server: Server, manager: str, operation: str) -> None:
    """Who has set the versions, as the API server notes it."""
    fields = {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:versions": {}}}}
    crd(server)["metadata"]["managedFields"] = [fields]


@pytest.mark.parametrize("at_once", [1, 5])
def test_who_changes_the_conversion_does_not_hold_up_the_deletion(at_once: int) -> None:
    """As two programs do that inject their own caBundle each."""

    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(0.5)
        set_by(server, "crdkeeper-composer", "Update")
        for _ in range(6):
            if CRD in server.objects:
                rewrite_conversion(server, at_once)
            await asyncio.sleep(1.0)
        assert PATH not in server.objects
        assert server.lost == []

    play(people, begin=EMPTY)


def test_who_changes_the_versions_again_and_again_is_named() -> None:
    async def people(server: Server) -> None:
        since = len(server.requests)
        server.delete()
        await asyncio.sleep(0.5)
        set_by(server, "tool", "Update")
        for number in range(10):
            assert ("changed again and again by tool" in server.condition("Established")[2]) == (number > 2)
            # Off, and on again: nobody has seen that.
            rewrite_conversion(server, 2)
            await asyncio.sleep(3.0)
        assert "so far 10 times" in server.condition("Established")[2]
        assert writes_of_crd(server, since) == ["PATCH"]
        await asyncio.sleep(3.0)
        assert PATH not in server.objects

    play(people, begin=EMPTY)
