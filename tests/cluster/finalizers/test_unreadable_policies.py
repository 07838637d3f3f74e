"""A policy that this release cannot read, as after a downgrade: it holds its own CRDs, and no others."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import Condition, find_condition
from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    condition_of,
    create_held,
    finalizers_of,
    held_objects,
    let_release,
    policy,
    policy_with,
    release_notes,
    rule,
    until_finalizers,
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS, POLICIES

CRD = f"{CRDS}/definitionpolicies.crdkeeper.dev"
LATER = rule(OTHER, mode="Later")


@pytest.fixture
async def later(admin: Admin, group: str) -> AsyncIterator[None]:
    """The CRD of policies accepts a mode of a later release."""
    versions: list[dict[str, Any]] = (await admin.get(CRD))["spec"]["versions"]
    loosened = copy.deepcopy(versions)
    for each in loosened:
        spec = each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec["finalizers"]["items"]["properties"]["mode"]["enum"].append("Later")
    await admin.merge(CRD, {"spec": {"versions": loosened}})
    try:
        yield
    finally:
        await admin.delete(f"{POLICIES}/{group}")
        await admin.merge(CRD, {"spec": {"versions": versions}})


async def accepted(admin: Admin, name: str, *rules: dict[str, Any]) -> None:
    """Creates the policy as soon as the API server has read its new CRD."""

    async def attempt() -> bool:
        try:
            await policy(admin, name, *rules)
        except ApiError as error:
            if "Unsupported value" not in error.message:
                raise
            return False
        return True

    await eventually(attempt)


async def readiness(admin: Admin, name: str, reason: str) -> Condition:
    """The condition Ready of a policy, as soon as it has this reason."""
    seen: list[Any] = []

    async def look() -> Condition | None:
        body = await admin.get(f"{POLICIES}/{name}")
        seen[:] = [body.get("status")]
        status = {key: value for key, value in body["status"].items() if key == "conditions"}
        found = DefinitionPolicy.model_validate({**body, "spec": {}, "status": status})
        ready = find_condition(found.status.conditions, "Ready")
        current = ready is not None and ready.observed_generation == found.metadata.generation
        return ready if current and ready is not None and ready.reason == reason else None

    return await eventually(look, otherwise=lambda: f"{name} stands at {seen}")


async def test_it_holds_only_its_own_crds(
    admin: Admin, operator: Operator, group: str, later: None, shell: CommandLine
) -> None:
    kind, other = CustomKind(group), CustomKind(f"b.{group}")
    async with held_objects(admin, kind), held_objects(admin, other):
        await let_release(admin, group)
        await let_release(admin, other.group)
        await create_held(admin, kind, ["one"], [NAMED, OTHER])
        await accepted(admin, group, rule(), LATER)
        ready = await readiness(admin, group, "Unreadable")
        assert ready.status == "False"
        assert "spec.finalizers.1.mode: Input should be 'Plan' or 'Automatic'" in ready.message

        # Neither the policy itself nor a younger one releases anything there, and elsewhere all goes on.
        younger = {"groups": [group], "storageMigration": {"mode": "Disabled"}, "finalizers": [rule()]}
        body = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "DefinitionPolicy", "spec": younger}
        await admin.apply(f"{POLICIES}/zz-{group}", {**body, "metadata": {"name": f"zz-{group}"}})
        admin.cleans_up(f"{POLICIES}/zz-{group}")
        for after in ("1s", "2s"):  # any change of the policy leads to a look
            await create_held(admin, other, ["one"])
            await policy(admin, other.group, rule(after=after))
            await until_finalizers(admin, other, {})
        await policy_with(admin, other.group, "NothingHeld")
        nothing = await policy_with(admin, f"zz-{group}", "NothingHeld")
        assert nothing.status.selected == 0
        assert condition_of(nothing).message.startswith("The policy governs no CRD")
        current = await readiness(admin, f"zz-{group}", "Current")
        assert current.message.endswith(f"older policy count instead: {kind.name} ({group}).")
        assert await finalizers_of(admin, kind) == {"one": [NAMED, OTHER]}
        told = f"DefinitionPolicy {group}"
        shown = await shell.run("finalizers", kind.name)
        assert f"{told}: it cannot be read, and releases nothing: spec.finalizers.1.mode: " in shown.stderr
        shown = await shell.run("status", kind.name)
        assert f"{told} cannot be read, and does nothing: spec.finalizers.1.mode: " in shown.stderr

        await policy(admin, group, rule())
        await until_finalizers(admin, kind, {"one": [OTHER]})
        (note,) = (await release_notes(admin, kind, "one"))["one"]
        assert f"on behalf of DefinitionPolicy {group}:" in note


async def test_a_rule_that_cannot_be_followed_holds_up_no_other(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["one"], [NAMED, OTHER])
        await policy(admin, group, rule(OTHER, when="object.spec."), rule())
        await until_finalizers(admin, kind, {"one": [OTHER]})
        invalid = await policy_with(admin, group, "InvalidFinalizers")
        assert f"Not released: {OTHER}: when: " in condition_of(invalid).message
        assert await finalizers_of(admin, kind) == {"one": [OTHER]}
