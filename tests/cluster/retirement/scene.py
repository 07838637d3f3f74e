"""A kind that has moved from v1alpha1 to v1, and the retirement of its old version."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

from crdkeeper.api.meta import API_VERSION, GROUP, Condition, find_condition
from crdkeeper.api.versionretirement import DEPRECATED, UNUSED, VersionRetirement
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import APPLY_PATCH, JSON_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS, OURS
from tests.cluster.harness.customkind import Version
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.cluster import Cluster

OLD, NEW = "v1alpha1", "v1"
RETIREMENTS = f"{OURS}/versionretirements"
CONVERSIONS = f"{OURS}/versionconversions"
AT_ONCE = {"settleSeconds": 0, "apiServerLeases": "Ignore", "retry": {"backoffSeconds": 1}}
SLOWLY = {"settleSeconds": 3600, "apiServerLeases": "Ignore"}
"""A migration that settles for an hour keeps the version from being removed."""
SECONDS = 120.0


async def moved(admin: Admin, group: str, objects: int = 20) -> CustomKind:
    """A kind whose objects were all stored at v1alpha1, before v1 became the storage version."""
    before = CustomKind(group, versions=(Version(OLD, storage=True), Version(NEW)))
    await admin.apply_definition(before)
    await admin.create_objects(before, objects, version=OLD, engine="postgres")
    kind = before.storing(NEW)
    await admin.apply_definition(kind)
    return kind


async def permit(
    admin: Admin,
    kind: CustomKind,
    *,
    metrics: bool = False,
    objects: Sequence[str] = ("get", "list", "patch"),
) -> None:
    """Let the operator retire versions of the kind, by these verbs on its objects; waits until it may."""
    name = f"test-retire-{kind.group}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-retirer": "true"}},
        "rules": [
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": [kind.name],
                "verbs": ["patch", "retire"],
            },
            {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": [*objects]},
            *([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}] if metrics else []),
        ],
    }
    await admin.apply(f"{CLUSTER_ROLES}/{name}", role)
    admin.cleans_up(f"{CLUSTER_ROLES}/{name}")
    wanted = [
        Right("retire", "apiextensions.k8s.io", "customresourcedefinitions", name=kind.name),
        *(Right(verb, kind.group, kind.plural) for verb in objects),
    ]
    await until_permitted(admin, wanted)


async def until_permitted(admin: Admin, wanted: Sequence[Right], *, permitted: bool = True) -> None:
    """Wait until the operator has all of these rights, or none: aggregated roles take a while."""
    account = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(account)) as operator:

        async def known() -> bool:
            return len(await missing_rights(operator, wanted)) == (0 if permitted else len(wanted))

        await eventually(known, otherwise=lambda: f"permitted is not {permitted}: {wanted}")


async def retire(admin: Admin, kind: CustomKind, **spec: Any) -> str:
    """Request the retirement of v1alpha1; returns its name. Keywords are fields of spec."""
    name = f"old.{kind.group}"
    resource = {"group": kind.group, "resource": kind.plural}
    wanted = {"resource": resource, "version": OLD, "quietPeriod": "1s", "migration": AT_ONCE, **spec}
    body = {
        "apiVersion": API_VERSION,
        "kind": "VersionRetirement",
        "metadata": {"name": name},
        "spec": wanted,
    }
    await admin.create(RETIREMENTS, body)
    return name


async def retirement(admin: Admin, name: str) -> VersionRetirement:
    """The current retirement."""
    return VersionRetirement.model_validate(await admin.get(f"{RETIREMENTS}/{name}"))


def standing(found: VersionRetirement, type_: str) -> Condition:
    """One of its conditions."""
    known = find_condition(found.status.conditions, type_)
    assert known is not None, f"there is no {type_}: {found.status.to_object()}"
    return known


def is_read_again(found: VersionRetirement) -> bool:
    """Whether requests that an API server has counted began the quiet period anew after five seconds."""
    since = found.status.quiet_since_time
    if since is None:
        return False
    counted = "a client whose request an API server has counted" in standing(found, UNUSED).message
    begun = standing(found, DEPRECATED).last_transition_time
    return counted and since >= begun + timedelta(seconds=5)


async def until(
    admin: Admin, name: str, holds: Callable[[VersionRetirement], bool], what: str, seconds: float = SECONDS
) -> VersionRetirement:
    """The retirement as soon as that is true for it."""
    seen: list[VersionRetirement] = []

    async def look() -> VersionRetirement | None:
        seen[:] = [await retirement(admin, name)]
        return seen[0] if holds(seen[0]) else None

    def otherwise() -> str:
        return f"{name} is not {what}: {json.dumps(seen[0].status.to_object(), indent=1)}"

    return await eventually(look, seconds=seconds, otherwise=otherwise)


async def until_ready(
    admin: Admin, name: str, status: str, reason: str, seconds: float = SECONDS
) -> VersionRetirement:
    """The retirement as soon as Ready has that status and reason for its current generation."""

    def holds(found: VersionRetirement) -> bool:
        ready = find_condition(found.status.conditions, "Ready")
        current = found.status.observed_generation == found.metadata.generation
        return current and ready is not None and (ready.status, ready.reason) == (status, reason)

    return await until(admin, name, holds, f"{status} {reason}", seconds)


async def until_due(admin: Admin, name: str, step: str) -> VersionRetirement:
    """The retirement as soon as the change of that step is due."""
    return await until(
        admin, name, lambda each: each.status.due is not None and each.status.due.step == step, f"due: {step}"
    )


def install_composite_kinds(cluster: Cluster) -> None:
    """Install the kinds of the composer, which nobody serves here."""
    cluster.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS.parent / 'crds' / 'composer'}")
    cluster.kubectl.wait_established(f"crd/compositions.{GROUP}", f"crd/compositionrevisions.{GROUP}")


def plan_of_conversion(kind: CustomKind, *spokes: str) -> dict[str, Any]:
    """A VersionConversion that changes nothing. It holds the removal of these versions."""
    return {
        "apiVersion": API_VERSION,
        "kind": "VersionConversion",
        "metadata": {"name": kind.name},
        "spec": {
            "resource": {"group": kind.group, "resource": kind.plural},
            "hub": kind.storage_version,
            "spokes": [{"version": each, "rules": []} for each in spokes],
            "mode": "Plan",
        },
    }


async def put_back(
    admin: Admin, kind: CustomKind, manager: str = "gitops", entries: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Apply the kind's CRD by force, as a tool does that keeps it elsewhere; `entries` replace versions."""
    path = f"{CRDS}/{kind.name}?fieldManager={manager}&force=true"
    body = kind.to_object()
    if entries:
        body["spec"]["versions"] = list(entries)
    return await admin.client.request("PATCH", path, body, content_type=APPLY_PATCH)


