"""Which fields the admission policies of rules check. Tests on the API server show what they admit."""

from typing import Any

import pytest

from crdkeeper.core.conversion.admission import Policies, admission
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from tests.unit.core.conversion.admissionrules import KINDS, schema_of, spec_of


def policies(rule: Any, hub: dict[str, Any], spoke: dict[str, Any]) -> Policies:
    schemas = {"v1": schema_of(hub), "v1beta1": schema_of(spoke)}
    spec = spec_of(rule)
    assert isinstance(compile_conversion(spec, schemas), Conversion)
    return admission(spec, schemas)


@pytest.mark.parametrize(("rule", "hub", "spoke", "checked"), KINDS)
def test_the_version_whose_values_may_fail_is_checked(
    rule: Any, hub: dict[str, Any], spoke: dict[str, Any], checked: dict[str, str]
) -> None:
    made = policies(rule, hub, spoke)
    found = {
        each["spec"]["matchConstraints"]["resourceRules"][0]["apiVersions"][0]: each["spec"]["validations"]
        for each in made.documents
        if each["kind"] == "ValidatingAdmissionPolicy"
    }
    fields = {version: each[0]["message"].partition(":")[0] for version, each in found.items()}
    assert fields == checked
    bound = {each["spec"]["policyName"] for each in made.documents if "policyName" in each["spec"]}
    assert len(bound) == len(found)


def test_expressions_are_named_and_not_covered() -> None:
    rule = {"hub": "spec.a", "spoke": "spec.a", "cel": {"toHub": "self", "toSpoke": "self"}}
    made = policies(rule, {"a": {"type": "string"}}, {"a": {"type": "string"}})
    assert made.documents == []
    assert "spec.spokes[0].rules[0]: spec.a: an expression" in made.uncovered
