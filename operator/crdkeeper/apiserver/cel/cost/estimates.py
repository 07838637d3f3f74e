"""Ranges of sizes and costs, with the arithmetic of the API server: 64 bits that never overflow.

Follows the SizeEstimate and CostEstimate of cel-go (checker/cost.go).
"""

import math

Range = tuple[int, int]
"""The minimum and the maximum size or cost."""

MAX = 2**64 - 1
UNKNOWN: Range = (0, MAX)
NOTHING: Range = (0, 0)
ONE: Range = (1, 1)

TEXT_FACTOR = 0.1
"""The cost of reading one character."""
REGEX_FACTOR = 0.25


def add(*ranges: Range) -> Range:
    low = high = 0
    for each in ranges:
        low += each[0]
        high += each[1]
    return min(low, MAX), min(high, MAX)


def multiply(one: Range, other: Range) -> Range:
    return min(one[0] * other[0], MAX), min(one[1] * other[1], MAX)


def union(one: Range, other: Range) -> Range:
    """The range that covers both."""
    return min(one[0], other[0]), max(one[1], other[1])


def scale(range_: Range, factor: float) -> Range:
    """The range times a factor, rounded up."""
    return _scaled(range_[0], factor), _scaled(range_[1], factor)


def _scaled(value: int, factor: float) -> int:
    number = float(value)
    if number > 0 and factor > 0 and number > MAX / factor:
        return MAX
    return min(math.ceil(number * factor), MAX)


def reading(size: Range) -> Range:
    """The cost of reading a string once."""
    return scale(size, TEXT_FACTOR)
