"""Which CRDs a policy selects, and which policy governs."""

from typing import Any

import pytest
import re2

from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.apiserver.definitions.facts import ALLOW_DELETION
from crdkeeper.core.policy import globs
from crdkeeper.core.policy.selection import governing, matches, protected, selects
from tests.unit.builders import definition, policy

LABELS = {"team": "a", "tier": "gold"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchLabels": {"team": "a", "tier": "gold"}}, True),
        ({"matchLabels": {"team": "a", "tier": "tin"}}, False),
        ({"matchLabels": {"missing": ""}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "In", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "missing", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "DoesNotExist"}]}, True),
        (
            {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            False,
        ),
    ],
)
def test_label_selectors(selector: dict[str, Any], selected: bool) -> None:
    assert matches(LabelSelector.model_validate(selector), LABELS) is selected


@pytest.mark.parametrize(
    ("groups", "selected"),
    [
        (["*"], True),
        (["example.com"], True),
        (["*.com"], True),
        (["*.example.com"], False),
        (["EXAMPLE.com"], False),
        (["other.io", "example.*"], True),
        (["e?ample.com"], True),
        (["e?mple.com"], False),
        (["[d-f]xample.com"], True),
        (["[!d-f]xample.com"], False),
        (["exampleXcom"], False),
        (["example"], False),
        (["xample.com"], False),
        (["("], False),
        (["(", "*"], True),
        (["[", "[!z-a]*", "[]"], False),
        (["[", "[!z-a]*", "*"], True),
        (["example.com|other"], False),
        (["x.com", "*.org|example.com"], False),
        ([f"{'*' * 252}x", "*?" * 126, "example.com"], True),
        (["*" * 253], True),
    ],
)
def test_group_globs(groups: list[str], selected: bool) -> None:
    assert selects(policy(groups=groups), definition()) is selected


def test_both_must_match() -> None:
    picky = policy(groups=["example.com"], selector={"matchLabels": {"team": "a"}})
    assert selects(picky, definition(labels={"team": "a"}))
    assert not selects(picky, definition())


@pytest.mark.parametrize(
    ("policies", "name"),
    [
        ([], None),
        ([policy("a", groups=["other.io"])], None),
        ([policy("a", created=5), policy("b", created=1)], "b"),
        ([policy("b", created=1), policy("a", created=1)], "a"),
        ([policy("a", created=None), policy("b", created=1)], "b"),
        ([policy("a", created=1, groups=["other.io"]), policy("b", created=2)], "b"),
    ],
    ids=["none", "none selects", "the oldest", "the first by name", "one not stored yet", "that selects"],
)
def test_who_governs(policies: list[Any], name: str | None) -> None:
    found = governing(policies, definition())
    assert (found.metadata.name if found else None) == name


def test_the_globs_of_many_policies_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each CRD is compared with each policy, one after the other."""
    compiled: list[bytes] = []
    real = re2.compile

    def counting(pattern: bytes, options: Any) -> Any:
        compiled.append(pattern)
        return real(pattern, options)

    monkeypatch.setattr(re2, "compile", counting)
    many = [policy(f"p{number}", groups=[f"*.team-{number}.example.org"]) for number in range(500)]
    for number in range(3):
        assert governing(many, definition()) is None
        # One to see that a glob can be compiled, one for the policy.
        assert len(compiled) == 1000, f"after {number + 1} CRDs"


def test_the_patterns_of_the_largest_policies_do_not_stay() -> None:
    patterns = globs._Patterns()
    for number in range(300):
        patterns.of(tuple(f"{number}-{glob:02}{'?' * 245}" for glob in range(64)))
    assert 50 < len(patterns._known) < 64
    assert patterns._characters <= globs._MOST_CHARACTERS


@pytest.mark.parametrize(
    ("deletion", "annotations", "number"),
    [
        ("Deny", {}, 1),
        ("Deny", {ALLOW_DELETION: ""}, 1),
        ("Deny", {ALLOW_DELETION: "moved"}, 0),
        ("Allow", {}, 0),
    ],
)
def test_what_is_protected(deletion: str, annotations: dict[str, str], number: int) -> None:
    found = protected(policy(protection={"deletion": deletion}), [definition(annotations=annotations)])
    assert len(found) == number
