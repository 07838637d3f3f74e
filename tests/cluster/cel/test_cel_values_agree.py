"""The API server and our engine give the same value, or the same error, for expressions of all of CEL.

Each expression is a rule of a CRD on the real API server; one object makes it evaluate them all.
"""

import asyncio
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cel.values import bound, collections, operators, texts
from tests.cluster.cel.values.comparison import Evaluated, Tally, cases, compare
from tests.controlplane.cluster import Cluster

NOTHING = {"type": "object", "properties": {"a": {"type": "string"}}}
AREAS: dict[str, tuple[Any, Any, list[str]]] = {
    "binary": (NOTHING, {}, operators.binary()),
    "conversions": (NOTHING, {}, operators.conversions()),
    "logic": (NOTHING, {}, operators.LOGIC),
    "strings": (NOTHING, {}, texts.STRINGS),
    "formats": (NOTHING, {}, texts.FORMATS),
    "regexes": (NOTHING, {}, texts.REGEXES),
    "times": (NOTHING, {}, texts.CLOCKS),
    "urls": (NOTHING, {}, texts.URLS),
    "addresses": (NOTHING, {}, texts.ADDRESSES),
    "lists": (NOTHING, {}, collections.LISTS),
    "macros": (NOTHING, {}, collections.MACROS),
    "optionals": (NOTHING, {}, collections.OPTIONALS),
    "quantities": (NOTHING, {}, collections.QUANTITIES),
    "versions": (NOTHING, {}, collections.VERSIONS),
    "names": (NOTHING, {}, collections.NAMES),
    "bound": (bound.SCHEMA, bound.DATA, bound.EXPRESSIONS),
}
SHOWN = 40
TIMEOUT_SECONDS = 300


async def _compared(client: Client, group: str, area: str) -> Tally:
    schema, data, expressions = AREAS[area]
    expressions = list(dict.fromkeys(expressions))
    tally = Tally(len(expressions))
    made = cases(Evaluated(schema, data), expressions, tally)
    await compare(client, f"{area}-{group}", schema, data, made, tally)
    return tally


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_value_or_error(plane: Cluster, group: str) -> None:
    async with Client(Connection(plane.kubeconfig)) as client:
        tallies = await asyncio.gather(*(_compared(client, group, area) for area in AREAS))
    for area, tally in zip(AREAS, tallies, strict=True):
        print(f"{area}: {tally}")
    wrong = [each for tally in tallies for each in tally.wrong]
    assert not wrong, f"{len(wrong)} disagree\n" + "\n".join(wrong[:SHOWN])
    # The rest proves something only if nearly all expressions are compared, some of them with errors.
    drawn = sum(tally.drawn for tally in tallies)
    left = [each for tally in tallies for each in tally.left]
    refused = [each for tally in tallies for each in tally.refused]
    assert len(left) * 100 < drawn, "\n".join(left)
    assert len(refused) * 20 < drawn, "\n".join(refused)
