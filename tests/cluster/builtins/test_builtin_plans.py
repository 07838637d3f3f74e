"""Mode Plan of a BuiltinPolicy: it says what is due and writes nothing, also if it is chosen in mid-run."""

from collections.abc import Callable
from pathlib import Path

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from tests.cluster.builtins.encrypting import (
    POLICIES,
    STORED,
    TEMPLATE,
    changed_after,
    encrypt_with,
    govern_secrets,
    is_ready,
    keys_in_use,
    migrations_of,
    policy,
    resource,
    restart,
    until,
)
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, Operator, eventually
from tests.controlplane.etcd import Etcd
from tests.controlplane.plane import ControlPlane

COUNT = 20
MANY = 60
SLOWLY = {**TEMPLATE, "limits": {"maxObjectsPerSecond": 1}}
"""A minute for a pass, so that the change of the mode falls into it however busy the machine is."""


def planned(found: BuiltinPolicy) -> bool:
    """Whether a dry run of each resource has ended, and nothing was refused."""
    return is_ready("Planned")(found) and {each.reason for each in found.status.resources} == {"PlanClean"}


def stored(etcd: Etcd) -> dict[str, bytes | None]:
    """The Secrets' bytes in etcd."""
    return {key: etcd.raw(key) for key in etcd.keys(STORED)}


async def test_a_plan_says_what_is_due_and_writes_nothing(
    encrypting: Admin,
    encrypting_plane: ControlPlane,
    builtins_operator: Operator,
    configuration: Path,
    shells: Callable[[Path], CommandLine],
) -> None:
    old, first = await govern_secrets(encrypting, "planned", COUNT, planned, mode="Plan")
    before, as_before = resource(first, "secrets"), stored(encrypting.etcd)

    encrypt_with(configuration, "planned", old)
    restart(encrypting_plane, operator=builtins_operator)
    async with Admin(encrypting_plane) as admin:
        second = await until(
            admin, "planned", changed_after(before, planned), "planned after the new key", seconds=180
        )
        now = resource(second, "secrets")
        assert (second.status.selected, second.status.due, now.migrated) == (1, 1, False)
        ready = next(each for each in second.status.conditions if each.type == "Ready")
        assert ready.message == "1 resource due, which mode Plan does not migrate."
        assert now.message.endswith("objects would be accepted, none refused. Nothing was written.")
        assert (await admin.migration(now.migration)).spec.mode == "Plan"
        done = await shells(encrypting_plane.kubeconfig).run(
            "status", "--builtins", "secrets", "--no-headers"
        )
        assert done.stdout.split()[4:] == ["yes", "PlanClean", "planned"]
        assert stored(admin.etcd) == as_before
        assert keys_in_use(admin.etcd) == {old: COUNT}

        written = admin.etcd.write_counts(STORED)
        await admin.merge(f"{POLICIES}/planned", {"spec": {"mode": "Automatic"}})
        third = await until(admin, "planned", is_ready("Current"), "current")
        assert keys_in_use(admin.etcd) == {"planned": COUNT}
        assert admin.etcd.write_counts(STORED) == {key: each + 1 for key, each in written.items()}
        assert resource(third, "secrets").migrated


async def test_a_policy_that_becomes_a_plan_in_mid_run_stops_writing(
    encrypting: Admin, encrypting_plane: ControlPlane, builtins_operator: Operator, configuration: Path
) -> None:
    old, first = await govern_secrets(encrypting, "halted", MANY, is_ready("Current"))
    before = resource(first, "secrets")
    await encrypting.merge(f"{POLICIES}/halted", {"spec": {"template": SLOWLY}})
    written = encrypting.etcd.write_counts(STORED)

    encrypt_with(configuration, "halted", old)
    restart(encrypting_plane, operator=builtins_operator)
    async with Admin(encrypting_plane) as admin:

        async def begun() -> bool:
            return keys_in_use(admin.etcd)["halted"] > 0

        await eventually(begun, seconds=180)
        await admin.merge(f"{POLICIES}/halted", {"spec": {"mode": "Plan", "template": {"limits": None}}})

        async def only_a_plan() -> bool:
            found = await migrations_of(admin, await policy(admin, "halted"))
            unfinished = {each.spec.mode for each in found if each.status.completion_time is None}
            return unfinished <= {"Plan"} and "Plan" in {each.spec.mode for each in found}

        await eventually(only_a_plan, otherwise=lambda: "what writes has not been replaced by a plan")
        halted = stored(admin.etcd)
        some = keys_in_use(admin.etcd)["halted"]
        assert 0 < some < MANY
        last = await until(admin, "halted", planned, "planned")
        assert last.status.due == 1
        assert stored(admin.etcd) == halted

        await admin.merge(f"{POLICIES}/halted", {"spec": {"mode": "Automatic"}})
        last = await until(admin, "halted", is_ready("Current"), "current")
        assert resource(last, "secrets").changed_time > before.changed_time
        assert keys_in_use(admin.etcd) == {"halted": MANY}
        # What was written before the plan is not written again.
        assert admin.etcd.write_counts(STORED) == {key: each + 1 for key, each in written.items()}
