"""One expression of a Composition: compiled with the types of its variables, evaluated on their values."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from crdkeeper.apiserver.cel.expressions import (
    EXHAUSTED,
    BadExpression,
    Program,
    Type,
    compile_expression,
    unwrap_optional,
)
from crdkeeper.apiserver.cel.syntax.names import unescape
from crdkeeper.apiserver.cel.syntax.nodes import CelDepthError, CelSyntaxError, Problem
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.values.unordered import NO_ORDER
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Value
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.expressions import essence
from crdkeeper.core.templates.environment import COMPOSITE, Environment, NotYet, NoValue
from crdkeeper.core.templates.problem import Problems
from crdkeeper.core.templates.readings import Reading, readings
from crdkeeper.core.templates.texts import Embedded
from crdkeeper.core.templates.variables import TemplateVariable

MOST_CHARACTERS: Final = 200_000
"""Of all expressions of a Composition: about two seconds of compilation."""
MOST_EXPRESSIONS: Final = 5_000
"""Of a Composition: each takes 0.1 milliseconds and 1.5 KB, however short."""
_COST_OF_DOUBLING: Final = 12
_MOST_DOUBLINGS: Final = 20
_SHOWN: Final = 8
_COMPARED: Final = 200
_ABSENT: Final = ("no such key", "index out of bounds", "index out of range", "no such attribute")
_PLAIN: Final = frozenset(("bool", "int", "uint", "double", "timestamp", "duration", "bytes", "dyn", "any"))
_TOO_EXPENSIVE: Final = "it is too expensive: let the lists or texts that it reads be shorter"
_TO_TEXT: Final = "string("
_SORT: Final = "Sort what is made of it first, with .sort()."
_LITERAL: Final = "Write $${ for a literal ${."
_SHELL: Final = re.compile(r"\w+(?::?[-=?+]|[:#%^,@])")
"""How the parameters of a shell begin that are more than a name."""
_IDENTITY: Final = (("metadata", "name"), ("metadata", "namespace"))
"""What is known of an object before it exists, and remains."""
_OF_CLUSTERS: Final = frozenset(
    ("metadata", each) for each in ("uid", "creationTimestamp", "generation", "resourceVersion")
)
"""Fields that every composite in a cluster has, and no file."""


class ExpressionAllowance:
    """How many expressions, with how many characters, may still be compiled."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS
        self._expressions = MOST_EXPRESSIONS

    def spend(self, text: str) -> str | None:
        """Count an expression: what is exceeded by it; None if it may be compiled, too."""
        # Each of these macros has its target twice, so that a chain of them doubles with each.
        doublings = min(text.count("optMap") + text.count("optFlatMap"), _MOST_DOUBLINGS)
        self._left -= len(text) + (_COST_OF_DOUBLING << doublings if doublings else 0)
        self._expressions -= 1
        if self._expressions < 0:
            return f"more than {MOST_EXPRESSIONS:,} expressions in total"
        if self._left >= 0:
            return None
        message = f"the expressions have more than {MOST_CHARACTERS:,} characters in total"
        return f"{message}, or too many of optMap and optFlatMap" if doublings else message


