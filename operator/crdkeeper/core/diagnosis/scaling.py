"""Whether HorizontalPodAutoscalers and PodDisruptionBudgets work with the objects of one CRD.

The controllers of both find /scale at the version that the API server prefers, whatever version a reference
names; that of budgets also wants the version of the pods' ownerReferences to be served.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from crdkeeper.api.texts import bounded
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.apiserver.definitions.versionorder import preferred
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalefailures import blames_object
from crdkeeper.core.diagnosis.scalers import Autoscaler, FailingBudget, ShortBudget, Unseen
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from crdkeeper.core.text import count, visible

REACTION = timedelta(minutes=10)
"""A controller that has not changed the number of pods so long after spec.replicas does not do it."""
_DETAIL_BYTES = 512
_NAMED = 3


class ScalingFault(Enum):
    """What is wrong, the most fundamental first."""

    NO_SCALE = "no scale subresource"
    TARGET_MISSING = "no such object"
    SCALE_FAILS = "/scale cannot be read"
    NO_SELECTOR = "/scale has no selector"
    BAD_SELECTOR = "the selector cannot be parsed"
    NO_PODS = "the selector selects nothing"
    AMBIGUOUS = "several autoscalers for one pod"
    REFUSED = "spec.replicas cannot be written"
    OVERWRITTEN = "spec.replicas does not stay as written"
    NOT_FOLLOWED = "status.replicas does not follow spec.replicas"
    BUDGET_FAILS = "a budget has no expected number of pods"
    PODS_MISSING = "a budget has fewer pods than spec.replicas"


@dataclass(frozen=True, slots=True)
class ScalingTrouble:
    """One autoscaler or budget that does not work."""

    fault: ScalingFault
    detail: str
    """A sentence without its full stop, which names it."""


@dataclass(frozen=True, slots=True)
class SeenScale:
    """What /scale says."""

    replicas: int
    """In spec."""
    pods: int
    """status.replicas."""
    selector: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was last seen of an autoscaler's target, and since when that has not changed."""

    scale: SeenScale
    desired: int | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Shortage:
    """What was last seen of a budget with too few pods, and since when that has not changed."""

    objects: tuple[str, ...]
    """Which control its pods."""
    replicas: int
    """In spec of all of them together."""
    pods: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Scaling:
    """What was found for one CRD."""

    autoscalers: int = 0
    """How many scale objects of the kind."""
    checked: int = 0
    """Of how many of them the target was read."""
    troubles: tuple[ScalingTrouble, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    uncounted: str = ""
    """The namespaces in which there may be others."""
    sightings: Mapping[str, Sighting] = field(default_factory=dict, compare=False)
    shortages: Mapping[str, Shortage] = field(default_factory=dict, compare=False)


def in_turn(autoscalers: Iterable[Autoscaler], most: int) -> Sequence[Autoscaler]:
    """Which to check: of each namespace one, then of each another, so that none of them crowds others out.

    Those that do not work according to their controller come first in their namespace.
    """
    ranks: dict[str, int] = {}
    ranked = []
    for each in sorted(autoscalers, key=lambda each: (not each.trouble, each.name)):
        rank = ranks[each.namespace] = ranks.get(each.namespace, -1) + 1
        ranked.append((rank, not each.trouble, each.namespace, each))
    return [each for *_, each in sorted(ranked, key=lambda item: item[:3])[:most]]


def scale_version(definition: DefinitionFacts) -> str | None:
    """The version at which autoscalers and budgets look for /scale."""
    return preferred(definition.served_versions, str)


def unscalable(definition: DefinitionFacts, declared: DeclaredSubresources) -> str:
    """Why no autoscaler can find /scale; empty if it can."""
    version = scale_version(definition)
    if not definition.namespaced:
        return "objects of the kind are cluster-scoped, and an autoscaler finds those of its own namespace"
    if not declared.scaled:
        return "no served version has a scale subresource"
    if version not in declared.scaled:
        others = ", ".join(declared.scaled)
        return f"the version that the API server prefers, {version}, has no scale subresource ({others} has)"
    return ""


def sighted(found: SeenScale, autoscaler: Autoscaler, former: Sighting | None, now: datetime) -> Sighting:
    """The sighting of a target; its time is that of the former one if nothing has changed."""
    same = former is not None and (former.scale, former.desired) == (found, autoscaler.desired)
    return Sighting(found, autoscaler.desired, former.since if same and former is not None else now)


def target_unread(autoscaler: Autoscaler, failure: Failure) -> ScalingTrouble | None:
    """What it means for an autoscaler that /scale of its target could not be read; None if nothing.

    That the API server, or a conversion webhook, has failed says nothing about the target.
    """
    if failure.trouble is ProbeTrouble.NOT_FOUND:
        return _trouble(
            ScalingFault.TARGET_MISSING, autoscaler, "there is no object of this name in its namespace"
        )
    if blames_object(failure):
        return _trouble(ScalingFault.SCALE_FAILS, autoscaler, f"/scale cannot be read: {failure.message}")
    return None


def target_trouble(
    autoscaler: Autoscaler, seen: Sighting, pods: bool | Failure | None, now: datetime
) -> ScalingTrouble | None:
    """What keeps an autoscaler from scaling its target; None if nothing is known.

    `pods` is whether the selector selects any; None if that was not asked.
    """
    scale = seen.scale
    if not scale.selector:
        said = "/scale has no status.selector, so there are no pods to measure"
        return _trouble(ScalingFault.NO_SELECTOR, autoscaler, said)
    if isinstance(pods, Failure) and pods.code == 400:
        return _trouble(
            ScalingFault.BAD_SELECTOR, autoscaler, f"the selector of /scale is none: {pods.message}"
        )
    if pods is False and scale.pods > 0:
        said = f"/scale counts {count(scale.pods, 'pod')}, but its selector selects none"
        return _trouble(ScalingFault.NO_PODS, autoscaler, said)
    if autoscaler.trouble == "AmbiguousSelector":
        return _trouble(ScalingFault.AMBIGUOUS, autoscaler, autoscaler.said)
    if autoscaler.trouble == "FailedUpdateScale":
        return _trouble(ScalingFault.REFUSED, autoscaler, autoscaler.said)
    if now - seen.since < REACTION:
        return None
    if seen.desired is not None and seen.desired != scale.replicas:
        said = f"it wants {count(seen.desired, 'replica')}, but spec stays at {scale.replicas}"
        return _trouble(ScalingFault.OVERWRITTEN, autoscaler, said)
    if scale.replicas != scale.pods:
        said = f"spec has {count(scale.replicas, 'replica')}, but status stays at {scale.pods}"
        return _trouble(ScalingFault.NOT_FOLLOWED, autoscaler, said)
    return None


def cannot_scale(autoscaler: Autoscaler, why: str) -> ScalingTrouble:
    """The trouble of an autoscaler whose target's kind it cannot scale."""
    return _trouble(ScalingFault.NO_SCALE, autoscaler, why)


def budget_trouble(
    budget: FailingBudget, definition: DefinitionFacts, declared: DeclaredSubresources
) -> ScalingTrouble | None:
    """What keeps a failing budget from working, if objects of this CRD are the cause."""
    named = budget.said.startswith(f"{definition.name} does not implement the scale subresource")
    ours = [each for each in budget.owners if (each.group, each.kind) == (definition.group, definition.kind)]
    if not ours and not named:
        return None
    gone = sorted({each.version for each in ours} - {*definition.served_versions})
    if gone:
        why = f"ownerReferences of its pods name {', '.join(gone)}, which is not served"
    else:
        why = unscalable(definition, declared) or f"its controller says: {budget.said}"
    return ScalingTrouble(ScalingFault.BUDGET_FAILS, f"PodDisruptionBudget {budget}: {why}")


def shortage(budget: ShortBudget, replicas: int, former: Shortage | None, now: datetime) -> Shortage | None:
    """The shortage of a budget, by spec.replicas of the objects that control its pods; None if there is none.

    Its time is that of the former one if nothing has changed.
    """
    if replicas <= budget.pods:
        return None
    same = former is not None and (former.replicas, former.pods) == (replicas, budget.pods)
    since = former.since if same and former is not None else now
    return Shortage(budget.objects, replicas, budget.pods, since)


def short_trouble(budget: str, seen: Shortage, now: datetime) -> ScalingTrouble | None:
    """What keeps a budget from allowing evictions; None if pods may still be created."""
    if now - seen.since < REACTION:
        return None
    names = sorted(map(visible, seen.objects))
    more = f" and {count(len(names) - _NAMED, 'other object')}" if len(names) > _NAMED else ""
    together = " in all" if len(names) > 1 else ""
    said = (
        f"it selects {count(seen.pods, 'pod')} of {', '.join(names[:_NAMED])}{more}, "
        f"but spec.replicas is {seen.replicas}{together}"
    )
    return ScalingTrouble(
        ScalingFault.PODS_MISSING, f"PodDisruptionBudget {budget}: {bounded(said, _DETAIL_BYTES)}"
    )


def _trouble(fault: ScalingFault, autoscaler: Autoscaler, why: str) -> ScalingTrouble:
    shown = bounded(visible(why.rstrip(".")), _DETAIL_BYTES)
    return ScalingTrouble(fault, f"HorizontalPodAutoscaler {autoscaler}: {shown}")
