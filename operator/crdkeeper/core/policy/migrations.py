"""From policies, labels, CRDs and migrations: which migrations to create, and the status of each policy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import API_VERSION, ConditionStatus
from crdkeeper.api.storagemigration import MigrationTemplate, StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.decisivemigration import decisive_migration, is_failing
from crdkeeper.core.policy.governance import Elsewhere
from crdkeeper.core.policy.labels import MigrationRules
from crdkeeper.core.policy.reading import why_unread
from crdkeeper.core.text import count

_NAME_LIMIT = 253
_GOVERNING = frozenset(("Current", "Migrating", "Outdated"))
"""The reasons that speak of the CRDs that a policy governs, and of nothing that somebody has to do first."""


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
    rules: MigrationRules, definition: DefinitionFacts, existing: Iterable[StorageMigration]
) -> dict[str, Any] | None:
    """The migration to create for a CRD by these rules, if it needs one and none is in progress.

    Its name contains CRD, storage version and generation, so the API server refuses to create it twice, and a
    later change of the CRD gets its own migration.
    """
    mode = rules.migration.mode
    if mode == "Disabled" or definition.terminating or not definition.established:
        return None
    if not definition.outdated_versions:
        return None
    name = migration_name(definition, plan=mode == "Plan")
    if any(each.metadata.name == name or is_at_work(each, definition, mode) for each in existing):
        return None
    metadata = {
        "name": name,
        "labels": dict(rules.labels),
        "ownerReferences": [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "name": definition.name,
                "uid": definition.uid,
            }
        ],
    }
    return new_migration(metadata, definition, rules.migration.template, mode=mode)


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


def is_at_work(migration: StorageMigration, definition: DefinitionFacts, mode: str) -> bool:
    """Whether a migration of that CRD is unfinished; it follows changes of the CRD by itself."""
    return (
        str(migration.spec.resource) == definition.name
        and _does(migration, mode)
        and migration.status.completion_time is None
    )


def _does(migration: StorageMigration, mode: str) -> bool:
    """Whether a migration does what a policy in that mode wants to have done, whoever made it."""
    return mode != "Disabled" and (migration.spec.mode == "Plan") == (mode == "Plan")


def standing(
    policy: DefinitionPolicy,
    governed: Iterable[DefinitionFacts],
    migrations: Callable[[str], Iterable[StorageMigration]],
    unprotected: str = "",
    unjudged: str = "",
    elsewhere: Elsewhere | None = None,
) -> Standing:
    """The state of the policy; `migrations` returns those of a CRD by its name.

    `unprotected` is why the API server does not protect the CRDs that the policy wants to have protected, and
    `unjudged` why their changes are not judged. `elsewhere` are the CRDs that it selects and others
    govern.
    """
    definitions = list(governed)
    outdated = [each for each in definitions if each.outdated_versions]
    mode = policy.spec.storage_migration.mode
    failing = [each.name for each in outdated if _fails(each, migrations(each.name), mode)]
    unread = why_unread(policy)
    status: ConditionStatus = "False" if unread or failing or unprotected or unjudged else "True"
    reason = "Current"
    if unread:
        reason, message = (
            "Unreadable",
            f"This release of crdkeeper cannot read it: {unread}. Until that is corrected, no objects of "
            f"{count(len(definitions), 'CRD')} are migrated and no finalizers released, by other policies "
            f"neither. Changes are judged by other policies only.",
        )
    elif unprotected:
        reason, message = "NotProtected", f"The API server may let deletions pass: {unprotected}"
    elif unjudged:
        reason, message = "ChangesNotJudged", f"Changes of CRDs are not judged: {unjudged}."
    elif failing:
        shown = ", ".join(failing[:5])
        reason, message = (
            "MigrationFailing",
            f"{count(len(failing), 'migration')} not successful: {shown}. "
            f"`kubectl get smig -o wide` shows why.",
        )
    elif outdated and mode == "Automatic":
        reason, message = "Migrating", f"{len(outdated)} of {count(len(definitions), 'CRD')} being migrated."
    elif outdated:
        reason, message = (
            "Outdated",
            f"{len(outdated)} of {count(len(definitions), 'CRD')} with old stored versions, which mode "
            f"{mode} does not migrate.",
        )
    elif definitions:
        which = "governed" if elsewhere else "selected"
        message = f"{count(len(definitions), 'CRD')} {which}, each with only one stored version."
    else:
        message = "No CRD is governed by this policy." if elsewhere else "No CRD is selected."
    if elsewhere and reason in _GOVERNING:
        message += _told(elsewhere)
    return Standing(len(definitions), len(outdated), len(failing), status, reason, message)


def _told(elsewhere: Elsewhere) -> str:
    """Whose migrations and finalizers count: otherwise a policy that has no effect looks as if it had."""
    such = ", such as" if elsewhere.number > 1 else ":"
    return (
        f" For {count(elsewhere.number, 'CRD')} that it selects, storageMigration and finalizers of an older "
        f"policy count instead{such} {elsewhere.example} ({elsewhere.policy})."
    )


def _fails(definition: DefinitionFacts, migrations: Iterable[StorageMigration], mode: str) -> bool:
    """Whether what the policy wants to have done with the CRD's objects fails, whoever does it."""
    decisive = decisive_migration(definition, (each for each in migrations if _does(each, mode)))
    return decisive is not None and is_failing(decisive)