@dataclass(frozen=True)
class TemplateScope:
    """The variables that an expression sees."""

    variables: Mapping[str, TemplateVariable]
    hidden: frozenset[str] = frozenset()
    """The resources that it does not see."""
    because: str = ""
    """Why not, as a hint."""
    decides: bool = False
    """Whether its expressions decide which objects there are: these see only what exists, and identities."""

    @cached_property
    def types(self) -> Mapping[str, Type]:
        """Those of the variables."""
        return {name: each.type for name, each in self.variables.items()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Those of the variables, one object for all programs."""
        return tuple(self.variables)


@dataclass(frozen=True, slots=True)
class TemplateExpression:
    """An expression that compiles."""

    path: Path
    column: int
    type: Type
    readings: tuple[Reading, ...]
    decides: bool
    _program: Program
    _before: int
    """How many characters of the program come before those of the expression."""

    def evaluate(self, environment: Environment) -> Value:
        """Its value. Raises NotYet if one that it reads is not there, NoValue if there is none."""
        for each in self.readings:
            exists = self.decides and each.steps not in _IDENTITY
            environment.demand(each.name, self.path, optional=each.optional, exists=exists)
        try:
            return self._program.evaluate(environment.values, environment.account)
        except EvaluationError as error:
            self._absent(environment, error)
            raise no_value(self.path, self.column, error.message) from None
        except Indeterminate as error:
            raise no_value(self.path, self.column, error.why) from None

    def _absent(self, environment: Environment, error: EvaluationError) -> None:
        """Raise an exception that names what is absent, if that is why the evaluation failed."""
        if not error.message.startswith(_ABSENT):
            return
        offset = error.offset - self._before if error.offset is not None else None
        for each in self.readings:
            if offset not in each.offsets or not environment.is_object(each.name):
                continue
            missing = each.steps[: each.offsets.index(offset) + 1]
            named = shown(each.name, missing)
            if each.name == COMPOSITE and missing in _OF_CLUSTERS:
                raise NotYet(f"{named}, which is known in a cluster only", self.path)
            if each.name == COMPOSITE:
                raise NoValue(
                    self.path, self.column, f"{named} is not set", "Ask with ?, or give it a default."
                )
            raise NotYet(named, self.path)
        others = sorted({each.name for each in self.readings if each.name in environment.resources})
        if others:
            raise NotYet(f"a value of {' or '.join(others)}", self.path)


def no_value(path: Path, column: int, message: str) -> NoValue:
    """The exception for an error of CEL, with what may be shown of its message, which can contain values."""
    if message == NO_ORDER:
        return NoValue(path, column, "a map has no order", _SORT)
    reason = essence(message)
    return NoValue(path, column, _TOO_EXPENSIVE if reason == EXHAUSTED else reason)


def shown(name: str, steps: Sequence[str | int]) -> str:
    """A path of fields as an expression has it."""
    return name + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps)


def compile_embedded(
    embedded: Embedded,
    path: Path,
    scope: TemplateScope,
    allowance: ExpressionAllowance,
    problems: Problems,
    *,
    as_text: bool = False,
) -> TemplateExpression | None:
    """Compile an expression; None if it has a problem. `as_text` converts its value to a string."""
    column = embedded.start + 1
    exceeded = allowance.spend(embedded.text)
    if exceeded is not None:
        problems.add(path, exceeded, "Split the Composition.")
        return None
    try:
        read = tuple(readings(parse(embedded.text)))
        compiled = compile_expression(embedded.text, scope.types, mixed=True)
        type_ = compiled.type
        before = 0
        if as_text:
            problem = _no_text(type_)
            if problem is not None:
                problems.add(path, *problem, column)
                return None
            # In a line of its own, because the expression may end in a comment.
            before = len(_TO_TEXT)
            compiled = compile_expression(f"{_TO_TEXT}{embedded.text}\n)", scope.types, mixed=True)
        program = compiled.program(scope.names)
    except CelSyntaxError as error:
        hint = _LITERAL if _SHELL.match(embedded.text) else ""
        problems.add(path, error.message, hint, column + max(error.offset, 0))
    except BadExpression as error:
        if not error.problems:
            problems.add(path, str(error), "", column)
        for each in error.problems[:_SHOWN]:
            hint = _hint(embedded.text, each, read, scope)
            problems.add(
                path, each.message.removesuffix(" (in container '')"), hint, column + max(each.offset, 0)
            )
    except (CelDepthError, RecursionError):
        problems.add(path, "the expression is nested too deep", "Split it.", column)
    else:
        found = compiled.type if as_text else type_
        return TemplateExpression(path, column, found, read, scope.decides, program, before)
    return None


def _no_text(type_: Type) -> tuple[str, str] | None:
    """Why values of a type are no part of a text, and what to do; None if they are."""
    inner, optional = unwrap_optional(type_)
    if optional:
        return "an optional value cannot be a part of a text", "Append .orValue('…')."
    if inner.kind == "string" or inner.kind in _PLAIN:
        return None
    return (
        f"a value of type {inner.text} cannot be a part of a text",
        "Select a field of it, or join a list with .join(',').",
    )


def _hint(text: str, problem: Problem, read: Sequence[Reading], scope: TemplateScope) -> str:
    message, offset = problem.message, problem.offset
    if message.startswith("undeclared reference to '"):
        name = message.split("'")[1]
        if name in scope.hidden:
            return scope.because
        hint = alternatives(name, tuple(scope.variables), "Known are")
        return f"{hint} {_LITERAL}" if text.strip() == name and hint.startswith("Known") else hint
    if message.startswith("found no matching overload") and "optional_type(" in message:
        return "Append .orValue(…) to what is optional."
    if message.startswith("undefined field '"):
        for each in read:
            if offset in each.offsets and each.name in scope.variables:
                at = each.offsets.index(offset)
                fields = _fields(scope.variables[each.name].schema, each.steps[:at])
                owner = shown(each.name, each.steps[:at])
                if not fields:
                    return f"The schema declares no field of {owner}, so that expressions cannot read one."
                return alternatives(str(each.steps[at]), fields, f"{owner} has")
    return ""


def _fields(schema: Schema | None, steps: Sequence[str | int]) -> Sequence[str]:
    for step in steps:
        if schema is None:
            return ()
        properties = schema.get("properties") or {}
        inner = schema.get("items") if isinstance(step, int) else schema.get("additionalProperties")
        found = properties.get(step, properties.get(unescape(str(step)) or "", inner))
        schema = found if isinstance(found, Mapping) else None
    return tuple((schema or {}).get("properties") or {})


def alternatives(name: str, known: Sequence[str], have: str) -> str:
    """A hint with the name that is meant, or with all."""
    if not known:
        return ""
    similar = difflib.get_close_matches(name[:_COMPARED], known[:_COMPARED], 1)
    if similar:
        return f"Did you mean {similar[0]}?"
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{have} {', '.join(known[:_SHOWN])}{more}."
