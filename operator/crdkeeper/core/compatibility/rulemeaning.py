"""What a rule of x-kubernetes-validations means for objects that are valid by the old schema.

This module decides whether a rule holds for every object that is valid by the old schema, and only if that is
certain. A rule that is added in the same release as the fields that it restricts holds for all existing
objects, because they lack these fields; so does a rule that repeats what `required`, `enum` or a limit
already says.

It evaluates the rule with what the schemas imply: a field is absent (new, without a default), present
(required, or with a default, or tested before in the rule), or unknown; && and || absorb what they absorb in
CEL. An unknown part, or an error that nothing absorbs, makes the whole unknown.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.names import escape, unescape
from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    Op,
    Select,
)
from crdkeeper.apiserver.schema.props import PRESERVE, Schema
from crdkeeper.core.compatibility.node import item_schema
from crdkeeper.core.compatibility.ruleparsing import ParsedRules

_MOST_STEPS: Final = 5_000
"""For the evaluation of one rule; beyond this limit, the result is unknown."""
_EVALUATED_PER_STEP: Final = 4

_COMPARISONS: Final = {
    Op.EQUALS: lambda one, other: one == other,
    Op.NOT_EQUALS: lambda one, other: one != other,
    Op.LESS: lambda one, other: one < other,
    Op.LESS_EQUALS: lambda one, other: one <= other,
    Op.GREATER: lambda one, other: one > other,
    Op.GREATER_EQUALS: lambda one, other: one >= other,
}


class ValidValues:
    """The valid values of one field under the schema `old`, which is followed by `new`.

    `elsewhere` are names of fields that objects may have although `old` does not contain them: those of other
    versions.
    """

    def __init__(self, old: Schema, new: Schema, elsewhere: Container[str], rules: ParsedRules) -> None:
        self._field = _Field(old, new, present=True)
        self._rules = rules
        self._schemas = _Schemas(elsewhere)

    def all_satisfy(self, text: str) -> bool:
        """Whether a rule certainly holds for all of them; False if that is unknown. Raises Exhausted."""
        tree = self._rules.tree(text)
        if tree is None:
            return False
        evaluation = _Evaluation(self._schemas)
        try:
            return evaluation.truth(tree, {"self": self._field}, frozenset()) is True
        except RecursionError:
            return False
        finally:
            self._rules.findings.spend(evaluation.steps // _EVALUATED_PER_STEP)


@dataclass(frozen=True, slots=True)
class _Field:
    """A place in the value, with both schemas."""

    old: Schema
    new: Schema
    present: bool
    """Whether every value has it; False: uncertain."""
    trusted: bool = True
    """Whether its value is valid by the old schema; no new default can have set it."""
    absent: bool = False
    """Whether no value has it."""
    path: tuple[str, ...] = ()
    """The fields from the variable to the value, to recognize it in a test."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A known value."""

    kind: str
    value: Any


class _None:
    """The empty optional."""


_NONE: Final = _None()
_Known = _Field | _Value | _None | None
_Scope = Mapping[str, _Field]
_Tested = frozenset[tuple[str, ...]]


class _Schemas:
    """The contents of schemas, each scanned once for all rules: there may be many of both."""

    def __init__(self, elsewhere: Container[str]) -> None:
        self.elsewhere = elsewhere
        self._required: dict[int, frozenset[str]] = {}
        self._enums: dict[int, frozenset[Any]] = {}

    def requires(self, schema: Schema, name: str) -> bool:
        """Whether a field is required."""
        known = self._required.get(id(schema))
        if known is None:
            known = self._required[id(schema)] = frozenset(schema.get("required") or ())
        return name in known

    def enum(self, schema: Schema) -> frozenset[Any]:
        """The strings of an enum; empty if there is none, or if it contains anything else."""
        known = self._enums.get(id(schema))
        if known is None:
            values = schema.get("enum") or ()
            texts = all(isinstance(each, str) for each in values)
            known = self._enums[id(schema)] = frozenset(values if texts else ())
        return known


