"""The CRD of a CompositeResourceDefinition treats the user's part of an object as the user's own CRD does.

The cluster has two CRDs, each with many versions: one like those written by hand, and the one that crdkeeper
generates. They get the same objects, and must reject them with the same messages or store the same.
CRDKEEPER_COMPOSITES sets how many schemas are drawn, CRDKEEPER_CORPUS names a directory of further CRDs.
"""

import copy
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.composition.acceptance import accept, with_server_errors
from crdkeeper.core.composition.injected import may_default_status
from crdkeeper.core.composition.problem import ATOMIC, COUNTED, MAP, NOT_AN_OBJECT, ROOT, STATUS_REQUIRED
from tests.cluster.composition.schemas import (
    KIND,
    OPEN,
    PLURAL,
    RESERVED,
    composite_definition,
    corpus_schemas,
    definition,
    users_part,
    whole_schemas,
)
from tests.cluster.harness.waiting import eventually
from tests.cluster.objects.test_objects_agree import drawn_differently
from tests.cluster.objects.values import values
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_COMPOSITES", "30"))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VERSIONS = 20
"""At most, in one CRD."""
BYTES = 400_000
"""At most, of the schemas in one CRD with several: etcd takes 1.5 MiB."""
OBJECTS = 12
"""For each schema, of which half are tried as a status."""
TRAPS = {ATOMIC, COUNTED, MAP, NOT_AN_OBJECT, ROOT, STATUS_REQUIRED}
SHOWN = 10
TIMEOUT_SECONDS = 300 + 3 * COUNT

Json = Any


@dataclass(slots=True)
class Tally:
    """How it went."""

    schemas: int = 0
    trapped: int = 0
    objects: int = 0
    refused: int = 0
    statuses: int = 0
    updates: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.schemas} schemas, {self.trapped} more in a trap; {self.objects} objects and "
            f"{self.statuses} statuses ({self.refused} refused), {self.updates} updates; "
            f"{len(self.wrong)} disagree"
        )


class Pair:
    """The two CRDs in the cluster, with the same versions."""

    def __init__(self, client: Client, schemas: dict[str, Json]) -> None:
        unique = uuid.uuid4().hex[:8]
        self.client = client
        self.schemas = schemas
        # All is stored in a version that drops nothing.
        self.stored_in = {"v0": OPEN, **schemas}
        self.groups = (f"own-{unique}.example.com", f"made-{unique}.example.com")

    async def create(self) -> None:
        own = definition(self.groups[0], self.stored_in)
        judged = with_server_errors(accept(composite_definition(self.groups[1], self.stored_in)))
        assert judged.crd is not None and not judged.refused, judged.problems
        for crd in (own, judged.crd):
            answer = await self.client.send("POST", CRDS, content=orjson.dumps(crd))
            assert answer.code == 201, answer.content.decode()[:3000]
        for group in self.groups:
            await eventually(lambda group=group: self._established(group))  # type: ignore[misc]

    async def _established(self, group: str) -> bool:
        crd = await self.client.request("GET", f"{CRDS}/{PLURAL}.{group}")
        conditions = {each["type"]: each["status"] for each in (crd["status"].get("conditions") or ())}
        assert conditions.get("NonStructuralSchema") != "True", crd
        if conditions.get("Established") != "True":
            return False
        served = [
            await self.client.send("GET", f"/apis/{group}/{version}/{PLURAL}?limit=1")
            for version in self.schemas
        ]
        return all(each.code == 200 for each in served)

    async def send(self, method: str, version: str, rest: str, obj: Json) -> list[tuple[int, Json, str]]:
        """What each of the two answers: its code, what is said or stored, and all of it for people."""
        found = []
        for group in self.groups:
            content = orjson.dumps({**obj, "apiVersion": f"{group}/{version}"})
            path = f"/apis/{group}/{version}/{PLURAL}{rest}"
            answer = await self.client.send(method, path, content=content)
            found.append((answer.code, _said(answer.json()), answer.content.decode()[:1500]))
        return found

    async def stored(self, version: str, name: str) -> list[Json]:
        return [
            await self.client.request("GET", f"/apis/{group}/{version}/{PLURAL}/{name}")
            for group in self.groups
        ]

    async def delete(self) -> None:
        for group in self.groups:
            await self.client.send("DELETE", f"{CRDS}/{PLURAL}.{group}")


def _said(body: Json) -> Json:
    if body.get("kind") != "Status":
        return users_part(body)
    causes = (body.get("details") or {}).get("causes") or ()
    return sorted((each.get("field", ""), each.get("message", "")) for each in causes)


def _without_status(answer: tuple[int, Json, str]) -> tuple[int, Json, str]:
    """Of a new object, which has no status, but for the default that composites have."""
    code, said, text = answer
    return code, {key: each for key, each in said.items() if key != "status"} if code < 400 else said, text


@st.composite
def objects(draw: st.DrawFn, schema: Json) -> Json:
    """An object that may fit the schema; what is reserved is left out."""
    properties = {
        key: each
        for key, each in schema.get("properties", {}).items()
        if key not in ("metadata", "kind", "apiVersion")
    }
    obj = {key: draw(values(each)) for key, each in properties.items() if draw(st.integers(0, 9))}
    if draw(st.integers(0, 9)) == 0:
        obj["unknown"] = 1
        if "spec" in properties or "x-kubernetes-preserve-unknown-fields" in schema:
            obj.setdefault("spec", {"unknown": {"a": 1}})
    for part, names in RESERVED.items():
        if isinstance(obj.get(part), dict):
            obj[part] = {key: each for key, each in obj[part].items() if key not in names}
    return {**obj, "kind": KIND}


