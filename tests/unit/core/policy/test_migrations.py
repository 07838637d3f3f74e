"""Which migration a policy requires, and a policy's status."""

import re
from typing import Any

import pytest

from crdkeeper.api.meta import API_VERSION, POLICY_LABEL
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.policy.governance import Elsewhere
from crdkeeper.core.policy.labels import MigrationRules, migration_rules
from crdkeeper.core.policy.migrations import is_at_work, migration_name, standing, wanted_migration
from tests.unit.builders import NAME, definition, later, migration, policy, target, with_condition

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
"""RFC 1123 subdomain, as Kubernetes requires."""


def rules(*args: Any, **fields: Any) -> MigrationRules:
    """Those of a policy that selects all CRDs."""
    found = migration_rules([policy(*args, **fields)], definition(), watch_labels=False)
    assert found is not None
    return found


def over(made: StorageMigration, *, ended: float = 0) -> StorageMigration:
    """It has ended then, for `definition()`."""
    made.status.completion_time = later(ended)
    made.status.target = target()
    return made


def test_what_is_created() -> None:
    wanted = wanted_migration(rules("gold"), definition(), [])
    assert wanted is not None
    assert (wanted["apiVersion"], wanted["kind"]) == (API_VERSION, "StorageMigration")
    assert wanted["metadata"]["labels"] == {POLICY_LABEL: "gold"}
    assert wanted["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "name": NAME,
            "uid": "u1",
        }
    ]
    made = StorageMigration.model_validate(wanted)
    assert (str(made.spec.resource), made.spec.mode, made.spec.settle_seconds) == (NAME, "Execute", 7)


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("Disabled", {}),
        ("Automatic", {"stored": ("v2",)}),
        ("Automatic", {"deletionTimestamp": "2026-01-02T03:04:05Z"}),
        ("Automatic", {"status": {"conditions": []}}),
    ],
    ids=["disabled", "nothing to do", "terminating", "not established"],
)
def test_when_nothing_is_created(mode: str, changes: dict[str, Any]) -> None:
    assert wanted_migration(rules(mode=mode), definition(**changes), []) is None


def test_a_plan_is_created_as_such() -> None:
    wanted = wanted_migration(rules(mode="Plan"), definition(), [])
    assert wanted is not None
    assert wanted["spec"]["mode"] == "Plan"
    assert "-plan-" in wanted["metadata"]["name"]


@pytest.mark.parametrize(
    ("existing", "wanted"),
    [
        ([migration("other")], False),
        ([over(migration("other"))], True),
        ([over(migration(migration_name(definition(), plan=False)))], False),
        ([migration("other", resource={"group": "other.io", "resource": "widgets"})], True),
        ([migration("other", mode="Plan")], True),
    ],
    ids=["at work", "over", "over and of this generation", "of another CRD", "a plan only"],
)
def test_one_migration_at_a_time(existing: list[StorageMigration], wanted: bool) -> None:
    assert (wanted_migration(rules(), definition(), existing) is not None) is wanted


def test_a_plan_does_not_wait_for_a_migration() -> None:
    assert wanted_migration(rules(mode="Plan"), definition(), [migration("other")]) is not None
    assert wanted_migration(rules(mode="Plan"), definition(), [migration("other", mode="Plan")]) is None


@pytest.mark.parametrize(
    ("made", "mode", "at_work"),
    [
        (migration(), "Automatic", True),
        (migration(mode="Plan"), "Plan", True),
        (migration(mode="Plan"), "Automatic", False),
        (over(migration()), "Automatic", False),
        (migration(), "Disabled", False),
        (migration(resource={"group": "other.io", "resource": "widgets"}), "Automatic", False),
    ],
)
def test_is_at_work(made: StorageMigration, mode: str, at_work: bool) -> None:
    assert is_at_work(made, definition(), mode) is at_work


def test_names_are_told_apart() -> None:
    others = [
        definition(storage="v1"),
        definition(generation=3),
        definition(uid="u2"),
        definition(name="gadgets.example.com"),
    ]
    names = {migration_name(each, plan=plan) for each in (definition(), *others) for plan in (False, True)}
    assert len(names) == 10
    assert all(OBJECT_NAME.fullmatch(each) for each in names)


def test_a_name_is_the_same_each_time() -> None:
    assert migration_name(definition(), plan=False) == migration_name(definition(), plan=False)


def test_long_names_stay_apart_and_within_the_limit() -> None:
    for cut in range(5):
        long = ("w" * (50 + cut) + "." + "x.y-z" * 50)[:253].rstrip("-.")
        one, other = (migration_name(definition(name=long, uid=uid), plan=False) for uid in ("u1", "u2"))
        assert one != other
        for each in (one, other):
            assert len(each) <= 253
            assert OBJECT_NAME.fullmatch(each)


def test_a_policy_with_a_long_name_makes_a_valid_label() -> None:
    wanted = wanted_migration(rules("p" * 253), definition(), [])
    assert wanted is not None
    label = wanted["metadata"]["labels"][POLICY_LABEL]
    assert len(label) <= 63
    assert OBJECT_NAME.fullmatch(label)


