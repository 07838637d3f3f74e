"""Virtual time: nothing really waits, and the same program always runs the same way."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Stuck(Exception):
    """Every task waits for another: nothing will ever happen again."""


class _Clockwork(selectors.SelectSelector):
    """Advances the clock instead of waiting for a timer; no socket is ever ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._clockwork = _Clockwork()
        super().__init__(self._clockwork)

    def time(self) -> float:
        return self._clockwork.now

    def run_in_executor(self, executor: Any, func: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:  # type: ignore[override]
        """Immediately, in the same thread: another one would be in real time."""
        future: asyncio.Future[_T] = self.create_future()
        future.set_result(func(*args))
        return future


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on its own loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    """Seconds since the loop began."""
    return asyncio.get_running_loop().time()
