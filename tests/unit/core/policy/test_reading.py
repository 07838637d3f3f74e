"""Policies that this release cannot read: which CRDs they hold, and what is said about them."""

from typing import Any

import pytest

from crdkeeper.core.policy.migrations import standing
from crdkeeper.core.policy.reading import UnreadablePolicy, read_policy, why_unread
from crdkeeper.core.policy.selection import governing, protected
from tests.unit.builders import definition

OTHERS = definition()


def found(name: str = "p", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": name, "uid": name, "generation": 3, "creationTimestamp": created},
        "spec": spec,
        "status": {},
    }


RULE = {"name": "example.com/x", "releaseAfter": "1h"}
LATER = {**RULE, "mode": "Later"}


def test_one_that_can_be_read() -> None:
    policy = read_policy(found(finalizers=[RULE]))
    assert not isinstance(policy, UnreadablePolicy)
    assert (why_unread(policy), policy.spec.finalizers[0].name) == ("", "example.com/x")


def test_a_status_of_another_release_does_not_matter() -> None:
    policy = read_policy(found(finalizers=[RULE]) | {"status": {"selected": "many"}})
    assert (why_unread(policy), policy.status.selected) == ("", 0)


def test_a_status_that_can_be_read_is_kept() -> None:
    """Or each round writes it with another time, and is woken by that."""
    held = {"type": "Ready", "status": "False", "reason": "Unreadable", "message": "m"}
    condition = {**held, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3}
    policy = read_policy(found(finalizers=[LATER]) | {"status": {"conditions": [condition], "selected": 2}})
    assert why_unread(policy)
    assert policy.status.selected == 2
    assert policy.to_object()["status"]["conditions"] == [condition]


def test_it_does_nothing_for_the_crds_that_it_selects() -> None:
    protection = {"deletion": "Deny"}
    policy = read_policy(
        found(groups=[OTHERS.group], changes="Deny", protection=protection, finalizers=[RULE, LATER])
    )
    assert why_unread(policy).startswith("spec.finalizers.1.mode: ")
    assert (policy.spec.storage_migration.mode, policy.spec.changes) == ("Disabled", "Allow")
    assert policy.spec.finalizers == []
    assert policy.spec.groups == [OTHERS.group]
    # The API server does this by itself.
    assert protected(policy, [OTHERS]) == [OTHERS.name]


@pytest.mark.parametrize(
    ("spec", "held"),
    [
        ({"groups": ["elsewhere.example.org"], "finalizers": [LATER]}, False),
        ({"selector": {"matchLabels": {"team": "none"}}, "finalizers": [LATER]}, False),
        ({"groups": ["*"], "finalizers": [LATER]}, True),
        # It may select any CRD.
        ({"groups": {"later": True}}, True),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Later"}]}}, True),
        ({"selector": {"later": 1}, "groups": ["elsewhere.example.org"], "changes": "Later"}, False),
    ],
)
def test_only_crds_that_it_may_govern_are_held(spec: dict[str, Any], held: bool) -> None:
    unreadable = read_policy(found("old", **spec))
    other = read_policy(found("young", "2026-02-01T00:00:00Z", finalizers=[RULE]))
    assert why_unread(unreadable)
    assert governing([other, unreadable], OTHERS) is (unreadable if held else other)
    older = read_policy(found("older", "2025-01-01T00:00:00Z"))
    assert governing([other, unreadable, older], OTHERS) is older


def test_keys_are_visible() -> None:
    policy = read_policy(found(selector={"matchLabels": {"\x1b[2J": 1}}))
    assert why_unread(policy).startswith(r"spec.selector.matchLabels.\x1b[2J: ")


def test_only_of_objects_it_is_said_that_other_policies_do_nothing_either() -> None:
    """The webhook judges changes by those that it can read."""
    told = standing(read_policy(found(changes="Later")), [OTHERS], lambda _: ())
    assert (told.ready, told.reason) == ("False", "Unreadable")
    assert told.message.endswith(
        "Until that is corrected, no objects of 1 CRD are migrated and no finalizers released, by other "
        "policies neither. Changes are judged by other policies only."
    )


def test_no_value_is_shown() -> None:
    policy = read_policy(found(changes="\x1b[2Jsecret" * 1000))
    assert "secret" not in why_unread(policy)
