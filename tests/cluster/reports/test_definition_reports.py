"""DefinitionReports: every CRD has one, which follows its changes, and is only written if needed."""

from collections.abc import Collection
from typing import Any

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import GROUP
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Admin,
    CustomKind,
    Operator,
    eventually,
    time_passes,
)
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS
from tests.cluster.reports.reports import REPORTS, complete, condition_of, report_where, report_with, reported

READY = "True/Healthy"


OURS = {f"{kind.plural}.{GROUP}" for kind in KINDS}


async def versions_of_reports(admin: Admin, names: Collection[str]) -> dict[str, str]:
    """The resourceVersions of these CRDs' reports: unchanged if a report has not been written."""
    found = [each["metadata"] for each in (await admin.get(REPORTS))["items"]]
    return {each["name"]: each["resourceVersion"] for each in found if each["name"] in names}


async def judged_again(admin: Admin, operator: Operator) -> None:
    """Returns once the operator has assessed every CRD, and counts no others."""

    async def all_counted() -> bool:
        known = len((await admin.get(CRDS))["items"])
        return operator.metric("crdkeeper_definition_conditions", condition="Ready") == known

    await eventually(all_counted)


async def test_a_report_follows_its_crd(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    crd = await admin.apply_definition(kind)

    report = await report_with(admin, kind.name, Ready=READY, StorageCurrent="True/Current")
    (owner,) = report.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == (
        "CustomResourceDefinition",
        kind.name,
        crd["metadata"]["uid"],
    )
    assert report.status.definition_generation == 1
    assert (report.status.storage_version, report.status.stored_versions) == ("v1", ["v1"])
    assert {each.observed_generation for each in report.status.conditions} == {1}

    await admin.create_objects(kind, 3)
    await admin.apply_definition(kind.storing("v2"))
    report = await report_with(
        admin, kind.name, StorageCurrent="False/OldVersionsStored", Ready="False/OldVersionsStored"
    )
    assert f"crdkeeper migrate {kind.name}" in condition_of(report, "Ready").message
    assert (report.status.observed_generation, report.status.definition_generation) == (1, 2)
    assert (report.status.storage_version, report.status.stored_versions) == ("v2", ["v1", "v2"])

    await admin.create_migration(group, kind, suspend=True)
    await report_with(admin, kind.name, StorageCurrent="False/MigrationSuspended")
    await admin.patch_migration(group, suspend=False)
    # Without permissions it waits for them.
    report = await report_with(admin, kind.name, StorageCurrent="False/MigrationFailing")
    assert "(Forbidden)" in condition_of(report, "StorageCurrent").message
    await admin.opt_in(group)
    await admin.patch_migration(group, ttlSecondsAfterFinished=3600)
    report = await report_with(admin, kind.name, StorageCurrent="True/Current", Ready=READY)
    assert report.status.stored_versions == ["v2"]

    events: list[tuple[str, str]] = []

    async def over() -> bool:
        found = await admin.events(kind.name, "DefinitionReport")
        events[:] = [(type_, reason) for type_, reason, _ in found]
        return ("Normal", "Current") in events

    await eventually(over)
    assert ("Warning", "OldVersionsStored") in events
    # That a slow API server still installed the CRD may be told, too.
    assert not {"Healthy", "NotYetProcessed"} & {reason for _, reason in events}


async def test_kubectl_shows_it_and_waits_for_it(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, Ready=READY)

    kubectl = admin.cluster.kubectl
    kubectl("wait", "--for=condition=Ready", "--timeout=120s", f"defrep/{kind.name}")
    header, row = (line.split() for line in kubectl("get", "defrep", kind.name).splitlines())
    assert header == ["NAME", "READY", "REASON", "STORAGE", "STORED", "FINDINGS", "AGE"]
    assert row[:5] == [kind.name, "True", "Healthy", "v1", '["v1"]']

    await admin.apply_definition(kind.storing("v2"))
    kubectl("wait", "--for=condition=Ready=False", "--timeout=120s", f"defrep/{kind.name}")


async def test_it_goes_with_its_crd_and_comes_back_with_a_new_one(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    first = await report_with(admin, kind.name, Ready=READY)

    await admin.delete(f"{CRDS}/{kind.name}")

    async def gone() -> bool:
        return await admin.find(f"{REPORTS}/{kind.name}") is None

    # The garbage collector discovers new kinds, such as ours, every thirty seconds.
    await eventually(gone, seconds=180)
    # The CRDs of earlier tests end at their own pace, so only the API server knows the number.
    await judged_again(admin, operator)

    await admin.apply_definition(kind)
    second = await report_with(admin, kind.name, Ready=READY)
    assert second.metadata.uid != first.metadata.uid


async def test_a_crd_that_is_replaced_at_once_takes_the_report_over(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, Ready=READY)

    await admin.delete(f"{CRDS}/{kind.name}")

    async def gone() -> bool:
        return await admin.find(f"{CRDS}/{kind.name}") is None

    await eventually(gone)
    uid = (await admin.apply_definition(kind))["metadata"]["uid"]

    def owned(report: DefinitionReport) -> bool:
        return [each.uid for each in report.metadata.owner_references] == [uid]

    await report_where(admin, kind.name, owned, f"owned by {uid} alone")
    await report_with(admin, kind.name, Ready=READY)


async def test_what_others_do_to_it_is_put_right(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    unseen = "Unknown/NotPermitted"
    probed = {"Ready": READY, "ScalingReady": unseen, "StatusWritersReady": unseen, "VersionsCurrent": unseen}
    await complete(admin, [kind.name])
    first = await report_with(admin, kind.name, **probed)
    path = f"{REPORTS}/{kind.name}"

    await admin.delete(path)

    def again(report: DefinitionReport) -> bool:
        seen = {type_: reported(report, type_) for type_ in probed}
        return report.metadata.uid != first.metadata.uid and seen == probed

    second = await report_where(admin, kind.name, again, "made again")
    since = {each.type: each.last_transition_time for each in second.status.conditions}
    assert since == {each.type: each.last_transition_time for each in first.status.conditions}

    theirs = {"status": {"storageVersion": "v9", "conditions": None, "storedVersions": ["v9"]}}
    await admin.merge(f"{path}/status", theirs)
    third = await report_where(admin, kind.name, lambda report: report.status == second.status)
    await admin.merge(path, {"metadata": {"ownerReferences": None}})

    def owned(report: DefinitionReport) -> bool:
        return report.metadata.owner_references == first.metadata.owner_references

    await report_where(admin, kind.name, owned, "owned by its CRD")
    # A slow API server may have been seen while it still installed the CRD.
    installed = ("Installing", "Established")
    sent = await admin.events(kind.name, "DefinitionReport")
    assert [each for each in sent if each[1] not in installed] == []
    assert third.metadata.uid == second.metadata.uid


async def test_a_restart_writes_nothing(admin: Admin, operator: Operator, group: str) -> None:
    kinds = [CustomKind(f"{name}.{group}") for name in ("a", "b")]
    for kind in kinds:
        await admin.apply_definition(kind)
    await admin.apply_definition(kinds[1].storing("v2"))
    await report_with(admin, kinds[0].name, Ready=READY)
    await report_with(admin, kinds[1].name, Ready="False/OldVersionsStored")
    # `time_passes` makes StorageMigrations, which the report on their CRD may count.
    names = {*OURS, *(each.name for each in kinds)} - {f"{StorageMigration.plural}.{GROUP}"}
    await complete(admin, names)
    await time_passes(admin)
    before = await versions_of_reports(admin, names)
    assert before.keys() == names

    assert operator.stop() == 0
    operator.start()
    await judged_again(admin, operator)
    await time_passes(admin)

    assert await versions_of_reports(admin, names) == before


async def test_missing_rights_are_told_and_waited_for(admin: Admin, operator: Operator, group: str) -> None:
    path = f"{CLUSTER_ROLES}/crdkeeper-operator"
    rules = (await admin.get(path))["rules"]
    begin = operator.log_size()
    kind = CustomKind(group)
    await admin.merge(path, {"rules": [without_writes(each) for each in rules]})
    try:
        await until_refused(admin)
        await admin.apply_definition(kind)

        async def told_so() -> bool:
            return "A DefinitionReport cannot be written: definitionreports" in operator.log_since(begin)

        await eventually(told_so)
        assert await admin.find(f"{REPORTS}/{kind.name}") is None
    finally:
        await admin.merge(path, {"rules": rules})
    await report_with(admin, kind.name, Ready=READY)
    assert operator.log_since(begin).count("A DefinitionReport cannot be written") == 1


async def until_refused(admin: Admin) -> None:
    """Returns once the operator may not create reports any more: a changed role counts a little later."""
    account = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(account)) as client:

        async def known() -> bool:
            return bool(await missing_rights(client, [Right("create", GROUP, "definitionreports")]))

        await eventually(known, otherwise=lambda: "the operator may still create reports")


def without_writes(rule: dict[str, Any]) -> dict[str, Any]:
    """An RBAC rule that allows only reading reports."""
    if rule["resources"] != ["definitionreports"]:
        return rule
    return {**rule, "verbs": ["list", "watch"]}
