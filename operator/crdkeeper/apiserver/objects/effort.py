"""Limits the work caused by untrusted patterns: RE2 is linear in the text, but with a factor of their choice.

That factor is the size of the pattern's program. Each match has its own limit; a caller that checks many
values may limit all of them together.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from crdkeeper.apiserver.schema.finding import UndecidedValue

_MOST_STEPS: Final = 10_000_000
"""Steps of one match at most; a machine does 10⁹ in a second, but only 10⁷ for a malicious pattern."""
_LARGEST: Final = 20_000
"""Instructions of a program; larger ones take up to 1 µs for each of them and each character."""
_STEPS_PER_INSTRUCTION: Final = 2_000
"""The cost of compiling a program, in the same unit."""


class _Budget:
    def __init__(self, steps: int) -> None:
        self.left = steps


_BUDGET: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Limit the steps of all matches inside."""
    token = _BUDGET.set(_Budget(steps))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend_on_program(size: int) -> None:
    """Count the compilation of a program, whose size is known afterwards.

    Raises UndecidedValue if nothing is left: call it before compilation, without a size.
    """
    if size > _LARGEST:
        raise UndecidedValue("the pattern may take too long")
    _spend(size * _STEPS_PER_INSTRUCTION)


def spend_on_match(size: int, text: str) -> None:
    """Count a match of a program with a text. Raises UndecidedValue if that would be too much."""
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
