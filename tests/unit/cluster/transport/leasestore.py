"""The API server's behaviour for one Lease: optimistic locking."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from crdkeeper.cluster.transport.client import ApiError
from tests.unit.cluster.transport.localserver import failure


class LeaseStore:
    """One Lease, which is held by `holder`, or does not exist."""

    def __init__(self, holder: str | None = None, **spec: Any) -> None:
        self.version = 1
        self.lease: dict[str, Any] | None = None
        if holder is not None:
            self.lease = {
                "metadata": {"name": "l", "resourceVersion": "1"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
            }

    @property
    def spec(self) -> Mapping[str, Any]:
        assert self.lease is not None
        spec: Mapping[str, Any] = self.lease["spec"]
        return spec

    def answer(self, method: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        if method == "GET":
            if self.lease is None:
                raise ApiError(404, {"reason": "NotFound", "code": 404})
            return self.lease
        assert body is not None
        expected = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if body["metadata"].get("resourceVersion") != expected:
            raise ApiError(409, {"reason": "Conflict", "code": 409})
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**body, "metadata": metadata}
        return self.lease

    async def handle(self, request: web.Request) -> web.Response:
        """The same over HTTP."""
        content = await request.read()
        body = orjson.loads(content) if content else None
        try:
            return web.json_response(self.answer(request.method, body))
        except ApiError as error:
            return await failure(error.code, error.reason)(request)
