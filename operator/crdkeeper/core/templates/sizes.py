"""The size of rendered values, which expressions can multiply: counted only up to a limit."""

from typing import Any, Final

MOST_OF_OBJECT: Final = 1_572_864
"""Bytes of one object: the API server's and etcd's limit for a request."""
MOST_OF_ALL: Final = 32 << 20
"""Bytes of all objects of one composite."""
MOST_DEPTH: Final = 100
"""Levels of one object."""
_LEAST: Final = {dict: 6, list: 3}
"""Bytes that an entry or an item counts at least."""


class SizeExceeded(ValueError):
    """A value has more than is allowed of something."""


def measure(value: Any, most: int) -> int:
    """About how many bytes the value has as JSON. Raises SizeExceeded above `most`, and if nested too deep.

    Values share their parts, so that walking through all of them without a limit could take forever.
    """
    total = 0
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        if depth > MOST_DEPTH:
            raise SizeExceeded(f"more than {MOST_DEPTH} levels")
        if isinstance(each, str):
            total += len(each) + 2 if each.isascii() else 4 * len(each)
        elif isinstance(each, dict | list):
            # What cannot fit is not walked through: it may be large, and measured many times.
            if total + 2 + _LEAST[type(each)] * len(each) > most:
                raise SizeExceeded(f"more than {most:,} bytes")
            if isinstance(each, dict):
                total += 2 + 4 * len(each) + sum(map(len, each))
                waiting += [(inner, depth + 1) for inner in each.values()]
            else:
                total += 2 + len(each)
                waiting += [(inner, depth + 1) for inner in each]
        else:
            total += 4
        if total > most:
            raise SizeExceeded(f"more than {most:,} bytes")
    return total
