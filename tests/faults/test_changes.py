"""Operators are killed and a CA changes while API servers ask about changes of CRDs: no change fails.

Two replicas with one Lease keep one entry, and never write what the other has written.
"""

import asyncio
import base64
import json
import os
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from crdkeeper.cluster.certificates.issuing import certificates_in, fingerprint
from crdkeeper.cluster.certificates.secrets import CA_SECRET, TLS_SECRET
from tests.cluster.changes.scene import CONFIGURATION, Scene, enum, judging
from tests.cluster.harness import NAMESPACE, Admin, Operator, eventually
from tests.cluster.harness.admin import POLICIES
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.faults.replicas import HASTY, until_leading

KILLS: Final = int(os.environ.get("CRDKEEPER_CHANGE_KILLS", "4"))
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
ROTATION_SECONDS: Final = 900.0
"""Until the old CA goes: 60 seconds, and 10 minutes, and looks between."""
_MOST_SECONDS: Final = 0.6
"""The longest time that an operator lives after a change that it has to answer."""


@pytest.fixture(scope="module")
def pod(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookPod]:
    pod = WebhookPod(installed, tmp_path_factory.mktemp("webhook"), processes=2)
    yield pod
    pod.close()


@pytest.fixture(scope="module")
def running(installed: Cluster, pod: WebhookPod) -> Iterator[Operator]:
    with judging(installed, pod, identity="one", flags=HASTY) as operator:
        yield operator


@pytest.fixture
async def operator(running: Operator) -> Operator:
    """The operator that leads before and after each test."""
    if not running.running:
        running.start()
    await until_leading(running)
    return running


@pytest.fixture
async def standby(installed: Cluster, operator: Operator, pod: WebhookPod) -> AsyncIterator[Operator]:
    """Another replica, that leads once the first one does not."""
    standby = Operator(installed, identity="two", flags={"webhook-url": pod.url, **HASTY})
    try:
        standby.start()
        yield standby
    finally:
        standby.close()


@pytest.fixture
async def scene(admin: Admin, group: str, operator: Operator, pod: WebhookPod) -> AsyncIterator[Scene]:
    """A CRD with objects that a policy protects from harm."""
    scene = Scene(admin, group, pod)
    await scene.let_read()
    await admin.apply_definition(scene.kind)
    await admin.create_objects(scene.kind, 3, engine="mysql")
    await scene.judge("Deny")
    await refused(scene)
    yield scene
    await scene.remove()


async def restarted(operator: Operator) -> None:
    """Kill it, if that has not been done, and return once it leads again."""
    operator.kill()
    operator.start(wait=False)
    await until_leading(operator)


async def refused(scene: Scene) -> None:
    """Return once a harmful change is refused."""
    await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))


async def configuration(scene: Scene) -> dict[str, Any]:
    return await scene.admin.get(CONFIGURATION)


async def trusted(scene: Scene) -> list[str]:
    """The CAs by which API servers know the webhook."""
    entries = (await configuration(scene)).get("webhooks") or [{"clientConfig": {"caBundle": ""}}]
    return [
        fingerprint(each)
        for each in certificates_in(base64.b64decode(entries[0]["clientConfig"]["caBundle"]))
    ]


async def until_told(scene: Scene, mode: str) -> None:
    """Have the policy say that, and return once the operator has seen to it."""
    await scene.admin.merge(f"{POLICIES}/{scene.kind.group}", {"spec": {"changes": mode}})
    await scene.condition("ChangesJudged", "True")


@pytest.mark.parametrize("lost", [(CA_SECRET,), (CA_SECRET, TLS_SECRET)], ids=["CA", "both"])
async def test_no_change_fails_while_the_authority_changes(
    scene: Scene, operator: Operator, lost: tuple[str, ...]
) -> None:
    before = await trusted(scene)
    now: list[str] = []

    async def change() -> None:
        for name in lost:
            await scene.admin.delete(f"{SECRETS}/{name}")
        await restarted(operator)  # it looks for them when it starts

        async def renewed() -> bool:
            now[:] = await trusted(scene)
            return bool(set(now) - set(before))

        await eventually(renewed, otherwise=lambda: f"{before} then, {now} now")

    assert await scene.change_during(change())
    # Whoever is still served by the old certificate goes on, unless nobody knows its CA.
    assert set(before) <= set(now) or len(lost) > 1
    await refused(scene)
    await scene.condition("ChangesJudged", "True")


@pytest.mark.skipif("CRDKEEPER_CHANGE_ROTATION" not in os.environ, reason="takes a quarter of an hour")
@pytest.mark.timeout(2 * ROTATION_SECONDS)
async def test_no_change_fails_until_the_old_authority_is_gone(scene: Scene) -> None:
    before = set(await trusted(scene))

    async def change() -> None:
        await scene.admin.delete(f"{SECRETS}/{CA_SECRET}")

        async def alone() -> bool:
            now = await trusted(scene)
            return bool(now) and before.isdisjoint(now)

        await eventually(alone, seconds=ROTATION_SECONDS, every=1.0)

    assert await scene.change_during(change())
    await refused(scene)


async def test_a_new_leader_writes_nothing(scene: Scene, operator: Operator, standby: Operator) -> None:
    before = (await configuration(scene))["metadata"]
    operator.kill()
    await until_leading(standby)
    for mode in ("Warn", "Deny"):
        await until_told(scene, mode)
    assert (await configuration(scene))["metadata"]["resourceVersion"] == before["resourceVersion"]
    # What somebody else breaks is mended once, though both run.
    operator.start()
    await refused(scene)
    (entry,) = (await configuration(scene))["webhooks"]
    await scene.admin.merge(CONFIGURATION, {"webhooks": [{**entry, "failurePolicy": "Fail"}]})

    async def mended() -> bool:
        return bool((await configuration(scene))["webhooks"] == [entry])

    await eventually(mended, otherwise=lambda: "it stays broken")
    for mode in ("Warn", "Deny"):
        await until_told(scene, mode)
    found = await configuration(scene)
    assert found["webhooks"] == [entry]
    assert found["metadata"]["generation"] == before["generation"] + 2
    standby.stop()
    await until_leading(operator)
    await until_told(scene, "Warn")
    assert (await configuration(scene))["metadata"]["generation"] == before["generation"] + 2


async def test_no_change_fails_while_operators_die(scene: Scene, operator: Operator) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_CHANGE_KILLS={KILLS}")
    chances = random.Random(seed)
    seen: list[Any] = []

    async def kill() -> None:
        for _ in range(KILLS):
            # It has to write the entry: without it, with it, or with another CA.
            what = chances.choice(("Allow", "Deny", "Warn", CA_SECRET))
            if what == CA_SECRET:
                await scene.admin.delete(f"{SECRETS}/{CA_SECRET}")
            else:
                policy = f"{POLICIES}/{scene.kind.group}"
                await scene.admin.merge(policy, {"spec": {"changes": what}})
            await asyncio.sleep(chances.uniform(0.0, _MOST_SECONDS))
            operator.kill()
            found = (await configuration(scene)).get("webhooks") or []
            seen.append((what, [each["failurePolicy"] for each in found]))
            for each in found:
                assert each["failurePolicy"] == "Ignore", (seed, found)
                assert each["clientConfig"]["caBundle"], (seed, found)
            await restarted(operator)

    assert await scene.change_during(kill(), seed)
    for mode in ("Warn", "Deny"):
        await until_told(scene, mode)
    await refused(scene)
    found = await configuration(scene)
    assert len(found["webhooks"]) == 1, (seed, json.dumps(found), seen)
