"""Admission rules that name a version: which of them hold a step, and which only end."""

from typing import Any

import pytest

from crdkeeper.core.retirement.admission import AdmissionUses, admission_uses
from tests.unit.builders import definition

WEBHOOKS = "ValidatingWebhookConfiguration"
POLICY = "MutatingAdmissionPolicy"
BINDING = "ValidatingAdmissionPolicyBinding"


def rule(*versions: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiGroups": ["example.com"],
        "apiVersions": list(versions),
        "operations": ["*"],
        "resources": ["widgets"],
        **fields,
    }


def webhooks(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    webhook = {"name": "guard.example.com", "rules": list(rules), "matchPolicy": "Equivalent", **fields}
    return {"metadata": {"name": "guard"}, "webhooks": [webhook]}


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "guard"}, "spec": spec}


def uses(found: dict[str, Any], kind: str = WEBHOOKS) -> AdmissionUses:
    return admission_uses(kind, found, definition(), "v1")


@pytest.mark.parametrize(
    "rules",
    [
        [rule("v1")],
        [rule("v1", apiGroups=["*"])],
        [rule("v1", resources=["*"])],
        [rule("v1", resources=["*/*"])],
        [rule("v1", resources=["widgets/status"])],
        [rule("v1", resources=["widgets/*"]), rule("v2")],
        [rule("v1", operations=["CREATE", "UPDATE"]), rule("v2", operations=["CREATE"])],
        # Versions that the CRD does not have keep nothing.
        [rule("v1", "v9")],
        # Nor does a rule for other objects.
        [rule("v1"), rule("v2", resourceNames=["one"])],
        [rule("v1"), rule("v2", scope="Cluster")],
        [rule("v1"), rule("v2", resources=["gadgets"])],
    ],
)
def test_rules_that_end_with_the_version_hold_its_removal(rules: list[dict[str, Any]]) -> None:
    (held,) = uses(webhooks(*rules)).holds
    assert (held.step, held.reason, held.name) == ("Removed", "AdmissionWebhook", "guard")
    assert "ValidatingWebhookConfiguration guard matches widgets only by v1 (webhook guard.ex" in held.message


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [rule("*")],
        [rule("v1", "v2")],
        [rule("v1"), rule("v2")],
        [rule("v1", resourceNames=["one"]), rule("v2")],
        [rule("v2")],
        [rule("v1", apiGroups=["other.example.com"])],
        [rule("v1", resources=["gadgets", "gadgets/*"])],
        [rule("v1", operations=["CONNECT"])],
        [{}],
    ],
)
def test_rules_that_do_not(rules: list[dict[str, Any]]) -> None:
    assert uses(webhooks(*rules)) == AdmissionUses()


def test_an_exact_rule_is_told_and_holds_nothing() -> None:
    found = uses(webhooks(rule("v1"), matchPolicy="Exact"))
    assert found.holds == []
    (said,) = found.warnings
    assert "requests at other versions already pass it by" in said


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (POLICY, "matchConstraints.resourceRules"),
        (POLICY, "matchConstraints.excludeResourceRules"),
        (BINDING, "matchResources.resourceRules"),
    ],
)
def test_policies_and_their_bindings_have_rules_too(kind: str, where: str) -> None:
    match, _, rules = where.partition(".")
    (held,) = uses(policy(**{match: {rules: [rule("v1")]}}), kind).holds
    assert (held.step, held.reason) == ("Removed", "AdmissionPolicy")
    assert f"{kind} guard matches widgets only by v1 (spec.{where})" in held.message
    exact = uses(policy(**{match: {rules: [rule("v1")], "matchPolicy": "Exact"}}), kind)
    assert (exact.holds, len(exact.warnings)) == ([], 1)


def test_a_policy_that_has_its_parameters_at_the_version_is_held_while_it_is_served() -> None:
    ours = {"apiVersion": "example.com/v1", "kind": "Widget"}
    (held,) = uses(policy(paramKind=ours), POLICY).holds
    assert (held.step, held.reason) == ("NotServed", "AdmissionPolicy")
    assert "Name another version there" in held.message
    for other in ({**ours, "apiVersion": "example.com/v2"}, {**ours, "kind": "Gadget"}, None):
        assert uses(policy(paramKind=other), POLICY) == AdmissionUses()


def test_thousands_of_them_are_bounded() -> None:
    found = AdmissionUses()
    for _ in range(60):
        found.add(uses(webhooks(rule("v1"))))
        found.add(uses(webhooks(rule("v1"), matchPolicy="Exact")))
    assert (len(found.holds), len(found.warnings)) == (50, 50)
    large = webhooks(*[rule("v1", *(f"v{each}" for each in range(10, 60)))] * 2000)
    large["metadata"]["name"] = "x" * 5000
    (held,) = uses(large).holds
    assert len(held.message.encode()) <= 1024
