"""What is known of Compositions while they can be listed, and after that."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.compositions import SeenCompositions
from crdkeeper.core.composer.offering import SeenComposition, not_listed
from tests import virtualtime

SMALL = {
    "metadata": {"name": "small", "resourceVersion": "1"},
    "spec": {"compositeTypeRef": {"apiVersion": "platform.example.com/v1", "kind": "Database"}},
    "status": {"revision": 1},
}
SEEN = SeenComposition("small", "platform.example.com", "v1", "Database", True)
DENIED = ApiError(403, {"message": "compositions.crdkeeper.dev is forbidden", "reason": "Forbidden"})


class Api:
    """Has one Composition, and refuses to list or watch it whenever a test says so."""

    def __init__(self) -> None:
        self.denies = asyncio.Event()

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        """Like `Client.request`."""
        if self.denies.is_set():
            raise DENIED
        return {"metadata": {"resourceVersion": "1"}, "items": [SMALL]}

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        """Like `Client.lines`: ends when the right is lost."""
        await self.denies.wait()
        raise DENIED
        yield b""


def test_what_may_not_be_listed_any_more_is_not_known() -> None:
    async def main() -> None:
        api, changed = Api(), list[SeenComposition | None]()
        compositions = SeenCompositions(cast(Client, api), changed.append)
        assert compositions.all() == not_listed()
        task = asyncio.create_task(compositions.follow())
        await compositions.loaded.wait()
        assert (compositions.all(), changed) == ((SEEN,), [SEEN])
        api.denies.set()
        await asyncio.sleep(120.0)
        assert compositions.all() == not_listed(DENIED.message)
        assert changed == [SEEN, None]
        api.denies.clear()
        await asyncio.sleep(60.0)
        assert compositions.all() == (SEEN,)
        assert changed == [SEEN, None, None]
        task.cancel()

    virtualtime.run(main())
