"""A policy that releases finalizers, its CRD, and the objects in deletion, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar, cast

import orjson
import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.definitionpolicy import finalizers as finalizers_module
from crdkeeper.controllers.definitionpolicy.controller import DefinitionPolicies
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from tests import virtualtime
from tests.unit.builders import NAME, later, policy
from tests.unit.controllers.fakeapi import OURS, FakeApi
from tests.unit.core.diagnosis.builders import seen

WIDGETS = "/apis/example.com/v2/widgets"
POLICIES = f"{OURS}/definitionpolicies"
STATUS = f"{POLICIES}/p/status"
GONE = "example.com/gone"
ALSO_GONE = "example.com/also-gone"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Cluster(FakeApi):
    """Objects in deletion; a test says what becomes of patches."""

    controller: DefinitionPolicies

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, Exception | int] = {}
        """What a patch of the object of that name answers or raises."""
        self.patched: list[str] = []
        self.began_to_release = asyncio.Event()
        self.began = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return later(asyncio.get_running_loop().time() - self.began)

    def hold(self, name: str, *finalizers: str) -> None:
        self.held[name] = {
            "namespace": "s",
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "deletionTimestamp": later(-1000).isoformat(),
            "finalizers": [*finalizers],
        }

    def touch(self, name: str) -> None:
        """A write that adds nothing."""
        self.held[name]["resourceVersion"] += "1"

    async def request(self, method: str, path: str, *args: Any, **others: Any) -> dict[str, Any]:
        plain = path.partition("?")[0]
        if plain == WIDGETS:
            items = [{"metadata": {**each}} for each in self.held.values()]
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if plain == REVIEWS:
            return {"status": {"allowed": True}}
        return await super().request(method, path, *args, **others)

    async def send(self, method: str, path: str, *, content: bytes, **_: Any) -> Answer:
        assert method == "PATCH"
        name = path.partition("?")[0].rpartition("/")[2]
        self.patched.append(name)
        self.began_to_release.set()
        trouble = self.broken.get(name, 200)
        if isinstance(trouble, Exception):
            raise trouble
        if trouble != 200:
            return Answer(trouble, orjson.dumps({"message": "did not complete within requested timeout"}))
        found = self.held[name]
        tests = {each["path"]: each["value"] for each in orjson.loads(content) if each["op"] == "test"}
        assert tests["/metadata/resourceVersion"] == found["resourceVersion"]
        found["finalizers"].remove(tests[next(each for each in tests if "finalizers" in each)])
        if found["finalizers"]:
            self.touch(name)
        else:
            del self.held[name]
        return Answer(200, orjson.dumps({"kind": "PartialObjectMetadata", "metadata": found}))


_C = TypeVar("_C", bound=Cluster)


def rule(name: str = GONE, after: str = "5s") -> dict[str, str]:
    return {"name": name, "releaseAfter": after, "mode": "Automatic"}


def play(
    people: Callable[[ClusterState, _C], Awaitable[None]],
    *rules: dict[str, str],
    setting: Callable[[_C], None] = lambda _: None,
    cluster: Callable[[], _C] = Cluster,  # type: ignore[assignment]
    queues: bool = True,
) -> None:
    """One CRD, and a policy that releases finalizers. Without `queues`, the test calls what these would."""

    async def main() -> None:
        api, state = cluster(), ClusterState()
        setting(api)
        api.controller = controller = DefinitionPolicies(
            cast(Client, api),
            state,
            OperatorMetrics(),
            identity="me",
            namespace="crdkeeper-system",
            webhook=WebhookAddress(),
        )
        running = [
            asyncio.create_task(each.run())
            for each in (controller.policies, controller.finalizers.queue)
            if queues
        ]
        state.saw_definition(NAME, seen())
        governs = policy("p", finalizers=[*(rules or [rule()])])
        api.objects[f"{POLICIES}/p"] = governs.to_object()
        state.saw(DefinitionPolicy, "p", governs)
        await people(state, api)
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finalizers_module, "monotonic", virtualtime.now)
        virtualtime.run(main())
