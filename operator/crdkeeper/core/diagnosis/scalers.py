"""HorizontalPodAutoscalers and PodDisruptionBudgets, reduced to what concerns the /scale of custom objects.

Tenants write them, in any number and with any text: what is kept of one is small, and texts are made visible.
An autoscaler finds its target by group and kind; the version in its reference does not matter. Its controller
and that of budgets state in conditions why they cannot work (podautoscaler/horizontal.go, disruption.go).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.api.texts import bounded
from crdkeeper.core.diagnosis.probes import Failure
from crdkeeper.core.text import visible

TEXT_BYTES = 256
"""The longest text of strangers that is kept."""
LONGEST_NAME = 253
"""Of an object and of a group. In a reference, a name can have any length; then there is no such object."""
LONGEST_SELECTOR = 4096
"""Of a query. Servers and proxies refuse long ones."""
MOST_OWNERS = 10
"""Controllers of pods that are kept of one budget."""

GroupKind = tuple[str, str]

LIST_AUTOSCALERS = 'apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: ["list"]'
LIST_BUDGETS = 'apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"]'
LIST_PODS = 'apiGroups: [""], resources: ["pods"], verbs: ["list"]'


@dataclass(frozen=True, slots=True)
class Unseen:
    """Objects that could not be listed or read."""

    rule: str
    """The rule that permits it, as YAML."""
    failure: Failure


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """A HorizontalPodAutoscaler."""

    namespace: str
    name: str
    target: str
    """The name of the object that it scales."""
    desired: int | None = None
    """The replicas that its controller wants; None as long as it computes none."""
    trouble: str = ""
    """The reason why its controller cannot scale, such as FailedGetScale; empty if it can."""
    said: str = ""
    """The controller's message about it."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodOwner:
    """The controller of pods, by their ownerReferences."""

    group: str
    version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class FailingBudget:
    """A PodDisruptionBudget whose controller cannot find out how many pods there should be."""

    namespace: str
    name: str
    selector: str
    """As in a query for pods."""
    said: str
    """The controller's message."""
    owners: tuple[PodOwner, ...] = ()
    """The controllers of some of its pods."""
    unseen: Unseen | None = None
    """Why the pods could not be listed."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ShortBudget:
    """A PodDisruptionBudget that allows no evictions, and by /scale expects more pods than are healthy."""

    namespace: str
    name: str
    selector: str
    """As in a query for pods."""
    expected: int
    """How many pods there should be, as its controller last saw it."""
    kind: GroupKind | None = None
    """Of the few objects that control all of its pods, if these are fewer; None if there are no such."""
    objects: tuple[str, ...] = ()
    """The names of these objects."""
    pods: int = 0
    """How many it selects."""
    unseen: Unseen | None = None
    """Why the pods could not be listed."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Scalers:
    """All of a cluster, as far as they were listed."""

    autoscalers: Mapping[GroupKind, Sequence[Autoscaler]] = field(default_factory=dict)
    totals: Mapping[GroupKind, int] = field(default_factory=dict)
    """How many autoscalers there are for a group and kind."""
    uncounted: str = ""
    """The namespaces of which not all kinds of objects that autoscalers name could be counted."""
    budgets: Sequence[FailingBudget] = ()
    """Those that fail; at most 100."""
    budgets_total: int = 0
    """How many fail."""
    short: Sequence[ShortBudget] = ()
    """Those that may have too few pods of custom resources; at most 100."""
    missing: frozenset[str] = frozenset()
    """Those of them that do, as far as their controller knows: the next time, they are looked into first."""
    unseen: tuple[Unseen, ...] = ()
    """Why not all could be listed."""

    def interrupted(self, rule: str) -> bool:
        """Whether there may be some that only this time were not listed, of those that the rule is about."""
        return any(each.rule == rule and each.failure.passing for each in self.unseen)


def pod_owners(pods: Iterable[Mapping[str, Any]]) -> tuple[PodOwner, ...]:
    """The controllers of pods, by their metadata: a few different ones."""
    found: dict[PodOwner, None] = {}
    for each in pods:
        for owner in each["metadata"].get("ownerReferences") or ():
            group, _, version = str(owner["apiVersion"]).rpartition("/")
            long = max(map(len, (group, version, owner["name"]))) > LONGEST_NAME
            if owner.get("controller") and not long and len(found) < MOST_OWNERS:
                found[PodOwner(group, version, said_text(owner["kind"]), str(owner["name"]))] = None
    return tuple(found)


def selector_text(selector: Any) -> str | None:
    """A LabelSelector as a query has it; None if it selects nothing, empty if it selects everything."""
    if selector is None:
        return None
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[each["operator"]]
        )
    return ",".join(terms)


def said_text(text: Any) -> str:
    """A text of strangers, visible and short."""
    return bounded(visible(str(text or "")), TEXT_BYTES)
