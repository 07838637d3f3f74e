"""What the author of a field says about its values, and what an anchored pattern would refuse of that."""

from typing import Any

import pytest

from crdkeeper.core.lint.conventions.values import PATTERN_ALTERNATION, PATTERN_ANCHORS
from crdkeeper.core.lint.namedvalues import MOST, named_values
from tests.unit.core.lint.definitions import TEXT, check, definition, schema, version

Json = dict[str, Any]
NAME = "[a-z]+[a-z-]*[a-z]"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({}, []),
        ({"default": "a.b"}, ["the default 'a.b'"]),
        ({"default": "a" * 101}, []),
        ({"default": 1, "example": None}, []),
        ({"default": "a.b", "example": "a_b"}, ["the default 'a.b'", "the example 'a_b'"]),
        ({"description": 'Ends in ".zone".'}, ["'.zone' in the description"]),
        (
            {"description": "Such as `a.b`, 'c.d' or \"e.f\"."},
            [f"{each!r} in the description" for each in ("a.b", "c.d", "e.f")],
        ),
        ({"description": "It's the user's name, or a 'long name'."}, []),
        ({"description": f"One of {'`a.b` ' * 100}"}, ["'a.b' in the description"] * MOST),
    ],
)
def test_values_that_are_named(field: Json, expected: list[str]) -> None:
    assert [str(each) for each in named_values(field)] == expected


@pytest.mark.parametrize(
    ("pattern", "field", "message"),
    [
        (NAME, {"description": "Its name."}, "matches anywhere"),
        (NAME, {"default": "a-b"}, "matches anywhere"),
        (NAME, {"description": 'Such as "a-b".'}, "matches anywhere"),
        (NAME, {"description": 'Not "AA".'}, "matches anywhere"),
        (NAME, {"default": "aa.bb"}, "matches anywhere; ^(…)$ would refuse the default 'aa.bb'"),
        (NAME, {"default": "aa\ud800"}, "matches anywhere"),
        (NAME, {"example": "aa.bb"}, "matches anywhere; ^(…)$ would refuse the example 'aa.bb'"),
        (
            NAME,
            {"description": 'Some end in ".zone".'},
            "matches anywhere; ^(…)$ would refuse '.zone' in the description",
        ),
        ("^a|b$", {"default": "b"}, "accepts 'a!'"),
        ("^a|b$", {"default": "a-z"}, "accepts 'a!'; ^(…)$ would refuse the default 'a-z'"),
    ],
)
def test_the_message_says_what_the_hint_would_refuse(pattern: str, field: Json, message: str) -> None:
    crd = definition(version(schema({"name": {**TEXT, "pattern": pattern, **field}})))
    ids = (PATTERN_ANCHORS.id, PATTERN_ALTERNATION.id)
    (found,) = [each for each in check(crd) if each.rule.id in ids]
    assert found.message == f"{pattern} {message}"
    assert "If that would refuse" in found.rule.remedy
