"""Texts that a pattern probably matches, made from its shape: to find one that another pattern refuses.

Not all of RE2's syntax is read, and what is made may not match: whoever takes a text tries it. So the common
parts are enough: characters, classes, groups, alternatives, repetitions.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_MOST_TEXTS: Final = 12
"""How many texts of each part of a pattern are combined."""
_LONGEST: Final = 1_000
_DEEPEST: Final = 50
_ANY: Final = "a0Z-_./: "
_CLASSES: Final = {"d": "059", "w": "aZ0_", "s": " \t", "D": "a-", "W": "-. ", "S": "a0-"}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}


class _Unread(Exception):
    """The pattern has a part that is not read."""


def texts_of(pattern: str, others: Iterable[str] = ()) -> list[str]:
    """Some texts; none where the pattern is not read.

    `others` are patterns that the texts are tried with: characters at the borders of their classes are used
    where they fit.
    """
    border = frozenset(each for other in others for each in _borders(other))
    try:
        reader = _Reader(pattern, border)
        found = reader.alternatives(0)
    except _Unread:
        return []
    return found if reader.at_end else []


def _borders(pattern: str) -> Iterator[str]:
    """The characters at both ends of the ranges of a pattern's classes, and those just outside."""
    for i, char in enumerate(pattern[:_LONGEST]):
        if char == "-" and 0 < i < len(pattern) - 1:
            for each in (
                ord(pattern[i - 1]) - 1,
                ord(pattern[i - 1]),
                ord(pattern[i + 1]),
                ord(pattern[i + 1]) + 1,
            ):
                if 0x20 <= each < 0x7F:
                    yield chr(each)


class _Reader:
    def __init__(self, pattern: str, border: frozenset[str]) -> None:
        if len(pattern) > _LONGEST:
            raise _Unread
        self._pattern = pattern
        self._border = border
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._pattern)

    def alternatives(self, depth: int) -> list[str]:
        """The texts of what is up to the end, or to the end of the group."""
        if depth > _DEEPEST:
            raise _Unread
        found = self._sequence(depth)
        while self._takes("|"):
            found = [*found[: _MOST_TEXTS // 2], *self._sequence(depth)]
        return _few(found)

    def _sequence(self, depth: int) -> list[str]:
        parts: list[list[str]] = []
        while not self.at_end and self._pattern[self._at] not in "|)":
            part = self._part(depth)
            if part:
                parts.append(self._repeated(part))
        return _joined(parts)

    def _part(self, depth: int) -> list[str]:
        char = self._next()
        if char in "^$":
            return []
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == ".":
            return [*_ANY]
        if char == "\\":
            return self._escaped()
        if char in "*+?{":
            raise _Unread
        return [char]

    def _group(self, depth: int) -> list[str]:
        if self._takes("?"):
            if self._takes("P"):
                self._skip_to(">")
            elif not self._takes(":"):
                raise _Unread
        found = self.alternatives(depth + 1)
        if not self._takes(")"):
            raise _Unread
        return found or [""]

    def _escaped(self) -> list[str]:
        char = self._next()
        if char in _CLASSES:
            return [*_CLASSES[char]]
        if char in "Azb":
            return []
        if char.isalnum() and char not in _CONTROLS:
            raise _Unread
        return [_CONTROLS.get(char, char)]

    def _class(self) -> list[str]:
        negated = self._takes("^")
        ranges: list[tuple[str, str]] = []
        first = True
        while first or not self._takes("]"):
            first = False
            char = self._next()
            if char == "[" and self._peek() == ":":
                raise _Unread
            if char == "\\":
                found = self._escaped()
                if len(found) != 1:
                    ranges += [(each, each) for each in found]
                    continue
                char = found[0]
            end = char
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._next()
                end = self._next()
                end = self._escaped()[0] if end == "\\" else end
            ranges.append((char, end))
        fits = (
            (lambda each: any(low <= each <= high for low, high in ranges))
            if not negated
            else (lambda each: not any(low <= each <= high for low, high in ranges))
        )
        named = () if negated else [each for pair in ranges for each in pair]
        return _few([*named, *filter(fits, sorted(self._border)), *filter(fits, _ANY)])

    def _repeated(self, part: list[str]) -> list[str]:
        least, most = 1, 1
        if self._takes("*"):
            least, most = 0, 3
        elif self._takes("+"):
            least, most = 1, 3
        elif self._takes("?"):
            least, most = 0, 1
        elif self._peek() == "{":
            least, most = self._braces()
        else:
            return part
        self._takes("?")
        found = []
        for number in sorted({least, least + 1, most} & set(range(least, most + 1))):
            found += part if number == 1 else [_cycled(part, number)]
        return _few([*found[-_MOST_TEXTS // 2 :], *found])

    def _braces(self) -> tuple[int, int]:
        start = self._at + 1
        self._skip_to("}")
        least, comma, most = self._pattern[start : self._at - 1].partition(",")
        if not least.isdecimal() or not (most.isdecimal() or not most):
            raise _Unread
        low = int(least)
        high = int(most) if most else (low + 2 if comma else low)
        if high > _LONGEST:
            raise _Unread
        return low, high

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise _Unread
        self._at += 1
        return char

    def _takes(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self._at += 1
        return True

    def _skip_to(self, char: str) -> None:
        end = self._pattern.find(char, self._at)
        if end < 0:
            raise _Unread
        self._at = end + 1


def _cycled(part: Sequence[str], number: int) -> str:
    return "".join(part[i % len(part)] for i in range(number))[:_LONGEST] if part else ""


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    """Texts of the parts one after the other: each part varies once, the others staying as they are."""
    usual = [each[0] for each in parts]
    found = ["".join(usual)]
    for i, part in enumerate(parts):
        before, after = "".join(usual[:i]), "".join(usual[i + 1 :])
        found += [f"{before}{each}{after}" for each in part[1:]]
        if len(found) > 4 * _MOST_TEXTS:
            break
    found.append("".join(each[-1] for each in parts))
    return _few(found, 3 * _MOST_TEXTS)


def _few(texts: Iterable[str], most: int = 2 * _MOST_TEXTS) -> list[str]:
    return [each for each in dict.fromkeys(texts) if len(each) <= _LONGEST][:most]
