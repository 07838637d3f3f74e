"""Compiles the rules of x-kubernetes-validations as the API server does when a CRD is written.

The entry point of the compile-time half of the engine:

- `RulePlace` is a node of a schema with its parents: `RulePlace.root(schema)` is that of a version, and
  `field`, `items` and `values` lead down. It knows the type of `self` and how often the node can occur.
- `compile_rules(place, …)` gives one `Compilation` for each rule of the node: the errors of the rule and of
  its messageExpression in the server's words, and their costs.
- `stored_rule(rule, declared, …)` gives one of the rules by which objects are validated: the same without
  costs, with the syntax trees. An `ExpansionLimit` is for all rules of a schema.
- `cost_problem(…)` formats the error for a cost over the limit.

Follows Compile of k8s.io/apiextensions-apiserver (pkg/apiserver/schema/cel/compilation.go) and the
CELSchemaContext of its pkg/apis/apiextensions/validation/cel_validation.go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from crdkeeper.apiserver.cel.cost.cost import estimate
from crdkeeper.apiserver.cel.cost.estimates import MAX
from crdkeeper.apiserver.cel.cost.place import CannotDeclare, RulePlace, ServerPanics
from crdkeeper.apiserver.cel.program.instantiation import problem_of_program
from crdkeeper.apiserver.cel.program.literals import problems_of_literals
from crdkeeper.apiserver.cel.syntax.messages import rendered
from crdkeeper.apiserver.cel.syntax.nodes import CelDepthError, CelSyntaxError, Expr
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types import types
from crdkeeper.apiserver.cel.types.checker import Checked, UndecidedExpression, check
from crdkeeper.apiserver.cel.types.declared import Declared
from crdkeeper.apiserver.cel.types.types import Type
from crdkeeper.apiserver.golang.strings import trim_space
from crdkeeper.apiserver.schema.props import VALIDATIONS

__all__ = [
    "CONTRIBUTED",
    "CRD_COST_LIMIT",
    "EXPRESSION_COST_LIMIT",
    "CannotDeclare",
    "Compilation",
    "Declared",
    "ExpansionLimit",
    "Expression",
    "RulePlace",
    "RuleVerdict",
    "ServerPanics",
    "compile_rules",
    "cost_problem",
    "stored_rule",
]

EXPRESSION_COST_LIMIT: Final = 10_000_000
"""The maximum estimated cost of one expression."""
CRD_COST_LIMIT: Final = 100_000_000
"""The maximum estimated cost of all expressions of one schema."""

CONTRIBUTED: Final = (
    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
)

_USUAL_LENGTH = 2000
_TOO_DEEP = "the expression is nested too deeply to be checked here"
_MOST_EXPANDED = 200_000
"""How many nodes the macros of all rules of a schema may make: each takes up to 20 µs."""


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The result of compiling one expression.

    `problem` is the server's detail for a rejected expression. With `exact` False, the server rejects it as
    well, but with a different message. `left` is why only the server can decide; then nothing else is known.
    `cost` is the estimated cost of one evaluation.
    """

    problem: str | None = None
    exact: bool = True
    left: str | None = None
    cost: int = 0
    uses_old_self: bool = False


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compiled rule.

    `rule` is None for a rule without text, `message` for one without a messageExpression or with a rule that
    does not compile: the server ignores those. `total_cost` is the cost of the rule times the maximum number
    of values for which it can be evaluated in one object.
    """

    rule: RuleVerdict | None
    message: RuleVerdict | None
    total_cost: int


_NOTHING = Compilation(None, None, 0)


def _never(_: str) -> bool:
    return False


def compile_rules(
    place: RulePlace,
    *,
    stored_rule: Callable[[str], bool] = _never,
    stored_message: Callable[[str], bool] = _never,
    spend: Callable[[int], None] | None = None,
) -> list[Compilation]:
    """Compile all rules of a node, in order.

    `stored_rule` and `stored_message` tell which expressions the CRD already contained: those may use
    features that are too new for others. `spend` is called before an expression is checked, with how many
    nodes its macros make beyond the characters of its text, and may raise. Raises CannotDeclare if CEL has no
    type for the node.
    """
    declared = place.declared
    variables = _variables(declared.type())
    cardinality = place.cardinality
    if cardinality is None:
        cardinality = declared.most_in_request
    return [
        _compile(
            rule,
            declared,
            variables[bool(rule.get("optionalOldSelf"))],
            cardinality,
            stored_rule,
            stored_message,
            spend,
        )
        for rule in place.schema.get(VALIDATIONS, ())
    ]


def _variables(self_type: Type) -> tuple[Mapping[str, Type], Mapping[str, Type]]:
    """The variables of a rule, without and with optionalOldSelf."""
    return (
        {"self": self_type, "oldSelf": self_type},
        {"self": self_type, "oldSelf": types.optional_of(self_type)},
    )


def _compile(
    rule: Mapping[str, Any],
    declared: Declared,
    variables: Mapping[str, Type],
    cardinality: int,
    stored_rule: Callable[[str], bool],
    stored_message: Callable[[str], bool],
    spend: Callable[[int], None] | None,
) -> Compilation:
    text = rule.get("rule", "")
    if not trim_space(text):
        return _NOTHING
    verdict = _verdict(text, declared, variables, _RULE, stored=stored_rule(text), spend=spend)
    message = None
    expression = rule.get("messageExpression", "")
    if expression and verdict.problem is None and verdict.left is None:
        stored = stored_message(expression)
        message = _verdict(expression, declared, variables, _MESSAGE, stored=stored, spend=spend)
    return Compilation(verdict, message, min(verdict.cost * cardinality, MAX))


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the server describes an expression."""

    result: str
    wrong_result: str
    failed: str
    no_program: str


