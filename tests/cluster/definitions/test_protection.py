"""DefinitionPolicies that protect CRDs: the API server refuses, with nothing of crdkeeper running."""

from typing import Any

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError
from tests.cluster.definitions.protecting import (
    ALLOW,
    BINDING,
    annotate,
    apply_labelled,
    keeps_its_last_version,
    policy_where,
    protect,
    refusal,
    refused,
    try_selections,
    why_unready,
)
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.admin import CRDS, POLICIES

Json = dict[str, Any]


@pytest.mark.timeout(900)
async def test_it_selects_as_the_operator_does(admin: Admin, group: str) -> None:
    await try_selections(admin, group)


async def test_a_deletion_is_refused_until_it_is_allowed(admin: Admin, group: str) -> None:
    kind = await apply_labelled(admin, group)
    await admin.create_objects(kind, 3)
    await protect(admin, group, groups=[group])
    said = await refused(admin, kind.name)
    assert f"DefinitionPolicy {group} protects it (spec.protection.deletion)" in said
    assert (
        f"all of its objects would be deleted. To allow it: kubectl annotate crd {kind.name} {ALLOW}=" in said
    )
    with pytest.raises(ApiError, match="protects it"):
        await admin.client.request(
            "DELETE", f"{CRDS}?labelSelector=team%3Da&fieldSelector=metadata.name%3D{kind.name}"
        )
    assert admin.stored(kind) == {"v1": 3}
    await annotate(admin, kind, "")
    assert await refusal(admin, kind.name)
    await annotate(admin, kind, "moved to another cluster")
    assert not await refusal(admin, kind.name)
    await admin.delete(f"{CRDS}/{kind.name}")
    await admin.delete(f"{POLICIES}/{group}")


async def test_the_last_served_version_stays_served(admin: Admin, group: str) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group])
    await keeps_its_last_version(admin, kind, group)


async def test_the_status_counts_what_is_protected(admin: Admin, operator: Operator, group: str) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group], selector={"matchLabels": {"team": "a"}})
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    await annotate(admin, kind, "moved to another cluster")
    await policy_where(admin, group, lambda status: status.get("protected") == 0)
    await annotate(admin, kind, "")
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    await admin.apply_definition(CustomKind(group))
    await policy_where(admin, group, lambda status: status.get("protected") == 0)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


async def test_it_is_said_if_the_api_server_does_not_protect(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await apply_labelled(admin, group)

    async def limit(resources: Json | None) -> None:
        body = {"spec": {"matchResources": resources}}
        await admin.client.request("PATCH", BINDING, body, content_type=MERGE_PATCH)

    await limit({"objectSelector": {"matchLabels": {"stage": "production"}}})
    try:
        await protect(admin, group, groups=[group])
        await policy_where(admin, group, lambda status: why_unready(status) == "NotProtected")
    finally:
        await limit(None)
    await protect(admin, group, groups=[group])
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)
