"""What tests of composed objects share: a definition, its Compositions, and what becomes of composites."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError
from tests.cluster.composition.authoring import (
    QUIET_SECONDS,
    ROLES,
    Author,
    Definition,
    condition,
    spec_with,
)
from tests.cluster.composition.designing import Designer
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy
from tests.cluster.harness.waiting import TIMEOUT_SECONDS
from tests.unit.core.composition.documents import schema, version

Json = Any
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
SECRETS: Final = "/api/v1/namespaces/default/secrets"
PODS: Final = "/api/v1/namespaces/default/pods"
FINALIZER: Final = "crdkeeper.dev/objects"
_VERBS: Final = ["get", "list", "watch", "create", "patch", "delete"]
FIELDS: Final = {"names": {"type": "array", "items": {"type": "string"}}, "enabled": {"type": "boolean"}}


def secret(**more: Any) -> Json:
    """A resource: an immutable Secret."""
    template = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "${composite.metadata.name}"},
        "immutable": True,
        "stringData": {"engine": "${composite.spec.engine}"},
    }
    return {"name": "password", "template": template, **more}


def config_map(name: str, *, called: str = "", **more: Any) -> Json:
    """A resource: a ConfigMap, with fields of the resource in capitals and data otherwise."""
    own = {key[0].lower() + key[1:]: each for key, each in more.items() if key[0].isupper()}
    data = {key: each for key, each in more.items() if not key[0].isupper()}
    template = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": called or "${composite.metadata.name}-" + name},
        "data": data,
    }
    return {"name": name, "template": template, **own}


def replaced(name: str, **data: Any) -> Json:
    """A resource: an immutable ConfigMap, which is deleted and created again to be changed."""
    made = config_map(name, Recreate=True, **data)
    made["template"]["immutable"] = True
    return made


def entries(found: Json) -> list[str]:
    """The objects that a composite's status lists."""
    state = (found.get("status") or {}).get("crdkeeper") or {}
    return [each["object"]["name"] for each in state.get("resources") or ()]


class Composing:
    """A user of one composite API."""

    def __init__(self, author: Author, group: str) -> None:
        self.author = author
        self.definition = Definition(group, "thing")
        self.designer = Designer(author, self.definition)
        self._made: set[str] = set()

    async def define(self, more: Json = None, status: Json = None, **spec: Any) -> None:
        """Apply the definition, with more fields and others of the status, and wait until it is served."""
        fields = spec_with("zone", properties={**spec_with("zone")["properties"], **FIELDS, **(more or {})})
        properties = {"address": {"type": "string"}, **(status or {})}
        versions = [version(of=schema(fields, {"type": "object", "properties": properties}))]
        if spec.get("scope") == "Cluster":
            self.definition.objects = f"/apis/{self.definition.group}/v1/{self.definition.plural}"
        await self.author.apply(self.definition, versions=versions, **spec)
        await self.author.ready(self.definition)

    async def compose(self, *resources: Json, which: str = "main", number: int = 1, **spec: Any) -> None:
        """Apply a Composition, and wait for its revision."""
        await self.designer.put(which, *resources, **spec)
        await self.designer.ready(which, number)

    async def create(self, name: str, metadata: Json = None, **spec: Any) -> Json:
        """Create or change a composite."""
        self._made.add(name)
        value = {
            **self.definition.composite(name, **(metadata or {})),
            "spec": {"engine": "MySQL", **spec},
        }
        return await self.author.put(self.path(name), value)

    def path(self, name: str) -> str:
        """A composite."""
        return f"{self.definition.objects}/{name}"

    async def delete(self, name: str, **options: Any) -> None:
        """Delete a composite; does not wait."""
        await self.author.delete(self.path(name), **options)

    async def says(
        self, name: str, type_: str, status: str, reason: str, *texts: str, seconds: float = TIMEOUT_SECONDS
    ) -> Json:
        """The composite once a condition about its generation is so."""

        def holds(found: Json) -> bool:
            if (found.get("status") or {}).get("observedGeneration") != found["metadata"]["generation"]:
                return False
            said = condition(found, type_)
            return said[:2] == (status, reason) and all(each in said[2] for each in texts)

        return await self.until(name, holds, seconds=seconds)

    async def ready(self, name: str) -> Json:
        """The composite once all of its objects are ready."""
        return await self.says(name, "Ready", "True", "Available")

    async def runs_by(self, name: str, number: int, which: str = "main") -> Json:
        """The composite once it is ready by a revision.

        Also a composite that is created later may be ready by the revision before: what makes revisions and
        what looks after composites hear of them by different watches.
        """
        revision = f"{self.designer.name(which)}-{number}"
        await self.until(name, lambda found: used(found) == revision)
        return await self.ready(name)

    async def until(self, name: str, holds: Callable[[Json], bool], seconds: float = TIMEOUT_SECONDS) -> Json:
        """The composite once this is true of it."""
        last: list[Json] = []

        async def look() -> Json:
            found = await self.author.get(self.path(name))
            last[:] = [found]
            return found if found is not None and holds(found) else None

        return await eventually(
            look, seconds=seconds, otherwise=lambda: f"{name}: {(last[0] or {}).get('status')}"
        )

    async def data(self, name: str) -> Json:
        """The data of a ConfigMap; None if there is none."""
        found = await self.author.get(f"{CONFIG_MAPS}/{name}")
        return None if found is None else found.get("data", {})

    async def has(self, name: str, **data: str) -> None:
        """Wait until a ConfigMap has this data."""
        last: list[Json] = []

        async def look() -> bool:
            last[:] = [await self.data(name)]
            return bool(last[0] == data)

        await eventually(look, otherwise=lambda: f"{name} has {last[0]}, not {data}")

    async def gone(self, name: str) -> None:
        """Wait until there is no such ConfigMap."""
        await self.author.gone(f"{CONFIG_MAPS}/{name}")

    async def patch(self, path: str, value: Json, manager: str = "someone") -> Json:
        """Change an object as another client."""
        return await self.author.client.request(
            "PATCH", f"{path}?fieldManager={manager}", value, content_type=MERGE_PATCH
        )

    async def clean_up(self) -> None:
        """Delete all composites, then the Compositions, and what is left of their objects.

        Also after a test that failed: other tests use the same names.
        """
        await self._free_objects()
        for name in self._made:
            await self.delete(name)
        try:
            for name in self._made:
                await self.author.gone(self.path(name))
        finally:
            for name in self._made:
                await self.author.unhold(self.path(name))
            for path in await self._free_objects():
                await self.author.delete(path)
            await self.designer.clean_up()

    async def _free_objects(self) -> list[str]:
        """Take all finalizers off the objects that are called as composites are; returns their paths."""
        found = []
        for collection in (CONFIG_MAPS, SECRETS):
            for each in (await self.author.get(collection))["items"]:
                name = each["metadata"]["name"]
                if any(name == made or name.startswith(f"{made}-") for made in self._made):
                    found.append(f"{collection}/{name}")
                    if each["metadata"].get("finalizers"):
                        await self.author.unhold(found[-1])
        return found


