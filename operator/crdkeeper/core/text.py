"""Words for people."""


def count(number: int, noun: str) -> str:
    """`1 object`, `2 objects`, `12,345 objects`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
