"""We and the API server show the same table columns for an object.

CRDKEEPER_CELLS sets how many cells are compared, CRDKEEPER_SEED selects others.
"""

import json
import os
import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from crdkeeper.apiserver.objects.table import Open, TablePrinter
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.waiting import eventually
from tests.cluster.objects.columns import changed, column, content
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_CELLS", "8000"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
OBJECTS = 25
VERSIONS = 12
COLUMNS = 20
SHOWN = 15
TIMEOUT_SECONDS = 300 + COUNT // 50
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SECOND = 10**9

Json = Any


@dataclass(slots=True)
class Tally:
    """The counts of a run."""

    cells: int = 0
    empty: int = 0
    open: int = 0
    broken: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.cells} cells ({self.empty} empty): {self.open} left open, {len(self.wrong)} wrong; "
            f"{self.broken} tables ended early"
        )


def _definition(draw: random.Random, group: str, objects: list[Json]) -> Json:
    versions = []
    for i in range(VERSIONS):
        version = {
            "name": f"v{i + 1}",
            "served": True,
            "storage": i == 0,
            "schema": {"openAPIV3Schema": _OPEN},
        }
        columns = [column(draw, objects, n) for n in range(COLUMNS)]
        # One that cannot be parsed ends the table: most versions have none, and some have one at the end.
        whole = [
            each for each in columns if TablePrinter({"additionalPrinterColumns": [each]}).broken is None
        ]
        broken = [each for each in columns if each not in whole]
        # The first has the default columns.
        if i:
            version["additionalPrinterColumns"] = whole + broken[:1]
        versions.append(version)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shown.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "shown", "kind": "Shown"},
            "scope": "Cluster",
            "versions": versions,
        },
    }


def _alike(ours: Any, theirs: Any) -> bool:
    """Equal as JSON, in which 1.0 is 1 and true is not."""
    if isinstance(ours, float) and type(theirs) is int:
        theirs = float(theirs)
    return isinstance(ours, bool) == isinstance(theirs, bool) and bool(ours == theirs)


def _compare(version: Json, table: Json, objects: dict[str, Json], times: range, tally: Tally) -> None:
    printer = TablePrinter(version)
    tally.broken += printer.broken is not None
    heads = [
        (each["name"], each["type"], each["format"], each["priority"]) for each in table["columnDefinitions"]
    ]
    ours = [(each.name, each.type, each.format, each.priority) for each in printer.columns]
    if heads != ours:
        tally.wrong.append(
            f"columns {heads[-2:]}, but ours {ours[-2:]}: {version['additionalPrinterColumns']}"
        )
        return
    for row in table["rows"]:
        obj = objects[row["object"]["metadata"]["name"]]
        rows = [printer.cells(obj, now) for now in times]
        for i, theirs in enumerate(row["cells"]):
            cells = [each[i] for each in rows]
            tally.cells += 1
            tally.empty += theirs is None
            left = [each for each in cells if isinstance(each, Open)]
            tally.open += bool(left)
            if left:
                cells = [each for one in left for each in one.among or (theirs,)]
            if not any(_alike(each, theirs) for each in cells):
                path = version["additionalPrinterColumns"][i - 1]
                shown = orjson.dumps(obj).decode()[:1500]
                tally.wrong.append(f"{path}: {theirs!r}, but ours {cells[0]!r} of {shown}")


async def _round(client: Client, number: int, tally: Tally) -> None:
    draw = random.Random(SEED * 1_000_003 + number)
    group = f"tables-{uuid.uuid4().hex[:8]}.example.com"
    drawn = [{"spec": content(draw), "status": content(draw)}]
    while len(drawn) < OBJECTS:
        drawn.append({key: changed(draw, each) for key, each in draw.choice(drawn[:5]).items()})
    definition = _definition(draw, group, drawn)
    await client.request("POST", CRDS, definition)
    try:

        async def served() -> bool:
            answers = [
                await client.send("GET", f"/apis/{group}/{each['name']}/shown")
                for each in definition["spec"]["versions"]
            ]
            return all(each.code == 200 for each in answers)

        await eventually(served, otherwise=lambda: f"{group} is not served")
        for i, each in enumerate(drawn):
            metadata = {"name": f"o{i}", "labels": {"a": "b"}, "annotations": {"a.b": "c"}}
            obj = {"apiVersion": f"{group}/v1", "kind": "Shown", "metadata": metadata, **each}
            answer = await client.send("POST", f"/apis/{group}/v1/shown", content=json.dumps(obj).encode())
            assert answer.code == 201, answer.content
        for version in definition["spec"]["versions"]:
            path = f"/apis/{group}/{version['name']}/shown"
            listed = (await client.send("GET", path)).json()
            objects = {each["metadata"]["name"]: each for each in listed["items"]}
            before = time.time_ns()
            table = (await client.send("GET", path, accept=TABLE)).json()
            times = range(before, time.time_ns() + SECOND, SECOND // 2)
            _compare(version, table, objects, times, tally)
    finally:
        await client.send("DELETE", f"{CRDS}/shown.{group}")


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_cells(plane: Cluster) -> None:
    tally = Tally()
    number = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        while tally.cells < COUNT:
            await _round(client, number, tally)
            number += 1
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    # This proves something only if many cells are not empty.
    assert tally.empty < 0.9 * tally.cells, tally
    assert tally.open < 0.05 * tally.cells, tally
