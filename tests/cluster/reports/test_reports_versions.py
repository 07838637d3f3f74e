"""VersionsCurrent on a real API server: who writes what, and removed versions that objects still name."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import find_condition
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.probes.census import CensusWalk
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.reports.live.scene import change, let_read
from tests.cluster.reports.reports import condition_of, report_where, report_with


async def set_deprecated(admin: Admin, kind: CustomKind, version: str, **fields: Any) -> None:
    versions = (await admin.definition(kind))["spec"]["versions"]
    for each in versions:
        if each["name"] == version:
            each.update(fields)
    await change(admin, kind, {"versions": versions})


async def write(admin: Admin, kind: CustomKind, name: str, version: str, manager: str) -> None:
    """An update at a given version."""
    path = f"{kind.path(name, version=version)}?fieldManager={manager}"
    patch = {"spec": {"note": f"by {manager} at {version}"}}
    await admin.client.request("PATCH", path, patch, content_type=MERGE_PATCH)


async def test_a_deprecated_version_and_who_writes_it(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group).storing("v2")
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 3, version="v2")
    await write(admin, kind, "db-00001", "v1", "an-old-client")
    await set_deprecated(admin, kind, "v1", deprecated=True, deprecationWarning="use v2")

    def unknown(report: DefinitionReport) -> bool:
        found = find_condition(report.status.conditions, "VersionsCurrent")
        return found is not None and "It is not known who writes it" in found.message

    report = await report_where(admin, kind.name, unknown)
    message = condition_of(report, "VersionsCurrent").message
    assert condition_of(report, "VersionsCurrent").reason == "DeprecatedVersionServed"
    assert 'v1 is deprecated and served ("use v2").' in message
    assert "rbac.crdkeeper.dev/aggregate-to-reader" in message

    await let_read(admin, group)
    await set_deprecated(admin, kind, "v1", deprecationWarning="use v2 instead")
    report = await report_with(
        admin, kind.name, VersionsCurrent="False/DeprecatedVersionWritten", Ready="True/Healthy"
    )
    message = condition_of(report, "VersionsCurrent").message
    assert '"an-old-client" at v1 (Update, 1 object, last 20' in message
    assert "for example default/db-00001)" in message

    await set_deprecated(admin, kind, "v1", served=False)
    await report_with(admin, kind.name, VersionsCurrent="True/Current")


async def test_a_version_that_is_gone_but_named(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group).storing("v2")
    await admin.apply_definition(kind)
    await admin.opt_in(group)
    await admin.create_objects(kind, 2, version="v1")
    remaining = replace(kind, versions=tuple(each for each in kind.versions if each.name == "v2"))
    await admin.apply_definition(remaining)

    report = await report_with(
        admin, kind.name, VersionsCurrent="False/RemovedVersionNamed", Ready="False/RemovedVersionNamed"
    )
    message = condition_of(report, "VersionsCurrent").message
    assert "managedFields name them: v1 by 2 objects." in message
    assert '"admin" at v1 (Apply, 2 objects' in message
    assert await apply_again(admin, remaining) == 500
    assert await apply_again(admin, remaining, "somebody-new") == 500

    # As the message advises.
    await admin.migrate(group, kind, managedFields="Retarget", verify="Full")
    assert await apply_again(admin, remaining) == 200
    await change(admin, kind, {"names": {"categories": ["all"]}})
    await report_with(admin, kind.name, VersionsCurrent="True/Current", Ready="True/Healthy")


async def apply_again(admin: Admin, kind: CustomKind, manager: str = "admin") -> int:
    """The API server's answer to a manager, by default the one that applied the first object."""
    body = orjson.dumps(kind.instance("db-00000", engine="mysql"))
    path = f"{kind.path('db-00000')}?fieldManager={manager}"
    return (await admin.client.send("PATCH", path, content=body, content_type=APPLY_PATCH)).code


async def test_only_what_had_other_versions_is_counted(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    only = replace(kind, versions=kind.versions[:1])
    await admin.apply_definition(only)
    report = await report_with(admin, kind.name, VersionsCurrent="True/Current")
    assert "the only version the CRD has ever had" in condition_of(report, "VersionsCurrent").message

    await admin.apply_definition(kind)
    report = await report_with(admin, kind.name, VersionsCurrent="Unknown/NotPermitted", Ready="True/Healthy")
    assert "cannot list resource" in condition_of(report, "VersionsCurrent").message


@pytest.mark.parametrize("page", [1, 3, 500])
async def test_pages_of_a_census_add_up(admin: Admin, group: str, page: int) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 7)
    walk = CensusWalk(definition_facts(await admin.definition(kind)), page=page)
    steps = 1
    while not await walk.step(admin.client):
        steps += 1
    found = walk.census(admin.client.now())
    assert (found.objects, found.complete, found.versions) == (7, True, {"v1": 7})
    assert steps == -(-7 // page)
    assert int(found.resource_version) > 0


async def test_a_compacted_list_is_counted_to_the_end(admin: Admin, group: str) -> None:
    """etcd has forgotten the list's revision; objects created and deleted meanwhile may or may not count."""
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 6)
    walk = CensusWalk(definition_facts(await admin.definition(kind)), page=2)
    assert not await walk.step(admin.client)
    await write(admin, kind, "db-00000", "v2", "somebody")
    admin.etcd.compact()
    while not await walk.step(admin.client):
        pass
    found = walk.census(admin.client.now())
    assert (found.objects, found.complete, found.failure) == (6, True, None)
