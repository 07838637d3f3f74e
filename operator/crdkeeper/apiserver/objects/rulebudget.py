"""How the rules for one object are evaluated: bounded at first, and counted if the bound exceeds a limit.

The API server limits the cost of each evaluation, and of all evaluations for an object together. A bound of
the cost is nearly free, and shows for nearly all objects that they stay below the limits. Otherwise all rules
are evaluated again, with the exact cost, and the walk ends where the server's ends. Follows
validateExpressions and evalMessageExpression (apiextensions-apiserver:
pkg/apiserver/schema/cel/validation.go).
"""

from collections.abc import Callable
from typing import Final, Protocol

from crdkeeper.apiserver.cel.expressions import CALL_LIMIT, MOST_WORK, STOPPED, Account
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Value
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.objects.rulecompilation import RuleProgram, Variables
from crdkeeper.apiserver.schema.quotes import Quotes

_NO_MORE: Final = "no further validation rules will be run"
_CALL: Final = f"{_NO_MORE} due to call cost exceeds limit for"
_OUT_OF_BUDGET: Final = f"failed due to running out of cost budget, {_NO_MORE}"
_BY_CHANCE: Final = "the cost depends on the order in which the API server goes through a map"


class Ended(Exception):
    """The API server evaluates no more rules for the object; with its message."""

    def __init__(self, detail: str, *, by_call: bool) -> None:
        """`by_call` says whether one evaluation alone exceeds the limit, however much is left."""
        super().__init__(detail)
        self.detail = detail
        self.by_call = by_call


class Unknown(Exception):
    """It is unknown whether the API server evaluates more rules; the text says why."""


class OverLimit(Exception):
    """The bound of the cost exceeds a limit: only a count can tell."""


class RuleRun(Protocol):
    """The evaluation of all rules for one object."""

    quotes: Quotes
    """What may be quoted in what is said of them."""

    def begin(self) -> None:
        """Called before the first rule of a node. Raises Ended and Unknown."""

    def rule(self, program: RuleProgram, variables: Variables, shown: str) -> Value:
        """The value of a rule. Raises EvaluationError, Indeterminate, Ended, Unknown and OverLimit."""

    def message(self, program: RuleProgram, variables: Variables, source: str) -> Value:
        """The value of a messageExpression. Raises as `rule` does."""


class BoundedRun:
    """Evaluations whose cost has an upper bound."""

    def __init__(self, account: Account) -> None:
        self.quotes = Quotes()
        self._account = account

    def begin(self) -> None:
        if self._account.left <= 0:
            raise OverLimit

    def rule(self, program: RuleProgram, variables: Variables, shown: str) -> Value:
        return self._evaluated(program, variables)

    def message(self, program: RuleProgram, variables: Variables, source: str) -> Value:
        return self._evaluated(program, variables)

    def _evaluated(self, program: RuleProgram, variables: Variables) -> Value:
        try:
            return program.bounded.evaluate(variables, self._account)
        except Indeterminate:
            if self._account.exhausted:
                raise OverLimit from None
            raise


class CountedRun:
    """Evaluations whose cost is counted."""

    def __init__(self, left: int, most: int) -> None:
        """The remaining budget: its minimum and its maximum."""
        self.quotes = Quotes()
        self.left = left
        self.most = most
        self.work = 0
        """The work that it has taken us."""

    def begin(self) -> None:
        if self.most <= 0:
            raise Ended(f"validation {_OUT_OF_BUDGET}", by_call=False)
        if self.left <= 0:
            raise Unknown("how much of the cost budget is left")

    def rule(self, program: RuleProgram, variables: Variables, shown: str) -> Value:
        return self._evaluated(
            program, variables, f"validation {_OUT_OF_BUDGET}", lambda: f"'{STOPPED}': {_CALL} rule: {shown}"
        )

    def message(self, program: RuleProgram, variables: Variables, source: str) -> Value:
        return self._evaluated(
            program,
            variables,
            f"messageExpression evaluation {_OUT_OF_BUDGET}",
            lambda: f"{_CALL} messageExpression: {quote(source)}",
        )

    def _evaluated(
        self, program: RuleProgram, variables: Variables, no_budget: str, no_call: Callable[[], str]
    ) -> Value:
        try:
            counted = program.counted.evaluate(variables, work=MOST_WORK - self.work)
        except Indeterminate as error:
            self.work = MOST_WORK  # as far as is known
            raise Unknown(error.why) from None
        self.work += counted.work
        least = greatest = counted.cost
        if counted.by_chance:
            least, greatest = 0, self._bound(program, variables)
            if counted.stopped:
                raise Unknown(_BY_CHANCE)
        if least > self.most:
            raise Ended(no_budget, by_call=False)
        if greatest > self.left:
            raise Unknown(_BY_CHANCE if counted.by_chance else "how much of the cost budget is left")
        self.left -= greatest
        self.most -= least
        if counted.stopped:
            raise Ended(no_call(), by_call=True)
        if isinstance(counted.value, EvaluationError):
            raise counted.value
        return counted.value

    @staticmethod
    def _bound(program: RuleProgram, variables: Variables) -> int:
        """The maximum cost. Raises Unknown."""
        account = Account(CALL_LIMIT)
        try:
            program.bounded.evaluate(variables, account)
        except EvaluationError:
            pass
        except Indeterminate:
            raise Unknown(_BY_CHANCE) from None
        return CALL_LIMIT - account.left
