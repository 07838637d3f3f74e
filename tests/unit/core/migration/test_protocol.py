"""The next action, for each possible state of a migration."""

from typing import Any

import pytest

from crdkeeper.api.meta import CLI, OPERATOR
from crdkeeper.api.storagemigration import (
    MigrationSweep,
    MigrationTarget,
    StorageMigrationStatus,
)
from crdkeeper.core.migration.observation import Observation
from crdkeeper.core.migration.protocol import (
    Action,
    Finish,
    Hold,
    Pin,
    RetryQuarantined,
    Separate,
    SweepAll,
    Trim,
    decide,
    step_at_work,
)
from tests.unit.builders import NOW, definition, later, lease, refused, seen, spec, target

TRIMMED = {"stored": ("v2",)}


def status(
    *, refusing: int = 0, due: float | None = None, rounds: int = 0, **fields: Any
) -> StorageMigrationStatus:
    """A status with the pinned target of `definition()`."""
    made = StorageMigrationStatus.model_validate({"progress": {}, "quarantine": {}})
    made.target = target()
    made.progress.quarantined = refusing
    made.quarantine.objects = [refused(f"w{number}") for number in range(min(refusing, 50))]
    made.quarantine.rounds = rounds
    made.quarantine.next_retry_time = None if due is None else later(due)
    return made.model_copy(update=fields)


def swept(type_: str, *, done: bool = True, unexpected: int = 0, **fields: Any) -> StorageMigrationStatus:
    """A status in which everything has settled and a pass is, or was, in progress."""
    sweep = MigrationSweep.model_validate(
        {"type": type_, "done": done, "unexpected": unexpected, "scanned": 7}
    )
    return status(settled_resource_version="500", sweep=sweep, **fields)


def decided(
    now: StorageMigrationStatus,
    look: Observation | None = None,
    *,
    all_named: bool = True,
    other: str = "",
    **wanted: Any,
) -> Action:
    return decide(
        spec(**wanted),
        now,
        look or seen(lease()),
        renewed_at=later(-100),
        changed_at=later(-100),
        all_named=all_named,
        other=other,
        now=NOW,
    )


def held(action: Action) -> tuple[str, str]:
    assert isinstance(action, Hold), action
    return action.condition, action.reason


def finished(action: Action) -> tuple[bool, str]:
    assert isinstance(action, Finish), action
    return action.succeeded, action.reason


def test_first_the_target_is_pinned() -> None:
    action = decided(status(target=None))
    assert action == Pin(target(), False, "The storage version is v2.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generation": 3}, "changed during the run (generation 2 to 3, storage version still v2): "),
        (
            {"generation": 3, "storage": "v1"},
            "changed during the run (generation 2 to 3, storage version v2 to v1): ",
        ),
        ({"uid": "u2", "generation": 2}, "was re-created during the run (storage version still v2): "),
    ],
    ids=["something changed", "rolled back", "created again"],
)
@pytest.mark.parametrize("now", [status(), swept("Rewrite", done=False), swept("Verify")])
def test_whatever_changes_in_mid_run_is_pinned_anew(
    now: StorageMigrationStatus, changes: dict[str, Any], words: str
) -> None:
    action = decided(now, seen(lease(), **changes))
    assert isinstance(action, Pin)
    assert action.restart
    assert words in action.message


def test_a_resource_that_no_crd_defines_is_pinned_anew_by_its_hash() -> None:
    pinned, found = (
        MigrationTarget(endpoint_version="v1", storage_version_hash=each, kind="Secret", namespaced=True)
        for each in ("aaa=", "bbb=")
    )
    action = decided(status(target=pinned), Observation(found, None))
    assert isinstance(action, Pin)
    assert "changed during the run (storageVersionHash aaa= to bbb=): " in action.message


def test_a_trim_by_somebody_else_is_no_change() -> None:
    assert isinstance(decided(swept("Rewrite", done=False), seen(lease(), **TRIMMED)), SweepAll)