async def change(admin: Admin, kind: CustomKind, operations: list[dict[str, Any]]) -> None:
    """A JSON patch of the CRD by the admin."""
    path = f"{CRDS}/{kind.name}?fieldManager=admin"
    await admin.client.request("PATCH", path, operations, content_type=JSON_PATCH)


@asynccontextmanager
async def written_all_the_time(admin: Admin, kind: CustomKind, pause: float) -> AsyncIterator[None]:
    """Another client changes annotations of the CRD, with pauses of seconds, until the end of the block."""

    async def write() -> None:
        for number in count():
            await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"written": str(number)}}})
            await asyncio.sleep(pause)

    writer = asyncio.create_task(write())
    try:
        yield
        assert not writer.done()
    finally:
        writer.cancel()
        with suppress(asyncio.CancelledError):
            await writer


async def versions(admin: Admin, kind: CustomKind) -> Mapping[str, Mapping[str, Any]]:
    """The entries of the CRD's spec.versions by name."""
    return {each["name"]: each for each in (await admin.definition(kind))["spec"]["versions"]}


async def assert_retired(admin: Admin, kind: CustomKind, objects: int) -> None:
    """Nothing of v1alpha1 is left: not in the CRD, not in etcd, and not for server-side apply."""
    crd = await admin.definition(kind)
    assert [each["name"] for each in crd["spec"]["versions"]] == [NEW]
    assert crd["status"]["storedVersions"] == [NEW]
    assert admin.stored(kind) == {NEW: objects}
    for each in (await listed(admin, kind))["items"]:
        named = {entry["apiVersion"] for entry in each["metadata"]["managedFields"]}
        assert named == {f"{kind.group}/{NEW}"}
    await admin.create_instances(kind, [kind.instance("db-00000", version=NEW, engine="mysql")])


async def listed(admin: Admin, kind: CustomKind) -> dict[str, Any]:
    """All objects: right after a change of the CRD, the API server answers with 429."""

    async def look() -> dict[str, Any] | None:
        answer = await admin.client.send("GET", kind.path())
        if answer.code == 429:
            return None
        assert answer.code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    return await eventually(look, otherwise=lambda: f"{kind.name} is not served")
