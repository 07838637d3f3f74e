"""The patterns of an EncryptionConfiguration, and which policy governs a resource."""

import pytest

from crdkeeper.core.builtins.selection import concerns_group, governing, names, naming_nothing
from tests.unit.builders import later
from tests.unit.core.builtins.builders import builtin_policy


@pytest.mark.parametrize(
    ("pattern", "group", "resource", "named"),
    [
        ("secrets", "", "secrets", True),
        ("secrets", "apps", "secrets", False),
        ("deployments.apps", "apps", "deployments", True),
        ("deployments.apps", "", "deployments", False),
        ("leases.coordination.k8s.io", "coordination.k8s.io", "leases", True),
        ("*.apps", "apps", "deployments", True),
        ("*.apps", "", "secrets", False),
        ("*.", "", "secrets", True),
        ("*.", "apps", "deployments", False),
        ("*.*", "", "secrets", True),
        ("*.*", "apps", "deployments", True),
        ("*.*", "", "events", False),
        ("*.", "", "events", False),
        ("events", "", "events", True),
    ],
)
def test_patterns(pattern: str, group: str, resource: str, named: bool) -> None:
    assert names(pattern, group, resource) is named
    assert concerns_group([pattern], group) or not named


def test_a_group_that_no_pattern_concerns_is_not_asked_for() -> None:
    assert not concerns_group(["secrets", "*.apps"], "batch")


def test_the_oldest_governs() -> None:
    old, new = builtin_policy("z"), builtin_policy("a")
    old.metadata.creation_timestamp, new.metadata.creation_timestamp = later(0), later(1)
    assert governing([new, old], "", "secrets") is old
    assert governing([new, old], "apps", "deployments") is None


def test_patterns_that_name_nothing_are_told() -> None:
    policy = builtin_policy("p", resources=["secrets", "secret", "*.nothing"])
    assert naming_nothing(policy, {("", "secrets")}) == ["secret", "*.nothing"]