def test_nothing_to_do() -> None:
    current = status(target=target(stored_versions=["v2"]))
    assert finished(decided(current, seen(lease(), **TRIMMED))) == (True, "AlreadyCurrent")


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"settled_resource_version": "500"}, {}),
        ({"restarts": 1}, {}),
        ({}, {"verify": "Full"}),
        ({}, {"mode": "Plan"}),
    ],
    ids=["begun", "began again", "all is to be written", "a plan"],
)
def test_a_single_stored_version_is_not_always_enough(fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    now = status(target=target(stored_versions=["v2"]), **fields)
    assert not isinstance(decided(now, seen(lease(), **TRIMMED), **wanted), Finish)


def test_a_resource_without_a_crd_is_never_current_by_itself() -> None:
    secrets = MigrationTarget(endpoint_version="v1", stored_versions=[], kind="Secret", namespaced=True)
    assert not isinstance(decided(status(target=secrets), Observation(secrets)), Finish)


@pytest.mark.parametrize("now", [status(target=None), status(), swept("Verify")])
def test_suspended(now: StorageMigrationStatus) -> None:
    assert held(decided(now, suspend=True)) == ("Suspended", "Suspended")


def test_a_resource_that_does_not_exist_is_waited_for() -> None:
    action = decided(status(target=None), Observation(None))
    assert held(action) == ("Resolved", "ResourceNotFound")


def test_a_crd_that_serves_nothing_is_waited_for() -> None:
    assert held(decided(swept("Rewrite"), seen(served=()))) == ("Resolved", "ResourceNotFound")


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (Observation(None), "DefinitionDeleted"),
        (seen(deletionTimestamp="2026-01-02T03:04:05Z"), "DefinitionTerminating"),
    ],
)
@pytest.mark.parametrize("wanted", [{}, {"suspend": True}])
def test_a_crd_that_goes_takes_the_work_along(look: Observation, reason: str, wanted: dict[str, Any]) -> None:
    assert finished(decided(swept("Rewrite"), look, **wanted)) == (False, reason)


@pytest.mark.parametrize(("managed_by", "words"), [(OPERATOR, "ClusterRole"), (CLI, "the account that runs")])
def test_missing_rights_are_named(managed_by: str, words: str) -> None:
    facts = definition()
    look = Observation(target(), facts, missing_rights=["patch widgets.example.com", "list widgets"])
    action = decided(status(), look, managedBy=managed_by)
    assert isinstance(action, Hold)
    assert held(action) == ("Permitted", "Forbidden")
    assert action.failing
    assert "patch widgets.example.com; list widgets" in action.message
    assert words in action.message


def test_before_all_has_settled_nothing_counts() -> None:
    action = decide(
        spec(),
        status(),
        seen(lease()),
        renewed_at=later(-100),
        changed_at=later(-10),
        all_named=True,
        other="",
        now=NOW,
    )
    assert held(action) == ("Settled", "Settling")
    assert held(decided(status(), seen(lease(version=100)))) == ("Settled", "APIServerNotSeen")


def test_leases_may_be_ignored() -> None:
    assert isinstance(decided(status(), seen(lease(version=100)), apiServerLeases="Ignore"), Separate)


def test_once_settled_the_separator_is_taken() -> None:
    assert isinstance(decided(status()), Separate)


@pytest.mark.parametrize(
    ("now", "wanted", "action"),
    [
        (status(settled_resource_version="500"), {}, SweepAll("Rewrite", fresh=True)),
        (swept("Rewrite", done=False), {}, SweepAll("Rewrite", fresh=False)),
        (swept("Rewrite", done=False, refusing=3), {}, SweepAll("Rewrite", fresh=False)),
        (swept("Rewrite"), {}, SweepAll("Verify", fresh=True)),
        (swept("Verify", done=False), {}, SweepAll("Verify", fresh=False)),
        (swept("Verify", unexpected=1), {}, SweepAll("Verify", fresh=True)),
        (swept("Verify", unexpected=1), {"verify": "Full"}, Trim()),
        (swept("Verify"), {}, Trim()),
    ],
    ids=[
        "rewrite",
        "go on rewriting",
        "whoever was refused",
        "verify",
        "go on verifying",
        "something was found",
        "all was written again",
        "proved",
    ],
)
def test_the_passes(now: StorageMigrationStatus, wanted: dict[str, Any], action: Action) -> None:
    assert decided(now, **wanted) == action


