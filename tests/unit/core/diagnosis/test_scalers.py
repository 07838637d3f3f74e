"""What is kept of autoscalers, budgets and pods, which tenants write, in any number."""

from typing import Any

import pytest

from crdkeeper.core.diagnosis.scalers import LONGEST_SELECTOR, PodOwner, pod_owners, selector_text
from crdkeeper.core.diagnosis.scalertally import AutoscalerTally, BudgetTally, PodTally


def autoscaler(
    name: str = "a",
    kind: str = "Widget",
    version: str = "example.com/v1",
    namespace: str = "ns",
    target: str = "w",
    **status: Any,
) -> dict[str, Any]:
    reference = {"apiVersion": version, "kind": kind, "name": target}
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"scaleTargetRef": {key: value for key, value in reference.items() if value}},
        "status": status,
    }


def condition(type_: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def test_only_those_of_custom_resources_are_kept() -> None:
    tally = AutoscalerTally()
    tally.add(
        [
            autoscaler(),
            autoscaler("b", version="example.com/v9"),
            autoscaler("c", "Deployment", "apps/v1"),
            autoscaler("d", version=""),
            autoscaler("e", version="v1"),
            autoscaler("f", kind="W" * 300),
            autoscaler("g", version=f"{'e' * 300}.com/v1"),
            autoscaler("h", target="w" * 300),
        ]
    )
    assert tally.totals == {("example.com", "Widget"): 2}
    assert [each.name for each in tally.kept()["example.com", "Widget"]] == ["a", "b"]


ABLE = condition("AbleToScale", "True", "SucceededGetScale")
ACTIVE = condition("ScalingActive", "True", "ValidMetricFound")


@pytest.mark.parametrize(
    ("conditions", "trouble", "desired"),
    [
        ([], "", None),
        ([ABLE, ACTIVE], "", 4),
        ([condition("AbleToScale", "False", "FailedGetScale")], "FailedGetScale", None),
        ([ABLE, condition("ScalingActive", "False", "InvalidSelector")], "InvalidSelector", None),
        # The metrics are to blame, not the object.
        ([ABLE, condition("ScalingActive", "False", "FailedGetResourceMetric")], "", None),
    ],
)
def test_what_its_controller_says(
    conditions: list[dict[str, str]], trouble: str, desired: int | None
) -> None:
    tally = AutoscalerTally()
    tally.add([autoscaler(conditions=conditions, desiredReplicas=4)])
    (found,) = tally.kept()["example.com", "Widget"]
    assert (found.trouble, found.desired) == (trouble, desired)


def made_up(number: int, namespace: str) -> list[dict[str, Any]]:
    """Autoscalers that each name another kind."""
    return [autoscaler(f"a{at}", f"Kind{at}", namespace=namespace) for at in range(number)]


def test_one_namespace_with_many_hides_those_of_no_other() -> None:
    tally = AutoscalerTally()
    tally.add(made_up(20_000, "crowd"))
    tally.add(autoscaler(f"b{at}", namespace="crowd-2") for at in range(20_000))
    tally.add([autoscaler(namespace="team"), autoscaler("other", "Gadget", namespace="team")])
    kept = tally.kept()
    assert [each.namespace for each in kept["example.com", "Gadget"]] == ["team"]
    assert [each.namespace for each in kept["example.com", "Widget"]] == ["crowd-2"] * 50 + ["team"]
    assert tally.totals["example.com", "Widget"] == 20_001
    assert sum(map(len, kept.values())) == 1000 + 50 + 2
    assert tally.uncounted() == "crowd"


def test_those_that_do_not_work_are_kept() -> None:
    tally = AutoscalerTally()
    failed = condition("AbleToScale", "False", "FailedGetScale")
    tally.add(autoscaler(f"a{at}") for at in range(60))
    tally.add([autoscaler("z", conditions=[failed])])
    assert [each.name for each in tally.kept()["example.com", "Widget"] if each.trouble] == ["z"]


def test_those_that_do_not_work_stay_when_there_is_less_room() -> None:
    tally = AutoscalerTally()
    failed = condition("AbleToScale", "False", "FailedGetScale")
    for kind in range(20):
        tally.add(autoscaler(f"a{at}", f"Kind{kind}", conditions=[failed][: at // 45]) for at in range(50))
    for at in range(30):
        tally.add(made_up(1000, f"crowd-{at:02}"))

    def failing(kind: str) -> list[str]:
        return [
            each.name for each in tally.kept()["example.com", kind] if each.namespace == "ns" and each.trouble
        ]

    assert failing("Kind3") == [f"a{at}" for at in range(45, 50)]
    tally.add([autoscaler("z", "Kind3", conditions=[failed])])
    assert failing("Kind3") == [f"a{at}" for at in range(45, 50)] + ["z"]


def test_many_namespaces_share_the_memory() -> None:
    """The share of each becomes smaller, and the small ones keep all that they have."""
    tally = AutoscalerTally()
    tally.add([autoscaler("first", "First", namespace="team")])
    for at in range(30):
        tally.add(made_up(1000, f"crowd-{at:02}"))
    tally.add([autoscaler("last", "Last", namespace="team")])
    kept = tally.kept()
    assert {("example.com", "First"), ("example.com", "Last")} <= kept.keys()
    assert 10_000 < sum(map(len, kept.values())) <= 20_000
    assert tally.totals.keys() == kept.keys()
    assert tally.uncounted() == "crowd-00, crowd-01, crowd-02 and 27 other namespaces"


def test_messages_of_strangers_are_visible_and_short() -> None:
    tally = AutoscalerTally()
    said = condition("AbleToScale", "False", "FailedGetScale", "\x1b[2J" + "x" * 5000)
    tally.add([autoscaler(conditions=[said])])
    (found,) = tally.kept()["example.com", "Widget"]
    assert found.said.startswith("\\x1b[2Jxx")
    assert len(found.said.encode()) <= 256


def test_only_budgets_that_fail_are_kept() -> None:
    tally = BudgetTally()

    def budget(reason: str, status: str = "False", namespace: str = "ns", **spec: Any) -> dict[str, Any]:
        conditions = [condition("DisruptionAllowed", status, reason, "said")]
        return {
            "metadata": {"namespace": namespace, "name": "b"},
            "spec": spec,
            "status": {"conditions": conditions},
        }

    selector = {"matchLabels": {"app": "w"}}
    tally.add([budget("SyncFailed", selector=selector), budget("InsufficientPods", selector=selector)])
    tally.add([budget("SufficientPods", "True", selector=selector), budget("SyncFailed")])
    assert [(str(each), each.selector, each.said) for each in tally.failing()] == [("ns/b", "app=w", "said")]
    tally.add(budget("SyncFailed", selector=selector) for _ in range(500))
    assert (len(tally.failing()), tally.total) == (10, 501)
    for at in range(150):
        tally.add([budget("SyncFailed", namespace=f"ns-{at}", selector=selector)])
    kept = tally.failing()
    assert len(kept) == 100
    assert {each.namespace for each in kept} == {"ns", *(f"ns-{at}" for at in range(99))}


def test_only_budgets_that_expect_more_pods_are_kept() -> None:
    tally = BudgetTally()

    def budget(expected: int, healthy: int, reason: str = "InsufficientPods", **spec: Any) -> dict[str, Any]:
        conditions = [condition("DisruptionAllowed", "False", reason)]
        return {
            "metadata": {"namespace": "ns", "name": f"b{expected}"},
            "spec": {"selector": {"matchLabels": {"app": "w"}}, **spec},
            "status": {"expectedPods": expected, "currentHealthy": healthy, "conditions": conditions},
        }

    tally.add([budget(3, 2, maxUnavailable=1), budget(4, 2, minAvailable="80%"), budget(5, 5)])
    tally.add([budget(6, 2, minAvailable=3), budget(0, 0), budget(7, 2, "SyncFailed")])
    enough = budget(8, 7, maxUnavailable=2)
    enough["status"]["conditions"] = [condition("DisruptionAllowed", "True", "SufficientPods")]
    tally.add([enough])
    assert [(str(each), each.selector, each.expected) for each in tally.short()] == [
        ("ns/b3", "app=w", 3),
        ("ns/b4", "app=w", 4),
    ]
    # Those of Deployments, which may be many, take no room from those that fail.
    tally.add(budget(3, 2) for _ in range(500))
    assert (len(tally.short()), len(tally.failing())) == (10, 1)


def test_budgets_that_missed_pods_stay_among_those_that_are_looked_into() -> None:
    def budget(namespace: str, name: str) -> dict[str, Any]:
        conditions = [condition("DisruptionAllowed", "False", "InsufficientPods")]
        return {
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"selector": {}},
            "status": {"expectedPods": 3, "conditions": conditions},
        }

    tally = BudgetTally(frozenset(("ns-000/z", "ns-150/z", "gone/z")))
    for at in range(200):
        tally.add(budget(f"ns-{at:03}", name) for name in [*"abcdefghijk", "z"])
    kept = [str(each) for each in tally.short()]
    assert len(kept) == 100
    assert kept[:3] == ["ns-000/z", "ns-150/z", "ns-000/a"]


def test_of_a_long_selector_no_more_is_kept_than_shows_that_it_is_too_long() -> None:
    tally = BudgetTally()
    labels = {f"app-{at}": "w" for at in range(10_000)}
    status = {"conditions": [condition("DisruptionAllowed", "False", "SyncFailed")]}
    metadata = {"namespace": "ns", "name": "b"}
    tally.add([{"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}, "status": status}])
    assert [len(each.selector) for each in tally.failing()] == [LONGEST_SELECTOR + 1]


def test_selectors() -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "env", "operator": "NotIn", "values": ["test"]},
        {"key": "x", "operator": "Exists"},
        {"key": "y", "operator": "DoesNotExist"},
    ]
    text = selector_text({"matchLabels": {"app": "w"}, "matchExpressions": expressions})
    assert text == "app=w,tier in (a,b),env notin (test),x,!y"
    assert (selector_text({}), selector_text(None)) == ("", None)


def pod(version: str, name: str, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": "Widget", "name": name, **more}
    return {"metadata": {"ownerReferences": [owner]}}


def test_the_controllers_of_pods() -> None:
    pods = [pod("example.com/v1", "w", controller=True) for _ in range(3)]
    pods += [pod("example.com/v1", "other"), {"metadata": {}}, pod("v1", "rc", controller=True)]
    assert pod_owners(pods) == (
        PodOwner("example.com", "v1", "Widget", "w"),
        PodOwner("", "v1", "Widget", "rc"),
    )
    assert len(pod_owners(pod("example.com/v1", f"w{i}", controller=True) for i in range(50))) == 10
    for version, name in (("example.com/v1", "w" * 300), (f"{'e' * 300}.com/v1", "w"), ("v" * 300, "w")):
        assert pod_owners([pod(version, name, controller=True)]) == ()


def controlled(name: str = "w", version: str = "example.com/v1", **more: Any) -> dict[str, Any]:
    return pod(version, name, controller=True, **more)


@pytest.mark.parametrize(
    ("pods", "mixed"),
    [
        ([], False),
        ([controlled(f"w{at % 10}") for at in range(50)], False),
        ([controlled(), controlled(version="example.com/v2")], False),
        # More objects than are kept.
        ([controlled(f"w{at}") for at in range(11)], True),
        # Only the last one shows that not all belong to one kind.
        ([*(controlled(f"w{at}") for at in range(10)), controlled("w0", kind="Gadget")], True),
        ([*(controlled() for _ in range(10)), controlled("rs", "apps/v1")], True),
        ([*(controlled() for _ in range(10)), {"metadata": {}}], True),
        ([*(controlled() for _ in range(10)), pod("example.com/v1", "w")], True),
        # No object has such a name.
        ([controlled("w" * 300)], True),
    ],
)
def test_whose_pods_are_counted(pods: list[dict[str, Any]], mixed: bool) -> None:
    tally = PodTally()
    tally.add(pods)
    assert (tally.pods, tally.mixed) == (len(pods), mixed)
    assert len(tally.objects) <= 10
