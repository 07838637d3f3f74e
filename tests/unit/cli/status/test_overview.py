"""`crdkeeper status`: from facts to records and rows."""

from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import Condition
from crdkeeper.api.storagemigration import MigrationClaim, MigrationPart, MigrationShards, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.cli.status.overview import (
    HEADERS,
    WIDE_HEADERS,
    DefinitionOverview,
    DefinitionOverviewList,
    finding_lines,
    overview,
    row,
)
from crdkeeper.core.migration.sharding import name_of_pass
from tests.unit.cli.migrate.migrations import NOW, ended, migration, rewriting, with_condition


def definition(*stored: str, plural: str = "widgets", **changes: Any) -> DefinitionFacts:
    """A CRD of five minutes with storage version v2; v1 is stored, too, unless said otherwise."""
    conditions = [{"type": "Established", "status": "True"}]
    return definition_facts(
        {
            "metadata": {
                "name": f"{plural}.example.com",
                "uid": "u1",
                "resourceVersion": "1",
                "generation": 2,
                "creationTimestamp": (NOW - timedelta(minutes=5)).isoformat(),
                **changes.pop("metadata", {}),
            },
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "kind": "Widget"},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": True, "storage": False},
                    {"name": "v2", "served": True, "storage": True},
                    {"name": "v3alpha1", "served": False, "storage": False},
                ],
            },
            "status": {"storedVersions": stored or ("v1", "v2"), "conditions": conditions, **changes},
        }
    )


def record(definition: DefinitionFacts, *migrations: StorageMigration) -> DefinitionOverview:
    """The record of one CRD."""
    (found,) = overview([definition], migrations, [], {})
    return found


def cells(found: DefinitionOverview) -> dict[str, str]:
    """The row of one record by its columns."""
    return dict(zip(WIDE_HEADERS, row(found, NOW, wide=True), strict=True))


def created(made: StorageMigration, minute: int) -> StorageMigration:
    """The same, created at another time."""
    made.metadata.creation_timestamp = NOW + timedelta(minutes=minute)
    made.metadata.name = f"m{minute}"
    return made


def test_a_crd_with_old_versions_and_no_migration_needs_one() -> None:
    assert row(record(definition()), NOW) == [
        "widgets.example.com", "v2", "v1,v2", "v1,v2", "needed", "", "", "5m",
    ]  # fmt: skip


def test_a_crd_with_one_stored_version_needs_none() -> None:
    found = record(definition("v2"))
    assert (found.migration_needed, found.outdated_versions) == (False, [])
    assert cells(found)["MIGRATION"] == ""


def test_a_migration_at_work_shows_how_far_it_is() -> None:
    shown = cells(record(definition(), rewriting(610, 1000)))
    assert shown["MIGRATION"] == "widgets.example.com-cli"
    assert shown["PROGRESS"] == "61% 301/s 3s"
    assert shown["REASON"] == "Rewriting"
    assert (shown["REWRITTEN"], shown["CURRENT"], shown["REFUSED"]) == ("610", "0", "0")
    assert shown["MESSAGE"] == "So it is."


def test_parts_of_a_shared_migration_are_counted() -> None:
    made = rewriting(610, 1000)
    assert cells(record(definition(), made))["PARTS"] == ""
    work = name_of_pass(made.status)
    parts = [MigrationPart(sweep=work, done=True), MigrationPart(sweep=work, holder="b"), MigrationPart()]
    made.status.shards = MigrationShards(coordinator=MigrationClaim(holder="b"), parts=parts)
    found = record(definition(), made)
    assert cells(found)["PARTS"] == "1/3"
    assert found.migration is not None
    assert found.migration.to_object()["parts"] == {"count": 3, "done": 1, "atWork": 1, "coordinator": "b"}


def test_a_migration_that_just_began_has_no_rate() -> None:
    assert cells(record(definition(), migration()))["PROGRESS"] == "0%"
    assert cells(record(definition(), migration()))["REASON"] == "Pending"


def test_a_failed_migration_stays_in_sight() -> None:
    found = record(definition(), ended("RetriesExhausted", success=False))
    assert not found.migration_needed
    assert cells(found)["REASON"] == "RetriesExhausted"


@pytest.mark.parametrize(
    ("stored", "made", "needed"),
    [
        (("v2",), ended("Migrated", success=True), False),
        (("v1", "v2"), ended("Migrated", success=True), True),  # v1 came back later
        (("v1", "v2"), ended("Migrated", success=True, trim=False), False),  # left there on request
    ],
)
def test_after_a_success(stored: tuple[str, ...], made: StorageMigration, needed: bool) -> None:
    found = record(definition(*stored), made)
    assert found.migration_needed is needed
    assert cells(found)["MIGRATION"] == ("needed" if needed else made.metadata.name)


