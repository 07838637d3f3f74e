"""VersionRetirements under the operator's own account: from v1alpha1 and v1 to v1 only."""

import asyncio
import json
import os
from typing import Any

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.versionretirement import (
    DEPRECATED,
    MIGRATED,
    NOT_SERVED,
    REMOVED,
    STEPS,
    UNUSED,
    VersionRetirement,
)
from tests.cluster.harness import Admin, Operator, eventually
from tests.cluster.harness.admin import CRDS, MIGRATIONS
from tests.cluster.retirement.scene import (
    AT_ONCE,
    NEW,
    OLD,
    RETIREMENTS,
    SLOWLY,
    assert_retired,
    change,
    is_read_again,
    moved,
    permit,
    put_back,
    retire,
    retirement,
    standing,
    until,
    until_due,
    until_ready,
    versions,
)

OBJECTS = int(os.environ.get("CRDKEEPER_RETIRED_OBJECTS", "20"))


@pytest.mark.timeout(300 + OBJECTS / 10)
async def test_execute_takes_a_version_away(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, OBJECTS)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute")
    await until_ready(admin, name, "True", "Removed", seconds=120 + OBJECTS / 20)
    found = await retirement(admin, name)
    assert {standing(found, each).status for each in STEPS} == {"True"}
    await assert_retired(admin, kind, OBJECTS)

    async def told() -> bool:
        reasons = {reason for _, reason, _ in await admin.events(name, "VersionRetirement")}
        return {"Deprecated", "Quiet", "NotServed", "Migrated", "Removed"} <= reasons

    await eventually(told)

    async def counted() -> bool:
        return operator.metric("crdkeeper_version_retirements", status="True", reason="Removed") == 1

    await eventually(counted, otherwise=lambda: "the metric does not count it once")


async def test_plan_says_what_would_be_done(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, 3)
    await admin.opt_in(group)
    before = await admin.definition(kind)
    name = await retire(admin, kind)
    found = await until_ready(admin, name, "True", "PlanOnly")
    assert found.status.due is not None
    assert found.status.due.step == "Deprecated"
    evidence = found.status.evidence
    assert (evidence.complete, evidence.objects, evidence.counted) == (True, 3, 3)
    assert [(each.manager, each.namespace) for each in evidence.writers] == [("admin", "default")]
    assert (await admin.definition(kind))["metadata"]["resourceVersion"] == before["metadata"][
        "resourceVersion"
    ]


async def test_guide_names_each_change_and_sees_that_it_was_made(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await admin.opt_in(group)
    name = await retire(admin, kind, mode="Guide")
    for step in STEPS:
        if step == UNUSED:
            continue  # only time takes it
        found = await until_due(admin, name, step)
        due = found.status.due
        assert due is not None
        if step == MIGRATED:
            migration = json.loads(due.manifest)
            await admin.create(MIGRATIONS, migration)
            await admin.wait_for_condition(migration["metadata"]["name"], "Succeeded", "True")
        else:
            assert standing(found, "Ready").reason == "ChangeDue"
            await change(admin, kind, json.loads(due.patch))
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)


