"""Lists HorizontalPodAutoscalers and PodDisruptionBudgets, and reads /scale of the objects that they concern.

A cluster has as many of them as its tenants like. All are listed once for all CRDs, in pages of bounded size;
pods are only looked for by selector in one namespace, and counted only for few budgets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.budgetpods import BudgetPods, pod_page, pod_pages
from crdkeeper.cluster.probes.looking import failure_of, look
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalefailures import blames_object
from crdkeeper.core.diagnosis.scalers import (
    LIST_AUTOSCALERS,
    LIST_BUDGETS,
    LIST_PODS,
    Autoscaler,
    Scalers,
    ShortBudget,
    Unseen,
)
from crdkeeper.core.diagnosis.scalertally import AutoscalerTally, BudgetTally
from crdkeeper.core.diagnosis.scaling import (
    Scaling,
    ScalingTrouble,
    SeenScale,
    Shortage,
    Sighting,
    budget_trouble,
    cannot_scale,
    in_turn,
    scale_version,
    short_trouble,
    shortage,
    sighted,
    target_trouble,
    target_unread,
    unscalable,
)
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources

_AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"
_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
_PAGE = 500
_PAGE_BYTES = 4 << 20
_PAGE_SECONDS = 30.0
_MOST_PAGES = 400
_MOST_TARGETS = 50
"""Of which /scale is read: of autoscalers, and again of budgets."""


class _Tally(Protocol):
    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in some objects."""


async def list_scalers(client: Client, former: Scalers) -> Scalers:
    """All autoscalers, and budgets that allow no evictions. Never raises for what it finds."""
    autoscalers, budgets, pods = AutoscalerTally(), BudgetTally(former.missing), BudgetPods(client)
    unseen = [
        await _list(client, _AUTOSCALERS, autoscalers, LIST_AUTOSCALERS),
        await _list(client, _BUDGETS, budgets, LIST_BUDGETS),
    ]
    failing = [await pods.with_owners(each) for each in budgets.failing()]
    short = [await pods.counted(each) for each in budgets.short()]
    # Whose pods cannot be seen may concern any CRD. Other failures depend on what a tenant wrote.
    looks = [*(each.unseen for each in failing), *(each.unseen for each in short)]
    unseen.append(next(filter(_is_forbidden, looks), None))
    missing = {str(each) for each in short if each.kind is not None}
    unknown = {str(each) for each in short if _passing(each.unseen)}
    found = Scalers(
        autoscalers=autoscalers.kept(),
        totals=autoscalers.totals,
        uncounted=autoscalers.uncounted(),
        budgets=failing,
        budgets_total=budgets.total,
        short=short,
        unseen=tuple(each for each in unseen if each is not None),
    )
    if found.interrupted(LIST_BUDGETS):
        unknown = {*former.missing}
    return replace(found, missing=frozenset(missing | (unknown & former.missing)))


def _is_forbidden(unseen: Unseen | None) -> bool:
    return unseen is not None and unseen.failure.trouble is ProbeTrouble.FORBIDDEN


def _passing(unseen: Unseen | None) -> bool:
    return unseen is not None and unseen.failure.passing


async def _list(client: Client, path: str, tally: _Tally, rule: str) -> Unseen | None:
    """Why the list ended early; None if it did not. A 410 without another token ends it, too."""
    size, token = PageSize(_PAGE, _PAGE, _PAGE_BYTES, 4 * _PAGE_BYTES, _PAGE_SECONDS), ""
    try:
        for _ in range(_MOST_PAGES):
            page = await bounded_page(client, path, token, size)
            items = page.get("items") or ()
            tally.add(items)
            size.fit(items)
            token = page["metadata"].get("continue") or ""
            if not token:
                return None
    except ApiError as error:
        return Unseen(rule, failure_of(error.code, error.message))
    except Unreachable as error:
        return Unseen(rule, Failure(ProbeTrouble.SILENT, 0, str(error)))
    return Unseen(rule, Failure(ProbeTrouble.FAILED, 0, f"{path} has more than {_MOST_PAGES} pages"))


