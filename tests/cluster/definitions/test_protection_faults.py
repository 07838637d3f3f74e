"""Deletion protection under attack: everything of crdkeeper is killed, or others remove what protects.

CRDKEEPER_PROTECTED_OBJECTS sets how many objects the CRD has.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from crdkeeper.cluster.resources.access import Right
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
    said_of_unready,
    why_unready,
)
from tests.cluster.harness import Admin, CustomKind, Operator, install
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS, POLICIES
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

OBJECTS = int(os.environ.get("CRDKEEPER_PROTECTED_OBJECTS", "30"))
KILLS = int(os.environ.get("CRDKEEPER_KILLS", "2"))
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NAME = "crdkeeper-definition-protection"
PARTS = {
    "ValidatingAdmissionPolicyBinding": f"{REGISTRATION}/validatingadmissionpolicybindings/{NAME}",
    "ValidatingAdmissionPolicy": f"{REGISTRATION}/validatingadmissionpolicies/{NAME}",
}


RULE = {
    "apiGroups": ["apiextensions.k8s.io"],
    "apiVersions": ["*"],
    "resources": ["customresourcedefinitions"],
}
NEVER = {"name": "never", "expression": "false"}
EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "matchConstraints": lambda _: {"resourceRules": [{**RULE, "operations": ["UPDATE"]}]},
    "matchConditions": lambda spec: [*spec["matchConditions"], NEVER],
    "validations": lambda _: [{"expression": "true"}],
}
"""By field of the ValidatingAdmissionPolicy, what somebody makes of it that lets deletions pass."""


@pytest.fixture
async def manifests_again(admin: Admin, installed: Cluster) -> AsyncIterator[Cluster]:
    """Afterwards the policy is that of the manifests again, as others must find what this test changes."""
    yield installed
    await admin.delete(PARTS["ValidatingAdmissionPolicy"])
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


@pytest.mark.timeout(300 + OBJECTS // 20 + 10 * KILLS)
async def test_it_holds_with_all_of_crdkeeper_killed(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
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


async def protected(admin: Admin, group: str) -> CustomKind:
    """A CRD that a policy protects, as the operator says."""
    kind = await apply_labelled(admin, group)
    await protect(admin, group, groups=[group])
    await policy_where(admin, group, lambda status: status.get("protected") == 1)
    return kind


async def look_again(admin: Admin, group: str, note: str) -> None:
    """The operator looks every five minutes, and whenever the policy changes."""
    await admin.merge(f"{POLICIES}/{group}", {"metadata": {"annotations": {"note": note}}})


async def unprotected(admin: Admin, group: str, said: str = "") -> None:
    """Wait until the operator says that nothing is protected, with `said` in the reason for it."""
    await look_again(admin, group, "gone")
    await policy_where(
        admin,
        group,
        lambda status: (
            (why_unready(status), status.get("protected", 0)) == ("NotProtected", 0)
            and said in said_of_unready(status)
        ),
    )


async def protected_again(admin: Admin, group: str) -> None:
    """Wait until the operator says that the CRD is protected."""
    await look_again(admin, group, "back")
    await policy_where(admin, group, lambda status: not why_unready(status) and status.get("protected") == 1)


@pytest.mark.parametrize("part", PARTS)
async def test_what_protects_is_removed_by_another_manager(
    admin: Admin, manifests_again: Cluster, operator: Operator, group: str, part: str
) -> None:
    kind = await protected(admin, group)
    await refused(admin, kind.name)
    await admin.delete(PARTS[part])
    await refused(admin, kind.name, wanted=False)
    await unprotected(admin, group)
    install(manifests_again)
    await refused(admin, kind.name)
    await protected_again(admin, group)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


@pytest.mark.parametrize("field", EDITS)
async def test_what_protects_is_edited_by_another_manager(
    admin: Admin, manifests_again: Cluster, operator: Operator, group: str, field: str
) -> None:
    kind = await protected(admin, group)
    await refused(admin, kind.name)
    path = PARTS["ValidatingAdmissionPolicy"]
    spec = (await admin.get(path))["spec"]
    await admin.merge(path, {"spec": {field: EDITS[field](spec)}})
    await refused(admin, kind.name, wanted=False)
    await unprotected(admin, group, f"is not that of this release: spec.{field}. Apply")
    await admin.delete(path)
    install(manifests_again)
    await refused(admin, kind.name)
    await protected_again(admin, group)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)


async def test_a_missing_right_to_look_is_named(admin: Admin, operator: Operator, group: str) -> None:
    kind = await protected(admin, group)
    resources = "validatingadmissionpolicybindings", "validatingadmissionpolicies"
    rights = [Right("get", "admissionregistration.k8s.io", each, name=NAME) for each in resources]
    path = f"{CLUSTER_ROLES}/crdkeeper-operator"
    rules = (await admin.get(path))["rules"]
    without = [each for each in rules if resources[1] not in each["resources"]]
    assert len(without) == len(rules) - 1
    await admin.merge(path, {"rules": without})
    try:
        await admin.until_permitted(rights, allowed=False)
        await unprotected(admin, group, f"({rights[0]}). Apply the manifests")
        # Only the operator cannot see it.
        assert "protects it" in await refused(admin, kind.name)
    finally:
        await admin.merge(path, {"rules": rules})
    await admin.until_permitted(rights)
    await protected_again(admin, group)
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
    """Each deletion of a CRD waits for the evaluation, and beyond CEL's cost limits it would pass."""
    labels = {f"label-{number}": "v" * 63 for number in range(64)}
    longest = ".".join(("x" * 63, "y" * 63, "z" * (251 - 2 * 64 - len("databases..") - len(group)), group))
    kind = CustomKind(longest, labels=labels)
    await admin.apply_definition(kind)
    # The one that matches comes last, and each before is compared with all of the group.
    globs = [("*?" * 126)[: 250 - number] + "zz" for number in range(63)]
    last = ("*?" * 126)[: 250 - len(group)] + group
    requirement: dict[str, Any] = {
        "key": "label-1",
        "operator": "NotIn",
        "values": [f"{number:063}" for number in range(64)],
    }
    selector = {"matchLabels": labels, "matchExpressions": [requirement] * 64}
    await protect(admin, group, groups=[*globs, last], selector=selector)
    await refused(admin, kind.name)
    for larger in (
        {"groups": [*globs, last, "one.more"]},
        {"groups": ["x" * 254]},
        {"selector": {"matchLabels": {**labels, "more": ""}}},
        {"selector": {"matchExpressions": [requirement] * 65}},
        {"selector": {"matchExpressions": [{**requirement, "values": [*requirement["values"], "more"]}]}},
        {"selector": {"matchExpressions": [{**requirement, "values": ["x" * 64]}]}},
        {"selector": {"matchExpressions": [{**requirement, "key": "x" * 318}]}},
    ):
        with pytest.raises(ApiError, match=r"Too many|Too long|must have at most"):
            await admin.merge(f"{POLICIES}/{group}", {"spec": larger})
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)
