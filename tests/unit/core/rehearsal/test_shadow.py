"""The shadow CRD, and the effect of its answers on a prediction."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.core.policy.protection import protection_refusal
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.shadow import (
    GROUP,
    MADE_BY,
    STALE,
    DryRun,
    confirm,
    is_stale,
    shadow_definition,
)
from crdkeeper.core.rehearsal.update import applied
from tests.unit.builders import policy
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
    kept = shadow_definition(document, "r1", "Widget", made_by="a process")
    assert kept["metadata"]["annotations"][MADE_BY] == "a process"
    assert [each["storage"] for each in kept["spec"]["versions"]] == [True, False]


def test_a_long_kind_has_a_shadow() -> None:
    made = shadow_definition(crd(NEW), "r" + 12 * "a", 63 * "K")
    assert check_creation(made).violations == []


def test_no_policy_protects_the_shadow() -> None:
    made = shadow_definition(crd(NEW), "r1", "Widget")
    protecting = policy(protection={"deletion": "Deny"})
    assert protection_refusal([protecting], crd(NEW), None)
    assert protection_refusal([protecting], made, None) == ""


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
        (GOOD, DryRun(201, "", (), GOOD), set()),
        (BAD, DryRun(422, "", [TOO_LONG]), set()),
        (BAD, DryRun(422, "", [("spec.a", "in other words")]), set()),
        # The server's word counts, and where ours is another one the rest is in doubt.
        (
            BAD,
            DryRun(422, "", [TOO_LONG, ("spec.b", "Required value")]),
            {
                (EffectKind.REFUSED, "spec.a", "v1"),
                (EffectKind.REFUSED, "spec.b", "v1"),
                (EffectKind.INDETERMINATE, "", "v1"),
            },
        ),
        (
            GOOD,
            DryRun(422, "", [TOO_LONG]),
            {(EffectKind.REFUSED, "spec.a", "v1"), (EffectKind.INDETERMINATE, "", "v1")},
        ),
        (
            GOOD,
            DryRun(400, "cannot", ()),
            {(EffectKind.REFUSED, "", "v1"), (EffectKind.INDETERMINATE, "", "v1")},
        ),
        (
            GOOD,
            DryRun(201, "", (), widget({"b": 1})),
            {
                (EffectKind.PRUNED, "spec.a", "v1"),
                (EffectKind.DEFAULTED, "spec.b", "v1"),
                (EffectKind.INDETERMINATE, "", "v1"),
            },
        ),
        (BAD, DryRun(201, "", (), BAD), {(EffectKind.INDETERMINATE, "", "v1")}),
        # An admission webhook for all resources, a namespace that is being deleted.
        (GOOD, DryRun(403, "denied", ()), {(EffectKind.INDETERMINATE, "", "v1")}),
        (GOOD, DryRun(500, "broken", ()), {(EffectKind.INDETERMINATE, "", "v1")}),
    ],
)
def test_the_servers_answer(obj: Any, answer: DryRun, expected: set[Any]) -> None:
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


def test_preserved_unknown_fields_stay_unless_the_manifest_says_otherwise() -> None:
    live = crd(NEW, preserveUnknownFields=True)
    assert applied(live, crd(NEW))["spec"]["preserveUnknownFields"] is True
    assert applied(live, crd(NEW, preserveUnknownFields=False))["spec"]["preserveUnknownFields"] is False


def test_no_shadow_prunes_what_the_definition_preserves() -> None:
    made = shadow_definition(crd(NEW, preserveUnknownFields=True), "r1", "Widget")
    assert [str(each.path) for each in check_creation(made).violations] == ["spec.preserveUnknownFields"]
