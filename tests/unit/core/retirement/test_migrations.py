"""Which migration a retirement waits for, asks for or gives up, in each mode."""

import json

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.core.retirement.migrations import new_migration, wanted_name
from crdkeeper.core.retirement.steps import decide
from tests.unit.core.retirement.cases import NOW, definition, entry, evidence, facts, owner, passed

STORED = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"), stored=("v1alpha1", "v1"))


def migration(name: str, *, done: str | None = None, **spec: object) -> StorageMigration:
    body = new_migration(owner(), name)
    status: dict[str, object] = {}
    if done is not None:
        moment = NOW.isoformat()
        condition = {
            "type": "Succeeded",
            "status": done,
            "reason": "Tested",
            "message": "So it ended.",
            "lastTransitionTime": moment,
        }
        status = {"completionTime": moment, "conditions": [condition]}
    return StorageMigration.model_validate({**body, "spec": {**body["spec"], **spec}, "status": status})


def test_it_waits_for_any_migration_and_asks_for_one_at_most_five_times() -> None:
    running = migration("by-a-person")
    decision = decide(owner(), facts(STORED, evidence(), migrations=(running,)))
    assert (decision.act, decision.ready.reason) == (False, "Migrating")
    found = facts(STORED, evidence()).definition
    assert found is not None
    ended: tuple[StorageMigration, ...] = ()
    for _ in range(5):
        name = wanted_name(owner(), found, ended)
        assert name is not None
        ended = (*ended, migration(name, done="True"))
    decision = decide(owner(), facts(STORED, evidence(), migrations=ended))
    assert (decision.act, decision.ready.reason, decision.stalled) == (False, "MigratedInVain", True)


def test_it_says_that_a_migration_goes_on_only_with_the_command_that_runs_it() -> None:
    said = decide(owner(), facts(STORED, evidence(), migrations=(migration("m"),))).ready.message
    assert said == "StorageMigration m is at work: 0 %."
    killed = migration("dbs.example.com-cli", managedBy="crdkeeper.dev/cli")
    ready = decide(owner(), facts(STORED, evidence(), migrations=(killed,))).ready
    assert ready.reason == "Migrating"
    assert "Not the operator runs it, but crdkeeper.dev/cli." in ready.message
    assert "run `crdkeeper migrate dbs.example.com` again, or delete the StorageMigration." in ready.message
    other = migration("m", managedBy="example.com/\x1b[2Jtool")
    said = decide(owner(), facts(STORED, evidence(), migrations=(other,))).ready.message
    assert "\x1b" not in said
    assert "crdkeeper migrate" not in said


def test_a_failed_migration_is_not_repeated() -> None:
    found = facts(STORED, evidence()).definition
    assert found is not None
    name = wanted_name(owner(), found, ()) or ""
    failed = migration(name, done="False")
    decision = decide(owner(), facts(STORED, evidence(), migrations=(failed,)))
    assert (decision.act, decision.ready.reason, decision.stalled) == (False, "MigrationFailed", True)
    assert "So it ended." in decision.ready.message


def test_a_failed_migration_of_that_name_by_somebody_else_is_passed_over() -> None:
    found = facts(STORED, evidence()).definition
    assert found is not None
    name = wanted_name(owner(), found, ()) or ""
    theirs = migration(name, done="False")
    theirs.metadata.owner_references = []
    decision = decide(owner(), facts(STORED, evidence(), migrations=(theirs,)))
    assert (decision.act, decision.ready.reason) == (True, "StartingMigration")
    assert wanted_name(owner(), found, (theirs,)) not in (name, None)


def asked_for(of: VersionRetirement) -> str:
    """The name of the migration in the change that is due."""
    assert of.status.due is not None
    name: str = json.loads(of.status.due.manifest)["metadata"]["name"]
    return name


def by_a_person(name: str, done: str) -> StorageMigration:
    created = migration(name, done=done)
    created.metadata.owner_references = []
    return created


def test_a_migration_that_a_person_was_asked_for_and_that_failed_is_told() -> None:
    of = owner(mode="Guide")
    passed(of, facts(STORED, evidence()))
    name = asked_for(of)
    failed = by_a_person(name, "False")
    decision = passed(of, facts(STORED, evidence(), migrations=(failed,)))
    assert (decision.due, decision.ready.reason, decision.stalled) == (None, "MigrationFailed", True)
    assert decision.ready.message == (
        f"StorageMigration {name}: So it ended. Another one is due once you delete it."
    )
    # It holds nothing that does not depend on a person.
    alone = decide(owner(), facts(STORED, evidence(), migrations=(failed,)))
    assert alone.ready.reason == "StartingMigration"


def test_a_person_is_never_asked_for_a_migration_whose_name_is_taken() -> None:
    of = owner(mode="Guide")
    passed(of, facts(STORED, evidence()))
    first = asked_for(of)
    ended = [by_a_person(first, "True")]
    for number in (2, 3):
        passed(of, facts(STORED, evidence(), migrations=tuple(ended)))
        assert asked_for(of) == f"{first}-{number}"
        ended.append(by_a_person(asked_for(of), "True"))
    last = by_a_person(f"{first}-4", "False")
    decision = passed(of, facts(STORED, evidence(), migrations=(*ended, last)))
    assert decision.ready.reason == "MigrationFailed"


def test_the_migration_moves_all_entries_whatever_the_template_says() -> None:
    spec = new_migration(owner(migration={"settleSeconds": 7}), "a")["spec"]
    assert (spec["managedFields"], spec["verify"], spec["trim"]) == ("Retarget", "Full", True)
    assert spec["settleSeconds"] == 7
