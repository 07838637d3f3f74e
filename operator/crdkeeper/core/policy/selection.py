"""Which CRDs a policy selects, and which policy governs a CRD."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from crdkeeper.api.definitionpolicy import (
    DefinitionPolicy,
    DefinitionSelector,
    LabelSelector,
    LabelSelectorRequirement,
)
from crdkeeper.api.meta import GROUP
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.policy.globs import matches_any

POLICIES_HEADER: Final = "Crdkeeper-Policies"
"""Of the webhook's answers about changes: the digest of the policies that it follows."""
_LATEST = datetime.max.replace(tzinfo=UTC)


def governing(policies: Iterable[DefinitionPolicy], definition: DefinitionFacts) -> DefinitionPolicy | None:
    """The policy for a CRD: of those that select it, the oldest, then the first by name."""
    return min((each for each in policies if selects(each, definition)), key=precedence, default=None)


def precedence(policy: DefinitionPolicy) -> tuple[datetime, str]:
    """The least of several governs a CRD that all of them select."""
    return policy.metadata.creation_timestamp or _LATEST, policy.metadata.name


def selects(policy: DefinitionPolicy, definition: DefinitionFacts) -> bool:
    """Whether both the group globs and the label selector match."""
    return selects_labelled(policy, definition.group, definition.labels)


def selects_labelled(policy: DefinitionPolicy, group: str, labels: Mapping[str, str]) -> bool:
    """The same for a CRD of that group with these labels."""
    return matches_any(policy.spec.groups, group) and matches(policy.spec.selector, labels)


def protected(policy: DefinitionPolicy, selected: Iterable[DefinitionFacts]) -> list[str]:
    """Which of the CRDs that a policy selects it protects from deletion, also if another one governs them.

    The same as the ValidatingAdmissionPolicy crdkeeper-definition-protection.
    """
    if policy.spec.protection.deletion != "Deny":
        return []
    return [each.name for each in selected if each.group != GROUP and not each.deletion_allowed]


def matches(selector: LabelSelector | DefinitionSelector, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector (metav1.LabelSelector); an empty one matches all."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _satisfies(each, labels) for each in selector.match_expressions
    )


def _satisfies(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None


def protecting(policies: Iterable[DefinitionPolicy]) -> list[DefinitionPolicy]:
    """Those that protect CRDs from deletion, by name."""
    found = (each for each in policies if each.spec.protection.deletion == "Deny")
    return sorted(found, key=lambda each: each.metadata.name)


def guarding(policies: Iterable[DefinitionPolicy]) -> list[DefinitionPolicy]:
    """Those that judge changes of CRDs, by name."""
    found = (each for each in policies if each.spec.changes != "Allow")
    return sorted(found, key=lambda each: each.metadata.name)


def guarding_digest(policies: Iterable[DefinitionPolicy]) -> str:
    """Identifies the policies that judge changes, as they are now."""
    seen = [(each.metadata.name, each.metadata.uid, each.metadata.generation) for each in guarding(policies)]
    return sha256(repr(seen).encode()).hexdigest()
