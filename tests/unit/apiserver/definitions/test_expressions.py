"""Expressions of x-kubernetes-validations in a CRD: compilation, costs, evaluation on defaults (1.37)."""

from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from tests.unit.apiserver.definitions.cases import A, a, definition, schema, version

RULES = "x-kubernetes-validations"
TEXTS = {"type": "array", "items": {"type": "string"}}
PAIRS = "self.all(x, self.all(y, x != y))"
LIMIT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
    "strings are declared)"
)


def said(value: Any, *more: Any) -> list[str]:
    crd = definition(*more)
    a(value)(crd)
    report = check_creation(crd)
    assert report.unchecked == []
    return [f"{each.path}: {each.message}" for each in report.violations]


def rule(text: str, **more: Any) -> Any:
    return {RULES: [{"rule": text, "message": "m", **more}]}


def test_good() -> None:
    assert said({"type": "string", **rule("self != oldSelf", messageExpression="'not ' + self")}) == []


@pytest.mark.parametrize(
    ("more", "messages"),
    [
        (
            rule("self > 1"),
            [
                f"{A}.{RULES}[0].rule: Invalid value: compilation failed: ERROR: <input>:1:6: found no "
                "matching overload for '_>_' applied to '(string, int)'\n | self > 1\n | .....^"
            ],
        ),
        (rule("self"), [f"{A}.{RULES}[0].rule: Invalid value: cel expression must evaluate to a bool"]),
        (
            rule("true", messageExpression="1"),
            [f"{A}.{RULES}[0].messageExpression: Invalid value: messageExpression must evaluate to a string"],
        ),
        (
            rule("true", optionalOldSelf=True),
            [
                f"{A}.{RULES}[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used "
                "in rule"
            ],
        ),
    ],
)
def test_refused(more: Any, messages: list[str]) -> None:
    assert said({"type": "string", **more}) == messages


def test_old_self_in_lists() -> None:
    items = {
        "type": "object",
        "properties": {"k": {"type": "string", "maxLength": 9, **rule("self == oldSelf")}},
    }
    (message,) = said({"type": "array", "maxItems": 9, "items": items})
    assert message == (
        f'{A}.items.properties[k].{RULES}[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be '
        f"used on the uncorrelatable portion of the schema within {A}"
    )
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    assert said({"type": "array", "maxItems": 9, "items": {**items, "required": ["k"]}, **keyed}) == []


def test_costs() -> None:
    path = f"{A}.{RULES}[0].rule"
    dear, part, total = said({**TEXTS, **rule(PAIRS)})
    assert (
        dear == f"{path}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {LIMIT}"
    )
    assert part == (
        f"{path}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire "
        "OpenAPIv3 schema"
    )
    assert total.startswith(
        "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for "
        "entire OpenAPIv3 schema exceeds budget by factor of more than 100x"
    )
    bounded = {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}}
    assert said({**bounded, **rule(PAIRS)}) == []


def test_of_many_that_cost_the_same_the_server_names_any() -> None:
    crd = definition()
    schema(properties={f"f{i}": {**TEXTS, **rule(PAIRS)} for i in range(5)})(crd)
    report = check_creation(crd)
    assert len({str(each.path) for each in report.unchecked}) == 5
    assert not any(each.detail.startswith("contributed") for each in report.violations)


def test_versions_have_budgets_of_their_own() -> None:
    other = version("v2")
    other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"] = {
        "type": "string",
        **rule("self > 1"),
    }
    (message,) = said({"type": "string"}, other)
    assert message.startswith("spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[a]")


def test_expressions_wait_for_the_rest_of_the_schema() -> None:
    (message,) = said({"type": "string", "default": 1, **rule("self > 1")})
    assert message.startswith(f"{A}.default: ")


def test_defaults_must_satisfy_the_rules() -> None:
    assert said({"type": "integer", "default": 3, **rule("self > 1")}) == []
    assert said({"type": "integer", "default": 1, **rule("self > 1")}) == [
        f"{A}.default: Invalid value: 1: m"
    ]
    # A default can exist already, or be new.
    transition = {"type": "integer", "default": 1, **rule("self > oldSelf")}
    assert said(transition) == [f"{A}.default: Invalid value: 1: m"]
    first = {"rule": "oldSelf.hasValue()", "optionalOldSelf": True, "message": "m"}
    assert said({"type": "integer", "default": 1, RULES: [first]}) == [f"{A}.default: Invalid value: 1: m"]
    # Below the default, too.
    inner = {"type": "object", "properties": {"n": {"type": "integer", **rule("self > 1")}}}
    assert said({**inner, "default": {"n": 1}}) == [f"{A}.default.n: Invalid value: 1: m"]


def test_a_rule_below_items_of_what_is_no_list() -> None:
    text = {"type": "string", **rule("self == 'x'")}
    assert said({"type": "string", "items": text}) == []
    assert said({"type": "string", "items": text, **rule("true")}) == [
        f"{A}.items.{RULES}: Internal error: failed to convert to declType for CEL validation rules"
    ]
    crd = definition()
    a({"type": "string", "items": {"type": "object", "properties": {"x": text}}, **rule("true")})(crd)
    report = check_creation(crd)
    assert [each.reason for each in report.unchecked] == ["the API server panics over the schema above"]
