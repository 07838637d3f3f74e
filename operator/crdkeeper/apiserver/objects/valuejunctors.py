"""allOf, anyOf, oneOf and not, with the errors of their branches that kube-openapi chooses to show.

If no branch of anyOf or oneOf matches, the errors of the branch that got furthest are shown: the one with the
most validators passed. So each branch can be `measured`: its findings, and that number.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from crdkeeper.apiserver.objects.effort import spend_on_branches
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    MOST_FINDINGS,
    NO_FINDINGS,
    FieldError,
    FieldErrors,
    Naming,
)

Measured = tuple[FieldErrors, int]
"""The findings of a value, and how many validators it passed (MatchCount)."""


class Branch(Protocol):
    """A schema inside a junctor."""

    def check(self, value: Any) -> FieldErrors:
        """What is wrong with a value."""

    def measured(self, value: Any) -> Measured:
        """The findings, and how far the value got."""


class Junctor(Protocol):
    """One of the keywords, with its branches."""

    def check(self, value: Any) -> FieldErrors:
        """What is wrong with a value."""

    def measured(self, value: Any) -> Measured:
        """The findings, and the number of validators that count."""


def _said(detail: str) -> FieldError:
    return FieldError(SCHEMA, INVALID, "", detail, Naming.QUOTED, nowhere=True)


_WORST: Final[Measured] = (NO_FINDINGS, -1)


def _better(one: Measured, other: Measured) -> Measured:
    """The one that got further; if both got as far, the first. So of a huge value few errors are kept."""
    return other if other[1] > one[1] else one


class AnyOf:
    """anyOf: at least one branch must match."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches

    def check(self, value: Any) -> FieldErrors:
        spend_on_branches(len(self._branches))
        for each in self._branches:
            if not each.check(value):
                return NO_FINDINGS
        return self.measured(value)[0]

    def measured(self, value: Any) -> Measured:
        spend_on_branches(len(self._branches))
        best = _WORST
        for each in self._branches:
            result = each.measured(value)
            if not result[0]:
                return result
            best = _better(best, result)
        findings, count = best
        return (_said(" must validate at least one schema (anyOf)"), *findings), count


class OneOf:
    """Exactly one branch matches."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches

    def check(self, value: Any) -> FieldErrors:
        spend_on_branches(len(self._branches))
        fitting = sum(1 for each in self._branches if not each.check(value))
        return NO_FINDINGS if fitting == 1 else self.measured(value)[0]

    def measured(self, value: Any) -> Measured:
        spend_on_branches(len(self._branches))
        best = fit = _WORST
        fitting = 0
        for each in self._branches:
            result = each.measured(value)
            if result[0]:
                best = _better(best, result)
            else:
                fit = result
                fitting += 1
        if fitting == 1:
            return fit
        words = " must validate one and only one schema (oneOf). "
        if fitting:
            return (_said(f"{words}Found {fitting} valid alternatives"),), 0
        findings, count = best
        return (_said(f"{words}Found none valid"), *findings), count


class AllOf:
    """Every branch matches."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches

    def check(self, value: Any) -> FieldErrors:
        spend_on_branches(len(self._branches))
        found: list[FieldError] = []
        failed = 0
        for each in self._branches:
            said = each.check(value)
            if said:
                found += said
                failed += 1
                if len(found) >= MOST_FINDINGS:
                    break
        return self._joined(found, failed)

    def measured(self, value: Any) -> Measured:
        spend_on_branches(len(self._branches))
        found: list[FieldError] = []
        failed = passed = 0
        for each in self._branches:
            said, count = each.measured(value)
            passed += count
            if said:
                failed += 1
                if len(found) < MOST_FINDINGS:
                    found += said
        return self._joined(found, failed), passed

    def _joined(self, found: list[FieldError], failed: int) -> FieldErrors:
        if not found:
            return NO_FINDINGS
        none = ". None validated" if failed == len(self._branches) else ""
        return (*found, _said(f" must validate all the schemas (allOf){none}"))


class Not:
    """The branch does not match."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch

    def check(self, value: Any) -> FieldErrors:
        spend_on_branches(1)
        if self._branch.check(value):
            return NO_FINDINGS
        return (_said(" must not validate the schema (not)"),)

    def measured(self, value: Any) -> Measured:
        """The findings; no validator counts."""
        return self.check(value), 0
