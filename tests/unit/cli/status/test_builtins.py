"""`crdkeeper status --builtins`: what is due, and why."""

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.status.builtins import WIDE_HEADERS, BuiltinOverview, builtin_overview, builtin_row
from crdkeeper.core.builtins.view import StoredAs
from tests.unit.builders import NOW, later
from tests.unit.core.builtins.builders import builtin_policy, view
from tests.unit.core.builtins.test_plan import created, ended, look, proved

SECRETS = StoredAs("", "secrets", "old", "v1")


def record(*migrations: StorageMigration, policy: BuiltinPolicy | None = None) -> BuiltinOverview:
    (found,) = builtin_overview([SECRETS], migrations, [policy] if policy else [])
    return found


def finished(hash: str) -> StorageMigration:
    policy = builtin_policy()
    look(policy, view("old"))
    return ended(created(policy), hash=hash)


def test_without_a_policy_only_a_changed_version_is_certain() -> None:
    assert (record().due, record().reason) == ("unknown", "NoPolicy")
    assert record(finished("old")).due == "unknown"
    changed = record(finished("older"))
    assert (changed.due, changed.message) == ("yes", "The last migration was for older.")


def test_with_a_policy_its_record_counts() -> None:
    policy = builtin_policy()
    assert (record(policy=policy).due, record(policy=policy).reason) == ("yes", "NotKnown")
    migration = proved(policy, view("old"))
    found = record(migration, policy=policy)
    assert (found.due, found.migrated_time, found.migration) == ("no", later(500), migration.metadata.name)
    assert (
        dict(zip(WIDE_HEADERS, builtin_row(found, later(560), wide=True), strict=True))["MIGRATED"] == "60s"
    )


@pytest.mark.parametrize(
    ("recorded", "key", "message"),
    [
        (view("older"), "", "The operator last saw older."),
        (view("old"), "k2", "spec.encryptionKey has changed."),
    ],
)
def test_what_the_operator_has_not_seen_yet_is_due(recorded: object, key: str, message: str) -> None:
    policy = builtin_policy()
    proved(policy, view("old"))
    look(policy, recorded, NOW)  # type: ignore[arg-type]
    policy.spec.encryption_key = key
    found = record(policy=policy)
    assert (found.due, found.reason, found.message) == ("yes", "Changed", message)


def test_a_hostile_message_stays_in_its_cell() -> None:
    policy = builtin_policy()
    look(policy, view("old")).message = "a\nb"
    assert "\n" not in "".join(builtin_row(record(policy=policy), NOW, wide=True))