async def probe_scaling(
    client: Client,
    definition: DefinitionFacts,
    declared: DeclaredSubresources,
    scalers: Scalers,
    former: Scaling | None,
) -> Scaling:
    """What does not work of that with the objects of one CRD. Never raises for what it finds."""
    key = definition.group, definition.kind
    autoscalers = in_turn(scalers.autoscalers.get(key, ()), _MOST_TARGETS)
    why = unscalable(definition, declared)
    former = former or Scaling()
    troubles: list[ScalingTrouble] = []
    unseen = [*scalers.unseen]
    sightings: dict[str, Sighting] = {}
    silent: Unseen | None = None
    for each in autoscalers:
        if why:
            troubles.append(cannot_scale(each, why))
            continue
        before = former.sightings.get(str(each))
        # After one without an answer, the others would be as slow.
        found = silent or await _target(client, definition, each, before)
        if isinstance(found, Unseen):
            trouble = target_unread(each, found.failure)
            unseen += [found] if trouble is None and found is not silent else []
            silent = found if found.failure.trouble is ProbeTrouble.SILENT else None
            if before is not None and found.failure.passing:
                # What is known stays, or one such failure would begin the time anew.
                seen = sighted(before.scale, each, before, client.now())
                sightings[str(each)] = seen
                trouble = trouble or target_trouble(each, seen, None, client.now())
        else:
            seen, pods = found
            sightings[str(each)] = seen
            trouble = target_trouble(each, seen, pods, client.now())
            if isinstance(pods, Failure) and trouble is None:
                unseen.append(Unseen(LIST_PODS, pods))
        troubles += [trouble] if trouble is not None else []
    if not why and scalers.interrupted(LIST_AUTOSCALERS):
        listed = {str(each) for each in autoscalers}
        unlisted = (each for each in former.sightings.items() if each[0] not in listed)
        sightings.update(islice(unlisted, _MOST_TARGETS - len(sightings)))
    for budget in scalers.budgets:
        failing = budget_trouble(budget, definition, declared)
        troubles += [failing] if failing is not None else []
    shortages: dict[str, Shortage] = {}
    if not why:
        shortages, unread = await _shortages(client, definition, scalers, former.shortages)
        unseen += [unread] if unread is not None else []
    for name, lack in shortages.items():
        lasting = short_trouble(name, lack, client.now())
        troubles += [lasting] if lasting is not None else []
    return Scaling(
        autoscalers=scalers.totals.get(key, 0),
        checked=len(autoscalers),
        troubles=tuple(troubles),
        unseen=tuple(unseen),
        uncounted=scalers.uncounted,
        sightings=sightings,
        shortages=shortages,
    )


async def _shortages(
    client: Client, definition: DefinitionFacts, scalers: Scalers, known: Mapping[str, Shortage]
) -> tuple[dict[str, Shortage], Unseen | None]:
    """Which budgets miss pods of objects of one CRD, by name, and whether /scale may not be read.

    What is known of a budget stays as long as requests get no answer, or an error that is not the objects'
    own: they say nothing about it.
    """
    listed = {str(each) for each in scalers.short}
    interrupted = scalers.interrupted(LIST_BUDGETS)
    found = {name: each for name, each in known.items() if interrupted and name not in listed}
    left, lost = _MOST_TARGETS, None
    for budget in scalers.short:
        read: int | Failure | None = budget.unseen.failure if budget.unseen is not None else None
        if budget.kind == (definition.group, definition.kind) and len(budget.objects) <= left:
            left -= len(budget.objects)
            # Without an answer, or permission, there would be none about others.
            read = lost or await _replicas(client, definition, budget)
            lost = read if isinstance(read, Failure) and read.trouble is not ProbeTrouble.FAILED else None
        lack = before = known.get(str(budget))
        if isinstance(read, int):
            lack = shortage(budget, read, before, client.now())
        elif read is None or not read.passing:
            lack = None
        if lack is not None:
            found[str(budget)] = lack
    forbidden = lost is not None and lost.trouble is ProbeTrouble.FORBIDDEN
    return found, Unseen(_scale_rule(definition), lost) if lost is not None and forbidden else None


async def _replicas(client: Client, definition: DefinitionFacts, budget: ShortBudget) -> int | Failure | None:
    """spec.replicas of all objects that control its pods, together; None if one of them has no /scale."""
    total = 0
    for name in budget.objects:
        found = await _scale(client, definition, budget.namespace, name)
        if isinstance(found, Failure):
            return None if found.trouble is ProbeTrouble.NOT_FOUND or blames_object(found) else found
        total += found.replicas
    return total


async def _scale(
    client: Client, definition: DefinitionFacts, namespace: str, name: str
) -> SeenScale | Failure:
    version = scale_version(definition)
    assert version is not None
    path = Endpoint(definition.group, version, definition.plural).path(namespace, name)
    answer = await look(client, f"{path}/scale")
    if isinstance(answer, Failure):
        return answer
    body = answer.json()
    spec, status = body.get("spec") or {}, body.get("status") or {}
    selector = str(status.get("selector") or "")
    return SeenScale(int(spec.get("replicas") or 0), int(status.get("replicas") or 0), selector)


def _scale_rule(definition: DefinitionFacts) -> str:
    return f'apiGroups: ["{definition.group}"], resources: ["{definition.plural}/scale"], verbs: ["get"]'


async def _target(
    client: Client, definition: DefinitionFacts, autoscaler: Autoscaler, before: Sighting | None
) -> tuple[Sighting, bool | Failure | None] | Unseen:
    """What /scale of its target says, and whether its selector selects pods."""
    scale = await _scale(client, definition, autoscaler.namespace, autoscaler.target)
    if isinstance(scale, Failure):
        return Unseen(_scale_rule(definition), scale)
    pods: bool | Failure | None = None
    if scale.selector:
        found = await pod_page(client, autoscaler.namespace, scale.selector, pod_pages(1, 1))
        pods = found if isinstance(found, Failure) else bool(found.items)
    return sighted(scale, autoscaler, before, client.now()), pods
