"""Another migrator of the same resource: when it counts as running, and that ours waits then."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.storagemigration import GroupResource, MigrationSweep, StorageMigrationStatus
from crdkeeper.core.migration.observation import IN_TREE, OUT_OF_TREE, Observation, Others
from crdkeeper.core.migration.othermigrator import LEFTOVER_SECONDS, OtherMigrator, at_work_on
from crdkeeper.core.migration.protocol import Action, Finish, Hold, SweepAll, decide
from tests.unit.builders import NOW, at_work, later, lease, refused, seen, spec

WIDGETS = GroupResource(group="example.com", resource="widgets")
OTHER = "StorageVersionMigration svm is running."


def other_migration(name: str = "svm", *true: str, **resource: str) -> dict[str, Any]:
    """A StorageVersionMigration with these conditions at True; keywords change its spec.resource."""
    conditions = [{"type": each, "status": "True"} for each in true] + [{"type": "Odd", "status": "False"}]
    return {
        "metadata": {"name": name},
        "spec": {"resource": {"group": "example.com", "resource": "widgets", **resource}},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("true", "counts"),
    [
        ((), True),
        (("Running",), True),
        (("Running", "Succeeded"), True),
        (("Running", "Failed"), True),
        (("Succeeded",), False),
        (("Failed",), False),
    ],
)
def test_it_counts_until_it_has_put_the_crd_in_order(true: tuple[str, ...], counts: bool) -> None:
    assert at_work_on(WIDGETS, [other_migration("svm", *true)]) == (["svm"] if counts else [])


def test_other_resources_are_no_concern() -> None:
    others = [other_migration(group="other.com"), other_migration(resource="gadgets")]
    assert at_work_on(WIDGETS, others) == []


def test_the_core_group_may_be_left_out() -> None:
    secrets = {"metadata": {"name": "svm"}, "spec": {"resource": {"resource": "secrets"}}}
    assert at_work_on(GroupResource(resource="secrets"), [secrets]) == ["svm"]


def test_the_version_that_the_alpha_names_is_no_matter() -> None:
    assert at_work_on(WIDGETS, [other_migration(version="v1")]) == ["svm"]


BLIND = Others(unseen=(IN_TREE,))


def look(*names: str, others: Others | None = None, marked: bool = False) -> Observation:
    condition = {"type": "StorageMigrating", "status": "True" if marked else "False"}
    return replace(seen(lease(), status={"conditions": [condition]}), others=others or Others(names))


class TestLook:
    def test_nobody(self) -> None:
        assert OtherMigrator().look(look(), NOW) == ""
        assert OtherMigrator().look(look(others=BLIND), NOW) == ""
        assert OtherMigrator().look(Observation(None), NOW) == ""

    def test_those_at_work_are_named(self) -> None:
        message = OtherMigrator().look(look("a (one)", "b (two)", "c", "d", "e"), NOW)
        assert "StorageVersionMigration a (one), b (two), c and 2 more is" in message
        assert "when it ends or is deleted" in message

    def test_the_condition_counts_for_long_where_nobody_can_be_seen(self) -> None:
        other = OtherMigrator()
        for seconds in (0, 10 * LEFTOVER_SECONDS):
            message = other.look(look(others=BLIND, marked=True), later(seconds))
            assert "list storageversionmigrations.storagemigration.k8s.io is not permitted" in message

    def test_nothing_marks_a_crd_for_those_of_the_other_group(self) -> None:
        other = OtherMigrator()
        unseen = Others(unseen=(OUT_OF_TREE,))
        assert other.look(look(others=unseen), NOW) == ""
        assert "continues in 300 s" in other.look(look(others=unseen, marked=True), NOW)

    def test_a_condition_left_over_counts_for_a_while(self) -> None:
        other = OtherMigrator()
        assert "continues in 300 s" in other.look(look(marked=True), NOW)
        assert "continues in 1 s" in other.look(look(marked=True), later(LEFTOVER_SECONDS - 1))
        assert other.look(look(marked=True), later(LEFTOVER_SECONDS)) == ""

    def test_the_while_begins_when_the_other_is_gone(self) -> None:
        other = OtherMigrator()
        other.look(look(marked=True), NOW)
        other.look(look("svm", marked=True), later(200))
        assert other.look(look(marked=True), later(LEFTOVER_SECONDS + 1)) != ""
        other.look(look(), later(400))
        assert "in 300 s" in other.look(look(marked=True), later(2 * LEFTOVER_SECONDS))


def decided(status: StorageMigrationStatus, *, other: str = OTHER, **wanted: Any) -> Action:
    return decide(
        spec(**wanted),
        status,
        seen(lease()),
        renewed_at=later(-100),
        changed_at=later(-100),
        all_named=True,
        other=other,
        now=NOW,
    )


def refusing() -> StorageMigrationStatus:
    status = at_work(named=[refused()], quarantined=1).status
    status.sweep = MigrationSweep(type="Rewrite", done=True)
    return status


def done(type_: Any) -> StorageMigrationStatus:
    status = at_work().status
    status.sweep = MigrationSweep(type=type_, done=True)
    return status


def pinned() -> StorageMigrationStatus:
    status = at_work().status
    status.settled_resource_version = status.sweep = None
    return status


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        (pinned(), "Settled"),
        (at_work().status, "Rewritten"),
        (refusing(), "Rewritten"),
        (done("Rewrite"), "Verified"),
        (at_work("Verify").status, "Verified"),
        (done("Verify"), "Trimmed"),
    ],
    ids=["settled", "rewriting", "refused", "rewritten", "verifying", "verified"],
)
def test_ours_holds_before_it_writes(status: StorageMigrationStatus, condition: str) -> None:
    assert decided(status) == Hold(condition, "AnotherMigrator", OTHER, 10.0)
    assert not isinstance(decided(status, other=""), Hold)


def test_what_writes_nothing_goes_on() -> None:
    plan = pinned()
    assert decided(plan, mode="Plan") == SweepAll("Plan", fresh=True)
    assert isinstance(decided(done("Verify"), trim=False), Finish)
