"""A CRD on the real API server with objects, and its answers about them before and after a change."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.transport.client import Answer, ApiError, Client
from tests.cluster.harness.waiting import eventually

Json = Any
T = TypeVar("T")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT_ONCE = 8
MARKER = "rehearsalMarker"


@dataclass(slots=True)
class Seen:
    """The API server's answers about one object."""

    reads: dict[str, Answer] = field(default_factory=dict)
    writes: dict[str, Answer] = field(default_factory=dict)
    """Updates with what was read."""
    recreation: Answer | None = None
    """Of the object as sent again; 409 means that it would have been accepted."""
    recreated: Json = None
    """The response to that with another name."""


async def each_of(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Processes all items, some at a time."""
    queue = iter(items)

    async def some() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some())


class Scene:
    """One CRD with its objects; removed at the end."""

    def __init__(self, client: Client, crd: Json) -> None:
        self.client = client
        self.name: str = crd["metadata"]["name"]
        self.objects: list[Json] = []
        """As they were sent."""
        self._number = 0

    def marked(self, crd: Json) -> Json:
        """The CRD with a field that shows whether it is in effect."""
        self._number += 1
        made = copy.deepcopy(crd)
        for each in made["spec"]["versions"]:
            schema = each["schema"]["openAPIV3Schema"]
            schema["properties"] = {
                **(schema.get("properties") or {}),
                MARKER: {"type": "string", "enum": [f"m{self._number}"]},
            }
        return made

    async def put(self, marked: Json) -> ApiError | None:
        """Creates the CRD or replaces its spec, and waits until it is in effect; or returns the rejection."""
        live = await get_definition_object(self.client, self.name)
        if live is None:
            try:
                await self.client.request("POST", CRDS, marked)
            except ApiError as error:
                return error
        else:
            refusal = await eventually(lambda: self._replace(marked))
            if isinstance(refusal, ApiError):
                return refusal
        await self._in_force(marked)
        return None

    async def _replace(self, marked: Json) -> ApiError | bool:
        live = await self.client.request("GET", f"{CRDS}/{self.name}")
        try:
            await self.client.request("PUT", f"{CRDS}/{self.name}", {**live, "spec": marked["spec"]})
        except ApiError as error:
            # 409: the API server sets conditions at the same time.
            return False if error.code == 409 else error
        return True

    async def _in_force(self, marked: Json) -> None:
        spec = marked["spec"]
        served = next(each for each in spec["versions"] if each["served"])
        marker = served["schema"]["openAPIV3Schema"]["properties"][MARKER]["enum"][0]
        probe = {
            "apiVersion": f"{spec['group']}/{served['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": "probe"},
            MARKER: "none",
        }
        content = orjson.dumps(probe)
        path = _collection(spec, served["name"], "default" if spec["scope"] == "Namespaced" else "")

        async def look() -> bool:
            answer = await self.client.send("POST", f"{path}?dryRun=All", content=content)
            return answer.code == 422 and f'\\"{marker}\\"'.encode() in answer.content

        await eventually(look, otherwise=lambda: f"{self.name} does not become the one with {marker}")

    async def create(self, crd: Json, objects: Sequence[Json]) -> None:
        """Really creates objects, except those that the API server rejects."""
        status = {
            each["name"]: (each.get("subresources") or {}).get("status") for each in crd["spec"]["versions"]
        }

        async def one(obj: Json) -> None:
            version = obj["apiVersion"].rpartition("/")[2]
            path = _collection(crd["spec"], version, obj["metadata"].get("namespace", ""))
            answer = await self.client.send("POST", path, content=orjson.dumps(obj))
            if answer.code != 201:
                return
            if status.get(version) is not None and "status" in obj:
                made = {**answer.json(), "status": obj["status"]}
                at = f"{path}/{obj['metadata']['name']}/status"
                await self.client.send("PUT", at, content=orjson.dumps(made))
            self.objects.append(obj)

        await each_of(objects, one)

    async def views(self, crd: Json, version: str) -> dict[str, Json]:
        """The objects as read at a version, by name; without unreadable ones."""
        found: dict[str, Json] = {}

        async def one(obj: Json) -> None:
            answer = await self._get(crd, obj, version)
            if answer.code == 200:
                found[obj["metadata"]["name"]] = answer.json()

        await each_of(self.objects, one)
        return found

    async def _get(self, crd: Json, obj: Json, version: str) -> Answer:
        return await self.client.send("GET", _path(crd["spec"], version, obj))

    async def look(self, crd: Json, sent: Mapping[str, Json]) -> dict[str, Seen]:
        """The current answers about all objects. `sent` is what is sent again of each."""
        found: dict[str, Seen] = {}
        versions = [each["name"] for each in crd["spec"]["versions"] if each["served"]]

        async def one(obj: Json) -> None:
            seen = found[obj["metadata"]["name"]] = Seen()
            for version in versions:
                read = seen.reads[version] = await self._get(crd, obj, version)
                if read.code == 200:
                    path = _path(crd["spec"], version, obj)
                    seen.writes[version] = await self.client.send(
                        "PUT", f"{path}?dryRun=All", content=read.content
                    )
            anew = sent.get(obj["metadata"]["name"])
            if anew is not None:
                await self._recreate(crd, anew, seen)

        await each_of(self.objects, one)
        return found

    async def written(self, crd: Json, version: str, read_at: str) -> dict[str, Json]:
        """The objects after a real write without changes; without those for which it was rejected."""
        found: dict[str, Json] = {}

        async def one(obj: Json) -> None:
            read = await self._get(crd, obj, version)
            if read.code == 200:
                path = _path(crd["spec"], version, obj)
                answer = await self.client.send("PUT", path, content=read.content)
                after = await self._get(crd, obj, read_at)
                if answer.code == after.code == 200:
                    found[obj["metadata"]["name"]] = after.json()

        await each_of(self.objects, one)
        return found

    async def _recreate(self, crd: Json, anew: Json, seen: Seen) -> None:
        version = anew["apiVersion"].rpartition("/")[2]
        path = _collection(crd["spec"], version, anew["metadata"].get("namespace", ""))
        seen.recreation = await self.client.send("POST", f"{path}?dryRun=All", content=orjson.dumps(anew))
        if seen.recreation.code == 409:
            other = {**anew, "metadata": {**anew["metadata"], "name": "another"}}
            answer = await self.client.send("POST", f"{path}?dryRun=All", content=orjson.dumps(other))
            seen.recreated = answer.json() if answer.code == 201 else None

    async def delete(self) -> None:
        """Deletes the CRD and its objects."""
        live = await get_definition_object(self.client, self.name)
        if live is None:
            return
        for each in live["spec"]["versions"]:
            each["schema"] = {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            }
            for key in ("subresources", "selectableFields"):
                each.pop(key, None)
        # With the schema under test, the server may be unable to read them, and then never deletes them.
        await eventually(lambda: self._replace(live))
        await self.client.send("DELETE", f"{CRDS}/{self.name}")


def _collection(spec: Json, version: str, namespace: str) -> str:
    space = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{spec['group']}/{version}{space}/{spec['names']['plural']}"


def _path(spec: Json, version: str, obj: Json) -> str:
    metadata = obj["metadata"]
    name = quote(metadata["name"], safe="")
    return f"{_collection(spec, version, metadata.get('namespace', ''))}/{name}"
