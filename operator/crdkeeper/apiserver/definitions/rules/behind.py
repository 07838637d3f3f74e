"""Errors of a schema that the API server reports only once the ones that it reports first are fixed.

It stops at barriers: unsupported keywords hide whether the schema is structural, that hides defaults, and
these hide expressions; an error of a node hides the rules of all nodes around it. This module continues
behind each barrier, and keeps the errors that no fix of the earlier ones can change.
"""

from collections.abc import Sequence

from crdkeeper.apiserver.definitions.rules.defaults import check_defaults
from crdkeeper.apiserver.definitions.rules.node import NodeChecks
from crdkeeper.apiserver.definitions.rules.requirements import Requirements
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, Step
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema
from crdkeeper.apiserver.schema.structural import violations
from crdkeeper.apiserver.schema.violation import Report, Violation

Steps = tuple[Step, ...]
_ABOUT_EXPRESSIONS = frozenset((rules.CEL, rules.CEL_COST, rules.OLD_SELF))


def check_behind(
    schema: Schema, path: Path, requirements: Requirements, reported: Sequence[Violation], *, any_cost: bool
) -> list[Violation]:
    """Report what is hidden behind violations of a schema that the server has `reported`.

    `any_cost` says whether the cost of a single expression is unlimited.
    """
    found = _Found(reported)
    structure, defaults = Report(), Report()
    violations(schema, path, structure)
    found.add(structure.violations)
    check_defaults(schema, path, defaults, must_be_pruned=requirements.pruned_defaults)
    found.add(defaults.violations)
    checks = NodeChecks(requirements, Report(), any_cost=any_cost, past_errors=True)
    found.add(checks.check_expressions(schema, path))
    return found.later


class _Found:
    """Collects new errors that hold regardless of how the erroneous nodes are fixed."""

    def __init__(self, reported: Sequence[Violation]) -> None:
        self.later: list[Violation] = []
        self._known = {(str(each.path), each.message) for each in reported}
        self._spoiled: set[Steps] = set()
        """Nodes with an error at or below them."""
        self._untyped: set[Steps] = set()
        """Nodes whose errors, once fixed, may change the type of a value."""
        self._owners: set[Steps] = set()
        """Nodes with an error of their own."""
        self._spoil(reported)

    def add(self, violations: Sequence[Violation]) -> None:
        """Add the violations of one stage; the next one is behind them."""
        for each in violations:
            key = str(each.path), each.message
            if key not in self._known and not self._is_clouded(each):
                self.later.append(each)
            self._known.add(key)
        self._spoil(violations)

    def _spoil(self, violations: Sequence[Violation]) -> None:
        for each in violations:
            steps = each.path.steps
            node = _node(steps)
            prefixes = [steps[:i] for i in range(len(steps) + 1)]
            self._spoiled.update(prefixes)
            # Neither the value of a default nor a rule's other fields change the types.
            if each.rule is not rules.DEFAULT_VALUE and VALIDATIONS not in steps[len(node) :][:1]:
                self._untyped.update(prefixes)
                self._owners.add(node)

    def _is_clouded(self, each: Violation) -> bool:
        """Whether an earlier error makes it uncertain."""
        if each.kind == "Internal error":
            return True  # a missing type anywhere around it may be the cause
        node = _node(each.path.steps)
        if each.rule in _ABOUT_EXPRESSIONS:
            around = each.rule is not rules.CEL and any(node[:i] in self._owners for i in range(len(node)))
            return around or node in self._untyped
        return node in self._spoiled


def _node(steps: Steps) -> Steps:
    """The schema node of a violation."""
    names = False
    for i, step in enumerate(steps):
        if not names and step in (VALIDATIONS, "default"):
            return steps[:i]
        names = step == "properties" and not names
    return steps[:-1]
