"""Ends work that takes too long, wherever it is: work on user data is pure Python, and may be broken off."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class OutOfTime(BaseException):
    """Work took too long. No Exception, as those are for what is wrong with an object."""


class TimeLimit:
    """A limit for one piece of work at a time, in the main thread of a process.

    It counts the CPU time of the process, so that nothing is broken off because the machine is busy.
    """

    def __init__(self) -> None:
        self._armed = False
        signal.signal(signal.SIGPROF, self._ring)

    def run(self, seconds: float, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the work returns. Raises OutOfTime after so many seconds of CPU, or what the work raises."""
        self._armed = True
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            return work(*args, **kwargs)
        finally:
            # A signal that is on its way finds that it is too late.
            self._armed = False
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _ring(self, _: int, __: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise OutOfTime
