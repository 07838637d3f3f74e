"""Counts autoscalers, budgets and their pods as they are listed, in bounded memory that namespaces share.

Tenants write them, in any number, and name any kind, in texts of any length. What one namespace has must not
keep autoscalers of another from being seen: each has its share, and when there are too many, those of the
largest are not counted. Of budgets, the first namespaces of the list have theirs seen, a few of each.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from crdkeeper.core.diagnosis.scalers import (
    LONGEST_NAME,
    LONGEST_SELECTOR,
    MOST_OWNERS,
    TEXT_BYTES,
    Autoscaler,
    FailingBudget,
    GroupKind,
    ShortBudget,
    pod_owners,
    said_text,
    selector_text,
)
from crdkeeper.core.text import count

_MOST_FOR_KIND: Final = 50
"""Autoscalers of one namespace that are kept for one kind: no more are ever checked."""
_MOST_OF_NAMESPACE: Final = 1000
_MOST_KEPT: Final = 20_000
_MOST_BUDGETS: Final = 100
_MOST_BUDGETS_OF_NAMESPACE: Final = 10
_MOST_BUDGETS_KEPT: Final = 10_000
_NAMED: Final = 3
_Kept = dict[GroupKind, list[Autoscaler]]
_T = TypeVar("_T")


@dataclass(slots=True)
class AutoscalerTally:
    """Keeps those that scale objects of other groups than Kubernetes' own."""

    totals: dict[GroupKind, int] = field(default_factory=dict)
    """How many there are for each kind of which some are kept."""
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _share: int = _MOST_OF_NAMESPACE
    """How many are kept of one namespace: fewer when all together are too many."""
    _uncounted: set[str] = field(default_factory=set)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in some objects of autoscaling/v2."""
        for each in items:
            reference = each["spec"]["scaleTargetRef"]
            group, slash, _ = str(reference.get("apiVersion") or "").partition("/")
            kind, name = str(reference["kind"]), str(reference["name"])
            # The groups of custom resources have a dot. No object has a longer kind or name.
            if not slash or "." not in group or len(kind) > TEXT_BYTES:
                continue
            if max(len(group), len(name)) > LONGEST_NAME:
                continue
            self._add((group, kind), _autoscaler(each, name))

    def kept(self) -> dict[GroupKind, list[Autoscaler]]:
        """Those that are kept, of all namespaces."""
        found: dict[GroupKind, list[Autoscaler]] = {}
        for of_namespace in self._kept.values():
            for key, some in of_namespace.items():
                found.setdefault(key, []).extend(some)
        return found

    def uncounted(self) -> str:
        """The namespaces that name more kinds than could be counted; empty if there are none."""
        names = sorted(self._uncounted)
        more = f" and {count(len(names) - _NAMED, 'other namespace')}" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more

    def _add(self, key: GroupKind, found: Autoscaler) -> None:
        namespace = found.namespace
        room = len(self._of(namespace, key)) < _MOST_FOR_KIND and self._has_room(namespace)
        some = self._of(namespace, key)  # fewer than before, if there was no room
        if room:
            self._kept.setdefault(namespace, {}).setdefault(key, []).append(found)
            self._sizes[namespace] = self._sizes.get(namespace, 0) + 1
            self._count += 1
        elif not some:
            self._uncounted.add(namespace)
            return
        elif found.trouble:
            # Those that do not work are checked first.
            works = next((at for at, each in enumerate(some) if not each.trouble), None)
            if works is not None:
                some[works] = found
        self.totals[key] = self.totals.get(key, 0) + 1

    def _of(self, namespace: str, key: GroupKind) -> list[Autoscaler]:
        return self._kept.get(namespace, {}).get(key, [])

    def _has_room(self, namespace: str) -> bool:
        while self._count >= _MOST_KEPT and self._share > 1:
            self._share //= 2
            self._shrink()
        return self._count < _MOST_KEPT and self._sizes.get(namespace, 0) < self._share

    def _shrink(self) -> None:
        """Give up what is more than a namespace's share; of each kind, those that fail stay longest."""
        for namespace, kinds in self._kept.items():
            if self._sizes[namespace] <= self._share:
                continue
            for some in kinds.values():
                some.sort(key=lambda each: not each.trouble)
            left: _Kept = {}
            ranked = _in_turns([(key, each) for each in some] for key, some in kinds.items())
            for key, each in ranked[: self._share]:
                left.setdefault(key, []).append(each)
            if len(left) < len(kinds):
                self._uncounted.add(namespace)
            self._kept[namespace], self._sizes[namespace] = left, self._share
        self._count = sum(self._sizes.values())
        known = {key for kinds in self._kept.values() for key in kinds}
        self.totals = {key: number for key, number in self.totals.items() if key in known}


