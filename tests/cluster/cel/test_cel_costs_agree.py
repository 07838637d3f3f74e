"""We count the run-time cost of rules as the API server does, to the last unit.

Each rule is evaluated for objects that cost exactly as much as the server allows, one unit more, and some
more, together with other rules (the budget of an object) and in one evaluation alone (the limit of a call).
Half of the objects leave out what the schema has as default, which the server adds before it evaluates rules.
CRDKEEPER_COSTS says how many objects, CRDKEEPER_SEED makes others.
"""

import asyncio
import copy
import os
import random
import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from crdkeeper.apiserver.cel.values.values import Indeterminate
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cel.costs.limits import DATA, Kind, chosen, rules
from tests.cluster.objects.agreement import ask, disagreement
from tests.cluster.objects.resource import Resource
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_COSTS", "150"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
AT_ONCE = 8
SHOWN = 10
TIMEOUT_SECONDS = 300 + COUNT

Json = Any


@dataclass
class Tally:
    """How it went."""

    sent: int = 0
    within: int = 0
    ended: int = 0
    undecided: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.sent} objects: {self.within} at a limit, {self.ended} above one, {self.undecided} left "
            f"to the server, {len(self.wrong)} disagree"
        )


@dataclass(frozen=True)
class Case:
    """An object, what it replaces, and the rule that it is about."""

    rule: str
    name: str
    spec: Json
    old: Json
    over: int


def _cases(
    rng: random.Random, property_: str, kind: Kind, drawn: list[str], stored: dict[str, Json]
) -> list[Case]:
    cases = []
    for at, rule in enumerate(drawn):
        for data in DATA:
            name = rng.choice(("", *stored))
            before = stored[name]["spec"][property_][0] if name else None
            for over in (0, rng.choice((1, 1, rng.randrange(1, 40)))):
                try:
                    items = kind.items(at, data, before, over)
                except Indeterminate:
                    continue  # the server itself does not always say the same
                cases.append(Case(rule, name, {property_: items}, stored.get(name), over))
    return cases


async def _compare(client: Client, resource: Resource, case: Case, tally: Tally) -> None:
    obj = resource.object(case.name or "new", case.spec)
    if case.old is not None:
        obj["metadata"]["resourceVersion"] = case.old["metadata"]["resourceVersion"]
    path = f"{resource.path}/{case.name}" if case.name else resource.path
    verdict = await ask(client, "PUT" if case.name else "POST", path, obj)
    admitted = resource.schema.admit(obj, case.old)
    ended = any("no further validation rules" in message for _, message in verdict.causes)
    tally.sent += 1
    tally.ended += ended
    tally.within += not ended
    tally.undecided += bool(admitted.unchecked)
    said = disagreement(admitted, verdict)
    if said is not None:
        tally.wrong.append(f"{case.rule}\n  over {case.over}, {path}\n{said}")


async def _round(client: Client, number: int, tally: Tally, count: int) -> None:
    rng = random.Random(SEED * 1_009 + number)
    drawn = rules(rng)
    group = f"costs-{uuid.uuid4().hex[:8]}.example.com"
    resource = Resource(client, group)
    tested = [chosen(drawn, alone=False), chosen(drawn, alone=True)]
    kinds = [Kind(each, rng, alone=alone) for each, alone in zip(tested, (False, True), strict=True)]
    await resource.select([kind.schema for kind in kinds])
    assert len(resource.properties) == len(kinds), "the API server refuses rules that we accept"
    await resource.open()
    try:
        stored = {}
        for at, data in enumerate(DATA):
            items = [{**copy.deepcopy(data), "id": 0, "t": -1}]
            content = orjson.dumps(resource.object(f"old-{at}", {"p0": items, "p1": items}))
            answer = await client.send("POST", resource.path, content=content)
            assert answer.code == 201, answer.content
            stored[f"old-{at}"] = answer.json()
        await resource.close_in(f"round-{number}")
        for name in stored:
            stored[name] = (await client.send("GET", f"{resource.path}/{name}")).json()
        cases = [
            case
            for property_, kind, of_kind in zip(resource.properties, kinds, tested, strict=True)
            for case in _cases(rng, property_, kind, of_kind, stored)
        ]
        rng.shuffle(cases)
        queue = iter(cases[:count])

        async def some() -> None:
            for case in queue:
                await _compare(client, resource, case, tally)

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    finally:
        await resource.delete()


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_end_at_the_same_cost(plane: Cluster) -> None:
    tally = Tally()
    number = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        while tally.sent < COUNT:
            await _round(client, number, tally, COUNT - tally.sent)
            number += 1
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    assert tally.undecided <= max(0.001 * tally.sent, 2), tally
    assert tally.sent * 0.3 < tally.ended < tally.sent * 0.7, tally
