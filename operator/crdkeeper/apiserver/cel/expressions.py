"""The entry point for other expressions, and the conversion of values to and from CEL.

`compile_expression` checks an expression against the types of its variables and makes a program of it. The
types come from schemas (`declare`), values are bound to them (`converter`), and an `Account` limits the cost
of evaluations. The rules of x-kubernetes-validations have their own entry point: `compilation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crdkeeper.apiserver.cel.counting.program import MOST_WORK, STOPPED, CountedProgram
from crdkeeper.apiserver.cel.program.instantiation import problem_of_program
from crdkeeper.apiserver.cel.program.literals import problems_of_literals
from crdkeeper.apiserver.cel.run.binding import NO_BASE64, converter, unchecked_value, whole_converter
from crdkeeper.apiserver.cel.run.bound import BoundList, BoundMap, UnseenData
from crdkeeper.apiserver.cel.run.budget import CALL_LIMIT, EXHAUSTED, OBJECT_LIMIT
from crdkeeper.apiserver.cel.run.evaluate import OF_RULES, Account, Program, compile_program
from crdkeeper.apiserver.cel.syntax.messages import rendered
from crdkeeper.apiserver.cel.syntax.names import escape
from crdkeeper.apiserver.cel.syntax.nodes import CelDepthError, CelSyntaxError, Expr, Problem
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types.checker import Checked, UndecidedExpression, check
from crdkeeper.apiserver.cel.types.declared import declare, embedded
from crdkeeper.apiserver.cel.types.types import DYN, STRING, Type, list_of, unwrap_optional
from crdkeeper.apiserver.cel.values.values import Indeterminate

__all__ = [
    "CALL_LIMIT",
    "DYN",
    "EXHAUSTED",
    "MOST_WORK",
    "NO_BASE64",
    "OBJECT_LIMIT",
    "STOPPED",
    "STRING",
    "Account",
    "BadExpression",
    "BoundList",
    "BoundMap",
    "CompiledExpression",
    "CountedProgram",
    "Program",
    "Type",
    "UnseenData",
    "compile_expression",
    "compile_program",
    "converter",
    "declare",
    "embedded",
    "escape",
    "list_of",
    "unchecked_value",
    "unwrap_optional",
    "whole_converter",
]


class BadExpression(ValueError):
    """An expression that does not compile, or does not match the schemas; the text says why."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        """The errors one by one, with their places, if that is known."""


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression that compiles."""

    type: Type
    """The type of its values."""
    _tree: Expr
    _checked: Checked

    def program(self, variables: Sequence[str] = OF_RULES) -> Program:
        """The function that evaluates it with these variables. Raises BadExpression."""
        try:
            return compile_program(self._tree, self._checked.overloads, variables=variables)
        except Indeterminate as error:
            raise BadExpression(error.why) from None


def compile_expression(
    text: str, variables: Mapping[str, Type], *, mixed: bool = False
) -> CompiledExpression:
    """Compile an expression over variables of these types, with the newest functions. Raises BadExpression.

    `mixed` allows list and map literals with elements of several types.
    """
    if not text.isascii() and text.encode(errors="replace").decode() != text:
        raise BadExpression("holds half of a surrogate pair")
    try:
        tree = parse(text)
        checked = check(tree, variables, stored=True)
        problems = checked.problems or problems_of_literals(tree, checked, mixed=mixed)
        if problems:
            raise BadExpression(rendered(text, problems), problems)
        problem = problem_of_program(tree, checked)
    except CelSyntaxError as error:
        raise BadExpression(rendered(text, error.problems), error.problems) from None
    except (CelDepthError, UndecidedExpression) as error:
        raise BadExpression(str(error)) from None
    except RecursionError:
        raise BadExpression("is nested too deep") from None
    if problem is not None:
        raise BadExpression(problem)
    return CompiledExpression(checked.types[tree], tree, checked)
