"""DefinitionPolicies that protect some of many CRDs: deletions of several, and what the status counts.

CRDKEEPER_PROTECTED_DEFINITIONS sets how many CRDs there are in the last test, with a policy for each ten.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.definitions.protecting import (
    ALLOW,
    annotate,
    policy_where,
    protect,
    refusal,
    refused,
)
from tests.cluster.harness import Admin, CustomKind, Operator, each_of, eventually
from tests.cluster.harness.admin import CRDS, POLICIES

Json = dict[str, Any]
DEFINITIONS = int(os.environ.get("CRDKEEPER_PROTECTED_DEFINITIONS", "50"))
TEAMS = DEFINITIONS // 10
ASKED = 100
"""How many deletions are tried at most: with hundreds of policies, each takes the API server a second."""
LARGEST: Json = {
    "groups": [("*?" * 126)[: 250 - number] + "zz" for number in range(64)],
    "selector": {"matchLabels": {"no-crd-has-it": ""}},
}
"""Of a policy that selects nothing and has nearly as much to evaluate as there may be."""
NOT_FOR_TESTS: Json = {"matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}]}


def kind_of(group: str, plural: str, **labels: str) -> CustomKind:
    return CustomKind(group, plural=plural, kind=plural.capitalize(), labels=labels)


async def names_in(admin: Admin, group: str) -> set[str]:
    """The plurals of the CRDs of a group that exist."""
    found = (await admin.get(CRDS))["items"]
    return {each["spec"]["names"]["plural"] for each in found if each["spec"]["group"] == group}


async def test_deletions_of_several_spare_what_is_protected(admin: Admin, group: str) -> None:
    label = group.partition(".")[0]
    tiers = {"apples": "tin", "bears": "gold", "cats": "tin", "dogs": "gold"}
    kinds = {plural: kind_of(group, plural, of=label, tier=tier) for plural, tier in tiers.items()}
    for kind in kinds.values():
        await admin.apply_definition(kind)
        await admin.create_objects(kind, 2)
    await protect(admin, group, groups=[group], selector={"matchLabels": {"tier": "gold"}})
    await refused(admin, kinds["bears"].name)

    # By collection, the API server deletes one after the other, by name, and stops at the first refusal.
    for _ in range(3):
        with pytest.raises(ApiError, match=f"protects it .*kubectl annotate crd {kinds['bears'].name} "):
            await admin.client.request("DELETE", f"{CRDS}?labelSelector=of%3D{label}")
        assert await names_in(admin, group) == {"bears", "cats", "dogs"}
    # With such a CRD, unlike with one that is deleted by itself, its objects do not go.
    assert admin.stored(kinds["apples"]) == {"v1": 2}
    for key in [*admin.etcd.keys(kinds["apples"].etcd_key(""))]:
        admin.etcd.delete(key)

    # kubectl deletes each by itself.
    said = admin.cluster.kubectl("delete", "crd", f"--selector=of={label}", check=False)
    assert f'"{kinds["cats"].name}" deleted' in said
    assert said.count("protects it (spec.protection.deletion)") == 2

    async def cats_gone() -> bool:
        return await names_in(admin, group) == {"bears", "dogs"}

    # After an error, kubectl waits for none of them.
    await eventually(cats_gone)
    assert [admin.stored(kinds[each]) for each in ("bears", "cats", "dogs")] == [{"v1": 2}, {}, {"v1": 2}]
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kinds["bears"].name, wanted=False)


async def counts(admin: Admin, name: str, kinds: Iterable[CustomKind], *protected: CustomKind) -> None:
    """Returns when a policy counts these as protected; fails unless the API server refuses just them."""
    await policy_where(admin, name, lambda status: status.get("protected", 0) == len(protected))
    for each in kinds:
        await refused(admin, each.name, wanted=each in protected)


async def test_the_status_follows_a_mixture(admin: Admin, operator: Operator, group: str) -> None:
    plain = kind_of(group, "plain")
    below = kind_of(f"below.{group}", "below", stage="production")
    allowed = kind_of(group, "allowed")
    excluded = kind_of(group, "excluded", stage="test")
    elsewhere = kind_of(f"x{group}", "elsewhere")
    kinds = [plain, below, allowed, excluded, elsewhere]
    for each in kinds:
        await admin.apply_definition(each)
    await annotate(admin, allowed, "moved to another cluster")
    await protect(admin, group, groups=[group, f"*.{group}"], selector=NOT_FOR_TESTS)
    await counts(admin, group, kinds, plain, below)
    await policy_where(admin, group, lambda status: status.get("selected") == 3)

    # CRDs come, change and go.
    new = kind_of(f"new.{group}", "news")
    await admin.apply_definition(new)
    kinds.append(new)
    await counts(admin, group, kinds, plain, below, new)
    await admin.apply_definition(replace(below, labels={"stage": "test"}))
    await counts(admin, group, kinds, plain, new)
    await admin.merge(f"{CRDS}/{allowed.name}", {"metadata": {"annotations": {ALLOW: None}}})
    await counts(admin, group, kinds, plain, new, allowed)
    await annotate(admin, new, "moved to another cluster")
    await admin.delete(f"{CRDS}/{new.name}")
    kinds.remove(new)
    await counts(admin, group, kinds, plain, allowed)

    # The policy changes.
    await admin.merge(f"{POLICIES}/{group}", {"spec": {"selector": {"matchExpressions": []}}})
    await counts(admin, group, kinds, plain, allowed, excluded, below)
    await admin.merge(f"{POLICIES}/{group}", {"spec": {"groups": [f"?{group}", f"below.{group}"]}})
    await counts(admin, group, kinds, below, elsewhere)
    await admin.merge(f"{POLICIES}/{group}", {"spec": {"protection": {"deletion": "Allow"}}})
    await counts(admin, group, kinds)
    await admin.merge(f"{POLICIES}/{group}", {"spec": {"protection": {"deletion": "Deny"}}})
    await counts(admin, group, kinds, below, elsewhere)

    # Each policy counts all that it protects, but as selected only what no older one selects.
    await protect(admin, f"younger-{group}", groups=[f"*{group}"])
    await counts(admin, f"younger-{group}", kinds, *kinds)
    await policy_where(admin, f"younger-{group}", lambda status: status.get("selected") == 3)
    await policy_where(admin, group, lambda status: (status["selected"], status["protected"]) == (2, 2))
    await admin.delete(f"{POLICIES}/{group}")
    await policy_where(admin, f"younger-{group}", lambda status: status.get("selected") == 5)
    await counts(admin, f"younger-{group}", kinds, *kinds)
    await admin.delete(f"{POLICIES}/younger-{group}")
    for each in kinds:
        await refused(admin, each.name, wanted=False)


@pytest.mark.timeout(300 + DEFINITIONS)
async def test_many_definitions_and_policies(admin: Admin, operator: Operator, group: str) -> None:
    """Each team has a policy. Those of others that are as large as they may be are in nobody's way."""
    teams = [f"team-{number}.{group}" for number in range(TEAMS)]
    kinds = [
        kind_of(teams[number % TEAMS], f"things{number}", stage="test" if number // TEAMS == 3 else "live")
        for number in range(DEFINITIONS)
    ]
    allowed = {each.name for number, each in enumerate(kinds) if number // TEAMS == 5}

    async def define(kind: CustomKind) -> None:
        body = kind.to_object()
        if kind.name in allowed:
            body["metadata"]["annotations"] = {ALLOW: "moved to another cluster"}
        await admin.create(CRDS, body)

    await each_of(kinds, define)
    for number in range(2):
        await protect(admin, f"largest-{number}.{group}", **LARGEST)
    others = [f"*.of-{number}.example.org" for number in range(63)]
    denying = {each for number, each in enumerate(teams) if number % 5 != 4}
    for each in teams:
        deletion = "Deny" if each in denying else "Allow"
        await protect(admin, each, deletion=deletion, groups=[*others, each], selector=NOT_FOR_TESTS)
    expected = {
        each.name
        for each in kinds
        if each.group in denying and each.labels["stage"] == "live" and each.name not in allowed
    }
    # The API server hears of the policies in their order.
    last = kinds[:TEAMS][-5:]
    for kind in last:
        await refused(admin, kind.name, wanted=kind.group in denying)

    found, took = set[str](), list[float]()

    async def ask(kind: CustomKind) -> None:
        began = asyncio.get_running_loop().time()
        if await refusal(admin, kind.name):
            found.add(kind.name)
        took.append(asyncio.get_running_loop().time() - began)

    # The step is a prime, so that all sorts of teams and CRDs are among them.
    asked = kinds[:: next(each for each in (1, 7, 17, 37, 97) if ASKED * each >= DEFINITIONS)]
    await each_of(asked, ask)
    assert found == expected & {each.name for each in asked}
    print(f"{TEAMS} policies: {sorted(took)[len(took) // 2] * 1000:.1f} ms to decide on a deletion")

    numbers = {each: sum(name.endswith(f".{each}") for name in expected) for each in teams}
    await follow(admin, numbers)
    new = kind_of(teams[0], "newcomers")
    await admin.create(CRDS, new.to_object())
    await follow(admin, {**numbers, teams[0]: numbers[teams[0]] + 1})
    with pytest.raises(ApiError, match=f"DefinitionPolicy {teams[0]} protects it"):
        await admin.client.request("DELETE", f"{CRDS}/{new.name}")
    await annotate(admin, new, "moved to another cluster")
    await admin.client.request("DELETE", f"{CRDS}/{new.name}")
    await follow(admin, numbers)

    for each in teams:
        await admin.delete(f"{POLICIES}/{each}")
    for kind in last:
        await refused(admin, kind.name, wanted=False)


async def follow(admin: Admin, numbers: dict[str, int]) -> None:
    """Returns when each policy counts so many CRDs as protected."""
    seen: dict[str, int] = {}

    async def look() -> bool:
        for each in (await admin.get(POLICIES))["items"]:
            if each["metadata"]["name"] in numbers:
                seen[each["metadata"]["name"]] = (each.get("status") or {}).get("protected", 0)
        return seen == numbers

    await eventually(
        look,
        seconds=120 + DEFINITIONS / 10,
        every=0.5,
        otherwise=lambda: f"{[(each, seen.get(each), number) for each, number in numbers.items()][:10]}",
    )
