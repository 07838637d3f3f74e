"""Secrets follow the API servers' encryption keys, and the policy says what it does."""

from pathlib import Path

from crdkeeper.api.meta import find_condition
from tests.cluster.builtins.encrypting import (
    POLICIES,
    changed_after,
    create_policy,
    create_secrets,
    encrypt_with,
    govern_secrets,
    is_ready,
    keys_in_use,
    migrations_of,
    resource,
    restart,
    until,
    without_metrics,
)
from tests.cluster.harness import Admin, Operator
from tests.controlplane.plane import ControlPlane

COUNT = 20


async def test_secrets_follow_the_key_without_a_word(
    encrypting: Admin, encrypting_plane: ControlPlane, builtins_operator: Operator, configuration: Path
) -> None:
    # Nothing is known of what was written before: so it is migrated, which writes nothing here.
    old, first = await govern_secrets(encrypting, "secrets", COUNT, is_ready("Current"))
    before = resource(first, "secrets")
    assert (before.storage_version, before.migrated) == ("v1", True)
    assert (await encrypting.migration(before.migration)).status.progress.rewritten == 0

    encrypt_with(configuration, "key2", old)
    restart(encrypting_plane, operator=builtins_operator)
    second = await until(
        encrypting, "secrets", changed_after(before, is_ready("Current")), "current again", seconds=180
    )

    assert keys_in_use(encrypting.etcd) == {"key2": COUNT}
    now = resource(second, "secrets")
    assert now.migration != before.migration
    assert (await encrypting.migration(now.migration)).status.progress.rewritten == COUNT
    seen = find_condition(second.status.conditions, "EncryptionObserved")
    assert seen is not None and (seen.status, seen.reason) == ("True", "Observed"), seen
    assert (now.encryption_configuration or "") in seen.message
    reasons = [reason for _, reason, _ in await encrypting.events("secrets", "BuiltinPolicy")]
    assert reasons.count("MigrationCreated") == 2
    # The old key is really not needed any more.
    encrypt_with(configuration, "key2")
    restart(encrypting_plane)
    assert len((await encrypting.get("/api/v1/namespaces/default/secrets"))["items"]) == COUNT


async def test_a_bumped_key_is_enough_without_metrics(
    encrypting: Admin, encrypting_plane: ControlPlane, builtins_operator: Operator, configuration: Path
) -> None:
    await create_secrets(encrypting, COUNT)
    (old,) = keys_in_use(encrypting.etcd)
    # What a former test has granted is withdrawn only with the controllers' next look at its role.
    await encrypting.opt_out("", "secrets")
    await without_metrics(encrypting)
    await create_policy(encrypting, "by-hand", "secrets", encryptionKey=old)
    lacking = await until(encrypting, "by-hand", is_ready("Forbidden", "False"), "forbidden")
    ready = find_condition(lacking.status.conditions, "Ready")
    assert ready is not None
    assert '{apiGroups: [""], resources: [secrets], verbs: [get, list, patch]}' in ready.message
    assert not await migrations_of(encrypting, lacking)

    await encrypting.opt_in("", "secrets")
    first = await until(encrypting, "by-hand", is_ready("Current"), "current", seconds=150)
    seen = find_condition(first.status.conditions, "EncryptionObserved")
    assert seen is not None and (seen.status, seen.reason) == ("Unknown", "NotPermitted")
    assert "{nonResourceURLs: [/metrics], verbs: [get]}" in seen.message
    before = resource(first, "secrets")

    encrypt_with(configuration, "by-hand", old)
    restart(encrypting_plane, operator=builtins_operator)
    # By a client whose connections did not end with the API server.
    async with Admin(encrypting_plane) as again:
        await again.merge(f"{POLICIES}/by-hand", {"spec": {"encryptionKey": "by-hand"}})
    await until(
        encrypting, "by-hand", changed_after(before, is_ready("Current")), "current again", seconds=180
    )

    assert keys_in_use(encrypting.etcd) == {"by-hand": COUNT}
