"""Objects that finalizers hold in deletion, the policies that release them, and the right to do so."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import yaml

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.finalizerrelease import FinalizerStanding
from crdkeeper.api.meta import Condition, find_condition
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.finalizers.standing import CONDITION, RELEASER_LABEL
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, each_of, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, POLICIES
from tests.cluster.harness.admission import BINDINGS
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.harness.waiting import TIMEOUT_SECONDS

NAMED = "test.example.com/named"
OTHER = "test.example.com/other"
_CONFINEMENT: dict[str, Any] = yaml.safe_load(
    (MANIFESTS / "samples" / "releaser-confinement.yaml").read_text()
)


@asynccontextmanager
async def held_objects(admin: Admin, kind: CustomKind) -> AsyncIterator[None]:
    """Applies the CRD; at the end, frees what is left of its objects, so that the CRD can go."""
    await admin.apply_definition(kind)
    try:
        yield
    finally:
        for each in await finalizers_of(admin, kind):
            await _free(admin, kind.path(each))


async def _free(admin: Admin, path: str) -> None:
    """Takes all finalizers off an object, which an operator may just have released."""
    try:
        await admin.merge(path, {"metadata": {"finalizers": []}})
    except ApiError as error:
        if error.code != 404:
            raise


async def create_held(
    admin: Admin, kind: CustomKind, names: Iterable[str], finalizers: Sequence[str] = (NAMED,), **spec: Any
) -> None:
    """Creates objects with finalizers, and deletes them."""
    names = list(names)
    bodies = [kind.instance(each, **spec) for each in names]
    for body in bodies:
        body["metadata"]["finalizers"] = list(finalizers)
    await admin.create_instances(kind, bodies)
    await admin.delete_objects(kind, names)


async def finalizers_of(admin: Admin, kind: CustomKind) -> dict[str, list[str]]:
    """The finalizers of each object that exists."""
    found = await admin.client.request("GET", kind.path(), accept=METADATA_ONLY_LIST)
    return {each["metadata"]["name"]: each["metadata"].get("finalizers", []) for each in found["items"] or ()}


async def until_finalizers(
    admin: Admin,
    kind: CustomKind,
    expected: dict[str, list[str]],
    *,
    seconds: float = TIMEOUT_SECONDS,
    every: float = 0.05,
) -> None:
    """Returns when these are the objects that exist, with their finalizers."""
    seen: dict[str, list[str]] = {}

    async def look() -> bool:
        seen.clear()
        seen.update(await finalizers_of(admin, kind))
        return seen == expected

    await eventually(
        look,
        seconds=seconds,
        every=every,
        otherwise=lambda: f"{len(seen)} left: {dict(list(seen.items())[:5])}",
    )


async def policy(admin: Admin, name: str, *rules: dict[str, Any]) -> None:
    """Creates or changes the policy of the API group of that name."""
    body = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": name},
        "spec": {"groups": [name], "storageMigration": {"mode": "Disabled"}, "finalizers": list(rules)},
    }
    await admin.apply(f"{POLICIES}/{name}", body)
    admin.cleans_up(f"{POLICIES}/{name}")


def rule(name: str = NAMED, after: str = "1s", mode: str = "Automatic", **others: Any) -> dict[str, Any]:
    """A rule of a policy."""
    return {"name": name, "releaseAfter": after, "mode": mode, **others}


async def policy_with(
    admin: Admin,
    name: str,
    reason: str,
    holds: Callable[[DefinitionPolicy], bool] = lambda _: True,
    *,
    seconds: float = TIMEOUT_SECONDS,
) -> DefinitionPolicy:
    """The policy as soon as FinalizersReleased has this reason, and that is true for it."""
    seen: list[DefinitionPolicy] = []

    async def look() -> DefinitionPolicy | None:
        seen[:] = [DefinitionPolicy.model_validate(await admin.get(f"{POLICIES}/{name}"))]
        found = find_condition(seen[0].status.conditions, CONDITION)
        current = found is not None and found.observed_generation == seen[0].metadata.generation
        return seen[0] if current and found and found.reason == reason and holds(seen[0]) else None

    return await eventually(
        look, seconds=seconds, otherwise=lambda: f"the policy stands at {seen[0].status.to_object()}"
    )


def condition_of(found: DefinitionPolicy) -> Condition:
    """Its condition FinalizersReleased."""
    condition = find_condition(found.status.conditions, CONDITION)
    assert condition is not None
    return condition


def figures(found: DefinitionPolicy, name: str = NAMED) -> FinalizerStanding:
    """What one of its finalizers holds up."""
    (one,) = (each for each in found.status.finalizers if each.name == name)
    return one


async def let_release(
    admin: Admin,
    group: str,
    verbs: Sequence[str] = ("get", "list", "patch"),
    *,
    account: str = SERVICE_ACCOUNT,
) -> None:
    """Lets the operator release finalizers, like manifests/samples/releaser-role.yaml; waits until it may."""
    name = f"test-release-{group}"
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {RELEASER_LABEL: "true"}},
        "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": list(verbs)}],
    }
    await admin.apply(f"{CLUSTER_ROLES}/{name}", body)
    admin.cleans_up(f"{CLUSTER_ROLES}/{name}")
    await until_permitted(admin, group, verbs, account=account)


async def until_permitted(
    admin: Admin,
    group: str,
    verbs: Sequence[str] = ("get", "list", "patch"),
    *,
    account: str = SERVICE_ACCOUNT,
) -> None:
    """Returns when the operator has these rights to the objects."""
    kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, account)
    async with Client(Connection(kubeconfig)) as client:

        async def known() -> bool:
            return not await missing_rights(client, [Right(each, group, "databases") for each in verbs])

        await eventually(known, otherwise=lambda: f"the operator may not {verbs} objects of {group}")


async def release_events(admin: Admin, kind: CustomKind) -> dict[str, list[str]]:
    """The notes of the Events about released finalizers, by object."""
    query = f"?fieldSelector=regarding.kind%3D{kind.kind}&limit=20000"
    found = await admin.get(f"/apis/events.k8s.io/v1/namespaces/default/events{query}")
    notes: dict[str, list[str]] = {}
    for each in found["items"]:
        about = each["regarding"]
        if about["apiVersion"].startswith(f"{kind.group}/") and each["reason"] == "FinalizerReleased":
            notes.setdefault(about["name"], []).append(each["note"])
    return notes


async def release_notes(admin: Admin, kind: CustomKind, *names: str) -> dict[str, list[str]]:
    """The same, once there is one for each of these objects: an Event is sent after its release."""

    async def look() -> dict[str, list[str]] | None:
        notes = await release_events(admin, kind)
        return notes if notes.keys() >= {*names} else None

    return await eventually(look, otherwise=lambda: f"there are no Events for all of {names}")


async def write(admin: Admin, kind: CustomKind, name: str, manager: str, text: str) -> None:
    """A write of an object by a manager that is alive."""
    await admin.client.request(
        "PATCH",
        f"{kind.path(name)}?fieldManager={manager}",
        {"metadata": {"annotations": {"test.example.com/beat": text}}},
        content_type="application/merge-patch+json",
    )


async def write_all(admin: Admin, kind: CustomKind, names: Iterable[str], manager: str, text: str) -> None:
    """A write of each of these objects."""

    async def one(name: str) -> None:
        await write(admin, kind, name, manager, text)

    await each_of(names, one)


async def confine(admin: Admin, group: str) -> None:
    """Applies the sample of the documentation, for that group."""
    path = f"{BINDINGS}/confine-{group}"
    matched = {**_CONFINEMENT["spec"]["matchResources"]}
    (matched_rule,) = matched["resourceRules"]
    spec = {
        **_CONFINEMENT["spec"],
        "matchResources": {"resourceRules": [{**matched_rule, "apiGroups": [group]}]},
    }
    await admin.apply(path, {**_CONFINEMENT, "metadata": {"name": f"confine-{group}"}, "spec": spec})
    admin.cleans_up(path)
