"""Who governs each CRD after any changes: the same as if all were compared with all, with less work."""

import random
from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.policy.governance import Elsewhere, Governance, Regoverned
from crdkeeper.core.policy.selection import governing, selects
from tests.unit.builders import definition, policy

GROUPS = ("one.io", "two.io", "one.com", "x.org")
GLOBS = ("*", "*.io", "one.*", "*.com", "none.*")
NAMES = "abcdef"


def some_definition(name: str) -> DefinitionFacts:
    labels = random.choice(({}, {"team": "a"}, {"team": "b"}))
    return replace(definition(), name=name, group=random.choice(GROUPS), labels=labels)


def some_policy(name: str) -> DefinitionPolicy:
    selector: dict[str, Any] = random.choice(({}, {"selector": {"matchLabels": {"team": "a"}}}))
    created = random.choice((None, 0, 1, 2))
    return policy(name, created=created, groups=[random.choice(GLOBS)], **selector)


@pytest.mark.parametrize("seed", range(50))
def test_it_is_as_if_all_were_compared_with_all(seed: int) -> None:
    random.seed(seed)
    found = Governance()
    definitions: dict[str, DefinitionFacts] = {}
    policies: dict[str, DefinitionPolicy] = {}

    def governors() -> dict[str, DefinitionPolicy | None]:
        return {name: governing(policies.values(), each) for name, each in definitions.items()}

    for _ in range(100):
        name, gone, before = random.choice(NAMES), random.random() < 0.3, governors()
        if random.random() < 0.5:
            former = definitions.pop(name, None)
            if not gone:
                definitions[name] = some_definition(name)
            told = found.saw_definition(name, definitions.get(name))
            assert told == {
                each.metadata.name
                for each in policies.values()
                for one in (former, definitions.get(name))
                if one is not None and selects(each, one)
            }
        else:
            policies.pop(name, None)
            if not gone:
                policies[name] = some_policy(name)
            regoverned = found.saw_policy(name, policies.get(name))
            others = {each for each, of in policies.items() if elsewhere(of, definitions, governors())}
            told_of(regoverned, before, governors(), others)
        assert {each: found.of(each) for each in definitions} == governors()
        assert {each: {of.name for of in found.governed(each)} for each in NAMES} == {
            each: {of for of, by in governors().items() if by is not None and by.metadata.name == each}
            for each in NAMES
        }
        # Only now and then, as what is found is kept.
        for each, of in policies.items():
            if random.random() < 0.5:
                assert found.elsewhere(each) == elsewhere(of, definitions, governors())


def elsewhere(
    one: DefinitionPolicy,
    definitions: dict[str, DefinitionFacts],
    governors: dict[str, DefinitionPolicy | None],
) -> Elsewhere | None:
    """What others govern of what a policy selects."""
    others = sorted(
        (name, by.metadata.name)
        for name, by in governors.items()
        if by is not None and by != one and selects(one, definitions[name])
    )
    return Elsewhere(len(others), *others[0]) if others else None


def told_of(
    regoverned: Regoverned,
    before: dict[str, DefinitionPolicy | None],
    after: dict[str, DefinitionPolicy | None],
    others: set[str],
) -> None:
    """All that has changed is told; nothing of CRDs whose policy is exactly as it was.

    `others` are the policies that select what they do not govern, and so name the policies that do.
    """
    assert set(regoverned.definitions) == {name for name in after if before[name] != after[name]}
    changed = {
        each.metadata.name
        for name in after
        if _name(before[name]) != _name(after[name])
        for each in (before[name], after[name])
        if each is not None
    }
    assert set(regoverned.policies) == (changed | others if changed else changed)


def _name(found: DefinitionPolicy | None) -> str:
    return found.metadata.name if found is not None else ""
