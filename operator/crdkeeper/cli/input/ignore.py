"""Findings that an author has reviewed and accepted: comments at the line.

size: # crdkeeper:ignore=duration-unit seconds since the first version
# crdkeeper:ignore=list-of-named,field-name the names are another system's
some_list:

A comment is about the field on its line or the line below. Each must give a reason, and must be needed.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import yaml

from crdkeeper.cli.input.yamldocument import Position
from crdkeeper.core.lint.registry import known_ids

MARK = "crdkeeper:ignore"

_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*crdkeeper:ignore(?P<rest>.*)$", re.MULTILINE)
_IDS = re.compile(r"=\s*(?P<ids>[\w-]+(?:\s*,\s*[\w-]+)*)(?:\s+(?P<reason>\S.*))?\s*")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Suppression:
    """One id at one place. The findings there set `used` and `refused`."""

    id: str
    reason: str
    position: Position
    line: int
    """The line that it is about."""
    used: bool = False
    refused: bool = False
    """Whether it is about an error of the API server, which nobody can ignore."""


@dataclass(slots=True)
class Suppressions:
    """Those of a file, by id, and syntax errors in them."""

    by_id: dict[str, list[Suppression]] = field(default_factory=dict)
    faults: list[tuple[Position, str]] = field(default_factory=list)

    def add(self, ids: Iterable[str], reason: str, position: Position, line: int) -> None:
        """Add one, or the error in it."""
        known = known_ids()
        for id in ids:
            if id not in known:
                self.faults.append((position, f"there is no rule {id!r}"))
            elif not reason:
                self.faults.append((position, f"{id} is ignored, but no reason is given"))
            else:
                self.by_id.setdefault(id, []).append(Suppression(id, reason, position, line))

    def find(self, id: str, lines: Collection[int]) -> Suppression | None:
        """The one that is about a finding at one of these lines."""
        return next((each for each in self.by_id.get(id, ()) if each.line in lines), None)

    @property
    def unused(self) -> list[Suppression]:
        """Those that no finding needed."""
        return [each for several in self.by_id.values() for each in several if not each.used]


def of_comments(text: str) -> Suppressions:
    """Those in the comments of a YAML file."""
    found = Suppressions()
    if MARK not in text:
        return found
    lines = text.splitlines()
    scalars = _scalars(text)
    for match in _COMMENT.finditer(text):
        row = text.count("\n", 0, match.start())
        column = match.start() - (text.rfind("\n", 0, match.start()) + 1)
        if any(start <= (row, column) < end for start, end in scalars):
            continue
        position = Position(row + 1, column + 1)
        parts = _IDS.fullmatch(match["rest"])
        if parts is None:
            found.faults.append((position, f"expected `# {MARK}=<id> <reason>`"))
            continue
        about = row if lines[row][:column].strip() else _next(lines, row)
        ids = [each.strip() for each in parts["ids"].split(",")]
        found.add(ids, (parts["reason"] or "").strip(), position, about + 1)
    return found


def _next(lines: list[str], row: int) -> int:
    """The next line that is not a comment."""
    below = row + 1
    while below < len(lines) and (not lines[below].strip() or lines[below].lstrip().startswith("#")):
        below += 1
    return below


_Mark = tuple[int, int]


def _scalars(text: str) -> list[tuple[_Mark, _Mark]]:
    """The places of scalars, in which a # does not start a comment."""
    found = []
    try:
        for token in yaml.scan(text, Loader=_LOADER):
            if isinstance(token, yaml.ScalarToken) and not token.plain:
                start, end = token.start_mark, token.end_mark
                found.append(((start.line, start.column), (end.line, end.column)))
    except yaml.YAMLError:
        # The reader of the file reports it.
        pass
    return found
