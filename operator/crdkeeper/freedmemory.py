"""Gives freed memory back to the system.

glibc takes each freed buffer of up to 32 MiB for a sign that more of this size will be needed. From then on
it keeps twice as much free memory as that, and takes buffers up to this size from the heap, where one that
lasts holds all below it. A controller needs large buffers rarely: for OpenAPI documents of the API server.
"""

import ctypes
from contextlib import suppress
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_BYTES: Final = 128 << 10
"""What both are at first."""


def give_back_freed_memory() -> None:
    """Let glibc's thresholds stay as they are. Does nothing where there is another C library."""
    with suppress(AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        for each in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            set_option(each, _BYTES)
