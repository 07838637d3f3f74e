"""What is found in thousands of values is worked out for as many as anybody reads, and in little memory."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.effort import StepAllowance, limited, spend_on_match
from crdkeeper.apiserver.objects.listtypes import check_list_types
from crdkeeper.apiserver.objects.objectmetarules import check_embedded
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    MOST_FINDINGS,
    FieldError,
    Step,
    below,
    dotted,
    structural_path,
)
from crdkeeper.apiserver.schema.rules import Rule
from tests.unit.apiserver.objects.samples import EMBEDDED, INTEGER, TEXT, admitted, decoded

RULE = Rule("some-rule", "why", "how")


def array(items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **fields}


@pytest.mark.parametrize("checked", ["check", "measured"])
def test_no_more_errors_of_a_schema_are_collected_than_are_shown(checked: str) -> None:
    validator = Validator(decoded(array(INTEGER)))
    value = ["x"] * (MOST_FINDINGS + 100)
    found = validator.check(value) if checked == "check" else validator.measured(value)[0]
    assert len(found) == MOST_FINDINGS


def test_no_more_duplicates_are_collected_than_are_shown() -> None:
    node = ObjectNode(decoded(array(INTEGER, **{"x-kubernetes-list-type": "set"})))
    assert len(check_list_types([*range(MOST_FINDINGS + 100)] * 2, node)) == MOST_FINDINGS


def test_no_more_errors_of_embedded_resources_are_collected_than_are_shown() -> None:
    found = check_embedded([{}] * MOST_FINDINGS, ObjectNode(decoded(array(EMBEDDED))))
    assert len(found) == MOST_FINDINGS


def test_whether_rules_are_evaluated_is_left_open_if_there_may_be_more_errors() -> None:
    rule = {"rule": "self.size() > 0"}
    schema = array(INTEGER | {"maximum": 1}, **{"x-kubernetes-validations": [rule]})
    outcome = admitted(schema, [2] * MOST_FINDINGS + ["x"])
    assert outcome.accepted is False
    assert len(outcome.violations) == MOST_FINDINGS
    assert [each.reason for each in outcome.unchecked] == [
        "whether rules are evaluated depends on what else is wrong"
    ]


def test_a_pattern_is_quoted_once_for_all_values() -> None:
    one, other = Validator(decoded(array(TEXT | {"pattern": "^a"}))).check(["b", "c"])
    assert one.detail is other.detail


def test_a_match_with_an_empty_text_takes_work_too() -> None:
    allowance = StepAllowance(100)
    with limited(allowance):
        spend_on_match(60, "")
    assert allowance.left == 40


def test_a_long_rule_is_quoted_in_full_for_the_first_values_only() -> None:
    long = f"1 / self > 0 // {'x' * 20_000}"
    schema = array(INTEGER | {"x-kubernetes-validations": [{"rule": long}]})
    details = [each.detail for each in admitted(schema, [0] * 500).violations]
    assert len(details) == 500
    assert details[0] == f"division by zero evaluating rule: {long}"
    assert sum(map(len, details)) < 5 << 20


def test_a_long_name_is_cut_where_it_is_named() -> None:
    (finding,) = below(Step.FIELD, "n" * 100_000, [FieldError(RULE, INVALID, 1, "no")])
    assert len(dotted(finding)) < 5_000
    path = structural_path(finding, None)
    assert len(str(path)) < 5_000
    assert path.steps == ("n" * 100_000,)
