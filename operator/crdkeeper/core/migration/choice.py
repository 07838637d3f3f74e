"""What to do without an operator: resume a migration, follow someone else's, or start one.

Its inputs are the existing StorageMigrations, so a process that was killed and starts again finds the object
that it left behind, whatever its name.
"""

import re
from collections.abc import Sequence
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
class Create:
    """Start a new one with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unneeded:
    """The CRD stores only one version: there is no need for an object."""


Choice = Resume | Follow | Create | Unneeded


def choose(
    resource: GroupResource,
    definition: DefinitionFacts | None,
    existing: Sequence[StorageMigration],
    *,
    name: str | None = None,
    full: bool = False,
) -> Choice:
    """Choose for a resource; `definition` is its CRD, if it has one.

    `full` requests that every object be written, even if nothing is outdated, as after a change of encryption
    keys. `name` is the name for a new object; by default that of the resource. A successful migration is a
    record of what was proved then, so a new one gets an object of its own: NAME, NAME-2, NAME-3, …
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
        if each.spec.managed_by != CLI and each.status.completion_time is None:
            return Follow(each)
    for each in mine:
        named_so = name is None or re.fullmatch(rf"{re.escape(name)}(-\d+)?", each.metadata.name)
        if each.spec.managed_by == CLI and named_so and _can_go_on(each, definition):
            return Resume(each)
    if definition is not None and not definition.outdated_versions and not full:
        return Unneeded()
    return Create(_free(base, {each.metadata.name for each in existing}))


def default_name(resource: GroupResource) -> str:
    """The name of the first migration of a resource that runs without the operator."""
    return f"{str(resource)[: _NAME_LIMIT - len('-cli-9999')].rstrip('-.')}-cli"


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
