"""What a change of storage makes due, and which migration proves it."""

from datetime import datetime
from typing import Any

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinResource
from crdkeeper.api.meta import ConditionStatus, set_condition
from crdkeeper.api.storagemigration import MigrationTarget, StorageMigration
from crdkeeper.core.builtins.plan import (
    Known,
    in_progress,
    judged,
    migration_name,
    next_migration,
    observed,
    superseded,
)
from crdkeeper.core.builtins.view import View
from tests.unit.builders import NOW, later
from tests.unit.core.builtins.builders import builtin_policy, view


def look(policy: BuiltinPolicy, seen: View, now: datetime = NOW) -> BuiltinResource:
    """Another look, whose result is recorded."""
    policy.status.resources = observed(policy, seen, ["secrets"], now)
    return policy.status.resources[0]


def created(policy: BuiltinPolicy, **changes: Any) -> StorageMigration:
    """The migration that the policy would create once the API servers have settled."""
    (each,) = judge(policy)
    wanted = next_migration(policy, [each])
    assert wanted is not None, each
    return StorageMigration.model_validate(wanted | changes)


def judge(
    policy: BuiltinPolicy, *migrations: StorageMigration, at: float = 1000, **known: Any
) -> list[BuiltinResource]:
    known = {"missing": {}, "now": later(at), **known}
    return judged(policy, policy.status.resources, Known(migrations, **known))


def ended(
    migration: StorageMigration, status: ConditionStatus = "True", hash: str = "old", *, final: bool = True
) -> StorageMigration:
    migration.status.target = MigrationTarget(
        endpoint_version="v1", storage_version_hash=hash, kind="Secret", namespaced=True
    )
    set_condition(migration.status.conditions, "Succeeded", status, "Said", "Why.", generation=1, now=NOW)
    migration.status.completion_time = later(500) if final else None
    return migration


def proved(policy: BuiltinPolicy, seen: View, now: datetime = NOW) -> StorageMigration:
    """Looks, migrates, and records the proof."""
    look(policy, seen, now)
    migration = ended(created(policy))
    policy.status.resources = judge(policy, migration)
    assert policy.status.resources[0].migrated
    return migration


def test_what_is_not_recorded_is_due() -> None:
    policy = builtin_policy()
    assert look(policy, view("old")).migrated is False
    assert created(policy).spec.resource.resource == "secrets"


@pytest.mark.parametrize(
    ("after", "spec"),
    [
        (view("new"), {}),
        (view("old", config=("d",)), {}),
        (view("old"), {"encryptionKey": "k2"}),
        (view("old", "new"), {}),
        (view("old", config=("c", "d")), {}),
        (view("old", config=("", "c")), {}),
    ],
    ids=["version", "configuration", "key", "versions differ", "configurations differ", "one encrypts"],
)
def test_a_change_makes_due(after: View, spec: dict[str, str]) -> None:
    policy = builtin_policy()
    proved(policy, view("old"))
    changed = builtin_policy(**spec)
    changed.status = policy.status
    each = look(changed, after, later(2000))
    assert not each.migrated
    assert (each.changed_time, each.migrated_time) == (later(2000), later(500))


@pytest.mark.parametrize("same", [view("old"), view("old", config=None)], ids=["same", "not known"])
def test_what_did_not_change_stays_proved(same: View) -> None:
    policy = builtin_policy()
    proved(policy, view("old"))
    assert look(policy, same, later(2000)).migrated


def test_a_change_that_was_undone_is_proved_anew() -> None:
    policy = builtin_policy()
    first = proved(policy, view("old"))
    look(policy, view("old", config=("d",)), later(2000))
    look(policy, view("old"), later(3000))
    (each,) = judge(policy, first, at=4000)
    assert (each.migrated, each.reason) == (False, "Waiting")
    assert migration_name(policy, each) != first.metadata.name


def test_a_status_that_was_lost_is_proved_anew() -> None:
    policy = builtin_policy()
    first = proved(policy, view("old"))
    policy.status.resources = []
    look(policy, view("old"), later(2000))
    assert not judge(policy, first, at=4000)[0].migrated


