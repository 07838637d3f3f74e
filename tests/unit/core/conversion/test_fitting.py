"""What it may cost to find out whether an object fits a schema, and which values would."""

from typing import Any

from crdkeeper.apiserver.objects.effort import StepAllowance
from crdkeeper.apiserver.schema.finding import MOST_FINDINGS
from crdkeeper.core.conversion.fitting import STEPS, Fitting
from crdkeeper.core.conversion.samplevalues import candidates

BRANCHES = 1_000


def slow() -> Fitting:
    items = {"type": "string", "anyOf": [{"type": "string", "maxLength": i} for i in range(BRANCHES)]}
    return Fitting({"type": "object", "properties": {"a": {"type": "array", "items": items}}})


def test_what_does_not_fit_is_said() -> None:
    found = slow().violations({"a": ["", "x" * BRANCHES]})
    assert found is not None
    assert {each.place for each in found if each.place} == {("a", 1)}


def test_what_takes_too_long_is_not_said() -> None:
    assert slow().violations({"a": ["x" * BRANCHES] * (STEPS // BRANCHES // 100)}) is None


def test_several_attempts_with_one_object_share_an_allowance() -> None:
    # Each attempt by itself is within the limit; a note can make eight of them, for each version.
    fitting, allowance = slow(), StepAllowance(STEPS)
    value: dict[str, Any] = {"a": ["x" * BRANCHES] * 40}
    found = [fitting.violations(value, allowance) is not None for _ in range(8)]
    assert found[0]
    assert not found[-1]
    assert fitting.violations(value) is not None


def test_the_values_of_a_long_enum_are_candidates() -> None:
    # Looking up each among all others took an hour.
    values = list(range(100_000))
    assert candidates({"type": "integer", "enum": values}) == values
    assert candidates({"type": "integer", "nullable": True, "enum": [1, None, "a"]}) == [1]


def test_candidates_end_with_what_takes_too_long() -> None:
    branches = [{"type": "integer", "minimum": 10**6}] * 10_000
    found = candidates({"type": "integer", "enum": list(range(10_000)), "anyOf": branches})
    assert found == []


def test_violations_that_are_too_many_to_be_all_known_are_not_said() -> None:
    items = {"type": "array", "items": {"type": "integer"}}
    fitting = Fitting({"type": "object", "properties": {"a": items}})
    assert fitting.violations({"a": ["x"] * 10})
    assert fitting.violations({"a": ["x"] * MOST_FINDINGS}) is None
