"""Policies generated for malicious rules: they have the right content, and clusters accept them."""

import json
import re
from typing import Any

import pytest
import yaml

from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.dnsnames import subdomain_errors
from crdkeeper.cli.output.printing import as_yaml
from crdkeeper.core.conversion.admission import Policies, admission
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from tests.unit.core.conversion.admissionrules import HOSTILE_NAMES, TEXT, WHOLE, schema_of, spec_of

LONGEST_EXPRESSION = 100_000
"""Code points that the API server's parser accepts."""


def policies(rules: Any, hub: dict[str, Any], spoke: dict[str, Any]) -> Policies:
    schemas = {"v1": schema_of(hub), "v1beta1": schema_of(spoke)}
    spec = spec_of(rules)
    made = compile_conversion(spec, schemas)
    assert isinstance(made, Conversion), made
    return admission(spec, schemas)


def validations(made: Policies) -> list[dict[str, Any]]:
    return [
        each
        for document in made.documents
        if document["kind"] == "ValidatingAdmissionPolicy"
        for each in document["spec"]["validations"]
    ]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_fields_of_any_name(name: str) -> None:
    rule = {"hub": f"spec[{name}]", "spoke": "spec.a", "quantity": "Mi"}
    made = policies(rule, {name: TEXT}, {"a": WHOLE})
    (found,) = validations(made)
    parse(found["expression"])
    assert found["message"].isprintable()
    assert len(found["message"]) < 600
    text = as_yaml(made.documents)
    assert list(yaml.safe_load_all(text)) == made.documents
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)


VALUES = [
    "😀",
    "\x1b[2J",
    "a\nb",
    "'",
    '"',
    "\\",
    "\u2028",
    "{{",
    "${x}",
    "*anchor",
    "!!python/object",
    "--- #",
    "",
]


def test_values_of_any_kind() -> None:
    pairs = [{"hub": value, "spoke": number} for number, value in enumerate(VALUES)]
    made = policies({"hub": "spec.a", "spoke": "spec.a", "values": pairs}, {"a": TEXT}, {"a": WHOLE})
    for each in validations(made):
        parse(each["expression"])
    # CEL knows no halves of characters.
    assert "\\ud83d" not in json.dumps(made.documents, ensure_ascii=False)
    assert list(yaml.safe_load_all(as_yaml(made.documents))) == made.documents


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**63) - 1, 1e308, float("inf"), float("nan")])
def test_numbers_that_no_object_has_or_only_as_others(number: float) -> None:
    pairs = [{"hub": 1, "spoke": "a"}, {"hub": number, "spoke": "b"}]
    any_number = {"type": "number"}
    made = policies({"hub": "spec.a", "spoke": "spec.a", "values": pairs}, {"a": any_number}, {"a": TEXT})
    for each in validations(made):
        parse(each["expression"])
        assert not re.search(r"NaN|Infinity|[0-9]{20}", each["expression"])


def test_templates_and_separators_of_any_characters() -> None:
    for text in ("[:{}]", "^$", "\\", "😀", "\n", "'\"", "]-[", "(?i)", "\\E\\Q", "a|b"):
        between = text.replace("{}", "")
        rule = {
            "spoke": "spec.at",
            "join": {"template": f"{{h}}{between}{{p}}", "parts": {"h": "spec.h", "p": "spec.p"}},
        }
        for each in validations(policies(rule, {"h": TEXT, "p": WHOLE}, {"at": TEXT})):
            parse(each["expression"])
        rule = {"hub": "spec.a", "spoke": "spec.a", "separator": between}
        numbers = {"type": "array", "items": WHOLE}
        for each in validations(policies(rule, {"a": TEXT}, {"a": numbers})):
            parse(each["expression"])


def test_thousands_of_rules_become_policies_that_a_cluster_takes() -> None:
    number = 512
    rules = [{"hub": f"spec.a{i}", "spoke": f"spec.a{i}", "cast": True} for i in range(number)]
    made = policies(rules, {f"a{i}": TEXT for i in range(number)}, {f"a{i}": WHOLE for i in range(number)})
    assert len(validations(made)) == number
    names = [each["metadata"]["name"] for each in made.documents if "matchConstraints" in each["spec"]]
    assert len(set(names)) == len(names) > 1
    assert {each["spec"]["policyName"] for each in made.documents if "policyName" in each["spec"]} == set(
        names
    )
    # Each policy has a budget of its own for all its expressions.
    assert all(len(each["spec"].get("validations", ())) <= 100 for each in made.documents)


def test_what_is_too_long_for_an_expression_is_named() -> None:
    pairs = [{"hub": f"{i}" + "x" * 1000, "spoke": i} for i in range(256)]
    rules = [
        {"hub": "spec.a", "spoke": "spec.a", "values": pairs},
        {"hub": "spec.b", "spoke": "spec.b", "quantity": "Mi"},
    ]
    made = policies(rules, {"a": TEXT, "b": TEXT}, {"a": WHOLE, "b": WHOLE})
    assert made.uncovered == ["spec.spokes[0].rules[0]: spec.a: too long for an expression"]
    assert all(len(each["expression"]) < LONGEST_EXPRESSION for each in validations(made))
    assert {each["message"].partition(":")[0] for each in validations(made)} == {"spec.a", "spec.b"}


def test_names_as_long_as_they_may_be() -> None:
    spec = spec_of({"hub": "spec.a", "spoke": "spec.a", "cast": True})
    group = ".".join(["g" * 60] * 3)
    resource = spec.resource.model_copy(update={"group": group, "resource": "r" * 63})
    long = spec.model_copy(update={"resource": resource})
    another = resource.model_copy(update={"group": f"{group[:-1]}s"})
    other = spec.model_copy(update={"resource": another})
    schemas = {"v1": schema_of({"a": TEXT}), "v1beta1": schema_of({"a": WHOLE})}
    names = [each["metadata"]["name"] for one in (long, other) for each in admission(one, schemas).documents]
    assert all(len(each) <= 253 and not subdomain_errors(each) for each in names)
    assert len(set(names)) == 2
