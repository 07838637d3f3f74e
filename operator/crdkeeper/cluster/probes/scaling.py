"""Lists HorizontalPodAutoscalers and PodDisruptionBudgets, and reads /scale of what autoscalers scale.

A cluster has as many of them as its tenants like. All are listed once for all CRDs, in pages of bounded size;
pods are only looked for by selector in one namespace, and only a few.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import quote

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import failure_of, look
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, Answer, ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalers import (
    LIST_AUTOSCALERS,
    LIST_BUDGETS,
    LIST_PODS,
    LONGEST_SELECTOR,
    Autoscaler,
    FailingBudget,
    Scalers,
    ShortBudget,
    Unseen,
    pod_owners,
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
_PODS_OF_BUDGET = 20
"""So many show to whom the pods of a budget belong."""
_MOST_PODS_COUNTED = 500


class _Tally(Protocol):
    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in some objects."""


async def list_scalers(client: Client) -> Scalers:
    """All autoscalers, and budgets that allow no evictions. Never raises for what it finds."""
    autoscalers, budgets = AutoscalerTally(), BudgetTally()
    unseen = [
        await _list(client, _AUTOSCALERS, autoscalers, LIST_AUTOSCALERS),
        await _list(client, _BUDGETS, budgets, LIST_BUDGETS),
    ]
    failing = [await _with_owners(client, each) for each in budgets.failing()]
    short = [await _counted(client, each) for each in budgets.short()]
    # Whose pods cannot be seen may concern any CRD. Other failures depend on what a tenant wrote.
    pods = [*(each.unseen for each in failing), *(each.unseen for each in short)]
    unseen.append(next(filter(_is_forbidden, pods), None))
    return Scalers(
        autoscalers=autoscalers.kept(),
        totals=autoscalers.totals,
        uncounted=autoscalers.uncounted(),
        budgets=failing,
        budgets_total=budgets.total,
        short=short,
        unseen=tuple(each for each in unseen if each is not None),
    )


def _is_forbidden(unseen: Unseen | None) -> bool:
    return unseen is not None and unseen.failure.trouble is ProbeTrouble.FORBIDDEN


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
    return Unseen(rule, Failure(ProbeTrouble.SILENT, 0, f"{path} has more than {_MOST_PAGES} pages"))


async def _with_owners(client: Client, budget: FailingBudget) -> FailingBudget:
    found = await _pods(client, budget.namespace, budget.selector, _PODS_OF_BUDGET)
    if isinstance(found, Failure):
        return replace(budget, unseen=Unseen(LIST_PODS, found))
    return replace(budget, owners=pod_owners(found.items))


async def _counted(client: Client, budget: ShortBudget) -> ShortBudget:
    """With the number of its pods and their controllers, as far as these may be custom resources."""
    found = await _pods(client, budget.namespace, budget.selector, _PODS_OF_BUDGET)
    # The groups of custom resources have a dot. Pods of Deployments are many, and not counted.
    if isinstance(found, _Pods) and not all("." in each.group for each in pod_owners(found.items)):
        return budget
    if isinstance(found, _Pods) and found.more:
        most = min(budget.expected, _MOST_PODS_COUNTED)
        found = await _pods(client, budget.namespace, budget.selector, most)
    if isinstance(found, Failure):
        return replace(budget, unseen=Unseen(LIST_PODS, found))
    few = not found.more and len(found.items) < budget.expected
    return replace(budget, owners=pod_owners(found.items), pods=len(found.items) if few else None)


@dataclass(frozen=True, slots=True)
class _Pods:
    items: Sequence[Mapping[str, Any]]
    more: bool
    """Whether these are not all."""


async def _pods(client: Client, namespace: str, selector: str, most: int) -> _Pods | Failure:
    """Metadata of the first pods that a selector selects; none for a selector that is too long to ask."""
    if len(selector) > LONGEST_SELECTOR:
        return Failure(ProbeTrouble.SILENT, 0, "the selector is too long for a query")
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    query = f"?limit={most}&labelSelector={quote(selector, safe='')}"
    found = await look(client, path + query, accept=METADATA_ONLY_LIST)
    if isinstance(found, Answer):
        page = found.json()
        return _Pods(page.get("items") or (), bool(page["metadata"].get("continue")))
    return found


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
    troubles: list[ScalingTrouble] = []
    unseen = [*scalers.unseen]
    sightings: dict[str, Sighting] = {}
    for each in autoscalers:
        if why:
            troubles.append(cannot_scale(each, why))
            continue
        before = former.sightings.get(str(each)) if former is not None else None
        found = await _target(client, definition, each, before)
        if isinstance(found, Unseen):
            trouble = target_unread(each, found.failure)
            unseen += [found] if trouble is None else []
            if found.failure.trouble is ProbeTrouble.SILENT:
                break  # the others would be as slow
        else:
            seen, pods = found
            sightings[str(each)] = seen
            trouble = target_trouble(each, seen, pods, client.now())
            if isinstance(pods, Failure) and trouble is None:
                unseen.append(Unseen(LIST_PODS, pods))
        troubles += [trouble] if trouble is not None else []
    for budget in scalers.budgets:
        failing = budget_trouble(budget, definition, declared)
        troubles += [failing] if failing is not None else []
    shortages: dict[str, Shortage] = {}
    for short in scalers.short:
        known = former.shortages.get(str(short)) if former is not None else None
        lack = shortage(short, definition, known, client.now())
        if lack is not None:
            shortages[str(short)] = lack
            lasting = short_trouble(short, lack, client.now())
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


async def _target(
    client: Client, definition: DefinitionFacts, autoscaler: Autoscaler, before: Sighting | None
) -> tuple[Sighting, bool | Failure | None] | Unseen:
    """What /scale of its target says, and whether its selector selects pods."""
    version = scale_version(definition)
    assert version is not None
    endpoint = Endpoint(definition.group, version, definition.plural)
    path = endpoint.path(autoscaler.namespace, autoscaler.target)
    answer = await look(client, f"{path}/scale")
    if isinstance(answer, Failure):
        rule = f'apiGroups: ["{definition.group}"], resources: ["{definition.plural}/scale"], verbs: ["get"]'
        return Unseen(rule, answer)
    body = answer.json()
    spec, status = body.get("spec") or {}, body.get("status") or {}
    selector = str(status.get("selector") or "")
    scale = SeenScale(int(spec.get("replicas") or 0), int(status.get("replicas") or 0), selector)
    pods: bool | Failure | None = None
    if selector:
        found = await _pods(client, autoscaler.namespace, selector, 1)
        pods = found if isinstance(found, Failure) else bool(found.items)
    return sighted(scale, autoscaler, before, client.now()), pods
