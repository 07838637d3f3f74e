"""Composites that are left to nobody, with the composer's finalizer."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.composites.ownership import FINALIZER
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, OBJECTS, PATH, Server
from tests.unit.core.composition.documents import document


@pytest.mark.parametrize("code", [0, 403, 409, 500])
@pytest.mark.parametrize("ended", [True, False])
def test_nothing_holds_them_although_an_attempt_failed(code: int, ended: bool) -> None:
    async def people(server: Server) -> None:
        left = [code] if code else []

        async def trouble(method: str, path: str) -> None:
            if method == "PATCH" and path.startswith(OBJECTS) and left:
                if ended:
                    # The definition does not wait for this.
                    server.forced_out()
                    server.objects[CRD]["metadata"]["annotations"] = {}
                    server._wrote(CRD)
                raise ApiError(left.pop(), {"message": "not now"})

        server.before = trouble
        server.make(document(deletion="Orphan"), finalizers=["crdkeeper.dev/composites"])
        server.delete()
        await asyncio.sleep(40.0)
        assert not left
        (composite,) = server.composites()
        assert composite["metadata"]["finalizers"] == ["example.com/other"]
        assert (PATH in server.objects) == (not ended or not code)

    play(people, 1, revision(), finalizers=[FINALIZER, "example.com/other"])


def test_they_go_if_the_definition_went_before_the_composer_began() -> None:
    async def people(server: Server) -> None:
        server.forced_out()
        (composite,) = server.composites()
        server.delete(f"{OBJECTS}/{composite['metadata']['name']}")
        await asyncio.sleep(70.0)
        assert not server.composites()

    play(people, 1, finalizers=[FINALIZER])
