"""Real CRDs with several versions that differ, each in the test's own group, and rules between them.

The CRDs are those of the directory in CRDKEEPER_CORPUS. The rules are ours: `corpusrules`.
"""

import asyncio
import copy
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError, Client
from crdkeeper.core.conversion.narrowing import narrowed
from crdkeeper.core.conversion.notes import without_notes
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.samples import samples
from tests.cluster.conversion.rules import ConversionWebhook
from tests.cluster.harness.waiting import eventually

Json = dict[str, Any]
_T = TypeVar("_T")

CORPUS = os.environ.get("CRDKEEPER_CORPUS", "")
RULES = sorted((Path(__file__).parent / "corpusrules").glob("*.yaml"))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT_ONCE = 16
MADE_UP = 120
"""Generated objects of a version, to choose from: CEL rules reject many."""


class Pair:
    """A CRD and the rules between its versions."""

    def __init__(self, rules: Path, group: str) -> None:
        self.rules: Json = yaml.safe_load(rules.read_text())
        original = self.rules["metadata"]["name"]
        (file,) = Path(CORPUS).rglob(f"{original}.yaml")
        definition: Json = yaml.safe_load(file.read_text())
        self.group = group
        self.plural = definition["spec"]["names"]["plural"]
        self.name = f"{self.plural}.{group}"
        self.kind: str = definition["spec"]["names"]["kind"]
        self.rules["metadata"]["name"] = self.name
        self.rules["spec"]["resource"]["group"] = group
        self.hub: str = self.rules["spec"]["hub"]
        self._definition = {
            "apiVersion": definition["apiVersion"],
            "kind": definition["kind"],
            "metadata": {"name": self.name},
            "spec": {**definition["spec"], "group": group},
        }
        self.schemas = schemas_of(self._definition)
        self.versions = tuple(self.schemas)
        self._spec = VersionConversionSpec.model_validate(self.rules["spec"])
        made = compile_conversion(self._spec, self.schemas)
        assert isinstance(made, Conversion), made
        self.conversion = made

    def definition(self, storage: str, client_config: Json | None = None) -> Json:
        """The CRD with this storage version; all versions are served, through that webhook."""
        made = copy.deepcopy(self._definition)
        for version in made["spec"]["versions"]:
            version |= {"served": True, "storage": version["name"] == storage}
        if client_config is not None:
            webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
            made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return made

    def generated(self, version: str, number: int) -> list[Json]:
        """As many objects that the version's schema and CEL rules accept, with all possible fields."""
        admission = ObjectSchema.of(self.schemas[version])
        contents = samples(narrowed(self._spec, self.schemas, version), MADE_UP)
        made = [
            admission.admit(self.object(version, f"{version}-{i}", each)) for i, each in enumerate(contents)
        ]
        # With defaults: what is sent must come back.
        good = [(each.object, _fields(each.object)) for each in made if each.accepted]
        found: list[Json] = []
        seen: set[str] = set()
        while good and len(found) < number:
            value, fields = max(good, key=lambda each: len(each[1] - seen))
            good.remove((value, fields))
            found.append(value)
            seen |= fields
        return found

    def may_be_stored(self, value: Json, version: str) -> bool:
        """Whether an object is also valid at that version: it may lack required fields there."""
        admitted = ObjectSchema.of(self.schemas[version]).admit(self.conversion.convert(value, version))
        return admitted.accepted is True

    def object(self, version: str, name: str, content: Json) -> Json:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": self.kind,
            "metadata": {"name": name, "namespace": "default"},
            **content,
        }

    def path(self, version: str, name: str = "") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/default/{self.plural}"
        return f"{base}/{name}" if name else base


class CorpusWebhook(ConversionWebhook):
    """`crdkeeper webhook` with all rules of the corpus."""

    def __init__(self, directory: Path, pairs: Iterable[Pair]) -> None:
        self._pairs = list(pairs)
        super().__init__(directory, self._pairs[0].group)

    def write_rules(self, rules: object) -> None:
        for pair in self._pairs:
            documents = [pair.definition(pair.hub), pair.rules]
            (self.rules / f"{pair.plural}.yaml").write_text(
                yaml.safe_dump_all(json.loads(json.dumps(documents)))
            )

    def client_config_of(self, pair: Pair) -> Json:
        """How the API server reaches it."""
        config = self.client_config
        return {**config, "url": f"https://127.0.0.1:{self.port}/convert/{pair.name}"}


