"""We and the API server handle an object alike: reject it with the same message, or store the same.

Objects and updates of objects are sent as dry runs, for schemas of all kinds. CRDKEEPER_OBJECTS sets how
many, CRDKEEPER_CORPUS names a directory of CRDs whose schemas to use besides our own, CRDKEEPER_SEED selects
others.
"""

import asyncio
import copy
import os
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.objects.agreement import ask, disagreement, unknown_fields
from tests.cluster.objects.resource import Resource
from tests.cluster.objects.schemas import schemas
from tests.cluster.objects.values import changed, root_metadata, values
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_OBJECTS", "500"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
AT_ONCE = 8
RUN = 5
"""Examples in one run of hypothesis."""
SCHEMAS = 40
"""In one CRD."""
PER_SCHEMA = 40
"""Objects for each, half of them updates."""
UPDATES = 3
SHOWN = 15
STRICT = 5
"""One in this many accepted objects also has its unknown fields compared, which takes another request."""
TIMEOUT_SECONDS = 300 + COUNT // 10

METADATA: tuple[Any, ...] = (
    *({"name": each} for each in ("a.b-c", "A", "a..b", "x" * 254, "", "-a", 5, None)),
    *({"generateName": each} for each in ("a-", "a.b-", "A-", "a--", "-", "a/b", "x.-", "é-")),
    {},
    {"name": "a", "generateName": "B-"},
    {"name": "a", "creationTimestamp": "yesterday"},
    {"name": "a", "generation": "1"},
    {"name": "a", "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 5},
)
"""Possible names of an object, and what else the request decodes."""

Json = Any
Item = TypeVar("Item")


def drawn_differently(strategy: st.SearchStrategy[Any], count: int, salt: int) -> list[Any]:
    """So many different examples, the same ones each time."""
    found: dict[bytes, Any] = {}

    def draw(data: st.DataObject) -> None:
        drawn = data.draw(strategy)
        # Examples may share what a strategy draws.
        found.setdefault(orjson.dumps(drawn), copy.deepcopy(drawn))

    # Long runs of hypothesis tend to vary earlier examples; many short ones start over.
    for run in range(2 * count):
        if len(found) >= count:
            break
        settled = settings(
            max_examples=RUN,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed((SEED * 1_009 + salt) * 100_003 + run)(settled(given(st.data())(draw)))()
    return list(found.values())[:count]


@dataclass(frozen=True, slots=True)
class Case:
    """An object to create, or an update of a stored one."""

    property: str
    object: Json
    old: Json = None


@dataclass(slots=True)
class Tally:
    """The counts of a run."""

    sent: int = 0
    refused: int = 0
    updates: int = 0
    undecided: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.sent} objects ({self.updates} updates): {self.refused} refused, {self.undecided} partly "
            f"left to the server, {len(self.wrong)} disagree"
        )


@st.composite
def _objects(draw: st.DrawFn, resource: Resource) -> tuple[str, Json, Json]:
    """The name of a property, a value for it, and the rest of metadata."""
    name = draw(st.sampled_from(sorted(resource.properties)))
    metadata = draw(root_metadata()) if draw(st.integers(0, 15)) == 0 else {}
    return name, draw(values(resource.properties[name])), metadata


async def _each(items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    """Processes all items, some at a time."""
    queue = iter(items)

    async def some() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some())


async def _store(client: Client, resource: Resource, drawn: Sequence[tuple[str, Json, Json]]) -> list[Case]:
    """Stores objects while the schema is open; returns those that can be stored."""
    found: dict[int, Case] = {}

    async def store(item: tuple[int, tuple[str, Json, Json]]) -> None:
        i, (name, value, _) = item
        obj = resource.object(f"old-{i}", {name: value})
        answer = await client.send("POST", resource.path, content=orjson.dumps(obj))
        if answer.code == 201:
            found[i] = Case(name, obj)

    await _each(enumerate(drawn), store)
    return [found[i] for i in sorted(found)]