async def test_guide_names_who_keeps_the_crd_and_sees_what_they_apply(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await admin.opt_in(group)
    # As it is: only that they apply it shows that they would put a version back.
    await put_back(admin, kind, "argocd-controller")
    name = await retire(admin, kind, mode="Guide", quietPeriod="0s")
    old, new = (each.to_object() for each in kind.versions)
    applied = 'The field manager "{}" sets spec (server-side apply): change'
    argo = f"Argo CD: {applied.format('argocd-controller')} its source in Git."
    flux = f"Flux: {applied.format('kustomize-controller')} its source in Git."
    helm = f"Helm: {applied.format('helm')} the chart."
    steps: list[tuple[str, str, list[dict[str, Any]], list[str]]] = [
        ("Deprecated", "kustomize-controller", [old | {"deprecated": True}, new], [argo]),
        ("NotServed", "helm", [old | {"deprecated": True, "served": False}, new], [argo, flux]),
        ("Migrated", "", [], []),
        ("Removed", "argocd-controller", [new], [argo, flux, helm]),
    ]
    for step, manager, entries, named in steps:
        found = await until_due(admin, name, step)
        ready = standing(found, "Ready")
        assert ready.reason == "ChangeDue"
        assert [each in ready.message for each in (argo, flux, helm)] == [
            each in named for each in (argo, flux, helm)
        ]
        if manager:
            await put_back(admin, kind, manager, entries)
            continue
        assert found.status.due is not None
        migration = await admin.create(MIGRATIONS, json.loads(found.status.due.manifest))
        await admin.wait_for_condition(migration["metadata"]["name"], "Succeeded", "True")
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)
    await put_back(admin, kind, "kustomize-controller")
    found = await until_ready(admin, name, "False", "Reverted")
    assert "latest first: kustomize-controller" in standing(found, "Ready").message


async def test_execute_leaves_each_step_to_the_tool_that_applies_the_crd_again(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute", quietPeriod="1h", migration=SLOWLY)
    # What lets it take the next step, and who applies the CRD as it was before.
    tools: list[tuple[str, str, str, dict[str, Any]]] = [
        (DEPRECATED, "argocd-controller", "Argo CD", {"quietPeriod": "1h"}),
        (NOT_SERVED, "helm", "Helm", {"quietPeriod": "0s"}),
        (REMOVED, "kustomize-controller", "Flux", {"migration": AT_ONCE}),
    ]
    for step, manager, tool, spec in tools:
        await admin.merge(f"{RETIREMENTS}/{name}", {"spec": spec})

        def taken(found: VersionRetirement, step: str = step) -> bool:
            condition = find_condition(found.status.conditions, step)
            return condition is not None and condition.status == "True"

        await until(admin, name, taken, f"past {step}")
        await put_back(admin, kind, manager)
        found = await until_ready(admin, name, "False", "Reverted")
        ready = standing(found, "Ready").message
        assert f"taken back {step}" in ready
        assert f"the latest first: {manager}" in ready
        assert standing(found, "Stalled").status == "True"
        old = (await versions(admin, kind))[OLD]
        assert (old["served"], old.get("deprecated", False)) == (True, False)
        # Who counts again tells that this tool would put back any other change, too.
        told = await until(
            admin,
            name,
            lambda each, tool=tool: tool in {one.tool for one in each.status.evidence.owners},  # type: ignore[misc]
            f"told of {tool}",
        )
        assert any(each.manager == manager for each in told.status.evidence.owners)


async def test_a_version_that_somebody_puts_back_is_left_to_them(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute")
    await until_ready(admin, name, "True", "Removed")
    restored = await put_back(admin, kind)
    found = await until_ready(admin, name, "False", "Reverted")
    assert "gitops" in standing(found, "Ready").message
    assert standing(found, "Stalled").status == "True"
    # Each change of the CRD makes the operator look again; it must not change it.
    for number in range(3):
        await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"looked": str(number)}}})
        await admin.merge(f"{RETIREMENTS}/{name}", {"metadata": {"annotations": {"looked": str(number)}}})
        await until_ready(admin, name, "False", "Reverted")
    # Whoever has it changed at its source lets the retirement go on.
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"suspend": True}})
    await until_ready(admin, name, "Unknown", "Suspended")
    # It has looked by now.
    now = await admin.definition(kind)
    assert now["metadata"]["generation"] == restored["metadata"]["generation"]
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"suspend": False}})
    await until_ready(admin, name, "True", "Removed")


async def test_a_mistyped_version_is_no_success(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, 0)
    await permit(admin, kind)
    name = await retire(admin, kind, version="v1alhpa1", mode="Execute")
    found = await until_ready(admin, name, "False", "VersionNotFound")
    assert f"its versions are {OLD}, {NEW}." in standing(found, "Ready").message
    assert standing(found, REMOVED).status == "Unknown"
    assert standing(found, "Stalled").status == "True"


