"""What the label of a CRD asks for, and when it counts."""

import pytest

from crdkeeper.core.policy.labels import (
    MIGRATION_LABEL,
    MODES,
    migration_rules,
    overruled_label,
    unknown_label,
)
from crdkeeper.core.policy.migrations import wanted_migration
from tests.unit.builders import definition, policy


@pytest.mark.parametrize(("label", "mode"), MODES.items())
def test_a_label_asks_for_a_mode_with_the_defaults_of_a_migration(label: str, mode: str) -> None:
    labelled = definition(labels={MIGRATION_LABEL: label})
    rules = migration_rules([], labelled, watch_labels=True)
    assert rules is not None
    assert (rules.migration.mode, rules.policy) == (mode, None)
    wanted = wanted_migration(rules, labelled, [])
    assert (wanted is None) == (mode == "Disabled")
    if wanted is not None:
        assert wanted["metadata"]["labels"] == {MIGRATION_LABEL: label}
        assert wanted["spec"]["mode"] == ("Plan" if label == "plan" else "Execute")
    assert migration_rules([], labelled, watch_labels=False) is None
    assert unknown_label(labelled) == ""


@pytest.mark.parametrize("label", ["", "Automatic", "true", "automatic.", "x" * 63])
def test_what_is_not_known_means_nothing(label: str) -> None:
    labelled = definition(labels={MIGRATION_LABEL: label})
    assert migration_rules([], labelled, watch_labels=True) is None
    assert f'the value "{label}", which is none of automatic, plan, disabled.' in unknown_label(labelled)


def test_without_the_label_there_is_nothing() -> None:
    assert migration_rules([], definition(labels={"team": "a"}), watch_labels=True) is None
    assert unknown_label(definition()) == ""
    assert overruled_label([policy()], definition()) == ""


@pytest.mark.parametrize("mode", ["Automatic", "Plan", "Disabled"])
def test_a_policy_that_selects_the_crd_wins(mode: str) -> None:
    labelled = definition(labels={MIGRATION_LABEL: "automatic"})
    gold = policy("gold", mode=mode)
    rules = migration_rules([gold], labelled, watch_labels=True)
    assert rules is not None
    assert rules.policy is gold
    said = overruled_label([gold], labelled)
    assert said == (
        ""
        if mode == "Automatic"
        else f"The label {MIGRATION_LABEL} does not count, because DefinitionPolicy gold selects the CRD, "
        f"with the mode {mode}."
    )


def test_a_policy_that_does_not_select_it_leaves_the_label_alone() -> None:
    labelled = definition(labels={MIGRATION_LABEL: "automatic"})
    other = policy("other", mode="Disabled", groups=["other.example.com"])
    rules = migration_rules([other], labelled, watch_labels=True)
    assert rules is not None
    assert rules.policy is None
    assert overruled_label([other], labelled) == ""
