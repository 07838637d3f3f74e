"""Rules of x-kubernetes-validations, ready to be evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.cel.compilation import CannotDeclare, Place
from crdkeeper.apiserver.cel.run.binding import converter
from crdkeeper.apiserver.cel.run.evaluate import Program, compile_program
from crdkeeper.apiserver.cel.syntax.nodes import CelDepthError, CelSyntaxError, Expr
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types import types
from crdkeeper.apiserver.cel.types.checker import Checked, Undecided, check
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import Indeterminate
from crdkeeper.apiserver.schema.fieldreference import BadReference, ServerFails, resolve
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema

__all__ = ["Place", "Program", "Rule", "Subject", "compiled_rules"]

Variables = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    program: Program | None
    """None where the rule is left to the server."""
    left: str
    """Why it is."""
    message: Program | None
    detail: str
    """What is said of a value that it refuses, where no messageExpression says it."""
    shown: str
    """How the server names the rule in errors of its evaluation."""
    reason: str | None
    field_path: str
    """In normal form, to be appended to the path of the value."""
    optional_old: bool
    uses_old: bool


class _CannotCompile(Exception):
    """An expression that only the server can evaluate; the text says why."""


class _Refused(_CannotCompile):
    """An expression that the server does not compile either."""


def compiled_rules(place: Place) -> list[Rule]:
    """The rules of a node, in their order, without the empty ones."""
    return [
        _compiled(each, place) for each in place.schema.get(VALIDATIONS, []) if each.get("rule", "").strip()
    ]


def _compiled(rule: Schema, place: Place) -> Rule:
    text, said = rule["rule"], rule.get("message", "").strip()
    program, message, left, field_path, uses_old = None, None, "", "", False
    try:
        tree, checked = _checked(text, rule, place)
        program, uses_old = _program(tree, checked), checked.uses_old_self
        field_path = _field_path(rule, place.schema)
        message = _message(rule, place)
    except _CannotCompile as error:
        program, left = None, str(error)
    return Rule(
        program,
        left,
        message,
        said if rule.get("message") else f"failed rule: {text.strip()}",
        said or text.strip(),
        rule.get("reason"),
        field_path,
        bool(rule.get("optionalOldSelf")),
        uses_old,
    )


def _message(rule: Schema, place: Place) -> Program | None:
    """The program of a messageExpression; None if there is none that the server compiles."""
    if not rule.get("messageExpression"):
        return None
    try:
        return _program(*_checked(rule["messageExpression"], rule, place))
    except _Refused:
        return None


def _checked(text: str, rule: Schema, place: Place) -> tuple[Expr, Checked]:
    try:
        self_type = place.declared.type()
        old_type = types.optional_of(self_type) if rule.get("optionalOldSelf") else self_type
        tree = parse(text)
        checked = check(tree, {"self": self_type, "oldSelf": old_type}, stored=True)
    except RecursionError:
        raise _CannotCompile("the expression is nested too deeply") from None
    except CelSyntaxError as error:
        raise _Refused(f"it does not compile: {error}") from None
    except (CannotDeclare, CelDepthError, Undecided) as error:
        raise _CannotCompile(str(error)) from None
    if checked.problems:
        raise _Refused(f"it does not compile: {checked.problems[0].message}")
    return tree, checked


def _program(tree: Expr, checked: Checked) -> Program:
    try:
        return compile_program(tree, checked.overloads)
    except Indeterminate as error:
        raise _CannotCompile(error.why) from None


def _field_path(rule: Schema, schema: Schema) -> str:
    if not rule.get("fieldPath"):
        return ""
    try:
        return resolve(rule["fieldPath"], schema, arrays=True).normal
    except BadReference:
        # The server refuses it in a CRD, and leaves it away where it is there already.
        return ""
    except ServerFails as fails:
        raise _CannotCompile(str(fails)) from None


class Subject:
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
