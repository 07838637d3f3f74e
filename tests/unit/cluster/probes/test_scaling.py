"""What is told of autoscalers and budgets when some of it cannot be seen."""

from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.probes.scaling import list_scalers
from crdkeeper.core.diagnosis.conditions.scaling import NOT_ASKED, ScalingFacts, judge
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.diagnosis.scaling import Scaling
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from tests.unit.builders import definition
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json

FAILED = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
NONE: dict[str, Any] = {"metadata": {}, "items": []}


def budgets(values: list[str]) -> Handler:
    requirement = {"key": "app", "operator": "In", "values": values}
    item = {
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"selector": {"matchExpressions": [requirement]}},
        "status": {"conditions": [FAILED]},
    }
    return json({"metadata": {}, "items": [item]})


async def test_that_the_pods_of_a_failing_budget_may_not_be_listed(tmp_path: Path) -> None:
    forbidden = failure(403, "Forbidden", "pods is forbidden")
    async with client_of(tmp_path, json(NONE), budgets(["web"]), forbidden) as (_, client):
        found = await list_scalers(client)
    (unseen,) = found.unseen
    assert (unseen.failure.trouble, found.budgets_total) == (ProbeTrouble.FORBIDDEN, 1)
    assert "pods" in unseen.rule


@pytest.mark.parametrize(
    ("values", "pods"),
    [(["web"], failure(400, "BadRequest", "no")), (["w" * 60] * 100, json(NONE))],
    ids=["refused", "too long to ask"],
)
async def test_a_selector_that_cannot_be_asked_for_is_not_told_of_all_crds(
    tmp_path: Path, values: list[str], pods: Handler
) -> None:
    async with client_of(tmp_path, json(NONE), budgets(values), pods) as (_, client):
        found = await list_scalers(client)
    assert (found.unseen, found.budgets_total) == ((), 1)


def short_budget(expected: int) -> Handler:
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}
    item = {
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"expectedPods": expected, "currentHealthy": 1, "conditions": [condition]},
    }
    return json({"metadata": {}, "items": [item]})


def pods(number: int, group: str = "example.com", *, more: str = "") -> Handler:
    owner = {"apiVersion": f"{group}/v1", "kind": "Widget", "name": "w", "controller": True}
    items = [{"metadata": {"ownerReferences": [owner]}}] * number
    return json({"metadata": {"continue": more}, "items": items})


@pytest.mark.parametrize(
    ("expected", "lists", "counted"),
    [
        (3, [pods(2)], 2),
        (3, [pods(3)], None),
        (50, [pods(20, more="x"), pods(40)], 40),
        (50, [pods(20, more="x"), pods(50)], None),
        # More than are ever counted.
        (5000, [pods(20, more="x"), pods(500, more="y")], None),
        # Those of a ReplicaSet are not counted.
        (50, [pods(20, "apps", more="x")], None),
    ],
)
async def test_the_pods_of_a_budget_that_has_too_few(
    tmp_path: Path, expected: int, lists: list[Handler], counted: int | None
) -> None:
    async with client_of(tmp_path, json(NONE), short_budget(expected), *lists) as (_, client):
        found = await list_scalers(client)
    assert [each.pods for each in found.short] == [counted]


async def test_that_the_pods_of_a_budget_that_has_too_few_may_not_be_listed(tmp_path: Path) -> None:
    forbidden = failure(403, "Forbidden", "pods is forbidden")
    async with client_of(tmp_path, json(NONE), short_budget(3), forbidden) as (_, client):
        found = await list_scalers(client)
    assert [each.failure.trouble for each in found.unseen] == [ProbeTrouble.FORBIDDEN]


async def test_a_list_that_does_not_end_is_told(tmp_path: Path) -> None:
    following = json({"metadata": {"continue": "on"}, "items": []})
    async with client_of(tmp_path, *[following] * 400, json(NONE)) as (_, client):
        found = await list_scalers(client)
    scaling = Scaling(unseen=found.unseen)
    told = judge(ScalingFacts(definition(), DeclaredSubresources(), scaling))
    assert told.reason is NOT_ASKED
    path = "/apis/autoscaling/v2/horizontalpodautoscalers"
    assert told.message.startswith(f"Not all could be read: {path} has more than 400 pages.")
