"""Resources without a CRD: what the API server stores differently after a change of its own settings."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster.harness import Admin, Operator, condition, install
from tests.controlplane.etcd import Etcd
from tests.controlplane.plane import ControlPlane

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
SECRET_KEYS = "/registry/secrets/"
COUNT = 20


async def test_what_is_current_is_left_and_nothing_is_trimmed(admin: Admin, operator: Operator) -> None:
    name = "configmaps-are-current"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    before = await admin.create(CONFIG_MAPS, config_map)
    await admin.opt_in("", "configmaps")

    migration = await admin.migrate(name, ("", "configmaps"))

    assert condition(migration, "Succeeded").reason == "Migrated"
    trimmed = condition(migration, "Trimmed")
    assert (trimmed.status, trimmed.reason) == ("False", "NotApplicable")
    assert migration.status.progress.rewritten == 0
    assert migration.status.progress.current == migration.status.progress.total >= 1
    # Nothing in an object shows that it is current, so both passes ask the API server.
    assert operator.requests("configmaps") == 2 * migration.status.progress.total
    assert await admin.get(f"{CONFIG_MAPS}/{name}") == before


async def test_secrets_are_encrypted_with_a_new_key(
    start_plane: Callable[..., ControlPlane], start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    configuration = tmp_path / "encryption.json"
    encrypt_with(configuration, "old")
    plane = start_plane(
        controllers=("clusterrole-aggregation-controller",),
        extra_apiserver_flags={"encryption-provider-config": str(configuration)},
    )
    install(plane)
    async with Admin(plane) as admin:
        for number in range(COUNT):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"secret-{number}"}}
            await admin.create(SECRETS, {**secret, "stringData": {"password": f"p-{number}"}})
    assert keys_in_use(plane.etcd) == {b"k8s:enc:secretbox:v1:old:"}
    encrypt_with(configuration, "new", "old")
    restart(plane)

    start_operator(plane)
    async with Admin(plane) as admin:
        await admin.opt_in("", "secrets")
        migration = await admin.migrate("secrets", ("", "secrets"))

    assert keys_in_use(plane.etcd) == {b"k8s:enc:secretbox:v1:new:"}
    assert migration.status.progress.rewritten == COUNT
    # All remain readable without the old key: that was the migration's purpose.
    encrypt_with(configuration, "new")
    restart(plane)
    async with Admin(plane) as admin:
        found = (await admin.get(SECRETS))["items"]
    passwords = {base64.b64decode(each["data"]["password"]) for each in found}
    assert passwords == {f"p-{number}".encode() for number in range(COUNT)}


def restart(plane: ControlPlane) -> None:
    """Has the API server reload its settings. With SIGKILL: a clean shutdown takes it seconds."""
    (server,) = plane.api_servers
    server.kill()
    server.start()
    server.wait_ready()


def encrypt_with(path: Path, *names: str) -> None:
    """Writes an EncryptionConfiguration for Secrets; the first key encrypts, the others only decrypt."""
    keys = [{"name": name, "secret": base64.b64encode(name.encode().ljust(32)).decode()} for name in names]
    providers: list[dict[str, Any]] = [{"secretbox": {"keys": keys}}]
    body = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    }
    path.write_text(json.dumps(body))


def keys_in_use(etcd: Etcd) -> set[bytes]:
    """The prefixes of all stored Secrets, which name the key that encrypts each."""
    values = [etcd.raw(key) for key in etcd.keys(SECRET_KEYS)]
    return {b":".join(value.split(b":")[:5]) + b":" for value in values if value is not None}