async def _accepted(client: Client, crd: Json) -> bool:
    """Whether the API server takes a CRD."""
    answer = await client.send("POST", f"{CRDS}?dryRun=All", content=orjson.dumps(crd))
    assert answer.code in (201, 422, 400), answer.content.decode()
    return answer.code == 201


async def _usable(client: Client, found: Sequence[Json], tally: Tally) -> list[Json]:
    """The schemas that are in no trap and that the server accepts, in a CRD written by hand.

    Of the CRD that is made, our judgement is the server's.
    """
    usable: list[Json] = []
    for schema in found:
        judged = accept(composite_definition("trial.example.com", {"v1": schema}))
        if judged.refused:
            assert {each.rule for each in judged.problems if each.refused} <= TRAPS, judged.problems
            tally.trapped += 1
            continue
        assert judged.crd is not None
        accepted = await _accepted(client, judged.crd)
        assert accepted is not with_server_errors(judged).refused, schema
        if accepted and await _accepted(client, definition("trial.example.com", {"v1": schema})):
            usable.append(schema)
    return usable


async def _compare(pair: Pair, version: str, number: int, tally: Tally) -> None:
    schema = pair.schemas[version]
    found = drawn_differently(objects(schema), OBJECTS, number)
    kept: Json = None

    def check(what: str, obj: Json, answers: list[tuple[int, Json, str]]) -> bool:
        (code, said, text), (other, other_said, other_text) = answers
        tally.refused += code >= 400
        if code == other and same(stored(said), stored(other_said)):
            return code < 400
        tally.wrong.append(
            f"{what}: {code} and {other}\n{text}\n{other_text}\nobject: {orjson.dumps(obj).decode()[:1500]}\n"
            f"schema: {orjson.dumps(schema).decode()[:3000]}\n"
        )
        return False

    for i, obj in enumerate(found):
        sent = {**obj, "metadata": {"name": f"{version}-{i}"}}
        tally.objects += 1
        answers = [_without_status(each) for each in await pair.send("POST", version, "?dryRun=All", sent)]
        if check("create", sent, answers) and kept is None:
            kept = sent
    if kept is None:
        return
    name = kept["metadata"]["name"]
    await pair.send("POST", version, "", kept)
    own, made = await pair.stored(version, name)
    default = {**(made.get("status") or {})} if isinstance(made.get("status"), dict) else {}
    if may_default_status(schema) and default.get("observedGeneration") != -1:
        tally.wrong.append(f"the status is {default} at first: {orjson.dumps(schema).decode()[:3000]}")
    changed = copy.deepcopy(kept)
    changed["metadata"]["labels"] = {"changed": "yes"}
    tally.updates += 1
    answers.clear()
    for each, group in zip((own, made), pair.groups, strict=True):
        each["metadata"]["labels"] = {"changed": "yes"}
        path = f"/apis/{group}/{version}/{PLURAL}/{name}?dryRun=All"
        answer = await pair.client.send("PUT", path, content=orjson.dumps(each))
        answers.append(_without_status((answer.code, _said(answer.json()), answer.content.decode()[:1500])))
    check("update", changed, answers)
    for obj in found:
        if isinstance(obj.get("status"), dict):
            tally.statuses += 1
            sent = {**kept, "status": obj["status"]}
            check("status", sent, await pair.send("PUT", version, f"/{name}/status?dryRun=All", sent))


def _batches(schemas: Sequence[Json]) -> Iterator[list[Json]]:
    """The schemas in lists that fit into a CRD."""
    batch: list[Json] = []
    size = 0
    for each in schemas:
        length = len(orjson.dumps(each))
        if batch and (len(batch) == VERSIONS or size + length > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += length
    if batch:
        yield batch


async def _compare_all(client: Client, schemas: Sequence[Json], number: int, tally: Tally) -> None:
    pair = Pair(client, {f"v{i + 1}": each for i, each in enumerate(schemas)})
    try:
        await pair.create()
        for i, version in enumerate(pair.schemas):
            await _compare(pair, version, number * 1000 + i, tally)
            tally.schemas += 1
    finally:
        await pair.delete()


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_the_users_part_is_treated_as_by_the_users_own_definition(plane: Cluster) -> None:
    tally = Tally()
    async with Client(Connection(plane.kubeconfig)) as client:
        of_others = await _usable(client, list(corpus_schemas()), tally)
        own: list[Json] = []
        for number in range(100):
            own += await _usable(client, drawn_differently(whole_schemas(), VERSIONS, 7 + number), tally)
            if len(own) >= COUNT:
                break
        every = of_others + own[:COUNT]
        # One version without a default for status is enough for none to have one.
        for alike in (True, False):
            some = [each for each in every if may_default_status(each) is alike]
            for number, batch in enumerate(_batches(some)):
                await _compare_all(client, batch, number, tally)
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    assert tally.schemas >= COUNT
    assert tally.trapped > COUNT * 0.1, tally
    sent = tally.objects + tally.statuses
    assert sent * 0.1 < tally.refused < sent * 0.9, tally
