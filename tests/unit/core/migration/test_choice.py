"""Which StorageMigration a command resumes, follows or creates."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.api.meta import CLI, OPERATOR, set_condition
from crdkeeper.api.storagemigration import GroupResource, MigrationTarget, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.migration.choice import (
    Choice,
    Create,
    Follow,
    NameTaken,
    Resume,
    Unneeded,
    choose,
    choose_shared,
    default_name,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WIDGETS = GroupResource(group="example.com", resource="widgets")
SECRETS = GroupResource(resource="secrets")


def definition(*stored: str, uid: str = "u1") -> DefinitionFacts:
    """The CRD of widgets, whose storage version is v2."""
    return definition_facts(
        {
            "metadata": {"name": "widgets.example.com", "uid": uid, "resourceVersion": "1"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "widgets", "kind": "Widget"},
                "scope": "Namespaced",
                "versions": [
                    {"name": name, "served": True, "storage": name == "v2"} for name in ("v1", "v2")
                ],
            },
            "status": {"storedVersions": stored or ("v1", "v2")},
        }
    )


def migration(
    name: str = "widgets.example.com-cli",
    *,
    resource: GroupResource = WIDGETS,
    managed_by: str = CLI,
    ended: str | None = None,
    uid: str | None = "u1",
    minutes: int = 0,
    **fields: Any,
) -> StorageMigration:
    """One that is running, or that ended with this Succeeded status; created that many minutes after NOW."""
    made = StorageMigration.model_validate(
        {
            "metadata": {"name": name, "creationTimestamp": NOW + timedelta(minutes=minutes)},
            "spec": {"resource": resource, "managedBy": managed_by, **fields},
        }
    )
    made.status.target = MigrationTarget(
        uid=uid, endpoint_version="v2", stored_versions=[], kind="Widget", namespaced=True
    )
    if ended is not None:
        assert ended in ("True", "False")
        status: Any = ended
        set_condition(made.status.conditions, "Succeeded", status, "Ended", "Ended.", generation=1, now=NOW)
        made.status.completion_time = NOW
    return made


def chosen(*existing: StorageMigration, **arguments: Any) -> Choice:
    """For the CRD of widgets, with v1 still stored."""
    return choose(WIDGETS, definition(), existing, **arguments)


def test_the_first_is_named_after_the_resource() -> None:
    assert chosen() == Create("widgets.example.com-cli")
    assert choose(SECRETS, None, ()) == Create("secrets-cli")
    assert chosen(name="mine") == Create("mine")


def test_a_long_name_leaves_room_for_a_number() -> None:
    longest = GroupResource(group=".".join(["g" * 63] * 3 + ["com"]), resource="p" * 53)
    name = default_name(longest)
    assert len(str(longest)) > 246
    assert len(f"{name}-9999") <= 253


def test_one_that_was_interrupted_is_gone_on_with() -> None:
    interrupted = migration()
    assert chosen(interrupted) == Resume(interrupted)


def test_one_that_was_interrupted_is_gone_on_with_though_all_is_current_by_now() -> None:
    interrupted = migration()
    assert choose(WIDGETS, definition("v2"), [interrupted]) == Resume(interrupted)


def test_one_that_failed_is_gone_on_with() -> None:
    failed = migration(ended="False")
    assert chosen(failed) == Resume(failed)


def test_one_that_failed_for_a_crd_of_before_is_left() -> None:
    assert chosen(migration(ended="False", uid="u0")) == Create("widgets.example.com-cli-2")


@pytest.mark.parametrize(
    ("resource", "crd"), [(WIDGETS, definition()), (SECRETS, None)], ids=["a CRD's", "no CRD's"]
)
def test_one_that_succeeded_is_a_record_and_the_next_gets_its_own(
    resource: GroupResource, crd: DefinitionFacts | None
) -> None:
    first, second = default_name(resource), f"{default_name(resource)}-2"
    uid = crd.uid if crd else None
    done = [migration(name, resource=resource, ended="True", uid=uid) for name in (first, second)]
    assert choose(resource, crd, done[:1]) == Create(second)
    assert choose(resource, crd, done) == Create(f"{first}-3")


def test_of_several_the_newest_is_gone_on_with() -> None:
    old, new = migration("a", minutes=1), migration("b", minutes=2)
    assert chosen(new, old) == chosen(old, new) == Resume(new)


def test_nothing_is_created_where_one_version_is_stored() -> None:
    assert choose(WIDGETS, definition("v2"), [migration(ended="True")]) == Unneeded()


def test_what_the_operator_is_at_work_on_is_followed() -> None:
    mine, theirs = migration(minutes=2), migration("by-policy", managed_by=OPERATOR, minutes=1)
    assert chosen(mine, theirs) == Follow(theirs)


@pytest.mark.parametrize("ended", ["True", "False"])
def test_what_the_operator_has_ended_is_not_followed(ended: str) -> None:
    assert chosen(migration("by-policy", managed_by=OPERATOR, ended=ended)) == Create(
        "widgets.example.com-cli"
    )


@pytest.mark.parametrize(
    "other",
    [
        migration(resource=GroupResource(group="example.com", resource="gadgets")),
        migration(mode="Plan"),
        migration("by-policy", managed_by=OPERATOR, mode="Plan"),
    ],
    ids=["another resource's", "a plan", "the operator's plan"],
)
def test_others_are_no_matter_but_keep_their_names(other: StorageMigration) -> None:
    found = chosen(other)
    assert isinstance(found, Create)
    assert found.name != other.metadata.name


def test_what_cannot_be_read_keeps_its_name() -> None:
    unread = {"widgets.example.com-cli", "mine"}
    assert chosen(unread=unread) == Create("widgets.example.com-cli-2")
    assert chosen(unread=unread, name="mine") == Create("mine-2")


def test_a_run_of_several_processes_needs_its_name() -> None:
    assert choose_shared(WIDGETS, definition(), (), {"other"}, name="run", full=False) == Create("run")
    with pytest.raises(NameTaken, match="run is of another release"):
        choose_shared(WIDGETS, definition(), (), {"run"}, name="run", full=False)


def test_one_that_is_being_deleted_is_left() -> None:
    deleted = migration()
    deleted.metadata.deletion_timestamp = NOW
    assert chosen(deleted) == Create("widgets.example.com-cli-2")


def test_with_a_name_only_those_named_so_are_gone_on_with() -> None:
    numbered, other = migration("mine-2"), migration("mine-too")
    assert chosen(other, name="mine") == Create("mine")
    assert chosen(numbered, other, name="mine") == Resume(numbered)


def test_a_full_run_is_wanted_although_nothing_is_outdated() -> None:
    assert choose(WIDGETS, definition("v2"), [], full=True) == Create("widgets.example.com-cli")
