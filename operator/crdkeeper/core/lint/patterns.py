"""Whether a pattern covers the whole string, or by mistake only a part of it.

The API server searches: `[a-z]+` accepts `!!a!!`. The structure of an expression shows the author's
intention, and a string that it accepts, but not if it is anchored as a whole, proves that it does something
else. Other checks decide whether an expression is valid.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import re2

_MEMORY = 8 << 20
_MOST_GROUPS = 50
"""With more, nothing is said: to look into nested groups takes a pass over them, and a call, for each."""
_LONGEST = 1000
"""Longer ones are ignored: finding the ends of groups takes quadratic time."""
_REMEMBERED: Final = 1_000
"""Patterns: schemas repeat few of them often. As none is longer, they take a megabyte at most."""
_OPENERS = ("^", r"\A")
_CLOSERS = ("$", r"\z")
_ANYTHING = (".*", "(.*)")
_ONE_ATOM = frozenset((".", ".+", r"\S", r"\S+", r"\w", r"\d", "[^ ]", r"[^\s]+"))


def is_unanchored(pattern: str) -> bool:
    r"""Whether it has no anchor at all, and is not an intended search for one character (`.+`, `\S`)."""
    return len(pattern) <= _LONGEST and _is_unanchored(pattern)


@lru_cache(_REMEMBERED)
def _is_unanchored(pattern: str) -> bool:
    if pattern.count("(") > _MOST_GROUPS:
        return False
    alternatives = _alternatives(_bare(pattern))
    return all(not _starts(each) and not _ends(each) and each not in _ONE_ATOM for each in alternatives)


def unmeant(pattern: str) -> str | None:
    """A string that an alternation accepts because only its ends are anchored: `a!` for `^a|b$`.

    None if that makes no difference, or if nothing shows that the alternation was meant as a whole: if each
    alternative begins with an anchor, those without one at the end are prefixes on purpose.
    """
    return _unmeant(pattern) if len(pattern) <= _LONGEST else None


@lru_cache(_REMEMBERED)
def _unmeant(pattern: str) -> str | None:
    if pattern.count("(") > _MOST_GROUPS:
        return None
    alternatives = _alternatives(_bare(pattern))
    if len(alternatives) < 2 or not (_starts(alternatives[0]) and _ends(alternatives[-1])):
        return None
    if all(_starts(each) for each in alternatives):
        return None
    half = [each for each in alternatives if not (_starts(each) and _ends(each))]
    return next(_only_searched(pattern, half), None)


def refused_if_anchored(pattern: str, values: Iterable[str]) -> str | None:
    """The first value that the pattern accepts, but not if it is anchored as a whole."""
    # What is not Unicode cannot be searched.
    known = [each for each in values if not any("\ud800" <= char <= "\udfff" for char in each)]
    searched, anchored = _search(pattern) if known else (None, None)
    if searched is None or anchored is None:
        return None
    return next((each for each in known if searched.search(each) and not anchored.search(each)), None)


def _search(pattern: str) -> tuple[Any, Any]:
    """The pattern, and the pattern anchored as a whole; None for one that cannot be compiled."""
    return _compiled(pattern), _compiled(f"^(?:{pattern})$")


def _only_searched(pattern: str, alternatives: list[str]) -> Iterator[str]:
    """Strings that the pattern accepts, but not if it is anchored as a whole."""
    searched, anchored = _search(pattern)
    if searched is None or anchored is None:
        return
    for each in alternatives:
        found = example(each)
        for text in (
            (f"{found}!", f"!{found}", f"{found}0", f"0{found}", f"{found} ") if found is not None else ()
        ):
            if searched.search(text) and not anchored.search(text):
                yield text


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        return None


_CANDIDATES = "a0A-_./: @#!\u00e4\t"
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_LONGEST_TEXT = 1000


def example(pattern: str) -> str | None:
    """A short string that an expression matches; None if it uses unsupported syntax.

    Only the structure of the expression determines it, so a caller has to verify it.
    """
    parts: list[str] = []
    last: str | None = None
    at = 0
    while at < len(pattern):
        char = pattern[at]
        repeats = _REPEATS.match(pattern, at)
        if repeats is not None:
            if last is None:
                return None
            least = 1 if char == "+" else int(repeats["least"] or 0)
            if len(last) * least > _LONGEST_TEXT:
                return None
            parts[-1] = last * least
            last, at = None, repeats.end()
            continue
        unit, at = _unit(pattern, at)
        if unit is None:
            return None
        last = unit
        parts.append(unit)
    return "".join(parts)


_REPEATS = re.compile(r"(?:[*+?]|\{(?P<least>[0-9]+)(?:,[0-9]*)?\})\??")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|[imsU]*:))?")


def _unit(pattern: str, at: int) -> tuple[str | None, int]:
    """A string for the unit that starts there, a character, a class or a group; and the position after it."""
    char = pattern[at]
    if char in "^$":
        return "", at + 1
    if char == ".":
        return "a", at + 1
    if char == "\\":
        follower = pattern[at + 1 : at + 2]
        if follower in ("A", "z"):
            return "", at + 2
        if follower in tuple("dDsSwW"):
            return _member(pattern[at : at + 2]), at + 2
        known = follower and not follower.isalnum()
        return (follower if known else _ESCAPED.get(follower)), at + 2
    if char == "[":
        end = _class_end(pattern, at)
        return _member(pattern[at:end]), end
    if char == "(":
        begin, end = _GROUP.match(pattern, at), at + _group_end(pattern[at:])
        if begin is None or end < at:
            return None, at + 1
        return example(_alternatives(pattern[begin.end() : end])[0]), end + 1
    return char, at + 1


def _member(characters: str) -> str | None:
    one = _compiled(characters)
    return next((each for each in _CANDIDATES if one is not None and one.fullmatch(each)), None)


def _class_end(pattern: str, at: int) -> int:
    """The position after a class such as `[]a-z]`."""
    end = at + (2 if pattern[at + 1 : at + 2] == "^" else 1)
    first = True
    while end < len(pattern) and (first or pattern[end] != "]"):
        named = pattern.find(":]", end) if pattern.startswith("[:", end) else -1
        end = named + 2 if named > 0 else end + (2 if pattern[end] == "\\" else 1)
        first = False
    return end + 1


def _bare(pattern: str) -> str:
    """Without leading flags and without a group around the whole of it."""
    text = pattern
    if text.startswith("(?") and (end := text.find(")")) > 0 and text[2:end].isalpha():
        text = text[end + 1 :]
    while text.startswith("(") and _group_end(text) == len(text) - 1:
        inner = text[3:-1] if text.startswith("(?:") else text[1:-1]
        if inner.startswith("?"):
            break
        text = inner
    return text


def _starts(text: str) -> bool:
    return text.startswith((*_OPENERS, *_ANYTHING)) or (text.startswith("(") and _in_group(text, first=True))


def _ends(text: str) -> bool:
    if text.endswith("$"):
        # An escaped dollar is a character.
        before = len(text) - 1 - len(text[:-1].rstrip("\\"))
        return before % 2 == 0
    return text.endswith((_CLOSERS[1], *_ANYTHING)) or (text.endswith(")") and _in_group(text, first=False))


def _in_group(text: str, *, first: bool) -> bool:
    """Whether all alternatives of the group at the beginning or end are anchored there: `(^a|^b)c`."""
    if first:
        end = _group_end(text)
        group = text[1:end] if end > 0 else ""
        return bool(group) and all(_starts(each) for each in _alternatives(group.removeprefix("?:")))
    start = _group_start(text)
    group = text[start + 1 : -1] if start >= 0 else ""
    return bool(group) and all(_ends(each) for each in _alternatives(group.removeprefix("?:")))


def _group_end(text: str) -> int:
    """The index of the parenthesis that closes the one at the beginning; -1 if none does."""
    for i, depth in _depths(text):
        if depth == 0 and text[i] == ")":
            return i
    return -1


def _group_start(text: str) -> int:
    """The index of the parenthesis that the one at the end closes; -1 if that closes none."""
    opened: list[int] = []
    for i, _ in _depths(text):
        if text[i] == "(":
            opened.append(i)
        elif text[i] == ")" and opened:
            start = opened.pop()
            if i == len(text) - 1:
                return start
    return -1


def _alternatives(text: str) -> list[str]:
    if "|" not in text:
        return [text]
    cuts = [i for i, depth in _depths(text) if depth == 0 and text[i] == "|"]
    return [
        text[start:end] for start, end in zip([0, *(i + 1 for i in cuts)], [*cuts, len(text)], strict=True)
    ]


def _depths(text: str) -> list[tuple[int, int]]:
    """The indexes of `(`, `)` and `|` outside classes and escapes, with the depth of groups after each."""
    found: list[tuple[int, int]] = []
    depth, at, class_from = 0, 0, -1
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if class_from >= 0:
            # The first character of a class may be the bracket itself.
            if char == "]" and at > class_from:
                class_from = -1
        elif char == "[":
            class_from = at + (2 if text[at + 1 : at + 2] == "^" else 1)
        elif char in "()|":
            depth += {"(": 1, ")": -1, "|": 0}[char]
            found.append((at, depth))
        at += 1
    return found
