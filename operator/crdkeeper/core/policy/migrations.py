"""From policies, CRDs and migrations: which migrations to create, and the status of each policy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import API_VERSION, POLICY_LABEL, ConditionStatus, find_condition
from crdkeeper.api.storagemigration import MigrationTemplate, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.text import count

_NAME_LIMIT = 253
_LABEL_LIMIT = 63


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a policy: the counts and the Ready condition for its status."""

    selected: int
    outdated: int
    failing: int
    ready: ConditionStatus
    reason: str
    message: str


def wanted_migration(
    policy: DefinitionPolicy, definition: DefinitionFacts, existing: Iterable[StorageMigration]
) -> dict[str, Any] | None:
    """The migration to create for a CRD that the policy governs, if it needs one and none is in progress.

    Its name contains CRD, storage version and generation, so the API server refuses to create it twice, and a
    later change of the CRD gets its own migration.
    """
    rules = policy.spec.storage_migration
    if rules.mode == "Disabled" or definition.terminating or not definition.established:
        return None
    if not definition.outdated_versions:
        return None
    name = migration_name(definition, plan=rules.mode == "Plan")
    if any(each.metadata.name == name or is_at_work(each, definition, rules.mode) for each in existing):
        return None
    metadata = {
        "name": name,
        "labels": {POLICY_LABEL: _label(policy.metadata.name)},
        "ownerReferences": [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "name": definition.name,
                "uid": definition.uid,
            }
        ],
    }
    return new_migration(metadata, definition, rules.template, mode=rules.mode)


def new_migration(
    metadata: Mapping[str, Any], definition: DefinitionFacts, template: MigrationTemplate, *, mode: str
) -> dict[str, Any]:
    """A StorageMigration of the CRD's objects."""
    return {
        "apiVersion": API_VERSION,
        "kind": StorageMigration.model_fields["kind"].default,
        "metadata": metadata,
        "spec": {
            **template.to_object(),
            "resource": {"group": definition.group, "resource": definition.plural},
            "mode": "Plan" if mode == "Plan" else "Execute",
        },
    }


def migration_name(definition: DefinitionFacts, *, plan: bool) -> str:
    """Unique for a CRD object, its generation and the mode; at most 253 characters."""
    suffix = f"-{definition.storage_version}-g{definition.generation}{'-plan' if plan else ''}"
    # A CRD that was deleted and re-created has the same name and generations, but is another one.
    suffix = f"{suffix}-{sha256(definition.uid.encode()).hexdigest()[:5]}"
    return definition.name[: _NAME_LIMIT - len(suffix)].rstrip("-.") + suffix


def _label(name: str) -> str:
    return name if len(name) <= _LABEL_LIMIT else sha256(name.encode()).hexdigest()[:_LABEL_LIMIT]


def is_at_work(migration: StorageMigration, definition: DefinitionFacts, mode: str) -> bool:
    """Whether a migration of that CRD is unfinished; it follows changes of the CRD by itself."""
    return (
        str(migration.spec.resource) == definition.name
        and (migration.spec.mode == "Plan") == (mode == "Plan")
        and migration.status.completion_time is None
    )


def standing(
    policy: DefinitionPolicy,
    governed: Iterable[DefinitionFacts],
    migrations: Mapping[str, Iterable[StorageMigration]],
) -> Standing:
    """The state of the policy; `migrations` are those of each CRD by the CRD's name."""
    definitions = list(governed)
    outdated = [each for each in definitions if each.outdated_versions]
    failing = [each.name for each in outdated if any(_is_failing(m) for m in migrations.get(each.name, ()))]
    status: ConditionStatus = "False" if failing else "True"
    if failing:
        shown = ", ".join(failing[:5])
        reason, message = (
            "MigrationFailing",
            f"{count(len(failing), 'migration')} not successful: {shown}. "
            f"`kubectl get smig -o wide` shows why.",
        )
    elif outdated and policy.spec.storage_migration.mode == "Automatic":
        reason, message = "Migrating", f"{len(outdated)} of {count(len(definitions), 'CRD')} being migrated."
    elif outdated:
        reason, message = (
            "Outdated",
            f"{len(outdated)} of {count(len(definitions), 'CRD')} with old stored versions, which mode "
            f"{policy.spec.storage_migration.mode} does not migrate.",
        )
    else:
        reason, message = (
            "Current",
            f"{count(len(definitions), 'CRD')} selected, each with only one stored version.",
        )
    return Standing(len(definitions), len(outdated), len(failing), status, reason, message)


def _is_failing(migration: StorageMigration) -> bool:
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    return succeeded is not None and succeeded.status == "False"
