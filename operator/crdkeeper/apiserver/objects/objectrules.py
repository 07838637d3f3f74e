"""Evaluates the rules of x-kubernetes-validations on an object and its old one.

Each value that has rules is `self` in them; `oldSelf` is the value that it replaces, if it can be correlated:
properties and map entries by name, items of map lists by their keys. Follows cel.Validator
(apiextensions-apiserver: pkg/apiserver/schema/cel/validation.go).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crdkeeper.apiserver.cel.expressions import Account
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.objects.correlation import Correlated, MapList
from crdkeeper.apiserver.objects.effort import affordable_cost, count_evaluation
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.rulebudget import (
    BoundedRun,
    CountedRun,
    Ended,
    OverLimit,
    RuleRun,
    Unknown,
)
from crdkeeper.apiserver.objects.rulecompilation import (
    CompiledRule,
    Declared,
    ExpansionLimit,
    RuleSubject,
    Variables,
    compiled_rules,
    declaration,
    field_declaration,
)
from crdkeeper.apiserver.objects.rulemessages import failed, left_open, usable
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    MOST_FINDINGS,
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
_NO_TYPE = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
_TOO_LONG = "to evaluate all rules may take too long"
_ANY_ORDER = "the cost limit ends the evaluation of rules, but the API server takes fields in any order"
_PERHAPS_OLD = "whether another rule, which is left to the API server, reads oldSelf"


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

    __slots__ = ("by_call", "ended", "findings", "left")

    def __init__(self) -> None:
        self.findings: list[FieldError] = []
        self.left: list[FieldError] = []
        self.ended = False
        """Whether no more rules are evaluated for the object, or that is not known."""
        self.by_call = False
        """Whether that is so however much the rules before cost."""

    def add(self, step: Step, name: str | int, other: "_Said | None") -> None:
        if other is not None:
            if len(self.findings) < MOST_FINDINGS:
                self.findings += below(step, name, other.findings)
            if len(self.left) < MOST_FINDINGS:
                self.left += below(step, name, other.left)
            self.ended = self.ended or other.ended
            self.by_call = self.by_call or other.by_call


@dataclass(frozen=True, slots=True)
class _Child:
    """A field or an entry that has rules."""

    step: Step
    name: str
    rules: "_Rules"
    value: Any
    old: Any


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
        declared = declaration(self._node.schema, root=self._is_root)
        return _Rules(self._node, declared, ExpansionLimit(), root=self._is_root)

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
        account = account or Account()
        left, most = account.left, account.most
        ratchet = _Ratchet(correlated)
        affordable = affordable_cost(left)
        bounded = Account(affordable)
        try:
            said = self._root.check(value, old, ratchet, BoundedRun(bounded))
            account.left -= affordable - bounded.left
            count_evaluation(affordable - bounded.left)
        except OverLimit:
            if affordable < left:
                count_evaluation(affordable + 1)
                where = structural_path(_Rules.left(""), base)
                return [], [Unchecked(valuerules.VALIDATION, where, _TOO_LONG)]
            run = CountedRun(left, most)
            said = self._root.check(value, old, ratchet, run)
            count_evaluation(affordable - bounded.left + run.work)
            account.left, account.most = run.left, run.most
            if said is not None and said.ended:
                account.left = -1
                account.most = run.most if said.left else -1
        if said is None:
            return [], []
        unchecked = [
            Unchecked(valuerules.VALIDATION, structural_path(each, base), each.detail) for each in said.left
        ]
        return structural_violations(said.findings, base), unchecked


class _Rules:
    """The rules of one node of the schema, and of the nodes below it that have some."""

    __slots__ = (
        "_additional",
        "_has_no_type",
        "_items",
        "_may_see_old",
        "_node",
        "_properties",
        "_rules",
        "_sees_old",
        "_subject",
    )

    def __init__(
        self, node: ObjectNode, declared: Declared | None, limit: ExpansionLimit, *, root: bool
    ) -> None:
        self._node = node
        self._has_no_type = declared is None
        self._rules: list[CompiledRule] = []
        if declared is not None:
            self._rules = compiled_rules(node.schema, declared, limit)
        self._sees_old = any(each.uses_old for each in self._rules)
        self._may_see_old = not self._sees_old and any(
            each.program is None and each.problem is None for each in self._rules
        )
        self._subject = RuleSubject(node.schema, root=root or node.embedded)
        self._properties = {
            name: _Rules(each, found, limit, root=False)
            for name, each in node.properties.items()
            if each.has_rules and (found := field_declaration(declared, name, each.schema)) is not None
        }
        element = None if declared is None else declared.element
        self._additional = self._items = None
        if node.additional is not None and node.additional.has_rules:
            self._additional = _Rules(node.additional, element, limit, root=False)
        if node.items is not None and node.items.has_rules:
            self._items = _Rules(node.items, element, limit, root=False)

    def check(self, value: Any, old: Any, ratchet: _Ratchet, run: RuleRun) -> _Said | None:
        """Check a value against the rules; null is always valid. Raises OverLimit."""
        if value is None:
            return None
        said = _Said()
        if self._has_no_type and self._node.rules:
            said.findings.append(self._finding(INVALID, self._node.type, _NO_TYPE))
        if self._rules:
            try:
                run.begin()
                self._evaluate(value, old, ratchet, said, run)
            except Ended as end:
                said.ended, said.by_call = True, end.by_call
                if end.detail:
                    said.findings.append(self._finding(INVALID, self._node.type, end.detail))
            except Unknown as unknown:
                said.ended = True
                said.left.append(self.left(f"whether rules are evaluated: {unknown}"))
            if said.ended:
                return said
        if type(value) is dict:
            before = old if type(old) is dict else {}
            self._check_map(value, before, ratchet, said, run)
        elif type(value) is list and self._items is not None:
            correlated = MapList(self._node, old if type(old) is list else [])
            for i, each in enumerate(value):
                found = self._items.check(each, correlated.get(each), ratchet.index(i), run)
                said.add(Step.INDEX, i, found)
                if said.ended:
                    break
        return said

    def _children(self, value: Mapping[str, Any], old: Mapping[str, Any]) -> list[_Child]:
        children = []
        if self._additional is not None:
            for key, each in value.items():
                children.append(_Child(Step.KEY, key, self._additional, each, old.get(key)))
        for name, rules in self._properties.items():
            if name in value:
                children.append(_Child(Step.FIELD, name, rules, value[name], old.get(name)))
        return children

    def _check_map(
        self, value: Mapping[str, Any], old: Mapping[str, Any], ratchet: _Ratchet, said: _Said, run: RuleRun
    ) -> None:
        children = self._children(value, old)
        found = []
        for at, each in enumerate(children):
            of_child = each.rules.check(each.value, each.old, ratchet.key(each.name), run)
            found.append((each, of_child))
            if of_child is None or not of_child.ended:
                continue
            if not self._is_certain_end(found, children[at + 1 :], ratchet, run):
                said.ended = True
                said.left.append(self.left(_ANY_ORDER))
                return
            break
        for child, of_child in found:
            said.add(child.step, child.name, of_child)
            if said.ended:
                return

    def _is_certain_end(
        self,
        found: Sequence[tuple[_Child, _Said | None]],
        rest: Sequence[_Child],
        ratchet: _Ratchet,
        run: RuleRun,
    ) -> bool:
        """Whether the walk ends at the child that was found last, saying the same, in whatever order the API
        server takes the children.

        The others must say nothing, and fit the budget together with it.
        """
        last = found[-1][1]
        before = [each for _, each in found[:-1] if each is not None]
        after = [each for each in rest if each.value is not None]
        if not before and not after:
            return True
        if last is None or not last.by_call or any(each.findings or each.left for each in before):
            return False
        for each in after:
            of_child = each.rules.check(each.value, each.old, ratchet.key(each.name), run)
            if of_child is not None and (of_child.ended or of_child.findings or of_child.left):
                return False
        return True

    def _evaluate(self, value: Any, old: Any, ratchet: _Ratchet, said: _Said, run: RuleRun) -> None:
        """Raises Ended, Unknown and OverLimit."""
        # The message of a rule sees the old value only beside a rule that does.
        variables = self._subject.variables(value, old if self._sees_old else None)
        if self._may_see_old and old is not None:
            variables = {**variables, "oldSelf": Indeterminate(_PERHAPS_OLD)}
        optional = (
            self._subject.optional_variables(value, old)
            if any(each.optional_old for each in self._rules)
            else variables
        )
        for rule in self._rules:
            if rule.problem is not None:
                detail = f"rule compile error: {run.quotes.text(rule.problem)}"
                said.findings.append(self._finding(INVALID, self._node.type, detail))
            if rule.left is not None:
                said.left.append(self.left(left_open(rule, rule.left, run.quotes)))
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            try:
                holds = run.rule(rule.program, optional if rule.optional_old else variables, rule.shown)
            except EvaluationError as error:
                said.findings.append(self._finding(INVALID, self._node.type, failed(error, rule, run.quotes)))
                continue
            except Indeterminate as error:
                said.left.append(self.left(left_open(rule, error.why, run.quotes)))
                continue
            if holds is not True:
                self._report(rule, value, variables, said, run, not rule.uses_old and ratchet.forgives())

    def _report(
        self,
        rule: CompiledRule,
        value: Any,
        variables: Variables,
        said: _Said,
        run: RuleRun,
        forgiven: bool,
    ) -> None:
        """What a rule says that does not hold; nothing if it is forgiven, but its message is made all the
        same.
        """
        detail = rule.detail
        if rule.message is not None:
            try:
                detail = usable(run.message(rule.message, variables, rule.message_source)) or detail
            except EvaluationError:
                # The server logs it, and shows the rule's own message.
                pass
            except Indeterminate as error:
                if not forgiven:
                    said.left.append(self.left(f"the message of {left_open(rule, error.why, run.quotes)}"))
                return
            except Ended as end:
                if not forgiven:
                    self._add(rule, self._finding(INVALID, self._node.type, end.detail), said)
                raise Ended("", by_call=end.by_call) from None
        if forgiven:
            return
        kind = _KINDS.get(rule.reason, INVALID)
        shown = OMITTED if self._node.type in ("object", "array") else value
        self._add(rule, self._finding(kind, shown, "" if kind == DUPLICATE else detail), said)

    @staticmethod
    def _add(rule: CompiledRule, finding: FieldError, said: _Said) -> None:
        if rule.field_path:
            below(Step.FIELD, rule.field_path, [finding])
        said.findings.append(finding)

    @staticmethod
    def _finding(kind: str, value: Any, detail: str) -> FieldError:
        return FieldError(valuerules.VALIDATION, kind, value, detail)

    @staticmethod
    def left(why: str) -> FieldError:
        return FieldError(valuerules.VALIDATION, INVALID, OMITTED, why)
