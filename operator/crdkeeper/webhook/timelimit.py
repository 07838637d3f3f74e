"""Aborts work that takes too long, at any point: work on user data is pure Python, which allows that."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class OutOfTime(BaseException):
    """Work took too long. Not an Exception, because those mean that an object is invalid."""


class TimeLimit:
    """A limit for one piece of work at a time, in the main thread of a process.

    It counts the CPU time of the process, so that a busy machine does not abort work; or with `real`, where
    somebody waits, the time that passes.
    """

    def __init__(self, *, real: bool = False) -> None:
        self._armed = False
        self._timer = signal.ITIMER_REAL if real else signal.ITIMER_PROF
        signal.signal(signal.SIGALRM if real else signal.SIGPROF, self._ring)

    def run(self, seconds: float, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return the work's result. Raises what it raises, or OutOfTime after that many seconds."""
        self._armed = True
        signal.setitimer(self._timer, seconds)
        try:
            return work(*args, **kwargs)
        finally:
            # A signal that is on its way has no effect any more.
            self._armed = False
            signal.setitimer(self._timer, 0.0)

    def _ring(self, _: int, __: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise OutOfTime
