"""What is said of refused requests, in virtual time."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.refusing import refusal
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from tests import virtualtime

DENIED = ApiError(403, {"message": "not you"})
COMPOSITES = 500


class Reviews:
    """An API server that reviews rights."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.count = 0

    async def request(self, _: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        assert path.endswith("/selfsubjectaccessreviews")
        self.count += 1
        of = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": of["resource"] in self.allowed}}


def test_rights_are_not_reviewed_for_each_composite() -> None:
    async def main() -> None:
        server = Reviews("secrets")
        rights = KnownRights(cast(Client, server))
        for each in range(COMPOSITES):
            for plural, reason in (("configmaps", reasons.RIGHT_MISSING), ("secrets", reasons.REFUSED)):
                kind = ServedKind("v1", plural, plural, namespaced=True)
                verdict = await refusal(rights, kind, f"{plural}/{each}", DENIED)
                assert verdict.reason is reason
                assert f"{plural}/{each}" in verdict.message
            await asyncio.sleep(0.01)
        # Six verbs of two kinds, for five seconds.
        assert server.count <= 24
        server.allowed = ("configmaps", "secrets")
        await asyncio.sleep(5.0)
        verdict = await refusal(rights, ServedKind("v1", "ConfigMap", "configmaps", True), "a", DENIED)
        assert verdict.reason is reasons.REFUSED

    virtualtime.run(main())
