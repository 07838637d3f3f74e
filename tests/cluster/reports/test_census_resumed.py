"""A count of many objects outlives the operator: after kill -9 and a compaction the next one goes on."""

import os
from collections.abc import Callable
from typing import Final

from crdkeeper.api.definitionreport import DefinitionReport
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.reports.live.scene import let_read
from tests.cluster.reports.reports import report_where

OBJECTS: Final = int(os.environ.get("CRDKEEPER_COUNTED_OBJECTS", "3000"))
SLOW: Final = {"pages-per-second": "1"}
"""The first 1,000 objects take ten seconds, and the others long enough that the operator is killed before."""
FAST: Final = {"pages-per-second": "1000"}


async def test_a_killed_operator_goes_on_counting(
    admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    await let_read(admin, group)
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await put_objects(admin, kind, OBJECTS)
    operator = start_operator(admin.cluster, flags=SLOW)

    report = await report_where(admin, kind.name, lambda each: each.status.counting is not None)
    counting = report.status.counting
    assert counting is not None
    assert 0 < counting.objects < OBJECTS
    assert report.status.census is None
    operator.kill()
    # It has been counted: who began again would not find it.
    await admin.client.request("DELETE", kind.path("copy-00000"))
    admin.etcd.compact()

    start_operator(admin.cluster, flags=FAST)
    report = await report_where(admin, kind.name, counted)
    assert report.status.census is not None
    assert report.status.census.objects == OBJECTS
    assert [(each.version, each.objects) for each in report.status.census.versions] == [("v1", OBJECTS)]


def counted(report: DefinitionReport) -> bool:
    return report.status.census is not None and report.status.counting is None
