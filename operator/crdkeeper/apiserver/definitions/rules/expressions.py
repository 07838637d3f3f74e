"""The expressions of x-kubernetes-validations: whether they compile, their costs, and the use of oldSelf.

As in ValidateCustomResourceDefinitionOpenAPISchema of k8s.io/apiextensions-apiserver. The compiler is
`crdkeeper.apiserver.cel.compilation`.
"""

from crdkeeper.apiserver.cel.compilation import (
    CONTRIBUTED,
    CRD_COST_LIMIT,
    EXPRESSION_COST_LIMIT,
    CannotDeclare,
    Compilation,
    RulePlace,
    RuleVerdict,
    ServerPanics,
    compile_rules,
    cost_problem,
)
from crdkeeper.apiserver.definitions.rules.requirements import Requirements
from crdkeeper.apiserver.objects.effort import spend_on_expansion, spend_on_expressions
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema
from crdkeeper.apiserver.schema.violation import OMITTED, Report, Violation

_SHOWN_COSTS = 4
_MOST = (1 << 64) - 1


def _size(rule: Schema) -> int:
    return len(rule.get("rule", "")) + len(rule.get("messageExpression", ""))


class ExpressionChecks:
    """Compiles the expressions of one schema, node by node, and adds up their costs."""

    def __init__(self, requirements: Requirements, report: Report, *, any_cost: bool) -> None:
        """`any_cost` says whether the cost of a single expression is unlimited."""
        self._requirements = requirements
        self._report = report
        self._any_cost = any_cost
        self._costs: list[tuple[int, Path]] = []

    def check(self, place: RulePlace, path: Path, uncorrelatable: Path | None) -> None:
        """Report a node's invalid rules. `uncorrelatable` is the parent that forbids oldSelf, if any."""
        at = path.child(VALIDATIONS)
        try:
            spend_on_expressions(list(map(_size, place.schema[VALIDATIONS])))
            compiled = compile_rules(
                place,
                stored_rule=self._requirements.old_expressions.__contains__,
                stored_message=self._requirements.old_message_expressions.__contains__,
                spend=spend_on_expansion,
            )
        except UndecidedValue:
            self._report.leave(rules.CEL, at, "to compile all expressions of the CRD may take too long")
            return
        except ServerPanics as error:
            self._report.leave(rules.CEL, at, str(error))
            return
        except CannotDeclare as error:
            self._report.violations.append(Violation(rules.CEL, at, "Internal error", None, str(error)))
            return
        for i, (rule, each) in enumerate(zip(place.schema[VALIDATIONS], compiled, strict=True)):
            self._check_rule(rule, each, at.index(i), uncorrelatable)

    def _check_rule(
        self, rule: Schema, compiled: Compilation, path: Path, uncorrelatable: Path | None
    ) -> None:
        at, verdict, message = path.child("rule"), compiled.rule, compiled.message
        if verdict is None:
            return
        if verdict.left is None:
            self._observe(at, compiled.total_cost, "estimated rule cost")
        self._report_problem(at, verdict)
        if message is not None:
            at_message = path.child("messageExpression")
            self._report_problem(at_message, message)
            if message.problem is None and message.left is None:
                self._observe(at_message, message.cost, "estimated messageExpression cost")
        if verdict.left is not None:
            return
        if verdict.uses_old_self:
            if uncorrelatable is not None:
                what = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
                detail = f"{what} {uncorrelatable}"
                self._report.invalid(rules.OLD_SELF, at, rule["rule"], detail)
        elif "optionalOldSelf" in rule:
            detail = "may not be set if oldSelf is not used in rule"
            at_optional = path.child("optionalOldSelf")
            self._report.invalid(rules.OLD_SELF, at_optional, rule["optionalOldSelf"], detail)

    def _observe(self, path: Path, cost: int, name: str) -> None:
        problem = None if self._any_cost else cost_problem(name, cost, EXPRESSION_COST_LIMIT)
        if problem is not None:
            self._report.forbidden(rules.CEL_COST, path, problem)
        self._costs.append((cost, path))

    def _report_problem(self, path: Path, verdict: RuleVerdict) -> None:
        if verdict.left is not None:
            self._report.leave(rules.CEL, path, verdict.left)
        elif verdict.problem is not None:
            self._report.invalid(rules.CEL, path, OMITTED, verdict.problem)
            if not verdict.exact:
                self._report.leave(rules.CEL, path, "the API server refuses this in words of its own")

    def check_total(self, path: Path, report: Report) -> None:
        """Report the error for the cost of all expressions together; `path` is that of the schema."""
        total = min(sum(cost for cost, _ in self._costs), _MOST)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        problem = cost_problem(name, total, CRD_COST_LIMIT)
        if problem is None:
            return
        self._report_most_expensive(report)
        report.forbidden(rules.CEL_COST, path, problem)

    def _report_most_expensive(self, report: Report) -> None:
        dear = sorted(
            (each for each in self._costs if each[0] >= CRD_COST_LIMIT // 100),
            key=lambda each: each[0],
            reverse=True,
        )
        # If several have the same cost, the server names any.
        unnamed = dear[_SHOWN_COSTS][0] if len(dear) > _SHOWN_COSTS else -1
        for cost, path in dear:
            if cost > unnamed:
                report.forbidden(rules.CEL_COST, path, CONTRIBUTED)
            elif cost == unnamed and dear[_SHOWN_COSTS - 1][0] == unnamed:
                report.leave(rules.CEL_COST, path, "one of several that cost the same")