def test_after_a_success_without_trim_a_later_change_needs_a_migration() -> None:
    made = ended("Migrated", success=True, trim=False)
    assert record(definition(metadata={"generation": 3}), made).migration_needed


def test_the_latest_migration_is_the_one_at_work_else_the_newest() -> None:
    working = created(rewriting(), 1)
    newer, newest = created(ended("A", success=False), 2), created(ended("B", success=False), 3)
    assert cells(record(definition(), newer, working, newest))["MIGRATION"] == "m1"
    assert cells(record(definition(), newest, newer))["MIGRATION"] == "m3"


def test_migrations_that_tell_nothing_about_this_crd_are_left_out() -> None:
    plan = with_condition(migration(mode="Plan"), "Succeeded", "True", "PlanClean")
    of_before = ended("Migrated", success=True)
    assert of_before.status.target is not None
    of_before.status.target.uid = "u0"
    elsewhere = migration(resource={"group": "example.com", "resource": "gadgets"})
    assert record(definition(), plan, of_before, elsewhere).migration is None


def test_what_is_wrong_with_the_crd_itself_comes_first() -> None:
    conditions = [{"type": "Established", "status": "False"}]
    assert cells(record(definition(conditions=conditions), rewriting()))["REASON"] == "NotEstablished"
    deleted = definition(metadata={"deletionTimestamp": NOW.isoformat()})
    assert cells(record(deleted, rewriting()))["REASON"] == "Terminating"


def test_the_policy_that_governs_is_shown() -> None:
    policies = [
        DefinitionPolicy.model_validate({"metadata": {"name": name}, "spec": {"groups": [glob]}})
        for name, glob in (("others", "*.example.org"), ("ours", "*.com"))
    ]
    (found,) = overview([definition()], (), policies, {})
    assert cells(found)["POLICY"] == "ours"
    assert found.policy is not None
    assert found.policy.mode == "Automatic"


def test_records_are_in_the_order_of_names() -> None:
    found = overview([definition(plural=each) for each in ("c", "a", "b")], (), (), {})
    assert [each.name for each in found] == ["a.example.com", "b.example.com", "c.example.com"]


def test_what_reports_found_is_told_of_some() -> None:
    wrong = Condition(
        type="ScalingReady", status="False", last_transition_time=NOW, reason="TargetMissing", message="No w."
    )
    many = [definition(plural=f"widgets{at:02}") for at in range(25)]
    found = overview([definition(), *many], (), (), {each.name: [wrong] for each in many})
    assert not found[0].findings
    told = finding_lines(found)
    assert told[0] == "widgets00.example.com: ScalingReady is False, TargetMissing: No w."
    assert (len(told), told[-1]) == (21, "... and 5 more (-o json lists them)")
    assert found[1].to_object()["findings"] == [
        {"type": "ScalingReady", "reason": "TargetMissing", "message": "No w."}
    ]


def test_the_wide_row_extends_the_row() -> None:
    found = record(definition())
    assert WIDE_HEADERS[: len(HEADERS)] == HEADERS
    assert row(found, NOW, wide=True)[: len(HEADERS)] == row(found, NOW)
    assert len(row(found, NOW, wide=True)) == len(WIDE_HEADERS)


def test_the_list_for_scripts_is_stable() -> None:
    made = rewriting(610, 1000)
    document = DefinitionOverviewList(items=[record(definition(), made)]).to_object()
    assert document == {
        "apiVersion": "cli.crdkeeper.dev/v1alpha1",
        "kind": "DefinitionOverviewList",
        "items": [
            {
                "name": "widgets.example.com",
                "kind": "Widget",
                "storageVersion": "v2",
                "storedVersions": ["v1", "v2"],
                "servedVersions": ["v1", "v2"],
                "outdatedVersions": ["v1"],
                "migrationNeeded": False,
                "established": True,
                "terminating": False,
                "creationTimestamp": "2026-01-02T02:59:05Z",
                "migration": {
                    "name": "widgets.example.com-cli",
                    "managedBy": "crdkeeper.dev/cli",
                    "succeeded": "Unknown",
                    "reason": "Rewriting",
                    "message": "So it is.",
                    "percent": 61,
                    "objectsPerSecond": 301,
                    "remaining": "3s",
                    "total": 1000,
                    "rewritten": 610,
                    "current": 0,
                    "gone": 0,
                    "refused": 0,
                },
                "findings": [],
            }
        ],
    }