@asynccontextmanager
async def composing_of(author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API; cleans up at the end, also after a failure."""
    composing = Composing(author, group)
    try:
        yield composing
    finally:
        await composing.clean_up()


async def heard(composing: Composing, proxy: FaultProxy, name: str, *objects: str) -> None:
    """Return once the composer has heard of all that was written of a composite and its objects, and rests.

    Events come in order, so that it has heard of the rest when a last change leads to a look.
    """
    since, path = len(proxy.requests), composing.path(name)
    for each in (path, *objects):
        await composing.patch(each, {"metadata": {"labels": {"heard": f"{since}"}}})

    def asked() -> list[str]:
        return [each.path for each in proxy.requests[since:] if f"/{name}" in each.path]

    async def looked() -> bool:
        return path in asked()

    async def rests() -> bool:
        before = len(asked())
        await asyncio.sleep(QUIET_SECONDS)
        return len(asked()) == before

    await eventually(looked)
    await eventually(rests)
    await proxy.until_quiet(QUIET_SECONDS)


async def run_pods(composing: Composing, selector: str, **status: Any) -> None:
    """Report the pods that labels select as ready, or with another status: there is no kubelet."""
    wanted = status or {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for each in (await composing.author.get(f"{PODS}?labelSelector={quote(selector, safe='')}"))["items"]:
        # Those of before may be gone meanwhile.
        with suppress(ApiError):
            path = f"{PODS}/{each['metadata']['name']}/status"
            await composing.patch(path, {"status": wanted}, manager="kubelet")


def used(found: Json) -> str:
    """The revision in a composite's status."""
    state = (found.get("status") or {}).get("crdkeeper") or {}
    return str(state.get("revision"))


def pinned(found: Json) -> str:
    """The revision that a composite names."""
    given = found["spec"].get("crdkeeper") or {}
    return str((given.get("compositionRevisionRef") or {}).get("name", ""))


@asynccontextmanager
async def rights_on(author: Author, name: str, *rules: Json) -> AsyncIterator[None]:
    """The composer may do this, until the end of the block."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-composer": "true"}},
        "rules": list(rules),
    }
    await author.put(f"{ROLES}/{name}", role)

    async def aggregated() -> bool:
        found = (await author.get(f"{ROLES}/crdkeeper-composites")).get("rules") or ()
        return all(each in found for each in rules)

    try:
        await eventually(aggregated)
        yield
    finally:
        # A right that is left lets other tests fail.
        await author.delete(f"{ROLES}/{name}")


def all_of(group: str, *resources: str) -> Json:
    """A rule that allows everything that composing needs."""
    return {"apiGroups": [group], "resources": list(resources or ("*",)), "verbs": _VERBS}
