"""API servers that encrypt Secrets, their keys, and which key etcd shows for each Secret."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinResource
from crdkeeper.api.meta import API_VERSION, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import Admin, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, MIGRATIONS, OURS, QUICK, each_of
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.etcd import Etcd
from tests.controlplane.plane import ControlPlane

POLICIES = f"{OURS}/builtinpolicies"
SECRETS = "/api/v1/namespaces/default/secrets"
STORED = "/registry/secrets/default/"
MUTATIONS = "mutatingadmissionpolicies.admissionregistration.k8s.io"
"""A resource whose storage version has changed with 1.37."""
TEMPLATE = {**QUICK, "settleSeconds": 0}
SECONDS = 120.0


def encrypt_with(path: Path, *names: str) -> None:
    """Writes an EncryptionConfiguration for Secrets; the first key encrypts, the others only decrypt."""
    keys = [{"name": name, "secret": base64.b64encode(name.encode().ljust(32)).decode()} for name in names]
    body = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"aescbc": {"keys": keys}}]}],
    }
    path.write_text(json.dumps(body))


def keys_in_use(etcd: Etcd) -> Counter[str]:
    """How many Secrets each key encrypts, by the prefix of what is stored."""
    values = [etcd.raw(key) for key in etcd.keys(STORED)]
    return Counter(each.split(b":")[4].decode() for each in values if each is not None)


def versions_in_use(etcd: Etcd) -> Counter[str]:
    """How many MutatingAdmissionPolicies are stored at which version."""
    values = [etcd.raw(key) for key in etcd.keys("/registry/mutatingadmissionpolicies/")]
    return Counter(
        each.partition(b"admissionregistration.k8s.io/")[2].partition(b"\x12")[0].decode()
        for each in values
        if each is not None
    )


def restart(plane: ControlPlane, index: int = 0, *, operator: Operator | None = None) -> None:
    """Has an API server read its settings again. With SIGKILL: a clean shutdown takes it seconds.

    The operator is restarted too, if this is its only API server: on a busy machine it could lose its Lease,
    and no kubelet would start it again.
    """
    if operator is not None:
        operator.stop()
    server = plane.api_servers[index]
    server.kill()
    server.start()
    server.wait_ready()
    if operator is not None:
        operator.start()


async def create_secrets(admin: Admin, count: int) -> None:
    """Creates `secret-0`, …, many concurrently."""

    async def create(number: int) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"secret-{number}"}}
        await admin.client.request("POST", SECRETS, {**secret, "stringData": {"password": f"p-{number}"}})

    await each_of(range(count), create)


async def create_mutations(admin: Admin, count: int) -> None:
    """Creates MutatingAdmissionPolicies `mutation-0`, … that nothing binds; deleted at the end."""
    group = "admissionregistration.k8s.io"
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        "reinvocationPolicy": "Never",
    }
    for number in range(count):
        body = {"kind": "MutatingAdmissionPolicy", "metadata": {"name": f"mutation-{number}"}, "spec": spec}
        path = f"/apis/{group}/v1/mutatingadmissionpolicies"
        await admin.create(path, {"apiVersion": f"{group}/v1", **body})


async def see_metrics(admin: Admin, *, servers: int = 1) -> None:
    """Lets the operator read the API servers' metrics, as the sample role does; waits until it may.

    A policy that cannot see them yet takes the keys for changed once it can, and migrates again.
    """
    name = "test-read-metrics"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-rewriter": "true"}},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    await admin.apply(f"{CLUSTER_ROLES}/{name}", role)
    admin.cleans_up(f"{CLUSTER_ROLES}/{name}")
    for server in range(servers):
        await _until_metrics(admin, 200, "the operator may not read metrics", server=server)


async def without_metrics(admin: Admin) -> None:
    """Returns once the operator may not read the API servers' metrics any more."""
    await _until_metrics(admin, 403, "the operator may still read metrics")


async def _until_metrics(admin: Admin, code: int, otherwise: str, *, server: int = 0) -> None:
    account = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, server=server)
    async with Client(Connection(account)) as operator:

        async def answered() -> bool:
            return (await operator.send("GET", "/metrics", accept="text/plain")).code == code

        await eventually(answered, otherwise=lambda: otherwise)


async def create_policy(admin: Admin, name: str, *resources: str, **spec: Any) -> None:
    """Creates a BuiltinPolicy whose migrations do not wait; deleted at the end, with its migrations."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "BuiltinPolicy",
        "metadata": {"name": name},
        "spec": {"template": TEMPLATE, "resources": list(resources), **spec},
    }
    await admin.create(POLICIES, body)


async def policy(admin: Admin, name: str) -> BuiltinPolicy:
    """The policy as stored."""
    return BuiltinPolicy.model_validate(await admin.get(f"{POLICIES}/{name}"))


async def until(
    admin: Admin, name: str, holds: Callable[[BuiltinPolicy], bool], what: str, *, seconds: float = SECONDS
) -> BuiltinPolicy:
    """The policy as soon as that is true for it."""
    seen: list[Mapping[str, Any]] = []

    async def look() -> BuiltinPolicy | None:
        found = await policy(admin, name)
        seen[:] = [found.status.to_object()]
        return found if holds(found) else None

    return await eventually(
        look,
        seconds=seconds,
        every=0.2,
        otherwise=lambda: f"{name} is not {what}: {json.dumps(seen[0], indent=1)}",
    )


async def govern_secrets(
    admin: Admin, name: str, count: int, holds: Callable[[BuiltinPolicy], bool], **spec: Any
) -> tuple[str, BuiltinPolicy]:
    """Creates Secrets, and a policy for them whose operator may migrate them and sees the keys.

    Returns the key that encrypts them, and the policy as soon as that is true for it.
    """
    await create_secrets(admin, count)
    (key,) = keys_in_use(admin.etcd)
    await admin.opt_in("", "secrets")
    await see_metrics(admin)
    await create_policy(admin, name, "secrets", **spec)
    return key, await until(admin, name, holds, "as it is at the beginning")


async def until_later(admin: Admin, moment: datetime) -> None:
    """Returns when what the operator does has a later time than that one: times have whole seconds."""

    async def later() -> bool:
        # Each client knows the API server's clock to a second.
        return admin.client.now() >= moment + timedelta(seconds=2)

    await eventually(later)


async def migrations_of(admin: Admin, owner: BuiltinPolicy) -> list[StorageMigration]:
    """The migrations that a policy has created and that exist."""
    found = [StorageMigration.model_validate(each) for each in (await admin.get(MIGRATIONS))["items"]]
    return [each for each in found if owner.metadata.uid in [by.uid for by in each.metadata.owner_references]]


def is_ready(reason: str, status: str = "True") -> Callable[[BuiltinPolicy], bool]:
    """Whether Ready is so, for the current spec."""

    def holds(found: BuiltinPolicy) -> bool:
        ready = find_condition(found.status.conditions, "Ready")
        return (
            ready is not None
            and (ready.status, ready.reason) == (status, reason)
            and ready.observed_generation == found.metadata.generation
        )

    return holds


def resource(found: BuiltinPolicy, name: str) -> BuiltinResource:
    """The record of one resource."""
    return next(each for each in found.status.resources if each.resource == name)


def changed_after(
    before: BuiltinResource, holds: Callable[[BuiltinPolicy], bool]
) -> Callable[[BuiltinPolicy], bool]:
    """Whether it holds, and was decided after a change that followed that record."""

    def both(found: BuiltinPolicy) -> bool:
        return holds(found) and resource(found, before.resource).changed_time > before.changed_time

    return both