def test_while_servers_disagree_nothing_begins() -> None:
    policy = builtin_policy()
    look(policy, view("old", "new"))
    assert [each.reason for each in judge(policy)] == ["ServersDisagree"]


def test_a_disagreement_that_cannot_be_observed_any_more_is_over() -> None:
    policy = builtin_policy()
    look(policy, view("old", config=("c", "d")))
    assert [each.reason for each in judge(policy)] == ["ServersDisagree"]
    each = look(policy, view("old", config=None), later(2000))
    assert (each.encryption_configuration, each.changed_time) == (None, later(2000))
    assert [each.reason for each in judge(policy, at=2064)] == ["Settling"]
    assert [each.reason for each in judge(policy, at=2065)] == ["Waiting"]
    assert look(policy, view("old", config=None), later(3000)) == each


@pytest.mark.parametrize(("seconds", "reason"), [(64, "Settling"), (65, "Waiting")])
def test_the_servers_must_agree_for_a_while(seconds: float, reason: str) -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    assert [each.reason for each in judge(policy, at=seconds)] == [reason]


def test_missing_rights_are_named_as_a_rule() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    (each,) = judge(policy, missing={"secrets": ["patch"]})
    assert each.reason == "Forbidden"
    assert '{apiGroups: [""], resources: [secrets], verbs: [get, list, patch]}' in each.message
    assert next_migration(policy, [each]) is None


def test_a_stranger_with_the_same_name_proves_nothing() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    stranger = ended(created(policy))
    stranger.metadata.owner_references = []
    assert [each.reason for each in judge(policy, stranger)] == ["NameTaken"]


def test_one_that_cannot_be_read_is_not_waited_for() -> None:
    policy = builtin_policy()
    each = look(policy, view("old"))
    name = migration_name(policy, each)
    (taken,) = judge(policy, unread={name})
    assert taken.reason == "NameTaken"
    assert f"StorageMigration {name} is of another release" in taken.message
    assert next_migration(policy, [taken]) is None
    assert [each.reason for each in judge(policy, unread={"another"})] == ["Waiting"]


def test_another_migration_of_the_resource_is_waited_for() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    other = created(policy)
    other.metadata.name, other.metadata.owner_references = "by-hand", []
    assert [each.reason for each in judge(policy, other)] == ["AnotherMigration"]
    assert [each.reason for each in judge(policy, ended(other, "False"))] == ["Waiting"]


def test_a_plan_proves_nothing_and_is_not_repeated() -> None:
    policy = builtin_policy(mode="Plan")
    look(policy, view("old"))
    plan = ended(created(policy))
    assert plan.spec.mode == "Plan"
    (each,) = judge(policy, plan)
    assert (each.migrated, each.reason) == (False, "Said")


def test_a_proof_of_another_storage_version_is_none() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    wrong = ended(created(policy), hash="new")
    resources = judge(policy, wrong)
    assert not resources[0].migrated
    assert superseded(policy, resources, [wrong]) == [wrong]


def test_what_another_change_followed_is_deleted_unless_it_has_ended() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    at_work, over = created(policy), ended(created(policy))
    look(policy, view("new"), later(2000))
    assert superseded(policy, policy.status.resources, [at_work, over]) == [at_work]


@pytest.mark.parametrize(
    ("status", "final", "progress"),
    [("Unknown", False, True), ("False", False, False), ("True", True, False)],
)
def test_one_that_waits_for_a_person_holds_up_nothing(
    status: ConditionStatus, final: bool, progress: bool
) -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    migration = ended(created(policy), status, final=final)
    assert bool(in_progress([policy], [migration])) is progress


def test_a_suspended_one_holds_up_nothing() -> None:
    policy = builtin_policy()
    look(policy, view("old"))
    migration = created(policy)
    migration.spec.suspend = True
    assert not in_progress([policy], [migration])


def test_names_fit_however_long_the_resource() -> None:
    policy = builtin_policy()
    each = look(policy, view("old")).model_copy(update={"resource": "a" * 63 + "." + "b" * 253})
    assert len(migration_name(policy, each)) == 253
