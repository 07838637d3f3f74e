"""Our CEL compiler and the API server agree on a rule's errors and its cost.

CRDs full of rules are sent as dry runs. CRDKEEPER_EXPRESSIONS sets how many rules are generated,
CRDKEEPER_SEED selects others, CRDKEEPER_CORPUS names a directory of CRDs whose rules are tested and mutated
as well.
"""

import asyncio
import os
import random
from collections.abc import Sequence

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cel.compiling.comparison import Expectation, Rule, disagreements, expected
from tests.cluster.cel.compiling.corpus import with_other_rules
from tests.cluster.cel.compiling.costly import COSTS
from tests.cluster.cel.compiling.expressions import Nested, calls, mutated
from tests.cluster.cel.compiling.schemas import SELF
from tests.cluster.cel.compiling.special import EXPRESSIONS, NAMES, RULES
from tests.cluster.definitions.lint.agreement import ask, compare
from tests.cluster.definitions.lint.variants import CORPUS
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_EXPRESSIONS", "900"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
PER_CRD = 150
AT_ONCE = 2
SHOWN = 25


async def _found(cluster: Cluster, expectations: Sequence[Expectation]) -> list[str]:
    found: list[str] = []
    queue = iter(expectations)

    async def work(client: Client) -> None:
        for each in queue:
            verdict = await ask(client, each.crd)
            if verdict.code not in (201, 422):
                found.append(f"{verdict.code}: {verdict.message}")
            found.extend(disagreements(each, sorted(verdict.causes)))

    async with Client(Connection(cluster.kubeconfig)) as client, asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(client))
    return found


def _chunks(rules: Sequence[Rule]) -> list[Expectation]:
    return [expected(SELF, rules[start : start + PER_CRD]) for start in range(0, len(rules), PER_CRD)]


async def _agree(cluster: Cluster, rules: Sequence[Rule]) -> None:
    expectations = _chunks(rules)
    found = await _found(cluster, expectations)
    left = sum(len(each.left) for each in expectations)
    refused = sum(len(each.said) for each in expectations)
    print(f"{len(rules)} rules: {refused} errors and costs, {left} left to the server, {len(found)} disagree")
    assert not found, f"{len(found)} of {len(rules)} disagree\n" + "\n".join(found[:SHOWN])
    assert left <= len(rules) / 100


@pytest.mark.timeout(300 + COUNT)
async def test_every_function(plane: Cluster) -> None:
    rng = random.Random(f"functions {SEED}")
    rules: list[Rule] = [{"rule": each} for each in calls(rng, max(1, COUNT // 500))]
    await _agree(plane, rules)


@pytest.mark.timeout(300 + COUNT)
async def test_nested_expressions(plane: Cluster) -> None:
    nested = Nested(random.Random(f"nested {SEED}"))
    rules: list[Rule] = [{"rule": nested.rule()} for _ in range(COUNT)]
    await _agree(plane, rules)


async def test_special_expressions(plane: Cluster) -> None:
    rules: list[Rule] = [{"rule": each, "message": "refused"} for each in EXPRESSIONS]
    await _agree(plane, [*rules, *RULES])


@pytest.mark.timeout(300 + COUNT)
async def test_mutated_expressions(plane: Cluster) -> None:
    rng = random.Random(f"mutated {SEED}")
    nested = Nested(rng)
    good = [*COSTS, *NAMES, *(nested.rule() for _ in range(100))]
    rules: list[Rule] = [{"rule": mutated(rng, rng.choice(good)), "message": "refused"} for _ in range(COUNT)]
    await _agree(plane, rules)


@pytest.mark.skipif(CORPUS not in os.environ, reason=f"{CORPUS} names no folder of CRDs")
@pytest.mark.timeout(600 + COUNT)
async def test_rules_of_other_definitions(plane: Cluster) -> None:
    crds = list(with_other_rules(random.Random(f"corpus {SEED}"), os.environ[CORPUS], max(1, COUNT // 750)))
    found: list[str] = []
    undecided = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        for name, crd in crds:
            report = check_creation(crd)
            undecided += bool(report.unchecked)
            compared = compare(report, await ask(client, crd))
            if compared.disagreement is not None:
                found.append(f"{name}: {compared.disagreement}")
    print(f"{len(crds)} CRDs, {undecided} partly left to the server, {len(found)} disagree")
    assert not found, "\n".join(found[:SHOWN])
