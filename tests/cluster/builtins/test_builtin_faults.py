"""API servers that differ, operators that are killed, and others who interfere: etcd shows the truth."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.meta import find_condition
from crdkeeper.cluster.probes.apiservers import ask_all
from crdkeeper.cluster.resources.apiservers import list_leases
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.builtins.view import FORBIDDEN
from crdkeeper.core.migration.observation import ApiServerLease
from tests.cluster.builtins.balancing import balanced
from tests.cluster.builtins.conftest import StartEncrypting
from tests.cluster.builtins.encrypting import (
    MUTATIONS,
    POLICIES,
    STORED,
    TEMPLATE,
    changed_after,
    create_mutations,
    create_policy,
    create_secrets,
    encrypt_with,
    is_ready,
    keys_in_use,
    migrations_of,
    policy,
    resource,
    restart,
    see_metrics,
    until,
    until_later,
    versions_in_use,
)
from tests.cluster.harness import Admin, Operator, eventually, install
from tests.cluster.harness.admin import MIGRATIONS
from tests.controlplane.plane import ControlPlane
from tests.dice import drawn_seed

COUNT = int(os.environ.get("CRDKEEPER_SECRETS", "20"))
KILLS = int(os.environ.get("CRDKEEPER_KILLS", "4"))
LONG = 180 + COUNT / 20
"""Seconds for a migration of them on a busy machine."""
MANY = 100
SLOWLY = {"limits": {"maxObjectsPerSecond": 10}}


@pytest.mark.timeout(300 + 2 * LONG)
async def test_nothing_is_migrated_until_all_api_servers_agree(
    start_encrypting: StartEncrypting, tmp_path: Path
) -> None:
    """They are upgraded from 1.36, and get a new key, one after the other."""
    plane, configuration = start_encrypting(api_servers=2, emulated_version="1.36")
    install(plane)
    with balanced(plane, tmp_path) as kubeconfig:
        async with Admin(plane) as admin:
            await create_secrets(admin, COUNT)
            await create_mutations(admin, 5)
            await admin.opt_in("", "secrets")
            await admin.opt_in("admissionregistration.k8s.io", "mutatingadmissionpolicies")
            await assert_told_apart(kubeconfig)
            await see_metrics(admin, servers=2)
            operator = Operator(plane, flags={"kubeconfig": str(kubeconfig)})
            try:
                operator.start()
                await create_policy(admin, "two", "secrets", MUTATIONS)
                first = await until(admin, "two", is_ready("Current"), "current", seconds=LONG)
                before = resource(first, "secrets")
                assert resource(first, MUTATIONS).storage_version == ""  # v1beta1 is not served
                assert versions_in_use(admin.etcd) == {"v1beta1": 5}

                encrypt_with(configuration, "key2", "key1")
                plane.api_servers[1].upgrade()
                restart(plane, 1)
                held = await until(
                    admin, "two", changed_after(before, is_ready("ServersDisagree", "Unknown")), "held up"
                )
                seen = find_condition(held.status.conditions, "EncryptionObserved")
                assert seen is not None and seen.reason == "ServersDisagree"
                assert [each.migration for each in held.status.resources] == ["", ""]
                mutations = resource(held, MUTATIONS)
                assert (mutations.reason, mutations.storage_version) == ("ServersDisagree", "")
                assert len(mutations.storage_version_hash.split(",")) == 2
                mixed = (resource(held, "secrets").encryption_configuration or "").split(",")
                assert before.encryption_configuration in mixed and len(mixed) == 2
                assert keys_in_use(admin.etcd) == {"key1": COUNT}
                assert versions_in_use(admin.etcd) == {"v1beta1": 5}

                plane.api_servers[0].upgrade()
                restart(plane, 0)
                async with Admin(plane) as again:
                    last = await until(
                        again, "two", changed_after(before, is_ready("Current")), "current", seconds=LONG
                    )
                    assert keys_in_use(again.etcd) == {"key2": COUNT}
                    assert resource(last, MUTATIONS).storage_version == "v1"
                    assert versions_in_use(again.etcd) == {"v1": 5}
            finally:
                operator.close()


async def assert_told_apart(kubeconfig: Path) -> None:
    """Without metrics, two connections are enough, because each API server advertises another address."""
    async with Client(Connection(kubeconfig)) as operator:

        async def two() -> list[ApiServerLease] | None:
            # An API server may be ready before it has its Lease.
            found = await list_leases(operator)
            return list(found) if found is not None and len(found) == 2 else None

        leases = await eventually(two, otherwise=lambda: "two API servers have not two Leases")
        answers = await ask_all(operator, [("", "v1")], leases)
    assert [(each.unread, each.has_metric) for each in answers] == [(FORBIDDEN, True)] * 2
    assert len({each.address for each in answers if each.address}) == 2


@pytest.mark.timeout(300 + 60 * KILLS)
async def test_kills_at_random_instants_lose_and_repeat_nothing(
    encrypting: Admin, encrypting_plane: ControlPlane, configuration: Path
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    await create_secrets(encrypting, 20)
    (old,) = keys_in_use(encrypting.etcd)
    await encrypting.opt_in("", "secrets")
    await see_metrics(encrypting)
    operator = Operator(encrypting_plane)
    try:
        operator.start()
        await create_policy(encrypting, "killed", "secrets", template={**TEMPLATE, **SLOWLY})
        before = resource(await until(encrypting, "killed", is_ready("Current"), "current"), "secrets")
        written = encrypting.etcd.write_counts(STORED)
        encrypt_with(configuration, "killed", old)
        restart(encrypting_plane, operator=operator)
        async with Admin(encrypting_plane) as admin:
            for _ in range(KILLS):
                await asyncio.sleep(dice.uniform(0.0, 3.0))
                operator.kill()
                unfinished = [
                    each
                    for each in await migrations_of(admin, await policy(admin, "killed"))
                    if each.status.completion_time is None
                ]
                assert len(unfinished) <= 1
                operator.start()
            await until(admin, "killed", changed_after(before, is_ready("Current")), "current", seconds=180)
            assert keys_in_use(admin.etcd) == {"killed": 20}
            now = admin.etcd.write_counts(STORED)
            assert {now[key] - count for key, count in written.items()} == {1}, "not once each"
            assert len(await migrations_of(admin, await policy(admin, "killed"))) == 2
    finally:
        operator.close()


async def test_another_manager_delays_and_breaks_nothing(
    encrypting: Admin, encrypting_plane: ControlPlane, builtins_operator: Operator, configuration: Path
) -> None:
    await create_secrets(encrypting, MANY)
    await encrypting.opt_in("", "secrets")
    (old,) = keys_in_use(encrypting.etcd)
    encrypt_with(configuration, "disturbed", old)
    restart(encrypting_plane, operator=builtins_operator)
    async with Admin(encrypting_plane) as admin:
        # A migration of so many is at work until somebody deletes it.
        crawling = {**TEMPLATE, "limits": {"maxObjectsPerSecond": 1}}
        await create_policy(admin, "disturbed", "secrets", template=crawling, encryptionKey="disturbed")
        first = await until(admin, "disturbed", _migrates, "migrating")
        await until_later(admin, resource(first, "secrets").changed_time)
        await admin.merge(f"{POLICIES}/disturbed", {"spec": {"template": {"limits": None}}})
        # Somebody deletes the migration at work, and the record of it.
        await admin.delete(f"{MIGRATIONS}/{resource(first, 'secrets').migration}")
        await admin.merge(f"{POLICIES}/disturbed/status", {"status": {"resources": [], "conditions": []}})
        last = await until(
            admin, "disturbed", changed_after(resource(first, "secrets"), is_ready("Current")), "current"
        )
        assert keys_in_use(admin.etcd) == {"disturbed": MANY}

        # With its policy goes what it does.
        before = resource(last, "secrets")
        await until_later(admin, before.changed_time)
        await admin.merge(
            f"{POLICIES}/disturbed", {"spec": {"encryptionKey": "bumped", "template": crawling}}
        )
        await until(admin, "disturbed", changed_after(before, _migrates), "migrating again")
        await admin.delete(f"{POLICIES}/disturbed")

        async def gone() -> bool:
            return not await migrations_of(admin, last)

        await eventually(gone, otherwise=lambda: "the policy's migrations outlive it")


def _migrates(found: BuiltinPolicy) -> bool:
    return any(each.migration and not each.migrated for each in found.status.resources)
