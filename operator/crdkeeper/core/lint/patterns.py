"""Whether a pattern says something of the whole text, or only of a part that nobody meant.

The API server searches: `[a-z]+` accepts `!!a!!`. Only the shape of an expression is looked at here; whether
it is a valid one, others decide.
"""

_LONGEST = 1000
"""Longer ones are left alone: looking for the ends of groups takes quadratic time."""
_OPENERS = ("^", r"\A")
_CLOSERS = ("$", r"\z")
_ANYTHING = (".*", "(.*)")
_ONE_ATOM = frozenset((".", ".+", r"\S", r"\S+", r"\w", r"\d", "[^ ]", r"[^\s]+"))


def is_unanchored(pattern: str) -> bool:
    """Whether it is anchored nowhere, and no search for one character (`.+`, `\\S`) that is meant as such."""
    if len(pattern) > _LONGEST:
        return False
    alternatives = _alternatives(_bare(pattern))
    return all(not _starts(each) and not _ends(each) and each not in _ONE_ATOM for each in alternatives)


def is_loose(pattern: str) -> bool:
    """Whether an alternation was meant to be anchored as a whole, and only its ends are: `^a|b$`."""
    if len(pattern) > _LONGEST:
        return False
    alternatives = _alternatives(_bare(pattern))
    if len(alternatives) < 2 or not (_starts(alternatives[0]) and _ends(alternatives[-1])):
        return False
    return not all(_starts(each) and _ends(each) for each in alternatives)


def _bare(pattern: str) -> str:
    """Without flags in front and without a group around the whole of it."""
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
    starts = [i for i, char in enumerate(text) if char == "(" and _group_end(text[i:]) == len(text) - 1 - i]
    group = text[starts[-1] + 1 : -1] if starts else ""
    return bool(group) and all(_ends(each) for each in _alternatives(group.removeprefix("?:")))


def _group_end(text: str) -> int:
    """The index of the parenthesis that closes the one at the beginning; -1 if none does."""
    for i, depth in _depths(text):
        if depth == 0 and text[i] == ")":
            return i
    return -1


def _alternatives(text: str) -> list[str]:
    cuts = [i for i, depth in _depths(text) if depth == 0 and text[i] == "|"]
    return [
        text[start:end] for start, end in zip([0, *(i + 1 for i in cuts)], [*cuts, len(text)], strict=True)
    ]


def _depths(text: str) -> list[tuple[int, int]]:
    """The indexes of `(`, `)` and `|` outside of classes and escapes, with the depth of groups after each."""
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
