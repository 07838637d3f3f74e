"""Composites are listed for a watch once the API server could serve the watch, too."""

from typing import Any, cast

import pytest

from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.placing import Place
from crdkeeper.controllers.composite.watching import CompositeList

ALL = "/apis/platform.example.com/v1/databases"
COMPOSITE = {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "40"}


class Api:
    """Serves one composite as soon as its cache is ready."""

    def __init__(self) -> None:
        self.ready = False
        self.lists: list[str] = []

    async def request(self, _: str, path: str, **__: Any) -> Any:
        if "fieldSelector" not in path:
            self.lists.append(path)
        elif not self.ready:
            raise ApiError(429, {"message": "storage is (re)initializing"})
        return {"metadata": {"resourceVersion": "50"}, "items": [{"metadata": COMPOSITE}]}


async def test_nothing_is_listed_before_the_cache_is_ready() -> None:
    api, seen = Api(), list[Place]()
    composites = CompositeList(cast(Client, api), ALL, lambda place, _: seen.append(place))
    with pytest.raises(Unreachable, match=r"storage is \(re\)initializing"):
        await composites._load()
    assert api.lists == []
    api.ready = True
    assert await composites._load() == "50"
    assert (len(api.lists), len(seen)) == (1, 1)
