"""The StorageMigration of a definition, and the condition that shows its progress."""

from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.composer.storage import storage_current, wanted_migration
from tests.unit.core.composer.test_plan import OURS, crd
from tests.unit.core.composition.documents import document, version

Json = Any
MOVED = document(version("v1", referenceable=False), version("v2"), metadata=OURS)
DEFINITION = CompositeResourceDefinition.model_validate(MOVED)


def live(*stored: str, **changes: Any) -> Json:
    found = crd(MOVED)
    found["status"]["storedVersions"] = list(stored)
    found["metadata"] |= changes
    return found


def migration(
    name: str = "m", resource: str = "databases", done: bool = False, **status: Any
) -> StorageMigration:
    if done:
        status["completionTime"] = "2026-01-02T03:04:05Z"
    return StorageMigration.model_validate(
        {
            "metadata": {"name": name},
            "spec": {"resource": {"group": "platform.example.com", "resource": resource}},
            "status": status,
        }
    )


def succeeded(status: str, reason: str, message: str) -> Json:
    times = {"lastTransitionTime": "2026-01-02T03:04:05Z"}
    return [{"type": "Succeeded", "status": status, "reason": reason, "message": message, **times}]


def test_a_move_is_migrated_under_the_definition() -> None:
    wanted = wanted_migration(DEFINITION, live("v1", "v2"), [])
    assert wanted is not None
    (owner,) = wanted["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CompositeResourceDefinition", "1-2", True)
    assert wanted["spec"]["resource"] == {"group": "platform.example.com", "resource": "databases"}
    assert wanted["spec"]["mode"] == "Execute"
    assert wanted["spec"]["managedFields"] == "Retarget"
    StorageMigration.model_validate(wanted)


@pytest.mark.parametrize(
    ("found", "existing"),
    [
        (None, []),
        (live("v2"), []),
        (live("v1", "v2", deletionTimestamp="2026-01-02T03:04:05Z"), []),
        # The definition has moved again, and the CRD has not followed yet.
        (crd(document(version("v1"), version("v2", referenceable=False), metadata=OURS)), []),
        (live("v1", "v2"), [migration()]),
    ],
)
def test_when_none_is_created(found: Json, existing: list[StorageMigration]) -> None:
    assert wanted_migration(DEFINITION, found, existing) is None


def test_not_created_before_the_crd_stores_in_the_referenceable_version() -> None:
    before = crd(document(version("v1"), version("v2", referenceable=False), metadata=OURS))
    before["status"]["storedVersions"] = ["v0", "v1"]
    assert wanted_migration(DEFINITION, before, []) is None


def test_another_migration_of_the_same_change_is_not_created() -> None:
    wanted = wanted_migration(DEFINITION, live("v1", "v2"), [migration("n", "others"), migration(done=True)])
    assert wanted is not None
    done = migration(wanted["metadata"]["name"], done=True)
    assert wanted_migration(DEFINITION, live("v1", "v2"), [done]) is None


@pytest.mark.parametrize(
    ("found", "existing", "status", "reason", "said"),
    [
        (None, [], "Unknown", "NotEstablished", "no CRD"),
        (live("v2"), [], "True", "Current", "All composites are stored in v2."),
        (live("v1", "v2"), [], "False", "MigrationPending", "stored in v1"),
        (live("v1", "v2"), None, "False", "MigrationsUnavailable", "resources: [storagemigrations]"),
        (
            live("v1", "v2"),
            [
                migration(
                    progress={"total": 1200, "percent": 40, "remaining": "1m"},
                    conditions=succeeded("Unknown", "Rewriting", "Objects."),
                )
            ],
            "False",
            "Migrating",
            "StorageMigration m moves them to v2 (40 % of 1,200 objects, 1m left): Rewriting: Objects.",
        ),
        (
            live("v1", "v2"),
            [migration(conditions=succeeded("Unknown", "Settling", "Waiting."))],
            "False",
            "Migrating",
            "StorageMigration m moves them to v2: Settling: Waiting.",
        ),
        (
            live("v1", "v2"),
            [migration(conditions=succeeded("False", "Quarantined", "2 objects are refused."))],
            "False",
            "MigrationFailing",
            "StorageMigration m: Quarantined: 2 objects are refused.",
        ),
    ],
)
def test_the_condition(
    found: Json, existing: list[StorageMigration] | None, status: str, reason: str, said: str
) -> None:
    verdict = storage_current(found, existing)
    assert (verdict.reason.status, verdict.reason.name) == (status, reason)
    assert said in verdict.message


def test_a_migration_that_has_ended_without_success() -> None:
    wanted = wanted_migration(DEFINITION, live("v1", "v2"), [])
    assert wanted is not None
    name = wanted["metadata"]["name"]
    ended = migration(name, done=True, conditions=succeeded("False", "RetriesExhausted", "No."))
    verdict = storage_current(live("v1", "v2"), [ended])
    assert verdict.reason.name == "MigrationFailing"
    assert "delete it, and another one is created" in verdict.message
