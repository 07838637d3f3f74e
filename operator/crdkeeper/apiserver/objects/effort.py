"""Bounds the work that patterns of others make: RE2 is linear in the text, but by a factor of their choice.

That factor is the size of the program of the pattern. One match is refused beyond a limit of its own; who
checks many values at once may limit all of them together.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from crdkeeper.apiserver.schema.finding import UndecidedValue

_MOST_STEPS: Final = 10_000_000
"""The most steps of one match; a machine takes 10⁹ in a second, but 10⁷ if a pattern is made to be slow."""
_LARGEST: Final = 20_000
"""Instructions of a program; larger ones cost up to 1 µs for each of them and each character."""
_STEPS_PER_INSTRUCTION: Final = 2_000
"""What making a program takes, in the same measure."""


class _Budget:
    def __init__(self, steps: int) -> None:
        self.left = steps


_BUDGET: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Limits the steps of all matches inside."""
    token = _BUDGET.set(_Budget(steps))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend_on_program(size: int) -> None:
    """Counts the making of a program, whose size shows when it is made.

    Raises Undecided if nothing is left: ask before it is made, with no size.
    """
    if size > _LARGEST:
        raise UndecidedValue("the pattern may take too long")
    _spend(size * _STEPS_PER_INSTRUCTION)


def spend_on_match(size: int, text: str) -> None:
    """Counts a match of a program with a text. Raises Undecided if that would be too much."""
    steps = size * len(text)
    if steps > _MOST_STEPS:
        raise UndecidedValue("to match the pattern with this value may take too long")
    _spend(steps)


def _spend(steps: int) -> None:
    budget = _BUDGET.get()
    if budget is None:
        return
    budget.left -= steps
    if budget.left < 0:
        raise UndecidedValue("to match all patterns with the values may take too long")
