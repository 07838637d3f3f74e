"""`crdkeeper retire` as users run it: to the removal of a version, with what etcd holds as the judge."""

import json
import os
import random
import re
import signal
from asyncio import sleep
from collections import Counter
from time import monotonic

import pytest

from crdkeeper.api.meta import API_VERSION
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.cli.migrations import drawn, migrations
from tests.cluster.harness import Admin, CustomKind, eventually, outdated
from tests.cluster.harness.admin import CRDS
from tests.cluster.retirement.scene import (
    CONVERSIONS,
    RETIREMENTS,
    plan_of_conversion,
    put_back,
    written_all_the_time,
)
from tests.dice import drawn_seed

OBJECTS = int(os.environ.get("CRDKEEPER_RETIRED_OBJECTS", "200"))
"""Without the variable, as many as show what matters."""
QUICK = ("--quiet-period=1s", "--settle-seconds=0", "--ignore-api-server-leases")
_KILLS = int(os.environ.get("CRDKEEPER_KILLS", "4"))


async def versions(admin: Admin, kind: CustomKind) -> list[tuple[str, bool, bool]]:
    """Name, served and deprecated of each version."""
    found = (await admin.definition(kind))["spec"]["versions"]
    return [(each["name"], each["served"], each.get("deprecated", False)) for each in found]


