"""ScalingReady: what autoscalers, budgets and /scale say, and what it means for the CRD."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from crdkeeper.core.diagnosis.conditions.scaling import ScalingFacts, judge
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.scalers import (
    LIST_PODS,
    Autoscaler,
    FailingBudget,
    PodOwner,
    ShortBudget,
    Unseen,
)
from crdkeeper.core.diagnosis.scaling import (
    Scaling,
    ScalingFault,
    ScalingTrouble,
    SeenScale,
    Shortage,
    Sighting,
    budget_trouble,
    cannot_scale,
    in_turn,
    short_trouble,
    shortage,
    sighted,
    target_trouble,
    target_unread,
    unscalable,
)
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import NOW, definition

BOTH = DeclaredSubresources(scaled=("v1", "v2"))
LONG_AGO = NOW - timedelta(minutes=10)
JUST_NOW = NOW - timedelta(minutes=9)
REFUSED = Failure(ProbeTrouble.FAILED, 400, 'unable to parse requirement: "\x1b[2J"')


def autoscaler(name: str = "a", namespace: str = "ns", **fields: Any) -> Autoscaler:
    return Autoscaler(namespace, name, "w", **fields)


def seen(replicas: int = 2, pods: int = 2, selector: str = "app=w", desired: int | None = None) -> Sighting:
    return Sighting(SeenScale(replicas, pods, selector), desired, LONG_AGO)


def verdict(*troubles: ScalingTrouble, declared: DeclaredSubresources = BOTH, **fields: Any) -> Verdict:
    found = Scaling(**{"troubles": troubles, **fields})
    return judge(ScalingFacts(definition(), declared, found))


@pytest.mark.parametrize(
    ("found", "pods", "said", "fault"),
    [
        (seen(), True, {}, None),
        (seen(), None, {}, None),
        (seen(selector=""), None, {}, ScalingFault.NO_SELECTOR),
        (seen(), REFUSED, {}, ScalingFault.BAD_SELECTOR),
        (seen(), Failure(ProbeTrouble.FORBIDDEN, 403, "no"), {}, None),
        (seen(), False, {}, ScalingFault.NO_PODS),
        (seen(pods=0, replicas=0), False, {}, None),
        (seen(), True, {"trouble": "AmbiguousSelector"}, ScalingFault.AMBIGUOUS),
        (seen(), True, {"trouble": "FailedUpdateScale"}, ScalingFault.REFUSED),
        # What its controller could not read may be readable by now.
        (seen(), True, {"trouble": "FailedGetScale"}, None),
        (seen(desired=4), True, {}, ScalingFault.OVERWRITTEN),
        (seen(desired=2), True, {}, None),
        (seen(pods=1), True, {}, ScalingFault.NOT_FOLLOWED),
    ],
)
def test_a_target(
    found: Sighting, pods: bool | Failure | None, said: dict[str, Any], fault: ScalingFault | None
) -> None:
    trouble = target_trouble(autoscaler(**said), found, pods, NOW)
    assert (trouble.fault if trouble else None) is fault
    if trouble is not None:
        assert trouble.detail.startswith("HorizontalPodAutoscaler ns/a: ")
        assert "\x1b" not in trouble.detail


def test_what_has_just_changed_may_still_settle() -> None:
    for found in (seen(desired=4), seen(pods=1)):
        recent = Sighting(found.scale, found.desired, JUST_NOW)
        assert target_trouble(autoscaler(), recent, True, NOW) is None


def test_a_sighting_lasts_as_long_as_nothing_changes() -> None:
    scale, former = SeenScale(2, 1, "app=w"), Sighting(SeenScale(2, 1, "app=w"), 2, LONG_AGO)
    assert sighted(scale, autoscaler(desired=2), former, NOW).since == LONG_AGO
    assert sighted(SeenScale(2, 2, "app=w"), autoscaler(desired=2), former, NOW).since == NOW
    assert sighted(scale, autoscaler(desired=3), former, NOW).since == NOW
    assert sighted(scale, autoscaler(desired=2), None, NOW).since == NOW


ABSENT = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
WRONG_TYPE = ".spec.replicas accessor error: x is of the type string, expected int64"
WEBHOOK = "conversion webhook for example.com/v2, Kind=Widget failed:"


@pytest.mark.parametrize(
    ("trouble", "message", "fault"),
    [
        (ProbeTrouble.NOT_FOUND, "said", ScalingFault.TARGET_MISSING),
        (ProbeTrouble.FAILED, ABSENT, ScalingFault.SCALE_FAILS),
        (ProbeTrouble.FAILED, WRONG_TYPE, ScalingFault.SCALE_FAILS),
        # What the API server or a webhook could not do is not the object's fault.
        (ProbeTrouble.FAILED, "etcdserver: leader changed", None),
        (ProbeTrouble.FAILED, f'{WEBHOOK} Post "https://w.example.com/convert?timeout=30s": EOF', None),
        (ProbeTrouble.FAILED, f"{WEBHOOK} {ABSENT}", None),
        (ProbeTrouble.FAILED, f"{WEBHOOK} {WRONG_TYPE}", None),
        (ProbeTrouble.FORBIDDEN, "said", None),
        (ProbeTrouble.BUSY, "said", None),
        (ProbeTrouble.SILENT, "said", None),
    ],
)
def test_a_target_that_cannot_be_read(
    trouble: ProbeTrouble, message: str, fault: ScalingFault | None
) -> None:
    found = target_unread(autoscaler(), Failure(trouble, 0, message))
    assert (found.fault if found else None) is fault


def test_who_cannot_scale() -> None:
    assert unscalable(definition(), BOTH) == ""
    # The controllers ask at the version that the API server prefers, which is v2.
    assert unscalable(definition(), DeclaredSubresources(scaled=("v2",))) == ""
    assert "prefers, v2, has no scale" in unscalable(definition(), DeclaredSubresources(scaled=("v1",)))
    assert unscalable(definition(), DeclaredSubresources()) == "no served version has a scale subresource"
    assert "cluster-scoped" in unscalable(replace(definition(), namespaced=False), BOTH)


@pytest.mark.parametrize(
    ("owners", "said", "declared", "detail"),
    [
        ((), "some other trouble", BOTH, None),
        ((PodOwner("apps", "v1", "ReplicaSet", "r"),), "x", BOTH, None),
        ((PodOwner("other.com", "v1", "Widget", "w"),), "x", BOTH, None),
        ((PodOwner("example.com", "v1", "Widget", "w"),), "x", BOTH, "its controller says: x"),
        (
            (PodOwner("example.com", "v1", "Widget", "w"),),
            "x",
            DeclaredSubresources(),
            "no served version has",
        ),
        ((PodOwner("example.com", "v0", "Widget", "w"),), "x", BOTH, "name v0, which is not served"),
        # Without the right to list pods.
        (
            (),
            "widgets.example.com does not implement the scale subresource",
            DeclaredSubresources(),
            "no served",
        ),
    ],
)
def test_budgets(
    owners: tuple[PodOwner, ...], said: str, declared: DeclaredSubresources, detail: str | None
) -> None:
    found = budget_trouble(FailingBudget("ns", "b", "app=w", said, owners), definition(), declared)
    if detail is None:
        assert found is None
    else:
        assert found is not None
        assert found.detail.startswith("PodDisruptionBudget ns/b: ")
        assert detail in found.detail


SHORT = ShortBudget("ns", "b", "app=w", 3, ("example.com", "Widget"), ("w",), 2)


@pytest.mark.parametrize(
    ("replicas", "former", "since"),
    [
        (3, None, NOW),
        (3, Shortage(("w",), 3, 2, LONG_AGO), LONG_AGO),
        (3, Shortage(("w",), 3, 1, LONG_AGO), NOW),
        (3, Shortage(("w",), 4, 2, LONG_AGO), NOW),
        # Its controller has not seen that spec.replicas has become less.
        (2, Shortage(("w",), 3, 2, LONG_AGO), None),
        (1, None, None),
    ],
)
def test_a_budget_with_too_few_pods(replicas: int, former: Shortage | None, since: datetime | None) -> None:
    found = shortage(SHORT, replicas, former, NOW)
    assert found == (None if since is None else Shortage(("w",), replicas, 2, since))


def test_pods_of_a_budget_that_stay_too_few() -> None:
    assert short_trouble("ns/b", Shortage(("w",), 3, 2, JUST_NOW), NOW) is None
    found = short_trouble("ns/b", Shortage(("w",), 3, 1, LONG_AGO), NOW)
    assert found is not None
    assert found.detail == "PodDisruptionBudget ns/b: it selects 1 pod of w, but spec.replicas is 3"
    assert verdict(found).reason.name == "PodsMissing"
    several = short_trouble("ns/b", Shortage(tuple(f"\x1b{i}" for i in range(5)), 9, 2, LONG_AGO), NOW)
    assert several is not None
    assert several.detail.endswith(
        "it selects 2 pods of \\x1b0, \\x1b1, \\x1b2 and 2 other objects, but spec.replicas is 9 in all"
    )


def test_no_namespace_crowds_out_others() -> None:
    crowd = [autoscaler(f"a{i:04}", "crowd") for i in range(1000)]
    others = [autoscaler("z", "zoo"), autoscaler("y", "zoo", trouble="FailedGetScale")]
    checked = in_turn([*crowd, *others], 4)
    assert [str(each) for each in checked] == ["zoo/y", "crowd/a0000", "crowd/a0001", "zoo/z"]


def test_the_worst_comes_first_and_names_are_bounded() -> None:
    many = [
        ScalingTrouble(ScalingFault.NOT_FOLLOWED, f"HorizontalPodAutoscaler ns/a{i}: slow") for i in range(9)
    ]
    said = verdict(*many, cannot_scale(autoscaler("z"), "no scale"))
    assert (said.reason.name, said.reason.status, said.reason.healthy) == ("ScaleMissing", "False", True)
    assert said.message.startswith(
        "HorizontalPodAutoscaler ns/z: no scale; HorizontalPodAutoscaler ns/a0: slow;"
    )
    assert "; and 5 more. " in said.message


@pytest.mark.parametrize(
    ("fields", "reason", "said"),
    [
        ({}, "NotUsed", "No HorizontalPodAutoscaler names"),
        ({"autoscalers": 2, "checked": 2}, "Working", "2 HorizontalPodAutoscalers can scale"),
        ({"autoscalers": 900, "checked": 50}, "Working", "of which 50 were checked"),
        ({"uncounted": "crowd"}, "NotUsed", "Not all of those in crowd could be counted."),
        ({"uncounted": "crowd", "autoscalers": 1, "checked": 1}, "Working", "Not all of those in crowd"),
        (
            {"unseen": (Unseen("rule", Failure(ProbeTrouble.BUSY, 429, "busy")),)},
            "APIServerUnavailable",
            "busy",
        ),
        (
            {"unseen": (Unseen(LIST_PODS, Failure(ProbeTrouble.FORBIDDEN, 403, "no.")),), "autoscalers": 1},
            "NotPermitted",
            'The missing rule: apiGroups: [""], resources: ["pods"], verbs: ["list"].',
        ),
    ],
)
def test_without_trouble(fields: dict[str, Any], reason: str, said: str) -> None:
    found = verdict(**fields)
    assert (found.reason.name, found.reason.healthy) == (reason, True)
    assert said in found.message


def test_before_the_first_list() -> None:
    assert judge(ScalingFacts(definition(), BOTH, None)).reason.name == "Pending"
    assert "None could scale one: no served version" in verdict(declared=DeclaredSubresources()).message
