"""What is told of autoscalers and budgets when some of it cannot be seen."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from crdkeeper.cluster.probes import budgetpods
from crdkeeper.cluster.probes.budgetpods import BudgetPods, PodPage
from crdkeeper.cluster.probes.scaling import list_scalers, probe_scaling
from crdkeeper.core.diagnosis.conditions.scaling import (
    NOT_ASKED,
    PODS_MISSING,
    REPLICAS_NOT_FOLLOWED,
    ScalingFacts,
    judge,
)
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalers import (
    LIST_AUTOSCALERS,
    LIST_BUDGETS,
    LIST_PODS,
    Autoscaler,
    FailingBudget,
    Scalers,
    ShortBudget,
    Unseen,
)
from crdkeeper.core.diagnosis.scaling import Scaling, SeenScale, Shortage, Sighting
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from tests.unit.builders import NOW, definition
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up, json

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
        found = await list_scalers(client, Scalers())
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
        found = await list_scalers(client, Scalers())
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
        (50, [pods(20, more="x"), pods(20)], 40),
        (50, [pods(20, more="x"), pods(30)], None),
        # More than are ever counted.
        (5000, [pods(20, more="x"), pods(80, more="y"), *[pods(100, more="z")] * 4], None),
        # So large that each page has few.
        (500, [pods(20, more="x"), *[pods(2, more="y")] * 9], None),
        # Those of a ReplicaSet are not counted.
        (50, [pods(20, "apps", more="x")], None),
        (50, [pods(20, more="x"), pods(1, "apps", more="y")], None),
    ],
)
async def test_the_pods_of_a_budget_that_has_too_few(
    tmp_path: Path, expected: int, lists: list[Handler], counted: int | None
) -> None:
    async with client_of(tmp_path, json(NONE), short_budget(expected), *lists) as (server, client):
        (found,) = (await list_scalers(client, Scalers())).short
    assert len(server.seen) == 2 + len(lists)
    if counted is None:
        assert found.kind is None
    else:
        assert (found.kind, found.objects, found.pods) == (("example.com", "Widget"), ("w",), counted)


@pytest.mark.parametrize("budget", [budgets(["web"]), short_budget(500)], ids=["failing", "short"])
async def test_pods_with_much_metadata_are_read_a_few_at_a_time(tmp_path: Path, budget: Handler) -> None:
    sizes: list[int] = []

    async def large(request: web.Request) -> web.Response:
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "controller": True}
        metadata = {"annotations": {"a": "x" * 500_000}, "ownerReferences": [owner]}
        limit = int(request.query["limit"])
        answer = await json({"metadata": {"continue": "on"}, "items": [{"metadata": metadata}] * limit})(
            request
        )
        sizes.append(limit)
        return answer

    async with client_of(tmp_path, json(NONE), budget, large) as (_, client):
        await list_scalers(client, Scalers())
    # Of the first answer no more than 4 MiB are read.
    assert sizes[:2] == [20, 5]
    assert max(sizes[1:]) <= 8
    assert len(sizes) <= 12


BUSY = Failure(ProbeTrouble.BUSY, 504, "slow")


async def test_budgets_after_three_without_an_answer_are_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[PodPage | Failure] = [BUSY, BUSY, PodPage((), ""), BUSY, BUSY, BUSY]
    asked: list[str] = []

    async def page(_client: object, namespace: str, *_: object) -> PodPage | Failure:
        asked.append(namespace)
        return answers[len(asked) - 1]

    monkeypatch.setattr(budgetpods, "pod_page", page)
    async with client_of(tmp_path, json(NONE)) as (_, client):
        pods = BudgetPods(client)
        found = [await pods.counted(ShortBudget(f"ns-{at}", "b", "", 3)) for at in range(10)]
        failing = await pods.with_owners(FailingBudget("ns", "b", "", "said"))
    assert len(asked) == len(answers)
    assert [each.unseen is None for each in found] == [at == 2 for at in range(10)]
    assert failing.unseen is not None


KIND = ("example.com", "Widget")
SHORT = ShortBudget("ns", "b", "app=w", 5, KIND, ("v", "w"), 2)
KNOWN = {"ns/b": Shortage(("v", "w"), 5, 2, NOW)}
ABSENT = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
ETCD = failure(500, "InternalError", "etcdserver: leader changed")


async def shortages(directory: Path, scalers: Scalers, *answers: Handler) -> Scaling:
    """What is found after the shortage was known for long."""
    async with client_of(directory, *answers) as (_, client):
        declared = DeclaredSubresources(scaled=("v1", "v2"))
        return await probe_scaling(client, definition(), declared, scalers, Scaling(shortages=KNOWN))


def scale(replicas: int) -> Handler:
    return json({"spec": {"replicas": replicas}, "status": {"replicas": replicas}})


@pytest.mark.parametrize(
    ("budget", "scales", "replicas"),
    [
        (SHORT, [scale(3), scale(2)], 5),
        # Its controller has not seen the change yet.
        (SHORT, [scale(1), scale(1)], None),
        (SHORT, [scale(4), scale(4)], 8),
        # The object's own failure.
        (SHORT, [scale(9), failure(500, "InternalError", ABSENT)], None),
        (SHORT, [failure(404, "NotFound", "no such object")], None),
        # Nothing is known.
        (SHORT, [failure(504, "Timeout", "slow")], 5),
        (SHORT, [scale(9), ETCD], 5),
        (replace(SHORT, kind=("example.com", "Gadget")), [scale(9)], None),
        (replace(SHORT, kind=None), [scale(9)], None),
    ],
)
async def test_the_pods_that_a_budget_misses(
    tmp_path: Path, budget: ShortBudget, scales: list[Handler], replicas: int | None
) -> None:
    found = await shortages(tmp_path, Scalers(short=(budget,)), *scales)
    assert [each.replicas for each in found.shortages.values()] == ([] if replicas is None else [replicas])
    assert found.unseen == ()


async def test_that_scale_of_the_objects_of_a_budget_may_not_be_read(tmp_path: Path) -> None:
    forbidden = failure(403, "Forbidden", "widgets/scale is forbidden")
    found = await shortages(tmp_path, Scalers(short=(SHORT,)), forbidden)
    assert found.shortages == {}
    assert ["widgets/scale" in each.rule for each in found.unseen] == [True]


async def test_an_error_about_the_objects_of_one_budget_says_nothing_about_others(tmp_path: Path) -> None:
    two = Scalers(short=(SHORT, replace(SHORT, name="c")))
    found = await shortages(tmp_path, two, ETCD, scale(3))
    assert {name: each.replicas for name, each in found.shortages.items()} == {"ns/b": 5, "ns/c": 6}
    assert found.unseen == ()


async def test_scale_of_at_most_fifty_objects_of_budgets_is_read(tmp_path: Path) -> None:
    many = [replace(SHORT, name=f"b{at}") for at in range(40)]
    async with client_of(tmp_path, scale(3)) as (server, client):
        declared = DeclaredSubresources(scaled=("v1", "v2"))
        found = await probe_scaling(client, definition(), declared, Scalers(short=many), None)
    assert (len(server.seen), len(found.shortages)) == (50, 25)


@pytest.mark.parametrize(
    ("failed", "stays"),
    [
        (BUSY, True),
        (Failure(ProbeTrouble.SILENT, 0, "no response"), True),
        (Failure(ProbeTrouble.FAILED, 500, "etcd"), True),
        (Failure(ProbeTrouble.FAILED, 400, "no selector"), False),
        (Failure(ProbeTrouble.FAILED, 0, "the selector is too long for a query"), False),
        (Failure(ProbeTrouble.FORBIDDEN, 403, "no"), False),
    ],
)
async def test_what_is_known_of_a_budget_stays_without_an_answer(
    tmp_path: Path, failed: Failure, stays: bool
) -> None:
    unseen = ShortBudget("ns", "b", "app=w", 5, unseen=Unseen(LIST_PODS, failed))
    for scalers in (Scalers(short=(unseen,)), Scalers(unseen=(Unseen(LIST_BUDGETS, failed),))):
        found = await shortages(tmp_path, scalers, scale(0))
        assert found.shortages == (KNOWN if stays else {})
    assert (await shortages(tmp_path, Scalers(), scale(0))).shortages == {}


async def test_what_has_lasted_is_told_also_without_an_answer(tmp_path: Path) -> None:
    long_ago = {"ns/b": replace(KNOWN["ns/b"], since=NOW.replace(year=2020))}
    scalers = Scalers(unseen=(Unseen(LIST_BUDGETS, BUSY),))
    async with client_of(tmp_path, scale(0)) as (_, client):
        declared = DeclaredSubresources(scaled=("v1", "v2"))
        found = await probe_scaling(client, definition(), declared, scalers, Scaling(shortages=long_ago))
    assert judge(ScalingFacts(definition(), declared, found)).reason is PODS_MISSING


AUTOSCALER = Autoscaler("ns", "a", "w", desired=3)
SIGHTED = {"ns/a": Sighting(SeenScale(3, 2, "app=w"), 3, NOW)}
BOTH = DeclaredSubresources(scaled=("v1", "v2"))


async def sightings(
    directory: Path, scalers: Scalers, *answers: Handler, known: Mapping[str, Sighting] = SIGHTED
) -> Scaling:
    """What is found after that was known of targets."""
    async with client_of(directory, *answers) as (_, client):
        return await probe_scaling(client, definition(), BOTH, scalers, Scaling(sightings=known))


@pytest.mark.parametrize(
    ("answer", "stays"),
    [
        (failure(504, "Timeout", "slow"), True),
        (ETCD, True),
        (hang_up, True),
        (failure(404, "NotFound", "no such object"), False),
        (failure(403, "Forbidden", "widgets/scale is forbidden"), False),
    ],
)
async def test_what_is_known_of_a_target_stays_without_an_answer(
    tmp_path: Path, answer: Handler, stays: bool
) -> None:
    found = await sightings(tmp_path, Scalers(autoscalers={KIND: (AUTOSCALER,)}), answer)
    assert found.sightings == (SIGHTED if stays else {})


async def test_what_is_known_of_targets_after_a_silent_one_stays(tmp_path: Path) -> None:
    two = Scalers(autoscalers={KIND: (AUTOSCALER, replace(AUTOSCALER, name="b"))})
    known = {**SIGHTED, "ns/b": SIGHTED["ns/a"]}
    # A lost connection is tried again by the HTTP client.
    found = await sightings(tmp_path, two, hang_up, hang_up, scale(3), known=known)
    assert (found.sightings, len(found.unseen)) == (known, 1)


@pytest.mark.parametrize(
    ("failed", "stays"), [(BUSY, True), (Failure(ProbeTrouble.FORBIDDEN, 403, "no"), False)]
)
async def test_what_is_known_of_a_target_stays_without_a_whole_list(
    tmp_path: Path, failed: Failure, stays: bool
) -> None:
    unseen = (Unseen(LIST_AUTOSCALERS, failed),)
    found = await sightings(tmp_path, Scalers(unseen=unseen), scale(3))
    assert found.sightings == (SIGHTED if stays else {})
    assert (await sightings(tmp_path, Scalers(), scale(3))).sightings == {}
    many = {f"ns/b{at}": SIGHTED["ns/a"] for at in range(60)}
    one = Scalers(autoscalers={KIND: (AUTOSCALER,)}, unseen=unseen)
    found = await sightings(tmp_path, one, scale(3), known=many)
    assert ("ns/a" in found.sightings, len(found.sightings)) == (True, 50 if stays else 1)


async def test_what_has_lasted_of_a_target_is_told_also_without_an_answer(tmp_path: Path) -> None:
    long_ago = {"ns/a": replace(SIGHTED["ns/a"], since=NOW.replace(year=2020))}
    for desired, reason in ((3, REPLICAS_NOT_FOLLOWED), (4, NOT_ASKED)):
        scalers = Scalers(autoscalers={KIND: (replace(AUTOSCALER, desired=desired),)})
        for answer in (failure(504, "Timeout", "slow"), ETCD):
            found = await sightings(tmp_path, scalers, answer, known=long_ago)
            assert judge(ScalingFacts(definition(), BOTH, found)).reason is reason


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ([short_budget(3), pods(2)], {"default/web"}),
        ([short_budget(3), pods(3)], set()),
        ([json(NONE)], set()),
        ([short_budget(3), *[failure(504)] * 4], {"default/web"}),
        ([failure(504)], {"default/web", "ns/b"}),
    ],
)
async def test_which_budgets_are_looked_into_first_the_next_time(
    tmp_path: Path, answers: list[Handler], missing: set[str]
) -> None:
    former = Scalers(missing=frozenset(("default/web", "ns/b")))
    async with client_of(tmp_path, json(NONE), *answers) as (_, client):
        found = await list_scalers(client, former)
    assert found.missing == missing


async def test_that_the_pods_of_a_budget_that_has_too_few_may_not_be_listed(tmp_path: Path) -> None:
    forbidden = failure(403, "Forbidden", "pods is forbidden")
    async with client_of(tmp_path, json(NONE), short_budget(3), forbidden) as (_, client):
        found = await list_scalers(client, Scalers())
    assert [each.failure.trouble for each in found.unseen] == [ProbeTrouble.FORBIDDEN]


async def test_a_list_that_does_not_end_is_told(tmp_path: Path) -> None:
    following = json({"metadata": {"continue": "on"}, "items": []})
    async with client_of(tmp_path, *[following] * 400, json(NONE)) as (_, client):
        found = await list_scalers(client, Scalers())
    scaling = Scaling(unseen=found.unseen)
    told = judge(ScalingFacts(definition(), DeclaredSubresources(), scaling))
    assert told.reason is NOT_ASKED
    path = "/apis/autoscaling/v2/horizontalpodautoscalers"
    assert told.message.startswith(f"Not all could be read: {path} has more than 400 pages.")
