"""The StorageMigration that must succeed before a version is removed: objects and managedFields move on."""

import re
from collections.abc import Iterable
from hashlib import sha256
from itertools import count
from typing import Any

from crdkeeper.api.meta import API_VERSION, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.apiserver.definitions.facts import DefinitionFacts

_NAME_LIMIT = 253
_MOST = 5
"""Migrations in a row for one state of the CRD: somebody keeps writing what they take away."""


def at_work(migrations: Iterable[StorageMigration]) -> StorageMigration | None:
    """An unfinished migration, whoever asked for it; a retirement waits for it."""
    return next(
        (
            each
            for each in migrations
            if each.spec.mode == "Execute"
            and each.status.completion_time is None
            and each.metadata.deletion_timestamp is None
        ),
        None,
    )


def failed(
    owner: VersionRetirement, definition: DefinitionFacts, migrations: Iterable[StorageMigration]
) -> StorageMigration | None:
    """A migration for this state of the CRD that has ended without success: we, or a person, created it."""
    names, mode = _names(owner, definition), owner.spec.mode

    def is_asked_for(migration: StorageMigration) -> bool:
        name, owners = migration.metadata.name, migration.metadata.owner_references
        # Anybody who may create migrations can use such a name.
        if any(of.uid == owner.metadata.uid for of in owners):
            return name in names
        guided = re.fullmatch(rf"{re.escape(_guide_name(owner))}(-\d+)?", name)
        return mode != "Execute" and not owners and guided is not None

    return next(
        (
            each
            for each in migrations
            if is_asked_for(each) and each.status.completion_time is not None and not _succeeded(each)
        ),
        None,
    )


def wanted_name(
    owner: VersionRetirement, definition: DefinitionFacts, migrations: Iterable[StorageMigration]
) -> str | None:
    """The name of the next migration; None if there were so many without effect that a person must look."""
    taken = {each.metadata.name for each in migrations}
    return next((each for each in _names(owner, definition) if each not in taken), None)


def free_name(owner: VersionRetirement, migrations: Iterable[StorageMigration]) -> str:
    """The name of the next migration that a person is to create."""
    taken, name = {each.metadata.name for each in migrations}, _guide_name(owner)
    if name not in taken:
        return name
    return next(each for each in (f"{name}-{number}" for number in count(2)) if each not in taken)


def new_migration(owner: VersionRetirement, name: str, *, owned: bool = True) -> dict[str, Any]:
    """The migration. Every object is written, and every entry of managedFields names the storage version.

    `owned` makes it go with the retirement.
    """
    metadata: dict[str, Any] = {"name": name}
    if owned:
        metadata["ownerReferences"] = [
            {
                "apiVersion": API_VERSION,
                "kind": owner.kind,
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
            }
        ]
    return {
        "apiVersion": API_VERSION,
        "kind": StorageMigration.model_fields["kind"].default,
        "metadata": metadata,
        "spec": {
            **owner.spec.migration.to_object(),
            "resource": owner.spec.resource.to_object(),
            "managedFields": "Retarget",
            "verify": "Full",
            "trim": True,
        },
    }


def _guide_name(owner: VersionRetirement) -> str:
    return f"{str(owner.spec.resource)[:200].rstrip('-.')}-retire-{owner.spec.version}"


def _names(owner: VersionRetirement, definition: DefinitionFacts) -> list[str]:
    # The API server refuses to create one of these twice, also after a kill between creation and status.
    digest = sha256(f"{definition.uid}/{owner.metadata.uid}".encode()).hexdigest()[:8]
    found = []
    for number in range(1, _MOST + 1):
        suffix = f"-retire-{owner.spec.version}-g{definition.generation}-{digest}-{number}"
        found.append(definition.name[: _NAME_LIMIT - len(suffix)].rstrip("-.") + suffix)
    return found


def _succeeded(migration: StorageMigration) -> bool:
    found = find_condition(migration.status.conditions, "Succeeded")
    return found is not None and found.status == "True"
