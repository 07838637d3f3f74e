"""Which policy judges a change."""

import pytest

from crdkeeper.core.changes.guarding import ALLOW_CHANGE, GuardingPolicy, guard_of
from crdkeeper.core.policy.selection import guarding_digest
from tests.unit.core.changes.builders import change, definition, policy

CHANGE = change(definition(), definition())


def test_nobody_judges_without_a_policy() -> None:
    assert guard_of([], CHANGE) is None
    assert guard_of([policy("Allow")], CHANGE) is None
    assert guard_of([policy("Deny", groups=["*.example.com"])], CHANGE) is None


def test_the_strictest_counts() -> None:
    policies = [policy("Warn", "a"), policy("Deny", "c"), policy("Deny", "b"), policy("Allow", "d")]
    assert guard_of(policies, CHANGE) == GuardingPolicy("b", denies=True, allowed="")
    assert guard_of(policies[:1], CHANGE) == GuardingPolicy("a", denies=False, allowed="")


@pytest.mark.parametrize(("labels", "judged"), [({"team": "a"}, True), ({"team": "b"}, False), ({}, False)])
def test_the_labels_before_the_change_count(labels: dict[str, str], judged: bool) -> None:
    chosen = policy(selector={"matchLabels": {"team": "a"}})
    assert (guard_of([chosen], change(definition(labels=labels), definition())) is not None) is judged


def test_a_reason_allows_a_change() -> None:
    allowed = change(definition(), definition(annotations={ALLOW_CHANGE: "moved"}))
    assert guard_of([policy("Deny")], allowed) == GuardingPolicy("p", denies=False, allowed="moved")
    # A reason of before, which the change removes, does not count, nor does an empty one.
    for annotations in ({}, {ALLOW_CHANGE: ""}):
        removed = change(definition(annotations={ALLOW_CHANGE: "moved"}), definition(annotations=annotations))
        assert guard_of([policy("Deny")], removed) == GuardingPolicy("p", denies=True, allowed="")


def test_crdkeeper_can_always_be_upgraded() -> None:
    own = definition()
    own["spec"]["group"] = "crdkeeper.dev"
    assert guard_of([policy("Deny")], change(own, own)) is None


def test_the_digest_is_of_what_judges() -> None:
    assert guarding_digest([policy("Allow")]) == guarding_digest([])
    assert guarding_digest([policy("Warn", "a"), policy("Deny", "b")]) == guarding_digest(
        [policy("Deny", "b"), policy("Warn", "a")]
    )
    assert guarding_digest([policy("Warn", "a")]) != guarding_digest([policy("Warn", "b")])
