"""Findings that an author has reviewed and accepted: comments at the line.

size: # crdkeeper:ignore=duration-unit seconds since the first version
# crdkeeper:ignore=list-of-named,field-name the names are another system's
some_list:

A comment is about the field on its line or the line below. Each must give a reason, and must be needed.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from operator import itemgetter

import yaml

from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.registry import known_ids

MARK = "crdkeeper:ignore"

_COMMENT = re.compile(r"(?:^|(?<=\s))#[ \t]*crdkeeper:ignore(?P<rest>.*)$", re.MULTILINE)
_IDS = re.compile(r"=\s*(?P<ids>[\w-]+(?:\s*,\s*[\w-]+)*)(?:\s+(?P<reason>\S.*))?\s*")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_known = cache(known_ids)


@dataclass(slots=True)
class Suppression:
    """One id at one place. The findings there set `used` and `refused`."""

    id: str
    reason: str
    position: Position
    line: int
    """The line to which it applies."""
    used: bool = False
    refused: bool = False
    """Whether it is about an error of the API server, which nobody can ignore."""


@dataclass(slots=True)
class Suppressions:
    """All suppressions of a file, and syntax errors in them; `ids` are the rules that they name."""

    ids: set[str] = field(default_factory=set)
    faults: list[tuple[Position, str]] = field(default_factory=list)
    _found: list[Suppression] = field(default_factory=list)
    _by_place: dict[tuple[str, int], Suppression] = field(default_factory=dict)

    def add(self, ids: Iterable[str], reason: str, position: Position, line: int) -> None:
        """Add one, or the error in it."""
        known = _known()
        for id in ids:
            if id not in known:
                self.faults.append((position, f"there is no rule {id!r}"))
            elif not reason:
                self.faults.append((position, f"{id} is ignored, but no reason is given"))
            else:
                found = Suppression(id, reason, position, line)
                self.ids.add(id)
                self._found.append(found)
                self._by_place.setdefault((id, line), found)

    def find(self, id: str, lines: Collection[int]) -> Suppression | None:
        """The suppression that applies to a finding at one of these lines."""
        found = (self._by_place.get((id, line)) for line in sorted(lines))
        return next((each for each in found if each is not None), None)

    @property
    def unused(self) -> list[Suppression]:
        """Suppressions that no finding used."""
        return [each for each in self._found if not each.used]


def of_comments(text: str) -> Suppressions:
    """The suppressions in the comments of a YAML file."""
    found = Suppressions()
    if MARK not in text:
        return found
    lines = text.split("\n")
    starts = list(accumulate((len(each) + 1 for each in lines), initial=0))
    below = _below(lines)
    scalars = _scalars(text)
    for match in _COMMENT.finditer(text):
        row = bisect_right(starts, match.start()) - 1
        column = match.start() - starts[row]
        if _is_inside(scalars, (row, column)):
            continue
        position = Position(row + 1, column + 1)
        parts = _IDS.fullmatch(match["rest"])
        if parts is None:
            found.faults.append((position, f"expected `# {MARK}=<id> <reason>`"))
            continue
        about = row if lines[row][:column].strip() else below[row]
        ids = [each.strip() for each in parts["ids"].split(",")]
        found.add(ids, (parts["reason"] or "").strip(), position, about + 1)
    return found


def _below(lines: list[str]) -> list[int]:
    """For each line, the next line with more than a comment."""
    found = [0] * len(lines)
    following = len(lines)
    for row in range(len(lines) - 1, -1, -1):
        found[row] = following
        text = lines[row].lstrip()
        if text and not text.startswith("#"):
            following = row
    return found


_Mark = tuple[int, int]


def _is_inside(scalars: list[tuple[_Mark, _Mark]], mark: _Mark) -> bool:
    """Whether a place is within one of the texts, which are in the order of the file."""
    i = bisect_right(scalars, mark, key=itemgetter(0)) - 1
    return i >= 0 and mark < scalars[i][1]


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