class Objects:
    """A CRD of the corpus in the cluster, and its objects."""

    def __init__(self, client: Client, pair: Pair, webhook: CorpusWebhook) -> None:
        self.client, self.pair, self._webhook = client, pair, webhook

    async def store(self, version: str) -> None:
        """Apply the CRD with this storage version, and wait until objects are stored by it."""
        body = self.pair.definition(version, self._webhook.client_config_of(self.pair))
        path = f"{CRDS}/{self.pair.name}?fieldManager=test&force=true"
        await self.client.request("PATCH", path, body, content_type="application/apply-patch+yaml")

        async def served() -> bool:
            found = await self.client.request("GET", f"{CRDS}/{self.pair.name}")
            conditions = {
                each["type"]: each["status"] for each in (found.get("status") or {}).get("conditions") or []
            }
            if conditions.get("Established") != "True":
                return False
            return all([await self._answers(each) for each in self.pair.versions])

        await eventually(served)

    async def _answers(self, version: str) -> bool:
        try:
            await self.client.request("GET", f"{self.pair.path(version)}?limit=1")
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    async def remove(self) -> None:
        """Delete the CRD with its objects, and wait until they are gone."""
        path = f"{CRDS}/{self.pair.name}"
        await self.client.send("DELETE", path)

        async def gone() -> bool:
            return (await self.client.send("GET", path)).code == 404

        # Thousands of objects may have to be deleted first.
        await eventually(gone, seconds=120)

    async def create(self, value: Json) -> Json:
        """Create an object and its status; returns the server's previous view of both."""
        version, name = value["apiVersion"].rpartition("/")[2], value["metadata"]["name"]
        made = await self.client.request("POST", self.pair.path(version), value)
        if "status" in value:
            made = await self.client.request(
                "PUT", f"{self.pair.path(version, name)}/status", {**made, "status": value["status"]}
            )
        assert content(made) == content(value)
        return made

    async def get(self, version: str, name: str) -> Json:
        return await self.client.request("GET", self.pair.path(version, name))

    async def list(self, version: str) -> Json:
        return await self.client.request("GET", self.pair.path(version))

    async def put(self, value: Json, *, status: bool = False) -> Json:
        version, name = value["apiVersion"].rpartition("/")[2], value["metadata"]["name"]
        path = self.pair.path(version, name) + ("/status" if status else "")
        return await self.client.request("PUT", path, value)

    async def patch(self, version: str, name: str, body: Json) -> Json:
        path = self.pair.path(version, name)
        return await self.client.request("PATCH", path, body, content_type=MERGE_PATCH)


def _fields(value: Any, at: str = "") -> set[str]:
    """The paths of all that is in an object."""
    if isinstance(value, dict):
        return {at}.union(*(_fields(each, f"{at}.{key}") for key, each in value.items()))
    if isinstance(value, list):
        return {at}.union(*(_fields(each, f"{at}[]") for each in value))
    return {at}


@asynccontextmanager
async def watching(client: Client, path: str, version: str) -> AsyncIterator[asyncio.Queue[Json]]:
    """The events of a watch from now on."""
    events: asyncio.Queue[Json] = asyncio.Queue()

    async def read() -> None:
        async for line in client.lines(f"{path}?watch=true&resourceVersion={version}"):
            await events.put(json.loads(line))

    task = asyncio.create_task(read())
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.wait([task])


def content(value: Json) -> Json:
    """The user's content: spec, status, labels and annotations, without notes."""
    bare = without_notes(value)
    metadata = bare.get("metadata", {})
    return {
        **{key: each for key, each in bare.items() if key not in ("apiVersion", "kind", "metadata")},
        **{key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)},
    }


async def in_parallel(work: Iterable[Callable[[], Awaitable[_T]]]) -> list[_T]:
    """Run all of them, a few at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(each: Callable[[], Awaitable[_T]]) -> _T:
        async with turn:
            return await each()

    return list(await asyncio.gather(*map(one, work)))
