"""allOf, anyOf, oneOf and not, with the errors of their branches that kube-openapi chooses to show.

If no branch of anyOf or oneOf matches, the errors of the branch that got furthest are shown: the one with the
most validators passed. So each branch can be `measured`: its findings, and that number.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from crdkeeper.apiserver.objects.effort import spend_on_branches
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.schema.finding import INVALID, NO_FINDINGS, FieldError, FieldErrors, Naming

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


def _best(results: list[Measured]) -> Measured:
    best = results[0]
    for each in results[1:]:
        if each[1] > best[1]:
            best = each
    return best


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
        results = []
        for each in self._branches:
            result = each.measured(value)
            if not result[0]:
                return result
            results.append(result)
        findings, count = _best(results)
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
        results = [each.measured(value) for each in self._branches]
        fitting = [each for each in results if not each[0]]
        if len(fitting) == 1:
            return fitting[0]
        words = " must validate one and only one schema (oneOf). "
        if fitting:
            return (_said(f"{words}Found {len(fitting)} valid alternatives"),), 0
        findings, count = _best(results)
        return (_said(f"{words}Found none valid"), *findings), count


class AllOf:
    """Every branch matches."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches

    def check(self, value: Any) -> FieldErrors:
        spend_on_branches(len(self._branches))
        return self._joined([each.check(value) for each in self._branches])

    def measured(self, value: Any) -> Measured:
        spend_on_branches(len(self._branches))
        results = [each.measured(value) for each in self._branches]
        return self._joined([each for each, _ in results]), sum(count for _, count in results)

    def _joined(self, results: list[FieldErrors]) -> FieldErrors:
        bad = [each for each in results if each]
        if not bad:
            return NO_FINDINGS
        none = ". None validated" if len(bad) == len(results) else ""
        said = _said(f" must validate all the schemas (allOf){none}")
        return (*(finding for each in bad for finding in each), said)


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
