"""What makes a ValidatingAdmissionPolicy another one than that which this release ships."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import yaml

from crdkeeper.core.policy.admissionpolicy import SHIPPED, changed_fields
from tests.cluster.harness.installation import MANIFESTS

Json = dict[str, Any]
DEFAULTS: Json = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
"""What the API server adds to matchConstraints; and to each rule, the scope."""


def stored() -> Json:
    """A copy, as an API server returns it."""
    return deepcopy(dict(SHIPPED))


def test_it_is_that_of_the_manifests() -> None:
    documents = yaml.safe_load_all((MANIFESTS / "operator/protection.yaml").read_text(encoding="utf-8"))
    spec = next(documents)["spec"]
    spec["matchConstraints"] |= DEFAULTS
    for each in spec["matchConstraints"]["resourceRules"]:
        each["scope"] = "*"
    assert spec == SHIPPED
    assert changed_fields(spec) == []


def set_rule(spec: Json, **changes: Any) -> None:
    spec["matchConstraints"]["resourceRules"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda spec: set_rule(spec, operations=["UPDATE"]), "matchConstraints"),
        (lambda spec: set_rule(spec, resourceNames=["a.example.com"]), "matchConstraints"),
        (lambda spec: set_rule(spec, scope="Namespaced"), "matchConstraints"),
        (
            lambda spec: spec["matchConstraints"].update(objectSelector={"matchLabels": {"a": "b"}}),
            "matchConstraints",
        ),
        (
            lambda spec: spec["matchConstraints"].update(excludeResourceRules=[{"resources": ["*"]}]),
            "matchConstraints",
        ),
        (
            lambda spec: spec["matchConditions"].append({"name": "never", "expression": "false"}),
            "matchConditions",
        ),
        (lambda spec: spec["variables"][2].update(expression="false"), "variables"),
        (lambda spec: spec["validations"][0].update(expression="true"), "validations"),
        (lambda spec: spec["validations"][0].update(messageExpression="'no'"), "validations"),
        (lambda spec: spec["validations"].clear(), "validations"),
        (lambda spec: spec.update(failurePolicy="Fail"), "failurePolicy"),
        (lambda spec: spec["paramKind"].update(kind="BuiltinPolicy"), "paramKind"),
        (lambda spec: spec.pop("paramKind"), "paramKind"),
        (
            lambda spec: spec.update(auditAnnotations=[{"key": "a", "valueExpression": "'a'"}]),
            "auditAnnotations",
        ),
    ],
)
def test_each_change_is_named(change: Callable[[Json], Any], changed: str) -> None:
    spec = stored()
    change(spec)
    assert changed_fields(spec) == [f"spec.{changed}"]


def test_of_nothing_all_is_missing() -> None:
    assert changed_fields({}) == [f"spec.{each}" for each in sorted(SHIPPED)]
