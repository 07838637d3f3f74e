"""Which finalizers the operator releases, object by object, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, cast

import orjson
import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import Answer, Client, Unreachable
from crdkeeper.controllers.definitionpolicy import finalizers as finalizers_module
from crdkeeper.controllers.definitionpolicy.controller import DefinitionPolicies
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.finalizers.rule import WATCH
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


def rule(name: str = GONE, after: str = "5s") -> dict[str, str]:
    return {"name": name, "releaseAfter": after, "mode": "Automatic"}


def play(
    people: Callable[[ClusterState, Cluster], Awaitable[None]],
    *rules: dict[str, str],
    setting: Callable[[Cluster], None],
) -> None:
    """One CRD, and a policy that releases finalizers."""

    async def main() -> None:
        api, state = Cluster(), ClusterState()
        setting(api)
        controller = DefinitionPolicies(
            cast(Client, api),
            state,
            OperatorMetrics(),
            identity="me",
            namespace="crdkeeper-system",
            webhook=WebhookAddress(),
        )
        queues = [
            asyncio.create_task(each.run()) for each in (controller.policies, controller.finalizers.queue)
        ]
        state.saw_definition(NAME, seen())
        governs = policy("p", finalizers=[*(rules or [rule()])])
        api.objects[f"{POLICIES}/p"] = governs.to_object()
        state.saw(DefinitionPolicy, "p", governs)
        await people(state, api)
        for each in queues:
            each.cancel()
        await asyncio.gather(*queues, return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finalizers_module, "monotonic", virtualtime.now)
        virtualtime.run(main())


def test_what_is_due_is_released() -> None:
    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(10.0)
        assert api.held == {}

    play(people, setting=lambda api: api.hold("a", GONE))


def test_a_crd_that_comes_later_is_looked_at_too() -> None:
    async def people(state: ClusterState, api: Cluster) -> None:
        state.saw_definition(NAME, None)
        await asyncio.sleep(10.0)
        assert list(api.held) == ["a"]
        state.saw_definition(NAME, seen())
        await asyncio.sleep(10.0)
        assert api.held == {}

    play(people, setting=lambda api: api.hold("a", GONE))


@pytest.mark.parametrize("trouble", [504, 500, Unreachable("PATCH: no answer")])
def test_objects_that_fail_keep_no_others(trouble: Exception | int) -> None:
    def setting(api: Cluster) -> None:
        for at in range(8):
            api.hold(f"n{at}", GONE)
        api.broken = {f"n{at}": trouble for at in range(4)}

    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(30.0)
        assert sorted(api.held) == ["n0", "n1", "n2", "n3"]

    play(people, setting=setting)


def test_an_api_server_that_fails_is_not_asked_of_every_object() -> None:
    def setting(api: Cluster) -> None:
        for at in range(100):
            api.hold(f"n{at}", GONE)
            api.broken[f"n{at}"] = 500

    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(30.0)
        assert 3 <= len(api.patched) <= 30

    play(people, setting=setting)


def test_nothing_is_released_under_a_policy_that_does_not_govern() -> None:
    """The older policy names no finalizers, and its event has not come yet."""

    async def people(state: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(100.0)
        assert api.patched == []
        del api.objects[f"{POLICIES}/older"]
        await asyncio.sleep(100.0)
        assert api.held == {}

    def setting(api: Cluster) -> None:
        api.hold("a", GONE)
        api.objects[f"{POLICIES}/older"] = policy("older", created=-1).to_object()

    play(people, setting=setting)


def test_a_late_watch_does_not_keep_a_round_going() -> None:
    async def people(_: ClusterState, api: Cluster) -> None:
        await api.began_to_release.wait()
        stopped = policy("p", finalizers=[{**rule(), "mode": "Plan"}])
        api.objects[f"{POLICIES}/p"] = stopped.to_object()
        await asyncio.sleep(100.0)
        assert len(api.patched) <= 40

    def setting(api: Cluster) -> None:
        for at in range(500):
            api.hold(f"n{at}", GONE)

    play(people, setting=setting)


def test_a_write_that_only_removes_starts_the_time_again() -> None:
    """It leaves no time in managedFields."""

    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(5.0)
        for __ in range(20):
            api.touch("a")
            await asyncio.sleep(500.0)
        assert api.patched == []
        await asyncio.sleep(1100.0)
        assert api.held == {}

    # In deletion for 1000 s when the test begins.
    play(people, rule(after="1010s"), setting=lambda api: api.hold("a", GONE))


def test_who_only_removes_something_is_noticed_after_a_start_of_the_operator() -> None:
    """What is in deletion for long was not watched, and may be worked off at this moment."""

    async def people(_: ClusterState, api: Cluster) -> None:
        for __ in range(10):
            await asyncio.sleep(WATCH.total_seconds() - 30.0)
            api.touch("a")
        await asyncio.sleep(880.0)
        assert api.patched == []
        await asyncio.sleep(100.0)
        assert api.held == {}

    play(people, rule(after="900s"), setting=lambda api: api.hold("a", GONE))


def test_our_own_release_is_no_sign_of_life() -> None:
    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(WATCH.total_seconds() + 30.0)
        assert api.held == {}

    rules = [rule(after="900s"), rule(ALSO_GONE, after="900s")]
    play(people, *rules, setting=lambda api: api.hold("a", GONE, ALSO_GONE))


def test_the_status_is_written_once_all_crds_were_looked_at() -> None:
    async def people(state: ClusterState, api: Cluster) -> None:
        for at in range(50):
            name = f"widgets{at}.example.com"
            state.saw_definition(name, seen(name=name, uid=name))
        await asyncio.sleep(0.6)
        before = api.writes("PATCH", STATUS)
        await asyncio.sleep(9.0)
        assert api.writes("PATCH", STATUS) - before <= 5

    play(people, setting=lambda api: api.hold("a", ALSO_GONE))