async def test_without_the_rights_nothing_is_changed(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, 3)
    name = await retire(admin, kind, mode="Execute")
    found = await until_ready(admin, name, "False", "NotPermitted")
    assert f'resourceNames: ["{kind.name}"], verbs: ["patch", "retire"]' in standing(found, "Ready").message
    assert "deprecated" not in (await versions(admin, kind))[OLD]
    # Nor are objects counted that it may not list.
    assert "NotKnown" in (
        standing(found, UNUSED).reason,
        "NotKnown" if not found.status.evidence.complete else "",
    )
    # What could not be migrated afterwards is still served.
    await permit(admin, kind, objects=["get", "list"])
    rule = f'apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["patch"]'

    def lacks_only_that(each: VersionRetirement) -> bool:
        return standing(each, "Ready").message.endswith(f"What is missing: {rule}.")

    await until(admin, name, lacks_only_that, "told")
    assert (await versions(admin, kind))[OLD].items() >= {"served": True}.items()
    assert "deprecated" not in (await versions(admin, kind))[OLD]
    await permit(admin, kind)
    await until_ready(admin, name, "True", "Removed")


async def test_a_new_writer_starts_the_quiet_period_again(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    name = await retire(admin, kind, mode="Execute", quietPeriod="1h")
    before = await until_ready(admin, name, "False", "QuietPeriod")
    assert before.status.quiet_since_time is not None
    # managedFields have seconds: in the second of the last write, this one would not be the newest.
    await asyncio.sleep(1)
    path = f"{kind.path('db-00001', version=OLD)}?fieldManager=late-team"
    written = await admin.merge(path, {"spec": {"replicas": 9}})
    # It counts again every ten minutes, and when it starts.
    operator.kill()
    operator.start()
    found = await until(admin, name, lambda each: "late-team" in standing(each, UNUSED).message, "told")
    entry = next(each for each in written["metadata"]["managedFields"] if each["manager"] == "late-team")
    assert found.status.evidence.writers[0].manager == "late-team"
    assert f"{found.status.quiet_since_time:%Y-%m-%dT%H:%M:%SZ}" >= entry["time"]
    assert (await versions(admin, kind))[OLD]["served"] is True


async def test_requests_that_an_api_server_counts_start_the_quiet_period_again(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind, metrics=True)

    async def read() -> None:
        while True:
            # Right after a change of the CRD, the API server answers with 429.
            await admin.client.send("GET", kind.path("db-00000", version=OLD))
            await asyncio.sleep(0.2)

    # From before the beginning, so that no quiet period can end: nobody stops reading for so long.
    reading = asyncio.create_task(read())
    try:
        name = await retire(admin, kind, mode="Execute", quietPeriod="30s")
        found = await until(admin, name, is_read_again, "read after the end of a quiet period")
        assert not reading.done()
        assert (await versions(admin, kind))[OLD]["served"] is True
    finally:
        reading.cancel()
    assert found.status.evidence.readers
    assert "metrics" not in " ".join(found.status.evidence.unknown)
    # Once nobody reads it, it goes: crdkeeper's own counting is no use.
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"quietPeriod": "5s"}})
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)


async def test_the_stored_version_is_never_taken_away(admin: Admin, operator: Operator, group: str) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    await admin.apply_definition(kind.storing(OLD))
    name = await retire(admin, kind, mode="Execute", quietPeriod="0s")
    found = await until_ready(admin, name, "False", "StorageVersion")
    assert (await versions(admin, kind))[OLD]["served"] is True
    assert standing(found, REMOVED).status == "False"
    # Once v1 is stored, it goes on by itself.
    crd = await admin.definition(kind)
    positions = {each["name"]: number for number, each in enumerate(crd["spec"]["versions"])}
    flip = [
        {"op": "replace", "path": f"/spec/versions/{positions[each]}/storage", "value": each == NEW}
        for each in (OLD, NEW)
    ]
    await change(admin, kind, flip)
    await until_ready(admin, name, "True", "Removed")
