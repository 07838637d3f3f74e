"""Rules of x-kubernetes-validations, ready to be evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.cel.compilation import CannotDeclare, Expression, RulePlace, stored_rules
from crdkeeper.apiserver.cel.expressions import Program, compile_program, converter
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import Indeterminate
from crdkeeper.apiserver.schema.fieldreference import BadReference, ServerFails, resolve
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema

__all__ = ["CompiledRule", "Program", "RulePlace", "RuleSubject", "compiled_rules"]

Variables = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule."""

    program: Program | None
    """None if the rule does not compile, or is left to the server."""
    problem: str | None
    """Why it does not compile, with the server's message."""
    left: str | None
    """Why it, or only the exact error, is left to the server."""
    message: Program | None
    detail: str
    """The error for a value that violates it, without a messageExpression."""
    shown: str
    """The server's name for the rule in evaluation errors."""
    reason: str | None
    field_path: str
    """In normal form, to be appended to the path of the value."""
    optional_old: bool
    uses_old: bool


def compiled_rules(place: RulePlace) -> list[CompiledRule]:
    """The rules of a node, in their order, without the empty ones."""
    schemas = [each for each in place.schema.get(VALIDATIONS, []) if each.get("rule", "").strip()]
    try:
        compiled = stored_rules(place)
    except CannotDeclare as error:
        return [_rule(each, None, None, "", left=str(error)) for each in schemas]
    return [
        _compiled(schema, place.schema, *expressions)
        for schema, expressions in zip(schemas, compiled, strict=True)
    ]


def _compiled(
    rule: Schema, schema: Schema, expression: Expression, message: Expression | None
) -> CompiledRule:
    try:
        program, said = _program(expression), None if message is None else _program(message)
        field_path = _field_path(rule, schema)
    except (Indeterminate, ServerFails) as error:
        return _rule(rule, None, None, "", left=str(error))
    return _rule(rule, program, said, field_path, expression)


def _program(expression: Expression) -> Program | None:
    """The program of an expression; None if the server does not compile it. Raises Indeterminate."""
    if expression.verdict.left is not None:
        raise Indeterminate(expression.verdict.left)
    if expression.tree is None or expression.checked is None:
        return None
    return compile_program(expression.tree, expression.checked.overloads)


def _rule(
    rule: Schema,
    program: Program | None,
    message: Program | None,
    field_path: str,
    expression: Expression | None = None,
    *,
    left: str | None = None,
) -> CompiledRule:
    text, said = rule["rule"], rule.get("message", "").strip()
    verdict = None if expression is None else expression.verdict
    if verdict is not None and not verdict.exact:
        left = "the API server says in words of its own why it does not compile"
    return CompiledRule(
        program,
        None if verdict is None else verdict.problem,
        left,
        message,
        said if rule.get("message") else f"failed rule: {text.strip()}",
        said or text.strip(),
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
        """For a rule; there is no oldSelf without an old value."""
        bound = {"self": self._bind(value)}
        return bound if old is None else {**bound, "oldSelf": self._bind(old)}

    def optional_variables(self, value: Any, old: Any) -> Variables:
        """For a rule with optionalOldSelf."""
        before = NONE if old is None else OptionalValue(self._bind(old))
        return {"self": self._bind(value), "oldSelf": before}
