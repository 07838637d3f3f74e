"""Rules of x-kubernetes-validations, ready to be evaluated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.cel.compilation import Declared, ExpansionLimit, Expression, stored_rule
from crdkeeper.apiserver.cel.expressions import (
    CountedProgram,
    Program,
    compile_program,
    converter,
    declare,
    embedded,
    escape,
)
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import Indeterminate
from crdkeeper.apiserver.golang.strings import trim_space
from crdkeeper.apiserver.schema.fieldreference import BadReference, ServerFails, resolve
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema

__all__ = [
    "CompiledRule",
    "Declared",
    "ExpansionLimit",
    "RuleProgram",
    "RuleSubject",
    "Variables",
    "compiled_rules",
    "declaration",
    "field_declaration",
]

Variables = Mapping[str, Any]


class RuleProgram:
    """An expression to be evaluated: fast, with a bound of its cost, or counted."""

    __slots__ = ("_again", "_counted", "bounded")

    def __init__(self, bounded: Program, again: Callable[[], Expression | None]) -> None:
        """`again` checks the expression again: too few are counted to be worth keeping the results."""
        self.bounded = bounded
        self._again = again
        self._counted: CountedProgram | None = None

    @property
    def counted(self) -> CountedProgram:
        """The program that counts its exact cost, made when it is first needed. Raises Indeterminate."""
        if self._counted is None:
            expression = self._again()
            if expression is None or expression.tree is None or expression.checked is None:
                raise Indeterminate("an expression that compiles no more")
            self._counted = CountedProgram(expression.tree, expression.checked)
        return self._counted


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule."""

    program: RuleProgram | None
    """None if the rule does not compile, or is left to the server."""
    problem: str | None
    """Why it does not compile, with the server's message."""
    left: str | None
    """Why it, or only the exact error, is left to the server."""
    message: RuleProgram | None
    message_source: str
    """The expression of the message, as written."""
    detail: str
    """The error for a value that violates it, without a messageExpression."""
    shown: str
    """The server's name for the rule in evaluation errors."""
    reason: str | None
    field_path: str
    """The normalized fieldPath, to be appended to the path of the value."""
    optional_old: bool
    uses_old: bool


def declaration(schema: Schema, *, root: bool) -> Declared | None:
    """The type of a value; None if CEL cannot see it. `root` says that it is a whole object."""
    return declare(schema, root=root or embedded(schema))


def field_declaration(owner: Declared | None, name: str, schema: Schema) -> Declared | None:
    """The type of a field; None if the API server passes over its rules, and over those of all below it.

    It is the one in the type of the owner, where an embedded resource has other metadata than in the schema,
    and where what CEL cannot see is missing. Only what CEL cannot name has its own. Follows validator of
    k8s.io/apiextensions-apiserver (pkg/apiserver/schema/cel/validation.go).
    """
    escaped = escape(name)
    if escaped is None:
        return declaration(schema, root=False)
    return None if owner is None else owner.fields.get(escaped)


def compiled_rules(schema: Schema, declared: Declared, limit: ExpansionLimit) -> list[CompiledRule]:
    """The rules of a node with this type, in their order, without the empty ones."""
    return [
        _compiled(each, schema, declared, limit)
        for each in schema.get(VALIDATIONS, [])
        if trim_space(each.get("rule", ""))
    ]


def _compiled(rule: Schema, schema: Schema, declared: Declared, limit: ExpansionLimit) -> CompiledRule:
    expression, message = stored_rule(rule, declared, limit)
    try:
        program = _program(expression, lambda: stored_rule(rule, declared)[0])
        said = None if message is None else _program(message, lambda: stored_rule(rule, declared)[1])
        field_path = _field_path(rule, schema)
    except (Indeterminate, ServerFails) as error:
        return _rule(rule, None, None, "", left=str(error))
    return _rule(rule, program, said, field_path, expression)


def _program(expression: Expression, again: Callable[[], Expression | None]) -> RuleProgram | None:
    """The program of an expression; None if the server does not compile it. Raises Indeterminate."""
    if expression.verdict.left is not None:
        raise Indeterminate(expression.verdict.left)
    if expression.tree is None or expression.checked is None:
        return None
    return RuleProgram(compile_program(expression.tree, expression.checked.overloads), again)


def _rule(
    rule: Schema,
    program: RuleProgram | None,
    message: RuleProgram | None,
    field_path: str,
    expression: Expression | None = None,
    *,
    left: str | None = None,
) -> CompiledRule:
    text, said = rule["rule"], trim_space(rule.get("message", ""))
    verdict = None if expression is None else expression.verdict
    if verdict is not None and not verdict.exact:
        left = "the API server says in words of its own why it does not compile"
    return CompiledRule(
        program,
        None if verdict is None else verdict.problem,
        left,
        message,
        rule.get("messageExpression", ""),
        said if rule.get("message") else f"failed rule: {trim_space(text)}",
        said or trim_space(text),
        rule.get("reason"),
        field_path,
        bool(rule.get("optionalOldSelf")),
        verdict is not None and verdict.uses_old_self,
    )


def _field_path(rule: Schema, schema: Schema) -> str:
    if not rule.get("fieldPath"):
        return ""
    try:
        return resolve(rule["fieldPath"], schema, arrays=True).normal
    except BadReference:
        # The server rejects it in a new CRD, and ignores it in an existing one.
        return ""


class RuleSubject:
    """What self and oldSelf are at a node."""

    def __init__(self, schema: Schema, *, root: bool) -> None:
        self._bind = converter(schema, root=root)

    def variables(self, value: Any, old: Any) -> Variables:
        """The variables of a rule; without an old value there is no oldSelf."""
        bound = {"self": self._bind(value)}
        return bound if old is None else {**bound, "oldSelf": self._bind(old)}

    def optional_variables(self, value: Any, old: Any) -> Variables:
        """The variables of a rule with optionalOldSelf."""
        before = NONE if old is None else OptionalValue(self._bind(old))
        return {"self": self._bind(value), "oldSelf": before}
