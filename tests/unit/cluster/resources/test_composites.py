"""Writes of the composer: each is one request, and ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources import composites
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.deadlines import TooSlow
from tests import virtualtime
from tests.unit.cluster.transport.localserver import client_of, failure
from tests.unit.core.composition.documents import document

CRD = {"metadata": {"name": "databases.platform.example.com", "uid": "1", "resourceVersion": "2"}}
DEFINITION = CompositeResourceDefinition.model_validate(
    document(metadata={"uid": "3", "resourceVersion": "4"})
)
WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "apply": lambda client: composites.apply_crd(client, CRD, CRD),
    "claim": lambda client: composites.claim_crd(client, CRD),
    "patch": lambda client: composites.patch_crd(client, CRD, []),
    "release": lambda client: composites.release_crd(client, CRD),
    "delete": lambda client: composites.delete_crd(client, CRD),
    "finalizers": lambda client: composites.set_finalizers(client, DEFINITION, ["a"]),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("code", [429, 500])
async def test_a_write_that_fails_is_not_repeated_at_once(tmp_path: Path, write: str, code: int) -> None:
    """The API server says how long to wait as a webhook asks: up to hours."""
    refused = failure(code, "No", headers={"Retry-After": "300"})
    async with client_of(tmp_path, refused) as (server, client):
        with pytest.raises(ApiError, match=str(code)):
            await WRITES[write](client)
        assert len(server.requests) == 1


@pytest.mark.parametrize("write", WRITES)
def test_a_write_without_an_answer_ends(write: str) -> None:
    class Silent:
        async def request(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    async def story() -> None:
        with pytest.raises(TooSlow, match="within 40 seconds"):
            await WRITES[write](cast(Client, Silent()))
        assert virtualtime.now() == 40.0

    virtualtime.run(story())
