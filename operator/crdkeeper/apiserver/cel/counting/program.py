"""An expression whose evaluation is counted.

    counted = CountedProgram(tree, checked).evaluate({"self": bind(data, schema)})

It gives what `run` gives, and the exact cost, but takes several times as long: it is for evaluations whose
cost may be above a limit of the API server.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.cel.counting.plan import Planner
from crdkeeper.apiserver.cel.counting.tracker import Stopped, Tracker
from crdkeeper.apiserver.cel.run.budget import CALL_LIMIT
from crdkeeper.apiserver.cel.syntax.nodes import Expr
from crdkeeper.apiserver.cel.types.checker import Checked
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    Aborted,
    EvaluationError,
    Indeterminate,
    Value,
)

MOST_WORK: Final = 20_000_000
"""Our own steps for one object, whatever the server's count: some seconds."""
_NAMES: Final = ("self", "oldSelf")


@dataclass(frozen=True, slots=True)
class Counted:
    """The result of an evaluation."""

    value: Value
    """An EvaluationError if there is none; the one with STOPPED if the API server stops the evaluation."""
    cost: int
    """If the evaluation is stopped, the cost until then."""
    work: int
    """The work that it took us."""
    stopped: bool = False
    by_chance: bool = False
    """Whether the cost depends on the order in which the server iterates over a map."""


STOPPED: Final = "operation cancelled: actual cost limit exceeded"


class CountedProgram:
    """The plan of an expression, in the steps of the server's interpreter."""

    __slots__ = ("_slots", "_start")

    def __init__(self, tree: Expr, checked: Checked) -> None:
        """Raises Indeterminate if the server's plan is unknown."""
        planner = Planner(checked, _NAMES)
        try:
            self._start = planner.plan(tree)
        except RecursionError:
            raise Indeterminate("the expression is nested too deeply") from None
        self._slots = [None] * (planner.slots - len(_NAMES))

    def evaluate(
        self, variables: Mapping[str, Value], *, limit: int = CALL_LIMIT, work: int = MOST_WORK
    ) -> Counted:
        """The value and the cost; `work` is the maximum number of our own steps.

        Raises Indeterminate.
        """
        slots = [*(variables.get(name, MISSING) for name in _NAMES), *self._slots]
        tracker = Tracker(slots, limit, work)
        stopped = False
        try:
            value = self._start.run(tracker)
        except Stopped:
            value, stopped = EvaluationError(STOPPED), True
        except Aborted as aborted:
            value = EvaluationError(aborted.message)
        except RecursionError:
            raise Indeterminate("the expression or the data are nested too deeply") from None
        except UnicodeEncodeError:
            raise Indeterminate("a text that holds half of a surrogate pair") from None
        by_chance = tracker.by_chance
        if stopped and tracker.unordered and not by_chance:
            # In another order a loop may end before the limit; if it ends in none, all orders cost the same.
            whole = self.evaluate(variables, limit=sys.maxsize, work=tracker.work)
            tracker.work -= whole.work
            by_chance = whole.by_chance
        return Counted(value, tracker.cost, work - tracker.work, stopped, by_chance)
