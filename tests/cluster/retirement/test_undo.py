"""A retirement that is paused at each of its steps, or undone, up to the removal of the version."""

import json
from typing import Any

import pytest

from crdkeeper.api.versionretirement import DEPRECATED, MIGRATED, NOT_SERVED, REMOVED, STEPS, UNUSED
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.cli.migrations import migrations
from tests.cluster.harness import Admin, Operator, time_passes
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.retirement.scene import (
    CONVERSIONS,
    NEW,
    OLD,
    RETIREMENTS,
    SLOWLY,
    assert_retired,
    change,
    moved,
    permit,
    plan_of_conversion,
    retire,
    retirement,
    standing,
    until,
    until_due,
    until_ready,
    versions,
)


@pytest.mark.parametrize(
    ("step", "reason", "spec"),
    [
        (DEPRECATED, "QuietPeriod", {"quietPeriod": "1h"}),
        (NOT_SERVED, "Migrating", {"quietPeriod": "0s", "migration": SLOWLY}),
        (MIGRATED, "VersionConversion", {"quietPeriod": "0s"}),
    ],
)
async def test_undo_until_the_removal(
    admin: Admin,
    operator: Operator,
    shell: CommandLine,
    group: str,
    step: str,
    reason: str,
    spec: dict[str, Any],
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    if step == MIGRATED:
        await admin.create(CONVERSIONS, plan_of_conversion(kind, OLD))
    name = await retire(admin, kind, mode="Execute", **spec)
    found = await until_ready(admin, name, "False", reason)
    assert [each for each in STEPS if standing(found, each).status == "True"][-1] == step
    assert (await admin.stored_versions_of(kind) == [NEW]) is (step == MIGRATED)

    done = await shell.run("retire", "undo", kind.name, OLD, "--yes")

    assert (done.exit_code, done.stderr) == (0, "")
    said = [
        f"VersionRetirement {name} is suspended.",
        f"{OLD} of {kind.name} is {'' if step == DEPRECATED else 'served again, and '}no longer deprecated.",
    ]
    assert done.stdout.splitlines() == said
    found = await until(admin, name, lambda each: standing(each, DEPRECATED).status == "False", "undone")
    assert standing(found, "Ready").reason == "Suspended"
    assert standing(found, NOT_SERVED).status == "False"
    await time_passes(admin)
    old = (await versions(admin, kind))[OLD]
    assert (old["served"], old.get("deprecated", False)) == (True, False)
    await admin.create_objects(kind, 1, version=OLD, prefix="again", engine="mysql")

    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"suspend": False}})
    await until(admin, name, lambda each: standing(each, DEPRECATED).status == "True", "begun again")


async def test_after_the_removal_nothing_is_undone(
    admin: Admin, operator: Operator, shell: CommandLine, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute")
    await until_ready(admin, name, "True", "Removed")
    crd = await admin.definition(kind)

    for option in ((), ("--yes",)):
        done = await shell.run("retire", "undo", kind.name, OLD, *option)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.splitlines() == [
            f"Error: {kind.name} has no version {OLD}: its versions are {NEW}",
            "If it was removed, only the CRD's manifest can bring it back.",
        ]
    assert not (await retirement(admin, name)).spec.suspend

    # What pauses it before the removal neither takes that back nor hides it.
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"suspend": True}})
    found = await until_ready(admin, name, "True", "Removed")
    assert {standing(found, each).status for each in STEPS} == {"True"}
    await admin.delete(f"{RETIREMENTS}/{name}")
    await time_passes(admin)
    now = await admin.definition(kind)
    assert (now["spec"], now["metadata"]["generation"]) == (crd["spec"], crd["metadata"]["generation"])
    await assert_retired(admin, kind, 3)


async def test_suspended_at_each_step(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute", suspend=True)
    for step in STEPS:
        if step == UNUSED:
            continue  # nobody takes it; that it is seen shows in the next one
        found = await until_due(admin, name, step)
        assert standing(found, "Ready").status == "Unknown"
        assert standing(found, "Ready").reason == "Suspended"
        assert standing(found, step).status == "False"
        before = await admin.definition(kind)
        await time_passes(admin)
        assert (await admin.definition(kind))["metadata"]["generation"] == before["metadata"]["generation"]
        assert [each for each in await migrations(admin, group) if each.metadata.owner_references] == []
        if step == REMOVED:
            break
        # Somebody else takes it, and it is seen.
        due = found.status.due
        assert due is not None
        if step == MIGRATED:
            migration = await admin.create(MIGRATIONS, json.loads(due.manifest))
            await admin.wait_for_condition(migration["metadata"]["name"], "Succeeded", "True")
        else:
            await change(admin, kind, json.loads(due.patch))
    reasons = {reason for _, reason, _ in await admin.events(name, "VersionRetirement")}
    assert {"Deprecated", "Quiet", "NotServed", "Migrated"} <= reasons

    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"suspend": False}})
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)
