"""Memory that is free again goes back to the system."""

import platform
import subprocess
import sys

import pytest

CODE = """
import sys
from crdkeeper.freedmemory import give_back_freed_memory

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

if sys.argv[1] == "kept":
    give_back_freed_memory()
document = b"a" * (30 << 20)
del document
before = resident()
buffers = [b"a" * (200 << 10) for _ in range(200)]
lasting = b"a" * (200 << 10)
del buffers
print(resident() - before)
"""


def grown(thresholds: str) -> int:
    """By how many MiB a process has grown after it has freed much."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, thresholds], capture_output=True, text=True, check=True
    )
    return int(done.stdout) >> 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_what_is_freed_is_given_back_also_after_a_large_buffer() -> None:
    assert grown("kept") <= 2
    assert grown("as they are") >= 30