async def _current(client: Client, resource: Resource, cases: Sequence[Case]) -> dict[str, Json]:
    """The objects as they are read now, by name; without unreadable ones."""
    found: dict[str, Json] = {}

    async def read(case: Case) -> None:
        name = case.object["metadata"]["name"]
        answer = await client.send("GET", f"{resource.path}/{name}")
        if answer.code == 200:
            found[name] = answer.json()

    await _each(cases, read)
    return found


@st.composite
def _update(draw: st.DrawFn, resource: Resource, name: str, old: Json) -> Json:
    new = copy.deepcopy(old)
    for key in ("managedFields", "generation", "creationTimestamp", "uid"):
        new["metadata"].pop(key, None)
    if draw(st.integers(0, 5)):
        value = (old.get("spec") or {}).get(name)
        new["spec"] = {**(new.get("spec") or {}), name: draw(changed(value, resource.properties[name]))}
    if draw(st.booleans()):
        new["metadata"]["labels"] = {"changed": "yes"}
    return new


async def _compare(client: Client, resource: Resource, cases: Sequence[Case], tally: Tally) -> None:
    async def compare(case: Case) -> None:
        path = resource.path
        if case.old is not None:
            path = f"{path}/{case.old['metadata']['name']}"
        method = "POST" if case.old is None else "PUT"
        verdict = await ask(client, method, path, case.object)
        admitted = resource.schema.admit(case.object, case.old)
        tally.sent += 1
        tally.updates += case.old is not None
        tally.refused += verdict.code >= 400
        tally.undecided += bool(admitted.unchecked)
        said = disagreement(admitted, verdict)
        if said is None and verdict.code in (200, 201) and tally.sent % STRICT == 0:
            unknown = await unknown_fields(client, method, path, case.object)
            if unknown != set(admitted.unknown):
                said = f"unknown fields: {sorted(unknown)}, but ours {admitted.unknown}\n"
        if said is not None:
            schema = orjson.dumps(resource.properties[case.property]).decode()[:3000]
            shown = orjson.dumps(case.object).decode()[:2000]
            before = "" if case.old is None else f"\nold: {orjson.dumps(case.old).decode()[:2000]}"
            tally.wrong.append(f"{said}schema: {schema}\nobject: {shown}{before}\n")

    await _each(cases, compare)


async def _round(client: Client, number: int, count: int, tally: Tally) -> None:
    group = f"objects-{uuid.uuid4().hex[:8]}.example.com"
    resource = Resource(client, group, status=number % 3 == 1)
    salt = number * 1000
    await resource.select(drawn_differently(schemas(), min(SCHEMAS, count // 4), salt))
    await resource.open()
    try:
        olds = await _store(client, resource, drawn_differently(_objects(resource), count // 6, salt + 1))
        await resource.close_in(f"round-{number}")
        some = next(iter(resource.properties))
        cases = [Case(some, {**resource.object("", {}), "metadata": each}) for each in METADATA]
        for name, value, metadata in drawn_differently(_objects(resource), count // 2, salt + 2):
            cases.append(Case(name, resource.object("new", {name: value}, **metadata)))
        current = await _current(client, resource, olds)
        for i, stored in enumerate(olds):
            old = current.get(stored.object["metadata"]["name"])
            if old is not None:
                updates = drawn_differently(_update(resource, stored.property, old), UPDATES, salt + 3 + i)
                cases += [Case(stored.property, new, old) for new in updates]
        await _compare(client, resource, cases, tally)
    finally:
        await resource.delete()


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_verdict_same_words_same_object(plane: Cluster) -> None:
    tally = Tally()
    number = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        while tally.sent < COUNT:
            await _round(client, number, min(SCHEMAS * PER_SCHEMA, COUNT), tally)
            number += 1
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    assert tally.undecided <= max(0.01 * tally.sent, 2), tally
    # The objects prove something only if many are valid and many invalid.
    assert tally.sent * 0.2 < tally.refused < tally.sent * 0.9, tally
