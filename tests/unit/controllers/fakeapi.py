"""An API server for controllers' unit tests, at the level of the client's `request`: objects by path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.transport.client import ApiError
from tests.unit.builders import NOW

OURS = f"/apis/{GROUP}/{VERSION}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class FakeApi:
    """Replaces a Client. It stores what is created and records what is written."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The response to a GET, by path."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """All writes, as method and path without query."""
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The latest patch of each path."""
    failures: list[tuple[str, str, Exception]] = field(default_factory=list)
    """The errors for the next requests of a method to a path with that prefix, each once."""

    hung_lists: dict[str, tuple[str, float]] = field(default_factory=dict)

    def now(self) -> datetime:
        return NOW

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
        lean: bool = False,
    ) -> dict[str, Any]:
        """Like `Client.request`: 404 for an unknown path, 409 for creating an existing object."""
        path = path.partition("?")[0]
        if method != "GET":
            self.requests.append((method, path))
        for each in self.failures:
            if each[0] == method and path.startswith(each[1]):
                self.failures.remove(each)
                raise each[2]
        if method == "GET":
            return self._read(path)
        if method == "POST":
            assert body is not None
            name = f"{path}/{body['metadata']['name']}"
            if name in self.objects:
                raise ApiError(409, {"reason": "AlreadyExists", "message": "exists"})
            self.objects[name] = {**body, "metadata": {"uid": name, **body["metadata"]}}
            return self.objects[name]
        self.written[path] = {**(body or {})}
        return self.written[path]

    def writes(self, method: str, path: str) -> int:
        """The number of such requests; `path` is a prefix."""
        return sum(each == method and to.startswith(path) for each, to in self.requests)

    def _read(self, path: str) -> dict[str, Any]:
        if path in self.objects:
            return self.objects[path]
        below = [found for name, found in self.objects.items() if name.rpartition("/")[0] == path]
        if below or path.rpartition("/")[0] == OURS:
            return {"metadata": {"resourceVersion": "1"}, "items": below}
        raise ApiError(404, {"message": "not found"})
