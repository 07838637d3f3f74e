"""Runs CEL: an expression is compiled once to Python closures, and evaluated many times.

    program = compile_program(parse(text))
    value = program.evaluate({"self": bind(data, schema), "oldSelf": bind(old, schema)})

`evaluate` returns a value of CEL (see `values`), or raises EvaluationError(message) with cel-go's words for
a run-time error, or Indeterminate(why) where the server's result cannot be known: it may run out of its
cost budget, or the result depends on what only it has. An absent `oldSelf` is left out; an optional one is
`NONE` or `OptionalValue(…)` of `containers`. Who has other variables names them to compile_program. The
expression must have passed the checker; one that has not is evaluated as far as its values allow.

`overloads` of the checker's result, handed to compile_program, tells what the sum of an empty list is;
without it some such sums are Indeterminate. An `Account` adds up the cost of all rules for one object.

Order matters as in cel-go: && and || absorb errors, the ternary operator and optionals evaluate one side
only, `!=` is true where comparing fails.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crdkeeper.apiserver.cel.run import budget
from crdkeeper.apiserver.cel.run.budget import EXHAUSTED, Account, Frame
from crdkeeper.apiserver.cel.run.compiler import Compiler
from crdkeeper.apiserver.cel.run.comprehensions import Run
from crdkeeper.apiserver.cel.syntax.nodes import Call, Expr
from crdkeeper.apiserver.cel.values.values import MISSING, Aborted, EvaluationError, Indeterminate, Value

__all__ = ["Account", "EvaluationError", "Indeterminate", "Program", "compile_program"]

OF_RULES: Final = ("self", "oldSelf")
"""The variables of x-kubernetes-validations."""


class Program:
    """A compiled expression."""

    __slots__ = ("_cost", "_run", "_slots", "_variables")

    def __init__(self, run: Run, slots: int, cost: int, variables: Sequence[str]) -> None:
        self._run = run
        self._variables = variables
        self._slots = [None] * slots
        self._cost = cost

    def evaluate(self, variables: Mapping[str, Value], account: Account | None = None) -> Value:
        """The value of the expression; see the module. The account, if there is one, is charged."""
        limit = budget.CALL_LIMIT
        if account is not None and account.left < limit:
            # What costs more is Indeterminate in any case, so it need not run to its end.
            limit = max(0, account.left)
        start = limit - self._cost
        frame: Frame = [
            start,
            *[variables.get(name, MISSING) for name in self._variables],
            *self._slots,
        ]
        try:
            return self._run(frame)
        except Aborted as aborted:
            raise EvaluationError(aborted.message) from None
        except RecursionError:
            raise Indeterminate("the expression or the data are nested too deeply") from None
        except UnicodeEncodeError:
            raise Indeterminate("a text that holds half of a surrogate pair") from None
        finally:
            if account is not None:
                account.left -= self._cost + start - frame[0]
                if account.left < 0 or frame[0] < 0:
                    account.exhausted = True
                    raise Indeterminate(EXHAUSTED)


def compile_program(
    expression: Expr,
    overloads: Mapping[Call, Sequence[str]] | None = None,
    *,
    variables: Sequence[str] = OF_RULES,
) -> Program:
    """The program of an expression. Raises Indeterminate for an expression that is nested too deeply.

    Without `variables`, these are the ones of rules.
    """
    compiler = Compiler(overloads or {}, variables)
    try:
        run = compiler.compile(expression)
    except RecursionError:
        raise Indeterminate("the expression is nested too deeply") from None
    return Program(run, compiler.slots - len(variables) - 1, compiler.cost, variables)
