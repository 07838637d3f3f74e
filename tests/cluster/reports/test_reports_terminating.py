"""Terminating on a real API server: the objects and finalizers that block a deletion, and its end."""

from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import closed_port
from tests.cluster.reports.live.scene import WITHOUT, change, let_read, through
from tests.cluster.reports.reports import REPORTS, condition_of, report_with

HELD = "test.example.com/hold"


async def set_finalizers(admin: Admin, kind: CustomKind, name: str, *finalizers: str) -> None:
    await admin.merge(kind.path(name), {"metadata": {"finalizers": list(finalizers)}})


async def gone(admin: Admin, kind: CustomKind) -> None:
    """Returns when the CRD and its report are gone."""

    async def look() -> bool:
        paths = (f"{CRDS}/{kind.name}", f"{REPORTS}/{kind.name}")
        return not any([await admin.find(each) for each in paths])

    await eventually(look, otherwise=lambda: f"{kind.name} is still there")


async def test_objects_with_finalizers(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await let_read(admin, group)
    names = await admin.create_objects(kind, 3)
    for each in names[:2]:
        await set_finalizers(admin, kind, each, HELD)
    await report_with(admin, kind.name, Terminating="False/NotTerminating")

    await admin.delete(f"{CRDS}/{kind.name}")
    report = await report_with(
        admin, kind.name, Terminating="True/ObjectsHaveFinalizers", Ready="False/ObjectsHaveFinalizers"
    )
    message = condition_of(report, "Terminating").message
    assert f"{HELD} on 2 objects (default/db-00000, default/db-00001)." in message

    for each in names[:2]:
        await set_finalizers(admin, kind, each)
    await gone(admin, kind)


async def test_finalizers_of_the_definition(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await let_read(admin, group)
    path = f"{CRDS}/{kind.name}"
    await admin.merge(path, {"metadata": {"finalizers": [HELD]}})

    await admin.delete(path)
    report = await report_with(admin, kind.name, Terminating="True/DefinitionHasFinalizers")
    assert HELD in condition_of(report, "Terminating").message

    await admin.merge(path, {"metadata": {"finalizers": []}})
    await gone(admin, kind)


async def test_a_webhook_that_went_first(admin: Admin, operator: Operator, group: str) -> None:
    """The usual order of an uninstall: the webhook goes first, then nothing can be deleted any more."""
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await let_read(admin, group)
    await admin.create_objects(kind, 1)
    await set_finalizers(admin, kind, "db-00000", HELD)
    await admin.apply_definition(kind.storing("v2"))
    with closed_port() as port:
        await change(admin, kind, through({"url": f"https://127.0.0.1:{port}/"}))
        await admin.delete(f"{CRDS}/{kind.name}")
        report = await report_with(admin, kind.name, Terminating="True/ObjectsUnreadable")
        message = condition_of(report, "Terminating").message
        assert "connection refused" in message
        assert "set spec.conversion to the strategy None" in message

        await change(admin, kind, WITHOUT)
        await report_with(admin, kind.name, Terminating="True/ObjectsHaveFinalizers")
    await set_finalizers(admin, kind, "db-00000")


async def test_without_the_right_to_look(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 1)
    await set_finalizers(admin, kind, "db-00000", HELD)

    await admin.delete(f"{CRDS}/{kind.name}")
    report = await report_with(admin, kind.name, Terminating="True/NotPermitted")
    assert "cannot list resource" in condition_of(report, "Terminating").message
    await let_read(admin, group)
    await report_with(admin, kind.name, Terminating="True/ObjectsHaveFinalizers")
    await set_finalizers(admin, kind, "db-00000")
