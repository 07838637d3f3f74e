"""Objects that are being rewritten are not counted: what was counted before the end counts for nothing."""

from collections.abc import Callable
from dataclasses import replace

from crdkeeper.api.definitionreport import DefinitionReport
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.harness.requestcounts import requests_of
from tests.cluster.reports.live.scene import let_read
from tests.cluster.reports.reports import REPORTS, report_where


async def test_a_count_waits_for_a_rewrite(
    admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    await let_read(admin, group)
    rewritten, other = CustomKind(group), replace(CustomKind(group), plural="queues", kind="Queue")
    await admin.apply_definition(rewritten)
    await admin.create_objects(rewritten, 3)
    before = await requests_of(admin, rewritten, "LIST")
    # Somebody else runs it, such as `crdkeeper migrate`.
    await admin.create_migration(group, rewritten, managedBy="example.com/other")
    await write_progress(admin, group, 1)
    start_operator(admin.cluster)
    report = await report_where(admin, rewritten.name, begun)
    assert report.status.census is None

    # There is time for some more looks.
    await admin.apply_definition(other)
    await admin.create_objects(other, 1)
    step = 1

    async def counted_other() -> bool:
        nonlocal step
        step += 1
        await write_progress(admin, group, step)
        found = await admin.find(f"{REPORTS}/{other.name}")
        return found is not None and counted(DefinitionReport.model_validate(found))

    await eventually(counted_other)
    await report_where(admin, rewritten.name, begun)
    # The look for StatusWritersReady is one page of five at most.
    assert await requests_of(admin, rewritten, "LIST") <= before + 1

    await admin.merge(f"{MIGRATIONS}/{group}/status", {"status": {"progress": {"concurrency": 0}}})
    report = await report_where(admin, rewritten.name, counted)
    assert report.status.census is not None
    assert report.status.census.objects == 3


async def write_progress(admin: Admin, name: str, step: int) -> None:
    """What whoever runs a migration saves every few seconds."""
    progress = {"concurrency": 4, "rewritten": step}
    await admin.merge(f"{MIGRATIONS}/{name}/status", {"status": {"progress": progress}})


def begun(report: DefinitionReport) -> bool:
    """Whether a count has been begun, and has counted nothing."""
    found = [each for each in report.status.conditions if each.type == "VersionsCurrent"]
    return bool(found) and found[0].message == "0 objects counted so far."


def counted(report: DefinitionReport) -> bool:
    return report.status.census is not None and report.status.counting is None
