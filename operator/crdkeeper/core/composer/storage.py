"""The version in which composites are stored: the StorageMigration after a change of it, and its progress."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import MigrationTemplate, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.composer import reasons
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.policy.migrations import is_at_work, migration_name, new_migration

_EXECUTE = "Automatic"
_RULE = "{apiGroups: [crdkeeper.dev], resources: [storagemigrations], verbs: [list, watch, create]}"


def outdated_versions(live: Mapping[str, Any] | None) -> Sequence[str]:
    """The versions that a migration removes from status.storedVersions of a CRD."""
    return definition_facts(live).outdated_versions if live is not None else ()


def wanted_migration(
    definition: CompositeResourceDefinition,
    live: Mapping[str, Any] | None,
    existing: Iterable[StorageMigration],
) -> dict[str, Any] | None:
    """The migration to create, once the CRD stores composites in the referenceable version and serves it.

    None as long as another one is at work, whoever created it. A DefinitionPolicy gives its migrations the
    same names, so the API server refuses a second one.
    """
    if live is None:
        return None
    facts = definition_facts(live)
    if facts.terminating or not facts.established or not facts.outdated_versions:
        return None
    referenceable = next(each.name for each in definition.spec.versions if each.referenceable)
    if facts.storage_version != referenceable or referenceable not in facts.served_versions:
        return None
    name = migration_name(facts, plan=False)
    if any(each.metadata.name == name or is_at_work(each, facts, _EXECUTE) for each in existing):
        return None
    owner = {
        "apiVersion": definition.api_version,
        "kind": definition.kind,
        "name": definition.metadata.name,
        "uid": definition.metadata.uid,
        "controller": True,
    }
    # Entries of managedFields that name the old version break server-side apply once the version is dropped.
    template = MigrationTemplate(managed_fields="Retarget")
    return new_migration({"name": name, "ownerReferences": [owner]}, facts, template, mode="Execute")


def storage_current(
    live: Mapping[str, Any] | None, migrations: Sequence[StorageMigration] | None, failure: str = ""
) -> Verdict:
    """The condition StorageCurrent; `migrations` is None if they cannot be listed.

    `failure` says why the one that is needed could not be created.
    """
    if live is None:
        return Verdict(reasons.STORAGE_UNKNOWN, "There is no CRD of this definition.")
    facts = definition_facts(live)
    if not facts.outdated_versions:
        return Verdict(reasons.CURRENT, f"All composites are stored in {facts.storage_version}.")
    begin = f"Composites may still be stored in {', '.join(facts.outdated_versions)}"
    if migrations is None:
        return Verdict(
            reasons.MIGRATIONS_UNAVAILABLE,
            f"{begin}, and the composer cannot create a StorageMigration: install crdkeeper's operator, and "
            f"give the composer the rule {_RULE}. Or run `crdkeeper migrate {facts.name}`.",
        )
    if failure:
        return Verdict(
            reasons.MIGRATIONS_UNAVAILABLE,
            f"{begin}, and the composer could not create a StorageMigration: {failure}. It tries again. It "
            f"needs the rule {_RULE}. Or run `crdkeeper migrate {facts.name}`.",
        )
    known = [each for each in migrations if str(each.spec.resource) == facts.name]
    name = migration_name(facts, plan=False)
    running = [each for each in known if is_at_work(each, facts, _EXECUTE)]
    ended = [each for each in known if each.metadata.name == name]
    if not running and not ended:
        return Verdict(
            reasons.MIGRATION_PENDING,
            f"{begin}. A StorageMigration is created once the conditions Accepted and Established are True.",
        )
    return _progress(begin, (running or ended)[0], facts)


def _progress(begin: str, migration: StorageMigration, facts: DefinitionFacts) -> Verdict:
    name, progress = migration.metadata.name, migration.status.progress
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    said = f": {succeeded.reason}: {succeeded.message}" if succeeded is not None else ""
    if succeeded is not None and succeeded.status == "False":
        ended = migration.status.completion_time is not None
        remedy = " It has ended: delete it, and another one is created." if ended else ""
        return Verdict(reasons.MIGRATION_FAILING, f"{begin}; StorageMigration {name}{said}{remedy}")
    left = f", {progress.remaining} left" if progress.remaining else ""
    # Nothing is counted before it begins.
    done = f" ({progress.percent} % of {progress.total:,} objects{left})" if progress.total else ""
    message = f"{begin}; StorageMigration {name} moves them to {facts.storage_version}{done}{said}"
    return Verdict(reasons.MIGRATING, message)
