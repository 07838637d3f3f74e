"""Which CRDs a policy selects, and which policy governs a CRD."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from crdkeeper.api.definitionpolicy import (
    DefinitionPolicy,
    LabelSelector,
    LabelSelectorRequirement,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts

_LATEST = datetime.max.replace(tzinfo=UTC)


def governing(policies: Iterable[DefinitionPolicy], definition: DefinitionFacts) -> DefinitionPolicy | None:
    """The policy for a CRD: of those that select it, the oldest, then the first by name."""
    selecting = [each for each in policies if selects(each, definition)]
    return min(
        selecting,
        key=lambda each: (each.metadata.creation_timestamp or _LATEST, each.metadata.name),
        default=None,
    )


def selects(policy: DefinitionPolicy, definition: DefinitionFacts) -> bool:
    """Whether both the group globs and the label selector match."""
    return any(fnmatchcase(definition.group, glob) for glob in policy.spec.groups) and matches(
        policy.spec.selector, definition.labels
    )


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
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
