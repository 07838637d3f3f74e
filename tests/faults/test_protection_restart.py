"""Protection from deletion while an API server starts: from when on it knows the policies, it refuses.

What it does not know yet protects nothing, because a policy must not keep a cluster from deleting CRDs. How
long that takes is printed, and is documented. With the webhook, deletions are refused from the first one on.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdkeeper.cluster.transport.client import Unreachable
from tests.cluster.changes.scene import judging
from tests.cluster.definitions.protecting import BINDING, BY_WEBHOOK, LATE_SECONDS, protect, refused
from tests.cluster.harness import Admin, CustomKind, install
from tests.cluster.harness.admin import CRDS, POLICIES
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.plane import ControlPlane

REFUSALS = 100
"""In a row, after which it counts as started."""
SECONDS = 120.0
"""From the first answer on. The API server looks for the kinds of parameters every 30 seconds."""
WEBHOOK_SECONDS = 45.0
"""Longer than the webhook keeps policies that an API server says are gone."""


@pytest.mark.timeout(400)
async def test_it_protects_again_soon_after_a_restart(
    breakable: ControlPlane, breakable_admin: Admin, group: str
) -> None:
    kind = CustomKind(group)
    await breakable_admin.apply_definition(kind)
    await protect(breakable_admin, group, groups=[group])
    await refused(breakable_admin, kind.name)
    (server,) = breakable.api_servers
    loop = asyncio.get_running_loop()
    for _ in range(3):
        server.kill()
        server.start()
        row, passed, first = 0, 0.0, None
        async with Admin(breakable) as admin:
            while row < REFUSALS:
                try:
                    answer = await admin.client.send("DELETE", f"{CRDS}/{kind.name}?dryRun=All")
                except Unreachable:
                    await asyncio.sleep(0.01)
                    continue
                first = loop.time() if first is None else first
                if answer.code < 400:
                    assert row == 0, f"it passes after {row} refusals"
                    passed = loop.time() - first
                    assert passed < SECONDS, "it does not protect again"
                row = row + 1 if "protects it" in answer.json().get("message", "") else 0
        print(f"deletions passed until {passed:.2f} s after the first answer")
    async with Admin(breakable) as admin:
        await admin.delete(f"{POLICIES}/{group}")
        await refused(admin, kind.name, wanted=False)


@pytest.fixture
def pod(breakable: ControlPlane, tmp_path: Path) -> Iterator[WebhookPod]:
    """The webhook, which API servers ask."""
    pod = WebhookPod(breakable, tmp_path, processes=2)
    with judging(breakable, pod):
        yield pod
    pod.close()


@pytest.mark.parametrize("bound", [True, False], ids=["both", "the webhook alone"])
@pytest.mark.timeout(400)
async def test_with_the_webhook_none_passes(
    breakable: ControlPlane, breakable_admin: Admin, pod: WebhookPod, group: str, bound: bool
) -> None:
    kind = CustomKind(group)
    await breakable_admin.apply_definition(kind)
    # Only so is it certain that it is the webhook that refuses.
    await breakable_admin.delete(BINDING)
    await protect(breakable_admin, group, groups=[group])
    await refused(breakable_admin, kind.name, by=BY_WEBHOOK)
    if bound:
        install(breakable)
    (server,) = breakable.api_servers
    loop = asyncio.get_running_loop()
    for _ in range(3 if bound else 1):
        server.kill()
        server.start()
        by_webhook, late, first, row, said = 0, 0, None, 0, ""
        async with Admin(breakable) as admin:
            while row < REFUSALS if bound else (first is None or loop.time() - first < WEBHOOK_SECONDS):
                began = loop.time()
                try:
                    answer = await admin.client.send("DELETE", f"{CRDS}/{kind.name}?dryRun=All")
                except Unreachable:
                    await asyncio.sleep(0.01)
                    continue
                first = loop.time() if first is None else first
                said = answer.json().get("message", "")
                if answer.code < 400:
                    assert loop.time() - began > LATE_SECONDS, f"it passes after {loop.time() - first:.2f} s"
                    late += 1
                by_webhook += said.startswith(BY_WEBHOOK)
                row = row + 1 if "ValidatingAdmissionPolicy" in said else 0
        print(f"{by_webhook} deletions were refused by the webhook, {late} passed as its answer came late")
        assert by_webhook or bound, said
    install(breakable)
    async with Admin(breakable) as admin:
        await admin.delete(f"{POLICIES}/{group}")
        await refused(admin, kind.name, wanted=False)
