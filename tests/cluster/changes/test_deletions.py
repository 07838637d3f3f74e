"""The webhook protects CRDs, too: with the ValidatingAdmissionPolicy gone, the answers are the same."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.changes.scene import CONFIGURATION
from tests.cluster.definitions.protecting import (
    ALLOW,
    BY_WEBHOOK,
    annotate,
    apply_labelled,
    keeps_its_last_version,
    protect,
    refusal,
    refusal_of,
    refused,
    refused_in_time,
    try_selections,
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, install
from tests.cluster.harness.admin import CRDS, POLICIES
from tests.cluster.harness.installation import CRDS as OWN
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster

OBJECTS = 3
OTHERS = 20
"""Deletions at a time."""


@pytest.fixture(scope="module", autouse=True)
def unbound(installed: Cluster, operator: Operator, pod: WebhookPod) -> Iterator[None]:
    """Only the webhook protects, as with an API server that has just started."""
    installed.kubectl("delete", "validatingadmissionpolicybinding", "crdkeeper-definition-protection")
    yield
    install(installed)


async def entries(admin: Admin) -> list[Any]:
    return (await admin.get(CONFIGURATION)).get("webhooks") or []


@pytest.mark.timeout(900)
async def test_it_selects_as_the_api_server_does(admin: Admin, group: str) -> None:
    kind = await try_selections(admin, group, by=BY_WEBHOOK)
    await refused(admin, kind.name, wanted=False)


async def test_a_deletion_is_refused_until_it_is_allowed(admin: Admin, group: str) -> None:
    kind = await apply_labelled(admin, group)
    await admin.create_objects(kind, OBJECTS)

    async def delete(path: str) -> str:
        return await refusal_of(admin.client.request("DELETE", path))

    async def restore() -> None:
        async def gone() -> bool:
            return await admin.find(f"{CRDS}/{kind.name}") is None

        await eventually(gone)
        await apply_labelled(admin, group)
        await admin.create_objects(kind, OBJECTS)

    await protect(admin, group, groups=[group])
    said = await refused(admin, kind.name, by=BY_WEBHOOK)
    assert said == (
        f"{BY_WEBHOOK}DefinitionPolicy {group} protects it (spec.protection.deletion), because all of its "
        f"objects would be deleted. To allow it: kubectl annotate crd {kind.name} {ALLOW}=REASON"
    )
    for path in (
        f"{CRDS}/{kind.name}",
        f"{CRDS}?labelSelector=team%3Da&fieldSelector=metadata.name%3D{kind.name}",
    ):
        assert "protects it" in await refused_in_time(partial(delete, path), restore)
    assert admin.stored(kind) == {"v1": OBJECTS}
    await annotate(admin, kind, "")
    assert await refused_in_time(lambda: refusal(admin, kind.name))
    await annotate(admin, kind, "moved to another cluster")
    assert not await refusal(admin, kind.name)
    await admin.delete(f"{CRDS}/{kind.name}")
    await admin.delete(f"{POLICIES}/{group}")


@pytest.mark.parametrize("changes", ["Allow", "Warn"])
async def test_the_last_served_version_stays_served(admin: Admin, group: str, changes: str) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group], changes=changes)
    await keeps_its_last_version(admin, kind, group, by=BY_WEBHOOK)


async def test_it_is_asked_about_what_policies_want(admin: Admin, group: str) -> None:
    async def asked(*operations: str) -> None:
        found: list[Any] = []

        async def look() -> bool:
            found[:] = [rule["operations"] for each in await entries(admin) for rule in each["rules"]]
            return found == ([list(operations)] if operations else [])

        await eventually(look, otherwise=lambda: str(found))

    await protect(admin, group, groups=[group])
    await asked("UPDATE", "DELETE")
    await protect(admin, f"other-{group}", groups=[group], deletion="Allow", changes="Warn")
    await asked("CREATE", "UPDATE", "DELETE")
    await admin.delete(f"{POLICIES}/{group}")
    await asked("CREATE", "UPDATE")
    await admin.delete(f"{POLICIES}/other-{group}")
    await asked()


async def test_crdkeeper_itself_can_always_be_deleted(admin: Admin, group: str) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group)
    await refused(admin, kind.name, by=BY_WEBHOOK)
    for each in OWN:
        assert not await refusal(admin, each.removeprefix("crd/"))
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


async def test_many_deletions_at_once_are_all_refused(admin: Admin, group: str) -> None:
    kinds = [CustomKind(group, plural=f"things{each}", kind=f"Things{each}") for each in range(OTHERS)]
    for each in kinds:
        await admin.apply_definition(each)
    await protect(admin, group, groups=[group])
    await refused(admin, kinds[0].name, by=BY_WEBHOOK)
    for _ in range(3):
        deletions = [partial(refusal, admin, each.name) for each in kinds]
        said = await asyncio.gather(*map(refused_in_time, deletions))
        assert [each for each in said if not each.startswith(BY_WEBHOOK)] == []
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kinds[0].name, wanted=False)


async def test_a_dead_webhook_holds_up_no_deletion(admin: Admin, group: str, pod: WebhookPod) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group])
    await refused(admin, kind.name, by=BY_WEBHOOK)
    pod.process.kill()
    try:
        assert not await refusal(admin, kind.name)
    finally:
        pod.start()
    await refused(admin, kind.name, by=BY_WEBHOOK)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)
