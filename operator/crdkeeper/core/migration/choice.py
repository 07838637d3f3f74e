"""What to do without an operator: resume a migration, follow someone else's, or start one.

Its inputs are the existing StorageMigrations, so a process that was killed and starts again finds the object
that it left behind, whatever its name.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crdkeeper.api.meta import CLI, find_condition
from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts

_NAME_LIMIT = 253
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume this one: it was interrupted, or ended without success."""

    migration: StorageMigration


@dataclass(frozen=True, slots=True)
class Follow:
    """Someone else runs this one."""

    migration: StorageMigration


@dataclass(frozen=True, slots=True)
class Over:
    """This one has already succeeded, and nothing is to be done again."""

    migration: StorageMigration


@dataclass(frozen=True, slots=True)
class Create:
    """Start a new one with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unneeded:
    """The CRD stores only one version: there is no need for an object."""


Choice = Resume | Follow | Create | Unneeded


class NameTaken(ValueError):
    """The name of a run belongs to a migration that it cannot be about."""


def choose_shared(
    resource: GroupResource,
    definition: DefinitionFacts | None,
    existing: Sequence[StorageMigration],
    unread: Collection[str] = (),
    *,
    name: str,
    full: bool,
) -> Choice | Over:
    """Choose for one of several processes of one run, which the name identifies.

    A process may begin when the others have ended: it must not begin the run anew. For `unread` see `choose`.
    Raises NameTaken.
    """
    for each in existing:
        if each.spec.resource == resource and _is_anothers(each):
            return Follow(each)
    for each in existing:
        if each.metadata.name != name:
            continue
        if each.spec.resource != resource or each.spec.managed_by != CLI or each.spec.mode != "Execute":
            raise NameTaken(f"StorageMigration {name} is not one of {resource} that commands run")
        return Resume(each) if _can_go_on(each, definition) else Over(each)
    if name in unread:
        raise NameTaken(f"StorageMigration {name} is of another release, and this one cannot read it")
    if definition is not None and not definition.outdated_versions and not full:
        return Unneeded()
    return Create(name)


def choose(
    resource: GroupResource,
    definition: DefinitionFacts | None,
    existing: Sequence[StorageMigration],
    unread: Collection[str] = (),
    *,
    name: str | None = None,
    full: bool = False,
) -> Choice:
    """Choose for a resource; `definition` is its CRD, if it has one.

    `full` requests that every object be written, even if nothing is outdated, as after a change of encryption
    keys. `name` is the name for a new object; by default that of the resource. A successful migration is a
    record of what was proved then, so a new one gets an object of its own: NAME, NAME-2, NAME-3, …
    `unread` are the names of existing migrations that another release has written, and nobody here can read.
    """
    base = name or default_name(resource)
    mine = sorted(
        (
            each
            for each in existing
            if each.spec.resource == resource
            and each.spec.mode == "Execute"
            and each.metadata.deletion_timestamp is None
        ),
        key=lambda each: (each.metadata.creation_timestamp or _EARLIEST, each.metadata.name),
        reverse=True,
    )
    for each in mine:
        if _is_anothers(each):
            return Follow(each)
    for each in mine:
        if each.status.shards is not None:
            continue  # its processes share it, under a name of its own
        named_so = name is None or re.fullmatch(rf"{re.escape(name)}(-\d+)?", each.metadata.name)
        if each.spec.managed_by == CLI and named_so and _can_go_on(each, definition):
            return Resume(each)
    if definition is not None and not definition.outdated_versions and not full:
        return Unneeded()
    return Create(_free(base, {*unread, *(each.metadata.name for each in existing)}))


def default_name(resource: GroupResource) -> str:
    """The name of the first migration of a resource that runs without the operator."""
    return f"{str(resource)[: _NAME_LIMIT - len('-cli-9999')].rstrip('-.')}-cli"


def _is_anothers(migration: StorageMigration) -> bool:
    """Whether someone other than a command migrates now."""
    return (
        migration.spec.managed_by != CLI
        and migration.spec.mode == "Execute"
        and migration.status.completion_time is None
        and migration.metadata.deletion_timestamp is None
    )


def _can_go_on(migration: StorageMigration, definition: DefinitionFacts | None) -> bool:
    status = migration.status
    if status.completion_time is None:
        return True
    succeeded = find_condition(status.conditions, "Succeeded")
    if status.target is None or (succeeded is not None and succeeded.status == "True"):
        return False
    # What a deleted CRD left behind does not matter to one created later.
    return status.target.uid == (definition.uid if definition is not None else None)


def _free(base: str, taken: set[str]) -> str:
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