async def test_a_plan_names_the_writers_and_changes_nothing(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await outdated(admin, kind, 3)
    before = await admin.definition(kind)

    done = await shell.run("retire", kind.name, "v1")

    assert (done.exit_code, done.stderr) == (0, "")
    lines = [" ".join(each.split()) for each in done.stdout.splitlines()]
    assert f"Deprecated False NotDeprecated v1 of {kind.name} is not deprecated." in lines
    assert any(each.startswith("Named by managedFields of 3 of 3 objects") for each in lines)
    assert any(each.startswith("admin Apply default 3 ") for each in lines)
    assert f"Due: Set deprecated: true for v1 in spec.versions of {kind.name}." in lines
    assert await admin.definition(kind) == before

    document = json.loads((await shell.run("retire", kind.name, "v1", "-o", "json")).stdout)
    assert document["status"]["due"]["step"] == "Deprecated"
    assert document["status"]["evidence"]["objects"] == 3


@pytest.mark.timeout(300 + 30 * _KILLS + OBJECTS / 10)
async def test_a_version_is_retired_step_by_step_however_often_the_command_is_killed(
    admin: Admin, group: str, shell: CommandLine
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={_KILLS}")
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    retired = 0
    while killed.total() < _KILLS:
        # One retirement is over before many kills: the others would hit a command that has nothing to do.
        kind = await outdated(admin, CustomKind(f"r{retired}.{group}"), OBJECTS)
        command = ("retire", kind.name, "v1", "--yes", "--wait", *QUICK)
        # On a busy machine, a command that lives for some seconds has only started.
        began = monotonic()
        await shell.run("retire", kind.name, "v1")
        look, state = monotonic() - began, "-"
        while killed.total() < _KILLS and state != "Removed":
            running = shell.start(*command)
            await sleep(chance.uniform(look / 2, look + 4.0))
            running.kill()
            state = await assert_sound(admin, kind)
            killed[state] += 1

        done = await shell.start(*command).done(seconds=120.0 + OBJECTS / 50)

        # Whether v1 was removed by an earlier call, or there never was one, the CRD does not tell.
        gone = f"Error: {kind.name} has no version v1: its versions are v2\n"
        assert done.exit_code == 0 or (done.exit_code, done.stderr) == (1, gone), done.stderr
        done = await shell.run(*command)
        assert (done.exit_code, done.stderr) == (1, gone)
        assert await versions(admin, kind) == [("v2", True, False)]
        assert await admin.stored_versions_of(kind) == ["v2"]
        assert admin.stored(kind) == {"v2": OBJECTS}
        # Without this proof, every apply would fail: managedFields would name a version that is gone.
        await admin.create_instances(kind, [kind.instance("db-00000", version="v2", replicas=2)])
        for each in await migrations(admin, kind.group):
            await admin.delete_migration(each.metadata.name)
        retired += 1
    print(f"{retired} retirements, {killed.total()} kills, by state of the CRD: {dict(killed)}")


async def assert_sound(admin: Admin, kind: CustomKind) -> str:
    """Nobody has to do without a version that is not moved away from. Returns the last step in the CRD."""
    found = {name: (served, deprecated) for name, served, deprecated in await versions(admin, kind)}
    assert found["v2"][0]
    if "v1" not in found:
        assert admin.stored(kind) == {"v2": OBJECTS}
        return "Removed"
    served, deprecated = found["v1"]
    if not served:
        return "NotServed" if "v1" in await admin.stored_versions_of(kind) else "Migrated"
    return "Deprecated" if deprecated else "-"


async def test_the_quiet_period_ends_the_command_and_undo_takes_all_back(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await outdated(admin, kind, 2)

    waits = await shell.run("retire", kind.name, "v1", "--yes", "--quiet-period=1h")

    assert waits.exit_code == 3
    last = waits.stderr.splitlines()[-1]
    assert last == "Waiting (QuietPeriod). To go on, run the same command again later, or now with --wait."
    assert "QuietPeriod: The quiet period of 1h ends at " in waits.stdout.splitlines()[-1]
    assert await versions(admin, kind) == [("v1", True, True), ("v2", True, False)]

    shown = await shell.run("retire", "undo", kind.name, "v1")
    told, command = shown.stdout.splitlines()
    assert told.startswith("Nothing was changed. ") and "--yes" in told
    assert command.startswith(f"  kubectl patch crd {kind.name} ")
    assert await versions(admin, kind) == [("v1", True, True), ("v2", True, False)]

    undone = await shell.run("retire", "undo", kind.name, "v1", "--yes")
    said = f"v1 of {kind.name} is no longer deprecated.\n"
    assert (undone.exit_code, undone.stdout, undone.stderr) == (0, said, "")
    assert await versions(admin, kind) == [("v1", True, False), ("v2", True, False)]
    again = await shell.run("retire", "undo", kind.name, "v1", "--yes")
    assert again.stdout == f"v1 of {kind.name} is served and not deprecated: nothing to do.\n"


async def test_undo_takes_each_step_back_until_the_removal(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    kind = await outdated(admin, kind, 2)
    retire = ("retire", kind.name, "v1", "--yes", "--wait", "--quiet-period=1s", "--ignore-api-server-leases")
    undo = ("retire", "undo", kind.name, "v1", "--yes")

    async def undone(prefix: str, what: str = "served again, and no longer deprecated") -> None:
        done = await shell.run(*undo)
        said = f"v1 of {kind.name} is {what}.\n"
        assert (done.exit_code, done.stdout, done.stderr) == (0, said, "")
        assert await versions(admin, kind) == [("v1", True, False), ("v2", True, False)]
        await admin.create_objects(kind, 1, version="v1", prefix=prefix)

    # A migration that settles for an hour keeps it there.
    killed = shell.start(*retire, "--settle-seconds=3600")

    async def migrating() -> bool:
        return bool(await migrations(admin, kind.group))

    await eventually(migrating, otherwise=lambda: killed.stderr)
    killed.kill()
    assert await versions(admin, kind) == [("v1", False, True), ("v2", True, False)]
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
    await undone("not-served")

    await admin.create(CONVERSIONS, plan_of_conversion(kind, "v1"))
    held = await shell.run(*retire, "--settle-seconds=0")
    assert held.exit_code == 1
    assert "Error: VersionConversion: Removed is held: " in held.stderr
    assert await versions(admin, kind) == [("v1", False, True), ("v2", True, False)]
    assert await admin.stored_versions_of(kind) == ["v2"]
    await undone("migrated")

    crd = await admin.definition(kind)
    withdrawn = [each | {"served": each["name"] != "v1"} for each in crd["spec"]["versions"]]
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": withdrawn}})
    await undone("withdrawn", "served again")

    await admin.delete(f"{CONVERSIONS}/{kind.name}")
    assert (await shell.run(*retire, "--settle-seconds=0")).exit_code == 0
    assert admin.stored(kind) == {"v2": 5}
    before = await admin.definition(kind)
    for command in (undo[:-1], undo):
        refused = await shell.run(*command)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.splitlines() == [
            f"Error: {kind.name} has no version v1: its versions are v2",
            "If it was removed, only the CRD's manifest can bring it back.",
        ]
    assert await admin.definition(kind) == before


async def test_undo_suspends_the_operators_retirement_which_status_shows(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await outdated(admin, kind, 1)
    await admin.create(
        RETIREMENTS,
        {
            "apiVersion": API_VERSION,
            "kind": "VersionRetirement",
            "metadata": {"name": kind.group},
            "spec": {
                "resource": {"group": kind.group, "resource": kind.plural},
                "version": "v1",
                "mode": "Execute",
            },
        },
    )
    await shell.run("retire", kind.name, "v1", "--yes")

    undone = await shell.run("retire", "undo", kind.name, "v1", "--yes")

    assert undone.stdout.splitlines()[0] == f"VersionRetirement {kind.group} is suspended."
    assert undone.stderr.startswith("No operator has taken note of the suspension within 10 seconds.")
    assert (await admin.get(f"{RETIREMENTS}/{kind.group}"))["spec"]["suspend"] is True
    assert await versions(admin, kind) == [("v1", True, False), ("v2", True, False)]
    # Also where its first step is yet to come; and what no step has set stays.
    await admin.merge(f"{RETIREMENTS}/{kind.group}", {"spec": {"suspend": False}})
    crd = await admin.definition(kind)
    warned = {"deprecated": True, "deprecationWarning": "Use v2."}
    own = [each | (warned if each["name"] == "v1" else {}) for each in crd["spec"]["versions"]]
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": own}})
    nothing = await shell.run("retire", "undo", kind.name, "v1", "--yes")
    assert nothing.stdout.splitlines() == [
        f"VersionRetirement {kind.group} is suspended.",
        f"v1 of {kind.name} is served: nothing to do.",
        "It stays deprecated, because no retirement has set its deprecationWarning: Use v2.",
    ]
    assert (await admin.get(f"{RETIREMENTS}/{kind.group}"))["spec"]["suspend"] is True
    assert (await admin.definition(kind))["spec"]["versions"] == own
    listed = [each.split() for each in (await shell.run("retire", "status")).stdout.splitlines()]
    assert [kind.group, kind.name, "v1", "Execute"] in [each[:4] for each in listed]
    named = await shell.run("retire", "status", kind.name, "-o", "json")
    assert [each["metadata"]["name"] for each in json.loads(named.stdout)["items"]] == [kind.group]
    missing = await shell.run("retire", "status", "nothing")
    assert (missing.exit_code, missing.stderr) == (1, "Error: no VersionRetirement nothing\n")


async def test_the_storage_version_is_never_taken_out_of_service(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await admin.apply_definition(kind)

    done = await shell.run("retire", kind.name, "v1", "--yes", "--wait", *QUICK)

    assert done.exit_code == 1
    assert "v1 is the storage version" in done.stderr
    # Clients may go to v2 before objects are stored at it.
    assert await versions(admin, kind) == [("v1", True, True), ("v2", True, False)]


async def test_the_only_served_version_is_not_even_deprecated(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await outdated(admin, kind, 1)
    crd = await admin.definition(kind)
    alone = [each | {"served": each["name"] == "v1"} for each in crd["spec"]["versions"]]
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": alone}})

    done = await shell.run("retire", kind.name, "v1", "--yes", "--wait", *QUICK)

    assert done.exit_code == 1
    held = f"Error: LastServedVersion: Deprecated is held: v1 is the only served version of {kind.name}."
    assert held in done.stderr
    assert await versions(admin, kind) == [("v1", True, False), ("v2", False, False)]


async def test_another_client_that_writes_the_crd_all_the_time(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    kind = await outdated(admin, kind, 3)
    # Also between each look and the change that follows: a change that fails is said and tried again.
    async with written_all_the_time(admin, kind, 0.02):
        done = await shell.run("retire", kind.name, "v1", "--yes", "--wait", *QUICK)
    assert done.exit_code == 0, done.stderr
    said = [each for each in done.stderr.splitlines() if each.startswith(("Set ", "Remove "))]
    assert said == [
        f"Set deprecated: true for v1 in spec.versions of {kind.name}.",
        f"Set served: false for v1 in spec.versions of {kind.name}.",
        f"Remove v1 from spec.versions of {kind.name}.",
    ]
    assert await versions(admin, kind) == [("v2", True, False)]
    assert admin.stored(kind) == {"v2": 3}


async def test_a_step_that_a_tool_takes_back_ends_the_command(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    kind = await outdated(admin, kind, 1)
    # In a quiet period that lasts, it looks again after a minute, and again: no next step comes in between.
    running = shell.start("retire", kind.name, "v1", "--yes", "--wait", "--quiet-period=1h", *QUICK[1:])

    async def deprecated() -> bool:
        return (await versions(admin, kind))[0] == ("v1", True, True)

    await eventually(deprecated, otherwise=lambda: running.stderr)
    restored = await put_back(admin, kind, "argocd-controller")
    done = await running.done()
    assert done.exit_code == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("Error: Reverted: Somebody has taken back Deprecated. ")
    assert "the latest first: argocd-controller" in said
    assert said.endswith("Change the CRD where it comes from, then run `crdkeeper retire` again.")
    assert (await admin.definition(kind))["metadata"]["generation"] == restored["metadata"]["generation"]


async def test_what_somebody_else_refuses_is_told(admin: Admin, kind: CustomKind, shell: CommandLine) -> None:
    await outdated(admin, kind, 1)
    name = f"refuse.{kind.group}"
    policies = "/apis/admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": [kind.name],
    }
    await admin.create(
        f"{policies}/validatingadmissionpolicies",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [
                    {
                        "expression": "!object.spec.versions.exists(each, has(each.deprecated))",
                        "message": "\x1b[2Jno",
                    }
                ],
            },
        },
    )
    await admin.create(
        f"{policies}/validatingadmissionpolicybindings",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    )
    await _until_refused(admin, kind)

    done = await shell.run("retire", kind.name, "v1", "--yes", *QUICK)

    assert done.exit_code == 1
    assert "Error: Refused: " in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert await versions(admin, kind) == [("v1", True, False), ("v2", True, False)]


async def _until_refused(admin: Admin, kind: CustomKind) -> None:
    """Returns when the API server enforces the policy, which it does after some moments."""
    patch = [{"op": "add", "path": "/spec/versions/0/deprecated", "value": True}]
    for _ in range(600):
        answer = await admin.client.send(
            "PATCH",
            f"{CRDS}/{kind.name}?dryRun=All",
            content=json.dumps(patch).encode(),
            content_type="application/json-patch+json",
        )
        if answer.code == 422:
            return
        await sleep(0.1)
    pytest.fail("the policy is not enforced")


async def test_a_terminal_shows_until_when_it_waits_and_two_signals_end_it(
    admin: Admin, kind: CustomKind, shell: CommandLine
) -> None:
    await outdated(admin, kind, 2)
    waits = shell.start_on_terminal("retire", kind.name, "v1", "--yes", "--wait", "--quiet-period=1h")
    bar = re.compile(r"Retiring [━╸╺]+ *The quiet period of 1h ends at \d{4}-")
    await waits.until(lambda: bar.search(drawn(waits)) is not None)

    # As `timeout -s INT` does: it signals its process group, of which the command is one, too.
    waits.signal(signal.SIGINT)
    waits.signal(signal.SIGINT)
    done = await waits.done()

    assert done.exit_code == 130
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    last = "Interrupted. What is done shows in the CRD; to go on, run the same command again."
    assert drawn(waits).splitlines()[-1] == last
