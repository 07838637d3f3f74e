"""Deletion protection under attack: everything of crdkeeper is killed, or others remove what protects.

CRDKEEPER_PROTECTED_OBJECTS sets how many objects the CRD has.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.definitions.protecting import (
    ALLOW,
    LABELS,
    annotate,
    apply_labelled,
    policy_where,
    protect,
    refusal,
    refused,
    why_unready,
)
from tests.cluster.harness import Admin, CustomKind, Operator, install
from tests.cluster.harness.admin import CRDS, POLICIES
from tests.controlplane.cluster import Cluster

OBJECTS = int(os.environ.get("CRDKEEPER_PROTECTED_OBJECTS", "30"))
KILLS = int(os.environ.get("CRDKEEPER_KILLS", "2"))
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NAME = "crdkeeper-definition-protection"
PARTS = {
    "ValidatingAdmissionPolicyBinding": f"{REGISTRATION}/validatingadmissionpolicybindings/{NAME}",
    "ValidatingAdmissionPolicy": f"{REGISTRATION}/validatingadmissionpolicies/{NAME}",
}


@pytest.fixture
def manifests_again(installed: Cluster) -> Iterator[Cluster]:
    """Afterwards the manifests are applied again, as others must find what this test removes."""
    yield installed
    install(installed)


async def delete_each_way(admin: Admin, kind: CustomKind) -> None:
    """Tries what deletes a CRD. Fails unless the API server refuses each."""
    one = f"{CRDS}/{kind.name}"
    field = f"fieldSelector=metadata.name%3D{kind.name}"
    attempts: list[tuple[str, Any]] = [
        (one, None),
        (one, {"propagationPolicy": "Orphan"}),
        (one, {"propagationPolicy": "Foreground", "gracePeriodSeconds": 0}),
        (f"{CRDS}?{field}", None),
        (f"{CRDS}?labelSelector=team%3Da&{field}", {"propagationPolicy": "Background"}),
    ]
    for path, options in attempts:
        with pytest.raises(ApiError, match="protects it"):
            await admin.client.request("DELETE", path, options)


@pytest.mark.timeout(180 + OBJECTS // 20 + 10 * KILLS)
async def test_it_holds_with_all_of_crdkeeper_killed(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = int(os.environ.get("CRDKEEPER_SEED") or random.SystemRandom().randrange(2**32))
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    kind = await apply_labelled(admin, group)
    await admin.create_objects(kind, OBJECTS)
    operator = start_operator(installed)
    await protect(admin, group, groups=[group])
    await refused(admin, kind.name)
    for _ in range(KILLS):
        if not operator.running:
            operator.start(wait=False)
        trying = asyncio.create_task(delete_each_way(admin, kind))
        await asyncio.sleep(dice.uniform(0.0, 1.0))
        operator.kill()
        await trying
        # Now nothing of crdkeeper runs at all.
        await delete_each_way(admin, kind)
    assert admin.stored(kind) == {"v1": OBJECTS}
    operator.start()
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


@pytest.mark.parametrize("part", PARTS)
async def test_what_protects_is_removed_by_another_manager(
    admin: Admin, manifests_again: Cluster, operator: Operator, group: str, part: str
) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group])
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    await refused(admin, kind.name)
    await admin.delete(PARTS[part])
    await refused(admin, kind.name, wanted=False)
    # The operator looks every five minutes, and whenever the policy changes.
    await admin.merge(f"{POLICIES}/{group}", {"metadata": {"annotations": {"note": "removed"}}})
    await policy_where(
        admin,
        group,
        lambda status: (why_unready(status), status.get("protected", 0)) == ("NotProtected", 0),
    )
    install(manifests_again)
    await refused(admin, kind.name)
    await admin.merge(f"{POLICIES}/{group}", {"metadata": {"annotations": {"note": "back"}}})
    await policy_where(admin, group, lambda status: not why_unready(status) and status.get("protected") == 1)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


async def test_policy_and_annotation_are_removed_by_another_manager(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group])
    await protect(admin, f"other-{group}", groups=[f"*{group[1:]}"], selector={"matchLabels": LABELS})
    await annotate(admin, kind, "moved")
    await refused(admin, kind.name, wanted=False)
    await policy_where(admin, group, lambda status: status.get("protected", 0) == 0)
    # Whoever takes the annotation off protects the CRD again.
    await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {ALLOW: None}}})
    await refused(admin, kind.name)
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    # Of several policies, each is enough.
    await admin.delete(f"{POLICIES}/{group}")
    assert await refusal(admin, kind.name)
    await admin.delete(f"{POLICIES}/other-{group}")
    await refused(admin, kind.name, wanted=False)


async def test_the_largest_policy_still_protects_and_a_larger_one_is_refused(
    admin: Admin, group: str
) -> None:
    """Each deletion of a CRD waits for the evaluation, and beyond CEL's cost budget it would pass."""
    labels = {f"label-{number}": "v" * 63 for number in range(64)}
    kind = CustomKind(group, labels=labels)
    await admin.apply_definition(kind)
    globs = [("*?" * 126)[: 250 - number] + "zz" for number in range(63)]
    requirement = {
        "key": "label-1",
        "operator": "NotIn",
        "values": [f"{number:063}" for number in range(200)],
    }
    selector = {"matchLabels": labels, "matchExpressions": [requirement] * 64}
    await protect(admin, group, groups=[*globs, group], selector=selector)
    await refused(admin, kind.name)
    for larger in (
        {"groups": [*globs, group, "one.more"]},
        {"groups": ["x" * 254]},
        {"selector": {"matchLabels": {**labels, "more": ""}}},
        {"selector": {"matchExpressions": [requirement] * 65}},
    ):
        with pytest.raises(ApiError, match=r"Too many|Too long|must have at most"):
            await admin.merge(f"{POLICIES}/{group}", {"spec": larger})
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)
