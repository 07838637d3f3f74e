"""`crdkeeper lint` and the API server agree on a CRD: rejected or not, messages, warnings and the result.

Variants of CRDs are sent as dry runs. CRDKEEPER_VARIANTS sets how many, CRDKEEPER_CORPUS names a directory of
CRDs to vary besides our own, CRDKEEPER_SEED selects others.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson
import pytest

from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.agreement import Comparison, ask, compare
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.outcomes import compare_outcome
from tests.cluster.definitions.lint.prediction import creation
from tests.cluster.definitions.lint.variants import BASES, ODD, Crd, corpus, variants
from tests.cluster.definitions.lint.warned import WarnedClient
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_VARIANTS", "150"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
AT_ONCE = 8
SHOWN = 12
TIMEOUT_SECONDS = 300 + COUNT


async def _compared(cluster: Cluster, crds: Sequence[Crd]) -> list[Comparison]:
    results: list[Comparison | None] = [None] * len(crds)
    queue = iter(enumerate(crds))

    async def work(queue: Iterator[tuple[int, Crd]]) -> None:
        async with WarnedClient(Connection(cluster.kubeconfig)) as client:
            for i, crd in queue:
                outcome, verdict = creation(crd), await ask(client, crd)
                said = compare(outcome.report, verdict)
                other = compare_outcome(outcome, verdict, client.warnings).disagreement
                results[i] = replace(said, disagreement=said.disagreement or other)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(queue))
    return [each for each in results if each is not None]


def _show(crds: Sequence[Crd], compared: Sequence[Comparison]) -> str:
    wrong = [(each.disagreement, crd) for crd, each in zip(crds, compared, strict=True) if each.disagreement]
    return f"{len(wrong)} of {len(crds)} disagree\n" + "\n".join(
        f"{said}{orjson.dumps(crd).decode()[:6000]}\n" for said, crd in wrong[:SHOWN]
    )


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_verdict_same_words(plane: Cluster) -> None:
    bases = BASES + corpus()
    crds = [*bases, *ODD, *drawn(variants(bases), COUNT, SEED)]
    compared = await _compared(plane, crds)
    refused = sum(each.refused for each in compared)
    undecided = sum(each.undecided for each in compared)
    print(f"{len(crds)} variants: {refused} refused, {undecided} partly left to the server")
    assert not any(each.disagreement for each in compared), _show(crds, compared)
    # The variants prove something only if some are valid and some invalid, and we can check most.
    assert len(crds) * 0.2 < refused < len(crds) * 0.9
