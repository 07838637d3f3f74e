"""What the composer's tests of faults and scale share: many definitions, and what a user sees of them."""

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, each_of, eventually
from tests.cluster.harness.waiting import TIMEOUT_SECONDS
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import SPEC, schema, version

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITIONS = "/apis/crdkeeper.dev/v1alpha1/compositeresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ACCOUNT = "crdkeeper-composer"
FINALIZER = "crdkeeper.dev/composites"
OWNER = "crdkeeper.dev/definition-uid"
QUIET_SECONDS = 3.0
WINDOWS = 5
WORKING = ("True", "WatchingCompositeResource")
CLOSED = "is being deleted: its API takes no new objects"
"""What the API server says of a new composite while the definition is deleted."""


def spec_with(*fields: str, **more: Any) -> Json:
    """The schema of spec with these optional fields besides."""
    return {
        **SPEC,
        "properties": {**SPEC["properties"], **{each: {"type": "string"} for each in fields}},
        **more,
    }


class Definition:
    """One definition of a group, with its names and paths."""

    def __init__(self, group: str, which: str) -> None:
        self.group = group
        self.plural = f"{which}s"
        self.kind = which.capitalize()
        self.name = f"{self.plural}.{group}"
        self.path = f"{DEFINITIONS}/{self.name}"
        self.crd = f"{CRDS}/{self.name}"
        self.objects = f"/apis/{group}/v1/namespaces/default/{self.plural}"

    def document(self, *fields: str, metadata: Json = None, **spec: Any) -> Json:
        """The definition with these optional fields."""
        return {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": self.name, **(metadata or {})},
            "spec": {
                "group": self.group,
                "names": {"kind": self.kind, "plural": self.plural},
                "versions": [version(of=schema(spec_with(*fields)))],
                **spec,
            },
        }

    def composite(self, name: str, **metadata: Any) -> Json:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": self.kind,
            "metadata": {"name": name, **metadata},
            "spec": {"engine": "MySQL"},
        }


class Author:
    """A user who writes definitions and composites, and looks at what comes of them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def get(self, path: str) -> Json:
        """An object; None if there is none."""
        try:
            return await self.client.request("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def apply(self, definition: Definition, *fields: str, **spec: Any) -> Json:
        """Apply the definition with these optional fields."""
        return await self.put(definition.path, definition.document(*fields, **spec))

    async def put(self, path: str, value: Json) -> Json:
        """Server-side apply."""
        return await self.client.request(
            "PATCH", f"{path}?fieldManager=user&force=true", value, content_type=APPLY_PATCH
        )

    async def delete(self, path: str, **options: Any) -> None:
        """Delete an object if it is there; does not wait."""
        try:
            await self.client.request("DELETE", path, options or None)
        except ApiError as error:
            if error.code != 404:
                raise

    async def unhold(self, path: str) -> None:
        """Take all finalizers off an object if it is there."""
        free: Json = {"metadata": {"finalizers": None}}
        try:
            await self.client.request("PATCH", path, free, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.code != 404:
                raise

    async def gone(self, path: str, seconds: float = TIMEOUT_SECONDS) -> None:
        """Returns once there is no such object."""
        last: list[Json] = []

        async def look() -> bool:
            last[:] = [await self.get(path)]
            return last[0] is None

        await eventually(look, seconds=seconds, otherwise=lambda: f"{path} is still there: {last}"[:4000])

    async def ready(
        self,
        definition: Definition,
        status: str = WORKING[0],
        reason: str = WORKING[1],
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> Json:
        """The definition once Ready says so for its generation."""
        last: list[Json] = []

        async def look() -> Json:
            found = await self.get(definition.path)
            last[:] = [
                found and {**found, "metadata": {**found["metadata"], "managedFields": None}, "spec": None}
            ]
            if (
                found is None
                or (found.get("status") or {}).get("observedGeneration") != found["metadata"]["generation"]
            ):
                return None
            return found if condition(found, "Ready")[:2] == (status, reason) else None

        return await eventually(
            look, seconds=seconds, otherwise=lambda: f"{definition.name} is not {status} {reason}: {last}"
        )

    async def says(
        self, definition: Definition, type_: str, *texts: str, seconds: float = TIMEOUT_SECONDS
    ) -> str:
        """The message of a condition once it contains these texts."""
        last: list[Json] = []

        async def look() -> str:
            last[:] = [await self.get(definition.path)]
            message = condition(last[0], type_)[2] if last[0] else ""
            return message if all(each in message for each in texts) else ""

        return await eventually(
            look,
            seconds=seconds,
            otherwise=lambda: f"{type_} does not say {texts}: {(last[0] or {}).get('status')}",
        )

    async def fields(self, definition: Definition) -> list[str]:
        """The fields of spec in the CRD."""
        found = await self.get(definition.crd)
        if found is None:
            return []
        root = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        return sorted(set(root) - {*SPEC["properties"], "crdkeeper"})

    async def make_composites(self, definition: Definition, names: Sequence[str], **metadata: Any) -> None:
        """Create composites, many at once; waits until the API is served, and takes new ones again.

        The API server hears of an API that is opened some time after whoever reads the CRD.
        """

        async def make(name: str) -> None:
            content = orjson.dumps(definition.composite(name, **copy.deepcopy(metadata)))

            async def attempt() -> bool:
                answer = await self.client.send(
                    "PATCH",
                    f"{definition.objects}/{name}?fieldManager=user",
                    content=content,
                    content_type=APPLY_PATCH,
                )
                closed = answer.code == 422 and CLOSED.encode() in answer.content
                if answer.code >= 400 and answer.code not in (404, 429) and not closed:
                    raise ApiError(answer.code, answer.json())
                return answer.code < 400

            await eventually(attempt, otherwise=lambda: f"{definition.name} takes no {name}")

        await each_of(names, make)

    async def names(self, definition: Definition) -> list[str]:
        """The composites that exist."""
        found = await self.get(f"{definition.objects}?limit=10000")
        return [each["metadata"]["name"] for each in found["items"]] if found else []


async def stay(author: Author, *paths: str, seconds: float) -> None:
    """Checks that objects come to rest: that they are, at last, for so long as they were.

    On a busy machine, what an earlier change leads to may come late; what never ends comes again and again.
    """
    last: list[list[Json]] = []
    for _ in range(WINDOWS):
        last.append([await author.get(each) for each in paths])
        await asyncio.sleep(seconds)
        if [await author.get(each) for each in paths] == last[-1]:
            return
    raise AssertionError(f"no rest of {seconds:.0f} seconds in {WINDOWS} times that: {last}"[:20_000])


def condition(found: Mapping[str, Any], type_: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of a definition."""
    for each in (found.get("status") or {}).get("conditions") or ():
        if each["type"] == type_:
            return each["status"], each["reason"], each["message"]
    return "", "", ""


