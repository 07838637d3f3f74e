"""The parts of a JSONPath template (client-go util/jsonpath/node.go)."""

from dataclasses import dataclass
from typing import Literal

Operator = str
"""The operator of a filter: any run of the characters !, <, > and =."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """Literal text, outside braces or quoted inside."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a boolean."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a key."""

    name: str


@dataclass(frozen=True, slots=True)
class Keyword:
    """A bare word; Go knows `range` and `end`, and fails at any other when it evaluates the path."""

    name: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """All values of a map, all entries of a list, all bytes of a string."""


@dataclass(frozen=True, slots=True)
class Descent:
    """The value itself and everything below it: `..`."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of a list; a single index is a slice whose end is `single`."""

    start: int | None = None
    end: int | None = None
    step: int | None = None
    single: bool = False
    """Whether `end` was not written but follows from `start`."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The entries of a list for which a comparison is true, or that have anything at `left`."""

    left: "Block"
    operator: Operator | Literal["exists"]
    right: "Block"


@dataclass(frozen=True, slots=True)
class PathUnion:
    """The results of several paths, one after the other."""

    branches: tuple["Block", ...]


Node = PlainText | Constant | Field | Keyword | Wildcard | Descent | Slice | Filter | PathUnion
Block = tuple[Node, ...]
"""The content of a pair of braces: each node takes what the previous one has selected."""
Template = tuple[Block | PlainText, ...]
