"""What to do where no operator decides: go on with a migration, follow somebody else's, or begin one.

Its inputs are the StorageMigrations that exist, so a process that was killed and starts again comes to the
object that it left behind, by whatever name.
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
    """Go on with this one: it was interrupted, or it ended without success."""

    migration: StorageMigration


@dataclass(frozen=True, slots=True)
class Follow:
    """Somebody else is at work on this one."""

    migration: StorageMigration


@dataclass(frozen=True, slots=True)
class Create:
    """Begin a new one of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unneeded:
    """The CRD stores one version only: no object is worth creating."""


Choice = Resume | Follow | Create | Unneeded


def choose(
    resource: GroupResource,
    definition: DefinitionFacts | None,
    existing: Sequence[StorageMigration],
    *,
    name: str | None = None,
    full: bool = False,
) -> Choice:
    """Choose for a resource, of which `definition` is the CRD if it is a CRD's.

    `full` asks to write every object, also if nothing is outdated, as after a change of encryption keys.
    `name` is what a new object is to be called; by default after the resource. One that succeeded is a
    record of what was proved then, so a new migration gets an object of its own: NAME, NAME-2, NAME-3, …
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
    """The name of the first migration of a resource that is run without the operator."""
    return f"{str(resource)[: _NAME_LIMIT - len('-cli-9999')].rstrip('-.')}-cli"


def _can_go_on(migration: StorageMigration, definition: DefinitionFacts | None) -> bool:
    status = migration.status
    if status.completion_time is None:
        return True
    succeeded = find_condition(status.conditions, "Succeeded")
    if status.target is None or (succeeded is not None and succeeded.status == "True"):
        return False
    # What a CRD that was deleted left behind is no concern of one created again.
    return status.target.uid == (definition.uid if definition is not None else None)


def _free(base: str, taken: set[str]) -> str:
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
