"""A count of very many objects whose operator is killed again and again: exact, in budget, in flat memory.

Only in the long form, with CRDKEEPER_COUNT_KILLS: it takes minutes.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import pytest

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.cluster.probes.census import PAGE
from tests.benchmark.meter import resident_memory
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.harness.requestcounts import requests_of
from tests.cluster.reports.live.scene import let_read
from tests.cluster.reports.reports import report_where
from tests.dice import drawn_seed

KILLS: Final = int(os.environ.get("CRDKEEPER_COUNT_KILLS", "0"))
OBJECTS: Final = int(os.environ.get("CRDKEEPER_COUNTED_OBJECTS", "20000"))
RATE: Final = 20
"""Pages per second: 100,000 objects take 50 seconds."""
TOLD_SECONDS: Final = 10.0
"""How often the report says how far the count is."""
TURN_PAGES: Final = 20
"""And after so many pages at the earliest."""
MOST_MEMORY: Final = 128 * 2**20


@dataclass(slots=True)
class Ledger:
    """The pages that the API server has served, by time, and the operator's memory."""

    admin: Admin
    kind: CustomKind
    first: int
    samples: list[tuple[float, float, int]] = field(default_factory=list)
    """Times before and after a look, and the pages."""
    memory: list[int] = field(default_factory=list)

    async def look(self, operator: Operator) -> int:
        """The pages so far."""
        before = time.monotonic()
        pages = await requests_of(self.admin, self.kind, "LIST") - self.first
        self.samples.append((before, time.monotonic(), pages))
        if operator.running:
            self.memory.append(resident_memory(operator.pid))
        return pages

    def excess(self) -> float:
        """By how many pages some span of time had more than the budget."""
        return max(
            (later[2] - former[2]) - RATE * (later[1] - former[0])
            for former, later in combinations(self.samples, 2)
        )


@pytest.mark.skipif(not KILLS, reason="CRDKEEPER_COUNT_KILLS says how often: make test-long")
@pytest.mark.timeout(900)
async def test_kills_at_random_instants(
    admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_COUNT_KILLS={KILLS} CRDKEEPER_COUNTED_OBJECTS={OBJECTS}")
    dice = random.Random(seed)
    await let_read(admin, group)
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await put_objects(admin, kind, OBJECTS)
    ledger = Ledger(admin, kind, await requests_of(admin, kind, "LIST"))
    operator = start_operator(admin.cluster, flags={"pages-per-second": str(RATE)}, preloaded=False)
    counted_before = 0
    costs: list[int] = []
    for _ in range(KILLS):

        def went_on(report: DefinitionReport, before: int = counted_before) -> bool:
            counting = report.status.counting
            return report.status.census is not None or (counting is not None and counting.objects > before)

        report = await report_where(admin, kind.name, went_on)
        if report.status.census is not None:
            break
        end = time.monotonic() + dice.uniform(0.0, TOLD_SECONDS)
        while time.monotonic() < end:
            await ledger.look(operator)
            await asyncio.sleep(0.5)
        operator.kill()
        pages = await ledger.look(operator)
        report = await report_where(admin, kind.name, lambda each: True)
        if report.status.counting is None:
            break
        counted_before = report.status.counting.objects
        # All pages up to now, but for those that were lost before, and those that the report knows.
        costs.append(pages - sum(costs) - counted_before // PAGE)
        operator.start()

    if not operator.running:
        operator.start()
    while (report := await report_where(admin, kind.name, lambda each: True)).status.census is None:
        await ledger.look(operator)
        await asyncio.sleep(0.5)
    pages = await ledger.look(operator)

    print(f"{len(costs)} kills; pages listed again: {costs}; pages in all: {pages}")
    print(f"more than the budget: {ledger.excess():.1f}; MiB: {max(ledger.memory) >> 20}")
    assert costs
    assert report.status.census.objects == OBJECTS
    assert [(each.version, each.objects) for each in report.status.census.versions] == [("v1", OBJECTS)]
    # The looks for other conditions, and a page that was on its way at a kill.
    other = 10 + 2 * len(costs)
    assert pages <= OBJECTS // PAGE + sum(costs) + other
    # A report takes some time to be written, too.
    assert max(costs) <= RATE * (TOLD_SECONDS + 5) + TURN_PAGES + other
    assert ledger.excess() <= other
    assert max(ledger.memory) < MOST_MEMORY
