"""Other programs that keep cores busy."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

_SLICE: Final = 0.01
_SPIN: Final = """
import sys, time
part, slice_ = float(sys.argv[1]), float(sys.argv[2])
while True:
    end = time.monotonic() + part * slice_
    while time.monotonic() < end:
        pass
    time.sleep((1 - part) * slice_)
"""


@contextmanager
def busy(cores: float) -> Iterator[None]:
    """That many cores are wanted by other programs, half of one by a program that works half of the time."""
    with ExitStack() as stack:
        while cores > 0:
            part = min(1.0, cores)
            command = [sys.executable, "-c", _SPIN, str(part), str(_SLICE)]
            program = stack.enter_context(subprocess.Popen(command, start_new_session=True))
            stack.callback(program.kill)
            cores -= part
        yield
