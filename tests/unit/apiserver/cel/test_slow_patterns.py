"""Short, accepted patterns with matches that take seconds or gigabytes."""

import resource
from time import process_time

import pytest

from crdkeeper.apiserver.cel.values.values import Indeterminate
from crdkeeper.apiserver.objects.valuelimits import text_check
from crdkeeper.apiserver.schema.finding import UndecidedValue
from tests.unit.apiserver.cel.running import outcome, value

TEXTS = {"type": "object", "properties": {"text": {"type": "string"}, "pattern": {"type": "string"}}}
SLOW = {
    "(a?){1000}b": 20_000,
    "(a?){1000}" * 10 + "b": 100_000,
    "(a?){1000}" * 50 + "b": 20,
    "(a?){1000}" * 200 + "b": 20,
    r"\pL{1000}b": 200,
}
HARMLESS = {
    "^.{1,1000}$": 1000,
    r"^[\pL\pN]+$": 4096,
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$": 63,
    "(a?){1000}b": 1000,
}


def used() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("pattern", SLOW, ids=lambda each: f"{len(each)} characters")
@pytest.mark.parametrize(
    "call", ["matches(self.pattern)", "find(self.pattern) == ''", "findAll(self.pattern) == []"]
)
def test_a_slow_match_is_not_tried(pattern: str, call: str) -> None:
    data = {"text": "a" * SLOW[pattern], "pattern": pattern}
    seconds, kilobytes = process_time(), used()
    with pytest.raises(Indeterminate):
        value(f"self.text.{call}", data, TEXTS)
    assert process_time() - seconds < 5, "it took 446 s for the second pattern"
    assert used() - kilobytes < 500_000, "it took 2 GB for the fourth"


def test_many_matches_together_are_bounded() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    with pytest.raises(Indeterminate):
        value("self.all(each, !each.matches('(a?){1000}b'))", ["a" * 1000] * 100, schema)


def test_many_patterns_together_are_bounded() -> None:
    patterns = [f"x{i}.{{1,999}}" for i in range(1_000)]
    with pytest.raises(Indeterminate):
        value("self.all(each, !''.matches(each))", patterns, {"type": "array", "items": {"type": "string"}})


def test_a_constant_pattern_is_compiled_once() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert value("self.all(each, !each.matches('x.{1,999}'))", [""] * 1_000, schema) is True


def test_matches_that_each_read_the_rest_of_the_text_are_bounded() -> None:
    with pytest.raises(Indeterminate, match="may take too long together"):
        value("self.text.findAll('a(?:.*b)?').size() > 0", {"text": "a" * 20_000}, TEXTS)


@pytest.mark.parametrize("pattern", HARMLESS)
def test_what_people_write_is_decided(pattern: str) -> None:
    data = {"text": "a" * HARMLESS[pattern], "pattern": pattern}
    assert value("self.text.matches(self.pattern)", data, TEXTS) is not pattern.endswith("b")


def test_a_bad_pattern_is_still_an_error() -> None:
    assert str(outcome("self.text.matches('(')", {"text": "a"}, TEXTS)).startswith("!error parsing regexp")


@pytest.mark.parametrize("pattern", SLOW, ids=lambda each: f"{len(each)} characters")
def test_a_slow_pattern_of_a_schema_is_not_tried(pattern: str) -> None:
    check = text_check({"type": "string", "pattern": pattern})
    assert check is not None
    for _ in range(2):
        with pytest.raises(UndecidedValue):
            check("a" * SLOW[pattern])


@pytest.mark.parametrize("pattern", HARMLESS)
def test_what_people_write_in_schemas_is_decided(pattern: str) -> None:
    check = text_check({"type": "string", "pattern": pattern})
    assert check is not None
    assert bool(check("a" * HARMLESS[pattern])) is pattern.endswith("b")