class _Evaluation:
    def __init__(self, schemas: _Schemas) -> None:
        self._schemas = schemas
        self.steps = 0

    def truth(self, node: Expr, scope: _Scope, tested: _Tested) -> bool | None:
        """The expression's result for every value; None: unknown, or an error."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return None
        if isinstance(node, Literal):
            return node.value if isinstance(node.value, bool) else None
        if isinstance(node, Select) and node.test_only:
            return self._has(self._field(node.operand, node.field, scope, tested))
        if isinstance(node, Macro):
            return self._quantified(node, scope, tested)
        return self._call(node, scope, tested) if isinstance(node, Call) else None

    def _call(self, node: Call, scope: _Scope, tested: _Tested) -> bool | None:
        args = node.args
        if node.function == Op.NOT:
            inner = self.truth(args[0], scope, tested)
            return None if inner is None else not inner
        if node.function in (Op.AND, Op.OR):
            # The value that decides the whole: False for &&, True for ||. The other side absorbs errors.
            decides = node.function == Op.OR
            one = self.truth(args[0], scope, tested)
            other = self.truth(args[1], scope, tested | self._implied(args[0], scope, tested, not decides))
            if decides in (one, other):
                return decides
            return None if None in (one, other) else not decides
        if node.function == Op.CONDITIONAL:
            return self._conditional(args, scope, tested)
        if node.function == Op.IN:
            return self._in(args, scope, tested)
        if node.function == "hasValue" and node.target is not None and not args:
            found = self._value(node.target, scope, tested)
            return False if found is _NONE else None
        if node.function in _COMPARISONS:
            return self._compared(node, scope, tested)
        found = self._value(node, scope, tested)
        return found.value if isinstance(found, _Value) and found.kind == "bool" else None

    def _conditional(self, args: tuple[Expr, ...], scope: _Scope, tested: _Tested) -> bool | None:
        condition = self.truth(args[0], scope, tested)
        results = set()
        for way in (True, False):
            if condition is not (not way):
                branch = args[1] if way else args[2]
                results.add(self.truth(branch, scope, tested | self._implied(args[0], scope, tested, way)))
        # An unknown condition may be an error, which nothing absorbs, unless it is a test for a field.
        certain = condition is not None or self._is_total(args[0], scope, tested)
        return results.pop() if certain and len(results) == 1 else None

    def _is_total(self, node: Expr, scope: _Scope, tested: _Tested) -> bool:
        """Whether the expression is certainly true or false: tests for fields, and combinations of them."""
        if isinstance(node, Call) and node.function in (Op.NOT, Op.AND, Op.OR):
            return all(self._is_total(each, scope, tested) for each in node.args)
        if isinstance(node, Select) and node.test_only:
            found = self._value(node.operand, scope, tested)
            return isinstance(found, _Field) and found.present
        return isinstance(node, Literal)

    def _implied(self, node: Expr, scope: _Scope, tested: _Tested, way: bool) -> _Tested:
        """The fields that are certainly present if the expression's result is `way`."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return frozenset()
        if isinstance(node, Select) and node.test_only and way:
            around = self._value(node.operand, scope, tested)
            found = self._field(node.operand, node.field, scope, tested)
            # Testing for a field of an absent value is an error, which implies nothing.
            total = isinstance(around, _Field) and around.present
            return frozenset((found.path,)) if total and isinstance(found, _Field) else frozenset()
        if isinstance(node, Call) and node.function == Op.NOT:
            return self._implied(node.args[0], scope, tested, not way)
        if isinstance(node, Call) and node.function == (Op.AND if way else Op.OR):
            first = self._implied(node.args[0], scope, tested, way)
            return first | self._implied(node.args[1], scope, tested | first, way)
        return frozenset()

    def _has(self, found: _Known) -> bool | None:
        if isinstance(found, _Field):
            if found.absent:
                return False
            return True if found.present else None
        return False if found is _NONE else None

    def _field(self, operand: Expr, name: str, scope: _Scope, tested: _Tested) -> _Known:
        """A field of an object; None if nothing is known about it."""
        around = self._value(operand, scope, tested)
        if not isinstance(around, _Field) or around.absent:
            return _NONE if around is _NONE else None
        old, new = (_property(each, name) for each in (around.old, around.new))
        if new is None:
            return None
        path = (*around.path, name)
        if old is None:
            if (
                around.old.get(PRESERVE)
                or around.old.get("additionalProperties")
                or unescape(name) in self._schemas.elsewhere
            ):
                return None
            # Testing for a field of an absent value is an error, which refuses the object.
            absent = around.present and around.trusted and "default" not in new
            return _Field(
                new, new, around.present and "default" in new, trusted=False, absent=absent, path=path
            )
        nullable = old.get("nullable") or new.get("nullable")
        required = around.trusted and self._schemas.requires(around.old, unescape(name) or "")
        certain = path in tested or (around.present and (required or "default" in new))
        trusted = around.trusted and ("default" not in new or old.get("default") == new["default"])
        return _Field(old, new, certain and not nullable, trusted=trusted, path=path)

    def _value(self, node: Expr, scope: _Scope, tested: _Tested) -> _Known:
        if isinstance(node, Literal):
            return _Value(node.kind, node.value)
        if isinstance(node, Identifier):
            return scope.get(node.name)
        if isinstance(node, Select) and not node.test_only:
            found = self._field(node.operand, node.field, scope, tested)
            # Selecting a field of an absent value is an error.
            return None if isinstance(found, _Field) and found.absent else found
        if not isinstance(node, Call):
            return None
        if node.function == Op.OPT_SELECT and isinstance(node.args[1], Literal):
            found = self._field(node.args[0], str(node.args[1].value), scope, tested)
            return _NONE if found is _NONE or (isinstance(found, _Field) and found.absent) else None
        if node.function == "orValue" and node.target is not None and len(node.args) == 1:
            return self._value(node.args[0], scope, tested) if self._is_none(node, scope, tested) else None
        return None

    def _is_none(self, node: Call, scope: _Scope, tested: _Tested) -> bool:
        return node.target is not None and self._value(node.target, scope, tested) is _NONE

    def _in(self, args: tuple[Expr, ...], scope: _Scope, tested: _Tested) -> bool | None:
        one, other = self._value(args[0], scope, tested), args[1]
        if not isinstance(other, ListLiteral) or not all(
            isinstance(each, Literal) for each in other.elements
        ):
            return None
        among = {(each.kind, each.value) for each in other.elements if isinstance(each, Literal)}
        if isinstance(one, _Value):
            return (one.kind, one.value) in among
        if not isinstance(one, _Field) or not one.present or not one.trusted:
            return None
        values = self._schemas.enum(one.old) if _type(one) == "string" else frozenset()
        self.steps += len(among)
        # The first test avoids scanning an enum of many strings for each of many rules.
        held = 0 < len(values) <= len(among) and all(("string", each) in among for each in values)
        return True if held else None

    def _compared(self, node: Call, scope: _Scope, tested: _Tested) -> bool | None:
        one, other = (self._value(each, scope, tested) for each in node.args)
        if isinstance(one, _Value) and isinstance(other, _Value):
            if one.kind != other.kind or one.kind not in ("int", "string", "bool"):
                return None
            return bool(_COMPARISONS[Op(node.function)](one.value, other.value))
        return self._limited(node, scope, tested)

    def _limited(self, node: Call, scope: _Scope, tested: _Tested) -> bool | None:
        """A comparison with a number that follows from a limit of the old schema."""
        bound = node.args[1]
        if not isinstance(bound, Literal) or bound.kind != "int" or not isinstance(bound.value, int):
            return None
        measured = node.args[0]
        low, high = self._range(measured, scope, tested)
        if node.function == Op.GREATER_EQUALS:
            return True if low is not None and low >= bound.value else None
        if node.function == Op.GREATER:
            return True if low is not None and low > bound.value else None
        if node.function == Op.LESS_EQUALS:
            return True if high is not None and high <= bound.value else None
        if node.function == Op.LESS:
            return True if high is not None and high < bound.value else None
        return None

    def _range(self, node: Expr, scope: _Scope, tested: _Tested) -> tuple[float | None, float | None]:
        sized = isinstance(node, Call) and node.function == "size"
        inner = (node.target or node.args[0]) if isinstance(node, Call) and sized else node
        found = self._value(inner, scope, tested)
        if not isinstance(found, _Field) or not found.present or not found.trusted:
            return None, None
        old = found.old
        if not sized:
            # An exclusive limit is at least as strict.
            return (old.get("minimum"), old.get("maximum")) if _type(found) == "integer" else (None, None)
        name = {"string": "Length", "array": "Items"}.get(_type(found))
        if name is None:
            return None, None
        return old.get(f"min{name}", 0), old.get(f"max{name}")

    def _quantified(self, node: Macro, scope: _Scope, tested: _Tested) -> bool | None:
        """`all` over the items of a list that is certainly present."""
        found = self._value(node.target, scope, tested)
        if (
            node.name != "all"
            or len(node.variables) != 1
            or not isinstance(found, _Field)
            or not found.present
        ):
            return None
        old, new = item_schema(found.old), item_schema(found.new)
        if old is None or new is None:
            return None
        certain = not (old.get("nullable") or new.get("nullable"))
        item = _Field(old, new, present=certain, trusted=found.trusted, path=(f"@{node.offset}",))
        return True if self.truth(node.body, {**scope, node.variables[0]: item}, tested) is True else None


def _type(field: _Field) -> str:
    """The type of a field in both schemas; empty if they differ or have none."""
    found = field.old.get("type")
    return str(found) if found and found == field.new.get("type") else ""


def _property(schema: Schema, name: str) -> Schema | None:
    """The schema of a field by its name in CEL."""
    real = unescape(name)
    if real is None or escape(real) != name:
        return None
    found = (schema.get("properties") or {}).get(real)
    return found if isinstance(found, dict) else None
