"""Lists pods by the selectors that budgets and /scale have: only metadata, in pages of bounded size.

Tenants write the selectors and the pods. Of a page, only their number and a few of their controllers are
kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.cluster.probes.looking import SECONDS, failure_of
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalers import (
    LIST_PODS,
    LONGEST_SELECTOR,
    FailingBudget,
    ShortBudget,
    Unseen,
    pod_owners,
)
from crdkeeper.core.diagnosis.scalertally import PodTally

_FIRST_PAGE = 20
"""So many show to whom the pods of a budget belong."""
_PAGE = 100
_MOST_PAGES = 10
"""Of one budget. 500 pods of usual size need six."""
_MOST_PODS_COUNTED = 500
_MOST_UNANSWERED = 3


@dataclass(frozen=True, slots=True)
class PodPage:
    """Some pods."""

    items: Sequence[Mapping[str, Any]]
    token: str
    """Where the next page begins; empty if there is none."""


def pod_pages(first: int, most: int) -> PageSize:
    """Pages of at most so many pods, and of fewer if they are large."""
    return PageSize(first, most, METADATA_BYTES // 2, METADATA_BYTES, SECONDS)


async def pod_page(
    client: Client, namespace: str, selector: str, size: PageSize, token: str = ""
) -> PodPage | Failure:
    """Metadata of pods that a selector selects; a failure also for one that is too long to ask."""
    if len(selector) > LONGEST_SELECTOR:
        return Failure(ProbeTrouble.FAILED, 0, "the selector is too long for a query")
    path, encoded = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", quote(selector, safe="")
    try:
        page = await bounded_page(client, path, token, size, accept=METADATA_ONLY_LIST, selector=encoded)
    except ApiError as error:
        return failure_of(error.code, error.message)
    except Unreachable as error:
        return Failure(ProbeTrouble.SILENT, 0, bounded(str(error), LINE_BYTES))
    items = page.get("items") or ()
    size.fit(items)
    return PodPage(items, page["metadata"].get("continue") or "")


class BudgetPods:
    """Looks into budgets, one after the other.

    After three of them in a row without an answer, it asks no more: the others would be as slow.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unanswered: list[Failure] = []

    async def with_owners(self, budget: FailingBudget) -> FailingBudget:
        """With the controllers of some of its pods."""
        found = await self._page(budget, pod_pages(_FIRST_PAGE, _FIRST_PAGE))
        if isinstance(found, Failure):
            return replace(budget, unseen=Unseen(LIST_PODS, found))
        return replace(budget, owners=pod_owners(found.items))

    async def counted(self, budget: ShortBudget) -> ShortBudget:
        """With the number of its pods and their controllers, if these are a few custom resources of a kind.

        As it is if it has as many as it expects.
        """
        tally, size, token = PodTally(), pod_pages(_FIRST_PAGE, _PAGE), ""
        for _ in range(_MOST_PAGES):
            found = await self._page(budget, size, token)
            if isinstance(found, Failure):
                return replace(budget, unseen=Unseen(LIST_PODS, found))
            tally.add(found.items)
            if tally.mixed or tally.pods >= min(budget.expected, _MOST_PODS_COUNTED):
                break
            if not (token := found.token):
                return replace(budget, kind=tally.kind, objects=tuple(tally.objects), pods=tally.pods)
        return budget

    async def _page(
        self, budget: FailingBudget | ShortBudget, size: PageSize, token: str = ""
    ) -> PodPage | Failure:
        if len(self._unanswered) >= _MOST_UNANSWERED:
            return self._unanswered[-1]
        found = await pod_page(self._client, budget.namespace, budget.selector, size, token)
        if isinstance(found, Failure) and found.passing:
            self._unanswered.append(found)
        else:
            self._unanswered.clear()
        return found
