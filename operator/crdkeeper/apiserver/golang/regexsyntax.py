"""Whether Go's regexp package accepts a pattern, without ever running one.

Patterns are untrusted, and Python's `re` has another syntax and exponential time. This module only parses, in
one pass, with Go's error messages. What depends on Go's tables or on its estimates of memory and depth is
left undecided.
"""

from collections.abc import Sequence
from functools import lru_cache

from crdkeeper.apiserver.golang.regexclasses import POSIX, is_class

_MAX_REPEAT = 1000
_LONG = 20_000
_DEEP = 100
_MANY_INSTRUCTIONS = 1_000_000
_MAX_HEIGHT = 1000
_MANY_CLASSES = 6_700
r"""Such as \pL, of 1,500 runes at most: less than a third of what Go allows, as all else has runes, too."""


class UndecidedPattern(Exception):
    """Only Go can tell whether the pattern compiles, or what it matches."""


class _Bad(Exception):
    def __init__(self, code: str, expression: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{expression}`")


@lru_cache(maxsize=4096)
def error(pattern: str) -> str | None:
    """Go's error message; None if the pattern is accepted. Raises UndecidedPattern."""
    if len(pattern) > _LONG:
        raise UndecidedPattern(f"patterns of more than {_LONG:,} characters are not read")
    try:
        _Parser(pattern).parse()
    except _Bad as bad:
        return str(bad)
    return None


class _Node:
    """A part of the expression, reduced to what Go limits."""

    __slots__ = ("copies", "height", "size", "width")

    def __init__(self, size: int = 1, copies: int = 1, height: int = 1, width: int = 1) -> None:
        self.size = size
        """The maximum size of its program."""
        self.copies = copies
        """How often the repetitions in it together repeat a part of it."""
        self.height = height
        """The maximum height of Go's tree of it."""
        self.width = width
        """How many parts in a row Go takes out of it at most if another alternative begins alike."""


_ATOM = _Node()
_OPEN = _Node()
_BAR = _Node()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._stack: list[_Node] = []
        self._depth = 0

    def parse(self) -> None:
        last_repeat: int | None = None
        classes = 0
        while self._at < len(self._pattern):
            before = self._at
            char = self._pattern[before]
            repeated = False
            if char in "*+?":
                self._at += 1
                self._repeat(before, last_repeat, None)
                repeated = True
            elif char == "{":
                repeated = self._braces(before, last_repeat)
            else:
                self._one(char)
                # Go counts the runes of a class up to three times, and as often for each group around it.
                classes += self._pattern[before : self._at].lower().count("\\p") * 3 * (self._depth + 1)
                if classes > _MANY_CLASSES:
                    raise UndecidedPattern("the classes of the pattern may need more memory than Go allows")
            last_repeat = before if repeated else None
        self._collapse()
        if _OPEN in self._stack:
            raise _Bad("missing closing )", self._pattern)

    def _one(self, char: str) -> None:
        if char == "(":
            if self._pattern.startswith("(?", self._at):
                self._perl_group()
            else:
                self._open()
                self._at += 1
        elif char == "|":
            self._concatenate()
            self._stack.append(_BAR)
            self._at += 1
        elif char == ")":
            self._collapse()
            if len(self._stack) < 2:
                raise _Bad("unexpected )", self._pattern)
            inner = self._stack.pop()
            self._stack.pop()
            self._push(_Node(inner.size + 2, inner.copies, inner.height + 1, inner.width))
            self._depth -= 1
            self._at += 1
        elif char == "[":
            self._at = _class(self._pattern, self._at)
            self._stack.append(_ATOM)
        elif char == "\\":
            self._escape()
        else:
            self._stack.append(_ATOM)
            self._at += 1

    def _open(self) -> None:
        self._stack.append(_OPEN)
        self._depth += 1
        if self._depth > _DEEP:
            raise UndecidedPattern(f"groups nest deeper than {_DEEP} levels")

    def _push(self, node: _Node) -> None:
        """Add a part that consists of others. Like Go, look at the limits before the rest is read."""
        if node.size > _MANY_INSTRUCTIONS:
            raise UndecidedPattern("the pattern may need more memory than Go allows")
        if node.height > _MAX_HEIGHT:
            raise UndecidedPattern("the parts of the pattern may nest deeper than Go allows")
        self._stack.append(node)

    def _concatenate(self) -> None:
        """Concatenate everything after the last bracket or bar into one node."""
        subs: list[_Node] = []
        while self._stack and self._stack[-1] is not _OPEN and self._stack[-1] is not _BAR:
            subs.append(self._stack.pop())
        self._push(_concatenation(subs))

    def _collapse(self) -> None:
        """Combine everything after the last bracket, including alternatives."""
        self._concatenate()
        subs: list[_Node] = []
        while self._stack and self._stack[-1] is not _OPEN:
            each = self._stack.pop()
            if each is not _BAR:
                subs.append(each)
        self._push(_alternation(subs))

    def _repeat(self, before: int, last_repeat: int | None, limits: tuple[int, int] | None) -> None:
        if self._pattern.startswith("?", self._at):
            self._at += 1
        if last_repeat is not None:
            raise _Bad("invalid nested repetition operator", self._pattern[last_repeat : self._at])
        operator = self._pattern[before : self._at]
        if not self._stack or self._stack[-1] is _OPEN or self._stack[-1] is _BAR:
            raise _Bad("missing argument to repetition operator", operator)
        sub = self._stack.pop()
        if limits is None:
            self._push(_Node(sub.size + 2, sub.copies, sub.height + 1))
            return
        low, high = limits
        times = max(low, high, 1)
        # What {0} repeats no longer counts, and what {0,} repeats does.
        copies = sub.copies * times if high else 1
        if (low >= 2 or high >= 2) and copies > _MAX_REPEAT:
            raise _Bad("invalid repeat count", operator)
        self._push(_Node((sub.size + 1) * times + 1, copies, sub.height + 1))

    def _braces(self, before: int, last_repeat: int | None) -> bool:
        parsed = _limits(self._pattern, before)
        if parsed is None:
            self._stack.append(_ATOM)
            self._at += 1
            return False
        low, high, self._at = parsed
        if low < 0 or low > _MAX_REPEAT or high > _MAX_REPEAT or 0 <= high < low:
            raise _Bad("invalid repeat count", self._pattern[before : self._at])
        self._repeat(before, last_repeat, (low, high))
        return True

    def _perl_group(self) -> None:
        pattern, start = self._pattern, self._at
        rest = pattern[start : start + 5]
        named = 4 if len(pattern) - start > 4 and rest[2:4] == "P<" else 0
        if len(pattern) - start > 3 and rest[2:3] == "<":
            named = 3
        if named:
            end = pattern.find(">", start)
            if end < 0:
                raise _Bad("invalid named capture", pattern[start:])
            name = pattern[start + named : end]
            if not name or not all(each == "_" or (each.isascii() and each.isalnum()) for each in name):
                raise _Bad("invalid named capture", pattern[start : end + 1])
            self._open()
            self._at = end + 1
            return
        at, negative, saw_flag = start + 2, False, False
        while at < len(pattern):
            char = pattern[at]
            at += 1
            if char in "imsU":
                saw_flag = True
            elif char == "-" and not negative:
                negative, saw_flag = True, False
            elif char in ":)" and (saw_flag or not negative):
                if char == ":":
                    self._open()
                self._at = at
                return
            else:
                break
        raise _Bad("invalid or unsupported Perl syntax", pattern[start:at])

    def _escape(self) -> None:
        pattern, at = self._pattern, self._at
        follower = pattern[at + 1 : at + 2]
        if follower and follower in "AbBz":
            self._at += 2
        elif follower == "C":
            raise _Bad("invalid escape sequence", pattern[at : at + 2])
        elif follower == "Q":
            end = pattern.find("\\E", at + 2)
            literal = pattern[at + 2 : end if end >= 0 else len(pattern)]
            self._stack.extend(_ATOM for _ in literal)
            self._at = end + 2 if end >= 0 else len(pattern)
            return
        elif follower and follower in "pP":
            self._at = _unicode_class(pattern, at)
        elif follower and follower in "dDsSwW":
            self._at += 2
        else:
            _, self._at = _char_escape(pattern, at)
        self._stack.append(_ATOM)


def _concatenation(subs: Sequence[_Node]) -> _Node:
    if len(subs) == 1:
        return subs[0]
    return _Node(
        sum(each.size + 1 for each in subs) + 1,
        max((each.copies for each in subs), default=1),
        max((each.height for each in subs), default=0) + 1,
        sum(each.width for each in subs),
    )


def _alternation(subs: Sequence[_Node]) -> _Node:
    found = _concatenation(subs)
    if len(subs) > 1:
        # Go makes a(b|c) of ab|ac: for each part that alternatives share, there are two levels more.
        found.width = max(each.width for each in subs)
        found.height += 2 * found.width
    return found


def _limits(pattern: str, at: int) -> tuple[int, int, int] | None:
    """{n}, {n,} or {n,m} as (n, m or -1, the position after); n = -1 if too big; None if it is literal."""
    low, at = _integer(pattern, at + 1)
    if low is None or at >= len(pattern):
        return None
    high: int | None = low
    if pattern[at] == ",":
        at += 1
        if pattern.startswith("}", at):
            high = -1
        else:
            high, at = _integer(pattern, at)
            if high is None:
                return None
            if high < 0:
                low = -1
    if not pattern.startswith("}", at):
        return None
    return low, high if high is not None else -1, at + 1


def _integer(pattern: str, at: int) -> tuple[int | None, int]:
    start = at
    while at < len(pattern) and pattern[at] in "0123456789":
        at += 1
    digits = pattern[start:at]
    if not digits or (len(digits) > 1 and digits[0] == "0"):
        return None, at
    return (-1 if len(digits) > 9 else int(digits)), at


_ESCAPED = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX = "0123456789abcdefABCDEF"


def _char_escape(pattern: str, start: int) -> tuple[int, int]:
    """The escaped character, and the position after it."""
    at = start + 1
    if at >= len(pattern):
        raise _Bad("trailing backslash at end of expression", "")
    char = pattern[at]
    at += 1
    if char in "01234567":
        if char == "0" or pattern[at : at + 1] in tuple("01234567"):
            value = int(char)
            for _ in range(2):
                if pattern[at : at + 1] not in tuple("01234567"):
                    break
                value = value * 8 + int(pattern[at])
                at += 1
            return value, at
    elif char == "x":
        return _hex_escape(pattern, start, at)
    elif char in _ESCAPED:
        return _ESCAPED[char], at
    elif char.isascii() and not char.isalnum():
        return ord(char), at
    raise _Bad("invalid escape sequence", pattern[start:at])


def _hex_escape(pattern: str, start: int, at: int) -> tuple[int, int]:
    if at >= len(pattern):
        raise _Bad("invalid escape sequence", pattern[start:at])
    if pattern[at] != "{":
        digits = pattern[at : at + 2]
        if len(digits) < 2 or any(each not in _HEX for each in digits):
            raise _Bad("invalid escape sequence", pattern[start : at + 2])
        return int(digits, 16), at + 2
    at += 1
    value, digits = 0, ""
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "}" and digits:
            return value, at
        if char not in _HEX:
            break
        digits += char
        value = value * 16 + int(char, 16)
        if value > 0x10FFFF:
            break
    raise _Bad("invalid escape sequence", pattern[start:at])


def _unicode_class(pattern: str, start: int) -> int:
    r"""The position after \pN or \p{Name}."""
    at = start + 2
    if pattern.startswith("{", at):
        end = pattern.find("}", start)
        if end < 0:
            raise _Bad("invalid character class range", pattern[start:])
        name, at = pattern[at + 1 : end], end + 1
    else:
        name, at = pattern[at : at + 1], at + 1
    if not is_class(name.removeprefix("^")):
        raise _Bad("invalid character class range", pattern[start:at])
    return at


def _class(pattern: str, start: int) -> int:
    """The position after [...]."""
    at = start + 1
    if pattern.startswith("^", at):
        at += 1
    first = True
    while first or not pattern.startswith("]", at):
        first = False
        if pattern.startswith("[:", at) and len(pattern) - at > 2:
            end = pattern.find(":]", at + 2)
            if end >= 0:
                if pattern[at : end + 2] not in POSIX:
                    raise _Bad("invalid character class range", pattern[at : end + 2])
                at = end + 2
                continue
        pair = pattern[at : at + 2]
        if pair in ("\\p", "\\P"):
            at = _unicode_class(pattern, at)
            continue
        if len(pair) == 2 and pair[0] == "\\" and pair[1] in "dDsSwW":
            at += 2
            continue
        begin = at
        low, at = _class_char(pattern, at, start)
        if pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] != "]":
            high, at = _class_char(pattern, at + 1, start)
            if high < low:
                raise _Bad("invalid character class range", pattern[begin:at])
    return at + 1


def _class_char(pattern: str, at: int, start: int) -> tuple[int, int]:
    if at >= len(pattern):
        raise _Bad("missing closing ]", pattern[start:])
    if pattern[at] == "\\":
        return _char_escape(pattern, at)
    return ord(pattern[at]), at + 1