@pytest.mark.parametrize(
    ("look", "wanted"),
    [(seen(lease(), **TRIMMED), {}), (None, {"trim": False})],
    ids=["trimmed", "no trim wanted"],
)
def test_the_end(look: Observation | None, wanted: dict[str, Any]) -> None:
    assert finished(decided(swept("Verify"), look, **wanted)) == (True, "Migrated")


@pytest.mark.parametrize("type_", ["Rewrite", "Verify"])
@pytest.mark.parametrize("unexpected", [0, 1])
def test_as_long_as_one_is_refused_nothing_is_trimmed(type_: str, unexpected: int) -> None:
    now = swept(type_, unexpected=unexpected, refusing=1, due=5)
    action = decided(now)
    assert isinstance(action, Hold)
    assert held(action) == ("Rewritten", "ObjectsRefused")
    assert action.failing
    assert action.seconds == 5
    assert "1 object refused" in action.message
    assert "default/w0, 422 Invalid: It is not valid." in action.message


def test_a_distant_retry_is_looked_forward_to_in_small_steps() -> None:
    action = decided(swept("Rewrite", refusing=1, due=500))
    assert isinstance(action, Hold)
    assert action.seconds == 10


@pytest.mark.parametrize("due", [None, 0, -5])
@pytest.mark.parametrize(
    ("all_named", "action"),
    [(True, RetryQuarantined()), (False, SweepAll("Rewrite", fresh=True))],
    ids=["by name", "by a pass"],
)
def test_a_retry_that_is_due(due: float | None, all_named: bool, action: Action) -> None:
    assert decided(swept("Rewrite", refusing=2, due=due), all_named=all_named) == action


@pytest.mark.parametrize(
    ("rounds", "limit", "ends"), [(0, 0, True), (1, 2, False), (2, 2, True), (9, None, False)]
)
def test_the_limit_of_retries(rounds: int, limit: int | None, ends: bool) -> None:
    action = decided(swept("Rewrite", refusing=2, rounds=rounds), retry={"limit": limit})
    if ends:
        assert finished(action) == (False, "RetriesExhausted")
    else:
        assert isinstance(action, RetryQuarantined)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (status(), SweepAll("Plan", fresh=True)),
        (status(sweep=MigrationSweep(type="Plan")), SweepAll("Plan", fresh=False)),
    ],
    ids=["begin", "go on"],
)
def test_a_plan_writes_nothing_and_waits_for_nothing(now: StorageMigrationStatus, expected: Action) -> None:
    assert decided(now, seen(lease(version=1)), mode="Plan") == expected


@pytest.mark.parametrize(
    ("refusing", "end"), [(0, (True, "PlanClean")), (3, (False, "WouldBeRefused"))], ids=["clean", "refused"]
)
def test_the_end_of_a_plan(refusing: int, end: tuple[bool, str]) -> None:
    over = MigrationSweep(type="Plan", scanned=7, done=True)
    assert finished(decided(status(sweep=over, refusing=refusing), mode="Plan")) == end


@pytest.mark.parametrize(
    ("now", "condition"),
    [
        (status(target=None), "Resolved"),
        (status(), "Settled"),
        (status(settled_resource_version="500"), "Rewritten"),
        (swept("Rewrite", done=False), "Rewritten"),
        (swept("Rewrite", refusing=1), "Rewritten"),
        (swept("Verify", refusing=1), "Rewritten"),
        (swept("Rewrite"), "Verified"),
        (swept("Verify", done=False), "Verified"),
        (swept("Verify"), "Trimmed"),
        (swept("Plan"), "Rewritten"),
    ],
)
def test_trouble_concerns_a_step_that_is_not_done(now: StorageMigrationStatus, condition: str) -> None:
    assert step_at_work(spec(), now) == condition
