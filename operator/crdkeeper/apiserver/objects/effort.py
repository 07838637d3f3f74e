"""Limits the work caused by untrusted schemas: a value may have to be tried on many branches and patterns.

RE2 is linear in the text, but with a factor of the author's choice: the size of the pattern's program. Each
match has its own limit; a caller that checks many values limits all of them together, see `limited`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from crdkeeper.apiserver.schema.finding import UndecidedValue

_MOST_STEPS: Final = 10_000_000
"""Steps of one match at most; a machine does 10⁹ in a second, but only 10⁷ for a malicious pattern."""
_LARGEST: Final = 20_000
"""Instructions of a program; larger ones take up to 1 µs for each of them and each character."""
_STEPS_PER_INSTRUCTION: Final = 2_000
"""The cost of compiling a program, in the same unit."""
_STEPS_PER_NODE: Final = 500
"""The cost of compiling one node of a schema."""
_STEPS_PER_BRANCH: Final = 1_000
"""The cost of trying a value on one branch of anyOf, oneOf, allOf or not, or on one value of an enum."""
_STEPS_PER_PART: Final = 100
"""The cost of going through one item or entry of a value on a branch."""
_STEPS_PER_QUOTED: Final = 10
"""The cost of checking the format of one character on a branch, and of quoting it."""
_STEPS_PER_DEFAULT: Final = 200
"""The cost of adding one value of a default, which takes about 100 bytes of memory."""
_STEPS_PER_CHARACTER: Final = 100
"""The cost of compiling one character of an expression: 1 to 2 µs in expressions of many short terms.

The nodes that macros add take as much at least, however few characters make them.
"""
_STEPS_PER_EXPRESSION: Final = 5_000
"""The cost of compiling an expression, however short."""
_STEPS_PER_COST: Final = 10
"""The cost of evaluating what CEL counts as one."""


SHARE: Final = 1_000_000
"""Steps for each of many values; those in use need a hundredth."""
SHARE_OF_BYTE: Final = 500
"""The same for each of its bytes, which patterns and conversions read several times."""
RESERVE: Final = 500_000_000
"""Steps for those of many values that need more: five to ten seconds if they are made to be slow."""


class StepAllowance:
    """Steps that may be spent, in one go or in several."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def is_exceeded(self) -> bool:
        """Whether more was requested than was left, so that something was left unchecked."""
        return self.left < 0

    def spend(self, steps: int) -> None:
        """Raises UndecidedValue if nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise UndecidedValue("to check all values by the schema may take too long")


class _OneOfMany(StepAllowance):
    """That of a value among many."""


class SharedAllowance:
    """The steps for many values: each has a share by its size, and all have a reserve for what needs more.

    So the time grows with the size of all values, whatever they are, and no value leaves another without its
    share.
    """

    def __init__(self, reserve: int = RESERVE) -> None:
        self._reserve = reserve

    @contextmanager
    def for_one(self, size: int) -> Iterator[StepAllowance]:
        """Limit the checks of a value, which has that many bytes.

        If its allowance is exceeded, their results are not certain.
        """
        one = _OneOfMany(SHARE + size * SHARE_OF_BYTE + self._reserve)
        try:
            with limited(one):
                yield one
        finally:
            self._reserve = max(0, min(self._reserve, one.left))


_ALLOWANCES: ContextVar[tuple[StepAllowance, ...]] = ContextVar("allowances", default=())


@contextmanager
def limited(steps: int | StepAllowance) -> Iterator[None]:
    """Limit the steps of all checks inside; a limit inside another counts towards that one too.

    A machine does 10⁸ steps in 0.2 seconds, and in a second or two for a malicious schema.
    """
    allowance = steps if isinstance(steps, StepAllowance) else StepAllowance(steps)
    token = _ALLOWANCES.set((*_ALLOWANCES.get(), allowance))
    try:
        yield
    finally:
        _ALLOWANCES.reset(token)


def spend_on_program(size: int) -> None:
    """Count the compilation of a program, whose size is known afterwards.

    Raises UndecidedValue if nothing is left: call it before compilation, without a size.
    """
    if size > _LARGEST:
        raise UndecidedValue("the pattern may take too long")
    _spend(size * _STEPS_PER_INSTRUCTION)


def spend_on_match(size: int, text: str) -> None:
    """Count a match of a program with a text. Raises UndecidedValue if that would be too much."""
    steps = size * (len(text) or 1)
    if steps > _MOST_STEPS:
        raise UndecidedValue("to match the pattern with this value may take too long")
    _spend(steps)


def spend_on_nodes(count: int) -> None:
    """Count nodes of a schema that is compiled. Raises UndecidedValue."""
    _spend(count * _STEPS_PER_NODE)


def spend_on_branches(count: int) -> None:
    """Count branches or values that a value is tried on one by one. Raises UndecidedValue."""
    _spend(count * _STEPS_PER_BRANCH)


def spend_on_parts(value: list[Any] | dict[str, Any]) -> None:
    """Count the items or entries of a value on a branch. Raises UndecidedValue."""
    _spend(len(value) * _STEPS_PER_PART)


def spend_on_format(text: str) -> None:
    """Count the check of a format on a branch. Raises UndecidedValue."""
    _spend(len(text) * _STEPS_PER_QUOTED)


def spend_on_defaults(count: int) -> None:
    """Count values that are added as defaults. Raises UndecidedValue."""
    _spend(count * _STEPS_PER_DEFAULT)


def spend_on_expressions(sizes: Sequence[int]) -> None:
    """Count the characters of CEL expressions that are compiled. Raises UndecidedValue."""
    _spend(sum(sizes) * _STEPS_PER_CHARACTER + len(sizes) * _STEPS_PER_EXPRESSION)


def spend_on_expansion(nodes: int) -> None:
    """Count the nodes that macros add to a CEL expression. Raises UndecidedValue."""
    _spend(nodes * _STEPS_PER_CHARACTER)


def affordable_cost(cost: int) -> int:
    """What an evaluation of CEL with this limit may cost; if that is less, it may have to be left open."""
    left = [each.left // _STEPS_PER_COST for each in _ALLOWANCES.get() if isinstance(each, _OneOfMany)]
    return max(0, min([cost, *left]))


def count_evaluation(cost: int) -> None:
    """Count an evaluation of CEL; only allowances shared by many values do, as it has its own limit."""
    for each in _ALLOWANCES.get():
        if isinstance(each, _OneOfMany):
            each.left -= cost * _STEPS_PER_COST


def _spend(steps: int) -> None:
    for each in _ALLOWANCES.get():
        each.spend(steps)