OTHER = definition(name="gadgets.example.com", stored=("v2",))
FORBIDDEN = with_condition(migration(), "Succeeded", "False", "Forbidden")
REFUSED_PLAN = over(with_condition(migration(mode="Plan"), "Succeeded", "False", "WouldBeRefused"))
FAILED = over(with_condition(migration("failed"), "Succeeded", "False", "RetriesExhausted"), ended=5)
CLEAN_PLAN = over(with_condition(migration("clean", mode="Plan"), "Succeeded", "True", "PlanClean"), ended=9)


def succeeded(ended: float) -> StorageMigration:
    return over(with_condition(migration("done"), "Succeeded", "True", "Migrated"), ended=ended)


@pytest.mark.parametrize(
    ("mode", "governed", "migrations", "ready", "counts"),
    [
        ("Automatic", [], {}, ("True", "Current"), (0, 0, 0)),
        ("Automatic", [OTHER], {}, ("True", "Current"), (1, 0, 0)),
        ("Automatic", [definition(), OTHER], {}, ("True", "Migrating"), (2, 1, 0)),
        ("Disabled", [definition()], {}, ("True", "Outdated"), (1, 1, 0)),
        ("Plan", [definition()], {}, ("True", "Outdated"), (1, 1, 0)),
        (
            "Automatic",
            [definition()],
            {NAME: [with_condition(migration(), "Succeeded", "False", "ObjectsRefused")]},
            ("False", "MigrationFailing"),
            (1, 1, 1),
        ),
        (
            "Automatic",
            [definition()],
            {NAME: [with_condition(migration(), "Succeeded", "Unknown", "Rewriting")]},
            ("True", "Migrating"),
            (1, 1, 0),
        ),
        (
            "Automatic",
            [OTHER],
            {OTHER.name: [with_condition(migration(), "Succeeded", "False", "RetriesExhausted")]},
            ("True", "Current"),
            (1, 0, 0),
        ),
        (
            "Disabled",
            [definition()],
            {NAME: [FORBIDDEN, REFUSED_PLAN]},
            ("True", "Outdated"),
            (1, 1, 0),
        ),
        ("Plan", [definition()], {NAME: [FORBIDDEN]}, ("True", "Outdated"), (1, 1, 0)),
        ("Plan", [definition()], {NAME: [REFUSED_PLAN]}, ("False", "MigrationFailing"), (1, 1, 1)),
        ("Automatic", [definition()], {NAME: [REFUSED_PLAN]}, ("True", "Migrating"), (1, 1, 0)),
        ("Automatic", [definition()], {NAME: [FAILED]}, ("False", "MigrationFailing"), (1, 1, 1)),
        ("Automatic", [definition(uid="u2")], {NAME: [FAILED]}, ("True", "Migrating"), (1, 1, 0)),
        ("Automatic", [definition()], {NAME: [FAILED, migration("new")]}, ("True", "Migrating"), (1, 1, 0)),
        ("Automatic", [definition()], {NAME: [FAILED, succeeded(9)]}, ("True", "Migrating"), (1, 1, 0)),
        (
            "Automatic",
            [definition()],
            {NAME: [FAILED, succeeded(1)]},
            ("False", "MigrationFailing"),
            (1, 1, 1),
        ),
        ("Automatic", [definition()], {NAME: [FAILED, CLEAN_PLAN]}, ("False", "MigrationFailing"), (1, 1, 1)),
        ("Plan", [definition()], {NAME: [REFUSED_PLAN, CLEAN_PLAN]}, ("True", "Outdated"), (1, 1, 0)),
    ],
    ids=[
        "selects none",
        "current",
        "at work",
        "disabled",
        "plans",
        "failing",
        "running",
        "failed long ago",
        "disabled, and somebody's own fail",
        "plans, and somebody's own migration fails",
        "a plan fails",
        "migrates, and somebody's own plan fails",
        "failed",
        "failed for a former CRD of the name",
        "failed, and another one is at work",
        "failed, and a later one succeeded",
        "failed after another one",
        "failed, and a later plan is clean",
        "a plan failed, and a later one is clean",
    ],
)
def test_how_a_policy_stands(
    mode: str,
    governed: list[Any],
    migrations: dict[str, list[StorageMigration]],
    ready: tuple[str, str],
    counts: tuple[int, int, int],
) -> None:
    found = standing(policy(mode=mode), governed, lambda name: migrations.get(name, ()))
    assert (found.ready, found.reason) == ready
    assert (found.selected, found.outdated, found.failing) == counts
    assert found.message.endswith(".")


@pytest.mark.parametrize(
    ("governed", "number", "said"),
    [
        (
            [],
            1,
            "No CRD is governed by this policy. For 1 CRD that it selects, storageMigration and finalizers "
            "of an older policy count instead: x.io (first).",
        ),
        (
            [OTHER],
            3,
            "1 CRD governed, each with only one stored version. For 3 CRDs that it selects, storageMigration "
            "and finalizers of an older policy count instead, such as x.io (first).",
        ),
        ([], 0, "No CRD is selected."),
        ([OTHER], 0, "1 CRD selected, each with only one stored version."),
    ],
)
def test_a_policy_says_that_an_older_one_counts(governed: list[Any], number: int, said: str) -> None:
    elsewhere = Elsewhere(number, "x.io", "first") if number else None
    assert standing(policy(), governed, lambda _: (), elsewhere=elsewhere).message == said
    failing = standing(policy(), governed, lambda _: (), "it is missing.", elsewhere=elsewhere)
    assert failing.message == "The API server may let deletions pass: it is missing."
