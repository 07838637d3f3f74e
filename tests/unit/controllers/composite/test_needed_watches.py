"""Watches on composed objects, in virtual time: one for each kind that a revision has, while it does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.cluster.resources.compositions import REVISIONS
from tests.unit.controllers.composite.scene import MAPS, ComposedServer, play, revision
from tests.unit.controllers.composite.test_overtaken import with_map

TIDIED_SECONDS = 70.0
"""After so long, what is not needed any more has been forgotten."""


@pytest.mark.parametrize("held", [False, True])
def test_a_watch_ends_when_no_revision_has_the_kind(held: bool) -> None:
    async def people(server: ComposedServer) -> None:
        server.serve_maps()
        watches: list[str] = []
        lines = server.lines

        async def counted(path: str, **more: Any) -> AsyncIterator[bytes]:
            watches.append(path.partition("?")[0])
            try:
                async for each in lines(path, **more):
                    yield each
            finally:
                watches.remove(path.partition("?")[0])

        server.lines = counted  # type: ignore[method-assign]
        (composite,) = server.composites()
        composite["spec"] = {"engine": "Postgres"}
        await asyncio.sleep(TIDIED_SECONDS)
        assert f"{MAPS}/orders" in server.objects
        assert watches.count("/api/v1/configmaps") == 1
        # The next revision has no resource any more. Somebody may still use the one before.
        revisions = server.controller._revisions
        revisions.saw(revision(2))
        if not held:
            del server.objects[f"{REVISIONS}/main-1"]
            await revisions._saw("DELETED", with_map())
        await asyncio.sleep(2 * TIDIED_SECONDS)
        assert watches.count("/api/v1/configmaps") == (1 if held else 0)
        # It comes again with another revision.
        server.objects[f"{REVISIONS}/main-3"] = third = {**with_map(), "metadata": revision(3)["metadata"]}
        third["spec"] = {**third["spec"], "revision": 3}
        revisions.saw(third)
        await asyncio.sleep(TIDIED_SECONDS)
        assert watches.count("/api/v1/configmaps") == 1

    play(people, 1, with_map(), generation=1)