_RULE = _Kind(
    "bool", "cel expression must evaluate to a bool", "compilation failed: ", "program instantiation failed: "
)
_MESSAGE = _Kind(
    "string",
    "messageExpression must evaluate to a string",
    "messageExpression compilation failed: ",
    "messageExpression instantiation failed: ",
)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression and the result of compiling it; with tree and types unless it is rejected."""

    verdict: RuleVerdict
    tree: Expr | None = None
    checked: Checked | None = None


class ExpansionLimit:
    """Limits what the macros of all rules of a schema make beyond the characters of their texts."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST_EXPANDED

    def spend(self, nodes: int) -> None:
        """Raises UndecidedExpression for what is too much, which takes nothing from the others."""
        if nodes > self._left:
            raise UndecidedExpression("the rules of the schema expand to too much to be checked here")
        self._left -= nodes


def stored_rule(
    rule: Mapping[str, Any], declared: Declared, limit: ExpansionLimit | None = None
) -> tuple[Expression, Expression | None]:
    """A rule of an existing CRD, which is not empty, with its message.

    `declared` is the type of `self`. The message is None without a messageExpression, or if the rule does not
    compile. What exceeds the limit is left to the server.
    """
    spend = None if limit is None else limit.spend
    variables = _variables(declared.type())[bool(rule.get("optionalOldSelf"))]
    expression = _examined(rule["rule"], variables, _RULE, stored=True, spend=spend)
    message = None
    if rule.get("messageExpression") and expression.tree is not None:
        message = _examined(rule["messageExpression"], variables, _MESSAGE, stored=True, spend=spend)
    return expression, message


def _verdict(
    text: str,
    declared: Declared,
    variables: Mapping[str, Type],
    kind: _Kind,
    *,
    stored: bool,
    spend: Callable[[int], None] | None,
) -> RuleVerdict:
    found = _examined(text, variables, kind, stored=stored, spend=spend)
    if found.tree is None or found.checked is None:
        return found.verdict
    try:
        cost = estimate(found.tree, found.checked, declared)[1]
    except UndecidedExpression as undecided:
        return RuleVerdict(left=str(undecided))
    except RecursionError:
        return RuleVerdict(left=_TOO_DEEP)
    return RuleVerdict(cost=cost, uses_old_self=found.verdict.uses_old_self)


def _examined(
    text: str,
    variables: Mapping[str, Type],
    kind: _Kind,
    *,
    stored: bool,
    spend: Callable[[int], None] | None = None,
) -> Expression:
    def spend_beyond_text(nodes: int) -> None:
        if spend is not None:
            spend(max(0, nodes - len(text)))

    try:
        tree = _parsed(text)
    except CelSyntaxError as error:
        return Expression(RuleVerdict(kind.failed + rendered(text, error.problems), exact=error.exact))
    except CelDepthError as error:
        return Expression(RuleVerdict(left=str(error)))
    try:
        checked = check(tree, variables, stored=stored, spend=spend_beyond_text)
        problems = checked.problems or problems_of_literals(tree, checked)
        if problems:
            return Expression(RuleVerdict(kind.failed + rendered(text, problems)))
        if checked.types[tree].kind != kind.result:
            return Expression(RuleVerdict(kind.wrong_result))
        uses_old_self = checked.uses_old_self
        problem = problem_of_program(tree, checked)
        if problem is not None:
            return Expression(RuleVerdict(kind.no_program + problem, uses_old_self=uses_old_self))
        return Expression(RuleVerdict(uses_old_self=uses_old_self), tree, checked)
    except UndecidedExpression as undecided:
        return Expression(RuleVerdict(left=str(undecided)))
    except RecursionError:
        return Expression(RuleVerdict(left=_TOO_DEEP))


def _parsed(text: str) -> Expr:
    # All versions contain the same rules; long ones would make a cache of unlimited size.
    return _parsed_once(text) if len(text) <= _USUAL_LENGTH else parse(text)


@lru_cache(maxsize=2048)
def _parsed_once(text: str) -> Expr:
    return parse(text)


def cost_problem(name: str, cost: int, limit: int) -> str | None:
    """The server's error for a cost over the limit; None if it is not. `name` is what has the cost."""
    if cost <= limit:
        return None
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:.6f}x"
    else:
        shown = f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, "
        "maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
