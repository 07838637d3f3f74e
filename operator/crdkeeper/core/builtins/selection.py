"""Which built-in resources a BuiltinPolicy selects, and which policy governs a resource."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from crdkeeper.api.builtinpolicy import BuiltinPolicy

_LATEST = datetime.max.replace(tzinfo=UTC)
_SHORT_LIVED = "events"


def names(pattern: str, group: str, resource: str) -> bool:
    """Whether a pattern of `spec.resources` names the resource."""
    wanted, _, of_group = pattern.partition(".")
    if wanted != "*":
        return (wanted, of_group) == (resource, group)
    return resource != _SHORT_LIVED and of_group in ("*", group)


def concerns_group(patterns: Iterable[str], group: str) -> bool:
    """Whether a pattern can name a resource of the group."""
    return any(
        of_group == group or each == "*.*" for each in patterns for of_group in (each.partition(".")[2],)
    )


def selects(policy: BuiltinPolicy, group: str, resource: str) -> bool:
    """Whether the policy selects the resource."""
    return any(names(each, group, resource) for each in policy.spec.resources)


def governing(policies: Iterable[BuiltinPolicy], group: str, resource: str) -> BuiltinPolicy | None:
    """The policy for a resource: of those that select it, the oldest, then the first by name."""
    selecting = [each for each in policies if selects(each, group, resource)]
    return min(
        selecting,
        key=lambda each: (each.metadata.creation_timestamp or _LATEST, each.metadata.name),
        default=None,
    )


def naming_nothing(policy: BuiltinPolicy, resources: Collection[tuple[str, str]]) -> list[str]:
    """The patterns that name none of these, each a group and a plural."""
    return [
        each
        for each in policy.spec.resources
        if not any(names(each, group, resource) for group, resource in resources)
    ]
