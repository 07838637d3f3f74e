"""Evaluates the rules of x-kubernetes-validations on an object and its old one.

Each value that has rules is `self` in them; `oldSelf` is the value that it replaces, if it can be correlated:
properties and map entries by name, items of map lists by their keys. Follows cel.Validator
(apiextensions-apiserver: pkg/apiserver/schema/cel/validation.go).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crdkeeper.apiserver.cel.expressions import Account
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.objects.correlation import Correlated, MapList
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.rulecompilation import CompiledRule, RulePlace, RuleSubject, compiled_rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    FieldError,
    Step,
    below,
    structural_path,
    structural_violations,
)
from crdkeeper.apiserver.schema.violation import OMITTED, Unchecked, Violation

_KINDS: Mapping[str | None, str] = {
    "FieldValueForbidden": FORBIDDEN,
    "FieldValueRequired": REQUIRED,
    "FieldValueDuplicate": DUPLICATE,
}
_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """What is known of the old value where a rule fails."""

    current: Correlated | None = None
    parent: Correlated | None = None
    """The nearest parent that has an old value; None at the root."""

    def forgives(self) -> bool:
        found = self.current if self.current is not None else self.parent
        return found is not None and found.unchanged()

    def key(self, key: str) -> "_Ratchet":
        if self.current is None:
            return self
        if self.parent is None and key in ("apiVersion", "kind"):
            return _Ratchet()
        return _Ratchet(self.current.key(key), self.current)

    def index(self, index: int) -> "_Ratchet":
        if self.current is None:
            return self
        return _Ratchet(self.current.index(index), self.current)


class _Said:
    """Findings, and checks left to the server, for one value and what is below it."""

    __slots__ = ("account", "findings", "left")

    def __init__(self, account: Account) -> None:
        self.findings: list[FieldError] = []
        self.left: list[FieldError] = []
        self.account = account

    def add(self, step: Step, name: str | int, other: "_Said | None") -> None:
        if other is not None:
            self.findings += below(step, name, other.findings)
            self.left += below(step, name, other.left)


class RuleWalk:
    """The rules of a schema, compiled when they are first needed."""

    def __init__(self, node: ObjectNode, *, root: bool = True) -> None:
        """`root` says whether the node is that of whole objects."""
        self._node = node
        self._is_root = root

    def __bool__(self) -> bool:
        return self._node.has_rules

    @cached_property
    def _root(self) -> "_Rules":
        schema = self._node.schema
        place = RulePlace.root(schema) if self._is_root else RulePlace.root({}).field("", schema)
        return _Rules(self._node, place, root=self._is_root)

    def check(
        self,
        value: Any,
        old: Any,
        correlated: Correlated | None,
        base: Path | None = None,
        account: Account | None = None,
    ) -> tuple[list[Violation], list[Unchecked]]:
        """The violations of a value, and the rules that are left to the server.

        `base` is the place of the value, None for a whole object; the cost of the rules is charged to the
        account, by default a new one.
        """
        said = self._root.check(value, old, _Ratchet(correlated), account or Account())
        if said is None:
            return [], []
        left = [
            Unchecked(valuerules.VALIDATION, structural_path(each, base), each.detail) for each in said.left
        ]
        return structural_violations(said.findings, base), left


class _Rules:
    """The rules of one node of the schema, and of the nodes below it that have some."""

    __slots__ = ("_additional", "_items", "_node", "_properties", "_rules", "_subject")

    def __init__(self, node: ObjectNode, place: RulePlace, *, root: bool) -> None:
        self._node = node
        self._rules: list[CompiledRule] = compiled_rules(place)
        self._subject = RuleSubject(node.schema, root=root or node.embedded)
        self._properties = {
            name: _Rules(each, place.field(name, each.schema), root=False)
            for name, each in node.properties.items()
            if each.has_rules
        }
        self._additional = self._items = None
        if node.additional is not None and node.additional.has_rules:
            self._additional = _Rules(node.additional, place.values(node.additional.schema), root=False)
        if node.items is not None and node.items.has_rules:
            self._items = _Rules(node.items, place.items(node.items.schema), root=False)

    def check(self, value: Any, old: Any, ratchet: _Ratchet, account: Account) -> _Said | None:
        """Check a value against the rules; null is always valid."""
        if value is None:
            return None
        said = _Said(account)
        if self._rules:
            self._evaluate(value, old, ratchet, said)
        if type(value) is dict:
            before = old if type(old) is dict else {}
            self._check_map(value, before, ratchet, said)
        elif type(value) is list and self._items is not None:
            correlated = MapList(self._node, old if type(old) is list else [])
            for i, each in enumerate(value):
                said.add(
                    Step.INDEX,
                    i,
                    self._items.check(each, correlated.get(each), ratchet.index(i), said.account),
                )
        return said

    def _check_map(
        self, value: Mapping[str, Any], old: Mapping[str, Any], ratchet: _Ratchet, said: _Said
    ) -> None:
        if self._additional is not None:
            for key, each in value.items():
                said.add(
                    Step.KEY, key, self._additional.check(each, old.get(key), ratchet.key(key), said.account)
                )
        for name, rules in self._properties.items():
            if name in value:
                said.add(
                    Step.FIELD, name, rules.check(value[name], old.get(name), ratchet.key(name), said.account)
                )

    def _evaluate(self, value: Any, old: Any, ratchet: _Ratchet, said: _Said) -> None:
        variables = self._subject.variables(value, old)
        optional = (
            self._subject.optional_variables(value, old)
            if any(each.optional_old for each in self._rules)
            else variables
        )
        for rule in self._rules:
            if rule.problem is not None:
                detail = f"rule compile error: {rule.problem}"
                said.findings.append(self._finding(INVALID, self._node.type, detail))
            if rule.left is not None:
                said.left.append(self._left(f"{rule.shown}: {rule.left}"))
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            try:
                holds = rule.program.evaluate(optional if rule.optional_old else variables, said.account)
            except EvaluationError as error:
                said.findings.append(self._finding(INVALID, self._node.type, _failed(error, rule)))
                continue
            except Indeterminate as error:
                said.left.append(self._left(f"{rule.shown}: {error.why}"))
                continue
            if holds is True or (not rule.uses_old and ratchet.forgives()):
                continue
            self._report(rule, value, variables, said)

    def _report(self, rule: CompiledRule, value: Any, variables: Mapping[str, Any], said: _Said) -> None:
        detail = rule.detail
        if rule.message is not None:
            try:
                detail = _usable(rule.message.evaluate(variables, said.account)) or detail
            except EvaluationError:
                # The server logs it, and shows the rule's own message.
                pass
            except Indeterminate as error:
                said.left.append(self._left(f"the message of {rule.shown}: {error.why}"))
                return
        kind = _KINDS.get(rule.reason, INVALID)
        shown = OMITTED if self._node.type in ("object", "array") else value
        finding = self._finding(kind, shown, "" if kind == DUPLICATE else detail)
        if rule.field_path:
            below(Step.FIELD, rule.field_path, [finding])
        said.findings.append(finding)

    @staticmethod
    def _finding(kind: str, value: Any, detail: str) -> FieldError:
        return FieldError(valuerules.VALIDATION, kind, value, detail)

    @staticmethod
    def _left(why: str) -> FieldError:
        return FieldError(valuerules.VALIDATION, INVALID, OMITTED, why)


def _failed(error: EvaluationError, rule: CompiledRule) -> str:
    if error.message.startswith("no such overload"):
        return (
            f"'{error.message}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.shown}"
        )
    return f"{error.message} evaluating rule: {rule.shown}"


def _usable(message: Any) -> str:
    """The message from an expression; empty if the server does not show it."""
    if not isinstance(message, str):
        return ""
    text = message.strip()
    return "" if "\n" in text or len(text.encode(errors="replace")) > _LONGEST_MESSAGE else text