@dataclass(slots=True)
class _Some(Generic[_T]):
    """A few budgets of each namespace, and those that come first."""

    _first: list[_T] = field(default_factory=list)
    _kept: dict[str, list[_T]] = field(default_factory=dict)
    _count: int = 0

    def add(self, namespace: str, budget: _T, *, first: bool = False) -> None:
        if first:
            self._first.append(budget)
            return
        some = self._kept.setdefault(namespace, [])
        if len(some) < _MOST_BUDGETS_OF_NAMESPACE and self._count < _MOST_BUDGETS_KEPT:
            some.append(budget)
            self._count += 1

    def kept(self) -> list[_T]:
        """As they were listed: of each namespace one, then of each another."""
        return [*self._first, *_in_turns(self._kept.values())][:_MOST_BUDGETS]


@dataclass(slots=True)
class BudgetTally:
    """Keeps those that fail, and those that may have too few pods."""

    missing: Container[str] = frozenset()
    """Which were seen to have too few the last time: of those, the first come before all others."""
    total: int = 0
    """How many fail."""
    _failing: _Some[FailingBudget] = field(default_factory=_Some)
    _short: _Some[ShortBudget] = field(default_factory=_Some)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in some objects of policy/v1."""
        for each in items:
            allowed = _condition(each, "DisruptionAllowed")
            selector = selector_text(each["spec"].get("selector"))
            if allowed.get("status") != "False" or selector is None:
                continue
            selector = selector[: LONGEST_SELECTOR + 1]  # still too long to be asked for
            namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
            if allowed.get("reason") == "SyncFailed":
                self.total += 1
                said = said_text(allowed.get("message"))
                self._failing.add(namespace, FailingBudget(namespace, name, selector, said))
            elif expected := _expected(each):
                budget = ShortBudget(namespace, name, selector, expected)
                self._short.add(namespace, budget, first=str(budget) in self.missing)

    def failing(self) -> list[FailingBudget]:
        """Some of those that fail."""
        return self._failing.kept()

    def short(self) -> list[ShortBudget]:
        """Some of those that expect more pods than are healthy."""
        return self._short.kept()


@dataclass(slots=True)
class PodTally:
    """Counts the pods of a budget, and keeps who controls them: a few objects of one kind."""

    pods: int = 0
    kind: GroupKind | None = None
    objects: dict[str, None] = field(default_factory=dict)
    mixed: bool = False
    """Whether nothing controls some, or other kinds or Kubernetes' own do, or too many objects."""

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in some pods' metadata."""
        for each in items:
            self.pods += 1
            owner = next(iter(pod_owners([each])), None)
            # The groups of custom resources have a dot.
            if owner is None or "." not in owner.group:
                self.mixed = True
                continue
            kind = owner.group, owner.kind
            self.kind = self.kind or kind
            if kind != self.kind or (len(self.objects) == MOST_OWNERS and owner.name not in self.objects):
                self.mixed = True
            else:
                self.objects[owner.name] = None


def _expected(body: Mapping[str, Any]) -> int:
    """How many pods a budget expects by /scale, if that is more than are healthy; otherwise 0."""
    if isinstance(body["spec"].get("minAvailable"), int):
        return 0  # it expects as many as there are
    status = body["status"]
    expected = int(status.get("expectedPods") or 0)
    return expected if expected > int(status.get("currentHealthy") or 0) else 0


def _in_turns(groups: Iterable[Iterable[_T]]) -> list[_T]:
    """The first of each group, then the second of each, and so on."""
    ranked = ((rank, each) for group in groups for rank, each in enumerate(group))
    return [each for _, each in sorted(ranked, key=lambda item: item[0])]


def _autoscaler(body: Mapping[str, Any], target: str) -> Autoscaler:
    able, active = _condition(body, "AbleToScale"), _condition(body, "ScalingActive")
    trouble = next((each for each in (able, active) if _is_about_scale(each)), {})
    works = able.get("status") == "True" and active.get("status") == "True"
    metadata = body["metadata"]
    return Autoscaler(
        namespace=metadata["namespace"],
        name=metadata["name"],
        target=target,
        desired=(body.get("status") or {}).get("desiredReplicas") if works else None,
        trouble=str(trouble.get("reason") or ""),
        said=said_text(trouble.get("message")),
    )


def _is_about_scale(condition: Mapping[str, Any]) -> bool:
    """Whether the object is to blame, and not its metrics."""
    return condition.get("status") == "False" and condition.get("reason") in (
        "FailedGetScale",
        "FailedUpdateScale",
        "InvalidSelector",
        "AmbiguousSelector",
    )


def _condition(body: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})
