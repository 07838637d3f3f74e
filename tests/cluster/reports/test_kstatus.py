"""Flux, Argo CD and Helm wait for our kinds as for their own: by kstatus' rules on the API server."""

from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.reports.reports import found, report_where
from tests.kstatus import status_of


async def test_what_no_controller_has_seen_is_in_progress(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 1)
    await admin.create_migration(group, kind, managedBy="example.com/somebody")
    assert found(admin, "smig", group)["status"] == {"observedGeneration": -1}
    assert status_of(found(admin, "smig", group)) == "InProgress"


async def test_a_migration_is_in_progress_until_it_succeeded(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 30)
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 20})
    seen: list[str] = []

    async def done() -> bool:
        seen.append(status_of(found(admin, "smig", group)))
        return seen[-1] != "InProgress"

    await eventually(done)
    assert seen[-1] == "Current"
    assert admin.stored(kind) == {"v2": 30}


async def test_a_report_on_a_crd_that_a_person_must_see_to_has_failed(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 1)
    await report_where(admin, kind.name, lambda _: True, "there")

    async def judged(status: str) -> bool:
        return status_of(found(admin, "defrep", kind.name)) == status

    await eventually(lambda: judged("Failed"))
    await admin.migrate(group, kind)
    await eventually(lambda: judged("Current"))
