"""The shadow CRD, and what its answers do to a prediction."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.core.rehearsal.effect import Kind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.shadow import GROUP, STALE, Answer, confirm, is_stale, shadow_definition
from crdkeeper.core.rehearsal.update import applied
from tests.unit.core.rehearsal.crds import INTEGER, TEXT, crd, definition, told, version, widget

NEW = version(a=TEXT | {"maxLength": 2}, b=INTEGER)
DEFINITION = definition(NEW)
SCALE = {"specReplicasPath": ".spec.b", "statusReplicasPath": ".status.b"}


def test_the_shadow_is_a_good_definition_without_status_subresource_or_conversion() -> None:
    document = crd(
        version(a=TEXT, b=INTEGER, subresources={"status": {}, "scale": SCALE}),
        version("v2", storage=False, a=TEXT),
        conversion={"strategy": "Webhook"},
    )
    made = shadow_definition(document, "r1", "Widget", judged_at="v2")
    assert check_creation(made).violations == []
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert [each.get("subresources") for each in made["spec"]["versions"]] == [{"scale": SCALE}, None]
    assert [each["storage"] for each in made["spec"]["versions"]] == [False, True]
    assert not GROUP.endswith((".k8s.io", ".kubernetes.io"))
    kept = shadow_definition(document, "r1", "Widget")
    assert [each["storage"] for each in kept["spec"]["versions"]] == [True, False]


def test_a_shadow_is_stale_by_its_age() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    young, old = (
        {"metadata": {"creationTimestamp": f"{now - STALE + off:%Y-%m-%dT%H:%M:%SZ}"}}
        for off in (timedelta(minutes=1), -timedelta(minutes=1))
    )
    assert (is_stale(young, now), is_stale(old, now), is_stale({"metadata": {}}, now)) == (False, True, False)


GOOD, BAD = widget({"a": "x"}), widget({"a": "long", "gone": 1})
TOO_LONG = ("spec.a", "Too long: may not be more than 2 bytes")


@pytest.mark.parametrize(
    ("obj", "answer", "expected"),
    [
        (GOOD, Answer(201, "", (), GOOD), set()),
        (BAD, Answer(422, "", [TOO_LONG]), set()),
        (BAD, Answer(422, "", [("spec.a", "in other words")]), set()),
        # The server's word counts, and where ours is another one the rest is in doubt.
        (
            BAD,
            Answer(422, "", [TOO_LONG, ("spec.b", "Required value")]),
            {(Kind.REFUSED, "spec.a", "v1"), (Kind.REFUSED, "spec.b", "v1"), (Kind.INDETERMINATE, "", "v1")},
        ),
        (GOOD, Answer(422, "", [TOO_LONG]), {(Kind.REFUSED, "spec.a", "v1"), (Kind.INDETERMINATE, "", "v1")}),
        (GOOD, Answer(400, "cannot", ()), {(Kind.REFUSED, "", "v1"), (Kind.INDETERMINATE, "", "v1")}),
        (
            GOOD,
            Answer(201, "", (), widget({"b": 1})),
            {
                (Kind.PRUNED, "spec.a", "v1"),
                (Kind.DEFAULTED, "spec.b", "v1"),
                (Kind.INDETERMINATE, "", "v1"),
            },
        ),
        (BAD, Answer(201, "", (), BAD), {(Kind.INDETERMINATE, "", "v1")}),
        # An admission webhook for all resources, a namespace that is being deleted.
        (GOOD, Answer(403, "denied", ()), {(Kind.INDETERMINATE, "", "v1")}),
        (GOOD, Answer(500, "broken", ()), {(Kind.INDETERMINATE, "", "v1")}),
    ],
)
def test_the_servers_answer(obj: Any, answer: Answer, expected: set[Any]) -> None:
    prediction = Judge(DEFINITION, DEFINITION).predict(obj)
    assert told(confirm(prediction, answer, obj, DEFINITION)) == expected


def test_what_others_set_on_the_live_definition_stays() -> None:
    live = crd(NEW, conversion={"strategy": "Webhook", "webhook": {}})
    live["metadata"] |= {"annotations": {"a": "1", "b": "2"}, "managedFields": [], "resourceVersion": "5"}
    manifest = crd(version(a=TEXT))
    manifest["metadata"]["annotations"] = {"b": "3"}
    del manifest["spec"]["conversion"]

    made = applied(live, manifest)

    assert made["spec"] == {**manifest["spec"], "conversion": live["spec"]["conversion"]}
    assert made["metadata"] == {
        "name": live["metadata"]["name"],
        "annotations": {"a": "1", "b": "3"},
        "resourceVersion": "5",
    }
    assert applied(live, crd(version(a=TEXT)))["spec"]["conversion"] == {"strategy": "None"}
