"""Which finalizers the operator releases, object by object, in virtual time."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.finalizers.rule import WATCH
from tests.unit.builders import NAME, policy
from tests.unit.controllers.definitionpolicy.scene import (
    ALSO_GONE,
    GONE,
    POLICIES,
    STATUS,
    Cluster,
    play,
    rule,
)
from tests.unit.core.diagnosis.builders import seen


def test_what_is_due_is_released() -> None:
    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(10.0)
        assert api.held == {}

    play(people, setting=lambda api: api.hold("a", GONE))


def test_in_a_namespace_in_deletion_the_event_is_one_of_the_policy() -> None:
    terminating = ApiError(403, {"reason": "Forbidden", "message": "namespace s is being terminated"})

    async def people(_: ClusterState, api: Cluster) -> None:
        await asyncio.sleep(10.0)
        assert api.held == {}
        (event,) = (each for each in api.objects.values() if each.get("reason") == "FinalizerReleased")
        assert event["metadata"]["namespace"] == "default"
        assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("DefinitionPolicy", "p")
        assert event["note"].startswith(f"Released the finalizer {GONE} of {NAME} s/a on behalf of ")

    def setting(api: Cluster) -> None:
        api.hold("a", GONE)
        api.failures.append(("POST", "/apis/events.k8s.io/v1/namespaces/s/", terminating))

    play(people, setting=setting)


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
