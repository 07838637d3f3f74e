"""Which policy governs each CRD, kept as policies and CRDs come, change and go.

To find it anew is to compare each CRD with each policy: with 2,000 CRDs and 500 policies, a second of CPU
time, and each write of a policy's status is an event. So a change of one policy costs a comparison with each
CRD, and one of a CRD a comparison with each policy. Only CRDs that lose their policy are compared with all.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.policy.selection import governing, precedence, selects


@dataclass(frozen=True, slots=True)
class Regoverned:
    """What follows from the change of a policy."""

    definitions: Collection[str]
    """The CRDs that another policy governs now, or the changed one."""
    policies: Collection[str]
    """The policies that govern other CRDs now, and those that select CRDs which others govern."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """CRDs that a policy selects and others govern: how many, the first by name, and its policy."""

    number: int
    example: str
    policy: str


class Governance:
    """The policies and CRDs that were seen, and who governs whom."""

    def __init__(self) -> None:
        self._policies: dict[str, DefinitionPolicy] = {}
        self._definitions: dict[str, DefinitionFacts] = {}
        self._governor: dict[str, str] = {}
        """The name of the policy by that of the CRD; without the CRDs that no policy governs."""
        self._selected: Counter[str] = Counter()
        """How many CRDs the policy of that name selects."""
        self._examples: dict[str, str] = {}
        """The first CRD by name that the policy of that name selects and another one governs."""

    def of(self, definition: str) -> DefinitionPolicy | None:
        """The policy that governs the CRD of that name."""
        name = self._governor.get(definition)
        return self._policies[name] if name is not None else None

    def governed(self, policy: str) -> list[DefinitionFacts]:
        """The CRDs that the policy of that name governs."""
        return [self._definitions[name] for name, by in self._governor.items() if by == policy]

    def elsewhere(self, policy: str) -> Elsewhere | None:
        """The CRDs that the policy of that name selects and others govern; None if there are none."""
        number = self._selected[policy] - sum(by == policy for by in self._governor.values())
        if not number:
            return None
        if policy not in self._examples:
            found = self._policies[policy]
            self._examples[policy] = next(
                name
                for name, each in sorted(self._definitions.items())
                if self._governor.get(name, policy) != policy and selects(found, each)
            )
        example = self._examples[policy]
        return Elsewhere(number, example, self._governor[example])

    def saw_policy(self, name: str, policy: DefinitionPolicy | None) -> Regoverned:
        """A policy was seen, or is gone (None). Nothing follows from a change of its status."""
        before = self._policies.pop(name, None)
        if policy is not None:
            self._policies[name] = policy
        if _identity(before) == _identity(policy):
            return Regoverned((), ())
        definitions: list[str] = []
        policies: set[str] = set()
        self._examples.pop(name, None)
        selected = 0
        for each, definition in self._definitions.items():
            former = self._governor.get(each)
            known = before if former == name else self._policies.get(former or "")
            takes = False
            if policy is not None and selects(policy, definition):
                selected += 1
                takes = not _comes_first(known, policy)
            if takes:
                after: str | None = name
            elif former == name:
                after = _name(governing(self._policies.values(), definition))
            else:
                continue
            definitions.append(each)
            if former != after:
                policies.update(filter(None, (former, after)))
                self._put(each, after)
        self._selected[name] = selected
        if policies:
            # Those that select CRDs of which the policy changed name it.
            self._examples.clear()
            governed = Counter(self._governor.values())
            policies.update(each for each in self._policies if self._selected[each] > governed[each])
        return Regoverned(definitions, policies)

    def saw_definition(self, name: str, definition: DefinitionFacts | None) -> set[str]:
        """A CRD was seen, or is gone (None). Returns the policies that select it, or did so before."""
        before = self._definitions.pop(name, None)
        now, then = self._selecting(definition), self._selecting(before)
        if definition is not None:
            self._definitions[name] = definition
        self._put(name, _name(min(now, key=precedence, default=None)))
        self._selected.update(each.metadata.name for each in now)
        self._selected.subtract(each.metadata.name for each in then)
        concerned = {each.metadata.name for each in (*now, *then)}
        for each in concerned:
            self._examples.pop(each, None)
        return concerned

    def _selecting(self, definition: DefinitionFacts | None) -> list[DefinitionPolicy]:
        if definition is None:
            return []
        return [each for each in self._policies.values() if selects(each, definition)]

    def _put(self, definition: str, policy: str | None) -> None:
        if policy is None:
            self._governor.pop(definition, None)
        else:
            self._governor[definition] = policy


def _identity(policy: DefinitionPolicy | None) -> Any:
    """What decides what a policy governs, and how."""
    return policy and (policy.metadata.uid, precedence(policy), policy.spec)


def _comes_first(one: DefinitionPolicy | None, other: DefinitionPolicy) -> bool:
    """Whether one policy governs what both select."""
    return one is not None and precedence(one) < precedence(other)


def _name(policy: DefinitionPolicy | None) -> str | None:
    return policy.metadata.name if policy is not None else None
