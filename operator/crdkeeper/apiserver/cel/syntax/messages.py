"""How the API server formats the errors of an expression: each with its position, and the line marked below.

Follows common/error.go and common/errors.go of cel-go.
"""

from collections.abc import Sequence

from crdkeeper.apiserver.cel.syntax.nodes import Problem

_MOST = 100
_LONGEST_LINE = 16384


def rendered(text: str, problems: Sequence[Problem]) -> str:
    """All errors of an expression as the server writes them into one message."""
    lines = text.split("\n")
    places = [(*_place(lines, each.offset), each.message) for each in problems[:_MOST]]
    places.sort(key=lambda place: place[:2])
    shown = [_shown(lines, *place) for place in places]
    if len(problems) > _MOST:
        shown.append(f"{len(problems) - _MOST} more errors were truncated")
    return "\n".join(shown)


def _place(lines: list[str], offset: int) -> tuple[int, int]:
    """Line from 1 and column from 0; both -1 for the expression as a whole."""
    if offset < 0:
        return -1, -1
    for number, line in enumerate(lines, 1):
        if offset <= len(line):
            return number, offset
        offset -= len(line) + 1
    return len(lines), offset


def _shown(lines: list[str], line: int, column: int, message: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1:
        return head
    source = lines[line - 1]
    if len(source.encode()) > _LONGEST_LINE or lines == [""]:
        return head
    source = source.replace("\t", " ")
    dots = "".join("." if each < "\x80" else "\uff0e" for each in source[:column])
    mark = "\uff3e" if source[column : column + 1] >= "\x80" else "^"
    return f"{head}\n | {source}\n | {dots}{mark}"
