"""What an admin does to a cluster in the tests: define kinds, create objects, request migrations."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import orjson

from crdkeeper.api.meta import API_VERSION, GROUP, VERSION, Condition, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import (
    APPLY_PATCH,
    MERGE_PATCH,
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    Unreachable,
)
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.customkind import CustomKind
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.cluster.harness.marks import TABLE, Marks
from tests.cluster.harness.waiting import TIMEOUT_SECONDS, eventually
from tests.controlplane.cluster import Cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
OURS = f"/apis/{GROUP}/{VERSION}"
MIGRATIONS = f"{OURS}/storagemigrations"
POLICIES = f"{OURS}/definitionpolicies"
FIELD_MANAGER = "admin"
AT_ONCE = 16

QUICK: Mapping[str, Any] = {
    "settleSeconds": 1,
    "apiServerLeases": "Ignore",
    "retry": {"backoffSeconds": 1, "maxBackoffSeconds": 1},
}
"""For tests that are not about settling: an API server renews its Lease only every ten seconds."""


class Admin:
    """An admin of one cluster, with the API server of index `server`; use as an async context manager.

    `template` has default fields for the specs of migrations.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        server: int = 0,
        template: Mapping[str, Any] = QUICK,
        on_definition: Callable[[str], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.etcd = cluster.etcd
        kubeconfig = cluster.api_servers[server].kubeconfig if server else cluster.kubeconfig
        self.client = Client(Connection(kubeconfig))
        self._server = server
        self._template = template
        self._on_definition = on_definition
        self._leftovers: dict[str, None] = {}
        self._marks = Marks()

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.__aexit__(kind, error, trace)

    async def clean_up(self) -> None:
        """Deletes what it created; ignores what is already gone."""
        failed: list[Exception] = []
        for path in reversed(self._leftovers):
            try:
                await self.delete(path)
            except (ApiError, Unreachable) as error:
                failed.append(error)  # the others are deleted all the same
        if failed:
            raise ExceptionGroup("what the test created could not all be deleted", failed)

    def cleans_up(self, path: str) -> None:
        """Registers an object for deletion at the end, too."""
        self._leftovers.setdefault(path)

    async def get(self, path: str) -> dict[str, Any]:
        return await self.client.request("GET", path)

    async def find(self, path: str) -> dict[str, Any] | None:
        """An object; None if there is none."""
        try:
            return await self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def create(self, collection: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an object, to be deleted at the end."""
        created = await self.client.request("POST", collection, body)
        self.cleans_up(f"{collection}/{created['metadata']['name']}")
        return created

    async def apply(
        self, path: str, body: Mapping[str, Any], *, manager: str = FIELD_MANAGER
    ) -> dict[str, Any]:
        """Server-side apply, like `kubectl apply --server-side`."""
        query = f"?fieldManager={manager}"
        return await self.client.request("PATCH", path + query, body, content_type=APPLY_PATCH)

    async def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """A merge patch."""
        return await self.client.request("PATCH", path, patch, content_type=MERGE_PATCH)

    async def delete(self, path: str) -> None:
        """Deletes an object, if it exists; does not wait for its finalizers."""
        try:
            await self.client.request("DELETE", path)
        except ApiError as error:
            if error.code != 404:
                raise

    # Definitions and their objects

    async def apply_definition(self, kind: CustomKind) -> dict[str, Any]:
        """Applies a CRD and waits until the API server serves it as it is now; returns the CRD."""
        path = f"{CRDS}/{kind.name}"
        if self._on_definition is not None:
            self._on_definition(kind.name)
        body, mark = self._marks.of(kind)
        applied = await self.apply(path, body)
        self.cleans_up(path)

        async def served() -> bool:
            answer = await self.client.send("GET", f"{kind.path()}?limit=1", accept=TABLE)
            return answer.code == 200 and mark in answer.content.decode()

        await eventually(served, otherwise=lambda: f"{kind.name} is not served as it is now")
        return applied

    async def definition(self, kind: CustomKind) -> dict[str, Any]:
        """The current CRD."""
        return await self.get(f"{CRDS}/{kind.name}")

    async def stored_versions_of(self, kind: CustomKind) -> list[str]:
        """status.storedVersions of the CRD."""
        found: list[str] = (await self.definition(kind))["status"]["storedVersions"]
        return found

    def stored(self, kind: CustomKind) -> dict[str, int]:
        """How many objects etcd stores at which version."""
        found = self.etcd.stored_versions(kind.group, kind.plural)
        return {each.rpartition("/")[2]: number for each, number in found.items()}

    async def wait_until_stored(self, kind: CustomKind, version: str, at_least: int) -> None:
        """Returns when etcd stores that many objects at that version."""

        async def look() -> bool:
            return self.stored(kind).get(version, 0) >= at_least

        await eventually(look, otherwise=lambda: f"etcd holds {self.stored(kind)} of {kind.name}")

    async def resource_versions(self, kind: CustomKind) -> dict[str, str]:
        """The resourceVersion of each object by name; unchanged if an object has not been written."""
        body = await self.client.request("GET", kind.path(), accept=METADATA_ONLY_LIST)
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in body["items"]}

    async def create_objects(
        self,
        kind: CustomKind,
        count: int,
        *,
        version: str | None = None,
        prefix: str = "db",
        namespace: str = "default",
        **spec: Any,
    ) -> list[str]:
        """Creates `prefix-00000`, …, many concurrently; returns the names. Keywords are fields of spec."""
        names = [f"{prefix}-{number:05d}" for number in range(count)]
        await self.create_instances(
            kind, (kind.instance(each, version=version, namespace=namespace, **spec) for each in names)
        )
        return names

    async def create_instances(self, kind: CustomKind, instances: Iterable[Mapping[str, Any]]) -> None:
        """Creates objects of a kind, many concurrently.

        With server-side apply, because the API server delays a POST for two seconds after a CRD's creation.
        """

        async def create(body: Mapping[str, Any]) -> None:
            metadata, version = body["metadata"], body["apiVersion"].rpartition("/")[2]
            path = kind.path(metadata["name"], version=version, namespace=metadata.get("namespace", ""))
            await self._apply_when_served(path, body)

        await each_of(instances, create)

    async def delete_objects(
        self, kind: CustomKind, names: Iterable[str], *, namespace: str = "default"
    ) -> None:
        """Deletes objects, many concurrently."""

        async def delete(name: str) -> None:
            await self.delete(kind.path(name, namespace=namespace))

        await each_of(names, delete)

    async def _apply_when_served(self, path: str, body: Mapping[str, Any]) -> None:
        """Applies an object once its version's storage is ready; before, the server returns 404 or 429."""
        content = orjson.dumps(body)

        async def attempt() -> bool:
            answer = await self.client.send(
                "PATCH", f"{path}?fieldManager={FIELD_MANAGER}", content=content, content_type=APPLY_PATCH
            )
            if answer.code >= 400 and answer.code not in (404, 429):
                raise ApiError(answer.code, answer.json())
            return answer.code < 400

        await eventually(attempt, otherwise=lambda: f"{path} is not served")

    # Permissions

    async def opt_in(
        self, group: str, *resources: str, verbs: Sequence[str] = ("get", "list", "patch")
    ) -> None:
        """Lets the operator rewrite an API group, or only these resources of it; waits until it may."""
        name = f"test-rewrite-{group or 'core'}"
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-rewriter": "true"}},
            "rules": [
                {
                    "apiGroups": [group],
                    "resources": list(resources) or ["*"],
                    "verbs": list(verbs),
                }
            ],
        }
        await self.apply(f"{CLUSTER_ROLES}/{name}", role)
        self.cleans_up(f"{CLUSTER_ROLES}/{name}")
        await self._until_known(group, resources, verbs, allowed=True)

    async def opt_out(self, group: str, *resources: str) -> None:
        """Revokes that permission and waits until it is gone."""
        await self.delete(f"{CLUSTER_ROLES}/test-rewrite-{group or 'core'}")
        await self._until_known(group, resources, ("list", "patch"), allowed=False)

    async def _until_known(
        self, group: str, resources: Sequence[str], verbs: Sequence[str], *, allowed: bool
    ) -> None:
        rights = [Right(verb, group, each) for each in resources or ["anything"] for verb in verbs]
        await self.until_permitted(rights, allowed=allowed)

    async def until_permitted(self, rights: Sequence[Right], *, allowed: bool = True) -> None:
        """Returns when the API server grants the operator all of these rights, or none."""
        account = self.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, server=self._server)
        async with Client(Connection(account)) as operator:

            async def known() -> bool:
                missing = await missing_rights(operator, rights)
                return not missing if allowed else len(missing) == len(rights)

            await eventually(known, otherwise=lambda: f"the operator's rights have not changed: {rights}")

    # Migrations

    async def create_migration(
        self, name: str, resource: CustomKind | tuple[str, str], **spec: Any
    ) -> StorageMigration:
        """Requests a migration of a kind, or of (group, resource); keywords are fields of spec."""
        group, plural = (resource.group, resource.plural) if isinstance(resource, CustomKind) else resource
        body = {
            "apiVersion": API_VERSION,
            "kind": "StorageMigration",
            "metadata": {"name": name},
            "spec": {**self._template, "resource": {"group": group, "resource": plural}, **spec},
        }
        return StorageMigration.model_validate(await self.create(MIGRATIONS, body))

    async def migrate(
        self,
        name: str,
        resource: CustomKind | tuple[str, str],
        *,
        seconds: float = TIMEOUT_SECONDS,
        **spec: Any,
    ) -> StorageMigration:
        """Requests a migration and waits until it has succeeded."""
        await self.create_migration(name, resource, **spec)
        return await self.wait_for_condition(name, "Succeeded", "True", seconds=seconds)

    async def migration(self, name: str) -> StorageMigration:
        """The current migration."""
        return StorageMigration.model_validate(await self.get(f"{MIGRATIONS}/{name}"))

    async def patch_migration(self, name: str, **spec: Any) -> None:
        """Changes fields of spec."""
        await self.merge(f"{MIGRATIONS}/{name}", {"spec": spec})

    async def delete_migration(self, name: str) -> None:
        await self.delete(f"{MIGRATIONS}/{name}")

    async def wait_for_migration(
        self,
        name: str,
        holds: Callable[[StorageMigration], bool],
        what: str,
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> StorageMigration:
        """The migration as soon as that is true for it; fails with its status if it takes too long."""
        seen: list[StorageMigration] = []

        async def look() -> StorageMigration | None:
            found = await self.find(f"{MIGRATIONS}/{name}")
            if found is None:
                return None
            seen[:] = [StorageMigration.model_validate(found)]
            return seen[0] if holds(seen[0]) else None

        def otherwise() -> str:
            status = json.dumps(seen[0].status.to_object(), indent=1) if seen else "does not exist"
            return f"{name} is not {what} after {seconds:.0f} seconds; its status: {status}"

        return await eventually(look, seconds=seconds, otherwise=otherwise)

    async def wait_for_condition(
        self,
        name: str,
        type_: str,
        status: str,
        reason: str | None = None,
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> StorageMigration:
        """The migration as soon as it has that condition."""

        def holds(migration: StorageMigration) -> bool:
            found = find_condition(migration.status.conditions, type_)
            return found is not None and found.status == status and reason in (None, found.reason)

        what = f"{type_}={status}{f' ({reason})' if reason else ''}"
        return await self.wait_for_migration(name, holds, what, seconds=seconds)

    async def events(self, name: str, kind: str = "StorageMigration") -> list[tuple[str, str, str]]:
        """The Events about one of our objects, in order, as (type, reason, note)."""
        query = f"?fieldSelector=regarding.name%3D{name},regarding.kind%3D{kind}"
        found = await self.get(f"/apis/events.k8s.io/v1/namespaces/default/events{query}")
        items = sorted(found["items"], key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [(each["type"], each["reason"], each["note"]) for each in items]

    async def wait_for_event(self, name: str, type_: str, reason: str, kind: str = "StorageMigration") -> str:
        """The note of an Event about one of our objects, as soon as it exists: it follows the status."""
        seen: list[tuple[str, str, str]] = []

        async def look() -> str | None:
            seen[:] = await self.events(name, kind)
            return next((note for *found, note in seen if found == [type_, reason]), None)

        return await eventually(look, otherwise=lambda: f"no {type_} {reason} about {name}, but {seen}")


def condition(migration: StorageMigration, type_: str) -> Condition:
    """A condition that must exist."""
    found = find_condition(migration.status.conditions, type_)
    assert found is not None, f"{migration.metadata.name} has no condition {type_}"
    return found


async def each_of(items: Iterable[Any], work: Callable[[Any], Awaitable[None]]) -> None:
    """Processes each item, many concurrently; fails as soon as one fails."""
    iterator = iter(items)

    async def worker() -> None:
        for item in iterator:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