@asynccontextmanager
async def author_of(cluster: Cluster, group: str) -> AsyncIterator[Author]:
    """An author in a group whose composites the composer may list, watch and delete; cleans up at the end."""
    async with Client(Connection(cluster.kubeconfig)) as client:
        author = Author(client)
        role = f"{ROLES}/composer-{group}"
        await author.put(
            role,
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {
                    "name": f"composer-{group}",
                    "labels": {"rbac.crdkeeper.dev/aggregate-to-composer": "true"},
                },
                "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["list", "watch", "delete"]}],
            },
        )

        async def aggregated() -> bool:
            rules = (await author.get(f"{ROLES}/crdkeeper-composites")).get("rules") or ()
            return any(group in each["apiGroups"] for each in rules)

        try:
            await eventually(aggregated)
            yield author
        finally:
            await _clean_up(author, group)
            await author.delete(role)


async def _clean_up(author: Author, group: str) -> None:
    """Remove all definitions and CRDs of the group, whatever holds them."""
    for collection in (DEFINITIONS, CRDS):
        for each in (await author.get(collection))["items"]:
            if each["spec"]["group"] == group:
                path = f"{collection}/{each['metadata']['name']}"
                if collection == DEFINITIONS:
                    await author.unhold(path)
                await author.delete(path)


async def until_denied(author: Author, group: str, resource: str, *verbs: str) -> None:
    """Returns once the API server lets the composer do none of this: roles are aggregated some time later."""
    plural, _, subresource = resource.partition("/")

    async def denied() -> bool:
        for verb in verbs:
            of = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", "resourceAttributes": of},
            }
            if (await author.client.request("POST", REVIEWS, review))["status"]["allowed"]:
                return False
        return True

    await eventually(denied, otherwise=lambda: f"the composer may still do one of {verbs} with {resource}")


@asynccontextmanager
async def without(author: Author, verb: str, resource: str) -> AsyncIterator[None]:
    """The composer's own role lacks a verb on a resource, until the end of the block."""
    role = f"{ROLES}/crdkeeper-composer"
    rules = (await author.get(role))["rules"]
    concerned = [each for each in rules if resource in each["resources"]]
    fewer = [
        {**each, "verbs": [other for other in each["verbs"] if other != verb]} if each in concerned else each
        for each in rules
    ]
    await author.client.request("PATCH", role, {"rules": fewer}, content_type=MERGE_PATCH)
    try:
        await until_denied(author, concerned[0]["apiGroups"][0], resource, verb)
        yield
    finally:
        await author.client.request("PATCH", role, {"rules": rules}, content_type=MERGE_PATCH)


@asynccontextmanager
async def opted_in(author: Author, thing: Definition, *to: str) -> AsyncIterator[None]:
    """The operator may do this with the composites: read, rewrite or convert them."""
    of_group = {"apiGroups": [thing.group], "resources": ["*"]}
    crds = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
    rules: Json = {
        "reader": {**of_group, "verbs": ["get", "list"]},
        "rewriter": {**of_group, "verbs": ["get", "list", "patch"]},
        "converter": {**crds, "resourceNames": [thing.name], "verbs": ["patch"]},
    }
    for each in to:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"{each}-{thing.group}",
                "labels": {f"rbac.crdkeeper.dev/aggregate-to-{each}": "true"},
            },
            "rules": [rules[each]],
        }
        await author.put(f"{ROLES}/{each}-{thing.group}", role)
    try:
        yield
    finally:
        for each in to:
            await author.delete(f"{ROLES}/{each}-{thing.group}")
