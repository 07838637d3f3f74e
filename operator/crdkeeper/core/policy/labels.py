"""The label by which a CRD asks for migrations of its own, without a policy.

Whoever applies a CRD can set it, so it counts only where the operator was told to watch labels, and never
against a policy that selects the CRD: who writes policies decides for the whole cluster.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from crdkeeper.api.definitionpolicy import DefinitionPolicy, MigrationPolicy
from crdkeeper.api.meta import POLICY_LABEL
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.policy.selection import governing

MIGRATION_LABEL: Final = "crdkeeper.dev/storage-migration"
MODES: Final[Mapping[str, Literal["Automatic", "Plan", "Disabled"]]] = {
    "automatic": "Automatic",
    "plan": "Plan",
    "disabled": "Disabled",
}
"""What each value of the label asks for."""
_LABEL_LIMIT = 63


@dataclass(frozen=True, slots=True)
class MigrationRules:
    """Whether and how to migrate the objects of one CRD."""

    migration: MigrationPolicy
    labels: Mapping[str, str]
    """Of the StorageMigrations that follow: who asked for them."""
    policy: DefinitionPolicy | None
    """None if the CRD's own label asks."""


def migration_rules(
    policies: Iterable[DefinitionPolicy], definition: DefinitionFacts, *, watch_labels: bool
) -> MigrationRules | None:
    """The rules of the policy that governs a CRD, or else of its label; None if there are none."""
    policy = governing(policies, definition)
    if policy is not None:
        labels = {POLICY_LABEL: _label(policy.metadata.name)}
        return MigrationRules(policy.spec.storage_migration, labels, policy)
    asked = definition.labels.get(MIGRATION_LABEL) if watch_labels else None
    mode = MODES.get(asked) if asked is not None else None
    if asked is None or mode is None:
        return None
    return MigrationRules(MigrationPolicy(mode=mode), {MIGRATION_LABEL: asked}, None)


def unknown_label(definition: DefinitionFacts) -> str:
    """Why the label of a CRD means nothing; empty if it has none, or one that is known."""
    asked = definition.labels.get(MIGRATION_LABEL)
    if asked is None or asked in MODES:
        return ""
    return f'The label {MIGRATION_LABEL} has the value "{asked}", which is none of {", ".join(MODES)}.'


def overruled_label(policies: Iterable[DefinitionPolicy], definition: DefinitionFacts) -> str:
    """Which policy keeps the label of a CRD from doing what it asks for; empty if none does."""
    mode = MODES.get(definition.labels.get(MIGRATION_LABEL, ""))
    policy = governing(policies, definition) if mode is not None else None
    if policy is None or policy.spec.storage_migration.mode == mode:
        return ""
    return (
        f"The label {MIGRATION_LABEL} does not count, because DefinitionPolicy {policy.metadata.name} "
        f"selects the CRD, with the mode {policy.spec.storage_migration.mode}."
    )


def _label(name: str) -> str:
    return name if len(name) <= _LABEL_LIMIT else sha256(name.encode()).hexdigest()[:_LABEL_LIMIT]
